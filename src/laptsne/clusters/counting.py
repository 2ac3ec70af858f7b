"""Clusters of the data: communities of the neighbour graph that are separate from each other."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import gen_batches

from laptsne._runtime.compiled import compiled
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne._runtime.warn import warn
from laptsne.graph.affinity import plus_transpose
from laptsne.graph.communities import Cut, communities, within_parts

N_NEIGHBORS, _COARSE_SCALE = 20, 30  # in the graph of which the clusters are communities; in another one for evidence
# Other evidence, for samples that are small for their number of clusters: all borders together, and stable communities.
_FINE_SCALE = 10  # neighbours
_SUBSAMPLED = (500, 10_000)  # numbers of points: fewer are too few for evidence, and more do not need it
_N_SUBSAMPLES, _SHARE, _MIN_STABILITY = 4, 0.8, 0.55  # the last is the adjusted Rand index of their communities
MIN_SIZE, _MIN_OF_MEAN = 10, 0.25  # points of a cluster; size of one that is contracted, relative to the mean
_MAX_LEVELS = 20  # of clusters within clusters
_BLOCK = 1 << 16  # rows of P processed at once
_MIN_WEIGHT, _MIN_POINTS = 0.2, 0.1  # affinity and border points that can join groups, relative to the mean degree
CONTINUUM = 0.26  # typical reciprocity of a cut through a continuum, of any dimension (docs/method.md)
ERROR = 0.1  # standard error of a reciprocity, times the square root of the number of border points
# When groups are separate: reciprocity, and margin of its upper confidence bound at a single border point. A cut
# through a continuum of any dimension has a reciprocity of about 0.26, and of at least 0.235 minus 0.3 divided by the
# square root of the number of border points (docs/method.md).
EVIDENT = (0.235, 0.3)  # that there are clusters at all
_FIRST = (0.26, 0.0)  # if there are, for the communities of the whole graph
_WITHIN = (0.235, 0.2)  # for communities within clusters
_POOLED = (0.226, 0.15)  # for all borders together


def find_clusters(P: Any, *, workers: Workers | None = None) -> Array:
    """Find the clusters of the data, given their affinities.

    The neighbour graph of the data is partitioned into communities of high modularity, and those that the data do not
    tell apart are merged: those with a high :meth:`~laptsne.clusters.counting.NeighborGraph.reciprocity`. The same is
    then done within each cluster until none is divided any more, so that clusters of very different sizes are found.

    Modularity divides any graph, even that of a single Gaussian. Therefore there must first be evidence that there are
    clusters at all: groups that are separate by a stricter test, which cuts through continua do not pass, in a graph of
    20 or 30 neighbours; or, in small samples, a low reciprocity of all communities together that are also those of
    subsamples.

    Parameters
    ----------
    P : sparse matrix or array of shape (n_samples, n_samples)
        Affinities.
    workers : Workers, optional

    Returns
    -------
    labels : array of shape (n_samples,)
        Cluster of every point, from the largest, 0, to the smallest; all 0 without evidence of clusters, and -1 for
        points of groups that are too small.

    Examples
    --------
    >>> import numpy as np
    >>> from laptsne.clusters import find_clusters
    >>> from laptsne.graph.affinity import joint_affinities
    >>> X = np.random.default_rng(0).normal(size=(400, 5))
    >>> X[:200] += 4
    >>> int(find_clusters(joint_affinities(X, perplexity=30)).max()) + 1
    2
    """
    graph, labels = _first_groups(P, workers or Workers(1))
    nodes = np.arange(labels.size)
    for _ in range(_MAX_LEVELS):
        if labels.max() == 0:
            break
        parts = np.unique(labels[nodes], return_inverse=True)[1]
        graph = graph.within(parts)  # groups are only divided further: no other edges are needed any more
        found = graph.merged(communities(graph.graph, parts), *_WITHIN)
        part_of = np.empty(int(found.max()) + 1, parts.dtype)
        part_of[found] = parts
        is_new = (np.bincount(part_of) > 1)[parts]
        if not is_new.any():
            break
        labels[nodes[is_new]] = int(labels.max()) + 1 + found[is_new]
        # The others were not divided, and will not be. While they are few, a copy without them is not worth its memory.
        if 2 * int(is_new.sum()) <= nodes.size:
            nodes, graph = nodes[is_new], graph.among(np.flatnonzero(is_new))
    return by_size(np.unique(labels, return_inverse=True)[1])


def _first_groups(P: Any, workers: Workers) -> tuple[NeighborGraph, Array]:
    """Return the neighbour graph and its separate groups; a single one without evidence of clusters."""
    one = np.zeros(P.shape[0], np.int64)
    graph = NeighborGraph(nearest_graph(P, N_NEIGHBORS, workers), workers)
    found = communities(graph.graph, one)
    if not _has_separate_groups(graph, found):
        coarse = NeighborGraph(nearest_graph(P, _COARSE_SCALE, workers), workers)
        if not _has_separate_groups(coarse, communities(coarse.graph, one)) and not _is_stable(P, workers):
            return graph, one
    return graph, graph.merged(found, *_FIRST).copy()


def given_clusters(P: Any, n_clusters: int, *, workers: Workers | None = None) -> Array:
    """Divide the data into a given number of clusters, whether or not they are separate.

    Communities are divided further until there are enough of them, and merged in the order of their reciprocity.
    Fewer clusters are found if the graph has fewer communities; points of further components are -1.
    """
    workers = workers or Workers(1)
    graph = NeighborGraph(nearest_graph(P, N_NEIGHBORS, workers), workers)
    labels = np.zeros(P.shape[0], np.int64)
    while labels.max() + 1 < n_clusters:
        divided = communities(graph.within(labels).graph, labels)
        if divided.max() == labels.max():
            break
        labels = divided
    found = by_size(graph.merged(labels, 0.0, n_groups=n_clusters), 1, n_clusters)
    n_found = int(found.max()) + 1
    if n_found < n_clusters:
        warn(
            f"n_clusters={n_clusters}, but the neighbour graph of the data has only {n_found} communities, so that "
            f"{n_found} clusters were found. Set n_clusters to at most {n_found}.",
        )
    return found


def main_clusters(labels: Array, P: Any, max_clusters: int) -> Array:
    """Assign every point to one of the main clusters, which are contracted.

    Each cluster counts equally in the contraction, so that many small ones would take it over, and would be thrown out
    of the map. Main clusters have at least a quarter of the mean size, and there are at most ``max_clusters``. The
    others, and points in no cluster, join the main cluster with which they share the most affinity, or become -1.
    """
    sizes = np.bincount(labels[labels >= 0], minlength=1)
    n_main = min(int((sizes >= _MIN_OF_MEAN * sizes.mean()).sum()), max_clusters)
    if n_main == sizes.size and labels.min() >= 0:
        return labels
    # Clusters are numbered by size. Points in no cluster are groups of their own.
    group = labels.copy()
    group[labels < 0] = sizes.size + np.arange(int((labels < 0).sum()))
    n_groups = int(group.max()) + 1
    assign = scipy.sparse.csr_matrix((np.ones(group.size), group, np.arange(group.size + 1)), (group.size, n_groups))
    shared = np.zeros((n_groups, n_main))
    others = np.flatnonzero(group >= n_main)
    for rows in gen_batches(others.size, _BLOCK):  # all at once would take one and a half times the memory of P
        block = others[rows]
        shared += (assign[block].T @ (scipy.sparse.csr_matrix(P[block]) @ assign[:, :n_main])).toarray()
    target = np.where(shared.max(axis=1) > 0, shared.argmax(axis=1), -1)
    target[:n_main] = np.arange(n_main)
    return target[group]


def _has_separate_groups(graph: NeighborGraph, found: Array) -> bool:
    """Whether at least two groups of communities of a neighbour graph are separate by the strict test."""
    sizes = np.bincount(graph.merged(found, *EVIDENT))
    return int((sizes >= MIN_SIZE).sum()) > 1


def _is_stable(P: Any, workers: Workers) -> bool:
    """Whether the communities of a small sample have a low reciprocity and are those of subsamples too."""
    n_samples = P.shape[0]
    if not _SUBSAMPLED[0] <= n_samples <= _SUBSAMPLED[1]:
        return False
    graph = NeighborGraph(nearest_graph(P, _FINE_SCALE, workers), workers)
    borders = graph.reciprocity(communities(graph.graph, np.zeros(n_samples, np.int64)))
    if not borders.value.size:
        return False
    threshold, margin = _POOLED
    if np.average(borders.value, weights=borders.weight) + margin / np.sqrt(borders.n_points.sum()) >= threshold:
        return False
    random_state = np.random.RandomState(0)
    found = np.full((_N_SUBSAMPLES, n_samples), -1)
    for labels in found:
        rows = np.sort(random_state.permutation(n_samples)[: int(_SHARE * n_samples)])
        labels[rows] = communities(nearest_graph(P[rows][:, rows], _FINE_SCALE, workers), np.zeros(rows.size, np.int64))
    pairs = map(np.array, itertools.combinations(found, 2))
    agreement = [adjusted_rand_score(*pair[:, (pair >= 0).all(axis=0)]) for pair in pairs]
    return float(np.mean(agreement)) > _MIN_STABILITY


def by_size(labels: Array, min_size: int = MIN_SIZE, n_clusters: int | None = None) -> Array:
    """Renumber clusters from the largest; those that are too small, or too many, become -1."""
    sizes = np.bincount(labels[labels >= 0])
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] >= min_size][:n_clusters]
    if order.size == 0:
        return np.zeros_like(labels)
    number = np.full(sizes.size + 1, -1)
    number[order] = np.arange(order.size)
    return number[labels]


@compiled
def _strongest_rows(start: int, stop: int, indptr: Array, indices: Array | None, data: Array, found: Array) -> None:
    """Set the rows of ``found`` to the neighbours of the highest affinity, and -1 where there are fewer."""
    n_neighbors = found.shape[1]
    for i in range(start, stop):
        row, n_found = found[i], 0
        values = data[indptr[i] : indptr[i + 1]]
        for e in range(values.size):
            j = e if indices is None else indices[indptr[i] + e]
            if values[e] <= 0 or j == i or (n_found == n_neighbors and values[e] <= values[row[n_neighbors - 1]]):
                continue
            # Insert the edge where it belongs; equal affinities keep their order.
            at = min(n_found, n_neighbors - 1)
            while at > 0 and values[row[at - 1]] < values[e]:
                row[at] = row[at - 1]
                at -= 1
            row[at] = e
            n_found = min(n_found + 1, n_neighbors)
        for t in range(n_neighbors):
            if t >= n_found:
                row[t] = -1
            elif indices is not None:
                row[t] = indices[indptr[i] + row[t]]


def nearest_graph(P: Any, n_neighbors: int, workers: Workers) -> Any:
    """The graph of the neighbours of the highest affinity: 1 for mutual neighbours, 1/2 for others, as a CSR matrix."""
    n_samples = P.shape[0]
    n_neighbors = max(min(n_neighbors, n_samples // 8), min(5, n_samples - 1))  # fewer for few points
    is_dense = isinstance(P, np.ndarray)
    rows = (n_samples * np.arange(n_samples + 1), None, P.ravel()) if is_dense else (P.indptr, P.indices, P.data)
    found = np.empty((n_samples, n_neighbors), np.int32)
    workers.rows(_strongest_rows, n_samples, *rows, found, work=100.0 * P.size)
    parts = (np.full((found >= 0).sum(), 0.5), found[found >= 0], np.append(0, np.cumsum((found >= 0).sum(axis=1))))
    return plus_transpose(scipy.sparse.csr_matrix(parts, (n_samples, n_samples)))


class Reciprocity(NamedTuple):
    """Reciprocity of pairs of adjacent groups; all arrays have the shape (n_pairs,)."""

    first: Array  # groups of each pair, first < second
    second: Array
    value: Array  # reciprocity of the affinities between the two
    weight: Array  # total affinity between the two
    n_points: Array  # effective number of points at the border, on the side that has fewer

    def upper(self, margin: float) -> Array:
        """Upper confidence bound; a lower one for a negative margin."""
        return np.asarray(self.value + margin / np.sqrt(self.n_points))

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

    def among(self, nodes: Array) -> NeighborGraph:
        """The graph of some nodes, in ascending order, which have no edges to others."""
        return NeighborGraph(self.graph[nodes][:, nodes], self._workers)

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

    def merged(self, labels: Array, threshold: float, margin: float = 0.0, n_groups: int = 1) -> Array:
        """Merge groups that are not separate, until all are or ``n_groups`` are left.

        Two groups are separate if the upper confidence bound of their reciprocity is below ``threshold``, or if they
        share little affinity, or if their border is a stray point or two: that of a continuum, even of a line, has
        more. Each round merges the pairs of groups that are nearest to each other, by a lower confidence bound.
        """
        cut = Cut.of(self.graph, labels, self._workers)
        pairs = _reciprocity(cut, int(labels.max(initial=0)) + 1)
        while True:
            n_left = int(labels.max(initial=0)) + 1
            # A group with more affinity outside than inside is not a cluster.
            loose = self.conductance(labels, cut) > 0.5
            is_loose = loose[pairs.first] | loose[pairs.second]
            is_close = (pairs.weight >= self._min_weight) & (pairs.n_points >= self._min_points)
            is_close &= pairs.upper(margin) >= threshold
            close = np.flatnonzero(is_close | is_loose)
            if close.size == 0 or n_left <= n_groups:
                return labels
            # The pairs that are certainly close come first.
            order = close[np.argsort(-(pairs.upper(-ERROR) + is_loose)[close], kind="stable")]
            target = _mutually_nearest(order, pairs.first, pairs.second, n_left, n_left - n_groups)
            left, number = np.unique(target, return_inverse=True)
            labels, active = number[labels], np.bincount(number) > 1
            cut = Cut.of(self.graph, labels, self._workers, cut, active)
            pairs = pairs.updated(number, active, _reciprocity(cut, left.size))


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
