"""How separate groups of points are in a neighbour graph, and the merging of those that are not."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.graph.cut import Cut, within_parts

_MIN_WEIGHT = 0.2  # affinity between two groups that can join them, in mean degrees of a point
_MIN_POINTS = 0.1  # points at the border of two groups that can join them, relative to the mean degree
CONTINUUM = 0.26  # typical reciprocity of a cut through a continuum, of any dimension (docs/method.md)
ERROR = 0.1  # standard error of a reciprocity, times the square root of the number of border points


@dataclass(frozen=True)
class Reciprocity:
    """Reciprocity of pairs of adjacent groups.

    Attributes
    ----------
    first, second : arrays of shape (n_pairs,)
        Groups of each pair, ``first < second``.
    value : array of shape (n_pairs,)
        Reciprocity of the affinities between the two.
    weight : array of shape (n_pairs,)
        Total affinity between the two.
    n_points : array of shape (n_pairs,)
        Effective number of points at the border, on the side that has fewer.
    """

    first: Array
    second: Array
    value: Array
    weight: Array
    n_points: Array

    def upper(self, margin: float) -> Array:
        """Upper confidence bound, ``margin`` divided by the square root of the number of points above the value."""
        return np.asarray(self.value + margin / np.sqrt(self.n_points))

    def unchanged(self, number: Array, active: Array) -> "Reciprocity":
        """The pairs of groups that are not active, given the new number of every group."""
        first, second = number[self.first], number[self.second]
        kept = ~(active[first] | active[second])
        return Reciprocity(first[kept], second[kept], self.value[kept], self.weight[kept], self.n_points[kept])

    def joined(self, other: "Reciprocity") -> "Reciprocity":
        """These pairs and other ones, in the order of their groups."""
        first, second = np.append(self.first, other.first), np.append(self.second, other.second)
        order = np.lexsort((second, first))
        parts = ((self.value, other.value), (self.weight, other.weight), (self.n_points, other.n_points))
        return Reciprocity(first[order], second[order], *(np.append(*part)[order] for part in parts))

    def pooled(self, margin: float) -> float:
        """Upper confidence bound of the mean over all pairs, weighted by their affinities."""
        return float(np.average(self.value, weights=self.weight) + margin / np.sqrt(self.n_points.sum()))


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
    """A symmetric neighbour graph, prepared for the comparison of groups of its points.

    Parameters
    ----------
    graph : CSR matrix of shape (n_samples, n_samples)
        Symmetric weights.
    workers : Workers
        Threads.
    """

    def __init__(self, graph: Any, workers: Workers) -> None:
        graph.sort_indices()
        self.graph, self._workers = graph, workers
        self._degrees = np.asarray(graph.sum(axis=1), dtype=np.float64).ravel()
        self._mean_degree = float(self._degrees.sum()) / max(graph.shape[0], 1)

    def within(self, parts: Array) -> "NeighborGraph":
        """The graph without the edges between different parts."""
        return NeighborGraph(within_parts(self.graph, parts), self._workers)

    def among(self, nodes: Array) -> "NeighborGraph":
        """The graph of some nodes, in ascending order, which have no edges to others."""
        rows = self.graph[nodes]
        position = np.empty(self.graph.shape[0], rows.indices.dtype)
        position[nodes] = np.arange(nodes.size)
        parts = (rows.data, position[rows.indices], rows.indptr)
        graph = scipy.sparse.csr_matrix(parts, (nodes.size, nodes.size))
        return NeighborGraph(graph, self._workers)

    def reciprocity(self, labels: Array) -> Reciprocity:
        r"""Compute the reciprocity of all pairs of groups with edges between them.

        Of the affinity of point i with the points of the two groups, let :math:`f_i` be the share with those of the
        other group. Reciprocity is the mean of :math:`\sqrt{f_i f_j}` over the edges (i, j) between the groups,
        weighted by their affinities. Where a continuum is cut, points at both sides have a large share of their
        affinity across the cut. Across the border of two clusters, it is small, or not reciprocated.
        """
        return _reciprocity(self._cut(labels), int(labels.max(initial=0)) + 1)

    def _cut(self, labels: Array) -> Cut:
        return Cut.of(self.graph, labels, self._workers)

    def conductance(self, labels: Array) -> Array:
        """Share of the affinity of each group that is with other groups."""
        return self._conductance(self._cut(labels), labels)

    def _conductance(self, cut: Cut, labels: Array) -> Array:
        outside = np.bincount(labels, self._degrees - cut.inside)
        return np.asarray(outside / np.maximum(np.bincount(labels, self._degrees), 1e-300))

    def merged(self, labels: Array, threshold: float, margin: float = 0.0, n_groups: int = 1) -> Array:
        """Merge groups that are not separate, until all are or ``n_groups`` are left.

        Two groups are separate if the upper confidence bound of their reciprocity is below ``threshold``, or if they
        share less than a fifth of the affinity of an average point, or if their border is a stray point or two: that of
        a continuum, even of a line, has more. Each round merges the pairs of groups that are nearest to each other, by
        a lower confidence bound.
        """
        cut = self._cut(labels)
        pairs = _reciprocity(cut, int(labels.max(initial=0)) + 1)
        while True:
            n_left = int(labels.max(initial=0)) + 1
            # A group with more affinity outside than inside is not a cluster.
            loose = self._conductance(cut, labels) > 0.5
            is_loose = loose[pairs.first] | loose[pairs.second]
            touch = (pairs.weight >= _MIN_WEIGHT * self._mean_degree) & (
                pairs.n_points >= _MIN_POINTS * self._mean_degree
            )
            is_close = touch & (pairs.upper(margin) >= threshold)
            close = np.flatnonzero(is_close | is_loose)
            if close.size == 0 or n_left <= n_groups:
                return labels
            # The pairs that are certainly close come first.
            order = close[np.argsort(-(pairs.upper(-ERROR) + is_loose)[close], kind="stable")]
            target = _mutually_nearest(order, pairs.first, pairs.second, n_left, n_left - n_groups)
            left, number = np.unique(target, return_inverse=True)
            labels, active = number[labels], np.bincount(number) > 1
            cut = cut.after_merging(self.graph, labels, active, self._workers)
            pairs = pairs.unchanged(number, active).joined(_reciprocity(cut, left.size))


def _mutually_nearest(order: Array, first: Array, second: Array, n_groups: int, most: int) -> Array:
    """Return the group that each group is merged with, at most ``most``: each of a pair is the nearest to the other."""
    ends = np.stack([first[order], second[order]])
    number = np.arange(order.size)
    first_pair = np.full(n_groups, order.size)
    for side in ends:
        np.minimum.at(first_pair, side, number)
    nearest = ends[:, (first_pair[ends] == number).all(axis=0)][:, :most]
    target = np.arange(n_groups)
    target[nearest[1]] = nearest[0]
    return target
