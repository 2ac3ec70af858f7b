"""Scores of an embedding: with class labels, and of its faithfulness to the data without."""

from laptsne.metrics.faithfulness import Faithfulness, affinity_recall, continuity, rasterized, trustworthiness
from laptsne.metrics.labelled import ClusterScores, cluster_scores, knn_accuracy

__all__ = ["ClusterScores", "Faithfulness", "affinity_recall", "cluster_scores", "continuity", "knn_accuracy"]
__all__ += ["rasterized", "trustworthiness"]
