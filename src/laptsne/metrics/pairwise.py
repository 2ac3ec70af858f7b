"""Exact neighbours and ranks among all pairs of points: distances by differences, tile by tile, never stored."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.threads import Workers

Array = NDArray[Any]

# Points are compared with tiles of this many, whose distances stay in the nearest cache.
TILE = 256


@inlined
def squared_distances(x: Array, tile: Array, out: Array) -> None:
    """Set out to the squared distances of a point to those of a tile, one dimension after the other in ``tile``.

    There are as many for every tile, so that the loops vectorise whole and equal points are always equally far.
    """
    n_dims = x.size
    out[:] = 0
    whole = n_dims - n_dims % 4
    for d in range(0, whole, 4):
        x0, x1, x2, x3 = x[d], x[d + 1], x[d + 2], x[d + 3]
        four = tile[d * TILE : (d + 4) * TILE]
        for j in range(TILE):
            d0, d1, d2, d3 = x0 - four[j], x1 - four[j + TILE], x2 - four[j + 2 * TILE], x3 - four[j + 3 * TILE]
            out[j] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)
    for d in range(whole, n_dims):
        one = tile[d * TILE : (d + 1) * TILE]
        for j in range(TILE):
            out[j] += (x[d] - one[j]) ** 2


def tiled(points: Array) -> Array:
    """Lay points out as kernels read them: tile after tile, dimension after dimension; beyond the last, infinity."""
    n, n_dims = points.shape
    n_tiles = -(-n // TILE)
    columns = np.full((n_dims, n_tiles * TILE), np.inf)
    columns[:, :n] = points.T
    return np.ascontiguousarray(columns.reshape(n_dims, n_tiles, TILE).transpose(1, 0, 2)).reshape(n_tiles, -1)


@inlined
def _precedes(value: float, index: int, other: float, other_index: int) -> bool:
    """Whether one point comes before another: it is nearer, or as near and earlier among the points."""
    return value < other or (value == other and index < other_index)


@inlined
def _sift(values: Array, indices: Array, size: int, value: float, index: int) -> None:
    """Replace the last point in the order of a heap by one that precedes it."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and _precedes(values[child], indices[child], values[child + 1], indices[child + 1]):
            child += 1
        if not _precedes(value, index, values[child], indices[child]):
            break
        values[at] = values[child]
        indices[at] = indices[child]
        at = child
    values[at] = value
    indices[at] = index


@inlined
def _sort_heap(values: Array, indices: Array) -> None:
    for last in range(values.size - 1, 0, -1):
        value, index = values[last], indices[last]
        values[last], indices[last] = values[0], indices[0]
        _sift(values, indices, last, value, index)


@compiled
def _nearest_rows(
    start: int,
    stop: int,
    queries: Array,
    tiles: Array,
    among_themselves: bool,  # noqa: FBT001
    indices: Array,
) -> None:
    """Set indices to the nearest points of every query, nearest first."""
    distances = np.empty(TILE)
    values = np.full((stop - start, indices.shape[1]), np.inf)
    for t in range(tiles.shape[0]):
        lo = t * TILE
        for i in range(start, stop):
            squared_distances(queries[i], tiles[t], distances)
            if among_themselves and lo <= i < lo + TILE:
                distances[i - lo] = np.inf
            heap = values[i - start]
            farthest = heap[0]
            found = 0
            for j in range(TILE):
                found += distances[j] < farthest
            if found == 0:
                continue
            for j in range(TILE):
                if distances[j] < heap[0]:
                    _sift(heap, indices[i], heap.size, distances[j], lo + j)
    for i in range(start, stop):
        _sort_heap(values[i - start], indices[i])


@inlined
def _before(distances: Array, threshold: float, own: int) -> int:
    """Number of points of a tile before the one in place ``own``, which may lie outside: left of it ties count."""
    count = 0
    if own >= TILE:
        for j in range(TILE):
            count += distances[j] <= threshold
    elif own <= 0:
        for j in range(TILE):
            count += distances[j] < threshold
    else:
        for j in range(own):
            count += distances[j] <= threshold
        for j in range(own, TILE):
            count += distances[j] < threshold
    return count


@compiled
def _rank_rows(start: int, stop: int, points: Array, tiles: Array, others: Array, ranks: Array) -> None:
    """Set ranks[i, m] to the place of point others[i, m] among all others in the order of their distance to point i."""
    n_dims = points.shape[1]
    distances = np.empty(TILE)
    gathered = np.full(n_dims * TILE, np.inf)
    k = others.shape[1]
    thresholds = np.empty((stop - start, k))
    for i in range(start, stop):
        # Distances to the others come from the same loop as all, lest they differ in their last bits.
        for first in range(0, k, TILE):
            n = min(TILE, k - first)
            for m in range(n):
                for d in range(n_dims):
                    gathered[d * TILE + m] = points[others[i, first + m], d]
            squared_distances(points[i], gathered, distances)
            thresholds[i - start, first : first + n] = distances[:n]
        ranks[i] = 1
    for t in range(tiles.shape[0]):
        lo = t * TILE
        for i in range(start, stop):
            squared_distances(points[i], tiles[t], distances)
            if lo <= i < lo + TILE:
                distances[i - lo] = np.inf
            for m in range(k):
                ranks[i, m] += _before(distances, thresholds[i - start, m], others[i, m] - lo)


def nearest(points: Array, k: int, *, queries: Array | None = None, workers: Workers | None = None) -> Array:
    """Find the nearest points of every query, nearest first and of equally near ones the earlier first.

    Parameters
    ----------
    points : array of shape (n_samples, n_features)
    k : int
        How many.
    queries : array of shape (n_queries, n_features), optional
        The points themselves by default, of which none is then its own neighbour.
    workers : Workers, optional
        Threads to share the queries among.

    Returns
    -------
    indices : array of shape (n_queries, k)

    Examples
    --------
    >>> import numpy as np
    >>> from laptsne.metrics.pairwise import nearest
    >>> nearest(np.array([[0.0], [1.0], [3.0]]), 2)
    array([[1, 2],
           [0, 2],
           [1, 0]])
    """
    points = np.ascontiguousarray(points, np.float64)
    own = queries is None
    rows = points if queries is None else np.ascontiguousarray(queries, np.float64)
    indices = np.zeros((len(rows), k), np.intp)
    work = float(len(rows)) * points.size
    (workers or Workers(1)).rows(_nearest_rows, len(rows), rows, tiled(points), own, indices, work=work)
    return indices


def ranks(points: Array, others: Array, *, workers: Workers | None = None) -> Array:
    """Find the places of given points among all in the order of their distance.

    Parameters
    ----------
    points : array of shape (n_samples, n_features)
    others : integer array of shape (n_samples, k)
        For every point, the points whose place is asked for.
    workers : Workers, optional
        Threads to share the points among.

    Returns
    -------
    ranks : array of shape (n_samples, k)
        1 for the nearest neighbour of a point. Of points equally near, the earlier comes first.

    Examples
    --------
    >>> import numpy as np
    >>> from laptsne.metrics.pairwise import ranks
    >>> ranks(np.array([[0.0], [1.0], [3.0]]), np.array([[1], [2], [0]]))
    array([[1],
           [2],
           [2]])
    """
    points = np.ascontiguousarray(points, np.float64)
    found = np.zeros(others.shape, np.intp)
    work = float(len(points)) * points.size
    (workers or Workers(1)).rows(_rank_rows, len(points), points, tiled(points), others, found, work=work)
    return found
