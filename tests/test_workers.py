import numpy as np
import pytest
from threadpoolctl import threadpool_info

from laptsne.workers import Workers, effective_n_jobs, narrow_blas


def blas_threads():
    np.ones((2, 2)) @ np.ones((2, 2))
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_n_jobs():
    cores = effective_n_jobs(None)
    assert cores >= 1
    assert effective_n_jobs(-1) == cores
    assert effective_n_jobs(-1000) == 1
    assert effective_n_jobs(3) == 3


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
@pytest.mark.parametrize("n_rows", [1, 63, 64, 65, 1000])
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


def test_an_error_in_a_kernel_is_raised():
    def kernel(start, stop):
        raise ZeroDivisionError

    with Workers(2) as workers, pytest.raises(ZeroDivisionError):
        workers.rows(kernel, 1000, work=1e9)


def test_blas_gets_its_threads_back_when_the_last_fit_has_ended():
    before = blas_threads()
    with narrow_blas():
        with narrow_blas():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
    assert blas_threads() == before
    with pytest.raises(ZeroDivisionError), narrow_blas():
        raise ZeroDivisionError
    assert blas_threads() == before
