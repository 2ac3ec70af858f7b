"""Clusters for which both the embedding and the data give evidence: mode seeking with a reciprocity test."""

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.spatial import KDTree
from sklearn.utils import gen_batches

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.graph.components import root

_MAX_POINTS = 20_000  # larger embeddings are clustered by a sample of this size
_BATCH = 4096  # points whose neighbours are found at once
_MIN_NEIGHBORS = 10  # of the density estimate
_LINKS = 15  # neighbours in the graph along which clusters grow
_MIN_SHARE = 0.005  # minimum size of a cluster, as a share of the points
_MAX_UNFILTERED = 10  # of more clusters than this, those below _MIN_OF_MEAN of the mean size are dropped
_MIN_OF_MEAN = 0.25
_MAX_SADDLE = 0.5  # density of a saddle that separates two clusters, relative to the lower peak
_COINCIDENT = 1e-200  # floor of the mean squared distance, which keeps the density of coinciding points finite
_MIN_CROSSING = 2.0  # affinity between two clusters, in mean row sums of P, below which they are not compared


class _Thresholds(NamedTuple):
    """Evidence required of clusters: prominence in standard errors, and the reciprocity at which two are merged."""

    errors: float
    reciprocity: float


_FIRST = _Thresholds(errors=4.0, reciprocity=0.095)
_RELAXED = _Thresholds(errors=2.0, reciprocity=0.13)  # once there is more than one cluster


def evident_clusters(Y: Array, P: Any, *, order: Array | None = None, workers: Workers | None = None) -> Array:
    r"""Find the clusters of a t-SNE embedding that are also separate in the data.

    1. *Prominence*, as in ToMATo [1]_. The density at a point is estimated from its :math:`k = \sqrt n` nearest
       neighbours. Clusters grow from density peaks downwards along a neighbour graph. Where two meet, they stay
       separate if the density at this saddle is at most half that of the lower peak, and lower than the peak by four
       standard errors: at most a fraction of :math:`1 - 4 / \sqrt k`.
    2. *Reciprocity*. t-SNE tears continua that it cannot flatten, and a tear is a density valley as well. But across a
       tear, points on both sides have a large part of their affinity on the other side, whereas cross-cluster affinity
       is hardly reciprocated. Let :math:`f_i` be the share of the affinity of point i with the other cluster. Two
       clusters are merged if the mean of :math:`\min(f_i, f_j)`, weighted by the affinities :math:`p_{ij}` between
       them, is at least 0.095.

    If more than one cluster is left, the thresholds are relaxed to two standard errors and a reciprocity of 0.13 to
    find the final clusters. Of more than ten clusters, those with less than a quarter of the mean size are dropped:
    every cluster contributes equally to the contraction term, and many tiny ones would take it over.

    Parameters
    ----------
    Y : array of shape (n_samples, n_components)
        Embedding without contraction.
    P : sparse matrix or array of shape (n_samples, n_samples)
        Affinities.
    order : array of shape (n_samples,), optional
        Row of Y for every row and column of P, if P is permuted.
    workers : Workers, optional
        Thread pool.

    Returns
    -------
    labels : array of shape (n_samples,)
        Cluster of every point, from 0; all 0 without evidence of clusters, and -1 for points of dropped clusters.

    References
    ----------
    .. [1] F. Chazal, L. J. Guibas, S. Y. Oudot and P. Skraba, Persistence-based clustering in Riemannian manifolds,
       Journal of the ACM 60 (2013).

    Examples
    --------
    >>> import numpy as np
    >>> from laptsne.graph.affinity import joint_affinities
    >>> from laptsne.clusters.evidence import evident_clusters
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> int(evident_clusters(X, joint_affinities(X, perplexity=20)).max()) + 1
    1
    >>> X[:200] += 10
    >>> int(evident_clusters(X, joint_affinities(X, perplexity=20)).max()) + 1
    2
    """
    workers = workers or Workers(1)
    n_samples = len(Y)
    sample = np.arange(n_samples)
    if n_samples > _MAX_POINTS:
        sample = np.sort(np.random.default_rng(0).choice(n_samples, _MAX_POINTS, replace=False))
    tree = KDTree(Y[sample])
    nearest = None if sample.size == n_samples else tree.query(Y, workers=workers.n_threads)[1]
    order = np.arange(n_samples) if order is None else order
    labels = np.zeros(n_samples, np.int64)
    for thresholds in (_FIRST, _RELAXED):
        found = _prominent_clusters(Y[sample], tree, thresholds.errors, workers)
        found = found if nearest is None else found[nearest]
        labels[order] = _merge_reciprocal(found[order], P, sample, thresholds.reciprocity)
        if not labels.any():
            break
    return _drop_small(labels)


def _drop_small(labels: Array) -> Array:
    """Relabel the clusters of small relative size as -1 if there are many clusters."""
    sizes = np.bincount(labels[labels >= 0])
    if sizes.size <= _MAX_UNFILTERED:
        return labels
    kept = sizes >= _MIN_OF_MEAN * sizes.mean()
    renumbered = np.where(kept, np.cumsum(kept) - 1, -1)
    return np.asarray(np.where(labels >= 0, renumbered[labels], -1))


def _prominent_clusters(Y: Array, tree: KDTree, errors: float, workers: Workers) -> Array:
    """Label the clusters around prominent density peaks; points of clusters that are too small are -1."""
    n = len(Y)
    k = min(max(math.isqrt(n), _MIN_NEIGHBORS), n - 1)
    spread, neighbors = np.empty(n), np.empty((n, min(k, _LINKS) + 1), np.intp)
    for rows in gen_batches(n, _BATCH):  # k neighbours of all points at once would take too much memory
        distances, found = tree.query(Y[rows], k + 1, workers=workers.n_threads)
        spread[rows] = (distances**2).sum(axis=1) / max(k, 1)
        neighbors[rows] = found[:, : _LINKS + 1]
    density = np.maximum(spread, _COINCIDENT) ** (-Y.shape[1] / 2)
    order = np.argsort(-density, kind="stable")
    saddle = min(_MAX_SADDLE, 1 - errors / math.sqrt(max(k, 1)))
    return np.asarray(_grow(order, density, neighbors, saddle, max(_MIN_SHARE * n, 2.0)))


@inlined
def _ascent(i: int, neighbors: Array, rank: Array, parent: Array) -> tuple[int, int]:
    """Return the densest neighbour of a point and the highest peak of the clusters around; -1 if it is a peak."""
    above = top = -1
    for j in neighbors[i]:
        if rank[j] >= rank[i]:
            continue
        peak = root(parent, j)
        if top < 0 or rank[peak] < rank[top]:
            top = peak
        if above < 0 or rank[j] < rank[above]:
            above = j
    return above, top


@compiled
def _grow(order: Array, density: Array, neighbors: Array, saddle: float, min_size: float) -> Array:
    """Grow clusters from the densest points downwards; where two meet, keep the lower one apart if it is prominent."""
    n = order.size
    rank, parent, above, size = np.empty(n, np.int64), np.arange(n), np.full(n, -1), np.ones(n, np.int64)
    rank[order] = np.arange(n)
    prominent = np.zeros(n, np.bool_)
    for i in order:
        above[i], top = _ascent(i, neighbors, rank, parent)
        if top < 0:
            continue
        parent[i] = top
        size[top] += 1
        for j in neighbors[i]:
            peak = root(parent, j)
            if rank[j] < rank[i] and peak != top:
                if size[peak] >= min_size and density[i] < saddle * density[peak]:
                    prominent[peak] = True
                else:
                    above[peak] = top
                parent[peak] = top
                size[top] += size[peak]
    # A point takes the label of the denser point above it, a prominent peak one of its own.
    labels = np.full(n, -1)
    n_found = 0
    for i in order:
        if prominent[i] or (parent[i] == i and size[i] >= min_size):
            labels[i] = n_found
            n_found += 1
        elif above[i] >= 0:
            labels[i] = labels[above[i]]
    return labels


def _merge_reciprocal(labels: Array, P: Any, sample: Array, threshold: float) -> Array:
    """Merge clusters with reciprocal affinities, the pair with the highest reciprocity first."""
    graph = scipy.sparse.csr_matrix(P)
    # Mean row sum of P, scaled by the share of the rows that are summed.
    row_sum = float(graph.data.sum(dtype=np.float64)) * sample.size / len(labels) ** 2
    while True:
        n_clusters = int(labels.max(initial=0)) + 1
        if n_clusters == 1:
            return np.zeros_like(labels)
        crossing, returned = np.zeros((2, n_clusters, n_clusters))
        _sum_crossing(sample, labels, graph.indptr, graph.indices, graph.data, crossing, returned)
        crossing, returned = crossing + crossing.T, returned + returned.T
        compared = crossing > 2 * _MIN_CROSSING * row_sum
        reciprocity = np.divide(returned, crossing, out=np.zeros_like(crossing), where=compared)
        first, second = sorted(np.unravel_index(reciprocity.argmax(), reciprocity.shape))
        if reciprocity[first, second] < threshold:
            return labels
        labels = np.where(labels == second, first, labels - (labels > second))


@inlined
def _affinity_with(
    i: int, cluster: int, labels: Array, indptr: Array, indices: Array, data: Array
) -> tuple[float, float]:
    """Return the affinity of a point with the points of a cluster, and with all points."""
    part = total = 0.0
    for e in range(indptr[i], indptr[i + 1]):
        total += data[e]
        if labels[indices[e]] == cluster:
            part += data[e]
    return part, total


@compiled
def _sum_crossing(
    rows: Array, labels: Array, indptr: Array, indices: Array, data: Array, crossing: Array, returned: Array
) -> None:
    """Sum the affinities between clusters over the given rows, and the reciprocated part of them."""
    for i in rows:
        own = labels[i]
        if own < 0:
            continue
        for e in range(indptr[i], indptr[i + 1]):
            other = labels[indices[e]]
            if other >= 0 and other != own:
                there, total = _affinity_with(i, other, labels, indptr, indices, data)
                back, other_total = _affinity_with(indices[e], own, labels, indptr, indices, data)
                crossing[own, other] += data[e]
                returned[own, other] += data[e] * min(there / total, back / other_total)
