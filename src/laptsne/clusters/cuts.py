"""Groups of points that are separate: borders of the neighbour graph, compared with cuts within the groups."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, triu
from sklearn.utils import gen_batches

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.graph.communities import within_parts

_BALANCE = 0.3  # least share of the points on either side of a balanced cut
_SMOOTHING = 40  # largest number of steps of diffusion by which the order of a group's points becomes smooth
_BLOCK = 1 << 16  # rows processed at once
_SAMPLED = 20_000  # points of which the growth of their neighbourhood is counted
# Points of a group that is cut point by point while groups are merged, and in given groups; larger ones are cut between
# their smallest communities, of which the cuts have more edges.
_MAX_POINTS, _MAX_GIVEN = 120, 100_000
# The expected ratio of a border of a continuum to the best balanced cut within it (docs/notes/clusters.md): a share of
# the growth of neighbourhoods in groups no larger than these; beyond that it rises with the dimension of the group.
_LOCAL, _BASE, _PER_DIMENSION, _MOST = 0.27, 0.2, 0.28, 1.05
_LOCAL_REACH = 1.2  # points of a group, relative to a two-step neighbourhood, up to which its dimension is not measured
# Small counts vary: edges, relative to the number of neighbours, by which expectations are lowered and ratios damped.
_VARIATION, _DAMPING = 0.5, 0.25


@inlined
def _component(g: int, members: Array, graph: Any, group: Array, size: Array, space: Any) -> int:
    """Fill the queue with the main connected component of a group, and set its values; return its number of nodes.

    The main component has all points but the share that the smaller side of a balanced cut may have; without one, the
    number is 0. Values are the differences of the distances from two peripheral nodes, which rise along the component.
    """
    (indptr, indices, _), (depth, queue, value) = graph, space
    all_points = 0.0
    for i in members:
        depth[i] = -1
        all_points += size[i]
    start, tried, n_found, searches = members[0], 0, 0, 0
    while searches < 3:  # for the component, and from either end of it
        depth[start], queue[0], head, n_found, points = 0, start, 0, 1, 0.0
        while head < n_found:
            i = queue[head]
            head += 1
            points += size[i]
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                if group[j] == g and depth[j] < 0:
                    depth[j] = depth[i] + 1
                    queue[n_found] = j
                    n_found += 1
        if points < (1 - _BALANCE) * all_points:
            while tried < members.size and depth[members[tried]] >= 0:
                tried += 1
            if tried == members.size:
                return 0
            start = members[tried]
            continue
        start = queue[n_found - 1]
        searches += 1
        for a in range(n_found):
            i = queue[a]
            value[i] = depth[i] - (value[i] if searches == 3 else 0.0)
            depth[i] = -1
    return n_found


@inlined
def _local_graph(n: int, g: int, graph: Any, group: Array, space: Any) -> Any:
    """Return the graph among the nodes in the queue, numbered by their places in it, as first edges, ends, weights."""
    (indptr, indices, data), (place, queue, _) = graph, space
    first, n_edges = np.zeros(n + 1, np.int64), 0
    for a in range(n):
        place[queue[a]] = a
        n_edges += indptr[queue[a] + 1] - indptr[queue[a]]
    ends, weights, n_edges = np.empty(n_edges, np.int32), np.empty(n_edges), 0
    for a in range(n):
        for e in range(indptr[queue[a]], indptr[queue[a] + 1]):
            if group[indices[e]] == g and indices[e] != queue[a]:
                ends[n_edges], weights[n_edges] = place[indices[e]], data[e]
                n_edges += 1
        first[a + 1] = n_edges
    return first, ends, weights


@inlined
def _smooth(local: Any, value: Array, degree: Array, moved: Array) -> None:
    """Set the degrees of the nodes of a connected graph, and smooth values by diffusion."""
    first, ends, weights = local
    n, volume = value.size, 0.0
    for a in range(n):
        degree[a] = 0.0
        for e in range(first[a], first[a + 1]):
            degree[a] += weights[e]
        volume += degree[a]
    for _ in range(min(_SMOOTHING, n // 2 + 4)):
        mean = largest = 0.0
        for a in range(n):
            mean += degree[a] * value[a]
        mean /= volume
        for a in range(n):
            total = 0.0
            for e in range(first[a], first[a + 1]):
                total += weights[e] * value[ends[e]]
            moved[a] = (value[a] + total / degree[a]) / 2 - mean
            largest = max(largest, abs(moved[a]))
        for a in range(n):
            value[a] = moved[a] / largest if largest > 0 else 0.0


@compiled
def _balanced_cut_rows(
    start: int, stop: int, graph: Any, groups: Any, size: Array, arrays: Any, cut: Array, volume: Array
) -> None:
    """Set the weight of the best balanced cut through each group, and the degrees on the side that has less.

    The cuts are those along an approximate Fiedler vector. Both are 0 for a group that is in several parts already.
    ``size`` has the number of points of each node.
    """
    (group, numbers, order, begin), (depth, queues, values) = groups, arrays
    for g in numbers[start:stop]:
        cut[g] = volume[g] = 0.0
        members, queue = order[begin[g] : begin[g + 1]], queues[begin[g] : begin[g + 1]]
        n = _component(g, members, graph, group, size, (depth, queue, values))
        if n < 2:
            continue
        local = _local_graph(n, g, graph, group, (depth, queue, values))
        first, ends, weights = local
        value, degree, rank = np.empty(n), np.empty(n), np.empty(n)
        all_points = all_degrees = 0.0
        for a in range(n):
            value[a] = values[queue[a]]
            all_points += size[queue[a]]
        _smooth(local, value, degree, rank)
        along = np.argsort(value)
        for a in range(n):
            rank[along[a]] = a
            all_degrees += degree[a]
        below = weight = half = 0.0
        least, best = np.inf, np.inf
        for a in range(n - 1):
            i = along[a]
            below += size[queue[i]]
            half += degree[i]
            for e in range(first[i], first[i + 1]):
                weight += weights[e] if rank[ends[e]] > a else -weights[e]
            # Among balanced cuts, the lowest; if there are none, the most balanced one.
            imbalance = max(abs(below / all_points - 0.5) - (0.5 - _BALANCE), 0.0)
            if imbalance < least or (imbalance == least and weight < best):
                least, best = imbalance, weight
                cut[g], volume[g] = weight, min(half, all_degrees - half)


@compiled
def _growth_rows(start: int, stop: int, nodes: Array, indptr: Array, indices: Array, growth: Array) -> None:
    """Set the log of the factor by which the neighbourhoods of some nodes grow in a second step."""
    seen = np.full(indptr.size - 1, -1, np.int32)
    for row in range(start, stop):
        i = nodes[row]
        seen[i] = i
        n_seen = 1
        for j in indices[indptr[i] : indptr[i + 1]]:
            if seen[j] != i:
                seen[j] = i
                n_seen += 1
            for k in indices[indptr[j] : indptr[j + 1]]:
                if seen[k] != i:
                    seen[k] = i
                    n_seen += 1
        growth[row] = np.log(n_seen / (indptr[i + 1] - indptr[i] + 1))


class Bodies:
    r"""Groups of points that are merged until the data tell them apart.

    Let c be the number of edges between two groups, and :math:`h_a` that of the best balanced cut through group a. In a
    continuum, the border of two groups has about as many edges as a cut through the smaller one, or more: twice the
    cross-section of a line, :math:`\sqrt{2 \pi d}` times that of a ball in d dimensions. The contrast of a border is
    its ratio :math:`c / h` to the expected ratio of a continuum of the dimension of the group; below 1, the groups are
    separate. Cuts are those of the graph itself, so that shape, density and dimension of the data do not matter.

    ``smallest`` has a small community of every node of the graph; the groups consist of these.
    """

    def __init__(
        self, graph: Any, smallest: Array, n_neighbors: int, workers: Workers, growth: Array | None = None
    ) -> None:
        self.graph, self.smallest, self.workers, self.n_neighbors = graph, smallest, workers, n_neighbors
        self._max_points = _MAX_POINTS
        self._sizes = np.bincount(smallest).astype(np.float64)
        self._quotient = self._between = quotient(graph, smallest).astype(np.float32)
        nodes, n_groups = np.arange(0, smallest.size, -(-smallest.size // _SAMPLED)), self._sizes.size
        if growth is None:
            growth = np.empty(nodes.size)
            arrays = (nodes, graph.indptr, graph.indices)
            workers.rows(_growth_rows, nodes.size, *arrays, growth, work=1e3 * nodes.size, alignment=1 << 12)
        self._growth_of_sampled = growth
        # Communities of which no node is sampled have the growth of all.
        n_sampled = np.bincount(smallest[nodes], minlength=n_groups)
        of_sampled = np.bincount(smallest[nodes], growth, minlength=n_groups) / np.maximum(n_sampled, 1)
        self._growth = np.where(n_sampled, of_sampled, growth.mean()) * self._sizes
        self._degree = np.bincount(smallest, np.diff(graph.indptr) + 1.0)
        self.group = np.arange(self._sizes.size)  # of each small community
        self._cut, self._volume = np.zeros((2, self._sizes.size))
        self._is_new = np.ones(self._sizes.size, np.bool_)

    @property
    def labels(self) -> Array:
        """The group of every node."""
        return self.group[self.smallest]

    def merge(self, threshold: float = 1.0) -> Array:
        """Merge groups, the closest first, until all are separate; return the group of every node."""
        while True:
            first, second, contrast, is_loose, affinity = self.borders()
            close = np.flatnonzero((contrast >= threshold) | is_loose)
            if close.size == 0:
                return self.labels
            # Groups with more edges outside than inside come first, by their affinity.
            order = np.lexsort((-np.where(is_loose, affinity, contrast)[close], ~is_loose[close]))
            self._join(mutually_nearest(close[order], first, second, self._cut.size))

    def borders(self) -> tuple[Array, Array, Array, Array, Array]:
        """Return the adjacent pairs of groups: both, contrast, whether one is loose, and affinity."""
        self._measure()
        n_groups = self._cut.size
        volume, inside = np.asarray(self._between.sum(axis=1)).ravel(), self._between.diagonal()
        pairs = triu(self._between, 1).tocoo()
        first, second, edges = pairs.row, pairs.col, pairs.data
        expected, damping = self._expected_ratios(n_groups), _DAMPING * self.n_neighbors

        def contrast(group: Array) -> Array:
            ratio = (edges + damping) / (self._cut[group] + damping)
            return np.asarray(ratio / np.maximum(expected[group], 1e-12))

        is_loose = 2 * inside < volume
        affinity = edges / (volume[first] * volume[second])
        return (
            first,
            second,
            np.maximum(contrast(first), contrast(second)),
            is_loose[first] | is_loose[second],
            affinity,
        )

    def within(self, labels: Array, parts: Array) -> Bodies:
        """Return groups that do not cross the borders of others: the parts of given groups, without edges between."""
        return self._grouped(parts, within_parts(self.graph, labels))

    def grouped(self, labels: Array) -> Bodies:
        """Return given groups, which are cut point by point."""
        other = self._grouped(labels, self.graph)
        other._max_points = _MAX_GIVEN
        return other

    def _grouped(self, labels: Array, graph: Any) -> Bodies:
        pairs = labels * self._sizes.size + self.smallest
        _, nodes, number = np.unique(pairs, return_index=True, return_inverse=True)
        other = Bodies(graph, number, self.n_neighbors, self.workers, self._growth_of_sampled)
        n_groups = int(labels.max(initial=0)) + 1
        other.group, other._is_new = labels[nodes], np.ones(n_groups, np.bool_)
        other._between = quotient(other._quotient, other.group)
        other._cut, other._volume = np.zeros((2, n_groups))
        return other

    def _expected_ratios(self, n_groups: int) -> Array:
        """Return the ratio of border and cut that the continuum of each group would have at least."""
        size, degree, growth = (
            np.maximum(np.bincount(self.group, part, minlength=n_groups), 1)
            for part in (self._sizes, self._degree, self._growth)
        )
        growth, degree = np.exp(growth / size), degree / size
        reach = growth * degree / size
        # A cut through a ball of n points has the conductance (k / n)^(1/d) / pi.
        conductance = self._cut / np.maximum(self._volume, 1e-9)
        dimension = np.log(np.maximum(size / degree, 1.01)) / -np.log(np.clip(np.pi * conductance, 1e-9, 0.97))
        dimension[reach * _LOCAL_REACH > 1] = np.inf
        limit = np.minimum(_BASE + _PER_DIMENSION * dimension, _MOST)
        expected = np.minimum(_LOCAL * growth, limit * np.maximum(1, reach))
        return np.asarray(expected * np.exp(-_VARIATION * self.n_neighbors / np.maximum(self._cut, 1e-9)))

    def _measure(self) -> None:
        """Cut the groups that are new: small ones point by point, large ones between small communities."""
        sizes = np.bincount(self.group, self._sizes)
        for is_small in (True, False):
            numbers = np.flatnonzero(self._is_new & ((sizes <= self._max_points) == is_small))
            if numbers.size == 0:
                continue
            graph = self.graph if is_small else self._quotient
            group = self.labels if is_small else self.group
            n, is_cut = group.size, np.zeros(sizes.size, np.bool_)
            is_cut[numbers] = True
            nodes = np.flatnonzero(is_cut[group])
            first = np.append(0, np.cumsum(np.bincount(group[nodes], minlength=sizes.size)))
            groups = (group, numbers, nodes[np.argsort(group[nodes], kind="stable")], first)
            space = (np.full(n, -1), np.empty(nodes.size, np.int64), np.empty(n))
            size = np.ones(n) if is_small else self._sizes
            arrays = (graph.indptr, graph.indices, graph.data)
            args = (arrays, groups, size, space, self._cut, self._volume)
            self.workers.rows(_balanced_cut_rows, numbers.size, *args, work=1e4 * nodes.size, alignment=1)
        self._is_new[:] = False

    def _join(self, target: Array) -> None:
        kept, number = np.unique(target, return_inverse=True)
        self._is_new = np.bincount(number) > 1
        self.group, self._cut, self._volume = number[self.group], self._cut[kept], self._volume[kept]
        self._between = quotient(self._between, number)


def quotient(graph: Any, labels: Array) -> Any:
    """Return the graph of groups of nodes, with the total weights between and, on the diagonal, within them."""
    n = labels.size
    assign = csr_matrix((np.ones(n), labels, np.arange(n + 1)), (n, int(labels.max(initial=0)) + 1))
    # In blocks of rows, which may be dense: all at once would take half of the memory of the graph again.
    found = sum(assign[rows].T @ csr_matrix(graph[rows] @ assign) for rows in gen_batches(n, _BLOCK))
    found.sort_indices()
    return found


def mutually_nearest(order: Array, first: Array, second: Array, n_groups: int, most: int | None = None) -> Array:
    """Return the group that each group is merged with, at most ``most``: each of a pair is the nearest to the other.

    The order of the pairs is that of their distances.
    """
    ends = np.stack([first[order], second[order]])
    number = np.arange(order.size)
    first_pair = np.full(n_groups, order.size)
    for side in ends:
        np.minimum.at(first_pair, side, number)
    nearest = ends[:, (first_pair[ends] == number).all(axis=0)][:, :most]
    target = np.arange(n_groups)
    target[nearest[1]] = nearest[0]
    return target
