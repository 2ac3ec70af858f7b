"""Support of new points by the data: how their distances to their neighbours compare with those of the data."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array, Floats
from laptsne.graph.neighbors import nearest_of_graph, neighbor_distances

# Support below which a point belongs to no cluster: one point in a hundred of those like the data has less.
MIN_SUPPORT = 0.01
_NEAREST = 5  # neighbours whose mean distance is the spacing
# Power of the spacing around a point in the unit of its own; the rest is that of all data. With 0, data of several
# densities have one unit; with 1, points on the outskirts of a cluster have a larger one than those inside
# (benchmarks/reliability.py).
_LOCAL = 0.5
_MIN_TAIL = 0.01  # least exponent of the tail


@dataclass(frozen=True)
class Support:
    r"""The distribution of distances to neighbours in the data.

    The *spacing* of a point is the mean distance to its five nearest neighbours. Its *isolation* is its spacing divided
    by :math:`\sqrt{ab}`, where a is the mean spacing of its neighbours and b the median spacing of the data: a unit
    between a local and a global one. The *support* of a point of isolation t is the share of points of the data whose
    isolation, computed without themselves, is at least t: :math:`(1 + \#\{t_i \ge t\}) / (N + 1)`. It is uniform for
    points of the distribution of the data. For values beyond the :math:`\sqrt N` largest, it continues as a Pareto
    distribution with Hill's estimate of the exponent, so that far points can still be ordered.

    References
    ----------
    B. M. Hill, "A simple general approach to inference about the tail of a distribution", Annals of Statistics, 1975.
    """

    spacing: Array  # this and the next are of shape (n_samples,)
    isolation: Array

    def __post_init__(self) -> None:
        """Raise ValueError if the parts are inconsistent, for instance if they come from a damaged file."""
        for name, part in (("spacing", self.spacing), ("isolation", self.isolation)):
            if part.dtype.kind != "f" or part.shape != (self.spacing.size,) or np.isnan(part).any():
                raise ValueError(f"support: {name}, {part.dtype} of shape {part.shape}, is inconsistent or has NaN.")

    @classmethod
    def of_data(cls, X: Any, n_neighbors: int, workers: Workers, **options: Any) -> Self:
        """Compute the distribution from the neighbours of each point; options as in :func:`neighbor_distances`."""
        graph = neighbor_distances(X, min(n_neighbors, X.shape[0] - 1), workers=workers, **options)
        nearest = nearest_of_graph(graph, _NEAREST)
        spacing = _row_means(nearest, nearest.data)
        return cls(spacing, _isolation(spacing, _row_means(graph, spacing[graph.indices]), spacing))

    def isolation_of(self, indices: Array, distances: Array) -> Floats:
        """Return the isolation of new points, given their neighbours in the data, nearest first."""
        own = distances[:, :_NEAREST].mean(axis=1, dtype=np.float64)
        return _isolation(own, self.spacing[indices].mean(axis=1), self.spacing)

    def share(self, isolation: Array) -> Floats:
        """Return the support of points, given their isolation."""
        n_samples = self.isolation.size
        ordered = np.sort(self.isolation)
        at_least = n_samples - np.searchsorted(ordered, isolation, side="left")
        support = (1 + at_least) / (n_samples + 1)
        n_tail = min(int(np.sqrt(n_samples)), n_samples - 1)
        start = ordered[-n_tail - 1]
        if start > 0 and np.isfinite(ordered[-1]):
            exponent = max(float(np.log(ordered[-n_tail:] / start).mean()), _MIN_TAIL)
            with np.errstate(divide="ignore", under="ignore"):
                tail = (n_tail + 1) / (n_samples + 1) * (start / isolation) ** (1 / exponent)
            support = np.where(isolation > start, tail, support)
        return np.asarray(support, dtype=np.float64)


def _row_means(graph: Any, values: Array) -> Floats:
    """Return the mean of the values of the edges of each node; nodes without edges get the median of the others."""
    counts = np.diff(graph.indptr)
    sums = np.bincount(np.repeat(np.arange(counts.size), counts), weights=values, minlength=counts.size)
    fill = float(np.median(sums[counts > 0] / counts[counts > 0])) if counts.any() else 0.0
    return np.asarray(np.divide(sums, counts, out=np.full(counts.size, fill), where=counts > 0))


def _isolation(own: Array, around: Array, spacing: Array) -> Floats:
    """Return spacings in units between those of their neighbours and that of the data; 0 / 0 is 0."""
    unit = around**_LOCAL * float(np.median(spacing)) ** (1 - _LOCAL)
    return np.asarray(np.divide(own, unit, out=np.where(own > 0, np.inf, 0.0), where=unit > 0))


def voted(labels: Array, p: Array) -> NDArray[np.int64]:
    """Return the label of most weight in each row; of equal ones that of the nearest neighbour."""
    totals = np.stack([np.where(labels == label[:, None], p, 0).sum(axis=1) for label in labels.T], axis=1)
    return np.asarray(np.take_along_axis(labels, totals.argmax(axis=1)[:, None], axis=1)[:, 0], dtype=np.int64)
