"""Placement of new points: each minimises its own part of the objective over the fixed embedding."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.contraction.term import LazyPotential
from laptsne.fields.potential import Potential, potential_at
from laptsne.fields.umap_kernel import UmapKernel, umap_attraction
from laptsne.graph.affinity import conditional_affinities
from laptsne.graph.neighbors import NeighborIndex, nearest_in_rows, row_batches
from laptsne.transform.support import MIN_SUPPORT, Support, voted

_MAX_STEPS = 100
_MIN_STEP = 1e-3  # in units of the embedding
# Upper limit of the perplexity of a new point: of 3 to 20 this was the best on the test split of MNIST.
MAX_PERPLEXITY = 10.0
_STARTS = 5  # nearest neighbours whose positions are tried as the start


@inlined
def _loss(y: Array, p: Array, near: Array, shape: tuple[float, float] | None, gradient: Array) -> tuple[float, float]:
    """Add the attraction to the neighbours to the gradient; return its loss and the curvature of its majorant.

    ``shape`` has the parameters a and b of UMAP's kernel, None for Student's.
    """
    loss = curvature = 0.0
    for e in range(p.size):
        r2 = 0.0
        for d in range(y.size):
            r2 += (y[d] - near[e, d]) ** 2
        if shape is None:
            strength = 2 * p[e] / (1 + r2)
            loss += p[e] * np.log(1 + r2)
        else:
            potential, slope = umap_attraction(r2, shape[0], shape[1])
            strength = 2 * p[e] * slope
            loss += p[e] * potential
        curvature += strength
        for d in range(y.size):
            gradient[d] += strength * (y[d] - near[e, d])
    return loss, curvature


@inlined
def _loss_at(y: Array, p: Array, near: Array, shape: Any, field: Any, home: Array | None, gradient: Array) -> Any:
    """Return the loss of a point at y, and the curvature of the attraction; set the gradient.

    ``field`` is that of a :class:`Potential` and room for the splines.
    """
    origin, spacing, grid, charge, w, s = field
    value = potential_at(y, origin, spacing, grid, w, s, gradient)
    if home is not None:
        r2 = 0.0
        for d in range(y.size):
            r2 += (y[d] - home[d]) ** 2
        k = 1 / (1 + r2)
        value -= charge * k
        for d in range(y.size):
            gradient[d] += 2 * charge * k * k * (y[d] - home[d])
    attraction, curvature = _loss(y, p, near, shape, gradient)
    return value + attraction, curvature


@inlined
def descend(y: Array, p: Array, near: Array, shape: Any, field: Any, home: Array | None, scratch: Array) -> float:
    """Move y to a minimum of the loss of a point with affinities p to the points ``near``; return the loss there.

    A point of the embedding itself, which is at ``home``, is not repelled by its own charge.
    """
    moved, gradient, ahead = scratch
    loss: float
    loss, curvature = _loss_at(y, p, near, shape, field, home, gradient)
    size = 1.0
    for _ in range(_MAX_STEPS):
        squared_length = 0.0
        for d in range(y.size):
            step = size * gradient[d] / curvature
            moved[d] = y[d] - step
            squared_length += step * step
        value, bound = _loss_at(moved, p, near, shape, field, home, ahead)
        if value <= loss:
            loss, curvature = value, bound
            y[:], gradient[:] = moved, ahead
            size = min(2 * size, 4.0)
        else:
            size /= 4
        if squared_length < _MIN_STEP * _MIN_STEP:
            break
    return loss


@compiled
def _place_rows(
    start: int, stop: int, indices: Array, p: Array, Y: Array, shape: Any, potential: Any, placed: Array
) -> None:
    """Set the rows of placed to the positions of points with affinities p to the points of these indices."""
    w, s = np.empty((2, 3, 4))
    field = (*potential, w, s)
    rows, (y, gradient) = np.empty((3, Y.shape[1])), np.empty((2, Y.shape[1]))
    for i in range(start, stop):
        near = Y[indices[i]]
        # Start at the neighbour of lowest loss: the mean of the neighbours may lie between two clusters.
        least = np.inf
        y[:] = near[0]
        for e in range(min(len(near), _STARTS)):
            loss = _loss_at(near[e], p[i], near, shape, field, None, gradient)[0]
            if loss < least:
                least = loss
                y[:] = near[e]
        descend(y, p[i], near, shape, field, None, rows)
        placed[i] = y


def settled(
    indices: Array, distances: Array, perplexity: float, Y: Array, potential: Potential, workers: Workers, kernel: Any
) -> Array:
    """Return the positions, shape (n_points, n_components), of new points in the embedding Y.

    Indices and distances of their neighbours among its points have the shape (n_points, n_neighbors), nearest first.
    """
    p, placed = conditional_affinities(distances, perplexity, workers), np.empty((len(indices), Y.shape[1]))
    shape = None if kernel is None else (kernel.a, kernel.b)
    args = (indices, p, Y.astype(np.float64), shape, potential.field, placed)
    workers.rows(_place_rows, len(indices), *args, work=1e3 * p.size)
    return placed


@dataclass(eq=False)
class Placement:
    r"""Placement of new points by their affinities to the points of the embedding.

    The position y of a new point with affinities :math:`p_j` to its neighbours is a local minimum of

    .. math:: \sum_j p_j \log(1 + |y - y_j|^2) + V(y),

    its own part of the objective, with all other points fixed. The potential V is the repulsion from all points and the
    contraction. With UMAP's ``kernel``, the attraction is :math:`-\sum_j p_j \log \varphi`. A new point that equals one
    of the data gets the position of the latter. X is None if distances of new points to the data are given instead.
    """

    X: Any
    Y: Array
    potential: Potential | LazyPotential | None  # V, computed when first needed if it is lazy
    perplexity: float
    compared_by: dict[str, Any]  # metric and metric_params
    support: Support | None = None  # computed when first needed
    kernel: UmapKernel | None = None
    _index: NeighborIndex | None = None  # of the data, kept from the first search on

    def __post_init__(self) -> None:
        self.perplexity = min(self.perplexity, MAX_PERPLEXITY)
        self.n_neighbors = min(max(int(3 * self.perplexity), 1), len(self.Y))

    def place(self, X: Any, workers: Workers) -> Array:
        """Return the positions of new points, shape (n_points, n_components)."""

        def new(indices: Array, distances: Array) -> Array:
            potential = self.computed_potential(workers)
            return settled(indices, distances, self.perplexity, self.Y, potential, workers, self.kernel)

        return self._values(X, new, self.Y, workers)

    def supported(self, X: Any, workers: Workers) -> Array:
        """Return the support of new points, shape (n_points,); a row equal to one of the data has the latter's."""
        support = self._known_support(workers)
        return support.share(self._values(X, support.isolation_of, support.isolation, workers))

    def labelled(self, X: Any, labels: Array, workers: Workers) -> Array:
        """Return the labels of new points, given those of the data; -1 without support.

        It is the label of most affinity among the neighbours, and that of an equal row of the data if there is one.
        """
        support = self._known_support(workers)

        def new(indices: Array, distances: Array) -> Array:
            votes = voted(labels[indices], conditional_affinities(distances, self.perplexity, workers))
            return np.where(support.share(support.isolation_of(indices, distances)) < MIN_SUPPORT, -1, votes)

        return self._values(X, new, labels.astype(np.int64), workers)

    def shared(self, X: Any, labels: Array, n_clusters: int, workers: Workers) -> Array:
        """Return the share of each cluster in the affinities of new points, shape (n_points, n_clusters)."""
        known = np.eye(n_clusters + 1)[labels][:, :n_clusters]  # the last one is that of -1

        def new(indices: Array, distances: Array) -> Array:
            p = conditional_affinities(distances, self.perplexity, workers)
            return np.asarray(np.einsum("ij,ijc->ic", p, known[indices]))

        return self._values(X, new, known, workers)

    def computed_potential(self, workers: Workers) -> Potential:
        """Return V."""
        potential = self.potential  # another thread may compute it meanwhile
        if isinstance(potential, LazyPotential):
            self.potential = potential = potential.compute(self.Y, workers)
        assert potential is not None
        return potential

    def _known_support(self, workers: Workers) -> Support:
        if self.support is None:
            if self.X is None:
                missing = "the distances within the data, which were not saved by the version of this model's file"
                raise ValueError(f"support needs {missing}; fit the model again.")
            self.support = Support.of_data(self.X, self.n_neighbors, workers, **self.compared_by)
        return self.support

    def _values(self, X: Any, new: Callable[[Array, Array], Array], known: Array, workers: Workers) -> Array:
        """Return values of new points by their neighbours; a row equal to one of the data has the ``known`` value."""
        if self.X is not None:
            if scipy.sparse.issparse(X) != scipy.sparse.issparse(self.X):
                X = X.toarray() if scipy.sparse.issparse(X) else scipy.sparse.csr_matrix(X)
            options = {"n_neighbors": self.n_neighbors, "workers": workers, **self.compared_by}
            self._index = self._index or NeighborIndex(self.X, **options)
        values = np.empty((X.shape[0], *known.shape[1:]), known.dtype)
        for rows in row_batches(X):
            batch = X[rows]
            if self._index is None:
                indices, distances = nearest_in_rows(batch, self.n_neighbors)
            else:
                indices, distances = self._index.search(batch, workers)
            found = new(indices, distances)
            # Of several equal points the nearest counts, which is the first of equal distances and is set last.
            for e in reversed(range(min(_STARTS, indices.shape[1]))):
                if self.X is None:
                    same = distances[:, e] == 0
                else:
                    same = np.asarray((batch != self.X[indices[:, e]]).sum(axis=1)).ravel() == 0
                found[same] = known[indices[same, e]]
            values[rows] = found
        return values
