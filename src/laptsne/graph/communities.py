"""Communities of a graph by modularity, and the edges between and within groups of its nodes."""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.utils import gen_batches

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array

_BLOCK = 1 << 16  # rows processed at once by NumPy
_ROUNDS = 2  # times that the multi-level method starts again from its result


@compiled
def _move(graph: Any, degree: Array, volume: Array, label: Array, weight: Array, space: Any) -> int:
    """Move nodes to the adjacent community of the highest gain in modularity until none gains; return the moves.

    ``volume`` is the total degree of the part of each node, ``weight`` that of each community. Working space is passed
    since numba takes long to compile what makes arrays: all nodes pending and queued, ``affinity`` 0, and ``touched``.
    """
    (indptr, indices, data), (pending, queued, affinity, touched) = graph, space
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
    r"""Partition the nodes of a graph, given the part of each, so that the modularity of each of its parts is high.

    The modularity of a partition of a part is :math:`\sum_c (w_c - d_c^2 / D)`, with :math:`w_c` the weight of the
    edges within community c, :math:`d_c` its total degree and :math:`D` that of the part. It is maximised by local
    moves and aggregation (the Louvain method: Blondel, Guillaume, Lambiotte and Lefebvre, 2008), with a queue of nodes
    whose neighbours have moved (Traag, Waltman and van Eck, From Louvain to Leiden, 2019). The result depends on the
    order of the nodes, but not on chance. No edge of the symmetric CSR matrix may lie between different parts.
    """
    degree, volume = _degrees(graph, parts)
    labels, moved = np.arange(graph.shape[0]), True
    for _ in range(_ROUNDS):
        if moved:
            labels, moved = _multilevel(graph, degree, volume, labels)
    return labels


def communities_of_pieces(graph: Any, pieces: Array) -> Array:
    """Partition a graph as :func:`communities` does, in less time: pieces are moved first, then nodes once."""
    whole = _aggregated(graph, pieces, int(pieces.max(initial=-1)) + 1)
    found = communities(whole, np.zeros(whole.shape[0], np.int64))[pieces]
    return _multilevel(graph, *_degrees(graph, np.zeros(pieces.size, np.int64)), found)[0]


def _degrees(graph: Any, parts: Array) -> tuple[Array, Array]:
    """Return the degree of every node, and the total degree of its part."""
    degree = np.asarray(graph.sum(axis=1), dtype=np.float64).ravel()
    return degree, np.maximum(np.bincount(parts, degree)[parts], np.finfo(np.float64).tiny)


def _multilevel(
    graph: Any, degree: Array, volume: Array, found: Array, *, one_level: bool = False
) -> tuple[Array, bool]:
    """Improve a partition by moves of nodes, then of communities, and so on; return it and whether nodes moved."""
    members, moved = np.arange(degree.size), False
    while True:
        labels = found.copy()
        weight = np.bincount(found, degree, minlength=degree.size)
        queue = (np.arange(degree.size), np.ones(degree.size, np.bool_))
        space = (*queue, np.zeros(degree.size), np.empty(degree.size + 1, labels.dtype))
        arrays = (graph.indptr, graph.indices, graph.data)
        moved = _move(arrays, degree, volume, labels, weight, space) > 0 or moved
        labels = np.unique(labels, return_inverse=True)[1]
        members = labels[members]
        n_found = int(labels.max(initial=-1)) + 1
        if n_found == degree.size or one_level:
            return members, moved
        graph = _aggregated(graph, labels, n_found)
        representative = np.empty(n_found, np.int64)
        representative[labels] = np.arange(labels.size)
        degree, volume = np.bincount(labels, degree), volume[representative]
        found = np.arange(n_found)


def smallest_communities(graph: Any, size: int) -> Array:
    """Partition a graph by moves of nodes alone, and groups of more than ``size`` nodes again, as far as possible."""
    labels = np.zeros(graph.shape[0], np.int64)
    nodes = np.arange(graph.shape[0])
    while nodes.size:
        parts = np.unique(labels[nodes], return_inverse=True)[1]
        graph = within_parts(graph, parts)
        found = _multilevel(graph, *_degrees(graph, parts), np.arange(nodes.size), one_level=True)[0]
        n_parts, n_found = int(parts.max()) + 1, int(found.max()) + 1
        part_of = np.empty(n_found, np.int64)
        part_of[found] = parts
        labels[nodes] = int(labels.max()) + 1 + found
        is_divided = np.bincount(part_of, minlength=n_parts) > 1
        left = np.flatnonzero((np.bincount(found)[found] > size) & is_divided[parts])
        nodes, graph = nodes[left], graph[left][:, left]
    return np.asarray(np.unique(labels, return_inverse=True)[1])


def _aggregated(graph: Any, labels: Array, n_groups: int) -> Any:
    """Return the graph of groups of nodes, with the total weights between them, and sorted indices."""
    edges = np.append(0, np.cumsum(np.bincount(labels, minlength=n_groups)))
    sums = (np.ones(labels.size, graph.dtype), np.argsort(labels, kind="stable"), edges)
    by_group = (graph.data, labels.astype(np.int32)[graph.indices], graph.indptr)  # columns may occur repeatedly
    found = csr_matrix(sums, (n_groups, labels.size)) @ csr_matrix(by_group, (labels.size, n_groups))
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
def _count_rows(start: int, stop: int, parts: Any, counts: Array, crosses: Array, inside: Array) -> None:
    """Count the edges of nodes to groups of a higher number, of which one is active; set ``crosses`` and ``inside``."""
    indptr, indices, data, labels, nodes, active = parts
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
def _border_rows(start: int, stop: int, parts: Any, inside: Array, at: Array, second: Array, border: Any) -> None:
    """Set the attributes of :class:`Cut` for the edges of nodes, which start at ``at``."""
    (indptr, indices, data, labels, nodes, active), (weight, across, share) = parts, border
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


class Cut(NamedTuple):
    """The edges (i, j) between different groups, each once, with the group of i before that of j."""

    first: Array  # groups of i and of j, shape (n_edges,)
    second: Array
    weight: Array  # of the edge
    across: Array  # total weights of the edges of i to the group of j, and of j to that of i; shape (2, n_edges)
    share: Array  # geometric mean of the shares of the two in the weight of the edges of the node to both groups
    inside: Array  # total weight of the edges of each node within its own group, shape (n_nodes,)
    border: Array  # the nodes with edges to other groups

    @staticmethod
    def of(graph: Any, labels: Array, workers: Workers, before: Any = None, active: Any = None) -> "Cut":
        """Cut a symmetric CSR graph between groups; if some were merged, only edges of these active ones are set."""
        nodes, inside = np.arange(graph.shape[0]), np.empty(graph.shape[0])
        if before is not None:  # nodes that had no edges to other groups have none now
            nodes, inside = before.border, before.inside.copy()
        active = np.ones(int(labels.max(initial=0)) + 1, np.bool_) if active is None else active
        parts = (graph.indptr, graph.indices, graph.data, labels, nodes, active)
        counts, crosses = np.empty(nodes.size, np.int64), np.empty(nodes.size, np.bool_)
        workers.rows(_count_rows, nodes.size, parts, counts, crosses, inside, work=50.0 * nodes.size)
        at = np.append(0, np.cumsum(counts))
        second, border = np.empty(at[-1], labels.dtype), (np.empty(at[-1]), np.empty((2, at[-1])), np.empty(at[-1]))
        workers.rows(_border_rows, nodes.size, parts, inside, at, second, border, work=50.0 * at[-1])
        return Cut(np.repeat(labels[nodes], counts), second, *border, inside, nodes[crosses])


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
    return graph if kept.all() else csr_matrix((graph.data[kept], graph.indices[kept], indptr), graph.shape)
