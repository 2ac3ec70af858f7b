import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from laptsne.graph.spectrum import components


@pytest.mark.parametrize("n", [1, 2, 50, 2000])
@pytest.mark.parametrize("degree", [0, 0.4, 0.8, 1.5, 20])
def test_components_are_numbered_as_by_scipy(rng, n, degree):
    rows, columns = rng.integers(0, n, (2, int(n * degree)))
    graph = scipy.sparse.csr_matrix((np.ones(rows.size), (rows, columns)), (n, n))
    graph = (graph + graph.T).tocsr()
    assert np.array_equal(
        components(graph.indptr, graph.indices, graph.data), connected_components(graph, directed=False)[1]
    )


def test_an_entry_of_zero_connects_nothing():
    graph = scipy.sparse.csr_matrix(([0.0, 1.0, 0.0, 1.0], ([0, 1, 1, 2], [1, 2, 0, 1])), (3, 3))
    assert components(graph.indptr, graph.indices, graph.data).tolist() == [0, 1, 1]
