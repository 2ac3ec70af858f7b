"""Whether affinities across the border of two groups are returned: reciprocity in the neighbour graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from laptsne._runtime.compiled import compiled
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.clusters.cuts import mutually_nearest
from laptsne.graph.affinity import plus_transpose
from laptsne.graph.communities import Cut, within_parts

_MIN_WEIGHT, _MIN_POINTS = 0.2, 0.1  # affinity and border points that can join groups, relative to the mean degree
ERROR = 0.1  # standard error of a reciprocity, times the square root of the number of border points
# Mean reciprocity of cuts through continua, whatever their dimension. There is evidence if that of a border is lower by
# the margin divided by the square root of its number of points, and at most _EVIDENT (docs/notes/clusters.md).
CONTINUUM, _MARGIN, _EVIDENT = 0.26, 0.36, 0.235
_STEEPNESS = 4  # power with which contrasts of continua are as rare as those of cuts at the same value


@compiled
def _strongest_rows(
    start: int, stop: int, indptr: Array, indices: Array, data: Array, is_copy: Array, found: Array
) -> None:
    """Set the rows of ``found`` to the neighbours of the highest affinity, and -1 where there are fewer."""
    n_neighbors = found.shape[1]
    for i in range(start, stop):
        row, n_found = found[i], 0
        values = data[indptr[i] : indptr[i + 1]]
        for e in range(0 if is_copy[i] else values.size):
            j = indices[indptr[i] + e]
            is_weak = values[e] <= 0 or (n_found == n_neighbors and values[e] <= values[row[n_neighbors - 1]])
            if is_weak or j == i or is_copy[j]:
                continue
            # Insert the edge where it belongs; equal affinities keep their order.
            at = min(n_found, n_neighbors - 1)
            while at > 0 and values[row[at - 1]] < values[e]:
                row[at] = row[at - 1]
                at -= 1
            row[at] = e
            n_found = min(n_found + 1, n_neighbors)
        for t in range(n_neighbors):
            row[t] = indices[indptr[i] + row[t]] if t < n_found else -1


def feasible_neighbors(n_neighbors: int, n_samples: int) -> int:
    """Return the number of neighbours in the graph of a data set, which is lower for small ones."""
    return max(min(n_neighbors, n_samples // 6), min(5, n_samples - 1))


def nearest_graph(P: Any, n_neighbors: int, workers: Workers, first: Array | None = None) -> Any:
    """Return the graph of the neighbours of the highest affinity: 1 for mutual neighbours, 1/2 for others, in CSR.

    If ``first`` has the first copy of every point, further copies have no neighbours, and are none: they would take the
    places of neighbours at a distance, and where rows are repeated at random, affinities are less reciprocated.
    """
    P = scipy.sparse.csr_matrix(P)
    n_samples = P.shape[0]
    is_copy = np.zeros(n_samples, np.bool_) if first is None else first != np.arange(n_samples)
    neighbors = np.empty((n_samples, feasible_neighbors(n_neighbors, n_samples)), np.int32)
    args = (P.indptr, P.indices, P.data, is_copy, neighbors)
    workers.rows(_strongest_rows, n_samples, *args, work=100.0 * P.nnz)
    found = neighbors >= 0
    parts = (np.full(int(found.sum()), np.float32(0.5)), neighbors[found], np.append(0, np.cumsum(found.sum(axis=1))))
    del neighbors, found
    return plus_transpose(scipy.sparse.csr_matrix(parts, P.shape), workers=workers)


class Reciprocity(NamedTuple):
    """Reciprocity of pairs of adjacent groups; all arrays have the shape (n_pairs,)."""

    first: Array  # groups of each pair, first < second
    second: Array
    value: Array  # reciprocity of the affinities between the two
    weight: Array  # total affinity between the two
    n_points: Array  # effective number of points at the border, on the side that has fewer

    @property
    def contrast(self) -> Array:
        """A power of the ratio to the largest reciprocity that is evidence of separate groups: below 1 if it is."""
        significance = (self.value + _MARGIN / np.sqrt(self.n_points)) / CONTINUUM
        return np.asarray(np.maximum(significance, self.value / _EVIDENT) ** _STEEPNESS)

    def updated(self, number: Array, active: Array, changed: Reciprocity) -> Reciprocity:
        """Return all pairs in the order of their groups, given the new number of every group and the active pairs."""
        first, second = number[self.first], number[self.second]
        kept = ~(active[first] | active[second])
        pairs = [np.append(old[kept], new) for old, new in zip((first, second, *self[2:]), changed, strict=True)]
        order = np.lexsort((pairs[1], pairs[0]))
        return Reciprocity(*(part[order] for part in pairs))


def _reciprocity(cut: Cut, n_groups: int) -> Reciprocity:
    """Reciprocity of the pairs of groups that a cut has edges between."""
    pairs, pair = np.unique(cut.first * n_groups + cut.second, return_inverse=True)

    def total(values: Array) -> Array:
        return np.bincount(pair, cut.weight * values, minlength=pairs.size)

    sums = np.bincount(pair, cut.weight, minlength=pairs.size)
    # The sum over edges of the affinity of a point across the border is that of its square over points.
    n_points = sums**2 / np.maximum(total(cut.across[0]), total(cut.across[1]))
    return Reciprocity(*np.divmod(pairs, n_groups), total(cut.share) / sums, sums, n_points)


class NeighborGraph:
    """A symmetric neighbour graph in CSR format, prepared for the comparison of groups of its points."""

    def __init__(self, graph: Any, workers: Workers) -> None:
        graph.sort_indices()
        self.graph, self._workers = graph, workers
        self._degrees = np.asarray(graph.sum(axis=1), dtype=np.float64).ravel()
        mean_degree = float(self._degrees.sum()) / max(graph.shape[0], 1)
        self._min_weight, self._min_points = _MIN_WEIGHT * mean_degree, _MIN_POINTS * mean_degree

    def within(self, parts: Array) -> NeighborGraph:
        """The graph without the edges between different parts."""
        return NeighborGraph(within_parts(self.graph, parts), self._workers)

    def reciprocity(self, labels: Array) -> Reciprocity:
        r"""Compute the reciprocity of all pairs of groups with edges between them.

        Of the affinity of point i with the points of the two groups, let :math:`f_i` be the share with those of the
        other group. Reciprocity is the mean of :math:`\sqrt{f_i f_j}` over the edges (i, j) between the groups,
        weighted by their affinities. Where a continuum is cut, points at both sides have a large share of their
        affinity across the cut. Across the border of two clusters, it is small, or not reciprocated.
        """
        return _reciprocity(Cut.of(self.graph, labels, self._workers), int(labels.max(initial=0)) + 1)

    def conductance(self, labels: Array, cut: Cut | None = None) -> Array:
        """Share of the affinity of each group that is with other groups."""
        outside = np.bincount(labels, self._degrees - (cut or Cut.of(self.graph, labels, self._workers)).inside)
        return np.asarray(outside / np.maximum(np.bincount(labels, self._degrees), 1e-300))

    def merged(self, labels: Array, is_close: Callable[[Reciprocity], Array], n_groups: int = 1) -> Array:
        """Merge pairs of groups that are close, until none are or ``n_groups`` are left.

        Two groups that share little affinity are separate in any case, and so are those whose border is a stray point
        or two: that of a continuum, even of a line, has more. Each round merges the pairs of groups that are nearest to
        each other, by a lower confidence bound.
        """
        cut = Cut.of(self.graph, labels, self._workers)
        pairs = _reciprocity(cut, int(labels.max(initial=0)) + 1)
        while True:
            n_left = int(labels.max(initial=0)) + 1
            # A group with more affinity outside than inside is not a cluster.
            loose = self.conductance(labels, cut) > 0.5
            is_loose = loose[pairs.first] | loose[pairs.second]
            is_joined = (pairs.weight >= self._min_weight) & (pairs.n_points >= self._min_points)
            close = np.flatnonzero((is_joined & is_close(pairs)) | is_loose)
            if close.size == 0 or n_left <= n_groups:
                return labels
            # The pairs that are certainly close come first.
            certain = pairs.value - ERROR / np.sqrt(pairs.n_points) + is_loose
            order = close[np.argsort(-certain[close], kind="stable")]
            target = mutually_nearest(order, pairs.first, pairs.second, n_left, n_left - n_groups)
            left, number = np.unique(target, return_inverse=True)
            labels, active = number[labels], np.bincount(number) > 1
            cut = Cut.of(self.graph, labels, self._workers, cut, active)
            pairs = pairs.updated(number, active, _reciprocity(cut, left.size))
