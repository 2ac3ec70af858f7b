"""Nearest nodes by shortest path along a graph of neighbours."""

from typing import Any

import numpy as np
import scipy.sparse

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array


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
def _sort_rows(start: int, stop: int, indptr: Array, indices: Array, lengths: Array) -> None:
    """Sort the rows of a graph by length and index, in place."""
    for i in range(start, stop):
        for e in range(indptr[i] + 1, indptr[i + 1]):
            _place(lengths, indices, indptr[i], e, lengths[e], indices[e])


@compiled
def _path_rows(start: int, stop: int, graph: Any, nodes: Array, lengths: Array) -> None:
    """Find the nearest nodes of each row by Dijkstra's algorithm; rows of the graph are sorted by length.

    The queue is the sorted list of the nearest nodes so far: a node beyond its end is never needed.
    """
    indptr, indices, edges = graph
    k = nodes.shape[1]
    best = np.full(indptr.size - 1, np.inf, edges.dtype)  # tentative lengths of the nodes in the list
    for i in range(start, stop):
        found, far = nodes[i], lengths[i]
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


def _nearest(graph: Any, n_neighbors: int, workers: Workers) -> tuple[Array, Array]:
    """Return the nearest neighbours in each row of a graph, padded by -1, and the lengths of the edges to them."""
    shape = (graph.shape[0], n_neighbors)
    nodes, found = np.empty(shape, np.int32), np.empty(shape, graph.dtype)
    arrays = (graph.indptr, graph.indices, graph.data)
    workers.rows(_nearest_rows, shape[0], arrays, nodes, found, work=10.0 * graph.nnz)
    return nodes, found


def _along(edges: tuple[Array, Array, Array], n_samples: int, n_neighbors: int, workers: Workers) -> Any:
    """Return the graph of the nearest nodes along edges, given as rows, columns and lengths in both directions."""
    rows, columns, lengths = edges
    order = np.argsort(rows, kind="stable")
    indptr = np.append(0, np.cumsum(np.bincount(rows, minlength=n_samples)))
    graph = (indptr, columns[order].astype(np.int32), lengths[order])
    workers.rows(_sort_rows, n_samples, *graph, work=10.0 * rows.size)
    n_neighbors = min(n_neighbors, n_samples - 1)
    nodes, far = np.empty((n_samples, n_neighbors), np.int32), np.empty((n_samples, n_neighbors), lengths.dtype)
    workers.rows(_path_rows, n_samples, graph, nodes, far, work=100.0 * nodes.size)
    return _sparse_rows(nodes, far)


def _sparse_rows(nodes: Array, values: Array) -> Any:
    """Return padded rows as a CSR matrix."""
    present, n_samples = nodes >= 0, len(nodes)
    indptr = np.append(0, np.cumsum(present.sum(axis=1)))
    if indptr[-1] == nodes.size:
        return scipy.sparse.csr_matrix((values.ravel(), nodes.ravel(), indptr), (n_samples, n_samples))
    return scipy.sparse.csr_matrix((values[present], nodes[present], indptr), (n_samples, n_samples))


def nearest_by_path(graph: Any, n_neighbors: int, workers: Workers) -> Any:
    """Return the graph of the ``n_neighbors`` nearest nodes of every node by shortest path, or all it reaches."""
    edges = graph.tocoo().astype(np.float64)
    both = [np.concatenate(pair) for pair in ((edges.row, edges.col), (edges.col, edges.row), (edges.data,) * 2)]
    return _along((both[0], both[1], both[2]), graph.shape[0], n_neighbors, workers)


def path_distances(graph: Any, n_mutual: int, n_neighbors: int, workers: Workers) -> Any:
    """Return distances to the ``n_neighbors`` nearest nodes along the mutual edges of a graph of neighbours.

    An edge is mutual if each of its ends is among the ``n_mutual`` nearest neighbours of the other. Distances are in
    units of the largest edge of the graph, in single precision.
    """
    nodes, lengths = _nearest(graph, n_mutual, workers)
    is_mutual = np.empty(nodes.shape, np.bool_)
    workers.rows(_mutual_rows, len(nodes), nodes, is_mutual, work=10.0 * nodes.size)
    rows, unit = np.nonzero(is_mutual)[0].astype(np.int32), float(graph.data.max(initial=0)) or 1.0
    lengths = (lengths[is_mutual] / unit).astype(np.float32)
    return _along((rows, nodes[is_mutual], lengths), len(is_mutual), n_neighbors, workers)
