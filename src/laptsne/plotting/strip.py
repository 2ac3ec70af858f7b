"""Embeddings in one dimension: the density of each category above a strip of points."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from laptsne.colours.label_encoding import Categories, Scale
from laptsne.plotting.colouring import Colouring
from laptsne.plotting.islands import Island
from laptsne.plotting.points import MAX_MARKERS, draw_density, draw_markers

_BINS = 400
_BANDWIDTH = 3.0  # of the density, in bins
_TOP, _BOTTOM = -0.06, -0.4  # of the strip; the highest density is at 1
_LOWEST = 0.004  # height below which a curve is not outlined
_INK = 1200.0  # total area of the markers in square points, per inch of width
_AREAS = (1.0, 16.0)  # smallest and largest marker, in square points


def draw_strip(
    ax: Axes,
    y: NDArray[Any],
    colouring: Colouring,
    *,
    s: Any = None,
    alpha: float | None = None,
    rasterized: bool | None = None,
) -> None:
    """Draw positions of shape (n_samples,): the density by category, and below it the points, spread vertically."""
    ax.set(yticks=[], xticks=[], ylim=(_BOTTOM - 0.06, 1.12))
    ax.spines[:].set_visible(False)
    if len(y) == 0:
        return
    curves = densities(y, colouring)
    for colour, x, height in curves:
        ax.fill_between(x, height, color=colour, alpha=0.35, linewidth=0, zorder=1.5)
        outline = np.where(height > _LOWEST, height, np.nan)  # or the last category's colour would run along the base
        ax.plot(x, outline, color=colour, linewidth=1.0, zorder=1.6)
    depths = np.random.default_rng(0).uniform(_BOTTOM, _TOP, len(y))
    Y = np.column_stack([y, depths])
    if s is None and len(y) > MAX_MARKERS:
        draw_density(ax, Y, colouring, alpha)
    else:
        width = ax.get_window_extent().width / ax.figure.dpi
        size = float(np.clip(_INK * width / len(y), *_AREAS)) if s is None else s
        draw_markers(ax, Y, colouring, s=size, alpha=0.6 if alpha is None else alpha, rasterized=rasterized)
    ax.set_ylim(_BOTTOM - 0.06, 1.12)


def densities(y: NDArray[Any], colouring: Colouring) -> list[tuple[Any, NDArray[Any], NDArray[Any]]]:
    """Return colour, positions and height of one curve per category, or of one for all points with numbers."""
    low, high = float(y.min()), float(y.max())
    margin = 0.03 * (high - low) or 0.5
    edges = np.linspace(low - margin, high + margin, _BINS + 1)
    encoding = colouring.encoding
    groups: list[tuple[Any, Any]] = [("#9a9a9a", slice(None))]
    if isinstance(encoding, Categories):
        groups = [(colouring.colours[code], encoding.codes == code) for code in np.flatnonzero(encoding.counts)]
    counts = [gaussian_filter1d(np.histogram(y[rows], edges)[0].astype(np.float64), _BANDWIDTH) for _, rows in groups]
    highest = max((float(count.max()) for count in counts), default=1.0)
    centres = (edges[:-1] + edges[1:]) / 2
    return [(colour, centres, count / highest) for (colour, _), count in zip(groups, counts, strict=True)]


def raised(islands: list[Island], y: NDArray[Any], colouring: Colouring) -> list[Island]:
    """Return islands of one dimension as regions under their category's curve, where their names belong."""
    assert not isinstance(colouring.encoding, Scale)
    names = [colouring.encoding.names[code] for code in np.flatnonzero(colouring.encoding.counts)]
    curves = dict(zip(names, densities(y, colouring), strict=True))
    found = []
    for island in islands:
        x = island.points[:, 0]
        heights = np.interp(x, *curves[island.name][1:])
        found.append(Island(island.name, np.column_stack([x, heights / 2])))
    return found
