"""Exact silhouette coefficient without a distance matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from laptsne._runtime.compiled import compiled
from laptsne._runtime.threads import Workers
from laptsne.metrics.pairwise import TILE, squared_distances, tiled

Array = NDArray[Any]


@compiled
def _silhouette_rows(
    start: int, stop: int, points: Array, own: Array, tiles: Array, edges: Array, sizes: Array, out: Array
) -> None:
    """Set ``out`` to the silhouette of every point; cluster c is in the tiles edges[c] to edges[c + 1]."""
    distances = np.empty(TILE)
    sums = np.empty(stop - start)
    within = np.zeros(stop - start)
    nearest = np.full(stop - start, np.inf)
    for c in range(sizes.size):
        sums[:] = 0
        for t in range(edges[c], edges[c + 1]):
            n = min(TILE, sizes[c] - (t - edges[c]) * TILE)
            for i in range(start, stop):
                squared_distances(points[i], tiles[t], distances)
                total = 0.0
                for j in range(n):
                    total += np.sqrt(distances[j])
                sums[i - start] += total
        for i in range(start, stop):
            if own[i] == c:
                within[i - start] = sums[i - start] / max(sizes[c] - 1, 1)
            else:
                nearest[i - start] = min(nearest[i - start], sums[i - start] / sizes[c])
    for i in range(start, stop):
        a, b = within[i - start], nearest[i - start]
        out[i] = 0.0 if sizes[own[i]] == 1 or max(a, b) == 0 else (b - a) / max(a, b)


def silhouette(Y: ArrayLike, labels: ArrayLike) -> float:
    r"""Compute the mean silhouette coefficient over all points.

    The coefficient of a point is :math:`(b - a) / \max(a, b)`, where :math:`a` is its mean distance to the other points
    of its cluster and :math:`b` the smallest mean distance to the points of another cluster; 0 if it is alone in its
    cluster. This is scikit-learn's ``silhouette_score`` in memory proportional to the number of points.

    Parameters
    ----------
    Y : array of shape (n_samples, n_features)
        The points.
    labels : array of shape (n_samples,)
        Cluster of every point: at least two clusters, and fewer than points.

    References
    ----------
    P. J. Rousseeuw, Silhouettes: a graphical aid to the interpretation and validation of cluster analysis, Journal
    of Computational and Applied Mathematics 20 (1987).

    Examples
    --------
    >>> from laptsne.metrics import silhouette
    >>> round(silhouette([[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1]), 3)
    0.746
    """
    points = np.ascontiguousarray(Y, np.float64)
    names, own = np.unique(labels, return_inverse=True)
    if not 2 <= names.size < len(points):
        raise ValueError(f"labels must name 2 to n_samples - 1 clusters; got {names.size} for {len(points)} points.")
    sizes = np.bincount(own)
    tiles = [tiled(points[own == c]) for c in range(names.size)]
    edges = np.concatenate([[0], np.cumsum([len(t) for t in tiles])])
    out = np.empty(len(points))
    with Workers() as workers:
        args = points, own, np.concatenate(tiles), edges, sizes, out
        workers.rows(_silhouette_rows, len(points), *args, work=float(len(points)) * points.size)
    return float(out.mean())
