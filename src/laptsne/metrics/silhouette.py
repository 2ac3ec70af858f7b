"""The silhouette of a clustering, exactly and without storing distances."""

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
    """Set out to the silhouettes of the points; the tiles edges[c] to edges[c + 1] hold cluster c."""
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
    r"""Mean silhouette of points: how much nearer they are to their own cluster than to the next.

    Of a point with mean distance :math:`a` to the others of its cluster, and :math:`b` to the points of the cluster
    where that mean is least among the other clusters, it is :math:`(b - a) / \max(a, b)`, and 0 of a point alone in
    its cluster. All pairs are taken, in memory proportional to the number of points.

    Parameters
    ----------
    Y : array of shape (n_samples, n_features)
        The points.
    labels : array of shape (n_samples,)
        Their clusters: at least two, and fewer than points.

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
        raise ValueError(f"labels must be of 2 to n_samples - 1 clusters; got {names.size} of {len(points)} points.")
    sizes = np.bincount(own)
    tiles = [tiled(points[own == c]) for c in range(names.size)]
    edges = np.concatenate([[0], np.cumsum([len(t) for t in tiles])])
    out = np.empty(len(points))
    with Workers() as workers:
        args = points, own, np.concatenate(tiles), edges, sizes, out
        workers.rows(_silhouette_rows, len(points), *args, work=float(len(points)) * points.size)
    return float(out.mean())
