"""Many fits, one after another and at once; fits in forked processes."""

import gc
import threading
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
needs_fork = pytest.mark.skipif(not hasattr(threads.os, "fork"), reason="needs a system that forks")


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


@pytest.mark.skipif(not STATUS.exists(), reason="needs the memory that Linux tells")
def test_memory_does_not_grow_from_fit_to_fit():
    expected = [fit() for _ in range(8)]
    used = []
    for _ in range(20):
        assert fit() == expected[0]
        used.append(resident())
    assert np.polyfit(np.arange(20), used, 1)[0] < 0.15, used  # MB a fit; what a fit keeps of itself is more


def test_eight_at_once_and_nothing_is_left_behind():
    before = n_threads_of("blas"), n_threads_of("openmp"), threading.active_count()
    found = elsewhere.in_threads(fit, n=8)
    assert set(found) == {fit()}
    assert (n_threads_of("blas"), n_threads_of("openmp"), threading.active_count()) == before
    assert not threads._owners


def test_blas_is_held_in_any_thread_after_a_fit_in_this_one():
    def held():
        with single_threaded_blas():
            return n_threads_of("blas"), n_threads_of("openmp")

    fit()
    before = n_threads_of("blas"), n_threads_of("openmp")
    for found in (held(), elsewhere.in_thread(held)):
        assert set(found[0] + found[1]) <= {1}
    assert (n_threads_of("blas"), n_threads_of("openmp")) == before


@needs_fork
def test_a_fit_in_a_fork_after_fits_and_after_threads_of_openmp():
    """The threads of OpenMP do not survive a fork: whoever asks for them in the child waits for ever."""
    expected = fit()
    NearestNeighbors(n_neighbors=5, algorithm="brute").fit(points(3000)).kneighbors()
    assert elsewhere.in_child(fit, method="fork") == expected


@needs_fork
def test_a_fork_while_other_threads_fit():
    """Their locks and settings are copied; they themselves are not."""
    begun, done = threading.Event(), threading.Event()

    def other():
        with Workers(2), threads._lock:
            begun.set()
            done.wait(elsewhere.TIMEOUT)

    expected, before = (fit(), len(threads._owners)), n_threads_of("blas")
    thread = threading.Thread(target=other)
    thread.start()
    begun.wait()
    try:
        child = elsewhere.in_child(lambda: (fit(), len(threads._owners), n_threads_of("blas")), method="fork")
    finally:
        done.set()
        thread.join()
    assert child == (*expected, before)


@pytest.mark.parametrize("place", [elsewhere.in_thread, elsewhere.in_executor])
def test_a_fit_beside_the_main_thread(place):
    assert place(fit) == fit()


def test_a_fit_in_a_spawned_process():
    assert elsewhere.in_child(fit, method="spawn") == fit()
