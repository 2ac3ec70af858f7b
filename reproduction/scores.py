"""Scores of embeddings: how separate clusters are, by labels and k-means, and how faithful to the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne import metrics
from reproduction.dataset import N_NEIGHBORS, Dataset
from reproduction.result_cache import code_digest

_MAX_RANKED = 20_000  # points among which trustworthiness and continuity are computed
_LARGE_KS = ("mnist", "fashion_mnist", "har")
CLUSTER_SCORES = ("NMI", "SC", "DBI")
FAITHFULNESS = ("trustworthiness", "continuity", "neighbours kept")


@dataclass(frozen=True)
class ScoreGroup:
    """Scores that are computed together, by a function of the data, the embedding and parameters."""

    compute: Callable[..., dict[str, float]]
    parameters: dict[str, Any]

    def key(self, data: Dataset, embedding_digest: str) -> dict[str, Any]:
        """Return what the scores depend on."""
        return {
            "kind": self.compute.__name__,
            "parameters": self.parameters,
            "n_neighbors": N_NEIGHBORS,
            "embedding": embedding_digest,
            "data": data.digest,
            "labels": data.labels_digest,
            "code": code_digest("laptsne.metrics"),
        }


def neighbor_counts(name: str) -> tuple[int, ...]:
    """Return the numbers of neighbours for which the paper gives accuracies on a set."""
    return (100, 200, 400, 800) if name in _LARGE_KS else (10, 20, 40, 80)


def knn_name(k: int, protocol: str = "cross-validated") -> str:
    """Return the name of a k-NN accuracy among the scores of an embedding."""
    return f"{k}-nn" + (" on training points" if protocol == "paper" else "")


def cluster_name(score: str, n_clusters: int) -> str:
    """Return the name of a k-means score among the scores of an embedding."""
    return f"{score} of {n_clusters} clusters"


def knn_scores(data: Dataset, Y: NDArray[Any], ks: tuple[int, ...], protocol: str) -> dict[str, float]:
    """Accuracy of k-NN classification in the embedding."""
    usable = [k for k in ks if k < 0.8 * len(Y)]
    return {knn_name(k, protocol): metrics.knn_accuracy(Y, data.y, k, protocol=protocol) for k in usable}


def kmeans_scores(data: Dataset, Y: NDArray[Any], n_clusters: int) -> dict[str, float]:
    """NMI, silhouette and Davies-Bouldin index of k-means in the embedding."""
    values = metrics.cluster_scores(Y, data.y, n_clusters)
    return {cluster_name(name, n_clusters): float(value) for name, value in zip(CLUSTER_SCORES, values, strict=True)}


def rank_scores(data: Dataset, Y: NDArray[Any], max_points: int) -> dict[str, float]:
    """Trustworthiness and continuity; for large sets among random points, the same for all embeddings."""
    rows = sampled_rows(len(Y), max_points)
    X, Y = data.X[rows], Y[rows]
    return {
        "trustworthiness": float(metrics.trustworthiness(X, Y, n_neighbors=N_NEIGHBORS)),
        "continuity": float(metrics.continuity(X, Y, n_neighbors=N_NEIGHBORS)),
    }


def sampled_rows(n_points: int, max_points: int) -> NDArray[Any]:
    """Return the numbers of all rows of a set, or of a random sample of a large set, which is always the same."""
    if n_points <= max_points:
        return np.arange(n_points)
    return np.sort(np.random.default_rng(0).choice(n_points, max_points, replace=False))


def neighbor_scores(data: Dataset, Y: NDArray[Any]) -> dict[str, float]:
    """Share of the nearest neighbours in the data that are nearest neighbours in the embedding."""
    return {"neighbours kept": float(data.faithfulness.neighbors_kept(Y))}


def score_groups(purpose: str, data: Dataset, cluster_counts: tuple[int, ...] = ()) -> list[ScoreGroup]:
    """Return the scores that runs of a purpose need.

    Parameters
    ----------
    purpose : {"table", "cells", "sweep", "frontier", "none"}
        What the run is for; "cells" are the scores that the paper prints.
    data : Dataset
        The data.
    cluster_counts : tuple of int
        Numbers of clusters for k-means besides that of the classes, for tables and cells.
    """
    if purpose == "none":
        return []
    kmeans = ScoreGroup(kmeans_scores, {"n_clusters": data.n_classes})
    kept = ScoreGroup(neighbor_scores, {})
    if purpose == "sweep":
        return [ScoreGroup(knn_scores, {"ks": (20,), "protocol": "paper"}), kmeans, kept]
    if purpose == "frontier":
        return [ScoreGroup(knn_scores, {"ks": (10,), "protocol": "cross-validated"}), kmeans, kept]
    ks = neighbor_counts(data.name)
    cells = [
        ScoreGroup(knn_scores, {"ks": ks, "protocol": "paper"}),
        kmeans,
        *(ScoreGroup(kmeans_scores, {"n_clusters": n}) for n in dict.fromkeys(cluster_counts) if n != data.n_classes),
    ]
    if purpose == "cells":
        return cells
    return [
        *cells,
        ScoreGroup(knn_scores, {"ks": tuple(dict.fromkeys((10, *ks))), "protocol": "cross-validated"}),
        kept,
        ScoreGroup(rank_scores, {"max_points": _MAX_RANKED}),
    ]
