"""How separate groups of points are in a neighbour graph, and the merging of those that are not."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from laptsne._runtime.compiled import compiled
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array

_MIN_WEIGHT = 0.2  # affinity between two groups that can join them, in mean degrees of a point
_MIN_POINTS = 0.1  # points at the border of two groups that can join them, relative to the mean degree
CONTINUUM = 0.26  # typical reciprocity of a cut through a continuum, of any dimension (docs/method.md)
ERROR = 0.1  # standard error of a reciprocity, times the square root of the number of border points


@compiled
def _share_rows(
    start: int, stop: int, indptr: Array, indices: Array, data: Array, labels: Array, across: Array, share: Array
) -> None:
    """For each edge between two groups, set the affinity of its first point with the other group, and its share."""
    for i in range(start, stop):
        own = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            if labels[indices[e]] == labels[i]:
                own += data[e]
        for e in range(indptr[i], indptr[i + 1]):
            other = labels[indices[e]]
            across[e] = share[e] = 0
            if other != labels[i]:
                for other_e in range(indptr[i], indptr[i + 1]):
                    if labels[indices[other_e]] == other:
                        across[e] += data[other_e]
                share[e] = across[e] / (across[e] + own)


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

    def pooled(self, margin: float) -> float:
        """Upper confidence bound of the mean over all pairs, weighted by their affinities."""
        return float(np.average(self.value, weights=self.weight) + margin / np.sqrt(self.n_points.sum()))


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
        self._rows = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
        self._mean_degree = float(graph.sum()) / max(graph.shape[0], 1)
        numbered = scipy.sparse.csr_matrix((np.arange(graph.nnz), graph.indices, graph.indptr), graph.shape)
        self._reverse = numbered.tocsc().data  # position of the edge (j, i) for each edge (i, j)

    def within(self, parts: Array) -> "NeighborGraph":
        """The graph without the edges between different parts."""
        kept = parts[self._rows] == parts[self.graph.indices]
        counts = np.bincount(self._rows[kept], minlength=self.graph.shape[0])
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(self.graph.indptr.dtype)
        graph = scipy.sparse.csr_matrix((self.graph.data[kept], self.graph.indices[kept], indptr), self.graph.shape)
        return NeighborGraph(graph, self._workers)

    def reciprocity(self, labels: Array) -> Reciprocity:
        r"""Compute the reciprocity of all pairs of groups with edges between them.

        Of the affinity of point i with the points of the two groups, let :math:`f_i` be the share with those of the
        other group. Reciprocity is the mean of :math:`\sqrt{f_i f_j}` over the edges (i, j) between the groups,
        weighted by their affinities. Where a continuum is cut, points at both sides have a large share of their
        affinity across the cut. Across the border of two clusters, it is small, or not reciprocated.
        """
        across, share = np.empty((2, self.graph.nnz))
        args = (self.graph.indptr, self.graph.indices, self.graph.data, labels, across, share)
        self._workers.rows(_share_rows, labels.size, *args, work=30.0 * self.graph.nnz)
        first, second = labels[self._rows], labels[self.graph.indices]
        edge = np.flatnonzero(first < second)
        back = self._reverse[edge]
        n_groups = int(labels.max(initial=0)) + 1
        pairs, pair = np.unique(first[edge] * n_groups + second[edge], return_inverse=True)
        weight = self.graph.data[edge]

        def total(values: Array) -> Array:
            return np.bincount(pair, weight * values, minlength=pairs.size)

        sums = total(np.ones(edge.size))
        # The sum over edges of the affinity of a point across the border is that of its square over points.
        n_points = sums**2 / np.maximum(total(across[edge]), total(across[back]))
        value = total(np.sqrt(share[edge] * share[back])) / sums
        return Reciprocity(*np.divmod(pairs, n_groups), value, sums, n_points)

    def conductance(self, labels: Array) -> Array:
        """Share of the affinity of each group that is with other groups."""
        own = labels[self._rows]
        outside = self.graph.data * (own != labels[self.graph.indices])
        return np.asarray(np.bincount(own, outside) / np.maximum(np.bincount(own, self.graph.data), 1e-300))

    def merged(self, labels: Array, threshold: float, margin: float = 0.0, n_groups: int = 1) -> Array:
        """Merge groups that are not separate, until all are or ``n_groups`` are left.

        Two groups are separate if the upper confidence bound of their reciprocity is below ``threshold``, or if they
        share less than a fifth of the affinity of an average point, or if their border is a stray point or two: that of
        a continuum, even of a line, has more. Each round merges the pairs of groups that are nearest to each other, by
        a lower confidence bound.
        """
        while True:
            n_left = int(labels.max(initial=0)) + 1
            pairs = self.reciprocity(labels)
            # A group with more affinity outside than inside is none.
            loose = self.conductance(labels) > 0.5
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
            _, labels = np.unique(target[labels], return_inverse=True)


@compiled
def _mutually_nearest(order: Array, first: Array, second: Array, n_groups: int, most: int) -> Array:
    """Return the group that each group is merged with, at most ``most``: each of a pair is the nearest to the other."""
    target, seen = np.arange(n_groups), np.zeros(n_groups, np.bool_)
    for p in order:
        a, b = first[p], second[p]
        if not seen[a] and not seen[b] and most > 0:
            target[b] = a
            most -= 1
        seen[a] = seen[b] = True
    return target
