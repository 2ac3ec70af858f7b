"""Figures, axes and the points on them: markers, density shading if they are many, and strips of one dimension.

This module imports matplotlib, which is slow; public functions import it only to draw.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, gaussian_filter1d

try:
    from matplotlib import pyplot as plt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
except ImportError as error:
    raise ImportError('plotting requires matplotlib; install it with pip install "laptsne[plot]".') from error

from laptsne._runtime.colours import INK, Categories
from laptsne.plotting.colouring import Colouring, add_key_below

MAX_MARKERS = 200_000  # points beyond which density is shaded: markers would merge into blots, and take seconds
_ZOOM = 1.2  # of three-dimensional axes, which matplotlib draws with wide margins
_GRID = 64  # cells per side in which the density of points is counted
_MARKER_AREAS = (0.8, 22.0)  # smallest and largest, in square points

# Density shading
_CELLS = 3.0  # pixels of the image per typographic point
_MARGIN = 0.05  # around the map, relative to its extent
_SIGMA = 0.45  # width of a point, in typographic points
_LONE = 1 / (2 * np.pi * _SIGMA**2)  # density at the centre of a point without others near it, per square point
_FAINTEST = 0.4  # opacity of a lone point
_CROWDED = 0.99  # quantile of the density that is opaque

# One dimension
_BINS = 400
_BANDWIDTH = 3.0  # of the density, in bins
_TOP, _BOTTOM = -0.06, -0.4  # of the strip; the highest density is at 1
_LOWEST = 0.004  # height below which a curve is not outlined
_INK = 1200.0  # total area of the markers in square points, per inch of width
_STRIP_AREAS = (1.0, 16.0)  # smallest and largest marker, in square points


class PyplotFigure(Figure):
    """A figure of pyplot that notebooks show once, whether or not it is also the value of a cell."""

    def _ipython_display_(self) -> None:
        if "inline" in plt.get_backend():
            plt.close(self)  # or it would be shown again at the end of the cell, with all open figures
        raise NotImplementedError  # IPython displays it as any other figure


def new_figure(width: float, height: float) -> Figure:
    """Return a new figure of pyplot, of the given size in inches."""
    return plt.figure(figsize=(width, height), layout="constrained", FigureClass=PyplotFigure)


def choose_axes(
    ax: Any, n_components: int, default_size: tuple[float, float], figsize: tuple[float, float] | None
) -> tuple[Any, bool]:
    """Return the axes given, or the current ones, or those of a new figure, and whether that has the default size."""
    is_default = ax is None and figsize is None and not plt.get_fignums()
    if ax is None:
        figure = new_figure(*(figsize or default_size)) if figsize or is_default else plt.gcf()
        is_new_box = n_components == 3 and not figure.axes
        ax = figure.add_subplot(projection="3d") if is_new_box else figure.gca()
    if not isinstance(ax, Axes):
        raise TypeError(f"ax must be matplotlib Axes, got {type(ax).__name__}; pass one of them, such as axes[0].")
    if (n_components == 3) != (ax.name == "3d"):
        raise ValueError(
            f"Y has shape (n_samples, {n_components}), but the axes have the projection {ax.name!r}; pass other axes, "
            'for three dimensions those of pyplot.subplots(subplot_kw={"projection": "3d"}).'
        )
    return ax, is_default


def draw_points(
    ax: Any,
    Y: NDArray[Any],
    colouring: Colouring,
    *,
    rasterized: bool | None,
    s: Any = None,
    alpha: float | None = None,
) -> None:
    """Draw an embedding: points without label first, all others shuffled; one dimension as a strip."""
    n_samples, n_components = Y.shape
    is_strip = n_components == 1
    _clear(ax, n_components)
    if is_strip and n_samples:
        Y = _draw_strip(ax, Y[:, 0], colouring)
    rgba, missing = colouring.rgba(), colouring.encoding.missing
    if s is None and n_components == 2 and n_samples > MAX_MARKERS:
        for shown in (missing, ~missing):
            if shown.any():
                _draw_density(ax, Y, rgba, shown, alpha)
    elif n_samples:
        size, opacity = _size_and_alpha(ax, Y[:, :2], is_strip=is_strip)
        order = np.random.default_rng(0).permutation(n_samples)  # or the last label would cover all others
        order = order[np.argsort(~missing[order], kind="stable")]
        if is_strip:
            order = order[-MAX_MARKERS:]  # the curves are of all
        areas = np.asarray(size if s is None else s)
        style = {"alpha": opacity if alpha is None else alpha, "linewidths": 0, "rasterized": rasterized}
        ax.scatter(*Y[order].T, s=areas[order] if areas.ndim else areas, c=rgba[order], **style)
    if is_strip:
        ax.set_ylim(_BOTTOM - 0.06, 1.12)


def draw_panels(
    panels: Iterable[tuple[str, NDArray[Any]]],
    colouring: Colouring,
    width: float,
    height: float,
    *,
    fontsize: float,
    rasterized: bool | None,
) -> Figure:
    """Draw maps with titles in rows of up to four panels, whose width and height are in inches, with one key."""
    titles, maps = zip(*panels, strict=True)
    n_columns = min(len(maps), 4)
    n_rows = math.ceil(len(maps) / n_columns)
    figure = new_figure(width * n_columns, height * n_rows)
    grid = figure.add_gridspec(n_rows, n_columns)
    axes = [figure.add_subplot(grid[i // n_columns, i % n_columns], box_aspect=1) for i in range(len(maps))]
    for ax, Y, title in zip(axes, maps, titles, strict=True):
        draw_points(ax, Y, colouring, rasterized=rasterized)
        ax.set_title(str(title), fontsize=fontsize, color=INK)
    add_key_below(figure, axes, colouring)
    return figure


def _draw_strip(ax: Any, y: NDArray[Any], colouring: Colouring) -> NDArray[Any]:
    """Draw one density curve per category, or one of all points with numbers; return places of the points below."""
    margin = 0.03 * float(np.ptp(y)) or 0.5
    edges = np.linspace(y.min() - margin, y.max() + margin, _BINS + 1)
    encoding = colouring.encoding
    groups: list[tuple[Any, Any]] = [("#9a9a9a", slice(None))]
    if isinstance(encoding, Categories):
        groups = [(colouring.colours[code], encoding.codes == code) for code in np.flatnonzero(encoding.counts)]
    counts = [gaussian_filter1d(np.histogram(y[rows], edges)[0].astype(np.float64), _BANDWIDTH) for _, rows in groups]
    centres, highest = (edges[:-1] + edges[1:]) / 2, max((float(count.max()) for count in counts), default=1.0)
    for (colour, _), count in zip(groups, counts, strict=True):
        height = count / highest
        ax.fill_between(centres, height, color=colour, alpha=0.35, linewidth=0, zorder=1.5)
        outline = np.where(height > _LOWEST, height, np.nan)  # or the last one would run along the base
        ax.plot(centres, outline, color=colour, linewidth=1.0, zorder=1.6)
    return np.column_stack([y, np.random.default_rng(0).uniform(_BOTTOM, _TOP, len(y))])


def _draw_density(ax: Axes, Y: NDArray[Any], rgba: NDArray[np.float64], shown: Any, alpha: float | None) -> None:
    """Draw points as an image with opacity by the logarithm of their density; pixels have their points' mean colour."""
    low, span = Y.min(axis=0), np.ptp(Y, axis=0)
    span[span == 0] = span.max() or 1.0
    low, high = low - _MARGIN * span, low + (1 + _MARGIN) * span
    scale = _CELLS * 72 / ax.figure.dpi * min(ax.get_window_extent().size / span)  # cells per unit of the map
    n_columns, n_rows = np.ceil((high - low) * scale).astype(int)
    cells = ((Y - low) * scale).astype(np.intp)[shown] @ [1, n_columns]

    def blurred(weights: NDArray[Any] | None) -> NDArray[np.float32]:
        sums = np.bincount(cells, weights, minlength=n_rows * n_columns).reshape(n_rows, n_columns)
        return np.asarray(gaussian_filter(sums.astype(np.float32), _SIGMA * _CELLS, mode="constant", truncate=3))

    counts = blurred(None)
    seen = counts > 1e-3 * counts.max()
    image = np.zeros((n_rows, n_columns, 4), np.float32)
    for channel in range(3):
        image[seen, channel] = np.clip(blurred(rgba[shown, channel])[seen] / counts[seen], 0, 1)
    density = counts[seen] * _CELLS**2  # points per square point
    crowd = max(float(np.quantile(density, _CROWDED)), 2 * _LONE)
    rise = np.clip(np.log(np.maximum(density, _LONE) / _LONE) / np.log(crowd / _LONE), 0, 1)
    edge = -np.expm1(-3 * density / _LONE)  # fades at the rim of a point
    image[seen, 3] = edge * (_FAINTEST + (1 - _FAINTEST) * rise)
    extent = (low[0], high[0], low[1], high[1])
    ax.imshow(image, extent=extent, origin="lower", interpolation="nearest", alpha=alpha, zorder=1)


def _clear(ax: Any, n_components: int) -> None:
    """Remove ticks and spines: neither the directions nor the units of an embedding mean anything."""
    ax.set(xticks=[], yticks=[])
    if n_components == 3:  # the faint panes show the perspective
        ax.set(zticks=[], aspect="equal")
        ax.set_box_aspect(None, zoom=_ZOOM)
        for axis, grey in ((ax.xaxis, 0.95), (ax.yaxis, 0.97), (ax.zaxis, 0.93)):
            axis.line.set_color((0, 0, 0, 0))
            axis.set_pane_color((grey, grey, grey, 1))
        return
    ax.spines[:].set_visible(False)
    if n_components == 2:
        shared = all(len(group.get_siblings(ax)) > 1 for group in (ax.get_shared_x_axes(), ax.get_shared_y_axes()))
        # "datalim": panels have the same size whatever the shape of the map; matplotlib refuses it for shared axes.
        ax.set(aspect="equal", adjustable="box" if shared else "datalim")


def _size_and_alpha(ax: Axes, Y: NDArray[Any], *, is_strip: bool) -> tuple[float, float]:
    """Return the marker area and opacity at which a typical point fills its surroundings without hiding others."""
    box, points = ax.get_window_extent(), 72 / ax.figure.dpi
    if is_strip:
        return float(np.clip(_INK * box.width / ax.figure.dpi / len(Y), *_STRIP_AREAS)), 0.6
    extent = np.maximum(np.ptp(Y, axis=0), 1e-300)
    # The smallest square around the embedding as it is drawn, in square points.
    area = float((min(box.width / extent[0], box.height / extent[1]) * max(extent) * points) ** 2)
    widest = float(np.ptp(Y, axis=0).max()) or 1.0
    cells = np.minimum((Y - Y.min(axis=0)) / widest * _GRID, _GRID - 1).astype(np.intp)
    cell, counts = np.unique(cells[:, 0] * _GRID + cells[:, 1], return_inverse=True, return_counts=True)[1:]
    area_per_point = area / _GRID**2 / float(np.median(counts[cell]))
    # If there are few points, each must be visible even where they overlap.
    minimum = min(15_000 / len(Y), 8.0) * min(math.sqrt(area) / 400, 1.0)
    size = float(np.clip(max(2 * area_per_point, minimum), *_MARKER_AREAS))
    return size, float(np.clip(0.85 * (2 * area_per_point / size) ** 0.2, 0.35, 0.85))
