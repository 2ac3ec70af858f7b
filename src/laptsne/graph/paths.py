"""Shortest paths along a graph of neighbours, and the distances that affinities are refined with."""

from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

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
def _crossing_rows(start: int, stop: int, indptr: Array, indices: Array, component: Array, crosses: Array) -> None:
    """Mark the edges between different components."""
    for i in range(start, stop):
        own = component[i]
        for e in range(indptr[i], indptr[i + 1]):
            crosses[e] = component[indices[e]] != own


@compiled
def _shortest_edges(edges: Any, component: Array, shortest: Array) -> None:
    """Find the shortest edge from each component to another; ties go to the lowest node numbers."""
    low, high, lengths = edges
    for e in range(low.size):
        for node in (low[e], high[e]):
            best = shortest[component[node]]
            if (
                best < 0
                or lengths[e] < lengths[best]
                or (lengths[e] == lengths[best] and (low[e], high[e]) < (low[best], high[best]))
            ):
                shortest[component[node]] = e


@compiled
def _path_rows(start: int, stop: int, graph: Any, nodes: Array, lengths: Array) -> None:
    """Find the nearest nodes of each row by Dijkstra's algorithm; rows of the graph are sorted by length.

    The queue is the sorted list of the nearest nodes so far: a node beyond its end is never needed.
    """
    indptr, indices, edges = graph
    k = nodes.shape[1]
    best = np.full(indptr.size - 1, np.inf)  # tentative lengths of the nodes in the list
    for i in range(start, stop):
        found, far = nodes[i], lengths[i]
        best[i] = 0
        size, done, node, length = 0, 0, i, 0.0
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


def _nearest(graph: Any, lengths: Array, n_neighbors: int, workers: Workers) -> tuple[Array, Array]:
    """Return the nearest neighbours in each row of a graph, padded by -1, and the lengths of the edges to them."""
    shape = (graph.shape[0], n_neighbors)
    nodes, found = np.empty(shape, np.int32), np.empty(shape, lengths.dtype)
    arrays = (graph.indptr, graph.indices, lengths)
    workers.rows(_nearest_rows, shape[0], arrays, nodes, found, work=10.0 * graph.nnz)
    return nodes, found


def _along(edges: tuple[Array, Array, Array], n_samples: int, n_neighbors: int, workers: Workers) -> Any:
    """Return the graph of the nearest nodes along edges, given as rows, columns and lengths in both directions."""
    rows, columns, lengths = edges
    order = np.argsort(rows, kind="stable")
    indptr = np.append(0, np.cumsum(np.bincount(rows, minlength=n_samples)))
    graph = (indptr, columns[order].astype(np.int32), lengths[order].astype(np.float64))
    workers.rows(_sort_rows, n_samples, *graph, work=10.0 * rows.size)
    n_neighbors = min(n_neighbors, n_samples - 1)
    nodes, far = np.empty((n_samples, n_neighbors), np.int32), np.empty((n_samples, n_neighbors))
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
    edges = graph.tocoo()
    both = [np.concatenate(pair) for pair in ((edges.row, edges.col), (edges.col, edges.row), (edges.data,) * 2)]
    return _along((both[0], both[1], both[2]), graph.shape[0], n_neighbors, workers)


def refined_distances(graph: Any, n_mutual: int, n_neighbors: int, workers: Workers) -> Any:
    """Return distances to the ``n_neighbors`` nearest nodes along the mutual edges of a graph of neighbours.

    An edge is mutual if each of its ends is among the ``n_mutual`` nearest neighbours of the other. The shortest edges
    of ``graph`` that connect what mutual edges leave apart are added, as in a minimum spanning tree.
    """
    n_samples = graph.shape[0]
    nodes, lengths = _nearest(graph, graph.data, n_mutual, workers)
    is_mutual = np.empty(nodes.shape, np.bool_)
    workers.rows(_mutual_rows, n_samples, nodes, is_mutual, work=10.0 * nodes.size)
    rows, columns, lengths = np.nonzero(is_mutual)[0].astype(np.int32), nodes[is_mutual], lengths[is_mutual]
    low, high, bridges = _bridges(graph, rows, columns, workers)
    edges = ([rows, low, high], [columns, high, low], [lengths, bridges, bridges])
    rows, columns, lengths = (np.concatenate(parts) for parts in edges)
    return _along((rows, columns, lengths), n_samples, n_neighbors, workers)


def _bridges(graph: Any, rows: Array, columns: Array, workers: Workers) -> tuple[Array, Array, Array]:
    """Return the shortest edges of a graph that connect the components of some of its edges, by Boruvka's algorithm."""
    n_samples = graph.shape[0]
    component = _joined(np.arange(n_samples, dtype=np.int32), rows, columns)
    crosses, arrays = np.empty(graph.nnz, np.bool_), (graph.indptr, graph.indices, component)
    workers.rows(_crossing_rows, n_samples, *arrays, crosses, work=float(graph.nnz))
    left = np.flatnonzero(crosses)
    source, target = np.searchsorted(graph.indptr, left, side="right") - 1, graph.indices[left]
    edges = (np.minimum(source, target), np.maximum(source, target), graph.data[left])
    chosen = [tuple(part[:0] for part in edges)]
    while edges[0].size:
        shortest = np.full(int(component.max()) + 1, -1)
        _shortest_edges(edges, component, shortest)
        shortest = np.unique(shortest[shortest >= 0])
        chosen.append(tuple(part[shortest] for part in edges))
        component = _joined(component, *chosen[-1][:2])
        left = np.flatnonzero(component[edges[0]] != component[edges[1]])
        edges = (edges[0][left], edges[1][left], edges[2][left])
    low, high, lengths = (np.concatenate(parts) for parts in zip(*chosen, strict=True))
    return low, high, lengths


def _joined(component: Array, rows: Array, columns: Array) -> Array:
    """Return the component of every node once components are joined by edges."""
    n, ends = int(component.max(initial=-1)) + 1, (component[rows], component[columns])
    edges = scipy.sparse.csr_matrix((np.ones(rows.size, np.int8), ends), (n, n))
    return np.asarray(connected_components(edges, directed=False)[1][component])


@compiled
def _two_step_rows(start: int, stop: int, steps: Array, p: Array, nodes: Array, lengths: Array) -> None:
    """Find the nodes that a walk reaches in two steps with the highest probabilities, which are stored negated."""
    n_steps = steps.shape[1]
    reached, touched = np.zeros(len(steps), p.dtype), np.empty(n_steps * n_steps, np.int32)
    for i in range(start, stop):
        n_touched = size = 0
        for a in range(n_steps):
            if steps[i, a] < 0:
                break
            nodes_of_next, p_of_next = steps[steps[i, a]], p[steps[i, a]]
            for b in range(n_steps):
                if nodes_of_next[b] < 0:
                    break
                touched[n_touched] = nodes_of_next[b]
                n_touched += reached[nodes_of_next[b]] == 0
                reached[nodes_of_next[b]] -= p[i, a] * p_of_next[b]
        for t in range(n_touched):
            if touched[t] != i and reached[touched[t]] < 0:
                size = _keep(lengths[i], nodes[i], size, reached[touched[t]], touched[t])
            reached[touched[t]] = 0
        nodes[i, size:] = -1
        lengths[i, size:] = 0


def two_steps(conditional: Any, n_steps: int, n_neighbors: int, workers: Workers) -> Any:
    """Return the probabilities of two steps of a random walk, normalised over the ``n_neighbors`` highest in each row.

    A step goes to one of the ``n_steps`` neighbours with the highest probability.
    """
    steps, p = _nearest(conditional, -conditional.data, n_steps, workers)
    p[steps < 0] = 0
    p /= np.minimum(p.sum(axis=1), -np.finfo(np.float32).tiny)[:, None]
    nodes, found = np.empty((len(p), n_neighbors), np.int32), np.empty((len(p), n_neighbors), p.dtype)
    workers.rows(_two_step_rows, len(p), steps, p, nodes, found, work=10.0 * p.size * n_steps)
    found /= np.minimum(found.sum(axis=1), -np.finfo(np.float32).tiny)[:, None]
    return _sparse_rows(nodes, found)
