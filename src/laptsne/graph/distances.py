"""Metrics, their parameters, and distances that rounding does not change."""

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances_chunked
from sklearn.neighbors import VALID_METRICS, VALID_METRICS_SPARSE
from sklearn.utils import gen_batches
from sklearn.utils.extmath import row_norms

from laptsne._runtime.typing import Array

PAIRWISE_METRICS = ("precomputed", "affinities")
# Metrics of scikit-learn's trees that its pairwise distances do not have.
_TREES_ONLY = {"infinity", "p", "pyfunc", "sokalmichener"}
METRICS = {*VALID_METRICS["brute"], *VALID_METRICS["ball_tree"], *VALID_METRICS["kd_tree"]} - _TREES_ONLY
# Metrics that are, or follow from, Euclidean distances.
EUCLIDEAN_METRICS = {m: m for m in ("euclidean", "sqeuclidean", "cosine", "correlation")} | {"l2": "euclidean"}
_TAKEN = {"minkowski": {"p", "w"}, "seuclidean": {"V"}, "mahalanobis": {"V", "VI"}}
WORKING_MEMORY_MIB, ROWS_PER_BLOCK = 64, 1024  # at most, of a block of distances
# Offset of the data, in units of their spread, up to which |x|^2 - 2xy + |y|^2 is accurate and nothing is gained by
# centring: its rounding errors relative to squared distances are about 1e-16 times the square of this.
_MAX_OFFSET = 1e3
# Squared distances, in units of |x|^2, below which the rounding errors of this formula count.
ROUNDED = 1e4 * float(np.finfo(np.float64).eps)


def canonical(X: Any) -> Any:
    """Return X with repeated entries summed if it is sparse; the matrix of the caller does not change."""
    if not scipy.sparse.issparse(X) or (X := X.tocsr()).has_canonical_format:
        return X
    summed = X.copy()
    summed.sum_duplicates()
    return summed if summed.nnz < X.nnz else X


def is_pairwise(metric: Any) -> bool:
    """Whether X has one column per sample with this metric."""
    return isinstance(metric, str) and metric in PAIRWISE_METRICS


def validated_metric(X: Any, metric: Any, metric_params: dict[str, Any] | None) -> tuple[Any, dict[str, Any]]:
    """Return the metric and its parameters as scikit-learn takes them for features X, or raise ValueError.

    By default "seuclidean" gets the variances of the features, and "mahalanobis" the inverse of their covariance.
    """
    given = metric_params or {}
    if not isinstance(metric, str):
        return partial(_distance, metric), given
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
    shape = X.shape[1:] * (2 if metric == "mahalanobis" else 1)
    arrays = {name: _array(name, value, shape) for name, value in given.items() if name != "p"}
    if metric == "mahalanobis":
        return metric, {"VI": _inverse_covariance(X, arrays)}
    if metric == "seuclidean":
        if (arrays.get("V", np.ones(1)) <= 0).any():
            raise ValueError("metric_params={'V': ...}: variances must be above 0.")
        found = arrays.get("V", np.var(X, axis=0, ddof=1, dtype=np.float64))
        return metric, {"V": np.where(found > 0, found, 1.0)}  # constant features add nothing to a distance
    if "p" in given and not (isinstance(given["p"], Real) and float(given["p"]) > 0):
        raise ValueError(f"metric_params={{'p': {given['p']!r}}}: p must be a number above 0.")
    if (arrays.get("w", np.zeros(1)) < 0).any():
        raise ValueError("metric_params={'w': ...}: weights must be at least 0.")
    return metric, given


def _distance(function: Callable[..., Any], a: Any, b: Any, **params: Any) -> float:
    """Return the distance by a function of the user, which is checked since scikit-learn accepts any number."""
    found = function(a, b, **params)
    with suppress(TypeError, ValueError):
        if 0 <= float(found) < math.inf:
            return float(found)
    wanted = "it must return finite numbers of at least 0."
    raise ValueError(f"metric={function!r} gave {found!r} as the distance of two rows of X; {wanted}")


def _array(name: str, value: Any, shape: tuple[int, ...]) -> Array:
    try:
        array = np.asarray(value, dtype=np.float64)
        wrong = f"the shape is {array.shape}" if array.shape != shape else ""
    except (TypeError, ValueError):
        wrong = f"it is {value!r}"
    if wrong or not np.isfinite(array).all():
        raise ValueError(
            f"metric_params={{{name!r}: ...}} must hold finite numbers in the shape {shape}, as X has {shape[0]} "
            f"features, but {wrong or 'some are not finite'}."
        )
    return array


def _inverse_covariance(X: Any, given: dict[str, Array]) -> Array:
    if "VI" in given:
        return given["VI"]
    covariance = given["V"] if "V" in given else np.atleast_2d(np.cov(X.T))
    if not np.isfinite(covariance).all() or np.linalg.matrix_rank(covariance, hermitian=True) < len(covariance):
        raise ValueError(
            f"metric='mahalanobis' needs the inverse of the covariance of {X.shape[1]} features, which has none: "
            "some are constant or linearly dependent. Drop these, reduce X by PCA, or give metric_params={'VI': ...}."
        )
    return np.asarray(np.linalg.inv(covariance))


def squaring_power(metric: Any, metric_params: dict[str, Any] | None) -> int:
    """Return the power of a distance that is the squared Euclidean one, which scikit-learn expands; 0 for none."""
    is_name = isinstance(metric, str) and not metric_params
    return {"euclidean": 2, "l2": 2, "sqeuclidean": 1}.get(metric, 0) if is_name else 0


def well_conditioned(X: Any, metric: Any, power: int) -> Any:
    """Return dense X without what scikit-learn's rounding depends on: large offsets, and noise in constant rows."""
    if not scipy.sparse.issparse(X) and isinstance(metric, str) and metric == "correlation":
        undirected = _lengths(X, metric)[1]
        return np.where(undirected[:, None], X.dtype.type(0), X) if undirected.any() else X
    if scipy.sparse.issparse(X) or not power:
        return X
    # Relative to the median, since an outlier does not move it.
    centre = np.median(X, axis=0).astype(np.float64)
    spread = float(np.median(row_norms(X - centre)))
    return X - centre if np.linalg.norm(centre) > _MAX_OFFSET * spread else X


def _lengths(X: Array, metric: str) -> tuple[Array, Array]:
    """Return the lengths of the rows, shape (n, 1), and which have no direction: those that are zero or constant."""
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    if metric != "correlation":
        return lengths, (lengths == 0).ravel()
    centred = np.linalg.norm(X - X.mean(axis=1, keepdims=True), axis=1, keepdims=True)
    return centred, (centred <= 4 * np.finfo(X.dtype).eps * lengths).ravel()


def as_euclidean(X: Array, metric: str, *, n_features: int | None = None) -> tuple[Array, Array]:
    """Return points whose Euclidean distances determine those of X in the metric, and the rows without a direction.

    These, at a distance of 1 from all others, get a direction of their own in one more dimension: if there are any or,
    for new points, if there were in the data, whose points have ``n_features``, one more than X has.
    """
    if metric not in ("cosine", "correlation"):
        return X, np.zeros(len(X), np.bool_)
    lengths, undirected = _lengths(X, metric)
    points = X - X.mean(axis=1, keepdims=True) if metric == "correlation" else X
    points = np.divide(points, lengths, out=np.zeros_like(points), where=~undirected[:, None])
    if undirected.any() if n_features is None else n_features > X.shape[1]:
        points = np.column_stack([points, undirected.astype(points.dtype)])
    return points, undirected


def from_euclidean(distances: Array, metric: str, undirected: Array) -> Array:
    """Return the distances in the metric of the points of :func:`as_euclidean`, given their Euclidean distances."""
    if metric in ("cosine", "correlation"):
        return np.where(undirected[:, None], distances.dtype.type(1), distances**2 / 2)
    # Squares overflow in single precision from 1e19 on.
    return np.square(distances, dtype=np.float64) if metric == "sqeuclidean" else distances


def euclidean_name(X: Any, metric: Any, metric_params: dict[str, Any] | None) -> str | None:
    """Return the name of the metric if the inverted file index supports it for X."""
    is_other = not isinstance(metric, str) or metric_params or scipy.sparse.issparse(X)
    return None if is_other else EUCLIDEAN_METRICS.get(metric)


def all_distances(X: Any, *, metric: Any, metric_params: dict[str, Any] | None) -> Array:
    """Return the distances of all pairs in single precision, each row in units of its largest: nothing overflows."""
    if is_pairwise(metric) and scipy.sparse.issparse(X):
        raise ValueError(
            "n_neighbors='all' needs all distances, but X is a sparse neighbour graph; "
            "give a dense matrix of distances, or n_neighbors='auto'."
        )
    given = (X[rows] for rows in gen_batches(X.shape[0], ROWS_PER_BLOCK))
    # In blocks: scikit-learn computes in double precision, which would take twice the memory.
    blocks = given if is_pairwise(metric) else _distance_blocks(X, metric, metric_params)
    distances, start = np.empty((X.shape[0], X.shape[0]), dtype=np.float32), 0
    for found in blocks:
        block, stop = defined(found, metric), start + len(found)
        largest = block.max(axis=1, keepdims=True)
        distances[start:stop] = np.divide(block, largest, out=np.zeros(block.shape), where=largest > 0)
        start = stop
    return distances


def _distance_blocks(X: Any, metric: Any, metric_params: dict[str, Any] | None) -> Iterator[Array]:
    """Yield blocks of rows of the distance matrix; rows that rounding may have changed are computed by differences."""
    power, start = squaring_power(metric, metric_params), 0
    X = well_conditioned(squarable(canonical(X)), metric, power)
    metric, metric_params = validated_metric(X, metric, metric_params)
    options = {"metric": metric, "n_jobs": 1, "working_memory": WORKING_MEMORY_MIB}
    for block in pairwise_distances_chunked(X, **options, **metric_params):
        if power and not scipy.sparse.issparse(X):
            rows = X[start : start + len(block)]
            rounded = block**power < ROUNDED * row_norms(rows, squared=True)[:, None]
            rounded.flat[start :: len(X) + 1] = False  # the diagonal
            lost = rounded.any(axis=1)
            block[lost] = cdist(rows[lost], X, "sqeuclidean") ** (1 / power)
            start += len(block)
        yield block


def defined(distances: Array, metric: Any = None) -> Array:
    """Replace distances that a metric leaves undefined, like x / 0, by the longest of their row; correlations by 1."""
    undefined = ~np.isfinite(distances)
    if not undefined.any():
        return distances
    if isinstance(metric, str) and metric == "correlation":
        return np.where(undefined, 1, distances)
    longest = np.where(undefined, 0, distances).max(axis=1, keepdims=True)
    return np.where(undefined, np.where(longest > 0, longest, 1), distances)


def squarable(X: Any) -> Any:
    """Return X in a precision in which the squares of its values neither overflow nor underflow."""
    return X if 1e-15 < _largest(X) < 1e15 else in_double(X)


def in_double(X: Any) -> Any:
    """Return X in double precision; raise ValueError if its distances overflow even there."""
    if (largest := _largest(X)) > 1e150:
        raise ValueError(
            f"X has values up to {largest:.2g}, whose distances overflow. "
            "Scale X down, for instance with sklearn.preprocessing.StandardScaler."
        )
    return X.astype(np.float64)


def _largest(X: Any) -> float:
    values = X.data if scipy.sparse.issparse(X) else X  # the maximum of a sparse matrix sorts its entries in place
    return float(max(values.max(initial=0), -values.min(initial=0)))  # unlike abs(X).max(), without a copy of X
