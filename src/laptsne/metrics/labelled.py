"""Scores of an embedding by class or cluster labels."""

from collections.abc import Sequence
from operator import index
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.cluster import KMeans
from sklearn.metrics import davies_bouldin_score, normalized_mutual_info_score, silhouette_score
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import check_array, check_consistent_length, gen_batches
from sklearn.utils.multiclass import check_classification_targets

from laptsne._runtime.typing import Array
from laptsne.metrics.faithfulness import nearest

_BLOCK = 1 << 22  # neighbours and votes in memory at once


class ClusterScores(NamedTuple):
    """Scores of k-means on an embedding."""

    nmi: float  # normalised mutual information with the labels
    silhouette: float
    davies_bouldin: float  # lower is better


@overload
def knn_accuracy(Y: ArrayLike, y: ArrayLike, k: int = 10, *, protocol: str = "cross-validated") -> float: ...


@overload
def knn_accuracy(Y: ArrayLike, y: ArrayLike, k: Sequence[int], *, protocol: str = "cross-validated") -> list[float]: ...


def knn_accuracy(
    Y: ArrayLike, y: ArrayLike, k: int | Sequence[int] = 10, *, protocol: str = "cross-validated"
) -> float | list[float]:
    """Compute the accuracy of k-nearest-neighbour classification in the embedding.

    Of labels with equally many votes the lowest wins, as in scikit-learn.

    Parameters
    ----------
    Y : array of shape (n_samples, n_components)
    y : array of shape (n_samples,)
    k : int or sequence of int, default=10
        Number of neighbours. A sequence gives a list of accuracies, from one search.
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
    points: Array = check_array(Y, dtype=np.float64)
    check_consistent_length(points, y)
    check_classification_targets(y)
    labels = np.unique(y, return_inverse=True)[1]
    counts = np.array([index(count) for count in np.atleast_1d(k)], np.intp)
    folds = [(np.arange(len(points)),) * 2]
    if protocol == "cross-validated":
        folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(points, labels))
    n_voters = min(len(train) for train, _ in folds)
    if counts.size and not 1 <= counts.min() <= counts.max() <= n_voters:
        raise ValueError(f"k must be from 1 to {n_voters}, the number of training points; got {k}.")
    scores = [_accuracies(points[train], labels[train], points[test], labels[test], counts) for train, test in folds]
    means: list[float] = np.mean(scores, axis=0).tolist()
    return means[0] if np.ndim(k) == 0 else means


def _accuracies(points: Array, labels: Array, queries: Array, truth: Array, counts: Array) -> Array:
    """Return the accuracy on the queries for each number of neighbours in ``counts``."""
    n_labels, n_neighbors = int(labels.max()) + 1, int(counts.max(initial=1))
    n_correct = np.zeros(counts.size)
    for rows in gen_batches(len(queries), max(1, _BLOCK // max(n_neighbors, n_labels))):
        found = labels[nearest(points, n_neighbors, queries[rows])]
        found += n_labels * np.arange(len(found))[:, None]
        for m, count in enumerate(counts):
            votes = np.bincount(found[:, :count].ravel(), minlength=len(found) * n_labels)
            n_correct[m] += (votes.reshape(-1, n_labels).argmax(axis=1) == truth[rows]).sum()
    return n_correct / len(queries)


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
    nmi, davies_bouldin = normalized_mutual_info_score(y, found), davies_bouldin_score(Y, found)
    return ClusterScores(float(nmi), silhouette(Y, found), float(davies_bouldin))


def silhouette(Y: ArrayLike, labels: ArrayLike) -> float:
    """Compute the mean silhouette coefficient over all points.

    This is scikit-learn's ``silhouette_score``, also for data whose offset is large.
    """
    points = np.asarray(Y, np.float64)
    return float(silhouette_score(points - np.median(points, axis=0), labels))
