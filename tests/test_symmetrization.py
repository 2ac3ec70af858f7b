import tracemalloc

import numpy as np
import pytest
import scipy.sparse

from laptsne.graph.affinity import plus_transpose


def neighbors(rng, n, k, dtype=np.float32):
    """A matrix with k entries per row in no order, some of them zero and some stored twice."""
    columns = (np.arange(n)[:, None] + rng.integers(1, 3 * k, (n, k))) % n
    values = rng.random((n, k)).astype(dtype)
    values[values < 0.1] = 0
    return scipy.sparse.csr_matrix((values.ravel(), columns.ravel().astype(np.int32), np.arange(n + 1) * k), (n, n))


@pytest.mark.parametrize("n", [5, 1000])
def test_blocks_give_the_sum_of_scipy_to_the_bit(rng, n):
    matrix = neighbors(rng, n, min(n - 1, 20))
    expected = plus_transpose(matrix.copy())
    found = plus_transpose(matrix, n_rows=max(n // 48, 1))
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert found.has_sorted_indices
    assert (found.data != 0).all()


def test_rows_of_any_length_and_none_at_all():
    matrix = scipy.sparse.csr_matrix(([1.0, 2.0, 4.0], [1, 2, 0], [0, 2, 2, 2, 3]), (4, 4))
    expected = [[0, 1, 2, 4], [1, 0, 0, 0], [2, 0, 0, 0], [4, 0, 0, 0]]
    np.testing.assert_array_equal(plus_transpose(matrix, n_rows=1).toarray(), expected)
    assert plus_transpose(scipy.sparse.csr_matrix((4, 4)), n_rows=1).nnz == 0


def test_blocks_never_hold_the_whole_transpose(rng):
    matrix = neighbors(rng, 40_000, 30)
    tracemalloc.start()
    found = plus_transpose(matrix, n_rows=1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    size = found.data.nbytes + found.indices.nbytes
    assert peak < 1.1 * size
