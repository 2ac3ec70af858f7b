"""Keys to the colours: a legend of categories or a colour bar of numbers, beside the map or below several."""

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import FigureBase
from matplotlib.legend import Legend
from matplotlib.lines import Line2D

from laptsne.colours.label_encoding import Categories, Scale, shorten
from laptsne.colours.palette import MISSING
from laptsne.plotting.colouring import Colouring

_MAX_ENTRIES = 40
_FONT_SIZE = 9.0
_LINE = 1.55 * _FONT_SIZE  # height of an entry, in points
_COLOUR_BAR = 0.9  # width with its ticks, in inches
_PAD = 0.05  # beside a legend, in inches
_DAY = 86_400_000  # milliseconds
_DEFAULT_SHARE = 0.8  # height of axes before a layout engine enlarges them
_LEAST_SHARE = 0.4  # of the width of the axes that a legend beside them must leave


def add_key_beside(ax: Axes, colouring: Colouring) -> float:
    """Add a legend or a colour bar to the right of the axes; return the width it takes, in inches."""
    if isinstance(colouring.encoding, Scale):
        _add_colour_bar(ax, colouring, colouring.encoding)
        return _COLOUR_BAR
    entries = _entries(colouring)
    if not entries:
        return 0.0
    has_layout = ax.figure.get_layout_engine() is not None
    height = ax.get_window_extent().height * 72 / ax.figure.dpi / (_DEFAULT_SHARE if has_layout else 1)
    n_columns = math.ceil(len(entries) * _LINE / max(height, _LINE))
    place: dict[str, Any] = {
        "loc": "center left",
        "bbox_to_anchor": (1.0, 0.5),
        "borderaxespad": 0.4,
        "ncols": n_columns,
    }
    legend = _plain(ax.legend(handles=_handles(entries), **place, **_style()))
    width = float(legend.get_window_extent().width) / ax.figure.dpi
    if not has_layout:
        _make_room(ax, width)
    return width


def add_key_below(host: FigureBase, axes: list[Axes], colouring: Colouring) -> None:
    """Add one colour bar beside all axes, or one legend below them."""
    if isinstance(colouring.encoding, Scale):
        _add_colour_bar(axes, colouring, colouring.encoding)
        return
    entries = _entries(colouring)
    if not entries:
        return
    width = host.get_window_extent().width * 72 / host.figure.dpi
    entry_width = max(len(name) for name, _ in entries) * 0.6 * _FONT_SIZE + 24  # in points
    n_rows = math.ceil(len(entries) / max(1, int(width / entry_width)))
    n_columns = math.ceil(len(entries) / n_rows)
    _plain(host.legend(handles=_handles(entries), loc="outside lower center", ncols=n_columns, **_style()))


def has_entries(colouring: Colouring) -> bool:
    """Return whether the categories are few enough for a legend."""
    return bool(_entries(colouring))


def _entries(colouring: Colouring) -> list[tuple[str, Any]]:
    """Return names and colours of the categories that occur, none if they are too many for a legend."""
    categories = colouring.encoding
    assert isinstance(categories, Categories)
    present = np.flatnonzero(categories.counts)
    if not 1 <= present.size <= _MAX_ENTRIES or categories.names == ("",):
        return []
    entries = [(shorten(categories.names[code]), colouring.colours[code]) for code in present]
    return [*entries, (colouring.missing_name, MISSING)] if categories.missing.any() else entries


def _handles(entries: list[tuple[str, Any]]) -> list[Line2D]:
    style: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 6, "markeredgewidth": 0}
    return [Line2D([], [], color=colour, label=name, **style) for name, colour in entries]


def _style() -> dict[str, Any]:
    return {"frameon": False, "fontsize": _FONT_SIZE, "handletextpad": 0.1, "columnspacing": 1.2}


def _plain(legend: Legend) -> Legend:
    """Return a legend whose names are text even if they have dollar signs."""
    for text in legend.get_texts():
        text.set_parse_math(False)
    return legend


def _make_room(ax: Axes, width: float) -> None:
    """Narrow the axes of a figure without a layout engine as a colour bar would, so that the legend is not cut."""
    position, spec = ax.get_position(), ax.get_subplotspec()
    taken = (width + _PAD) * ax.figure.dpi / ax.figure.bbox.width / position.width
    share = min(taken, 1 - _LEAST_SHARE)
    if spec is None:
        ax.set_position((position.x0, position.y0, (1 - share) * position.width, position.height))
    else:  # a part of the grid is kept when tight_layout or subplots_adjust is called later
        ax.set_subplotspec(spec.subgridspec(1, 2, width_ratios=(1 - share, share), wspace=0)[0])


def _add_colour_bar(axes: Axes | list[Axes], colouring: Colouring, scale: Scale) -> None:
    """Add a colour bar on the right, with arrows if values lie outside its range."""
    values = scale.values[~scale.missing]
    outside = bool((values < scale.low).any()), bool((values > scale.high).any())
    extend = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}[outside]
    norm = colouring.norm()
    if scale.are_times:  # matplotlib's dates are in days
        norm.vmin, norm.vmax = norm.vmin / _DAY, norm.vmax / _DAY  # type: ignore[operator]
    layout: dict[str, Any] = {"ax": axes, "shrink": 0.6, "aspect": 30, "pad": 0.02, "extend": extend}
    figure = (axes[0] if isinstance(axes, list) else axes).figure
    bar = figure.colorbar(ScalarMappable(norm, colouring.cmap), **layout)
    if scale.are_times:
        locator = AutoDateLocator()  # type: ignore[no-untyped-call]
        bar.ax.yaxis.set_major_locator(locator)
        bar.ax.yaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8)
