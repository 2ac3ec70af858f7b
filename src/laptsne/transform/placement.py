"""New points placed one by one: each descends its own part of the objective over the frozen map."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.threads import Workers
from laptsne.embedding.lazy_potential import LazyPotential
from laptsne.embedding.potential import Potential
from laptsne.graph.affinity import conditional_affinities
from laptsne.graph.neighbors import NeighborIndex, row_batches

Array = NDArray[Any]

_MAX_STEPS = 100
_MIN_STEP = 1e-3  # in units of the map
# Effective neighbours of a new point, at the most: of 3 to 20 this was the best on the test split of MNIST.
MAX_PERPLEXITY = 10.0
_STARTS = 5  # nearest neighbours whose places are tried as the start


@inlined
def _spline(place: float, weights: Array, slopes: Array) -> int:
    """Set the weights of the four nodes around a place, given in cells, and their slopes; return the first node."""
    cell = int(np.floor(place))
    t = place - cell
    s = 1 - t
    weights[0], slopes[0] = s * s * s / 6, -s * s / 2
    weights[1], slopes[1] = (3 * t * t * t - 6 * t * t + 4) / 6, (3 * t * t - 4 * t) / 2
    weights[2], slopes[2] = (3 * s * s * s - 6 * s * s + 4) / 6, (4 * s - 3 * s * s) / 2
    weights[3], slopes[3] = t * t * t / 6, t * t / 2
    return cell - 1


@inlined
def _potential(y: Array, origin: Array, spacing: float, grid: Array, w: Array, s: Array, gradient: Array) -> float:
    """Value of the potential at y; set its gradient there. Outside the mesh the value at the border goes on."""
    n_dims = y.size
    x = [0, 0, 0]
    w[1:, 0], s[1:, 0] = 1, 0  # dimensions that the map lacks
    for d in range(n_dims):
        place = (y[d] - origin[d]) / spacing
        if not place >= 1:  # NaN as well: there is no bound but this to where the mesh is read
            place = 1.0
        x[d] = _spline(min(place, grid.shape[2 - d] - 2.000001), w[d], s[d])
    value = gx = gy = gz = 0.0
    for c in range(4 if n_dims > 2 else 1):
        for b in range(4 if n_dims > 1 else 1):
            for a in range(4):
                node = grid[x[2] + c, x[1] + b, x[0] + a]
                value += node * w[0, a] * w[1, b] * w[2, c]
                gx += node * s[0, a] * w[1, b] * w[2, c]
                gy += node * w[0, a] * s[1, b] * w[2, c]
                gz += node * w[0, a] * w[1, b] * s[2, c]
    slope = (gx, gy, gz)
    for d in range(n_dims):
        gradient[d] = slope[d] / spacing
    return value


@inlined
def _loss(y: Array, p: Array, near: Array, gradient: Array) -> tuple[float, float]:
    """Add the attraction of the neighbours to the gradient; return its loss and the curvature of its majorant."""
    loss = curvature = 0.0
    for e in range(p.size):
        r2 = 0.0
        for d in range(y.size):
            r2 += (y[d] - near[e, d]) ** 2
        pull = 2 * p[e] / (1 + r2)
        loss += p[e] * np.log(1 + r2)
        curvature += pull
        for d in range(y.size):
            gradient[d] += pull * (y[d] - near[e, d])
    return loss, curvature


@compiled
def _place_rows(
    start: int,
    stop: int,
    indices: Array,
    p: Array,
    Y: Array,
    origin: Array,
    spacing: float,
    grid: Array,
    placed: Array,
) -> None:
    """Set the rows of placed to where the points with the affinities p to the points of these indices settle."""
    n_dims = Y.shape[1]
    k = indices.shape[1]
    near = np.empty((k, n_dims))
    w, s = np.empty((2, 3, 4))
    y, moved, gradient, ahead = np.empty((4, n_dims))
    for i in range(start, stop):
        for e in range(k):
            near[e] = Y[indices[i, e]]
        # The nearest places with the lowest loss: between two clusters the mean of the neighbours is in neither.
        loss = np.inf
        curvature = 1.0
        y[:], gradient[:] = near[0], 0
        for e in range(min(k, _STARTS)):
            value = _potential(near[e], origin, spacing, grid, w, s, ahead)
            pull, bend = _loss(near[e], p[i], near, ahead)
            if value + pull < loss:
                loss, curvature = value + pull, bend
                y[:], gradient[:] = near[e], ahead
        size = 1.0
        for _ in range(_MAX_STEPS):
            way = 0.0
            for d in range(n_dims):
                step = size * gradient[d] / curvature
                moved[d] = y[d] - step
                way += step * step
            value = _potential(moved, origin, spacing, grid, w, s, ahead)
            pull, bend = _loss(moved, p[i], near, ahead)
            if value + pull <= loss:
                loss, curvature = value + pull, bend
                y[:], gradient[:] = moved, ahead
                size = min(2 * size, 4.0)
            else:
                size /= 4
            if way < _MIN_STEP * _MIN_STEP:
                break
        placed[i] = y


def settled(
    indices: Array, distances: Array, perplexity: float, Y: Array, potential: Potential, workers: Workers
) -> Array:
    """Where points settle that have these neighbours, nearest first, at these distances.

    Parameters
    ----------
    indices, distances : arrays of shape (n_points, n_neighbors)
        Neighbours among the points of the map.
    perplexity : float
        Effective number of neighbours.
    Y : array of shape (n_samples, n_components)
        The map.
    potential : Potential
        V.

    Returns
    -------
    placed : array of shape (n_points, n_components)
    """
    p = conditional_affinities(distances, perplexity, workers)
    placed = np.empty((len(indices), Y.shape[1]))
    args = (indices, p, Y.astype(np.float64), potential.origin, potential.spacing, potential.padded, placed)
    workers.rows(_place_rows, len(indices), *args, work=1e3 * p.size)
    return placed


class Placement:
    r"""Places for points by their affinities to the points of a map.

    A new point with the affinities :math:`p_j` to its neighbours settles where

    .. math:: \sum_j p_j \log(1 + |y - y_j|^2) + V(y)

    is least nearby: its own part of the objective, with all other points frozen. The potential V holds the
    repulsion of all points and the contraction. A point that coincides with one of the map gets its place.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features), or None
        The data of the map; None where distances of new points to them are given instead.
    Y : array of shape (n_samples, n_components)
        The map.
    potential : Potential or LazyPotential
        V.
    perplexity : float
        Effective number of neighbours of a point of the map; a new one has at most 10.
    metric, metric_params
        As in :class:`laptsne.graph.neighbors.NeighborIndex`.
    """

    def __init__(
        self,
        X: Any,
        Y: Array,
        potential: Potential | LazyPotential,
        *,
        perplexity: float,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
    ) -> None:
        n_dims = potential.origin.size if isinstance(potential, Potential) else Y.shape[-1]
        if Y.ndim != 2 or Y.shape[1] != n_dims or not np.isfinite(Y).all() or (X is not None and X.shape[0] != len(Y)):
            raise ValueError(f"placement: a map of shape {Y.shape} does not belong to these data and this potential.")
        self.X, self.Y, self._potential = X, Y, potential
        self.perplexity = min(perplexity, MAX_PERPLEXITY)
        self.metric, self.metric_params = metric, metric_params
        self._index: NeighborIndex | None = None

    @property
    def n_components(self) -> int:
        """Dimension of the map."""
        return int(self.Y.shape[1])

    @property
    def dtype(self) -> Any:
        """Precision of the map."""
        return self.Y.dtype

    def place(self, X: Any, workers: Workers) -> Array:
        """Places of new points, shape (n_points, n_components)."""
        if self.X is not None and scipy.sparse.issparse(X) != scipy.sparse.issparse(self.X):
            X = X.toarray() if scipy.sparse.issparse(X) else scipy.sparse.csr_matrix(X)
        placed = np.empty((X.shape[0], self.n_components), self.dtype)
        for rows in row_batches(X):
            placed[rows] = self._place(X[rows], workers)
        return placed

    def potential(self, workers: Workers) -> Potential:
        """V, computed when it is first asked for."""
        if isinstance(self._potential, LazyPotential):
            self._potential = self._potential.compute(self.Y, workers)
        return self._potential

    def _place(self, X: Any, workers: Workers) -> Array:
        indices, distances = self._neighbors(X, workers)
        placed = settled(indices, distances, self.perplexity, self.Y, self.potential(workers), workers)
        # The last first: of several equal points the nearest counts, as the first of equal distances.
        for e in reversed(range(min(_STARTS, indices.shape[1]))):
            same = distances[:, e] == 0 if self.X is None else _equal_rows(X, self.X[indices[:, e]])
            placed[same] = self.Y[indices[same, e]]
        return placed

    def _neighbors(self, X: Any, workers: Workers) -> tuple[Array, Array]:
        n_neighbors = min(max(int(3 * self.perplexity), 1), len(self.Y))
        if self.X is None:
            order = np.argsort(X, axis=1, kind="stable")[:, :n_neighbors]
            return order, np.take_along_axis(X, order, axis=1)
        if self._index is None:
            options = {"metric": self.metric, "metric_params": self.metric_params}
            self._index = NeighborIndex(self.X, n_neighbors=n_neighbors, workers=workers, **options)
        return self._index.search(X, workers)


def _equal_rows(A: Any, B: Any) -> Array:
    """Whether the rows of two matrices are equal."""
    if scipy.sparse.issparse(A):
        different = (A != B).tocsr()
        different.eliminate_zeros()
        return np.asarray(np.diff(different.indptr) == 0)
    return np.asarray((A == B).all(axis=1))
