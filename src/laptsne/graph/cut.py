"""Edges of a graph between groups of its nodes, and within them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils import gen_batches

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array

_BLOCK = 1 << 16  # rows processed at once by NumPy


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
    """The edges (i, j) between different groups, each once, with the group of i before that of j.

    Attributes
    ----------
    first, second : arrays of shape (n_edges,)
        Groups of i and of j.
    weight : array of shape (n_edges,)
        Weight of the edge.
    across : array of shape (2, n_edges)
        Total weight of the edges of i to the group of j, and of those of j to the group of i.
    share : array of shape (n_edges,)
        Geometric mean of the shares of the two in the weight of the edges of the node to both groups.
    inside : array of shape (n_nodes,)
        Total weight of the edges of each node within its own group.
    border : array of shape (n_border,)
        The nodes with edges to other groups.
    """

    first: Array
    second: Array
    weight: Array
    across: Array
    share: Array
    inside: Array
    border: Array

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
