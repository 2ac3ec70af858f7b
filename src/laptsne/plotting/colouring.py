"""Colours of points, and the key to them: a legend of categories or a colour bar of numbers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap, Normalize, to_rgba_array
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import FigureBase
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from laptsne._runtime.colours import MISSING, Categories, LabelEncoding, Scale, category_colours

_SAMPLED = 256  # entries of a colour map that are colours of a gradient rather than of a palette
# As in the explorer: ten colours of viridis and those between, without the yellow end, hardly visible on white.
_VIRIDIS = LinearSegmentedColormap.from_list("viridis", colormaps["viridis"](np.linspace(0, 1, 10)), N=1000)
_COLORMAP = ListedColormap(_VIRIDIS(np.linspace(0, 0.94, _SAMPLED)), "laptsne")

_MAX_ENTRIES = 40  # of a legend
_FONT_SIZE = 9.0
_LINE = 1.55 * _FONT_SIZE  # height of an entry, in points
_COLOUR_BAR = 0.9  # width with its ticks, in inches
_PAD = 0.05  # beside a legend, in inches
_DAY = 86_400_000  # milliseconds
_DEFAULT_SHARE = 0.8  # height of axes before a layout engine enlarges them
_LEAST_SHARE = 0.4  # of the width of the axes that a legend beside them must leave
_MAX_NAME_LENGTH = 40

Palette = str | Colormap | Sequence[Any] | Mapping[Any, Any]


@dataclass(frozen=True)
class Colouring:
    """Labels and the colours of their categories, of shape (n_categories, 4), or their colour map."""

    encoding: LabelEncoding
    colours: NDArray[np.float64]
    cmap: Colormap
    missing_name: str

    def rgba(self) -> NDArray[np.float64]:
        """Return the colour of each point, of shape (n_samples, 4)."""
        if isinstance(self.encoding, Categories):
            return np.concatenate([self.colours, to_rgba_array(MISSING)])[self.encoding.codes]
        return np.asarray(self.cmap.with_extremes(bad=MISSING)(self.norm()(self.encoding.values)))

    @property
    def entries(self) -> list[tuple[str, Any]]:
        """Names and colours of the categories that occur; none if they are too many for a legend."""
        categories = self.encoding
        assert isinstance(categories, Categories)
        present = np.flatnonzero(categories.counts)
        if not 1 <= present.size <= _MAX_ENTRIES or categories.names == ("",):
            return []
        entries = [(shorten(categories.names[code]), self.colours[code]) for code in present]
        return [*entries, (self.missing_name, MISSING)] if categories.missing.any() else entries

    def norm(self) -> Normalize:
        """Return the map from numbers to the interval that the colour map covers."""
        assert isinstance(self.encoding, Scale)
        low, high = self.encoding.low, self.encoding.high
        margin = 0.0 if low < high else 0.5
        return Normalize(low - margin, high + margin, clip=True)


def make_colouring(
    encoding: LabelEncoding,
    palette: Palette | None = None,
    cmap: str | Colormap | None = None,
    missing_name: str = "no label",
) -> Colouring:
    """Return the colours of labels; a palette also serves numbers, and a colour map categories, if given alone."""
    if isinstance(encoding, Categories):
        rgba = _category_rgba(encoding, cmap if palette is None else palette)
        return Colouring(encoding, rgba, _COLORMAP, missing_name)
    chosen = palette if cmap is None else cmap
    if chosen is not None and not isinstance(chosen, str | Colormap):
        raise ValueError("palette must be the name of a colour map for numbers; pass cmap, or continuous=False.")
    cmap = _COLORMAP if chosen is None else colormaps.get_cmap(chosen)
    return Colouring(encoding, np.empty((0, 4)), cmap, missing_name)


def add_key_beside(ax: Axes, colouring: Colouring) -> float:
    """Add a legend or a colour bar to the right of the axes; return the width it takes, in inches."""
    if isinstance(colouring.encoding, Scale):
        _add_colour_bar(ax, colouring, colouring.encoding)
        return _COLOUR_BAR
    entries = colouring.entries
    if not entries:
        return 0.0
    has_layout = ax.figure.get_layout_engine() is not None
    height = ax.get_window_extent().height * 72 / ax.figure.dpi / (_DEFAULT_SHARE if has_layout else 1)
    n_columns = math.ceil(len(entries) * _LINE / max(height, _LINE))
    legend = _add_legend(ax, entries, n_columns, loc="center left", bbox_to_anchor=(1.0, 0.5), borderaxespad=0.4)
    width = float(legend.get_window_extent().width) / ax.figure.dpi
    spec = ax.get_subplotspec()
    if spec is not None and not has_layout:  # the axes become narrower, as by a colour bar, or the legend would be cut
        share = min((width + _PAD) * ax.figure.dpi / ax.figure.bbox.width / ax.get_position().width, 1 - _LEAST_SHARE)
        ax.set_subplotspec(spec.subgridspec(1, 2, width_ratios=(1 - share, share), wspace=0)[0])
    return width


def add_key_below(host: FigureBase, axes: list[Axes], colouring: Colouring) -> None:
    """Add one colour bar beside all axes, or one legend below them."""
    if isinstance(colouring.encoding, Scale):
        _add_colour_bar(axes, colouring, colouring.encoding)
    elif entries := colouring.entries:
        width = host.get_window_extent().width * 72 / host.figure.dpi
        entry_width = max(len(name) for name, _ in entries) * 0.6 * _FONT_SIZE + 24  # in points
        n_rows = math.ceil(len(entries) / max(1, int(width / entry_width)))
        _add_legend(host, entries, math.ceil(len(entries) / n_rows), loc="outside lower center")


def shorten(name: str) -> str:
    """Return a name on one line, truncated to 40 characters."""
    line = " ".join(name.split())
    return line if len(line) <= _MAX_NAME_LENGTH else line[: _MAX_NAME_LENGTH - 1] + "…"


def _category_rgba(categories: Categories, palette: Any) -> NDArray[np.float64]:
    """Return one colour per category; a shorter sequence is repeated, and names that a mapping lacks are grey."""
    n_names = len(categories.names)
    if palette is None:
        chosen: Any = category_colours(categories.counts.tolist())
    elif isinstance(palette, Mapping):
        by_name = {str(name): colour for name, colour in palette.items()}
        chosen = [by_name.get(name, MISSING) for name in categories.names]
    elif isinstance(palette, str | Colormap):
        cmap = colormaps.get_cmap(palette)  # a qualitative one, or a gradient
        chosen = cmap(np.arange(n_names) % cmap.N if cmap.N < _SAMPLED else np.linspace(0, 1, n_names))
    else:
        chosen = [palette[i % len(palette)] for i in range(n_names)] if len(palette) else []
    try:
        return to_rgba_array(chosen) if n_names else np.empty((0, 4))
    except ValueError as error:
        raise ValueError(f"palette={palette!r} must have colours that matplotlib knows: {error}.") from None


def _add_legend(host: Any, entries: list[tuple[str, Any]], n_columns: int, **place: Any) -> Legend:
    marker: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 6, "markeredgewidth": 0}
    handles = [Line2D([], [], color=colour, label=name, **marker) for name, colour in entries]
    style = {"frameon": False, "fontsize": _FONT_SIZE, "handletextpad": 0.1, "columnspacing": 1.2}
    legend: Legend = host.legend(handles=handles, ncols=n_columns, **place, **style)
    for text in legend.get_texts():
        text.set_parse_math(False)  # names may have dollar signs
    return legend


def _add_colour_bar(axes: Any, colouring: Colouring, scale: Scale) -> None:
    """Add a colour bar on the right, with arrows if values lie outside its range."""
    below, above = bool((scale.values < scale.low).any()), bool((scale.values > scale.high).any())
    norm = colouring.norm()
    if scale.are_times:  # matplotlib's dates are in days
        norm.vmin, norm.vmax = norm.vmin / _DAY, norm.vmax / _DAY  # type: ignore[operator]
    extend = [["neither", "max"], ["min", "both"]][below][above]
    layout: dict[str, Any] = {"ax": axes, "shrink": 0.6, "aspect": 30, "pad": 0.02, "extend": extend}
    bar = np.ravel(axes)[0].figure.colorbar(ScalarMappable(norm, colouring.cmap), **layout)
    if scale.are_times:
        locator = AutoDateLocator()  # type: ignore[no-untyped-call]
        bar.ax.yaxis.set_major_locator(locator)
        bar.ax.yaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8)
