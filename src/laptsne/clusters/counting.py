"""Clusters of the data: groups of points that are separate from each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils import gen_batches

from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne._runtime.warn import warn
from laptsne.clusters.cuts import Bodies
from laptsne.clusters.linkage import linked
from laptsne.clusters.reciprocity import CONTINUUM, ERROR, NeighborGraph, Reciprocity, feasible_neighbors, nearest_graph
from laptsne.graph.communities import communities, communities_of_pieces, smallest_communities

N_NEIGHBORS = 20  # in the graph in which clusters are found
MIN_SIZE, _MIN_OF_MEAN = 8, 0.25  # points of a cluster; size of one that is contracted, relative to the mean
_SMALLEST = 40  # points of a community that is not divided further
_MIN_DIVISIBLE = 80  # points of a group whose communities are compared by reciprocity
_BLOCK = 1 << 16  # rows of P processed at once


def find_clusters(P: Any, *, first: Array | None = None, workers: Workers | None = None) -> Array:
    """Find the clusters of the data, given their affinities.

    Groups of points are merged until the border of any two has significantly fewer edges of the neighbour graph than
    the best balanced cut through either (:class:`~laptsne.clusters.cuts.Bodies`): small communities of the graph, then,
    within each group that is left, large ones. A group that is left after that is divided further into the communities
    of the graph if affinities across the borders of some are significantly less reciprocated than those across cuts
    through continua.

    Parameters
    ----------
    P : sparse matrix or array of shape (n_samples, n_samples)
        Affinities.
    first : array of shape (n_samples,), optional
        The first copy of every point (:func:`laptsne.graph.neighbors.first_copies`), if there are copies. Points count
        once.
    workers : Workers, optional

    Returns
    -------
    labels : array of shape (n_samples,)
        Cluster of every point, from the largest, 0, to the smallest; all 0 without evidence of clusters, and -1 for
        points of separate groups that are too small.

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
    return clusters_below(1.0, P, workers or Workers(1), first)


def clusters_below(contrast: float, P: Any, workers: Workers, first: Array | None = None) -> Array:
    """Find the clusters whose borders have less than a given contrast; see :func:`find_clusters`."""
    first = np.arange(P.shape[0]) if first is None else first
    graph = nearest_graph(P, N_NEIGHBORS, workers, first)
    bodies = bodies_of(graph, workers)
    found = communities_of_pieces(graph, bodies.smallest)

    def completed(labels: Array) -> Array:
        labels = by_size(labels)[first]
        return _assigned(labels, P, int(labels.max()) + 1)

    labels = completed(bodies.merge(contrast))
    # Small pieces may have been joined across a border that is narrow as a whole.
    parts = np.unique(np.stack([labels, found]), axis=1, return_inverse=True)[1].ravel()
    labels = completed(bodies.grouped(bodies.within(labels, parts).merge(contrast)).merge(contrast))
    return completed(_communities_with_evidence(contrast, graph, found, labels, workers))


def bodies_of(graph: Any, workers: Workers) -> Bodies:
    """Return the groups of the mutual neighbours in a graph, before any are merged."""
    mutual = graph.copy()
    mutual.data = (mutual.data == 1).astype(np.float32)
    mutual.eliminate_zeros()
    n_neighbors = feasible_neighbors(N_NEIGHBORS, graph.shape[0])
    return Bodies(mutual, smallest_communities(mutual, _SMALLEST), n_neighbors, workers)


def _communities_with_evidence(contrast: float, graph: Any, found: Array, labels: Array, workers: Workers) -> Array:
    """Divide groups of nodes into communities of the graph if affinities across their borders are not reciprocated."""
    fine = labels.copy()  # -1 stays
    for group in range(int(labels.max()) + 1):
        nodes = np.flatnonzero(labels == group)
        parts = np.unique(found[nodes], return_inverse=True)[1]
        if nodes.size < _MIN_DIVISIBLE or parts.max() == 0:
            continue
        own = NeighborGraph(graph[nodes][:, nodes], workers)
        separate = own.merged(parts, lambda pairs: pairs.contrast >= contrast)
        if (np.bincount(separate) >= MIN_SIZE).sum() > 1:
            fine[nodes] = int(fine.max()) + 1 + own.merged(parts, _is_that_of_a_continuum)
    return fine


def _is_that_of_a_continuum(pairs: Reciprocity) -> Array:
    """Whether the reciprocity of pairs of groups is within two standard errors of that of a continuum."""
    return np.asarray(pairs.value + 2 * ERROR / np.sqrt(pairs.n_points) >= CONTINUUM)


def given_clusters(P: Any, n_clusters: int, *, first: Array | None = None, workers: Workers | None = None) -> Array:
    """Divide the data into a given number of clusters, whether or not they are separate.

    If there is evidence of more clusters, those with the most affinity are merged; otherwise they are divided further.
    Fewer clusters are found if the graph has fewer communities; points of further components are -1.
    """
    workers = workers or Workers(1)
    labels = find_clusters(P, first=first, workers=workers)
    if int(labels.max()) + 1 >= n_clusters:
        return np.where(labels < 0, -1, linked(labels, P).cut(n_clusters)[labels])
    graph = NeighborGraph(nearest_graph(P, N_NEIGHBORS, workers), workers)
    labels = np.where(labels < 0, labels.max() + 1, labels)  # small components may have to count
    while labels.max() + 1 < n_clusters:
        divided = communities(graph.within(labels).graph, labels)
        if divided.max() == labels.max():
            break
        labels = divided
    found = by_size(graph.merged(labels, lambda pairs: pairs.value >= 0, n_clusters), 1, n_clusters)
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
    return _assigned(labels, P, min(int((sizes >= _MIN_OF_MEAN * sizes.mean()).sum()), max_clusters))


def _assigned(labels: Array, P: Any, n_main: int) -> Array:
    """Assign points that are not in the first clusters to one of these, each cluster to the one it is nearest to."""
    n_clusters = int(labels.max()) + 1
    if n_main == n_clusters and labels.min() >= 0:
        return labels
    # Points in no cluster are groups of their own.
    group = labels.copy()
    group[labels < 0] = n_clusters + np.arange(int((labels < 0).sum()))
    n_groups = int(group.max()) + 1
    assign = scipy.sparse.csr_matrix((np.ones(group.size), group, np.arange(group.size + 1)), (group.size, n_groups))
    shared = np.zeros((n_groups, n_main))
    others = np.flatnonzero(group >= n_main)
    for rows in gen_batches(others.size, _BLOCK):  # all at once would take one and a half times the memory of P
        block = others[rows]
        shared += (assign[block].T @ (scipy.sparse.csr_matrix(P[block]) @ assign[:, :n_main])).toarray()
    target = np.where(shared.max(axis=1) > 0, shared.argmax(axis=1), -1)
    target[:n_main] = np.arange(n_main)
    return np.asarray(target[group])


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
