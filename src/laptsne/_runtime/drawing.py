"""Maps drawn by matplotlib without pyplot: still images and films, for modules below those of figures."""

from typing import Any

import numpy as np

from laptsne._runtime.colours import MISSING, Categories, LabelEncoding, category_colours
from laptsne._runtime.typing import Array

_MAX_ENTRIES = 24  # of the legend
_AREA, _LEAST, _MOST = 12_000.0, 0.3, 20.0  # of all markers, and of the smallest and the largest, in square points
_LEGEND: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "frameon": False, "fontsize": 8}


def draw_map(Y: Array, encoding: LabelEncoding, title: str = "") -> Any:
    """Return the points of a map in two dimensions, drawn on a new figure with a legend or a colour bar."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415  matplotlib is optional, and slow to import
        from matplotlib.lines import Line2D  # noqa: PLC0415
    except ImportError as error:
        raise ImportError('images of maps require matplotlib; install it with pip install "laptsne[plot]".') from error
    figure = Figure(figsize=(6.4, 5.2), dpi=100)
    ax = figure.add_axes((0.02, 0.02, 0.72, 0.9), aspect="equal", anchor="W")
    ax.set_axis_off()
    ax.set_title(title, loc="left", parse_math=False)
    style: dict[str, Any] = {"s": np.clip(_AREA / len(Y), _LEAST, _MOST), "linewidths": 0}
    if not isinstance(encoding, Categories):
        return ax.scatter(Y[:, 0], Y[:, 1], c=encoding.values, vmin=encoding.low, vmax=encoding.high, **style)
    colours = category_colours(encoding.counts)
    points = ax.scatter(Y[:, 0], Y[:, 1], c=np.array([*colours, MISSING])[encoding.codes], **style)
    if 1 < len(colours) <= _MAX_ENTRIES:
        entries = zip(colours, encoding.names, strict=True)
        marks = [Line2D([], [], ls="", marker="o", ms=5, mew=0, c=colour, label=name[:24]) for colour, name in entries]
        for text in ax.legend(handles=marks, **_LEGEND).get_texts():
            text.set_parse_math(False)  # names may have dollar signs
    return points
