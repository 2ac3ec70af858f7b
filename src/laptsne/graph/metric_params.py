"""Validation of metrics and their parameters."""

import math
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.neighbors import VALID_METRICS, VALID_METRICS_SPARSE

PAIRWISE_METRICS = ("precomputed", "affinities")
# Metrics of scikit-learn's trees that its pairwise distances do not have.
_TREES_ONLY = {"infinity", "p", "pyfunc", "sokalmichener"}
METRICS = {*VALID_METRICS["brute"], *VALID_METRICS["ball_tree"], *VALID_METRICS["kd_tree"]} - _TREES_ONLY
_TAKEN = {"minkowski": {"p", "w"}, "seuclidean": {"V"}, "mahalanobis": {"V", "VI"}}


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
    >>> from laptsne.graph.metric_params import validated_metric
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
