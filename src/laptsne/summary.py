"""Summary of a fitted model for notebooks: its map as a thumbnail, and its key figures."""

import base64
import html
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.colours import MISSING, PALETTE
from laptsne._runtime.typing import Array

_SIDE = 200  # pixels of the thumbnail
_MARGIN = 4


class SummaryMixin:
    """HTML representation of an estimator: scikit-learn's, and after fit the summary above it."""

    def _repr_html_inner(self) -> str:
        return self._repr_mimebundle_()["text/html"]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        # A Dask array would have to be computed.
        if "text/html" in bundle and isinstance(getattr(self, "embedding_", None), np.ndarray):
            bundle["text/html"] = summary_html(self) + bundle["text/html"]
        return bundle


def summary_html(model: Any) -> str:
    """Return the thumbnail and the key figures of a fitted model."""
    Y = np.asarray(model.embedding_)
    labels = getattr(model, "labels_", None)
    if labels is not None and len(labels) != len(Y):  # those of landmarks
        labels = None
    source = base64.b64encode(thumbnail(Y, labels)).decode()
    lines = [f"{len(Y):,} points", *_figures(model)]
    text = "".join(f"<div>{html.escape(line)}</div>" for line in lines)
    image = (
        f'<img src="data:image/png;base64,{source}" width="{_SIDE}" height="{_SIDE}" alt="Map of {len(Y):,} points">'
    )
    name = html.escape(type(model).__name__)
    return (
        '<div style="display: flex; gap: 16px; align-items: center; font: 13px/1.6 system-ui, sans-serif">'
        f"{image}<div><b>{name}</b>{text}</div></div>"
    )


def _figures(model: Any) -> list[str]:
    found = []
    if hasattr(model, "n_clusters_"):
        clusters = "no evidence of clusters" if model.n_clusters_ <= 1 else f"{model.n_clusters_} clusters"
        found.append(f"{clusters}, contraction {model.contraction_:.3g}")
    if hasattr(model, "kl_divergence_"):
        found.append(f"KL divergence {model.kl_divergence_:.3f}")
    if hasattr(model, "cross_entropy_"):
        found.append(f"cross entropy {model.cross_entropy_:.3f}")
    if hasattr(model, "n_iter_"):
        found.append(f"{model.n_iter_} iterations")
    return found


def thumbnail(Y: Array, labels: Array | None) -> bytes:
    """Return the map as a PNG image, with the points in the colours of their clusters."""
    axes = [Y[:, 0], Y[:, 1] if Y.shape[1] > 1 else np.zeros(len(Y))]
    low, high = np.array([axis.min() for axis in axes]), np.array([axis.max() for axis in axes])
    width = 3 if len(Y) < 5000 else 2 if len(Y) < 50_000 else 1
    unit = (_SIDE - 2 * _MARGIN - width) / max(float((high - low).max()), 1e-30)
    # Centred along the shorter side; rows of an image run downwards.
    across, up = (_SIDE / 2 + (axis - (a + b) / 2) * unit for axis, a, b in zip(axes, low, high, strict=True))
    rows, columns = np.rint(_SIDE - 1 - up).astype(int), np.rint(across).astype(int)
    palette = np.array([_rgb(colour) for colour in (*PALETTE, MISSING)], np.uint8)
    codes = np.zeros(len(Y), int) if labels is None else np.where(labels < 0, len(PALETTE), labels % len(PALETTE))
    pixels = np.full((_SIDE, _SIDE, 3), 255, np.uint8)
    for down in range(width):
        for right in range(width):
            at = (rows + down - width // 2).clip(0, _SIDE - 1), (columns + right - width // 2).clip(0, _SIDE - 1)
            pixels[at] = palette[codes]
    return png(pixels)


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Return pixels of shape (height, width, 3) as a PNG image, since neither Pillow nor matplotlib need be there."""
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)  # no filter

    def chunk(kind: bytes, content: bytes) -> bytes:
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits per channel, RGB
    data = zlib.compress(rows.tobytes(), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def _rgb(colour: str) -> list[int]:
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
