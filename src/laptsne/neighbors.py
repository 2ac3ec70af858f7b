"""Distances of every point to its neighbours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances_chunked
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import gen_batches

_WORKING_MEMORY = 64  # MiB
_BATCH = 1024  # rows of a given matrix that are handled together


def neighbor_distances(
    X: Any, n_neighbors: int, *, metric: Any, metric_params: dict[str, Any] | None, n_jobs: int
) -> Any:
    """Distances to the nearest neighbours of every point, a point itself not among them.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Features; with ``metric="precomputed"`` distances of shape (n_samples, n_samples), where a sparse
        matrix is a neighbour graph and may have any number of neighbours in a row.
    n_neighbors : int
        Number of neighbours; a graph gives at most as many as it has.

    Returns
    -------
    graph : sparse matrix in CSR form, of shape (n_samples, n_samples)
        Distances; a stored zero is the distance of a duplicate.
    """
    if isinstance(metric, str) and metric == "precomputed" and scipy.sparse.issparse(X):
        return _nearest_of_graph(X.tocsr(), n_neighbors)
    X = _squarable(X)
    search = NearestNeighbors(n_neighbors=n_neighbors, metric=metric, metric_params=metric_params, n_jobs=n_jobs)
    distances, indices = search.fit(X).kneighbors()
    n_samples = X.shape[0]
    indptr = np.arange(n_samples + 1) * n_neighbors
    return scipy.sparse.csr_matrix((distances.ravel(), indices.ravel(), indptr), (n_samples, n_samples))


def all_distances(X: Any, *, metric: Any, metric_params: dict[str, Any] | None, n_jobs: int) -> NDArray[Any]:
    """Distances of all pairs as a dense single-precision matrix, every row in units of its largest.

    In these units nothing overflows, and affinities do not depend on the unit of a row.
    """
    n_samples = X.shape[0]
    distances = np.empty((n_samples, n_samples), dtype=np.float32)
    start = 0
    # Block by block, since scikit-learn returns double precision, and the whole of that would be twice as large.
    for block in _distance_blocks(X, metric, metric_params, n_jobs):
        largest = block.max(axis=1, keepdims=True)
        distances[start : start + len(block)] = np.divide(
            block, largest, out=np.zeros_like(block, dtype=np.float64), where=largest > 0
        )
        start += len(block)
    return distances


def _distance_blocks(X: Any, metric: Any, metric_params: dict[str, Any] | None, n_jobs: int) -> Iterable[NDArray[Any]]:
    if not (isinstance(metric, str) and metric == "precomputed"):
        return pairwise_distances_chunked(  # type: ignore[no-any-return]
            _squarable(X), metric=metric, n_jobs=n_jobs, working_memory=_WORKING_MEMORY, **(metric_params or {})
        )
    if scipy.sparse.issparse(X):
        raise ValueError(
            "n_neighbors='all' needs all distances, but X is a sparse neighbour graph; "
            "give a dense matrix of distances, or n_neighbors='auto'."
        )
    return (X[rows] for rows in gen_batches(X.shape[0], _BATCH))


def _squarable(X: Any) -> Any:
    """Return X in a precision in which the squares of its values neither overflow nor vanish."""
    largest = float(abs(X).max())
    if largest > 1e150:
        raise ValueError(
            f"X has values up to {largest:.2g}, whose distances overflow. "
            "Scale X down, for instance with sklearn.preprocessing.StandardScaler."
        )
    return X if 1e-15 < largest < 1e15 else X.astype(np.float64)


def _nearest_of_graph(graph: Any, n_neighbors: int) -> Any:
    """Cut a neighbour graph to at most ``n_neighbors`` a row, without the diagonal."""
    data, columns, indptr = [], [], [0]
    for i in range(graph.shape[0]):
        row = slice(graph.indptr[i], graph.indptr[i + 1])
        others = graph.indices[row] != i
        distance, column = graph.data[row][others], graph.indices[row][others]
        nearest = np.argsort(distance, kind="stable")[:n_neighbors]
        data.append(distance[nearest])
        columns.append(column[nearest])
        indptr.append(indptr[-1] + nearest.size)
    return scipy.sparse.csr_matrix((np.concatenate(data), np.concatenate(columns), indptr), graph.shape)
