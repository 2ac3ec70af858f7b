"""Nearest neighbours of points: exact, approximate and along paths of a graph, an index and a transformer."""

import heapq
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import gen_batches
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_is_fitted, validate_data

from laptsne._runtime.compiled import compiled
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.graph.distances import (
    ROUNDED,
    ROWS_PER_BLOCK,
    WORKING_MEMORY_MIB,
    as_euclidean,
    canonical,
    defined,
    euclidean_name,
    from_euclidean,
    in_double,
    squarable,
    squaring_power,
    validated_metric,
    warn_if_lost,
    warn_if_rounded,
    well_conditioned,
)
from laptsne.graph.ivf import IVFIndex, exact_neighbors

MAX_EXACT_NEIGHBORS = 10_000  # points beyond which approximate neighbours are faster (benchmarks/by_hand.py)
# Dissimilarities without the triangle inequality, which scikit-learn's trees rely on; functions may lack it as well.
_NO_METRICS = {"braycurtis", "dice", "russellrao"}
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
    X = canonical(X)
    if isinstance(metric, str) and metric == "precomputed" and scipy.sparse.issparse(X):
        return nearest_of_graph(X, n_neighbors)
    X = squarable(X)
    n_samples = X.shape[0]
    name = euclidean_name(X, metric, metric_params)
    if name:
        warn_if_rounded(X)
    if name and n_samples > MAX_EXACT_NEIGHBORS:
        points, undirected = as_euclidean(X, name)
        indices, distances = IVFIndex(points, workers).neighbors(n_neighbors, workers)
        distances = from_euclidean(distances, name, undirected)
    else:
        indices, distances = _exact(X, n_neighbors, metric, metric_params, workers)
    indptr = np.arange(n_samples + 1) * n_neighbors
    distances = defined(distances, metric).ravel()
    return scipy.sparse.csr_matrix((distances, indices.ravel(), indptr), (n_samples, n_samples))


def _exact(
    X: Any, n_neighbors: int, metric: Any, metric_params: dict[str, Any] | None, workers: Workers
) -> tuple[Array, Array]:
    """Return neighbours by scikit-learn, in blocks that do not depend on the number of threads, as bits would."""
    n_samples = X.shape[0]
    power = squaring_power(metric, metric_params)
    X = well_conditioned(X, metric, power)
    index = _index(X, n_neighbors + 1, metric, metric_params)
    is_expanded = power and index._fit_method == "brute"
    n_lost = []
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
            if is_expanded:
                n_lost.append(_refine(X, rows, power, indices[rows], distances[rows]))

    work = float(n_samples) * n_samples * X.shape[1]
    _pool(metric, workers).rows(search_blocks, -(-n_samples // size), work=work, alignment=1)
    warn_if_lost(sum(n_lost))
    return indices, distances


def _refine(X: Any, rows: slice, power: int, indices: Array, distances: Array) -> int:
    """Compute distances that rounding may have changed again by differences, in place.

    If these are the distances to all neighbours of a row, its neighbours are searched again; this is not done for
    sparse X. Returns the number of rows for which that would have been necessary.
    """
    n_neighbors = indices.shape[1]
    rounded = distances**power < ROUNDED * row_norms(X[rows], squared=True)[:, None]
    for e in np.flatnonzero(rounded.any(axis=0)):
        row = np.flatnonzero(rounded[:, e])
        difference = X[rows.start + row].astype(np.float64) - X[indices[row, e]]
        distances[row, e] = row_norms(difference, squared=True) ** (1 / power)
    lost = np.flatnonzero(rounded[:, -1] & (distances[:, -1] > 0))
    if scipy.sparse.issparse(X) or lost.size == 0:
        return int(lost.size)
    found, squared = exact_neighbors(X[rows.start + lost], [X.T], n_neighbors + 1, Workers(1))
    others = _without(found, rows.start + lost)
    indices[lost] = found[others].reshape(-1, n_neighbors)
    distances[lost] = squared[others].reshape(-1, n_neighbors) ** (1 / power)
    return 0


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


class NeighborIndex:
    """Index of points for nearest-neighbour queries; the result of a query does not depend on the other queries.

    X, metric and metric_params are those of :func:`neighbor_distances`, but not "precomputed".
    """

    def __init__(
        self, X: Any, *, metric: Any, metric_params: dict[str, Any] | None, n_neighbors: int, workers: Workers
    ) -> None:
        self.n_neighbors = n_neighbors
        X = squarable(canonical(X))
        self._metric = euclidean_name(X, metric, metric_params)
        self._n_probes: int | None = None
        self._index: Any
        if self._metric:
            points, _ = as_euclidean(X, self._metric)
            self._n_dims = points.shape[1]
            self._index = IVFIndex(points, workers)
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
        X = in_double(canonical(X))  # always: the precision of a row must not depend on the other rows
        if self._metric:
            points, undirected = as_euclidean(X, self._metric, n_features=self._n_dims)
            indices, distances = self._index.search(points, self.n_neighbors, workers, self._n_probes)
            distances = from_euclidean(distances, self._metric, undirected)
        else:
            indices, distances = self._search_blocks(X, workers)
        distances = defined(distances)
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


def neighbor_graph(indices: Any, distances: Any) -> Any:
    """Return the graph of neighbours given as two arrays of shape (n_samples, n_neighbors).

    The neighbours of a point may include itself; a negative index is none.
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


def nearest_in_rows(distances: Any, n_neighbors: int) -> tuple[Array, Array]:
    """Return indices and distances of the nearest entries of each row of a sparse matrix, nearest first.

    The rows of ``distances`` are new points, its columns samples; a stored zero is the distance of an equal sample. The
    results have the shape (n_new, n_neighbors).
    """
    distances = canonical(distances).sorted_indices()
    counts = np.diff(distances.indptr)
    if counts.min(initial=n_neighbors) < n_neighbors:
        row = int(np.argmax(counts < n_neighbors))
        raise ValueError(
            f"X has {counts[row]} distances in row {row}, but {n_neighbors} are needed. Store the distances of every "
            f"new point to its {n_neighbors} nearest training samples or more, or give a dense matrix of all distances."
        )
    order = np.lexsort((distances.data, np.repeat(np.arange(counts.size), counts)))
    nearest = order[distances.indptr[:-1, None] + np.arange(n_neighbors)]
    return distances.indices[nearest], distances.data[nearest]


class KNeighborsTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Graph of distances to nearest neighbours, found in the same way as for a map.

    Neighbours of more than 10,000 points with dense features are approximate for Euclidean, cosine and correlation
    distances, with a recall of at least 0.98 as estimated on a sample, and exact otherwise. The result is the same for
    any number of threads. The interface is that of ``sklearn.neighbors.KNeighborsTransformer``.

    Parameters
    ----------
    n_neighbors : int, default=15
        Number of neighbours, not counting the point itself.
    metric : str or callable, default="euclidean"
        Any metric of scikit-learn's nearest neighbours.
    metric_params : dict, optional
        Further arguments of the metric.
    n_jobs : int, optional
        Number of threads. By default, all cores available to the process.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    n_samples_fit_ : int
        Number of points.

    Examples
    --------
    >>> import numpy as np
    >>> from laptsne.graph.neighbors import KNeighborsTransformer
    >>> graph = KNeighborsTransformer(n_neighbors=3).fit_transform(np.random.default_rng(0).normal(size=(50, 4)))
    >>> graph.shape, graph.nnz  # each point is stored as its own first neighbour
    ((50, 50), 200)
    """

    def __init__(
        self,
        n_neighbors: int = 15,
        *,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.metric_params = metric_params
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Store the points among which neighbours are searched, an array or sparse matrix."""
        self._X = self._validated(X, reset=True)
        self.n_samples_fit_ = self._X.shape[0]
        if not 1 <= self.n_neighbors < self.n_samples_fit_:
            raise ValueError(
                f"n_neighbors={self.n_neighbors} is out of range for {self.n_samples_fit_} samples; "
                f"give a number from 1 to {self.n_samples_fit_ - 1}."
            )
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Return the graph of the points as a CSR matrix, with each point as its own first neighbour."""
        X = self.fit(X)._X
        options = {"metric": self.metric, "metric_params": self.metric_params}
        with Workers(self.n_jobs) as workers:
            graph = neighbor_distances(X, self.n_neighbors, workers=workers, **options)
        shape = (self.n_samples_fit_, self.n_neighbors)
        indices, distances = graph.indices.reshape(shape), graph.data.reshape(shape)
        order = np.argsort(distances, axis=1, kind="stable")
        indices, distances = np.take_along_axis(indices, order, axis=1), np.take_along_axis(distances, order, axis=1)
        itself = np.arange(self.n_samples_fit_)[:, None]
        return self._graph(np.hstack([itself, indices]), np.hstack([np.zeros(itself.shape), distances]))

    def transform(self, X: Any) -> Any:
        """Return the distances of new points to their ``n_neighbors + 1`` nearest points as a CSR matrix."""
        check_is_fitted(self, "n_samples_fit_")
        X = self._validated(X, reset=False)
        options = {"metric": self.metric, "metric_params": self.metric_params}
        with Workers(self.n_jobs) as workers:
            index = NeighborIndex(self._X, n_neighbors=self.n_neighbors + 1, workers=workers, **options)
            return self._graph(*index.search(X, workers))

    def _validated(self, X: Any, *, reset: bool) -> Any:
        return validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32), reset=reset)

    def _graph(self, indices: Any, distances: Any) -> Any:
        values, indptr = distances.astype(np.float64).ravel(), np.arange(len(indices) + 1) * indices.shape[1]
        return scipy.sparse.csr_matrix((values, indices.ravel(), indptr), (len(indices), self.n_samples_fit_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


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
