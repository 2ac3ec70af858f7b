"""Scores of an embedding: with class labels, and of its faithfulness to the data without."""

from laptsne.metrics.scores import (
    ClusterScores,
    Faithfulness,
    affinity_recall,
    cluster_scores,
    continuity,
    knn_accuracy,
    rasterized,
    trustworthiness,
)

__all__ = ["ClusterScores", "Faithfulness", "affinity_recall", "cluster_scores", "continuity", "knn_accuracy"]
__all__ += ["rasterized", "trustworthiness"]
