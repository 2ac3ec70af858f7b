"""Distances of every point to its neighbours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.metrics import pairwise_distances_chunked
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import gen_batches

from laptsne._runtime.threads import Workers
from laptsne.graph.ivf import IVFIndex
from laptsne.graph.metric_params import validated_metric

# Beyond it approximate neighbours are found faster than exact ones (benchmarks/neighbors.py).
_MAX_EXACT = 10_000
_EUCLIDEAN = {name: name for name in ("euclidean", "sqeuclidean", "cosine", "correlation")} | {"l2": "euclidean"}
_WORKING_MEMORY = 64  # MiB
# What others may have set for scikit-learn, in this thread or another, must not change the bits.
_CONFIG = {"working_memory": 1024, "enable_cython_pairwise_dist": True, "pairwise_dist_chunk_size": 256}
_BATCH = 1024  # rows of a given matrix that are handled together
_ROWS, _VALUES = (1 << 8, 1 << 16), 1 << 22  # of new points that are handled together


def neighbor_distances(
    X: Any, n_neighbors: int, *, metric: Any, metric_params: dict[str, Any] | None, workers: Workers
) -> Any:
    """Distances to the nearest neighbours of every point, a point itself not among them.

    Of more than 10,000 points with dense features they are approximate for the metrics that are Euclidean distances
    of something, "euclidean", "sqeuclidean", "cosine" and "correlation", with a recall of at least 0.98 as measured on
    some of the points; exact otherwise.

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
        return nearest_of_graph(X.tocsr(), n_neighbors)
    X = _squarable(X)
    n_samples = X.shape[0]
    name = _euclidean_name(X, metric, metric_params)
    if name and n_samples > _MAX_EXACT:
        indices, distances = _approximate(X, n_neighbors, name, workers)
    else:
        indices, distances = _exact(X, n_neighbors, metric, metric_params, workers)
    indptr = np.arange(n_samples + 1) * n_neighbors
    return scipy.sparse.csr_matrix((_defined(distances).ravel(), indices.ravel(), indptr), (n_samples, n_samples))


def _exact(
    X: Any, n_neighbors: int, metric: Any, metric_params: dict[str, Any] | None, workers: Workers
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Indices and distances by scikit-learn, in blocks that do not depend on the number of threads, as bits would."""
    n_samples = X.shape[0]
    index = _index(X, n_neighbors + 1, metric, metric_params)
    indices = np.empty((n_samples, n_neighbors), np.int64)
    distances = np.empty((n_samples, n_neighbors), np.float64)
    size = min(max((_WORKING_MEMORY << 20) // (8 * n_samples), 1), _BATCH)

    def search_blocks(start: int, stop: int) -> None:
        for rows in gen_batches(min(stop * size, n_samples) - start * size, size):
            here = slice(start * size + rows.start, start * size + rows.stop)
            with config_context(**_CONFIG):
                far, found = index.kneighbors(X[here])
            others = _without(found, np.arange(here.start, here.stop))
            indices[here], distances[here] = (
                found[others].reshape(-1, n_neighbors),
                far[others].reshape(-1, n_neighbors),
            )

    n_blocks = -(-n_samples // size)
    workers.rows(search_blocks, n_blocks, work=float(n_samples) * n_samples * X.shape[1], alignment=1)
    return indices, distances


def _index(X: Any, n_neighbors: int, metric: Any, metric_params: dict[str, Any] | None) -> NearestNeighbors:
    metric, params = validated_metric(X, metric, metric_params)
    options = {"metric": metric, "metric_params": params, "n_jobs": 1}
    if isinstance(metric, str) and "p" in params:  # of which scikit-learn has two, and warns
        options |= {"p": params["p"], "metric_params": {name: params[name] for name in params if name != "p"}}
    return NearestNeighbors(n_neighbors=n_neighbors, **options).fit(X)


def _without(found: NDArray[Any], own: NDArray[Any]) -> NDArray[np.bool_]:
    """Where in each row of neighbours is not its own point; without the last where that was not found."""
    others = np.asarray(found != own[:, None])
    others[others.all(axis=1), -1] = False  # there are many duplicates
    return others


def _approximate(X: NDArray[Any], n_neighbors: int, metric: str, workers: Workers) -> tuple[NDArray[Any], NDArray[Any]]:
    """Indices and distances by a search in Euclidean distances."""
    X = _as_euclidean(X, metric)
    indices, distances = IVFIndex(X, workers).neighbors(n_neighbors, workers)
    return indices, _from_euclidean(distances, metric)


def _as_euclidean(X: NDArray[Any], metric: str) -> NDArray[Any]:
    """Points whose Euclidean distances tell those of X in the metric."""
    if metric == "correlation":
        X = X - X.mean(axis=1, keepdims=True)
    if metric in ("cosine", "correlation"):
        lengths = np.linalg.norm(X, axis=1, keepdims=True)
        X = np.divide(X, lengths, out=np.zeros_like(X), where=lengths > 0)
    return X


def _from_euclidean(distances: NDArray[Any], metric: str) -> NDArray[Any]:
    if metric in ("cosine", "correlation"):
        return np.asarray(distances**2 / 2)
    # Squares of single precision overflow from 1e19 on.
    return np.square(distances, dtype=np.float64) if metric == "sqeuclidean" else distances


class NeighborIndex:
    """Search for the nearest of some points to new ones; what is found for one does not depend on the others.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        The points among which neighbours are found.
    metric, metric_params
        As in :func:`neighbor_distances`; not "precomputed".
    n_neighbors : int
        Number of neighbours.
    workers : Workers
        Threads.
    """

    def __init__(
        self, X: Any, *, metric: Any, metric_params: dict[str, Any] | None, n_neighbors: int, workers: Workers
    ) -> None:
        self.n_neighbors = n_neighbors
        X = _squarable(X)
        self._metric = _euclidean_name(X, metric, metric_params)
        self._probes: tuple[NDArray[Any], NDArray[Any]] | None = None
        self._index: Any
        if self._metric:
            self._index = IVFIndex(_as_euclidean(X, self._metric), workers)
            if X.shape[0] > _MAX_EXACT:
                self._probes = self._index.probes(n_neighbors, workers)
        else:
            self._index = _index(X, n_neighbors, metric, metric_params)

    @property
    def is_euclidean(self) -> bool:
        """Whether the search is by the IVF index of Euclidean distances, not by scikit-learn."""
        return self._metric is not None

    def search(self, X: Any, workers: Workers) -> tuple[NDArray[Any], NDArray[Any]]:
        """Indices and distances of the neighbours of every row of X, nearest first."""
        X = _in_double(X)  # all of them: a row must not depend on how large the others are
        if self._metric:
            found = self._index.search(_as_euclidean(X, self._metric), self.n_neighbors, workers, self._probes)
            indices, distances = found[0], _from_euclidean(found[1], self._metric)
        else:
            # One by one: products of matrices have other bits for other numbers of rows.
            with config_context(**_CONFIG):
                parts = [self._index.kneighbors(X[i : i + 1]) for i in range(X.shape[0])]
            distances, indices = (np.concatenate(part) for part in zip(*parts, strict=True))
        distances = _defined(distances)
        order = np.argsort(distances, axis=1, kind="stable")
        return np.take_along_axis(indices, order, axis=1), np.take_along_axis(distances, order, axis=1)


def row_batches(X: Any) -> Iterable[slice]:
    """Rows that are handled together, fewer of them where there are many features."""
    return gen_batches(X.shape[0], int(np.clip(_VALUES // max(X.shape[1], 1), *_ROWS)))  # type: ignore[no-any-return]


def _euclidean_name(X: Any, metric: Any, metric_params: dict[str, Any] | None) -> str | None:
    """Name of the metric where it is a Euclidean distance of something, and X dense."""
    if not isinstance(metric, str) or metric_params or scipy.sparse.issparse(X):
        return None
    return _EUCLIDEAN.get(metric)


def neighbor_graph(indices: Any, distances: Any) -> Any:
    """Neighbours given as two arrays, as a graph.

    Parameters
    ----------
    indices : integer array of shape (n_samples, n_neighbors)
        Neighbours of each point; the point itself may be among them. A negative index is none.
    distances : array of the same shape

    Examples
    --------
    >>> from laptsne.graph.neighbors import neighbor_graph
    >>> neighbor_graph([[1], [0]], [[2.0], [2.0]]).toarray()
    array([[0., 2.],
           [2., 0.]])
    """
    indices, distances = np.asarray(indices), np.asarray(distances)
    if indices.ndim != 2 or indices.shape != distances.shape or not np.issubdtype(indices.dtype, np.integer):
        raise ValueError(
            "X=(indices, distances) needs two arrays of one shape (n_samples, n_neighbors), the first of integers; got "
            f"{indices.dtype} of shape {indices.shape} and {distances.dtype} of shape {distances.shape}."
        )
    if not np.isfinite(distances).all() or distances.min(initial=0) < 0:
        raise ValueError("X=(indices, distances): distances must be finite and at least 0.")
    n_samples = len(indices)
    if indices.max(initial=0) >= n_samples:
        raise ValueError(
            f"X=(indices, distances): index {indices.max()} is out of range for {n_samples} samples, one a row."
        )
    present = indices >= 0
    indptr = np.append(0, np.cumsum(present.sum(axis=1)))
    return scipy.sparse.csr_matrix((distances[present], indices[present], indptr), (n_samples, n_samples))


def all_distances(X: Any, *, metric: Any, metric_params: dict[str, Any] | None) -> NDArray[Any]:
    """Distances of all pairs as a dense single-precision matrix, every row in units of its largest.

    In these units nothing overflows, and affinities do not depend on the unit of a row.
    """
    n_samples = X.shape[0]
    distances = np.empty((n_samples, n_samples), dtype=np.float32)
    start = 0
    # Block by block, since scikit-learn returns double precision, and the whole of that would be twice as large.
    for found in _distance_blocks(X, metric, metric_params):
        block = _defined(found)
        largest = block.max(axis=1, keepdims=True)
        distances[start : start + len(block)] = np.divide(
            block, largest, out=np.zeros_like(block, dtype=np.float64), where=largest > 0
        )
        start += len(block)
    return distances


def _distance_blocks(X: Any, metric: Any, metric_params: dict[str, Any] | None) -> Iterable[NDArray[Any]]:
    if not (isinstance(metric, str) and metric == "precomputed"):
        metric, metric_params = validated_metric(X, metric, metric_params)
        options = {"metric": metric, "n_jobs": 1, "working_memory": _WORKING_MEMORY}
        return pairwise_distances_chunked(_squarable(X), **options, **metric_params)  # type: ignore[no-any-return]
    if scipy.sparse.issparse(X):
        raise ValueError(
            "n_neighbors='all' needs all distances, but X is a sparse neighbour graph; "
            "give a dense matrix of distances, or n_neighbors='auto'."
        )
    return (X[rows] for rows in gen_batches(X.shape[0], _BATCH))


def _defined(distances: NDArray[Any]) -> NDArray[Any]:
    """Distances, where those that a metric leaves undefined, as x / 0, are as long as the longest of their row."""
    undefined = ~np.isfinite(distances)
    if not undefined.any():
        return distances
    longest = np.where(undefined, 0, distances).max(axis=1, keepdims=True)
    return np.where(undefined, np.where(longest > 0, longest, 1), distances)


def _squarable(X: Any) -> Any:
    """Return X in a precision in which the squares of its values neither overflow nor vanish."""
    largest = float(max(X.max(), -X.min()))  # without a copy of X
    return X if 1e-15 < largest < 1e15 else _in_double(X)


def _in_double(X: Any) -> Any:
    """Return X in double precision; refuse what overflows even there."""
    largest = float(max(X.max(), -X.min()))  # without a copy of X
    if largest > 1e150:
        raise ValueError(
            f"X has values up to {largest:.2g}, whose distances overflow. "
            "Scale X down, for instance with sklearn.preprocessing.StandardScaler."
        )
    return X.astype(np.float64)


def nearest_of_graph(graph: Any, n_neighbors: int) -> Any:
    """Cut a neighbour graph to at most ``n_neighbors`` a row, without the diagonal."""
    row = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    others = np.flatnonzero(graph.indices != row)
    order = others[np.lexsort((graph.data[others], row[others]))]
    row = row[order]
    rank = np.arange(row.size) - np.searchsorted(row, row)
    order, row = order[rank < n_neighbors], row[rank < n_neighbors]
    indptr = np.append(0, np.cumsum(np.bincount(row, minlength=graph.shape[0])))
    return scipy.sparse.csr_matrix((graph.data[order], graph.indices[order], indptr), graph.shape)
