"""Names of clusters, written into a map at their centres and moved apart where they would overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.collections import LineCollection
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation
from matplotlib.textpath import text_to_path
from matplotlib.transforms import IdentityTransform
from numpy.typing import NDArray

from laptsne.colours.colouring import Categories, short
from laptsne.colours.palette import INK

_GAP = 1.5  # points between names
_FAR = 4.0  # points between a name and its place from which on a line joins them
_HIDES = 1.3  # times the size of a name: what is smaller is hidden by it
_MAX_SHARE = 0.3  # of the paper that names may cover


def write_names(ax: Axes, Y: NDArray[Any], categories: Categories) -> None:
    """Write the name of each category at the centre of its points, the largest category's first."""
    counts = np.bincount(categories.codes[categories.codes >= 0], minlength=len(categories.names))
    style: dict[str, Any] = {"fontsize": float(np.clip(11 - 0.1 * counts.size, 6, 9)), "color": INK, "zorder": 5}
    style |= {"ha": "center", "va": "center", "weight": "bold", "parse_math": False, "textcoords": "offset points"}
    style |= {"path_effects": [withStroke(linewidth=2.5, foreground="white", alpha=0.85)]}
    notes, cores = [], []
    for code in np.argsort(-counts, kind="stable"):
        members = Y[categories.codes == code]
        # The member nearest to the median lies within its points, where the median of a ring does not.
        centre = members[np.argmin(np.linalg.norm(members - np.median(members, axis=0), axis=1))]
        notes.append(ax.annotate(short(categories.names[code]), centre, (0, 0), **style))
        notes[-1].set_in_layout(False)
        cores.append(_core(members, centre))
    if notes:
        ax.add_collection(_Leaders(notes, np.array(cores)), autolim=False)


def _core(members: NDArray[Any], centre: NDArray[Any]) -> NDArray[Any]:
    """Corners of a box around the half of the members that is nearest to the centre."""
    distances = np.linalg.norm(members - centre, axis=1)
    near = members[distances <= np.median(distances)]
    return np.array([near.min(axis=0), near.max(axis=0)])


class _Leaders(LineCollection):
    """Lines from the places of names to names that were moved far.

    Names are moved when they are about to be drawn: only then the size of the paper and of the letters is known.
    """

    def __init__(self, notes: list[Annotation], cores: NDArray[Any]) -> None:
        super().__init__([], colors=INK, linewidths=0.6, transform=IdentityTransform(), zorder=4.9)  # below the names
        self.notes, self.cores = notes, cores
        self.set_in_layout(False)

    def draw(self, renderer: RendererBase) -> None:
        """Move the names, then draw lines to them."""
        pixel = float(renderer.points_to_pixels(1.0))  # type: ignore[arg-type]
        assert self.axes is not None
        to_paper, paper = self.axes.transData.transform, self.axes.get_window_extent(renderer)
        anchors = to_paper([note.xy for note in self.notes])
        sizes = np.array([_extent(note, renderer, pixel) for note in self.notes]) + _GAP * pixel
        corners = to_paper(self.cores.reshape(-1, 2)).reshape(-1, 2, 2)
        cores = np.array([corners.mean(axis=1), np.abs(corners[:, 1] - corners[:, 0]) + _GAP * pixel])
        hidden = np.all(cores[1] < _HIDES * sizes, axis=1)  # clusters that a name would lie upon and hide
        places = np.full(anchors.shape, np.nan)
        if sizes.prod(axis=1).sum() <= _MAX_SHARE * paper.width * paper.height:
            places = placed(anchors, sizes, paper.get_points(), cores[:, hidden])
        for note, offset in zip(self.notes, (places - anchors) / pixel, strict=True):
            note.set_visible(bool(np.isfinite(offset).all()))
            note.set_position(tuple(np.nan_to_num(offset)))
        ends = np.clip(anchors, places - sizes / 2, places + sizes / 2)
        own = np.where(hidden[:, None], cores[1], 0)  # a name beside its cluster is not far
        far = np.hypot(*np.maximum(np.abs(ends - anchors) - own / 2, 0).T) > _FAR * pixel
        self.set_segments(np.stack([anchors, ends], axis=1)[far])
        super().draw(renderer)


def _extent(note: Annotation, renderer: RendererBase, pixel: float) -> tuple[float, float]:
    """Size of a name. Letters with a rim are drawn as outlines, which at few pixels are wider than letters."""
    box = note.get_window_extent(renderer)
    outline = pixel * text_to_path.get_text_width_height_descent(note.get_text(), note.get_fontproperties(), False)[0]
    return box.width + 2 * max(outline - box.width, 0.0), box.height


def placed(
    anchors: NDArray[Any], sizes: NDArray[Any], room: NDArray[Any], avoided: NDArray[Any] | None = None
) -> NDArray[np.float64]:
    """Give each box in turn the free place nearest to its anchor.

    Parameters
    ----------
    anchors : array of shape (n_boxes, 2)
        Where the centres of the boxes should be.
    sizes : array of shape (n_boxes, 2)
        Widths and heights.
    room : array of shape (2, 2)
        Lower left and upper right corner of what the boxes must stay in.
    avoided : array of shape (2, n_avoided, 2), optional
        Centres and sizes of what is there already, and may be covered only where there is no room else.

    Returns
    -------
    centres : array of shape (n_boxes, 2)
        Centres of boxes that do not overlap; NaN where there was no room.

    Examples
    --------
    >>> import numpy as np
    >>> from laptsne.plotting.name_labels import placed
    >>> placed(np.array([[5, 5], [5, 6]]), np.array([[4, 2], [4, 2]]), np.array([[0, 0], [10, 10]]))
    array([[5., 5.],
           [5., 7.]])
    """
    centres = np.full(anchors.shape, np.nan)
    avoided = np.empty((2, 0, 2)) if avoided is None else avoided
    for i, (anchor, size) in enumerate(zip(anchors, sizes, strict=True)):
        free = ~np.isnan(centres[:i, 0])
        boxes = np.array([centres[:i][free], sizes[:i][free]])
        for taken in (np.concatenate([boxes, avoided], axis=1), boxes):
            centres[i] = _nearest_free(anchor, taken[0], (taken[1] + size) / 2, room + np.array([size / 2, -size / 2]))
            if np.isfinite(centres[i, 0]):
                break
    return centres


def _nearest_free(
    anchor: NDArray[Any], taken: NDArray[Any], reach: NDArray[Any], room: NDArray[Any]
) -> NDArray[np.float64]:
    """The point of a room nearest to the anchor that is in none of the open boxes around what is taken.

    Each of its coordinates is the anchor's or that of an edge: a grid of few lines, on which boxes are struck out.
    """
    anchor = np.clip(anchor, *room)
    low, high = taken - reach, taken + reach
    lines, first, last = [], [], []
    for k, edges in enumerate(np.concatenate([anchor[None], low, high]).T):
        lines.append(np.unique(edges[(edges >= room[0, k]) & (edges <= room[1, k])]))
        within = 1e-9 * reach[:, k]  # edges are free
        first.append(np.searchsorted(lines[k], low[:, k] + within))
        last.append(np.searchsorted(lines[k], high[:, k] - within))
    if not (lines[0].size and lines[1].size):  # larger than the room
        return np.full(2, np.nan)
    distances = np.hypot(lines[0][:, None] - anchor[0], lines[1] - anchor[1])
    for left, below, right, above in zip(*first, *last, strict=True):
        distances[left:right, below:above] = np.inf
    i, j = np.unravel_index(np.argmin(distances), distances.shape)
    return np.array([lines[0][i], lines[1][j]]) if np.isfinite(distances[i, j]) else np.full(2, np.nan)
