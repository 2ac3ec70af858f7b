"""Features that the map was made of, stored so that the explorer can unpack them one at a time."""

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from laptsne._runtime.typing import Array

MAX_BYTES = 32 * 2**20  # of all features, compressed
_MAX_VALUES = 400 * 2**20  # that are compressed at all, in one byte each
_LEVELS = 254  # values are stored as multiples of their range divided by this
_MISSING = 255


@dataclass(frozen=True)
class FeatureBlock:
    """Compressed features, one after the other."""

    header: dict[str, Any] | None
    content: bytes


def pack_features(features: Any, names: Any, n_samples: int) -> FeatureBlock:
    """Compress the columns of a matrix. If they take more than 32 MB, those of the largest variance are kept.

    Parameters
    ----------
    features : array, sparse matrix or data frame of shape (n_samples, n_features), or None
    names : sequence of str of shape (n_features,), or None
        By default, the columns of a data frame, or numbers.
    n_samples : int
    """
    if features is None:
        return FeatureBlock(None, b"")
    names = getattr(features, "columns", None) if names is None else names
    X: Any = features if scipy.sparse.issparse(features) else np.asarray(features)
    if X.ndim != 2 or X.shape[0] != n_samples or not X.shape[1]:
        raise ValueError(f"features must have shape ({n_samples}, n_features), one row per point; got {X.shape}.")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"features must be numbers, got dtype {X.dtype}; pass other data as columns.")
    texts = [f"feature {i}" for i in range(X.shape[1])] if names is None else [str(name) for name in names]
    if len(texts) != X.shape[1]:
        raise ValueError(f"feature_names has {len(texts)} names, but features has {X.shape[1]} columns.")
    X = X.tocsc() if scipy.sparse.issparse(X) else X
    order = np.arange(X.shape[1])
    if X.size > MAX_BYTES // 4:
        order = np.argsort(-_variances(X), kind="stable")[: max(1, _MAX_VALUES // n_samples)]
    packed, total = [], 0
    for i in order:
        packed.append((int(i), *_packed(_dense(X, i))))
        total += len(packed[-1][1])
        if total > MAX_BYTES and len(packed) > 1:
            packed.pop()
            break
    packed.sort(key=lambda item: item[0])
    kept = [texts[i] for i, *_ in packed]
    cut = len(kept) < X.shape[1]
    header = {
        "names": kept,
        "ends": np.cumsum([len(content) for _, content, _, _ in packed]).tolist(),
        "low": [low for _, _, low, _ in packed],
        "high": [high for _, _, _, high in packed],
        "note": f"the {len(kept):,} most variable of {X.shape[1]:,} features" if cut else "",
    }
    return FeatureBlock(header, b"".join(content for _, content, _, _ in packed))


def _dense(X: Any, i: int) -> NDArray[np.float64]:
    column = X[:, [i]].toarray().ravel() if scipy.sparse.issparse(X) else X[:, i]
    return np.asarray(column, dtype=np.float64)


def _variances(X: Any) -> Array:
    if scipy.sparse.issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        return np.asarray(np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2)
    return np.asarray(np.nan_to_num(np.nanvar(X.astype(np.float64, copy=False), axis=0)))


def _packed(values: NDArray[np.float64]) -> tuple[bytes, float, float]:
    """Return the compressed levels of a feature, and its smallest and largest value."""
    known = np.isfinite(values)
    low, high = (float(values[known].min()), float(values[known].max())) if known.any() else (0.0, 0.0)
    unit = _LEVELS / (high - low) if high > low else 0.0
    levels = np.where(known, np.rint((np.where(known, values, low) - low) * unit), _MISSING).astype(np.uint8)
    return zlib.compress(levels.tobytes(), 6), low, high
