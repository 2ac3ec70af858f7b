"""Figures, and points on them. This module loads matplotlib; the others load it when they draw."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize, to_rgba_array
from matplotlib.figure import Figure, FigureBase
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from laptsne.colours.colouring import Categories, Colouring, Scale, short
from laptsne.colours.palette import INK, MISSING, colours

_DPI = 150
_CELLS = 64  # density is counted in this many cells a side
_SIZES = (0.8, 22.0)  # areas of a point in square points
_MAX_LEGEND = 40
# The yellow end of viridis can hardly be seen on white.
_SCALE = ListedColormap(colormaps["viridis"](np.linspace(0, 0.93, 256)), "laptsne")


class Picture(Figure):
    """A figure that no window system is asked for, and that notebooks show."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


class Panel(Axes):
    """The axes of a picture of their own, which notebooks show as well."""

    def _repr_png_(self) -> bytes:
        return Picture._repr_png_(self.figure)  # type: ignore[arg-type]


def new_figure(width: float, height: float) -> Picture:
    """A figure of a size in inches."""
    return Picture(figsize=(width, height), dpi=_DPI, layout="constrained")


def new_axes(width: float, height: float) -> Axes:
    """Axes that fill a figure of their own."""
    return new_figure(width, height).add_subplot(axes_class=Panel)


def panels(host: FigureBase, count: int, across: int) -> list[Axes]:
    """Square panels, some across, with nothing where a line is not full."""
    grid = host.add_gridspec(math.ceil(count / across), across)
    return [host.add_subplot(grid[i // across, i % across], box_aspect=1) for i in range(count)]


def draw_points(ax: Axes, Y: NDArray[Any], colouring: Colouring) -> None:
    """Draw a map: size and transparency by its density, points without label beneath, the rest in no order."""
    bare(ax)
    if len(Y) == 0:
        return
    size, alpha = _size_and_alpha(ax, Y)
    shuffled = np.random.default_rng(0).permutation(len(Y))  # no label lies above all others
    missing = _is_missing(colouring)[shuffled]
    order = np.concatenate([shuffled[missing], shuffled[~missing]])
    style: dict[str, Any] = {"s": size, "c": point_colours(colouring)[order], "alpha": alpha}
    ax.scatter(Y[order, 0], Y[order, 1], linewidths=0, rasterized=True, **style)


def bare(ax: Axes) -> None:
    """Axes of a map: its directions and its units mean nothing, so there are none."""
    ax.set(xticks=[], yticks=[], aspect="equal")
    ax.spines[:].set_visible(False)


def point_colours(colouring: Colouring) -> NDArray[np.float64]:
    """The colour of each point, shape (n_samples, 4)."""
    if isinstance(colouring, Scale):
        table = np.ma.masked_invalid(colouring.values)
        rgba = np.asarray(_SCALE(_range(colouring)(table)), dtype=np.float64)
        rgba[np.isnan(colouring.values)] = to_rgba_array(MISSING)[0]
        return rgba
    return to_rgba_array([*colours(len(colouring.names)), MISSING])[colouring.codes]


def add_key(host: FigureBase, axes: list[Axes], colouring: Colouring) -> None:
    """Say once for all panels what the colours mean."""
    if isinstance(colouring, Scale):
        add_colour_bar(axes, colouring)
    else:
        add_legend(host, colouring)


def add_colour_bar(axes: list[Axes], scale: Scale) -> None:
    """A colour bar to the right, with arrows where values lie beyond its ends."""
    values = scale.values[~np.isnan(scale.values)]
    beyond = bool((values < scale.low).any()), bool((values > scale.high).any())
    extend = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}[beyond]
    place: dict[str, Any] = {"ax": axes, "shrink": 0.6, "aspect": 30, "pad": 0.02, "extend": extend}
    bar = axes[0].figure.colorbar(ScalarMappable(_range(scale), _SCALE), **place)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, color=INK, labelcolor=INK)


def add_legend(host: Axes | FigureBase, categories: Categories) -> None:
    """A legend below a map or a figure; none where it would be longer than anyone reads."""
    if not 1 <= len(categories.names) <= _MAX_LEGEND or categories.names == ("",):
        return
    entries = list(zip(map(short, categories.names), colours(len(categories.names)), strict=True))
    if (categories.codes < 0).any():
        entries.append(("no label", MISSING))
    handles = [
        Line2D([], [], linestyle="", marker="o", markersize=6, markeredgewidth=0, color=colour, label=name)
        for name, colour in entries
    ]
    figure = host.figure
    width = host.get_window_extent().width * 72 / figure.dpi
    entry = max(len(name) for name, _ in entries) * 5.5 + 24  # in points, for letters of 9 points
    rows = math.ceil(len(entries) / max(1, int(width / entry)))
    style: dict[str, Any] = {"handles": handles, "ncols": math.ceil(len(entries) / rows), "columnspacing": 1.2}
    style |= {"frameon": False, "fontsize": 9, "labelcolor": INK, "handletextpad": 0.1}
    if isinstance(host, FigureBase):
        host.legend(loc="outside lower center", **style)
    else:
        host.legend(loc="upper center", bbox_to_anchor=(0.5, 0), **style)


def _range(scale: Scale) -> Normalize:
    return Normalize(scale.low, scale.high, clip=True)


def _is_missing(colouring: Colouring) -> NDArray[np.bool_]:
    return np.isnan(colouring.values) if isinstance(colouring, Scale) else colouring.codes < 0


def _size_and_alpha(ax: Axes, Y: NDArray[Any]) -> tuple[float, float]:
    """Size and transparency of points such that most of them cover the paper, and not each other."""
    room = _room(ax, Y)
    low, extent = Y.min(axis=0), float(np.ptp(Y, axis=0).max()) or 1.0
    cells = np.minimum((Y - low) / extent * _CELLS, _CELLS - 1).astype(np.intp)
    cell, counts = np.unique(cells[:, 0] * _CELLS + cells[:, 1], return_inverse=True, return_counts=True)[1:]
    crowd = float(np.median(counts[cell]))  # in the cell of a typical point
    space = room / _CELLS**2 / crowd  # square points on paper that such a point has for itself
    # Few points must be seen each, even where they lie upon one another.
    seen = min(15_000 / len(Y), 8.0) * min(math.sqrt(room) / 400, 1.0)
    size = float(np.clip(max(2 * space, seen), *_SIZES))
    return size, float(np.clip(0.85 * (2 * space / size) ** 0.2, 0.35, 0.85))


def _room(ax: Axes, Y: NDArray[Any]) -> float:
    """Area of the paper in square points, of a square around the map."""
    box = ax.get_window_extent()
    width, height = np.maximum(np.ptp(Y, axis=0), 1e-300)
    pixels = min(box.width / width, box.height / height) * max(width, height)
    return float((pixels * 72 / ax.figure.dpi) ** 2)
