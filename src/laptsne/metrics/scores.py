"""Scores of an embedding: how well it preserves the neighbourhoods of the data, and how well it separates classes."""

from operator import index
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.spatial import KDTree
from sklearn import metrics
from sklearn.cluster import KMeans
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.utils import check_array, check_X_y

from laptsne._runtime.threads import effective_n_jobs
from laptsne._runtime.typing import Array

_JITTER, _WORKING_MEMORY_MIB = 1e-4, 64  # of rasterised points, in pixels; of a block of distances


class Faithfulness:
    """Scores of several embeddings of the same data, whose neighbours are found once.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    n_neighbors : int, default=30
        Largest neighbourhood size that will be requested.

    Attributes
    ----------
    neighbors : array of shape (n_samples, n_neighbors)
        Nearest neighbours of every point in the data, nearest first.

    Examples
    --------
    >>> import numpy as np
    >>> from laptsne.metrics import Faithfulness
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> data = Faithfulness(X)
    >>> data.neighbors_kept(X)
    1.0
    """

    def __init__(self, X: ArrayLike, *, n_neighbors: int = 30) -> None:
        self._X = _points(X)
        most = len(self._X) - 1
        if not 1 <= n_neighbors <= most:
            raise ValueError(f"n_neighbors must be from 1 to {most} for {most + 1} points; got {n_neighbors}.")
        self.neighbors = _nearest(self._X, n_neighbors)

    def trustworthiness(self, Y: ArrayLike, *, n_neighbors: int = 5) -> float:
        """Return the trustworthiness of the embedding Y; see :func:`trustworthiness`."""
        return trustworthiness(self._X, Y, n_neighbors=n_neighbors)

    def continuity(self, Y: ArrayLike, *, n_neighbors: int = 5) -> float:
        """Return the continuity of the embedding Y; see :func:`continuity`."""
        return continuity(self._X, Y, n_neighbors=n_neighbors)

    def neighbors_kept(self, Y: ArrayLike, *, n_neighbors: int | None = None) -> float:
        """Return the mean share of a point's nearest neighbours, by default all that were found, that Y preserves.

        As many neighbours are found in the embedding. A point is not its own neighbour, but its duplicates may be.
        """
        n_found = self.neighbors.shape[1]
        k = n_found if n_neighbors is None else n_neighbors
        if not 1 <= k <= n_found:
            raise ValueError(f"n_neighbors must be from 1 to {n_found}, that of this Faithfulness; got {k}.")
        found = _nearest(_paired(self._X, Y)[1], k)
        row = np.arange(len(found))[:, None] * len(found)  # entries of different rows differ
        kept = np.isin((row + self.neighbors[:, :k]).ravel(), (row + found).ravel(), assume_unique=True)
        return float(kept.mean())


def trustworthiness(X: ArrayLike, Y: ArrayLike, *, n_neighbors: int = 5, metric: Any = "euclidean") -> float:
    r"""Compute how far neighbourhoods of the embedding are neighbourhoods of the data.

    .. math:: 1 - \frac{2}{n k (2n - 3k - 1)} \sum_i \sum_{j \in N_k(i)} \max(0, r(i, j) - k)

    where :math:`N_k(i)` are the :math:`k` nearest neighbours of point :math:`i` in the embedding, and :math:`r(i, j)`
    is the rank of :math:`j` among all points by distance to :math:`i` in the data; points at equal distances have the
    mean of their ranks. This is scikit-learn's score of the same name in memory proportional to the number of points.

    Parameters
    ----------
    X : array of shape (n_samples, n_features), or (n_samples, n_samples) if ``metric="precomputed"``
    Y : array of shape (n_samples, n_components)
    n_neighbors : int, default=5
        Neighbourhood size k, less than half the number of points.
    metric : str or callable, default="euclidean"
        Metric of the data, as in :func:`sklearn.metrics.pairwise_distances`. Distances in the embedding are Euclidean.

    References
    ----------
    J. Venna and S. Kaski, Neighborhood preservation in nonlinear projection methods: an experimental study, ICANN 2001.

    Examples
    --------
    >>> from laptsne.metrics import trustworthiness
    >>> trustworthiness([[0.0], [1.0], [2.5], [4.5]], [[0.0], [1.0], [2.5], [4.5]], n_neighbors=1)
    1.0
    """
    data, points = _paired(X, Y)
    if not 1 <= n_neighbors < len(data) / 2:
        limits = f"at least 1 and less than half of the {len(data)} points"
        raise ValueError(f"n_neighbors must be {limits}, beyond which the score is undefined; got {n_neighbors}.")
    neighbors = _nearest(points, n_neighbors)
    data = _centred(data) if metric == "euclidean" else data
    start, excess = 0, 0.0  # of the ranks over k
    for found in metrics.pairwise_distances_chunked(data, metric=metric, working_memory=_WORKING_MEMORY_MIB):
        block = found.copy()  # distances that are given come as they are
        own = np.arange(start, start + len(block))
        block[own - start, own] = np.inf
        distances = np.take_along_axis(block, neighbors[own], axis=1)
        block.sort(axis=1)
        for row, wanted in zip(block, distances, strict=True):
            rank = (np.searchsorted(row, wanted) + np.searchsorted(row, wanted, side="right") + 1) / 2
            excess += np.maximum(rank - n_neighbors, 0).sum()
        start += len(block)
    n, k = neighbors.shape
    return float(1 - excess * 2 / (n * k * (2 * n - 3 * k - 1)))


def continuity(X: ArrayLike, Y: ArrayLike, *, n_neighbors: int = 5) -> float:
    """Compute how far neighbourhoods of the data stay together: :func:`trustworthiness` of Y and X exchanged.

    Neighbours in the data that are not neighbours in the embedding lower it, the more so the higher their rank there.
    """
    return trustworthiness(Y, X, n_neighbors=n_neighbors)


def affinity_recall(P: Any, Y: ArrayLike, *, n_neighbors: int = 15, rows: ArrayLike | None = None) -> float:
    """Compute the mean share of a point's largest affinities that belong to its nearest neighbours in the embedding.

    The counterpart of :meth:`Faithfulness.neighbors_kept` for data of which only affinities are known.

    Parameters
    ----------
    P : array or sparse matrix of shape (n_samples, n_samples)
        Affinities without a diagonal, such as ``affinities_`` of a fitted model.
    Y : array of shape (n_samples, n_components)
    n_neighbors : int, default=15
        Number of affinities, and of neighbours in the embedding. A row of P with fewer entries counts with these, a
        row without any not at all.
    rows : integer array, optional
        Points over which the mean is taken; all by default.
    """
    points = _points(Y)
    chosen = np.arange(len(points)) if rows is None else np.asarray(rows)
    graph = sparse.csr_matrix(sparse.csr_matrix(P)[chosen])
    found = KDTree(points).query(points[chosen], n_neighbors + 1)[1]  # one more: the point itself
    shares = []
    for near, start, stop in zip(found, graph.indptr, graph.indptr[1:], strict=False):
        largest = np.argsort(-graph.data[start:stop], kind="stable")[:n_neighbors]
        if largest.size:
            shares.append(np.isin(graph.indices[start:stop][largest], near).mean())
    return float(np.mean(shares))


def rasterized(Y: ArrayLike, size: int = 400) -> Array:
    """Return the pixels of the points when the embedding fills a square image, with its aspect ratio kept.

    Neighbours kept by these can be *seen*: points of the same pixel cannot be told apart. Tiny noise breaks ties.

    Parameters
    ----------
    Y : array of shape (n_samples, n_components)
    size : int, default=400
        Pixels per side of the image.

    Examples
    --------
    >>> from laptsne.metrics import rasterized
    >>> rasterized([[0.0, 0.0], [10.0, 0.0]], size=100).round().astype(int)
    array([[ 0, 50],
           [99, 50]])
    """
    points = _points(Y)
    low, extent = points.min(axis=0), np.ptp(points, axis=0)
    scale = size / max(extent.max(), np.finfo(float).tiny)
    pixels = np.floor((points - low) * scale + (size - extent * scale) / 2).clip(0, size - 1)
    return np.asarray(pixels + np.random.default_rng(0).uniform(-_JITTER, _JITTER, points.shape))


class ClusterScores(NamedTuple):
    """Scores of k-means on an embedding."""

    nmi: float  # normalised mutual information with the labels
    silhouette: float
    davies_bouldin: float  # lower is better


def knn_accuracy(Y: ArrayLike, y: ArrayLike, k: int = 10, *, protocol: str = "cross-validated") -> float:
    """Compute the accuracy of k-nearest-neighbour classification in the embedding.

    Parameters
    ----------
    Y : array of shape (n_samples, n_components)
    y : array of shape (n_samples,)
    k : int, default=10
    protocol : {"cross-validated", "paper"}, default="cross-validated"
        "cross-validated": mean accuracy over five shuffled, stratified folds with a fixed seed. "paper": as in the
        LaptSNE paper, on the training points, where every point is its own nearest neighbour.

    Examples
    --------
    >>> from laptsne.metrics import knn_accuracy
    >>> knn_accuracy([[0], [1], [10], [11]], [0, 0, 1, 1], k=1, protocol="paper")
    1.0
    """
    if protocol not in ("cross-validated", "paper"):
        raise ValueError(f"protocol must be 'cross-validated' or 'paper'; got {protocol!r}.")
    points, labels = check_X_y(Y, y, dtype=np.float64)
    folds = [(np.arange(len(points)),) * 2]
    if protocol == "cross-validated":
        folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(points, labels))
    n_voters = min(len(train) for train, _ in folds)
    if not 1 <= index(k) <= n_voters:
        raise ValueError(f"k must be from 1 to {n_voters}, the number of training points; got {k}.")
    model = KNeighborsClassifier(index(k), n_jobs=effective_n_jobs(None))
    return float(cross_val_score(model, _centred(points), labels, cv=folds).mean())


def cluster_scores(
    Y: ArrayLike, y: ArrayLike, n_clusters: int | None = None, *, random_state: Any = 0
) -> ClusterScores:
    """Cluster the embedding by k-means; compare the clusters with the labels and measure their separation.

    Parameters
    ----------
    Y : array of shape (n_samples, n_components)
    y : array of shape (n_samples,)
        The labels, used by the normalised mutual information only.
    n_clusters : int, optional
        Number of clusters; by default the number of distinct labels.
    random_state : int, RandomState instance or None, default=0
        Seed of k-means, which keeps the best of ten initialisations.
    """
    Y, y = np.asarray(Y), np.asarray(y)
    n_clusters = n_clusters or np.unique(y).size
    found = KMeans(n_clusters, n_init=10, random_state=random_state).fit_predict(Y)
    nmi = metrics.normalized_mutual_info_score(y, found)
    silhouette = metrics.silhouette_score(_centred(Y.astype(np.float64)), found)
    return ClusterScores(float(nmi), float(silhouette), float(metrics.davies_bouldin_score(Y, found)))


def _nearest(points: Array, n_neighbors: int) -> Array:
    """Return the nearest other points of every point, nearest first."""
    index = NearestNeighbors(n_neighbors=n_neighbors, n_jobs=effective_n_jobs(None)).fit(_centred(points))
    return np.asarray(index.kneighbors(return_distance=False))


def _centred(points: Array) -> Array:
    """Return the points moved to the origin, where scikit-learn computes distances more accurately."""
    return np.asarray(points - np.median(points, axis=0))


def _points(X: Any) -> Array:
    return np.asarray(check_array(X.toarray() if sparse.issparse(X) else X, dtype=np.float64))


def _paired(X: ArrayLike, Y: ArrayLike) -> tuple[Array, Array]:
    data, points = _points(X), _points(Y)
    if len(data) != len(points):
        raise ValueError(f"X and Y must have the same number of rows; got {len(data)} and {len(points)}.")
    return data, points
