"""Nearest nodes by shortest path along a graph of neighbours."""

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.graph.row_blocks import stacked

_ROWS = 1 << 12  # searched at once


@inlined
def _place(lengths: Array, nodes: Array, first: int, at: int, length: float, node: int) -> None:
    """Insert a node into a list sorted by length and index, from ``first`` to the vacant entry ``at``."""
    while at > first and (lengths[at - 1] > length or (lengths[at - 1] == length and nodes[at - 1] > node)):
        lengths[at], nodes[at] = lengths[at - 1], nodes[at - 1]
        at -= 1
    lengths[at], nodes[at] = length, node


@inlined
def _keep(lengths: Array, nodes: Array, size: int, length: float, node: int) -> int:
    """Insert a node into a sorted list of ``size`` entries, whose last drops out if it is full; return the new size."""
    last = nodes.size - 1
    if size > last:
        if length > lengths[last] or (length == lengths[last] and node > nodes[last]):
            return size
        size = last
    _place(lengths, nodes, 0, size, length, node)
    return size + 1


@compiled
def _nearest_rows(start: int, stop: int, graph: Any, nodes: Array, lengths: Array) -> None:
    """Find the nearest neighbours in each row of a graph, of equally near ones those with the lowest index."""
    indptr, indices, data = graph
    for i in range(start, stop):
        size = 0
        for e in range(indptr[i], indptr[i + 1]):
            if indices[e] != i:
                size = _keep(lengths[i], nodes[i], size, data[e], indices[e])
        nodes[i, size:] = -1


@compiled
def _mutual_rows(start: int, stop: int, nodes: Array, is_mutual: Array) -> None:
    """Mark the neighbours that have the point among their own neighbours."""
    for i in range(start, stop):
        for e in range(nodes.shape[1]):
            is_mutual[i, e] = False
            if nodes[i, e] >= 0:
                for other in nodes[nodes[i, e]]:
                    if other == i:
                        is_mutual[i, e] = True
                        break


@compiled
def _path_rows(start: int, stop: int, graph: Any, nodes: Array, lengths: Array) -> None:
    """Find the nearest nodes of each of these rows by Dijkstra's algorithm; rows of the graph are sorted by length.

    The queue is the sorted list of the nearest nodes so far: a node beyond its end is never needed.
    """
    indptr, indices, edges = graph
    k = nodes.shape[1]
    best = np.full(indptr.size - 1, np.inf, edges.dtype)  # tentative lengths of the nodes in the list
    for i in range(start, stop):
        found, far = nodes[i - start], lengths[i - start]
        best[i] = 0
        size, done, node, length = 0, 0, i, best[i]
        while True:
            for e in range(indptr[node], indptr[node + 1]):
                there, other = length + edges[e], indices[e]
                if size == k and there > far[k - 1]:
                    break
                if there >= best[other]:
                    continue
                at = size
                if best[other] < np.inf:
                    at = done
                    while found[at] != other:
                        at += 1
                elif size < k:
                    size += 1
                elif there == far[k - 1] and other > found[k - 1]:
                    continue
                else:
                    at = k - 1
                    best[found[at]] = np.inf
                best[other] = there
                _place(far, found, done, at, there, other)
            if done == size:
                break
            node, length = found[done], far[done]
            done += 1
        best[i] = np.inf
        for e in range(size):
            best[found[e]] = np.inf
        found[size:] = -1


def nearest_along(edges: Any, rows: slice, n_neighbors: int) -> Any:
    """Return the nearest nodes of some rows by path along edges, whose rows are sorted by length, or all it reaches."""
    shape = (rows.stop - rows.start, min(n_neighbors, edges.shape[0] - 1))
    nodes, far = np.empty(shape, np.int32), np.empty(shape, edges.dtype)
    _path_rows(rows.start, rows.stop, (edges.indptr, edges.indices, edges.data), nodes, far)
    return sparse_rows(nodes, far, nodes >= 0, edges.shape[0])


def sparse_rows(nodes: Array, values: Array, present: Array, n_columns: int) -> Any:
    """Return the entries that are present as a CSR matrix."""
    indptr = np.append(0, np.cumsum(present.sum(axis=1)))
    return scipy.sparse.csr_matrix((values[present], nodes[present], indptr), (len(nodes), n_columns))


def nearest_by_path(graph: Any, n_neighbors: int, workers: Workers) -> Any:
    """Return the graph of the ``n_neighbors`` nearest nodes of every node by shortest path, or all it reaches."""
    given = graph.tocoo().astype(np.float64)
    both_ways = ((given.row, given.col), (given.col, given.row), (given.data, given.data))
    rows, columns, lengths = map(np.concatenate, both_ways)
    order = np.lexsort((columns, lengths, rows))
    indptr = np.append(0, np.cumsum(np.bincount(rows, minlength=graph.shape[0])))
    edges = scipy.sparse.csr_matrix((lengths[order], columns[order], indptr), graph.shape)
    return stacked(partial(nearest_along, edges, n_neighbors=n_neighbors), graph.shape, _ROWS, np.float64, workers)


def mutual_edges(graph: Any, n_mutual: int, workers: Workers) -> Any:
    """Return the mutual edges of a graph of neighbours as a CSR matrix whose rows are sorted by length.

    An edge is mutual if each of its ends is among the ``n_mutual`` nearest neighbours of the other. Lengths are in
    units of the largest of the graph, in single precision.
    """
    n_samples, unit = graph.shape[0], float(graph.data.max(initial=0)) or 1.0
    nodes, lengths = np.empty((n_samples, n_mutual), np.int32), np.empty((n_samples, n_mutual), graph.dtype)
    is_mutual = np.empty(nodes.shape, np.bool_)
    arrays = (graph.indptr, graph.indices, graph.data)
    workers.rows(_nearest_rows, n_samples, arrays, nodes, lengths, work=10.0 * graph.nnz)
    workers.rows(_mutual_rows, n_samples, nodes, is_mutual, work=10.0 * nodes.size)
    lengths /= unit
    return sparse_rows(nodes, lengths.astype(np.float32, copy=False), is_mutual, n_samples)
