"""Nearest neighbours of points, exact and approximate."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from scipy.spatial.distance import cdist
from sklearn import config_context
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import gen_batches
from sklearn.utils.extmath import row_norms

from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne._runtime.warn import warn
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
    well_conditioned,
)
from laptsne.graph.ivf import IVFIndex
from laptsne.graph.paths import sparse_rows

MAX_EXACT_NEIGHBORS = 10_000  # points beyond which approximate neighbours are faster (benchmarks/by_hand.py)
# Dissimilarities without the triangle inequality, which scikit-learn's trees rely on; functions may lack it as well.
_NO_METRICS = {"braycurtis", "dice", "russellrao"}
_QUERIES_PER_BLOCK = 64  # at most; few, since a block of new points is padded
# scikit-learn's global configuration must not change the bits of a result.
_CONFIG = {"working_memory": 1024, "enable_cython_pairwise_dist": True, "pairwise_dist_chunk_size": 256}
_MIN_BATCH, _MAX_BATCH, _BATCH_VALUES = 1 << 8, 1 << 16, 1 << 22  # rows, rows and values of a batch of new points


def neighbor_distances(
    X: Any, n_neighbors: int, *, workers: Workers, metric: Any = "euclidean", metric_params: Any = None
) -> Any:
    """Return the graph of distances to the nearest neighbours as a CSR matrix; no point is its own neighbour.

    Those of more than 10,000 points with dense features are approximate for Euclidean, cosine and correlation metrics,
    with a recall of at least 0.98 as estimated on a sample. A stored zero is the distance of a duplicate. If X is a
    sparse, precomputed graph, at most ``n_neighbors`` per row are kept.
    """
    X = canonical(X)
    if isinstance(metric, str) and metric == "precomputed" and scipy.sparse.issparse(X):
        return nearest_of_graph(X, n_neighbors)
    X = squarable(X)
    n_samples = X.shape[0]
    name = euclidean_name(X, metric, metric_params)
    if name and n_samples > MAX_EXACT_NEIGHBORS:
        points, undirected = as_euclidean(X, name)
        indices, distances = IVFIndex(points, workers).neighbors(n_neighbors, workers)
        distances = from_euclidean(distances, name, undirected)
    else:
        power = squaring_power(metric, metric_params)
        X = well_conditioned(X, metric, power)
        index = _index(X, n_neighbors + 1, metric, metric_params)
        indices, distances = _in_blocks(index, X, ROWS_PER_BLOCK, workers, power)
    indptr = np.arange(n_samples + 1) * n_neighbors
    distances = defined(distances, metric).ravel()
    return scipy.sparse.csr_matrix((distances, indices.ravel(), indptr), (n_samples, n_samples))


def _in_blocks(index: Any, X: Any, most: int, workers: Workers, power: int | None = None) -> tuple[Array, Array]:
    """Search by scikit-learn in blocks of at most ``most`` rows, which do not depend on the number of threads.

    With a ``power``, that of :func:`squaring_power`, the rows are those of the index. Without it, blocks are padded to
    one size, since the bits of matrix products depend on their shape.
    """
    n_rows, k = X.shape[0], index.n_neighbors - (power is not None)
    indices, distances = np.empty((n_rows, k), np.int64), np.empty((n_rows, k), np.float64)
    n_lost: list[int] = []
    size = min(max((WORKING_MEMORY_MIB << 20) // (8 * index.n_samples_fit_), 1), most)
    is_function = callable(index.metric)  # slow, and applied to one pair at a time

    def search(start: int, stop: int) -> None:
        for first in range(start * size, min(stop * size, n_rows), size):
            rows = slice(first, min(first + size, n_rows))
            own, is_whole = np.arange(first, first + size), power is not None or is_function
            with config_context(**_CONFIG):
                far, found = index.kneighbors(X[rows if is_whole else np.minimum(own, n_rows - 1)])
            found, far = found[: rows.stop - first], far[: rows.stop - first]
            if power is not None:
                found, far = _without_itself(found, far, own[: len(found)])
            if power:
                n_lost.append(_refine(X, rows, power, found, far))
            indices[rows], distances[rows] = found, far

    # Functions of the user and scikit-learn's Mahalanobis distance, which writes to a shared buffer, take one thread.
    pool = Workers(1) if is_function or index.metric == "mahalanobis" else workers
    work = float(n_rows) * index.n_samples_fit_ * index.n_features_in_
    pool.rows(search, -(-n_rows // size), work=work, alignment=1)
    if sum(n_lost):
        warn(
            f"the distances of {sum(n_lost)} rows of the sparse X to their neighbours are lost in rounding: its values "
            "are millions of times larger than these distances. Scale its columns, or give X as a dense array."
        )
    return indices, distances


def _refine(X: Any, rows: slice, power: int, indices: Array, distances: Array) -> int:
    """Compute distances that rounding may have changed by differences, in place; return how many rows remain lost."""
    rounded = distances**power < ROUNDED * row_norms(X[rows], squared=True)[:, None]
    for e in np.flatnonzero(rounded.any(axis=0)):
        row = np.flatnonzero(rounded[:, e])
        difference = X[rows.start + row].astype(np.float64) - X[indices[row, e]]
        distances[row, e] = row_norms(difference, squared=True) ** (1 / power)
    # Where all distances have changed, the neighbours are searched again, but not in sparse X.
    lost = np.flatnonzero(rounded[:, -1] & (distances[:, -1] > 0))
    if scipy.sparse.issparse(X) or lost.size == 0:
        return int(lost.size)
    squared = cdist(X[rows.start + lost], X, "sqeuclidean")
    found = np.argsort(squared, axis=1, kind="stable")[:, : indices.shape[1] + 1]
    far = np.take_along_axis(squared, found, axis=1) ** (1 / power)
    indices[lost], distances[lost] = _without_itself(found, far, rows.start + lost)
    return 0


def _index(X: Any, n_neighbors: int, metric: Any, metric_params: dict[str, Any] | None) -> NearestNeighbors:
    metric, params = validated_metric(X, metric, metric_params)
    options = {"metric": metric, "metric_params": params, "n_jobs": 1}
    if not isinstance(metric, str) or metric in _NO_METRICS:
        options["algorithm"] = "brute"
    elif "p" in params:  # scikit-learn warns if it is among the metric_params
        options |= {"p": params["p"], "metric_params": {"w": params["w"]} if "w" in params else {}}
    return NearestNeighbors(n_neighbors=n_neighbors, **options).fit(X)


def _without_itself(found: Array, far: Array, own: Array) -> tuple[Array, Array]:
    """Return the neighbours that are not the point itself and their distances; without the last if it was not found."""
    others = np.asarray(found != own[:, None])
    others[others.all(axis=1), -1] = False  # duplicates took its place
    return found[others].reshape(len(found), -1), far[others].reshape(len(found), -1)


class NeighborIndex:
    """Index of points for nearest-neighbour queries; the result of one does not depend on the others."""

    def __init__(self, X: Any, *, metric: Any, metric_params: Any, n_neighbors: int, workers: Workers) -> None:
        X = squarable(canonical(X))
        self.n_neighbors, self._metric = n_neighbors, euclidean_name(X, metric, metric_params)
        self._n_probes: int | None = None
        if self._metric:
            self._index: Any = IVFIndex(as_euclidean(X, self._metric)[0], workers)
            if X.shape[0] > MAX_EXACT_NEIGHBORS:
                self._n_probes = self._index.n_probes(n_neighbors, workers)
        else:
            self._index = _index(X, n_neighbors, metric, metric_params)

    def search(self, X: Any, workers: Workers) -> tuple[Array, Array]:
        """Return indices and distances of the neighbours of every row of X, nearest first."""
        X = in_double(canonical(X))  # always: the precision of a row must not depend on the other rows
        if self._metric:
            points, undirected = as_euclidean(X, self._metric, n_features=self._index.mean.size)
            indices, distances = self._index.search(points, self.n_neighbors, workers, self._n_probes)
            distances = from_euclidean(distances, self._metric, undirected)
        else:
            indices, distances = _in_blocks(self._index, X, _QUERIES_PER_BLOCK, workers)
        distances = defined(distances)
        order = np.argsort(distances, axis=1, kind="stable")
        return np.take_along_axis(indices, order, axis=1), np.take_along_axis(distances, order, axis=1)


def row_batches(X: Any) -> Iterable[slice]:
    """Yield slices of rows that are processed at once, fewer rows if there are many features."""
    return gen_batches(X.shape[0], int(np.clip(_BATCH_VALUES // max(X.shape[1], 1), _MIN_BATCH, _MAX_BATCH)))  # type: ignore[no-any-return]


def first_not_finite(X: Any) -> int | None:
    """Return the first row of an array of numbers that has NaN or infinity; None if there is none, or X is no array."""
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.size and X.dtype.kind == "f":
        for rows in row_batches(X):
            if not (finite := np.isfinite(X[rows]).all(axis=1)).all():
                return int(rows.start + finite.argmin())
    return None


def check_file(X: Any) -> None:
    """Raise ValueError if X is mapped to a file that has become too short: reading it would end the process."""
    name = getattr(X, "filename", None)
    if isinstance(X, np.memmap) and name and (size := Path(name).stat().st_size) < X.offset + X.nbytes:
        row = max(size - X.offset, 0) // max(X.strides[0], 1)
        raise ValueError(f"X: the file {name} ends in row {row:,} of {X.shape[0]:,}; write it again, or read it anew.")


def first_copies(X: Any) -> Array:
    """Return the first of the rows that are equal to each row, by hashes of 64 bits."""
    weights = np.random.default_rng(0).integers(1 << 63, size=X.shape[1], dtype=np.uint64) * 2 + 1
    hashes = []
    for rows in row_batches(X):
        block = X[rows] + 0.0 if not scipy.sparse.issparse(X) else X[rows].copy()  # -0 is 0
        values = block.data if scipy.sparse.issparse(X) else block
        bits = np.ascontiguousarray(values, dtype=np.float64).view(np.uint64) * weights[0]
        bits ^= bits >> np.uint64(32)  # sums of products mix high bits only with higher ones
        if scipy.sparse.issparse(X):
            bits = scipy.sparse.csr_matrix((bits, block.indices, block.indptr), block.shape)
        hashes.append(bits @ weights)
    _, first, number = np.unique(np.concatenate(hashes), return_index=True, return_inverse=True)
    return np.asarray(first[number])


def neighbor_graph(indices: Any, distances: Any) -> Any:
    """Return the graph of neighbours given as arrays of shape (n_samples, n_neighbors); a negative index is none."""
    indices, distances = np.asarray(indices), np.asarray(distances)
    if indices.ndim != 2 or indices.shape != distances.shape or not np.issubdtype(indices.dtype, np.integer):
        raise ValueError(
            "X=(indices, distances) must be two arrays of the same shape (n_samples, n_neighbors), the first of "
            f"integers; got {indices.dtype} of shape {indices.shape} and {distances.dtype} of shape {distances.shape}."
        )
    if not np.isfinite(distances).all() or distances.min(initial=0) < 0:
        raise ValueError("X=(indices, distances): distances must be finite and at least 0.")
    n_samples, last = len(indices), indices.max(initial=0)
    if last >= n_samples:
        raise ValueError(f"X=(indices, distances): index {last} is out of range for {n_samples} samples, one per row.")
    return sparse_rows(indices, distances, indices >= 0, n_samples)


def nearest_of_graph(graph: Any, n_neighbors: int, *, diagonal: bool = False) -> Any:
    """Return a neighbour graph with the ``n_neighbors`` nearest in each row, by default without the diagonal."""
    row = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    others = np.flatnonzero((graph.indices != row) | diagonal)
    order = others[np.lexsort((graph.data[others], row[others]))]
    row = row[order]
    rank = np.arange(row.size) - np.searchsorted(row, row)
    order, row = order[rank < n_neighbors], row[rank < n_neighbors]
    indptr = np.append(0, np.cumsum(np.bincount(row, minlength=graph.shape[0])))
    return scipy.sparse.csr_matrix((graph.data[order], graph.indices[order], indptr), graph.shape)


def nearest_in_rows(distances: Any, n_neighbors: int) -> tuple[Array, Array]:
    """Return indices and distances of the nearest samples of each row of distances, nearest first."""
    if not scipy.sparse.issparse(distances):
        indices = np.argsort(distances, axis=1, kind="stable")[:, :n_neighbors]
        return indices, np.take_along_axis(distances, indices, axis=1)
    distances = canonical(distances).sorted_indices()
    counts = np.diff(distances.indptr)
    if counts.min(initial=n_neighbors) < n_neighbors:
        row = int(np.argmax(counts < n_neighbors))
        raise ValueError(
            f"X has {counts[row]} distances in row {row}, but {n_neighbors} are needed. Store the distances of every "
            f"new point to its {n_neighbors} nearest training samples or more, or give a dense matrix of all distances."
        )
    nearest = nearest_of_graph(distances, n_neighbors, diagonal=True)
    return nearest.indices.reshape(-1, n_neighbors), nearest.data.reshape(-1, n_neighbors)
