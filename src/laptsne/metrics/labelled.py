"""Scores of an embedding by class or cluster labels."""

from operator import index
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.cluster import KMeans
from sklearn.metrics import davies_bouldin_score, normalized_mutual_info_score, silhouette_score
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils import check_X_y

from laptsne._runtime.threads import effective_n_jobs
from laptsne.metrics.faithfulness import centred


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
    return float(cross_val_score(model, centred(points), labels, cv=folds).mean())


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
    silhouette = silhouette_score(centred(Y.astype(np.float64)), found)
    return ClusterScores(float(nmi), float(silhouette), float(davies_bouldin))
