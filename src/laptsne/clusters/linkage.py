"""The tree of clusters: merged one by one, those with the most affinity first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from laptsne._runtime.typing import Array
from laptsne.clusters.cuts import quotient

_RATIO = 1.5  # of the numbers of clusters of successive layers


@dataclass(frozen=True, eq=False)
class ClusterTree:
    """The clusters of the data and how they are nested.

    Nodes are numbered from 0: first the clusters of ``labels_``, then unions of two nodes, the closest first.

    Attributes
    ----------
    parent : array of shape (n_nodes,)
        The union that each node is part of; -1 for the last one.
    size : array of shape (n_nodes,)
        Number of points.
    chance : array of shape (n_nodes,)
        How often a continuum would have a border as weak as that between the two parts of a union, where it is least
        weak; nan for clusters.
    """

    parent: Array
    size: Array
    chance: Array

    def __repr__(self) -> str:
        return f"<ClusterTree of {self.n_clusters} clusters>"

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return (len(self.parent) + 1) // 2

    def cut(self, n_groups: int) -> Array:
        """Return the group of each cluster if there are ``n_groups``, numbered by their size, the largest first."""
        n_kept = self.n_clusters + max(self.n_clusters - n_groups, 0)
        root = np.arange(n_kept)
        for node in range(n_kept - 1, -1, -1):
            if 0 <= self.parent[node] < n_kept:
                root[node] = root[self.parent[node]]
        found, group = np.unique(root[: self.n_clusters], return_inverse=True)
        number = np.empty(found.size, np.int64)
        number[np.argsort(-self.size[found], kind="stable")] = np.arange(found.size)
        return number[group]

    def siblings(self, groups: Array) -> Array:
        """Return the groups in the other part of the union that each group of :meth:`cut` is part of, as a matrix."""
        n_groups = int(groups.max()) + 1
        inside = np.zeros((len(self.parent), n_groups), np.bool_)
        inside[np.arange(self.n_clusters), groups] = True
        for node, parent in enumerate(self.parent[:-1]):
            inside[parent] |= inside[node]
        union = (inside & (inside.sum(axis=1, keepdims=True) > 1)).argmax(axis=0)  # the smallest of several groups
        return np.asarray(inside[union] & ~np.eye(n_groups, dtype=np.bool_))

    def to_linkage(self) -> Array:
        """Return the unions as a linkage matrix of SciPy, of which the distances are 1, 2 and so on.

        Such matrices are what :func:`scipy.cluster.hierarchy.dendrogram` draws.
        """
        n_clusters, n_nodes = self.n_clusters, len(self.parent)
        pairs = np.argsort(self.parent[:-1], kind="stable").reshape(-1, 2)  # every union has two parts
        leaves = np.ones(n_nodes)
        for union, pair in enumerate(pairs, n_clusters):
            leaves[union] = leaves[pair].sum()
        return np.column_stack([pairs, np.arange(1, n_clusters), leaves[n_clusters:]])

    def layers(self, labels: Array) -> Array:
        """Return nested labels of points from fine to coarse, shape (n_layers, n_samples), given the finest."""
        counts = [self.n_clusters]
        while counts[-1] > 2:
            counts.append(max(int(counts[-1] / _RATIO), 2))
        return np.array([np.where(labels < 0, -1, self.cut(count)[labels]) for count in counts])


def linked(labels: Array, P: Any) -> ClusterTree:
    r"""Link clusters by their affinities; the chances of their borders are not known yet.

    Of all pairs of nodes, the one with the greatest :math:`A_{ab} / (d_a d_b)` is merged, where A are the affinities
    between nodes and d their row sums: the linkage of Bonald et al. (2018, Hierarchical Graph Clustering using Node
    Pair Sampling), which is modularity at a sliding resolution.
    """
    n_clusters = int(labels.max(initial=0)) + 1
    n_nodes = 2 * n_clusters - 1
    affinity = np.zeros((n_nodes, n_nodes))
    own = quotient(P, np.where(labels < 0, n_clusters, labels)).toarray()[:n_clusters, :n_clusters]
    affinity[:n_clusters, :n_clusters] = own
    size = np.zeros(n_nodes, np.int64)
    size[:n_clusters] = np.bincount(labels[labels >= 0], minlength=n_clusters)
    parent, alive = np.full(n_nodes, -1), np.arange(n_clusters)
    for node in range(n_clusters, n_nodes):
        degree = affinity[alive][:, alive].sum(axis=1)
        score = affinity[np.ix_(alive, alive)] / np.maximum(np.outer(degree, degree), np.finfo(np.float64).tiny)
        score[np.tril_indices(alive.size)] = -1
        a, b = alive[list(np.unravel_index(score.argmax(), score.shape))]
        parent[[a, b]], size[node] = node, size[a] + size[b]
        affinity[node] = affinity[a] + affinity[b]
        affinity[:, node] = affinity[:, a] + affinity[:, b]
        alive = np.append(alive[(alive != a) & (alive != b)], node)
    return ClusterTree(parent, size, np.full(n_nodes, np.nan))
