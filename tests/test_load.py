"""Many fits, one after another and at once; fits in forked processes."""

import gc
import os
import threading
import time
from pathlib import Path

import elsewhere
import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_info

from laptsne import LaptSNE
from laptsne._runtime import threads
from laptsne._runtime.threads import Workers, single_threaded_blas

STATUS = Path("/proc/self/statm")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")


def points(n=200):
    rng = np.random.default_rng(0)
    return rng.normal(scale=4, size=(4, 20))[rng.integers(0, 4, n)] + rng.normal(size=(n, 20))


def fit(n_jobs=2):
    return LaptSNE(max_iter=30, n_jobs=n_jobs, random_state=0).fit_transform(points()).tobytes()


def resident():
    """Resident memory in MB."""
    gc.collect()
    return int(STATUS.read_text().split()[1]) * 4096 / 1e6


def n_threads_of(user_api):
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == user_api]


def n_holders():
    """Number of threads in which fits run, as far as the limit on BLAS knows."""
    return len(set(threads._holders))


@pytest.mark.skipif(not STATUS.exists(), reason="reads the resident memory from /proc")
def test_memory_does_not_grow_from_fit_to_fit():
    expected = [fit() for _ in range(8)]
    used = []
    for _ in range(20):
        assert fit() == expected[0]
        used.append(resident())
    assert np.polyfit(np.arange(20), used, 1)[0] < 0.15, used  # MB per fit; keeping any fit alive would take more


def test_eight_fits_at_once_leave_nothing_behind(kernel_threads):
    before = n_threads_of("blas"), n_threads_of("openmp"), threading.active_count()
    found = elsewhere.in_threads(fit, n=8)
    assert len(kernel_threads.shared) >= 3, kernel_threads
    assert set(found) == {fit()}
    assert (n_threads_of("blas"), n_threads_of("openmp"), threading.active_count()) == before
    assert n_holders() == 0


def test_blas_is_limited_in_any_thread_after_a_fit_in_this_one():
    def limited():
        with single_threaded_blas():
            return n_threads_of("blas"), n_threads_of("openmp")

    threads._libraries.cache_clear()  # other tests may have loaded libraries since the first fit
    fit()
    before = n_threads_of("blas"), n_threads_of("openmp")
    for found in (limited(), elsewhere.in_thread(limited)):
        assert set(found[0] + found[1]) <= {1}
    assert (n_threads_of("blas"), n_threads_of("openmp")) == before


@needs_fork
def test_a_fit_in_a_fork_after_fits_and_openmp_in_the_parent():
    """The threads of OpenMP do not survive a fork: a child that uses them would wait for ever."""
    expected = fit()
    NearestNeighbors(n_neighbors=5, algorithm="brute").fit(points(3000)).kneighbors()
    assert elsewhere.in_child(fit, method="fork") == expected


@needs_fork
def test_a_fork_while_another_thread_fits():
    """Its limit on BLAS is copied; the thread is not."""
    begun, done = threading.Event(), threading.Event()

    def other():
        with Workers(2):
            begun.set()
            done.wait(elsewhere.TIMEOUT)

    expected, before = (fit(), n_holders()), n_threads_of("blas")
    thread = threading.Thread(target=other)
    thread.start()
    begun.wait()
    try:
        child = elsewhere.in_child(lambda: (fit(), n_holders(), n_threads_of("blas")), method="fork")
    finally:
        done.set()
        thread.join()
    assert child == (*expected, before)


@needs_fork
def test_a_fork_while_another_thread_has_the_lock():
    """A lock that is taken at the fork stays taken in the child."""
    begun = threading.Event()

    def other():
        with threads._lock:
            begun.set()
            time.sleep(0.5)

    expected = fit()
    thread = threading.Thread(target=other)
    thread.start()
    begun.wait()
    assert elsewhere.in_child(fit, method="fork") == expected
    thread.join()


@needs_fork
def test_a_fork_during_a_fit_ends_that_fit_as_well():
    """The fit goes on in the child, whose thread then gives the limit back."""
    before = n_threads_of("blas")

    def forked():
        ours, theirs = os.pipe()
        with Workers(2):
            child = os.fork()
            within = n_threads_of("blas")
        if child == 0:
            fine = set(within) == {1} and n_threads_of("blas") == before and n_holders() == 0
            os.write(theirs, b"fine" if fine else b"different")
            os._exit(0)
        os.waitpid(child, 0)
        return os.read(ours, 100)

    assert forked() == b"fine"


@pytest.mark.parametrize("place", [elsewhere.in_thread, elsewhere.in_executor])
def test_a_fit_beside_the_main_thread(place):
    assert place(fit) == fit()


def test_a_fit_in_a_spawned_process():
    assert elsewhere.in_child(fit, method="spawn") == fit()
