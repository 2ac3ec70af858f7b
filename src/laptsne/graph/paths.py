"""Shortest paths in a neighbour graph: more neighbours than it has, at the distances along its edges."""

import heapq
from typing import Any

import numpy as np

from laptsne._runtime.compiled import compiled
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.graph.neighbors import neighbor_graph


@compiled
def _settle_rows(
    start: int, stop: int, indptr: Array, indices: Array, lengths: Array, found: Array, distances: Array
) -> None:
    """Find the nearest nodes of every row by Dijkstra's algorithm, which stops once the row is full."""
    best = np.full(indptr.size - 1, np.inf)
    for i in range(start, stop):
        best[i] = 0.0
        queue = [(0.0, np.int64(i))]
        seen = [np.int64(i)]
        count = -1  # the first node is the row itself
        while len(queue) > 0 and count < found.shape[1]:
            length, node = heapq.heappop(queue)
            if length > best[node]:
                continue  # a shorter path was found since
            if count >= 0:
                found[i, count] = node
                distances[i, count] = length
            count += 1
            for e in range(indptr[node], indptr[node + 1]):
                other = np.int64(indices[e])  # one integer type for all entries of the queue
                total = length + lengths[e]
                if total < best[other]:
                    if best[other] == np.inf:
                        seen.append(other)
                    best[other] = total
                    heapq.heappush(queue, (total, other))
        for node in seen:
            best[node] = np.inf


def nearest_by_path(graph: Any, n_neighbors: int, workers: Workers) -> Any:
    """Return the graph of the ``n_neighbors`` nearest nodes of every node by shortest path, as a CSR matrix.

    Paths follow edges in both directions. A node that reaches fewer than ``n_neighbors`` others has all of these.

    Parameters
    ----------
    graph : sparse matrix of shape (n_samples, n_samples)
        Distances to neighbours; an explicit zero is the distance of a duplicate.
    n_neighbors : int
        Number of neighbours per node, not counting itself.
    workers : Workers
        Thread pool.

    Examples
    --------
    >>> import scipy.sparse
    >>> from laptsne._runtime.threads import Workers
    >>> from laptsne.graph.paths import nearest_by_path
    >>> chain = scipy.sparse.csr_matrix([[0, 1.0, 0], [0, 0, 2.0], [0, 0, 0]])
    >>> nearest_by_path(chain, 2, Workers(1)).toarray()
    array([[0., 1., 3.],
           [1., 0., 2.],
           [3., 2., 0.]])
    """
    edges = graph.tocsr().astype(np.float64)
    # Products and sums of sparse matrices drop zeros, and with them the edges between duplicates.
    tiny = 1e-9 * float(edges.data[edges.data > 0].min(initial=np.inf))
    edges.data = np.maximum(edges.data, tiny if np.isfinite(tiny) else 1.0)
    edges = edges.maximum(edges.T).tocsr()
    n_samples = edges.shape[0]
    n_neighbors = min(n_neighbors, n_samples - 1)
    found = np.full((n_samples, n_neighbors), -1, np.int64)
    distances = np.zeros((n_samples, n_neighbors))
    args = (edges.indptr, edges.indices, edges.data, found, distances)
    degree = edges.nnz / max(n_samples, 1)
    workers.rows(_settle_rows, n_samples, *args, work=10.0 * n_samples * n_neighbors * degree)
    return neighbor_graph(found, distances)
