"""Exact nearest neighbours and neighbour ranks over all pairs of points.

Distances are sums of squared differences in double precision, computed tile by tile and never stored. No library
offers the same: scikit-learn expands the square into dot products, whose rounding reorders near-equal distances of data
with a large offset, and neither it nor SciPy's trees define the order of ties. SciPy's ``cdist`` and a partial sort
give the same neighbours in several times the time (benchmarks/by_hand.py). One distance kernel for :func:`nearest` and
:func:`ranks` also makes them agree to the last bit.
"""

import numpy as np

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.heap import replace_largest
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array

TILE = 256  # points whose distances to a query are computed together, so that they stay in the L1 cache


@inlined
def squared_distances(x: Array, tile: Array, out: Array) -> None:
    """Set ``out`` to the squared distances of x to the points of a tile, which is stored dimension by dimension.

    All tiles have the same size, so that every lane runs the same vector code and duplicates get equal distances.
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
    """Return points in the memory layout of the kernels: by tile, then by dimension, padded with infinity."""
    n, n_dims = points.shape
    n_tiles = -(-n // TILE)
    columns = np.full((n_dims, n_tiles * TILE), np.inf)
    columns[:, :n] = points.T
    return np.ascontiguousarray(columns.reshape(n_dims, n_tiles, TILE).transpose(1, 0, 2)).reshape(n_tiles, -1)


@inlined
def _sort_heap(values: Array, indices: Array) -> None:
    for last in range(values.size - 1, 0, -1):
        value, index = values[last], indices[last]
        values[last], indices[last] = values[0], indices[0]
        replace_largest(values, indices, last, value, index, True)


@compiled
def _nearest_rows(
    start: int,
    stop: int,
    queries: Array,
    tiles: Array,
    among_themselves: bool,  # noqa: FBT001
    indices: Array,
) -> None:
    """Set ``indices`` to the nearest points of every query, nearest first."""
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
            # Counting first vectorises, and most tiles hold no candidate.
            n_candidates = 0
            for j in range(TILE):
                n_candidates += distances[j] < farthest
            if n_candidates == 0:
                continue
            for j in range(TILE):
                if distances[j] < heap[0]:
                    replace_largest(heap, indices[i], heap.size, distances[j], lo + j, True)
    for i in range(start, stop):
        _sort_heap(values[i - start], indices[i])


@inlined
def _count_before(distances: Array, threshold: float, own: int) -> int:
    """Count the points of a tile that rank before the point at position ``own``, which may lie outside the tile.

    Points at the same distance count if their position is lower.
    """
    own = min(max(own, 0), TILE)
    count = 0
    for j in range(own):
        count += distances[j] <= threshold
    for j in range(own, TILE):
        count += distances[j] < threshold
    return count


@compiled
def _rank_rows(start: int, stop: int, points: Array, tiles: Array, others: Array, ranks: Array) -> None:
    """Set ranks[i, m] to the rank of point others[i, m] among all points by distance to point i."""
    n_dims = points.shape[1]
    distances = np.empty(TILE)
    gathered = np.full(n_dims * TILE, np.inf)
    k = others.shape[1]
    thresholds = np.empty((stop - start, k))
    for i in range(start, stop):
        # By the same kernel as all other distances, whose last bits would differ otherwise.
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
                ranks[i, m] += _count_before(distances, thresholds[i - start, m], others[i, m] - lo)


def nearest(points: Array, k: int, *, queries: Array | None = None, workers: Workers | None = None) -> Array:
    """Return the k nearest points of every query, of shape (n_queries, k): nearest first, ties to the lower row.

    The queries are by default the points themselves. A point is then not its own neighbour, but its duplicates may be.
    """
    points = np.ascontiguousarray(points, np.float64)
    own = queries is None
    rows = points if queries is None else np.ascontiguousarray(queries, np.float64)
    indices = np.zeros((len(rows), k), np.intp)
    work = float(len(rows)) * points.size
    (workers or Workers(1)).rows(_nearest_rows, len(rows), rows, tiled(points), own, indices, work=work)
    return indices


def ranks(points: Array, others: Array, *, workers: Workers | None = None) -> Array:
    """Return the ranks of the points ``others[i]`` by distance to point i, in the shape (n_samples, k) of ``others``.

    The nearest neighbour of a point has rank 1; ties go to the lower row.
    """
    points = np.ascontiguousarray(points, np.float64)
    found = np.zeros(others.shape, np.intp)
    work = float(len(points)) * points.size
    (workers or Workers(1)).rows(_rank_rows, len(points), points, tiled(points), others, found, work=work)
    return found
