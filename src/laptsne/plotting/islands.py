"""Islands of a category: where in the map its points lie together, and where its name therefore belongs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import label
from scipy.spatial import cKDTree

from laptsne.colours.label_encoding import Categories

_CELLS = 32  # per side of the map: gaps narrower than one of them do not separate islands
_SPACING = 3.0  # cells are at least this multiple of the distance between neighbours
_MIN_SHARE = 0.15  # share of a category's points that an island must have to be named
_SAMPLE = 2000  # points of a category that are looked at
_SCATTERED = 0.85  # categories whose spread is more than this share of the map's have no region of their own


@dataclass(frozen=True)
class Island:
    """The points of a category, of shape (n_points, n_components), that lie together, and its name."""

    name: str
    points: NDArray[Any]


def find_islands(Y: NDArray[Any], categories: Categories) -> list[Island]:
    """Return the islands of all categories with at least 15 % of their category's points, the largest first."""
    extent = float(np.ptp(Y, axis=0).max()) if len(Y) else 0.0
    found = []
    order = np.argsort(categories.codes, kind="stable")
    starts = np.searchsorted(categories.codes[order], np.arange(len(categories.names) + 1))
    for name, start, stop in zip(categories.names, starts[:-1], starts[1:], strict=True):
        members = Y[order[start:stop]]
        if len(members):
            # Evenly spaced members are a sample: their order means nothing.
            sample = members[:: -(-len(members) // _SAMPLE)]
            found += [(len(members) * len(part) / len(sample), Island(name, part)) for part in _parts(sample, extent)]
    return [island for _, island in sorted(found, key=lambda pair: -pair[0])]


def are_scattered(Y: NDArray[Any], categories: Categories, islands: list[Island]) -> bool:
    """Return whether names in the map would mislead: most categories are spread all over it, or many have no island."""
    present = np.flatnonzero(categories.counts)
    if present.size < 2:
        return False
    if len({island.name for island in islands}) < 0.75 * present.size:
        return True
    spreads = [_spread(Y[categories.codes == code]) for code in present]
    return float(np.median(spreads)) > _SCATTERED * _spread(Y)


def _parts(members: NDArray[Any], extent: float) -> list[NDArray[Any]]:
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
    return [members[regions == region] for region in np.flatnonzero(counts >= _MIN_SHARE * len(members))]


def _spread(Y: NDArray[Any]) -> float:
    return float(np.median(np.linalg.norm(Y - np.median(Y, axis=0), axis=1)))
