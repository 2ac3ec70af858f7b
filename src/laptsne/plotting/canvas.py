"""Figures, axes and what is drawn on them: points, density shading if they are many, legends and colour bars.

This module imports matplotlib, which is slow; public functions import it only to draw.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

try:
    from matplotlib import colormaps
    from matplotlib import pyplot as plt
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap, LogNorm, Normalize, to_rgba_array
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
except ImportError as error:
    raise ImportError('plotting requires matplotlib; install it with pip install "laptsne[plot]".') from error

from laptsne._runtime.colours import MISSING, MISSING_ON_DARK, Categories, LabelEncoding, Scale, category_colours
from laptsne._runtime.typing import Array, Floats

MAX_MARKERS = 200_000  # points beyond which density is shaded: markers would merge into blots, and take seconds
_ZOOM = 0.92  # of three-dimensional axes, of which no view is cut off
_GRID = 64  # cells per side in which the density of points is counted
_MARKER_AREAS = (0.8, 22.0)  # smallest and largest, in square points
_BINS = 100  # of the histogram of one dimension

# Density shading
_CELLS = 3.0  # pixels of the image per typographic point
_MARGIN = 0.05  # around the map, relative to its extent
_SIGMA = 0.45  # width of a point, in typographic points
_LONE = 1 / (2 * np.pi * _SIGMA**2)  # density at the centre of a point without others near it, per square point
_FAINTEST = 0.4  # opacity of a lone point
_CROWDED = 0.99  # quantile of the density that is opaque

# Colours
_DARK = 0.4  # luma below which a background is dark
_LEAST_POSITIVE = 0.01  # quantile of the positive values at which a logarithmic scale begins
_SAMPLED = 256  # entries of a colour map that are colours of a gradient rather than of a palette
# As in the explorer: ten colours of viridis and those between, without the end that is hardly visible.
_VIRIDIS = LinearSegmentedColormap.from_list("viridis", colormaps["viridis"](np.linspace(0, 1, 10)), N=1000)
_COLORMAP = ListedColormap(_VIRIDIS(np.linspace(0, 0.94, _SAMPLED)), "laptsne")
_COLORMAP_ON_DARK = ListedColormap(_VIRIDIS(np.linspace(0.14, 1, _SAMPLED)), "laptsne_on_dark")

# Legends and colour bars
_MAX_ENTRIES = 40  # of a legend
_FONT_SIZE = 9.0
_LINE = 1.55 * _FONT_SIZE  # height of an entry, in points
_COLOUR_BAR, _LABEL = 0.9, 0.2  # width with its ticks, and of its name, in inches
_PAD = 0.05  # beside a legend, in inches
_DAY = 86_400_000  # milliseconds
_DEFAULT_SHARE = 0.8  # height of axes before a layout engine enlarges them
_LEAST_SHARE = 0.4  # of the width of the axes that a legend beside them must leave
_MAX_NAME_LENGTH, _LONG_NAME_START = 48, 28

Palette = str | Colormap | Sequence[Any] | Mapping[Any, Any]


@dataclass(frozen=True)
class Colouring:
    """Labels, the colours of the points, of shape (n_samples, 4), and what a legend or a colour bar shows."""

    encoding: LabelEncoding
    rgba: Floats
    entries: Sequence[tuple[str, Any]] = ()  # names and colours of the categories, unless they are too many
    mappable: ScalarMappable | None = None  # of numbers
    name: str = ""  # of the numbers


def is_dark(ax: Any = None) -> bool:
    """Whether the background of axes, or of new ones, is dark."""
    given = isinstance(ax, Axes)
    face = to_rgba_array(ax.get_facecolor() if given else plt.rcParams["axes.facecolor"])[0]
    if face[3] == 0:  # transparent
        face = to_rgba_array(ax.figure.get_facecolor() if given else plt.rcParams["figure.facecolor"])[0]
    return bool(face[3] and np.dot(face[:3], [0.2126, 0.7152, 0.0722]) < _DARK)


def make_colouring(
    encoding: LabelEncoding,
    palette: Palette | None = None,
    cmap: str | Colormap | None = None,
    *,
    missing_name: str = "no label",
    name: Any = None,
    dark: bool = False,
    log: bool = False,
) -> Colouring:
    """Return the colours of labels; a palette also serves numbers, and a colour map categories, if given alone."""
    missing = MISSING_ON_DARK if dark else MISSING
    if isinstance(encoding, Categories):
        known = _category_rgba(encoding, cmap if palette is None else palette, dark=dark)
        rgba = np.concatenate([known, to_rgba_array(missing)])
        present = np.flatnonzero(encoding.counts)
        entries: list[tuple[str, Any]] = []
        if 1 <= present.size <= _MAX_ENTRIES and encoding.names != ("",):
            entries = [(shorten(encoding.names[code]), rgba[code]) for code in present]
            entries += [(missing_name, missing)] if encoding.missing.any() else []
        return Colouring(encoding, rgba[encoding.codes], entries)
    chosen = palette if cmap is None else cmap
    if chosen is not None and not isinstance(chosen, str | Colormap):
        raise ValueError("palette must be the name of a colour map for numbers; pass cmap, or continuous=False.")
    default = _COLORMAP_ON_DARK if dark else _COLORMAP
    cmap = default if chosen is None else colormaps.get_cmap(chosen)
    norm = _norm(encoding, log=log)
    mappable = ScalarMappable(norm, cmap.with_extremes(bad=missing))
    return Colouring(encoding, mappable.to_rgba(encoding.values), mappable=mappable, name=str(name or ""))


def _norm(scale: Scale, *, log: bool) -> Normalize:
    """Return the range of the colours, of logarithms of the positive values if that is wanted."""
    low, high, positive = scale.low, scale.high, scale.values[scale.values > 0]
    if log and positive.size:
        low = max(low, float(np.quantile(positive, _LEAST_POSITIVE)))
        if low < high:
            return LogNorm(low, high, clip=True)
    margin = 0.0 if low < high else 0.5
    return Normalize(low - margin, high + margin, clip=True)


def add_key_beside(ax: Axes, colouring: Colouring) -> float:
    """Add a legend or a colour bar to the right of the axes; return the width it takes, in inches."""
    if isinstance(colouring.encoding, Scale):
        _add_colour_bar(ax, colouring, colouring.encoding)
        return _COLOUR_BAR + (_LABEL if colouring.name else 0)
    if not colouring.entries:
        return 0.0
    n_columns = math.ceil(len(colouring.entries) * _LINE / max(size_in_points(ax)[1], _LINE))
    place = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "borderaxespad": 0.4}
    legend = _add_legend(ax, colouring, n_columns, **place)
    width = float(legend.get_window_extent().width) / ax.figure.dpi
    spec = ax.get_subplotspec()
    if spec is not None and ax.figure.get_layout_engine() is None:
        # The axes become narrower, as by a colour bar, or the legend would be cut.
        share = min((width + _PAD) * ax.figure.dpi / ax.figure.bbox.width / ax.get_position().width, 1 - _LEAST_SHARE)
        ax.set_subplotspec(spec.subgridspec(1, 2, width_ratios=(1 - share, share), wspace=0)[0])
    return width


def size_in_points(ax: Axes) -> Floats:
    """Return width and height of axes, about as a layout engine will enlarge them."""
    share = 1.0 if ax.figure.get_layout_engine() is None else _DEFAULT_SHARE
    return np.asarray(ax.get_window_extent().size) * 72 / ax.figure.dpi / share


def add_key_below(host: Figure, axes: list[Axes], colouring: Colouring) -> None:
    """Add one colour bar beside all axes, or one legend below them."""
    if isinstance(colouring.encoding, Scale):
        _add_colour_bar(axes, colouring, colouring.encoding)
    elif colouring.entries:
        width = host.get_window_extent().width * 72 / host.figure.dpi
        entry_width = max(len(name) for name, _ in colouring.entries) * 0.6 * _FONT_SIZE + 24  # in points
        _add_legend(host, colouring, max(1, int(width / entry_width)), loc="outside lower center")


def shorten(name: str) -> str:
    """Return a name on one line of at most 48 characters; long ones keep their end, in which they often differ."""
    line = " ".join(name.split())
    excess = len(line) - _MAX_NAME_LENGTH
    return line if excess <= 0 else f"{line[:_LONG_NAME_START]}…{line[_LONG_NAME_START + 1 + excess :]}"


def _category_rgba(categories: Categories, palette: Any, *, dark: bool) -> Floats:
    """Return one colour per category; a shorter sequence is repeated, and names that a mapping lacks are grey."""
    n_names = len(categories.names)
    if palette is None:
        chosen: Any = category_colours(categories.counts, dark=dark)
    elif isinstance(palette, Mapping):
        by_name = {str(name): colour for name, colour in palette.items()}
        chosen = [by_name.get(name, MISSING_ON_DARK if dark else MISSING) for name in categories.names]
    elif isinstance(palette, str | Colormap):
        cmap = colormaps.get_cmap(palette)  # a qualitative one, or a gradient
        chosen = cmap(np.arange(n_names) % cmap.N if cmap.N < _SAMPLED else np.linspace(0, 1, n_names))
    elif len(palette) == 0:
        raise ValueError("palette has no colours; give at least one, or None for the default.")
    else:
        chosen = [palette[i % len(palette)] for i in range(n_names)]
    try:
        return to_rgba_array(chosen) if n_names else np.empty((0, 4))
    except ValueError as error:
        raise ValueError(f"{palette!r} must be colours that matplotlib knows, such as 'tab:blue': {error}.") from None


def _add_legend(host: Any, colouring: Colouring, n_columns: int, **place: Any) -> Legend:
    marker: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 6, "markeredgewidth": 0}
    handles = [Line2D([], [], color=colour, label=name, **marker) for name, colour in colouring.entries]
    style = {"frameon": False, "fontsize": _FONT_SIZE, "handletextpad": 0.1, "columnspacing": 1.2}
    legend: Legend = host.legend(handles=handles, ncols=n_columns, **place, **style)
    for text in legend.get_texts():
        text.set_parse_math(False)  # names may have dollar signs
    return legend


def _add_colour_bar(axes: Any, colouring: Colouring, scale: Scale) -> None:
    """Add a colour bar on the right, with arrows if values lie outside its range."""
    mappable: Any = colouring.mappable
    below, above = bool((scale.values < mappable.norm.vmin).any()), bool((scale.values > mappable.norm.vmax).any())
    extend = [["neither", "max"], ["min", "both"]][below][above]
    if scale.are_times:  # matplotlib's dates are in days
        mappable.set_clim(*np.divide(mappable.get_clim(), _DAY))
    layout: dict[str, Any] = {"ax": axes, "shrink": 0.6, "aspect": 30, "pad": 0.02, "extend": extend}
    bar = np.ravel(axes)[0].figure.colorbar(mappable, **layout)
    if scale.are_times:
        locator = AutoDateLocator()  # type: ignore[no-untyped-call]
        bar.ax.yaxis.set_major_locator(locator)
        bar.ax.yaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8)
    bar.ax.set_ylabel(colouring.name, fontsize=_FONT_SIZE, parse_math=False)


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
        raise ValueError(f"Y has {n_components} components, but the axes have the projection {ax.name!r}; pass others.")
    return ax, is_default


def draw_points(
    ax: Any, Y: Array, colouring: Colouring, *, rasterized: bool | None, s: Any = None, alpha: float | None = None
) -> None:
    """Draw an embedding: points without label first, all others shuffled; one dimension as a stacked histogram."""
    n_samples, n_components = Y.shape
    _clear(ax, n_components)
    if n_samples == 0:
        return
    rgba, missing = colouring.rgba, colouring.encoding.missing
    if n_components == 1:
        colours, codes = np.unique(rgba, axis=0, return_inverse=True)
        groups = [Y[codes.ravel() == code, 0] for code in range(len(colours))]
        ax.hist(groups, _BINS, stacked=True, histtype="stepfilled", color=colours, alpha=alpha, rasterized=rasterized)
    elif s is None and n_components == 2 and n_samples > MAX_MARKERS:
        for shown in (missing, ~missing):
            if shown.any():
                _draw_density(ax, Y, rgba, shown, alpha)
    else:
        size, opacity = _size_and_alpha(ax, Y[:, :2])
        order = np.random.default_rng(0).permutation(n_samples)  # or the last label would cover all others
        order = order[np.argsort(~missing[order], kind="stable")]
        areas = np.asarray(size if s is None else s)
        style = {"alpha": opacity if alpha is None else alpha, "linewidths": 0, "rasterized": rasterized}
        ax.scatter(*Y[order].T, s=areas[order] if areas.ndim else areas, c=rgba[order], **style)
        if n_components == 3:  # once the limits are known
            ax.set_aspect("equal")
            ax.set_box_aspect(ax.get_box_aspect(), zoom=_ZOOM)


def draw_panels(
    panels: Iterable[tuple[str, Array]],
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
    axes = [figure.add_subplot(n_rows, n_columns, i + 1, box_aspect=1) for i in range(len(maps))]
    for ax, Y, title in zip(axes, maps, titles, strict=True):
        draw_points(ax, Y, colouring, rasterized=rasterized)
        ax.set_title(str(title), fontsize=fontsize)
    add_key_below(figure, axes, colouring)
    return figure


def _draw_density(ax: Axes, Y: Array, rgba: Floats, shown: Any, alpha: float | None) -> None:
    """Draw points as an image with opacity by the logarithm of their density; pixels have their points' mean colour."""
    low, span = Y.min(axis=0), np.ptp(Y, axis=0)
    span[span == 0] = span.max() or 1.0
    low, high = low - _MARGIN * span, low + (1 + _MARGIN) * span
    scale = _CELLS * 72 / ax.figure.dpi * min(ax.get_window_extent().size / span)  # cells per unit of the map
    n_columns, n_rows = np.ceil((high - low) * scale).astype(int)
    cells = ((Y - low) * scale).astype(np.intp)[shown] @ [1, n_columns]

    def blurred(weights: Array | None) -> NDArray[np.float32]:
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
        ax.set(zticks=[])
        for axis, grey in ((ax.xaxis, 0.95), (ax.yaxis, 0.97), (ax.zaxis, 0.93)):
            axis.line.set_color((0, 0, 0, 0))
            shade = 1.07 - grey if is_dark(ax) else grey
            axis.set_pane_color((shade, shade, shade, 1))
        return
    ax.spines[:].set_visible(False)
    if n_components == 2:
        shared = all(len(group.get_siblings(ax)) > 1 for group in (ax.get_shared_x_axes(), ax.get_shared_y_axes()))
        # "datalim": panels have the same size whatever the shape of the map; matplotlib refuses it for shared axes.
        ax.set(aspect="equal", adjustable="box" if shared else "datalim")


def _size_and_alpha(ax: Axes, Y: Array) -> tuple[float, float]:
    """Return the marker area and opacity at which a typical point fills its surroundings without hiding others."""
    box, points = ax.get_window_extent(), 72 / ax.figure.dpi
    extent = np.maximum(np.ptp(Y, axis=0), 1e-300)
    # The smallest square around the embedding as it is drawn, in square points.
    area = float((min(box.width / extent[0], box.height / extent[1]) * max(extent) * points) ** 2)
    cells = np.minimum((Y - Y.min(axis=0)) / max(extent) * _GRID, _GRID - 1).astype(np.intp)
    cell, counts = np.unique(cells @ [_GRID, 1], return_inverse=True, return_counts=True)[1:]
    area_per_point = area / _GRID**2 / float(np.median(counts[cell]))
    # If there are few points, each must be visible even where they overlap.
    minimum = min(15_000 / len(Y), 8.0) * min(math.sqrt(area) / 400, 1.0)
    size = float(np.clip(max(2 * area_per_point, minimum), *_MARKER_AREAS))
    return size, float(np.clip(0.85 * (2 * area_per_point / size) ** 0.2, 0.35, 0.85))
