"""Clusters for which a map and its data give evidence: groups with a valley of density around them, and no seam."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.spatial import KDTree
from sklearn.utils import gen_batches

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.threads import Workers
from laptsne.graph.components import root

Array = NDArray[Any]

_MAX_POINTS = 20_000  # a sample of this size shows what a map of any size holds
_BATCH = 4096  # points whose neighbours are found together
_MIN_NEIGHBORS = 10
_LINKS = 15  # neighbours over which a group grows
_MIN_SHARE = 0.005  # a smaller group is not counted
_FEW_GROUPS = 10  # so many all count; of more, those that are smaller than this share of their mean do not
_MIN_OF_MEAN = 0.25
_DEPTH = 0.5  # a valley is at most half as dense as the lower of its two summits
_COINCIDENT = 1e-200  # squared distance of points in one place: the density there stays a number
_MIN_CROSSING = 2.0  # points' worth of similarity: by less between them, two groups cannot be judged


class _Bar(NamedTuple):
    """What evidence must pass.

    Parameters
    ----------
    errors : float
        Standard errors by which a valley is less dense than the lower of its two summits.
    seam : float
        Share of the similarities across that are returned, from which on two groups belong together.
    """

    errors: float
    seam: float


_FIRST = _Bar(errors=4.0, seam=0.095)  # of clusters at all
_FURTHER = _Bar(errors=2.0, seam=0.13)  # of how many, where there are some


def evident_clusters(Y: Array, P: Any, *, order: Array | None = None, workers: Workers | None = None) -> Array:
    r"""Find the clusters of a plain t-SNE map that are in the data as well.

    Two tests, neither of which knows any labels. First, *valleys*: the density of the map at every point comes from
    its :math:`k = \sqrt n` nearest others. Groups grow from the densest points downwards, and where two meet, they
    remain two if the density there is at most half of that of the lower summit, and below it by four standard errors,
    :math:`1 - 4 / \sqrt k`. Second, *seams*: t-SNE tears what it cannot lay flat, and a tear is a valley as well. But
    along a tear the data go on: points on either side have much of their similarity on the other, mutually. Across the
    border of two clusters a few points look over, and nobody looks back. So with :math:`f_i` the share of the
    similarity of a point i with the other group, two groups are joined where the mean of :math:`\min(f_i, f_j)` over
    the similarities :math:`p_{ij}` between them is at least 0.095.

    Where more than one group passes both, the data have clusters, and more of them may be found by less: the tests are
    made again with two standard errors and a share of 0.13. Of more than ten clusters, those that have less than a
    quarter of the mean number of points are left to themselves: contraction pulls as much at a small cluster as at a
    large one, and where most are tiny, hardly anything is left for those that make up the map.

    Parameters
    ----------
    Y : array of shape (n_samples, n_components)
        A map without contraction.
    P : sparse matrix or array of shape (n_samples, n_samples)
        Its affinities.
    order : array of shape (n_samples,), optional
        The points of the map behind the rows and columns of P, where these are in another order.
    workers : Workers, optional
        Threads.

    Returns
    -------
    labels : array of shape (n_samples,)
        The cluster of every point, from 0; all 0 where there is no evidence of clusters, and -1 for points of
        groups too small to count.

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
    for bar in (_FIRST, _FURTHER):
        groups = _separate_groups(Y[sample], tree, bar.errors, workers)
        groups = groups if nearest is None else groups[nearest]
        labels[order] = _without_seams(groups[order], P, sample, bar.seam)
        if not labels.any():
            break
    return _without_small(labels)


def _without_small(labels: Array) -> Array:
    """Of many groups, count those that are not much smaller than the others."""
    sizes = np.bincount(labels[labels >= 0])
    if sizes.size <= _FEW_GROUPS:
        return labels
    kept = sizes >= _MIN_OF_MEAN * sizes.mean()
    renumbered = np.where(kept, np.cumsum(kept) - 1, -1)
    return np.asarray(np.where(labels >= 0, renumbered[labels], -1))


def _separate_groups(Y: Array, tree: KDTree, errors: float, workers: Workers) -> Array:
    """Groups of points with a valley of density between each other."""
    n = len(Y)
    k = min(max(math.isqrt(n), _MIN_NEIGHBORS), n - 1)
    spread, neighbors = np.empty(n), np.empty((n, min(k, _LINKS) + 1), np.intp)
    for rows in gen_batches(n, _BATCH):  # of most neighbours nothing but the distance is kept
        distances, found = tree.query(Y[rows], k + 1, workers=workers.n_threads)
        spread[rows] = (distances**2).sum(axis=1) / max(k, 1)
        neighbors[rows] = found[:, : _LINKS + 1]
    density = np.maximum(spread, _COINCIDENT) ** (-Y.shape[1] / 2)
    order = np.argsort(-density, kind="stable")
    depth = min(_DEPTH, 1 - errors / math.sqrt(max(k, 1)))
    return np.asarray(_grow(order, density, neighbors, depth, max(_MIN_SHARE * n, 2.0)))


@inlined
def _highest(i: int, neighbors: Array, rank: Array, parent: Array) -> tuple[int, int]:
    """The densest neighbour of a point, and the highest summit of the groups around it; -1 where it is one itself."""
    above = top = -1
    for j in neighbors[i]:
        if rank[j] >= rank[i]:
            continue
        summit = root(parent, j)
        if top < 0 or rank[summit] < rank[top]:
            top = summit
        if above < 0 or rank[j] < rank[above]:
            above = j
    return above, top


@compiled
def _grow(order: Array, density: Array, neighbors: Array, depth: float, min_size: float) -> Array:
    """Label the groups that grow from the densest points downwards and stay apart where they meet."""
    n = order.size
    rank, parent, above, size = np.empty(n, np.int64), np.arange(n), np.full(n, -1), np.ones(n, np.int64)
    rank[order] = np.arange(n)
    apart = np.zeros(n, np.bool_)  # summits of groups that stay
    for i in order:
        above[i], top = _highest(i, neighbors, rank, parent)
        if top < 0:
            continue
        parent[i] = top
        size[top] += 1
        for j in neighbors[i]:
            summit = root(parent, j)
            if rank[j] < rank[i] and summit != top:
                if size[summit] >= min_size and density[i] < depth * density[summit]:
                    apart[summit] = True
                else:
                    above[summit] = top
                parent[summit] = top
                size[top] += size[summit]
    # Every point has the label of the denser one on which it hangs; summits that stay have labels of their own.
    labels = np.full(n, -1)
    n_found = 0
    for i in order:
        if apart[i] or (parent[i] == i and size[i] >= min_size):
            labels[i] = n_found
            n_found += 1
        elif above[i] >= 0:
            labels[i] = labels[above[i]]
    return labels


def _without_seams(labels: Array, P: Any, sample: Array, seam: float) -> Array:
    """Join the groups that the data do not tell apart, the least separate pair first."""
    graph = scipy.sparse.csr_matrix(P)
    point = float(graph.data.sum(dtype=np.float64)) * sample.size / len(labels) ** 2  # as far as the sample sees it
    while True:
        n_groups = int(labels.max(initial=0)) + 1
        if n_groups == 1:
            return np.zeros_like(labels)
        crossing, returned = np.zeros((2, n_groups, n_groups))
        _cross(sample, labels, graph.indptr, graph.indices, graph.data, crossing, returned)
        crossing, returned = crossing + crossing.T, returned + returned.T
        judged = crossing > 2 * _MIN_CROSSING * point
        share = np.divide(returned, crossing, out=np.zeros_like(crossing), where=judged)
        first, second = sorted(np.unravel_index(share.argmax(), share.shape))
        if share[first, second] < seam:
            return labels
        labels = np.where(labels == second, first, labels - (labels > second))


@inlined
def _mass(i: int, group: int, labels: Array, indptr: Array, indices: Array, data: Array) -> tuple[float, float]:
    """Similarity of a point with the points of a group, and with all."""
    part = total = 0.0
    for e in range(indptr[i], indptr[i + 1]):
        total += data[e]
        if labels[indices[e]] == group:
            part += data[e]
    return part, total


@compiled
def _cross(
    rows: Array,
    labels: Array,
    indptr: Array,
    indices: Array,
    data: Array,
    crossing: Array,
    returned: Array,
) -> None:
    """Add up, over the given rows, the similarity between groups, and as much of it as is returned."""
    for i in rows:
        own = labels[i]
        if own < 0:
            continue
        for e in range(indptr[i], indptr[i + 1]):
            other = labels[indices[e]]
            if other >= 0 and other != own:
                there, total = _mass(i, other, labels, indptr, indices, data)
                back, other_total = _mass(indices[e], own, labels, indptr, indices, data)
                crossing[own, other] += data[e]
                returned[own, other] += data[e] * min(there / total, back / other_total)
