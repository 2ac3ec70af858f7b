"""Nearest neighbours of points and their distances: metrics, exact and approximate search, and a transformer."""

import math
from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.metrics import pairwise_distances_chunked
from sklearn.neighbors import VALID_METRICS, VALID_METRICS_SPARSE, NearestNeighbors
from sklearn.utils import gen_batches
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_is_fitted, validate_data

from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne._runtime.warn import warn
from laptsne.graph.ivf import IVFIndex, exact_neighbors

PAIRWISE_METRICS = ("precomputed", "affinities")
# Metrics of scikit-learn's trees that its pairwise distances do not have.
_TREES_ONLY = {"infinity", "p", "pyfunc", "sokalmichener"}
METRICS = {*VALID_METRICS["brute"], *VALID_METRICS["ball_tree"], *VALID_METRICS["kd_tree"]} - _TREES_ONLY
_TAKEN = {"minkowski": {"p", "w"}, "seuclidean": {"V"}, "mahalanobis": {"V", "VI"}}
MAX_EXACT_NEIGHBORS = 10_000  # points beyond which approximate neighbours are faster (benchmarks/neighbors.py)
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
# Offset of the data, in units of their spread, up to which |x|^2 - 2xy + |y|^2 is accurate and nothing is gained by
# centring: its rounding errors relative to squared distances are about 1e-16 times the square of this.
_MAX_OFFSET = 1e3
# Squared distances, in units of |x|^2, below which the rounding errors of this formula count.
_ROUNDED = 1e4 * float(np.finfo(np.float64).eps)
_MAX_STEP = 0.01  # precision of the values of X, in units of their spread, beyond which there is a warning


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
    X = _squarable(X)
    n_samples = X.shape[0]
    name = _euclidean_name(X, metric, metric_params)
    if name:
        _warn_if_rounded(X)
    if name and n_samples > MAX_EXACT_NEIGHBORS:
        points, undirected = _as_euclidean(X, name)
        indices, distances = IVFIndex(points, workers).neighbors(n_neighbors, workers)
        distances = _from_euclidean(distances, name, undirected)
    else:
        indices, distances = _exact(X, n_neighbors, metric, metric_params, workers)
    indptr = np.arange(n_samples + 1) * n_neighbors
    distances = _defined(distances, metric).ravel()
    return scipy.sparse.csr_matrix((distances, indices.ravel(), indptr), (n_samples, n_samples))


def canonical(X: Any) -> Any:
    """Return X with repeated entries summed if it is sparse; the matrix of the caller does not change."""
    if not scipy.sparse.issparse(X):
        return X
    X = X.tocsr()
    if X.has_canonical_format:
        return X
    summed = X.copy()
    summed.sum_duplicates()
    return summed if summed.nnz < X.nnz else X


def _exact(
    X: Any, n_neighbors: int, metric: Any, metric_params: dict[str, Any] | None, workers: Workers
) -> tuple[Array, Array]:
    """Return neighbours by scikit-learn, in blocks that do not depend on the number of threads, as bits would."""
    n_samples = X.shape[0]
    power = _power(metric, metric_params)
    X = _well_conditioned(X, metric, power)
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
    _warn_if_lost(sum(n_lost))
    return indices, distances


def _power(metric: Any, metric_params: dict[str, Any] | None) -> int:
    """Return the power of a distance that is the squared Euclidean one, which scikit-learn expands; 0 for none."""
    name = EUCLIDEAN_METRICS.get(metric) if isinstance(metric, str) and not metric_params else None
    return {"euclidean": 2, "sqeuclidean": 1}.get(name or "", 0)


def _well_conditioned(X: Any, metric: Any, power: int) -> Any:
    """Return dense X without what scikit-learn's rounding depends on: large offsets, and noise in constant rows."""
    if scipy.sparse.issparse(X):
        return X
    if isinstance(metric, str) and metric == "correlation":
        undirected = _lengths(X, metric)[1]
        return np.where(undirected[:, None], X.dtype.type(0), X) if undirected.any() else X
    if not power:
        return X
    # Relative to the median, since an outlier does not move it.
    centre = np.median(X, axis=0).astype(np.float64)
    spread = float(np.median(row_norms(X - centre)))
    return X - centre if np.linalg.norm(centre) > _MAX_OFFSET * spread else X


def _refine(X: Any, rows: slice, power: int, indices: Array, distances: Array) -> int:
    """Compute distances that rounding may have changed again by differences, in place.

    If these are the distances to all neighbours of a row, its neighbours are searched again; this is not done for
    sparse X. Returns the number of rows for which that would have been necessary.
    """
    n_neighbors = indices.shape[1]
    rounded = distances**power < _ROUNDED * row_norms(X[rows], squared=True)[:, None]
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


def _warn_if_lost(n_rows: int) -> None:
    if n_rows:
        warn(
            f"the distances of {n_rows} rows of the sparse X to their neighbours are lost in rounding: its values are "
            "millions of times larger than these distances. Scale its columns, or give X as a dense array."
        )


def _warn_if_rounded(X: Array) -> None:
    """Warn if the values of dense X are so far from zero that their own precision is less than their spread."""
    sample = X[:: max(1, len(X) // MAX_EXACT_NEIGHBORS)]
    spread = sample.std(axis=0, dtype=np.float64)
    step = np.spacing(np.abs(sample).max(axis=0)).astype(np.float64)
    column = int(np.argmax(np.where(spread > 0, step, 0)))
    if step[column] > _MAX_STEP * np.sqrt(np.mean(spread**2)) > 0:
        warn(
            f"X is rounded to multiples of {step[column]:.2g} in column {column}, whose values are up to "
            f"{np.abs(sample[:, column]).max():.2g} in {X.dtype}; neighbours are those of the rounded values. Subtract "
            "the offset from X in double precision first."
        )


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


def _lengths(X: Array, metric: str) -> tuple[Array, NDArray[np.bool_]]:
    """Return the lengths of the rows, shape (n, 1), and which have no direction: those that are zero or constant."""
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    if metric != "correlation":
        return lengths, (lengths == 0).ravel()
    centred = np.linalg.norm(X - X.mean(axis=1, keepdims=True), axis=1, keepdims=True)
    return centred, (centred <= 4 * np.finfo(X.dtype).eps * lengths).ravel()


def _as_euclidean(X: Array, metric: str, *, n_features: int | None = None) -> tuple[Array, NDArray[np.bool_]]:
    """Return points whose Euclidean distances determine those of X in the metric, and the rows without a direction.

    A row without a direction is at a distance of 1 from all others. It gets one of its own, in one more dimension: if
    there are any or, for new points, if those of the data have ``n_features``, which are one more than X has.
    """
    if metric not in ("cosine", "correlation"):
        return X, np.zeros(len(X), np.bool_)
    lengths, undirected = _lengths(X, metric)
    points = X - X.mean(axis=1, keepdims=True) if metric == "correlation" else X
    points = np.divide(points, lengths, out=np.zeros_like(points), where=~undirected[:, None])
    if undirected.any() if n_features is None else n_features > X.shape[1]:
        points = np.column_stack([points, undirected.astype(points.dtype)])
    return points, undirected


def _from_euclidean(distances: Array, metric: str, undirected: NDArray[np.bool_]) -> Array:
    if metric in ("cosine", "correlation"):
        return np.where(undirected[:, None], distances.dtype.type(1), distances**2 / 2)
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
        X = _squarable(canonical(X))
        self._metric = _euclidean_name(X, metric, metric_params)
        self._n_probes: int | None = None
        self._index: Any
        if self._metric:
            points, _ = _as_euclidean(X, self._metric)
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
        X = _in_double(canonical(X))  # always: the precision of a row must not depend on the other rows
        if self._metric:
            points, undirected = _as_euclidean(X, self._metric, n_features=self._n_dims)
            indices, distances = self._index.search(points, self.n_neighbors, workers, self._n_probes)
            distances = _from_euclidean(distances, self._metric, undirected)
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
    start = n_lost = 0
    power = _power(metric, metric_params)
    X = _well_conditioned(_squarable(canonical(X)), metric, power)
    # In blocks: scikit-learn computes in double precision, which would take twice the memory.
    for found in _distance_blocks(X, metric, metric_params):
        if power:
            n_lost += _refine_all(X, start, power, found)
        block = _defined(found, metric)
        largest = block.max(axis=1, keepdims=True)
        distances[start : start + len(block)] = np.divide(
            block, largest, out=np.zeros_like(block, dtype=np.float64), where=largest > 0
        )
        start += len(block)
    _warn_if_lost(n_lost)
    return distances


def _refine_all(X: Any, start: int, power: int, distances: Array) -> int:
    """Compute the distances of rows of X to all others again by differences if rounding may have changed some.

    The first row is ``start``. Returns the number of rows for which this was necessary but X is sparse.
    """
    squares = row_norms(X[start : start + len(distances)], squared=True)[:, None]
    rounded = distances**power < _ROUNDED * squares
    rounded.flat[start :: X.shape[0] + 1] = False  # the diagonal
    rows = np.flatnonzero(rounded.any(axis=1))
    if not scipy.sparse.issparse(X) and rows.size:
        distances[rows] = cdist(X[start + rows], X, "sqeuclidean") ** (1 / power)
        return 0
    return int(rows.size)


def _distance_blocks(X: Any, metric: Any, metric_params: dict[str, Any] | None) -> Iterable[Array]:
    if not (isinstance(metric, str) and metric == "precomputed"):
        metric, metric_params = validated_metric(X, metric, metric_params)
        options = {"metric": metric, "n_jobs": 1, "working_memory": WORKING_MEMORY_MIB}
        return pairwise_distances_chunked(_squarable(canonical(X)), **options, **metric_params)  # type: ignore[no-any-return]
    if scipy.sparse.issparse(X):
        raise ValueError(
            "n_neighbors='all' needs all distances, but X is a sparse neighbour graph; "
            "give a dense matrix of distances, or n_neighbors='auto'."
        )
    return (X[rows] for rows in gen_batches(X.shape[0], ROWS_PER_BLOCK))


def _defined(distances: Array, metric: Any = None) -> Array:
    """Replace distances that a metric leaves undefined, like x / 0, by the longest of their row; correlations by 1."""
    undefined = ~np.isfinite(distances)
    if not undefined.any():
        return distances
    if isinstance(metric, str) and metric == "correlation":
        return np.where(undefined, 1, distances)
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
    values = X.data if scipy.sparse.issparse(X) else X  # the maximum of a sparse matrix sorts its entries in place
    return float(max(values.max(initial=0), -values.min(initial=0)))  # unlike abs(X).max(), without a copy of X


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


def is_pairwise(metric: Any) -> bool:
    """Whether X has one column per sample with this metric."""
    return isinstance(metric, str) and metric in PAIRWISE_METRICS


def validated_metric(X: Any, metric: Any, metric_params: dict[str, Any] | None) -> tuple[Any, dict[str, Any]]:
    """Return the metric and its parameters as scikit-learn takes them for features X.

    By default "seuclidean" gets the variances of the features, and "mahalanobis" the inverse of their covariance.
    Raise ValueError if the metric does not support such features or a parameter is invalid; a function raises it when
    it first returns something that is not a distance.

    Examples
    --------
    >>> import numpy as np
    >>> from laptsne.graph.neighbors import validated_metric
    >>> validated_metric(np.array([[0.0, 1.0], [2.0, 1.0]]), "seuclidean", None)
    ('seuclidean', {'V': array([2., 1.])})
    """
    given = metric_params or {}
    if not isinstance(metric, str):
        return _Function(metric), given
    if scipy.sparse.issparse(X) and metric not in VALID_METRICS_SPARSE["brute"]:
        raise ValueError(
            f"metric={metric!r} does not support sparse features; give X as a dense array, or use one of "
            f"{sorted(set(VALID_METRICS_SPARSE['brute']) - {'precomputed'})}."
        )
    taken = _TAKEN.get(metric, set())
    if not set(given) <= taken:
        raise ValueError(
            f"metric_params has {sorted(set(given) - taken)}, but metric={metric!r} takes "
            f"{sorted(taken) or 'no parameters'}; leave it out, or give a function as metric."
        )
    if metric == "seuclidean":
        return metric, {"V": _variances(X, given)}
    if metric == "mahalanobis":
        return metric, {"VI": _inverse_covariance(X, given)}
    if "p" in given and not (isinstance(given["p"], Real) and float(given["p"]) > 0):
        raise ValueError(f"metric_params={{'p': {given['p']!r}}}: p must be a number above 0.")
    if "w" in given and (_array("w", given, X.shape[1:]) < 0).any():
        raise ValueError("metric_params={'w': ...}: weights must be at least 0.")
    return metric, given


class _Function:
    """A distance function of the user whose results are checked, since scikit-learn accepts any number."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, a: Any, b: Any, **params: Any) -> float:
        found = self._function(a, b, **params)
        try:
            distance = float(found)
        except (TypeError, ValueError):
            distance = math.nan
        if not 0 <= distance < math.inf:
            raise ValueError(
                f"metric={self._function!r} gave {found!r} as the distance of two rows of X; "
                "it must return finite numbers of at least 0."
            )
        return distance


def _array(name: str, given: dict[str, Any], shape: tuple[int, ...]) -> NDArray[np.float64]:
    try:
        array = np.asarray(given[name], dtype=np.float64)
        wrong = f"the shape is {array.shape}" if array.shape != shape else ""
    except (TypeError, ValueError):
        wrong = f"it is {given[name]!r}"
    if wrong or not np.isfinite(array).all():
        raise ValueError(
            f"metric_params={{{name!r}: ...}} must hold finite numbers in the shape {shape}, as X has {shape[0]} "
            f"features, but {wrong or 'some are not finite'}."
        )
    return array


def _variances(X: Any, given: dict[str, Any]) -> NDArray[np.float64]:
    if "V" not in given:
        found = np.var(X, axis=0, ddof=1, dtype=np.float64)
        return np.where(found > 0, found, 1.0)  # constant features add nothing to a distance
    V = _array("V", given, X.shape[1:])
    if (V <= 0).any():
        raise ValueError("metric_params={'V': ...}: variances must be above 0.")
    return V


def _inverse_covariance(X: Any, given: dict[str, Any]) -> NDArray[np.float64]:
    square = (X.shape[1], X.shape[1])
    if "VI" in given:
        VI = _array("VI", given, square)
        eigenvalues = np.linalg.eigvalsh((VI + VI.T) / 2)
        if eigenvalues[0] < -1e-9 * abs(eigenvalues).max():
            raise ValueError(
                "metric_params={'VI': ...} must be positive semidefinite, but its smallest "
                f"eigenvalue is {eigenvalues[0]:.3g}."
            )
        return VI
    covariance = _array("V", given, square) if "V" in given else np.atleast_2d(np.cov(X.T))
    if not np.isfinite(covariance).all() or np.linalg.matrix_rank(covariance, hermitian=True) < len(covariance):
        raise ValueError(
            f"metric='mahalanobis' needs the inverse of the covariance of {X.shape[1]} features, which has none: "
            "some are constant or linearly dependent. Drop these, reduce X by PCA, or give metric_params={'VI': ...}."
        )
    return np.asarray(np.linalg.inv(covariance))


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
