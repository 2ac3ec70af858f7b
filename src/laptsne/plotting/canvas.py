"""Figures, axes and points. Importing this module imports matplotlib; the other modules import it only to draw."""

import io
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne.colours.label_encoding import Categories, LabelEncoding, Scale, shorten
from laptsne.colours.palette import INK, MISSING, colours

try:
    from matplotlib import colormaps
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize, to_rgba_array
    from matplotlib.figure import Figure, FigureBase
    from matplotlib.lines import Line2D
except ImportError as error:
    raise ImportError('plotting requires matplotlib; install it with pip install "laptsne[plot]".') from error

_DPI = 150
_GRID = 64  # cells per side in which the density of points is counted
_MARKER_AREAS = (0.8, 22.0)  # smallest and largest, in square points
_MAX_LEGEND = 40  # entries
# Without the yellow end of viridis, which is hardly visible on white.
_COLORMAP = ListedColormap(colormaps["viridis"](np.linspace(0, 0.93, 256)), "laptsne")


class NotebookFigure(Figure):
    """A figure that notebooks display although pyplot does not manage it."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


class NotebookAxes(Axes):
    """The only axes of a figure, displayed by notebooks as that figure."""

    def _repr_png_(self) -> bytes:
        return NotebookFigure._repr_png_(self.figure)  # type: ignore[arg-type]


def new_figure(width: float, height: float) -> NotebookFigure:
    """Return a figure of the given size in inches."""
    return NotebookFigure(figsize=(width, height), dpi=_DPI, layout="constrained")


def new_axes(width: float, height: float) -> Axes:
    """Return the only axes of a new figure of the given size in inches."""
    return new_figure(width, height).add_subplot(axes_class=NotebookAxes)


def square_axes(host: FigureBase, n_axes: int, n_columns: int) -> list[Axes]:
    """Add square axes in rows of `n_columns`; the last row may be shorter."""
    grid = host.add_gridspec(math.ceil(n_axes / n_columns), n_columns)
    return [host.add_subplot(grid[i // n_columns, i % n_columns], box_aspect=1) for i in range(n_axes)]


def draw_points(ax: Axes, Y: NDArray[Any], encoding: LabelEncoding) -> None:
    """Draw an embedding: marker size and opacity by density, points without label first, all others shuffled."""
    # Neither the directions nor the units of an embedding mean anything.
    ax.set(xticks=[], yticks=[], aspect="equal")
    ax.spines[:].set_visible(False)
    if len(Y) == 0:
        return
    size, alpha = _size_and_alpha(ax, Y)
    shuffled = np.random.default_rng(0).permutation(len(Y))  # or the last label would cover all others
    missing = encoding.missing[shuffled]
    order = np.concatenate([shuffled[missing], shuffled[~missing]])
    style: dict[str, Any] = {"s": size, "c": point_colours(encoding)[order], "alpha": alpha}
    ax.scatter(Y[order, 0], Y[order, 1], linewidths=0, rasterized=True, **style)


def point_colours(encoding: LabelEncoding) -> NDArray[np.float64]:
    """Return the RGBA colour of each point, of shape (n_samples, 4)."""
    if isinstance(encoding, Scale):
        rgba = np.asarray(_COLORMAP(_normalize(encoding)(np.ma.masked_invalid(encoding.values))), dtype=np.float64)
        rgba[encoding.missing] = to_rgba_array(MISSING)[0]
        return rgba
    return to_rgba_array([*colours(len(encoding.names)), MISSING])[encoding.codes]


def add_key(host: Axes | FigureBase, axes: list[Axes], encoding: LabelEncoding) -> None:
    """Add one colour bar beside all axes, or one legend below the host."""
    if isinstance(encoding, Scale):
        _add_colour_bar(axes, encoding)
    else:
        _add_legend(host, encoding)


def _add_colour_bar(axes: list[Axes], scale: Scale) -> None:
    """Add a colour bar on the right, with arrows if values lie outside its range."""
    values = scale.values[~scale.missing]
    outside = bool((values < scale.low).any()), bool((values > scale.high).any())
    extend = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}[outside]
    layout: dict[str, Any] = {"ax": axes, "shrink": 0.6, "aspect": 30, "pad": 0.02, "extend": extend}
    bar = axes[0].figure.colorbar(ScalarMappable(_normalize(scale), _COLORMAP), **layout)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, color=INK, labelcolor=INK)


def _add_legend(host: Axes | FigureBase, categories: Categories) -> None:
    """Add a legend below axes or a figure, unless it would have more than 40 entries."""
    if not 1 <= len(categories.names) <= _MAX_LEGEND or categories.names == ("",):
        return
    entries = list(zip(map(shorten, categories.names), colours(len(categories.names)), strict=True))
    if categories.missing.any():
        entries.append(("no label", MISSING))
    handles = [
        Line2D([], [], linestyle="", marker="o", markersize=6, markeredgewidth=0, color=colour, label=name)
        for name, colour in entries
    ]
    width = host.get_window_extent().width * 72 / host.figure.dpi
    entry_width = max(len(name) for name, _ in entries) * 5.5 + 24  # in points, for a font size of 9
    n_rows = math.ceil(len(entries) / max(1, int(width / entry_width)))
    style: dict[str, Any] = {"handles": handles, "ncols": math.ceil(len(entries) / n_rows), "columnspacing": 1.2}
    style |= {"frameon": False, "fontsize": 9, "labelcolor": INK, "handletextpad": 0.1}
    if isinstance(host, FigureBase):
        host.legend(loc="outside lower center", **style)
    else:
        host.legend(loc="upper center", bbox_to_anchor=(0.5, 0), **style)


def _normalize(scale: Scale) -> Normalize:
    return Normalize(scale.low, scale.high, clip=True)


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
