"""Points of embeddings: markers whose size and opacity follow the density, or density shading if they are many."""

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from laptsne.plotting.canvas import clear_frame
from laptsne.plotting.colouring import Colouring
from laptsne.plotting.density import DensityImage

MAX_MARKERS = 200_000  # points beyond which density is shaded: markers would merge into blots, and take seconds
_ZOOM = 1.2  # of three-dimensional axes, which matplotlib draws with wide margins
_GRID = 64  # cells per side in which the density of points is counted
_MARKER_AREAS = (0.8, 22.0)  # smallest and largest, in square points


def draw_points(
    ax: Axes,
    Y: NDArray[Any],
    colouring: Colouring,
    *,
    s: Any = None,
    alpha: float | None = None,
    rasterized: bool | None = None,
) -> None:
    """Draw an embedding in two or three dimensions: points without label first, all others shuffled."""
    if Y.shape[1] == 3:
        _clear_box(ax)
    else:
        clear_frame(ax)
    if len(Y) == 0:
        return
    if s is None and Y.shape[1] == 2 and len(Y) > MAX_MARKERS:
        draw_density(ax, Y, colouring, alpha)
        return
    if s is None or alpha is None:
        size, opacity = _size_and_alpha(ax, Y[:, :2])
        s, alpha = size if s is None else s, opacity if alpha is None else alpha
    draw_markers(ax, Y, colouring, s=s, alpha=alpha, rasterized=rasterized)


def draw_density(ax: Axes, Y: NDArray[Any], colouring: Colouring, alpha: float | None) -> None:
    """Shade the density of points, those without label below the others."""
    rgba, missing = colouring.rgba(), colouring.encoding.missing
    for chosen in (missing, ~missing):
        if chosen.any():
            DensityImage(ax, Y[chosen], rgba[chosen], alpha=alpha, zorder=1)


def draw_markers(ax: Any, Y: NDArray[Any], colouring: Colouring, *, s: Any, alpha: float, **style: Any) -> None:
    """Draw one marker per point, at positions of shape (n_samples, 2) or (n_samples, 3)."""
    shuffled = np.random.default_rng(0).permutation(len(Y))  # or the last label would cover all others
    missing = colouring.encoding.missing[shuffled]
    order = np.concatenate([shuffled[missing], shuffled[~missing]])
    areas = np.asarray(s)[order] if np.ndim(s) else s
    marks: dict[str, Any] = {"s": areas, "c": colouring.rgba()[order], "alpha": alpha, "linewidths": 0}
    ax.scatter(*Y[order].T, **marks, **style)


def _clear_box(ax: Any) -> None:
    """Leave the faint panes of three-dimensional axes, which show the perspective, without ticks."""
    ax.set(xticks=[], yticks=[], zticks=[], aspect="equal")
    ax.set_box_aspect(None, zoom=_ZOOM)
    for axis, grey in ((ax.xaxis, 0.95), (ax.yaxis, 0.97), (ax.zaxis, 0.93)):
        axis.line.set_color((0, 0, 0, 0))
        axis.set_pane_color((grey, grey, grey, 1))


def _size_and_alpha(ax: Axes, Y: NDArray[Any]) -> tuple[float, float]:
    """Return the marker area and opacity at which a typical point fills its surroundings without hiding others."""
    box = ax.get_window_extent()
    width, height = np.maximum(np.ptp(Y, axis=0), 1e-300)
    side = min(box.width / width, box.height / height) * max(width, height) * 72 / ax.figure.dpi
    area = float(side**2)  # of the smallest square around the embedding as it is drawn, in square points
    low, extent = Y.min(axis=0), float(np.ptp(Y, axis=0).max()) or 1.0
    cells = np.minimum((Y - low) / extent * _GRID, _GRID - 1).astype(np.intp)
    cell, counts = np.unique(cells[:, 0] * _GRID + cells[:, 1], return_inverse=True, return_counts=True)[1:]
    crowd = float(np.median(counts[cell]))  # points in the cell of a typical point
    area_per_point = area / _GRID**2 / crowd
    # If there are few points, each must be visible even where they overlap.
    minimum = min(15_000 / len(Y), 8.0) * min(math.sqrt(area) / 400, 1.0)
    size = float(np.clip(max(2 * area_per_point, minimum), *_MARKER_AREAS))
    return size, float(np.clip(0.85 * (2 * area_per_point / size) ** 0.2, 0.35, 0.85))
