"""How good a map is: scores that use labels, and scores of faithfulness that do not."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.cluster import KMeans
from sklearn.manifold import trustworthiness
from sklearn.metrics import davies_bouldin_score, normalized_mutual_info_score, silhouette_score
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

__all__ = ["ClusterScores", "cluster_scores", "continuity", "knn_accuracy", "trustworthiness"]


class ClusterScores(NamedTuple):
    """Scores of k-means on a map."""

    nmi: float
    silhouette: float
    davies_bouldin: float


def knn_accuracy(Y: ArrayLike, y: ArrayLike, k: int = 10, *, protocol: str = "cross-validated") -> float:
    """Share of points whose label a vote of their nearest neighbours in the map gets right.

    Parameters
    ----------
    Y : array of shape (n_samples, n_components)
        The map.
    y : array of shape (n_samples,)
        The labels.
    k : int, default=10
        Number of neighbours.
    protocol : {"cross-validated", "paper"}, default="cross-validated"
        "cross-validated" votes among other points only, in five shuffled folds with the same seed always.
        "paper" is how the LaptSNE paper counted: on the training points, each its own nearest neighbour.

    Examples
    --------
    >>> from laptsne.metrics import knn_accuracy
    >>> knn_accuracy([[0], [1], [10], [11]], [0, 0, 1, 1], k=1, protocol="paper")
    1.0
    """
    Y, y = np.asarray(Y), np.asarray(y)
    classifier = KNeighborsClassifier(k)
    if protocol == "paper":
        return float(classifier.fit(Y, y).score(Y, y))
    if protocol != "cross-validated":
        raise ValueError(f"protocol must be 'cross-validated' or 'paper'; got {protocol!r}.")
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    return float(cross_val_score(classifier, Y, y, cv=folds).mean())


def cluster_scores(
    Y: ArrayLike, y: ArrayLike, n_clusters: int | None = None, *, random_state: Any = 0
) -> ClusterScores:
    """Cluster the map with k-means; compare with the labels and measure how separate the clusters are.

    Parameters
    ----------
    Y : array of shape (n_samples, n_components)
        The map.
    y : array of shape (n_samples,)
        The labels; only the normalised mutual information uses them.
    n_clusters : int, optional
        Number of clusters; as many as there are labels by default.
    random_state : int, RandomState instance or None, default=0
        Seed of k-means, which is the best of ten starts.

    Returns
    -------
    scores : ClusterScores
        ``nmi`` and ``silhouette``, the higher the better, and ``davies_bouldin``, the lower the better.
    """
    Y, y = np.asarray(Y), np.asarray(y)
    n_clusters = n_clusters or np.unique(y).size
    found = KMeans(n_clusters, n_init=10, random_state=random_state).fit_predict(Y)
    return ClusterScores(
        nmi=float(normalized_mutual_info_score(y, found)),
        silhouette=float(silhouette_score(Y, found)),
        davies_bouldin=float(davies_bouldin_score(Y, found)),
    )


def continuity(X: ArrayLike, Y: ArrayLike, *, n_neighbors: int = 5) -> float:
    """Share of the data's neighbourhoods that the map keeps together; the counterpart of trustworthiness.

    Points that are neighbours in the data but not in the map are counted by how far apart the map has put them.
    Trustworthiness counts those that are neighbours in the map but not in the data, so that either is the
    other with data and map exchanged.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The data.
    Y : array of shape (n_samples, n_components)
        The map.
    n_neighbors : int, default=5
        Size of a neighbourhood.

    Examples
    --------
    >>> from laptsne.metrics import continuity
    >>> X = [[0.0], [1.0], [2.0], [3.0], [4.0]]
    >>> continuity(X, X, n_neighbors=1)
    1.0
    """
    return float(trustworthiness(Y, X, n_neighbors=n_neighbors))
