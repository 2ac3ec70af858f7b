"""Communities of a graph by modularity, and the edges between and within groups of its nodes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils import gen_batches

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array

_BLOCK = 1 << 16  # rows processed at once by NumPy
_ROUNDS = 2  # times that the multi-level method starts again from its result


@compiled
def _move(
    indptr: Array,
    indices: Array,
    data: Array,
    degree: Array,
    volume: Array,
    label: Array,
    weight: Array,
    pending: Array,
    queued: Array,
    affinity: Array,
    touched: Array,
) -> int:
    """Move nodes to the adjacent community of the highest gain in modularity until none gains; return the moves.

    ``volume`` is the total degree of the part of each node, and ``weight`` that of each community. All nodes are
    pending and queued at first; ``affinity``, which is 0, and ``touched`` are working space. They are passed since
    numba takes long to compile what makes arrays.
    """
    n = label.size
    head, tail, waiting, n_moves = 0, 0, n, 0
    while waiting:
        i = pending[head]
        head, waiting, queued[i] = head + 1 if head + 1 < n else 0, waiting - 1, False
        own, n_touched = label[i], 0
        row, edges = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        for e in range(row.size):
            if row[e] != i:
                c = label[row[e]]
                # Without a branch, which would be mispredicted as often as not.
                touched[n_touched] = c
                n_touched += affinity[c] == 0
                affinity[c] += edges[e]
        weight[own] -= degree[i]
        share = degree[i] / volume[i]
        best, most = own, affinity[own] - share * weight[own]
        for t in range(n_touched):
            c = touched[t]
            gain = affinity[c] - share * weight[c]
            if gain > most + 1e-12 * degree[i] or (gain == most and c < best):
                best, most = c, gain
        for t in range(n_touched):
            affinity[touched[t]] = 0
        weight[best] += degree[i]
        if best != own:
            label[i] = best
            n_moves += 1
            for j in row:
                if not queued[j] and label[j] != best:
                    pending[tail] = j
                    tail, waiting, queued[j] = tail + 1 if tail + 1 < n else 0, waiting + 1, True
    return n_moves


def communities(graph: Any, parts: Array) -> Array:
    r"""Partition the nodes of a graph so that the modularity of each of its parts is high.

    The modularity of a partition of a part is :math:`\sum_c (w_c - d_c^2 / D)`, with :math:`w_c` the weight of the
    edges within community c, :math:`d_c` its total degree and :math:`D` that of the part. It is maximised by local
    moves and aggregation (the Louvain method [1]_), with a queue of nodes whose neighbours have moved [2]_. The result
    depends on the order of the nodes, but not on chance.

    The graph is a symmetric CSR matrix without edges between different parts; ``parts`` and the result number the part
    and the community of every node from 0.

    References
    ----------
    .. [1] V. D. Blondel, J.-L. Guillaume, R. Lambiotte and E. Lefebvre, Fast unfolding of communities in large
       networks, Journal of Statistical Mechanics (2008).
    .. [2] V. A. Traag, L. Waltman and N. J. van Eck, From Louvain to Leiden: guaranteeing well-connected communities,
       Scientific Reports 9 (2019).
    """
    degree = np.asarray(graph.sum(axis=1), dtype=np.float64).ravel()
    volume = np.bincount(parts, degree)[parts]
    labels = np.arange(graph.shape[0])
    for _ in range(_ROUNDS):
        labels, moved = _multilevel(graph, degree, np.maximum(volume, np.finfo(np.float64).tiny), labels)
        if not moved:
            break
    return labels


def _multilevel(graph: Any, degree: Array, volume: Array, labels: Array) -> tuple[Array, bool]:
    """Improve a partition by moves of nodes, then of communities, and so on; return it and whether nodes moved."""
    members, found = np.arange(degree.size), labels
    moved = False
    while True:
        labels = found.copy()
        weight = np.bincount(found, degree, minlength=degree.size)
        space = np.arange(degree.size), np.ones(degree.size, np.bool_), np.zeros(degree.size)
        touched = np.empty(degree.size + 1, labels.dtype)
        n_moves = _move(graph.indptr, graph.indices, graph.data, degree, volume, labels, weight, *space, touched)
        _, labels = np.unique(labels, return_inverse=True)
        moved = moved or n_moves > 0
        members = labels[members]
        n_found = int(labels.max(initial=-1)) + 1
        if n_found == degree.size:
            return members, moved
        graph = _aggregated(graph, labels, n_found)
        representative = np.empty(n_found, np.int64)
        representative[labels] = np.arange(labels.size)
        degree, volume = np.bincount(labels, degree), volume[representative]
        found = np.arange(n_found)


def _aggregated(graph: Any, labels: Array, n_groups: int) -> Any:
    """Return the graph of groups of nodes, with the total weights between them, and sorted indices."""
    edges = np.append(0, np.cumsum(np.bincount(labels, minlength=n_groups)))
    members = np.argsort(labels, kind="stable")
    sums = scipy.sparse.csr_matrix((np.ones(labels.size), members, edges), (n_groups, labels.size))
    by_group = (graph.data, labels[graph.indices], graph.indptr)  # columns may occur repeatedly
    found = sums @ scipy.sparse.csr_matrix(by_group, (labels.size, n_groups))
    found.sort_indices()
    return found


@inlined
def _affinity(i: int | np.int64, group: int, indptr: Array, indices: Array, data: Array, labels: Array) -> float:
    """Return the total weight of the edges from node i to a group."""
    total = 0.0
    for e in range(indptr[i], indptr[i + 1]):
        if labels[indices[e]] == group:
            total += data[e]
    return total


@compiled
def _count_rows(
    start: int,
    stop: int,
    indptr: Array,
    indices: Array,
    data: Array,
    labels: Array,
    nodes: Array,
    active: Array,
    counts: Array,
    crosses: Array,
    inside: Array,
) -> None:
    """Count the edges of nodes to groups of a higher number, if one of the groups is active.

    Also set whether the node has edges to other groups, and the total weight of those within its own group.
    """
    for r in range(start, stop):
        i = nodes[r]
        own = labels[i]
        n_higher = n_others = 0
        for e in range(indptr[i], indptr[i + 1]):
            other = labels[indices[e]]
            n_others += own != other
            n_higher += own < other and (active[own] or active[other])
        counts[r], crosses[r] = n_higher, n_others > 0
        if active[own]:
            inside[i] = _affinity(i, own, indptr, indices, data, labels)


@compiled
def _border_rows(
    start: int,
    stop: int,
    indptr: Array,
    indices: Array,
    data: Array,
    labels: Array,
    nodes: Array,
    active: Array,
    inside: Array,
    at: Array,
    second: Array,
    weight: Array,
    across: Array,
    share: Array,
) -> None:
    """Set the attributes of :class:`Cut` for the edges of nodes, which start at ``at``."""
    for r in range(start, stop):
        n = at[r]
        if at[r + 1] == n:
            continue
        i = nodes[r]
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if labels[i] < labels[j] and (active[labels[i]] or active[labels[j]]):
                second[n], weight[n] = labels[j], data[e]
                there = _affinity(i, labels[j], indptr, indices, data, labels)
                back = _affinity(np.int64(j), labels[i], indptr, indices, data, labels)
                across[0, n], across[1, n] = there, back
                share[n] = np.sqrt(there / (there + inside[i]) * (back / (back + inside[j])))
                n += 1


@dataclass(frozen=True)
class Cut:
    """The edges (i, j) between different groups, each once, with the group of i before that of j."""

    first: Array  # groups of i and of j, shape (n_edges,)
    second: Array
    weight: Array  # of the edge
    across: Array  # total weights of the edges of i to the group of j, and of j to that of i; shape (2, n_edges)
    share: Array  # geometric mean of the shares of the two in the weight of the edges of the node to both groups
    inside: Array  # total weight of the edges of each node within its own group, shape (n_nodes,)
    border: Array  # the nodes with edges to other groups

    @classmethod
    def of(cls, graph: Any, labels: Array, workers: Workers) -> "Cut":
        """Cut a symmetric CSR graph between groups, given the group of every node."""
        nodes, active = np.arange(graph.shape[0]), np.ones(int(labels.max(initial=0)) + 1, np.bool_)
        return cls._among(graph, labels, nodes, active, np.empty(nodes.size), workers)

    def after_merging(self, graph: Any, labels: Array, active: Array, workers: Workers) -> "Cut":
        """Cut the graph after some groups were merged into others; only edges of the latter, the active ones, are set.

        Nodes that had no edges to other groups have none now.
        """
        return self._among(graph, labels, self.border, active, self.inside.copy(), workers)

    @classmethod
    def _among(cls, graph: Any, labels: Array, nodes: Array, active: Array, inside: Array, workers: Workers) -> "Cut":
        parts = (graph.indptr, graph.indices, graph.data, labels, nodes, active)
        n_nodes = nodes.size
        counts, crosses = np.empty(n_nodes, np.int64), np.empty(n_nodes, np.bool_)
        workers.rows(_count_rows, n_nodes, *parts, counts, crosses, inside, work=50.0 * n_nodes)
        at = np.append(0, np.cumsum(counts))
        n_edges = int(at[-1])
        second, weight, share = np.empty(n_edges, labels.dtype), np.empty(n_edges), np.empty(n_edges)
        across = np.empty((2, n_edges))
        args = (*parts, inside, at, second, weight, across, share)
        workers.rows(_border_rows, n_nodes, *args, work=50.0 * n_edges)
        return cls(np.repeat(labels[nodes], counts), second, weight, across, share, inside, nodes[crosses])


def within_parts(graph: Any, parts: Array) -> Any:
    """Return a CSR graph without the edges between different parts, given the part of every node."""
    kept = np.empty(graph.nnz, np.bool_)
    indptr = np.zeros_like(graph.indptr)
    for rows in gen_batches(graph.shape[0], _BLOCK):
        ends = graph.indptr[rows.start : rows.stop + 1]
        entries = slice(ends[0], ends[-1])
        kept[entries] = np.repeat(parts[rows], np.diff(ends)) == parts[graph.indices[entries]]
        n_kept = np.append(0, np.cumsum(kept[entries]))
        indptr[rows.start + 1 : rows.stop + 1] = indptr[rows.start] + n_kept[ends[1:] - ends[0]]
    if kept.all():
        return graph
    return scipy.sparse.csr_matrix((graph.data[kept], graph.indices[kept], indptr), graph.shape)
