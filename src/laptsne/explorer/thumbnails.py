"""Thumbnails of images."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

_MAX_SIDE = 64  # pixels; the explorer enlarges small images to about 112
_MAX_BYTES = 64 * 2**20  # of all thumbnails, before compression
_MIN_SIDE = 24  # pixels; nothing can be recognised in smaller ones


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
    return _reduced(pixels[..., None] if grey else pixels)


def _reduced(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    side, factor = max(pixels.shape[1:3]), 1
    while side / factor > _MAX_SIDE or (pixels.size / factor**2 > _MAX_BYTES and side / (factor + 1) >= _MIN_SIDE):
        factor += 1
    factor = min(factor, *pixels.shape[1:3])
    if factor == 1:
        return np.ascontiguousarray(pixels)
    n, height, width, channels = pixels.shape
    rows, columns = height // factor, width // factor
    small = np.empty((n, rows, columns, channels), np.uint8)
    for i, image in enumerate(pixels):  # one at a time: float means of all would take eight times their memory
        blocks: Any = image[: rows * factor, : columns * factor].reshape(rows, factor, columns, factor, channels)
        small[i] = np.rint(blocks.mean((1, 3)))
    return small
