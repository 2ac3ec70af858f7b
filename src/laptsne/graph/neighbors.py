"""Nearest neighbours of points, and their distances."""

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
from laptsne._runtime.typing import Array
from laptsne.graph.ivf import IVFIndex
from laptsne.graph.metric_params import validated_metric

MAX_EXACT_NEIGHBORS = 10_000  # points beyond which approximate neighbours are faster (benchmarks/by_hand.py)
# Metrics that are, or follow from, Euclidean distances.
EUCLIDEAN_METRICS = {m: m for m in ("euclidean", "sqeuclidean", "cosine", "correlation")} | {"l2": "euclidean"}
# Dissimilarities without the triangle inequality, which scikit-learn's trees rely on; functions may lack it as well.
_NO_METRICS = {"braycurtis", "dice", "russellrao"}
WORKING_MEMORY_MIB = 64  # of a block of distances
ROWS_PER_BLOCK = 1024  # at most
_QUERIES_PER_BLOCK = 64  # at most; few, since a block of new points is padded
# scikit-learn's global configuration must not change the bits of a result.
_CONFIG = {"working_memory": 1024, "enable_cython_pairwise_dist": True, "pairwise_dist_chunk_size": 256}
_MIN_BATCH, _MAX_BATCH, _BATCH_VALUES = 1 << 8, 1 << 16, 1 << 22  # rows, rows and values of a batch of new points


def neighbor_distances(
    X: Any, n_neighbors: int, *, metric: Any, metric_params: dict[str, Any] | None, workers: Workers
) -> Any:
    """Return the graph of distances to the nearest neighbours as a CSR matrix; no point is its own neighbour.

    Neighbours of more than 10,000 points with dense features are approximate for "euclidean", "sqeuclidean", "cosine"
    and "correlation", with a recall of at least 0.98 as estimated on a sample; otherwise they are exact. A stored zero
    is the distance of a duplicate.

    With ``metric="precomputed"``, X has distances of shape (n_samples, n_samples); if sparse, it is a neighbour graph
    that may have any number of neighbours per row, of which at most ``n_neighbors`` are kept.
    """
    if isinstance(metric, str) and metric == "precomputed" and scipy.sparse.issparse(X):
        return nearest_of_graph(X.tocsr(), n_neighbors)
    X = _squarable(X)
    n_samples = X.shape[0]
    name = _euclidean_name(X, metric, metric_params)
    if name and n_samples > MAX_EXACT_NEIGHBORS:
        indices, distances = IVFIndex(_as_euclidean(X, name), workers).neighbors(n_neighbors, workers)
        distances = _from_euclidean(distances, name)
    else:
        indices, distances = _exact(X, n_neighbors, metric, metric_params, workers)
    indptr = np.arange(n_samples + 1) * n_neighbors
    return scipy.sparse.csr_matrix((_defined(distances).ravel(), indices.ravel(), indptr), (n_samples, n_samples))


def _exact(
    X: Any, n_neighbors: int, metric: Any, metric_params: dict[str, Any] | None, workers: Workers
) -> tuple[Array, Array]:
    """Return neighbours by scikit-learn, in blocks that do not depend on the number of threads, as bits would."""
    n_samples = X.shape[0]
    index = _index(X, n_neighbors + 1, metric, metric_params)
    indices = np.empty((n_samples, n_neighbors), np.int64)
    distances = np.empty((n_samples, n_neighbors), np.float64)
    size = _block_size(n_samples, ROWS_PER_BLOCK)

    def search_blocks(start: int, stop: int) -> None:
        for first in range(start * size, min(stop * size, n_samples), size):
            rows = slice(first, min(first + size, n_samples))
            with config_context(**_CONFIG):
                far, found = index.kneighbors(X[rows])
            others = _without(found, np.arange(rows.start, rows.stop))
            indices[rows] = found[others].reshape(-1, n_neighbors)
            distances[rows] = far[others].reshape(-1, n_neighbors)

    work = float(n_samples) * n_samples * X.shape[1]
    _pool(metric, workers).rows(search_blocks, -(-n_samples // size), work=work, alignment=1)
    return indices, distances


def _pool(metric: Any, workers: Workers) -> Workers:
    """Return a pool for scikit-learn's searches: one thread for functions and metrics that are not thread-safe."""
    # Its Mahalanobis distance writes to a buffer that threads would share.
    return workers if isinstance(metric, str) and metric != "mahalanobis" else Workers(1)


def _block_size(n_samples: int, most: int) -> int:
    """Return the number of rows whose distances to all points fit into the working memory, at most ``most``."""
    return min(max((WORKING_MEMORY_MIB << 20) // (8 * n_samples), 1), most)


def _index(X: Any, n_neighbors: int, metric: Any, metric_params: dict[str, Any] | None) -> NearestNeighbors:
    metric, params = validated_metric(X, metric, metric_params)
    options = {"metric": metric, "metric_params": params, "n_jobs": 1}
    if not isinstance(metric, str) or metric in _NO_METRICS:
        options["algorithm"] = "brute"
    elif "p" in params:  # scikit-learn warns if it is among the metric_params
        options |= {"p": params["p"], "metric_params": {name: params[name] for name in params if name != "p"}}
    return NearestNeighbors(n_neighbors=n_neighbors, **options).fit(X)


def _without(found: Array, own: Array) -> NDArray[np.bool_]:
    """Return a mask of the neighbours that are not the point itself, or all but the last if it was not found."""
    others = np.asarray(found != own[:, None])
    others[others.all(axis=1), -1] = False  # duplicates took its place
    return others


def _as_euclidean(X: Array, metric: str) -> Array:
    """Return points whose Euclidean distances determine those of X in the metric."""
    if metric == "correlation":
        X = X - X.mean(axis=1, keepdims=True)
    if metric in ("cosine", "correlation"):
        lengths = np.linalg.norm(X, axis=1, keepdims=True)
        X = np.divide(X, lengths, out=np.zeros_like(X), where=lengths > 0)
    return X


def _from_euclidean(distances: Array, metric: str) -> Array:
    if metric in ("cosine", "correlation"):
        return np.asarray(distances**2 / 2)
    # Squares overflow in single precision from 1e19 on.
    return np.square(distances, dtype=np.float64) if metric == "sqeuclidean" else distances


class NeighborIndex:
    """Index of points for nearest-neighbour queries; the result of a query does not depend on the other queries.

    X, metric and metric_params are those of :func:`neighbor_distances`, but not "precomputed".
    """

    def __init__(
        self, X: Any, *, metric: Any, metric_params: dict[str, Any] | None, n_neighbors: int, workers: Workers
    ) -> None:
        self.n_neighbors = n_neighbors
        X = _squarable(X)
        self._metric = _euclidean_name(X, metric, metric_params)
        self._n_probes: int | None = None
        self._index: Any
        if self._metric:
            self._index = IVFIndex(_as_euclidean(X, self._metric), workers)
            if X.shape[0] > MAX_EXACT_NEIGHBORS:
                self._n_probes = self._index.n_probes(n_neighbors, workers)
        else:
            self._index = _index(X, n_neighbors, metric, metric_params)

    @property
    def is_euclidean(self) -> bool:
        """Whether the search is by the IVF index of Euclidean distances, not by scikit-learn."""
        return self._metric is not None

    def search(self, X: Any, workers: Workers) -> tuple[Array, Array]:
        """Return indices and distances of the neighbours of every row of X, nearest first."""
        X = _in_double(X)  # always: the precision of a row must not depend on the other rows
        if self._metric:
            found = self._index.search(_as_euclidean(X, self._metric), self.n_neighbors, workers, self._n_probes)
            indices, distances = found[0], _from_euclidean(found[1], self._metric)
        else:
            indices, distances = self._search_blocks(X, workers)
        distances = _defined(distances)
        order = np.argsort(distances, axis=1, kind="stable")
        return np.take_along_axis(indices, order, axis=1), np.take_along_axis(distances, order, axis=1)

    def _search_blocks(self, X: Any, workers: Workers) -> tuple[Array, Array]:
        """Search by scikit-learn in blocks of fixed size, since the bits of matrix products depend on their shape."""
        n_rows, n_samples = X.shape[0], self._index.n_samples_fit_
        indices = np.empty((n_rows, self.n_neighbors), np.int64)
        distances = np.empty((n_rows, self.n_neighbors), np.float64)
        size = _block_size(n_samples, _QUERIES_PER_BLOCK)
        is_function = callable(self._index.metric)  # slow, and applied to one pair at a time

        def search(start: int, stop: int) -> None:
            for first in range(start * size, min(stop * size, n_rows), size):
                last = min(first + size, n_rows)
                rows = np.arange(first, last if is_function else first + size)
                with config_context(**_CONFIG):
                    far, found = self._index.kneighbors(X[np.minimum(rows, n_rows - 1)])
                indices[first:last], distances[first:last] = found[: last - first], far[: last - first]

        work = float(n_rows) * n_samples * X.shape[1]
        _pool(self._index.metric, workers).rows(search, -(-n_rows // size), work=work, alignment=1)
        return indices, distances


def row_batches(X: Any) -> Iterable[slice]:
    """Yield slices of rows that are processed at once, fewer rows if there are many features."""
    return gen_batches(X.shape[0], int(np.clip(_BATCH_VALUES // max(X.shape[1], 1), _MIN_BATCH, _MAX_BATCH)))  # type: ignore[no-any-return]


def _euclidean_name(X: Any, metric: Any, metric_params: dict[str, Any] | None) -> str | None:
    """Return the name of the metric if the inverted file index supports it for X."""
    if not isinstance(metric, str) or metric_params or scipy.sparse.issparse(X):
        return None
    return EUCLIDEAN_METRICS.get(metric)


def neighbor_graph(indices: Any, distances: Any) -> Any:
    """Return the graph of neighbours given as two arrays of shape (n_samples, n_neighbors).

    The neighbours of a point may include itself; a negative index is none.

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
            "X=(indices, distances) must be two arrays of the same shape (n_samples, n_neighbors), the first of "
            f"integers; got {indices.dtype} of shape {indices.shape} and {distances.dtype} of shape {distances.shape}."
        )
    if not np.isfinite(distances).all() or distances.min(initial=0) < 0:
        raise ValueError("X=(indices, distances): distances must be finite and at least 0.")
    n_samples = len(indices)
    if indices.max(initial=0) >= n_samples:
        raise ValueError(
            f"X=(indices, distances): index {indices.max()} is out of range for {n_samples} samples, one per row."
        )
    present = indices >= 0
    indptr = np.append(0, np.cumsum(present.sum(axis=1)))
    return scipy.sparse.csr_matrix((distances[present], indices[present], indptr), (n_samples, n_samples))


def all_distances(X: Any, *, metric: Any, metric_params: dict[str, Any] | None) -> Array:
    """Return the distances of all pairs as a float32 array, each row in units of its largest.

    In these units nothing overflows, and the affinities of a row do not depend on its unit.
    """
    n_samples = X.shape[0]
    distances = np.empty((n_samples, n_samples), dtype=np.float32)
    start = 0
    # In blocks: scikit-learn computes in double precision, which would take twice the memory.
    for found in _distance_blocks(X, metric, metric_params):
        block = _defined(found)
        largest = block.max(axis=1, keepdims=True)
        distances[start : start + len(block)] = np.divide(
            block, largest, out=np.zeros_like(block, dtype=np.float64), where=largest > 0
        )
        start += len(block)
    return distances


def _distance_blocks(X: Any, metric: Any, metric_params: dict[str, Any] | None) -> Iterable[Array]:
    if not (isinstance(metric, str) and metric == "precomputed"):
        metric, metric_params = validated_metric(X, metric, metric_params)
        options = {"metric": metric, "n_jobs": 1, "working_memory": WORKING_MEMORY_MIB}
        return pairwise_distances_chunked(_squarable(X), **options, **metric_params)  # type: ignore[no-any-return]
    if scipy.sparse.issparse(X):
        raise ValueError(
            "n_neighbors='all' needs all distances, but X is a sparse neighbour graph; "
            "give a dense matrix of distances, or n_neighbors='auto'."
        )
    return (X[rows] for rows in gen_batches(X.shape[0], ROWS_PER_BLOCK))


def _defined(distances: Array) -> Array:
    """Replace distances that a metric leaves undefined, such as x / 0, by the longest of their row."""
    undefined = ~np.isfinite(distances)
    if not undefined.any():
        return distances
    longest = np.where(undefined, 0, distances).max(axis=1, keepdims=True)
    return np.where(undefined, np.where(longest > 0, longest, 1), distances)


def _squarable(X: Any) -> Any:
    """Return X in a precision in which the squares of its values neither overflow nor underflow."""
    return X if 1e-15 < _largest(X) < 1e15 else _in_double(X)


def _in_double(X: Any) -> Any:
    """Return X in double precision; raise ValueError if its distances overflow even there."""
    largest = _largest(X)
    if largest > 1e150:
        raise ValueError(
            f"X has values up to {largest:.2g}, whose distances overflow. "
            "Scale X down, for instance with sklearn.preprocessing.StandardScaler."
        )
    return X.astype(np.float64)


def _largest(X: Any) -> float:
    return float(max(X.max(), -X.min()))  # unlike abs(X).max(), without a copy of X


def nearest_of_graph(graph: Any, n_neighbors: int) -> Any:
    """Return a neighbour graph with the ``n_neighbors`` nearest in each row, without the diagonal."""
    row = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    others = np.flatnonzero(graph.indices != row)
    order = others[np.lexsort((graph.data[others], row[others]))]
    row = row[order]
    rank = np.arange(row.size) - np.searchsorted(row, row)
    order, row = order[rank < n_neighbors], row[rank < n_neighbors]
    indptr = np.append(0, np.cumsum(np.bincount(row, minlength=graph.shape[0])))
    return scipy.sparse.csr_matrix((graph.data[order], graph.indices[order], indptr), graph.shape)
