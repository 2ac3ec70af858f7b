"""Communities of a graph by modularity, within each of several parts at once."""

from typing import Any

import numpy as np
import scipy.sparse

from laptsne._runtime.compiled import compiled
from laptsne._runtime.typing import Array

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

    Parameters
    ----------
    graph : CSR matrix of shape (n_nodes, n_nodes)
        Symmetric weights, with no edges between different parts.
    parts : array of shape (n_nodes,)
        Part of every node, from 0.

    Returns
    -------
    labels : array of shape (n_nodes,)
        Community of every node, from 0.

    References
    ----------
    .. [1] V. D. Blondel, J.-L. Guillaume, R. Lambiotte and E. Lefebvre, Fast unfolding of communities in large
       networks, Journal of Statistical Mechanics (2008).
    .. [2] V. A. Traag, L. Waltman and N. J. van Eck, From Louvain to Leiden: guaranteeing well-connected communities,
       Scientific Reports 9 (2019).

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse
    >>> from laptsne.graph.communities import communities
    >>> graph = scipy.sparse.csr_matrix(np.kron(np.eye(2), 1 - np.eye(4)))
    >>> communities(graph, np.zeros(8, int))
    array([0, 0, 0, 0, 1, 1, 1, 1])
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
