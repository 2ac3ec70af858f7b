import threading
from collections import Counter

import elsewhere
import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from laptsne._runtime import threads
from laptsne._runtime.threads import Workers, effective_n_jobs, single_threaded_blas


def blas_threads():
    np.ones((2, 2)) @ np.ones((2, 2))
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_n_jobs():
    cores = effective_n_jobs(None)
    assert cores >= 1
    assert effective_n_jobs(-1) == cores
    assert effective_n_jobs(-1000) == 1
    assert effective_n_jobs(3) == 3


@pytest.fixture
def eight_cores(monkeypatch):
    monkeypatch.setattr(joblib, "cpu_count", lambda: 8)
    for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, 8),
        ({"OMP_NUM_THREADS": "3"}, 3),
        ({"NUMBA_NUM_THREADS": "2"}, 2),
        ({"OMP_NUM_THREADS": "4,2", "NUMBA_NUM_THREADS": "5"}, 4),
        ({"OMP_NUM_THREADS": "64"}, 8),
        ({"OMP_NUM_THREADS": ""}, 8),
        ({"OMP_NUM_THREADS": "many"}, 8),
    ],
)
def test_the_environment_limits_the_default_number_of_threads(eight_cores, monkeypatch, variables, expected):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert effective_n_jobs(None) == expected
    assert effective_n_jobs(-1) == expected
    assert effective_n_jobs(-2) == max(1, expected - 1)
    assert effective_n_jobs(6) == 6


def test_pools_of_several_threads_share_the_cores(eight_cores):
    opened, done = threading.Barrier(2), threading.Event()

    def another():
        with Workers():
            opened.wait()
            done.wait()

    other = threading.Thread(target=another)
    with Workers() as workers, Workers(6) as explicit:
        assert workers.n_threads == 8  # two pools of the same thread do not run at once
        other.start()
        opened.wait()
        assert workers.n_threads == 4
        assert explicit.n_threads == 6
        done.set()
        other.join()
        assert workers.n_threads == 8


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
@pytest.mark.parametrize("n_rows", [0, 1, 63, 64, 65, 1000])
def test_every_row_is_visited_once_and_blocks_are_whole(n_jobs, n_rows):
    visits = np.zeros(n_rows, int)
    starts = []

    def kernel(start, stop):
        starts.append(start)
        visits[start:stop] += 1

    with Workers(n_jobs) as workers:
        workers.rows(kernel, n_rows, work=1e9)
    np.testing.assert_array_equal(visits, 1)
    assert all(start % 64 == 0 for start in starts)


def test_chunks_are_handed_out_once():
    chunks = Counter()
    with Workers(4) as workers:
        workers.rows(lambda start, stop: chunks.update([(start, stop)]), 64 * 16, work=1e9)
    assert chunks == Counter((start, start + 64) for start in range(0, 64 * 16, 64))


def test_small_kernels_run_in_the_calling_thread():
    found = []
    with Workers(4) as workers:
        workers.rows(lambda start, stop: found.append((start, stop)), 1000, work=threads.MIN_WORK - 1)
    assert found == [(0, 1000)]


def test_kernels_run_in_all_threads(kernel_threads):
    together = threading.Barrier(3, timeout=elsewhere.TIMEOUT)
    with Workers(3) as workers:
        workers.rows(lambda start, stop: together.wait(), 3, work=1, alignment=1)
    assert len(kernel_threads["<lambda>"]) == 3


def test_an_error_in_a_kernel_is_raised():
    def kernel(start, stop):
        raise ZeroDivisionError

    with Workers(2) as workers, pytest.raises(ZeroDivisionError):
        workers.rows(kernel, 1000, work=1e9)


def test_blas_threads_are_restored_when_the_last_holder_leaves():
    with threadpool_limits(3, user_api="blas"):
        with single_threaded_blas():
            with single_threaded_blas():
                assert set(blas_threads()) == {1}
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {3}
        with pytest.raises(ZeroDivisionError), single_threaded_blas():
            raise ZeroDivisionError
        assert set(blas_threads()) == {3}


def test_blas_threads_are_restored_when_the_last_of_several_threads_leaves():
    """Also if it is not the thread that set the limit, which threadpoolctl would ignore."""
    entered, first_left = threading.Barrier(2, timeout=elsewhere.TIMEOUT), threading.Event()

    def last():
        with single_threaded_blas():
            entered.wait()
            first_left.wait(elsewhere.TIMEOUT)
            return blas_threads()

    with threadpool_limits(3, user_api="blas"):
        found = []
        other = threading.Thread(target=lambda: found.extend(last()))
        with single_threaded_blas():
            other.start()
            entered.wait()
        assert set(blas_threads()) == {1}
        first_left.set()
        other.join()
        assert set(found) == {1}
        assert set(blas_threads()) == {3}


def test_other_threads_can_set_blas_threads_after_a_fit():
    """Threadpoolctl lets only one thread control OpenBLAS: ours must not keep that control."""

    def limited():
        with threadpool_limits(5, user_api="blas"):
            return blas_threads()

    with single_threaded_blas():
        pass
    assert set(elsewhere.in_thread(limited)) == {5}


def test_blas_is_limited_in_a_thread_while_another_one_controls_it():
    def limited():
        with single_threaded_blas():
            return blas_threads()

    with threadpool_limits(3, user_api="blas"):
        assert set(elsewhere.in_thread(limited)) == {1}
        assert set(blas_threads()) == {3}
