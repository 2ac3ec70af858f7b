"""Scores of an embedding: those that use labels, and measures of faithfulness that do not."""

from laptsne.metrics.faithfulness import Faithfulness, continuity, neighbors_kept, trustworthiness
from laptsne.metrics.labelled import ClusterScores, cluster_scores, knn_accuracy
from laptsne.metrics.silhouette import silhouette

__all__ = [
    "ClusterScores",
    "Faithfulness",
    "cluster_scores",
    "continuity",
    "knn_accuracy",
    "neighbors_kept",
    "silhouette",
    "trustworthiness",
]
