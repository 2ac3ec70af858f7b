"""The data of the explorer as compressed blocks, in the form in which its JavaScript reads them."""

import json
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.sparsefuncs import mean_variance_axis

from laptsne._runtime.typing import Array

_MAX_FEATURE_BYTES = 32 * 2**20  # of all features, compressed
_MAX_VALUES = 400 * 2**20  # of features that are compressed at all, in one byte each
_LEVELS = 254  # values of features are stored as multiples of their range divided by this
_MISSING = 255

_MAX_SIDE = 64  # pixels of a thumbnail; the explorer enlarges small images to about 112
_MIN_SIDE = 24  # pixels; nothing can be recognised in smaller ones
_MAX_IMAGE_BYTES = 64 * 2**20  # of all thumbnails, before compression


@dataclass(frozen=True)
class Payload:
    """Compressed blocks of bytes: header and arrays, images, and features."""

    title: str
    n_samples: int
    color: str | None  # name of the column by which points are coloured at first
    data: bytes
    images: bytes
    features: bytes


def pack(header: dict[str, Any], arrays: list[NDArray[Any]], images: Any, features: bytes) -> Payload:
    """Compress the header, the arrays and the images, if there are any; features are compressed one by one.

    The header, as JSON, comes after its length and before the arrays, each aligned to eight bytes.
    """
    layout, offset = [], 0
    for array in arrays:
        layout.append({"dtype": array.dtype.name, "offset": offset, "length": array.size})
        offset += -(-array.nbytes // 8) * 8
    text = json.dumps({**header, "arrays": layout}, allow_nan=False).encode()
    text += b" " * (-(len(text) + 4) % 8)
    contents = [array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes() for array in arrays]
    parts = [len(text).to_bytes(4, "little"), text, *(content + bytes(-len(content) % 8) for content in contents)]
    pixels = b"" if images is None else zlib.compress(images.tobytes(), 6)
    color = None if header["color"] is None else header["columns"][header["color"]]["name"]
    return Payload(header["title"], header["points"], color, zlib.compress(b"".join(parts), 6), pixels, features)


def pack_features(
    features: Any, names: Any, n_samples: int, max_bytes: int = _MAX_FEATURE_BYTES
) -> tuple[dict[str, Any] | None, bytes]:
    """Compress features one by one, those of the largest variance if all take too much; return header and content."""
    if features is None:
        return None, b""
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
    if X.size > max_bytes // 4:
        order = np.argsort(-_variances(X), kind="stable")[: max(1, _MAX_VALUES // n_samples)]
    packed: dict[int, tuple[bytes, float, float]] = {}
    total = 0
    for i in order.tolist():
        column = X[:, [i]].toarray().ravel() if scipy.sparse.issparse(X) else X[:, i]
        levels = _packed(np.asarray(column, dtype=np.float64))
        total += len(levels[0])
        if total > max_bytes and packed:
            break
        packed[i] = levels
    kept = sorted(packed)
    contents, low, high = zip(*(packed[i] for i in kept), strict=True)
    note = f"the {len(kept):,} most variable of {X.shape[1]:,} features" if len(kept) < X.shape[1] else ""
    ends = np.cumsum([len(content) for content in contents]).tolist()
    header = {"names": [texts[i] for i in kept], "ends": ends, "low": low, "high": high, "note": note}
    return header, b"".join(contents)


def make_thumbnails(images: ArrayLike, n_samples: int) -> NDArray[np.uint8]:
    """Return images of shape (n_samples, height, width, 1 or 3), reduced by averaging over blocks of pixels."""
    pixels = np.asarray(images)
    grey = pixels.ndim == 3
    if not (grey or (pixels.ndim == 4 and pixels.shape[3] == 3)) or 0 in pixels.shape:
        raise ValueError(
            "images must have shape (n_samples, height, width) or (n_samples, height, width, 3), "
            f"got {pixels.shape}; reshape them first."
        )
    if len(pixels) != n_samples:
        raise ValueError(f"images has {len(pixels)} images, but the map has {n_samples} points; pass one per point.")
    if pixels.dtype != np.uint8:
        raise ValueError(
            f"images must have dtype uint8, with values from 0 to 255, got {pixels.dtype}; "
            "scale them: (images * (255 / images.max())).astype('uint8')."
        )
    pixels = pixels[..., None] if grey else pixels
    n, height, width, channels = pixels.shape
    side, factor = max(height, width), 1
    while side / factor > _MAX_SIDE or (
        pixels.size / factor**2 > _MAX_IMAGE_BYTES and side / (factor + 1) >= _MIN_SIDE
    ):
        factor += 1
    factor = min(factor, height, width)
    if factor == 1:
        return np.ascontiguousarray(pixels)
    rows, columns = height // factor, width // factor
    small = np.empty((n, rows, columns, channels), np.uint8)
    for i, image in enumerate(pixels):  # one at a time: float means of all would take eight times their memory
        blocks: Any = image[: rows * factor, : columns * factor].reshape(rows, factor, columns, factor, channels)
        small[i] = np.rint(blocks.mean((1, 3)))
    return small


def _variances(X: Any) -> Array:
    if scipy.sparse.issparse(X):
        return np.asarray(mean_variance_axis(X.astype(np.float64), axis=0)[1])
    return np.asarray(np.nan_to_num(np.nanvar(X.astype(np.float64, copy=False), axis=0)))


def _packed(values: NDArray[np.float64]) -> tuple[bytes, float, float]:
    """Return the compressed levels of a feature, and its smallest and largest value."""
    known = np.isfinite(values)
    low, high = (float(values[known].min()), float(values[known].max())) if known.any() else (0.0, 0.0)
    unit = _LEVELS / (high - low) if high > low else 0.0
    levels = np.where(known, np.rint((np.where(known, values, low) - low) * unit), _MISSING).astype(np.uint8)
    return zlib.compress(levels.tobytes(), 6), low, high
