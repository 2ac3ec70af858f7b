"""Names of categories, written at the centres of their islands and moved apart where they would overlap."""

from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np
from matplotlib.backend_bases import RendererBase
from matplotlib.collections import LineCollection
from matplotlib.patheffects import withStroke
from matplotlib.transforms import IdentityTransform
from scipy.ndimage import label
from scipy.spatial import cKDTree

from laptsne._runtime.colours import INK, Categories, Scale
from laptsne._runtime.typing import Array
from laptsne.plotting.canvas import Colouring, add_key_beside, shorten, size_in_points

# Islands
_CELLS = 32  # per side of the map: gaps narrower than one of them do not separate islands
_SPACING = 3.0  # cells are at least this multiple of the distance between neighbours
_MIN_SHARE, _MIN_POINTS = 0.12, 3  # of a category, that an island must have to be named
_SAMPLE = 2000  # points of a category that are looked at
_SCATTERED = 0.85  # categories whose spread is more than this share of the map's have no region of their own

# Names
_GAP = 1.5  # between names, in points
_OUTLINE = 1.15  # width of outlined letters, which are drawn as paths, relative to that of glyphs, at most
_LEADER = 4.0  # distance between a name and its anchor, in points, beyond which a line connects them
_COVERED = 1.3  # a cluster smaller than this multiple of its name's size would be covered by it
_MAX_COVERAGE = 0.36  # share of the axes that names may take up
_LETTER = 0.62 * 1.3 * 1.4  # area of a bold letter in broken lines, relative to the square of the font size
_FONT_SIZES = (6.0, 9.0)  # smallest and largest, in points
_LINE = 24  # characters, beyond which a name is broken into lines
_MANY, _LONG = 12, 20  # names, and characters of one, beyond which a legend would be large
_RINGS, _DIRECTIONS = 200, 48  # places around an anchor where a name is tried


class Island(NamedTuple):
    """Points of a category that lie together."""

    name: str
    centre: Array  # the member nearest to the median, which itself may lie outside, as in a ring
    core: Array  # lower left and upper right corner of a box around the half of the points nearest to the centre
    size: float  # number of points


def find_islands(Y: Array, categories: Categories, *, every: bool = False) -> list[Island]:
    """Return the islands of 12 % of their category or more, the largest first; with ``every``, at least one of each."""
    extent = float(np.ptp(Y, axis=0).max()) if len(Y) else 0.0
    found = []
    for code in np.flatnonzero(categories.counts):
        members = Y[categories.codes == code]
        sample = members[:: -(-len(members) // _SAMPLE)]  # evenly spaced: their order means nothing
        for part in _parts(sample, extent, every=every):
            centre = part[np.argmin(np.linalg.norm(part - np.median(part, axis=0), axis=1))]
            distances = np.linalg.norm(part - centre, axis=1)
            near = part[distances <= np.median(distances)]
            core = np.array([near.min(axis=0), near.max(axis=0)])
            found.append(Island(categories.names[code], centre, core, len(members) * len(part) / len(sample)))
    return sorted(found, key=lambda island: -island.size)


def name_labels(ax: Any, Y: Array, colouring: Colouring, where: str | None) -> float:
    """Name the labels on the map or beside it; return the width in inches that a legend or colour bar takes."""
    encoding = colouring.encoding
    if where is None or (isinstance(encoding, Categories) and encoding.names in ((), ("",))):
        return 0.0
    if isinstance(encoding, Scale) or where == "right" or Y.shape[1] != 2:
        return add_key_beside(ax, colouring)
    names = [shorten(name) for name, count in zip(encoding.names, encoding.counts, strict=True) if count]
    is_large = len(names) > _MANY or max(map(len, names), default=0) > _LONG  # the legend
    islands = find_islands(Y, encoding, every=where == "on" or is_large)
    letters = sum(len(shorten(island.name)) for island in islands)
    fitting = np.sqrt(_MAX_COVERAGE * size_in_points(ax).prod() / (_LETTER * max(letters, 1)))
    fontsize = float(np.clip(min(fitting, 11 - 0.1 * len({island.name for island in islands})), *_FONT_SIZES))
    if where == "auto" and (fitting < _FONT_SIZES[0] or _would_mislead(Y, encoding, islands)):
        return add_key_beside(ax, colouring)
    if islands:
        ax.add_collection(_LeaderLines(ax, islands, fontsize), autolim=False)
    return 0.0


def _would_mislead(Y: Array, labels: Categories, islands: list[Island]) -> bool:
    """Return whether most categories are all over the map, or many have no island."""
    present = np.flatnonzero(labels.counts)
    if present.size < 2 or len({island.name for island in islands}) < 0.75 * present.size:
        return present.size > 1
    spreads = [_spread(Y[labels.codes == code]) for code in present]
    return bool(np.median(spreads) > _SCATTERED * _spread(Y))


def _parts(members: Array, extent: float, *, every: bool) -> list[Array]:
    """Return the groups of members in connected cells of a grid that are large enough to be named."""
    if len(members) < 3 or extent == 0:
        return [members]
    spacing = float(np.median(cKDTree(members).query(members, 2)[0][:, 1]))
    side = max(extent / _CELLS, _SPACING * spacing)
    cells = ((members - members.min(axis=0)) / side).astype(np.intp)
    occupied = np.zeros(cells.max(axis=0) + 1, bool)
    occupied[tuple(cells.T)] = True
    regions = label(occupied, np.ones((3,) * members.shape[1]))[0][tuple(cells.T)]
    counts = np.bincount(regions)
    least = max(min(_MIN_SHARE * len(members), counts.max() if every else np.inf), min(_MIN_POINTS, counts.max()))
    return [members[regions == region] for region in np.flatnonzero(counts >= least)]


def _spread(Y: Array) -> float:
    return float(np.median(np.linalg.norm(Y - np.median(Y, axis=0), axis=1)))


def _in_lines(name: str) -> str:
    """Return a name in as few lines as a name of its length needs, of about equal length."""
    name = shorten(name)
    n_lines = -(-len(name) // _LINE)
    widths = range(-(-len(name) // max(n_lines, 1)), len(name) + 1)
    return next(("\n".join(lines) for width in widths if len(lines := wrap(name, width)) <= n_lines), name)


class _LeaderLines(LineCollection):
    """Lines that connect names to their anchors if they had to be moved far.

    Names are positioned at drawing time, when the sizes of the axes and of the text are known.
    """

    def __init__(self, ax: Any, islands: list[Island], fontsize: float) -> None:
        """Write the name of each island; those given first take precedence."""
        super().__init__([], colors=INK, linewidths=0.6, transform=IdentityTransform(), zorder=4.9)  # below the names
        style: dict[str, Any] = {"xytext": (0, 0), "textcoords": "offset points", "ha": "center", "va": "center"}
        style |= {"linespacing": 1.0}
        style |= {"fontsize": fontsize, "weight": "bold", "color": INK, "zorder": 5, "parse_math": False}
        style |= {"path_effects": [withStroke(linewidth=2.5, foreground="white", alpha=0.85)], "in_layout": False}
        self.notes = [ax.annotate(_in_lines(island.name), tuple(island.centre), **style) for island in islands]
        self.cores = np.array([island.core for island in islands])  # of shape (n_names, 2, 2)
        self.set_in_layout(False)

    def draw(self, renderer: RendererBase) -> None:
        """Position the names, then draw the lines."""
        pixel = float(renderer.points_to_pixels(1.0))  # type: ignore[arg-type]
        assert self.axes is not None
        to_pixels, bounds = self.axes.transData.transform, self.axes.get_window_extent(renderer)
        anchors = to_pixels([note.xy for note in self.notes])
        for note in self.notes:  # those hidden when it was drawn before have no extent
            note.set_visible(True)
        sizes = np.array([note.get_window_extent(renderer).size for note in self.notes])
        sizes = sizes * [_OUTLINE, 1] + _GAP * pixel
        corners = to_pixels(self.cores.reshape(-1, 2)).reshape(-1, 2, 2)
        cores = np.array([corners.mean(axis=1), np.abs(corners[:, 1] - corners[:, 0]) + _GAP * pixel])
        covered = np.all(cores[1] < _COVERED * sizes, axis=1)
        centres = np.full(anchors.shape, np.nan)
        n_placed = int(np.sum(sizes.prod(axis=1).cumsum() <= _MAX_COVERAGE * bounds.width * bounds.height))
        avoided = cores[:, covered]
        centres[:n_placed] = place_boxes(anchors[:n_placed], sizes[:n_placed], bounds.get_points(), avoided)
        for note, offset in zip(self.notes, (centres - anchors) / pixel, strict=True):
            note.set_visible(bool(np.isfinite(offset).all()))
            note.set_position(tuple(np.nan_to_num(offset)))
        ends = np.clip(anchors, centres - sizes / 2, centres + sizes / 2)
        margin = np.where(covered[:, None], cores[1], 0)  # a name right beside its small cluster needs no line
        far = np.hypot(*np.maximum(np.abs(ends - anchors) - margin / 2, 0).T) > _LEADER * pixel
        self.set_segments(np.stack([anchors, ends], axis=1)[far])
        super().draw(renderer)


def place_boxes(anchors: Array, sizes: Array, bounds: Array, avoided: Any = ((), ())) -> Array:
    """Return the centres of boxes placed one after the other, each as near to its anchor as possible.

    All are of shape (n_boxes, 2), with NaN for boxes that do not fit into `bounds`, the lower left and upper right
    corner. `avoided` holds centres and sizes of boxes that are covered only if there is no other free position.
    """
    distances = np.linspace(0, np.hypot(*(bounds[1] - bounds[0])), _RINGS)
    angles = np.linspace(0, 2 * np.pi, _DIRECTIONS, endpoint=False)
    around = (distances[:, None, None] * np.column_stack([np.cos(angles), np.sin(angles)])).reshape(-1, 2)
    centres = np.full(anchors.shape, np.nan)
    for i, (anchor, size) in enumerate(zip(anchors, sizes, strict=True)):
        low, high = bounds + np.array([size / 2, -size / 2])  # of the centre
        places = np.clip(anchor, low, high) + around  # the nearest first
        free = np.all((low <= places) & (places <= high), axis=1) & ~_overlap(places, size, centres[:i], sizes[:i])
        clear = free & ~_overlap(places, size, *np.reshape(avoided, (2, -1, 2)))
        if free.any():
            centres[i] = places[np.argmax(clear if clear.any() else free)]
    return centres


def _overlap(places: Array, size: Array, centres: Array, sizes: Array) -> Array:
    """Return whether a box overlaps any of the others at each place; those at NaN do not count."""
    return np.asarray(np.any(np.all(2 * np.abs(places[:, None] - centres) < size + sizes, axis=2), axis=1))
