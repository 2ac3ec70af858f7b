"""Clusters of rows, and how well the data of a model support them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from laptsne import LaptSNE
from laptsne.transform.support import MIN_SUPPORT

_MAX_UNSUPPORTED = 0.05  # share of new rows without support beyond which they seem to be of another kind


def map_of(model: LaptSNE) -> NDArray[Any]:
    """Return the points that a model has the clusters of: all rows that it was fitted to, or its landmarks."""
    return np.asarray(model.landmark_embedding_ if _has_landmarks(model) else model.embedding_)


def clusters_of(model: LaptSNE, X: Any) -> NDArray[Any]:
    """Return the cluster of each row that a model was fitted to, -1 if it has none."""
    labels: NDArray[Any] = np.asarray(model.labels_)
    if not _has_landmarks(model):
        return labels
    if hasattr(model, "predict"):
        return np.asarray(model.predict(X))
    nearest = NearestNeighbors(n_neighbors=1).fit(map_of(model)).kneighbors(model.embedding_, return_distance=False)
    clusters: NDArray[Any] = labels[nearest[:, 0]]
    return clusters


def cluster_names(clusters: NDArray[Any]) -> NDArray[Any]:
    """Return clusters as labels, None where there is none, so that such points are grey."""
    if (clusters >= 0).all():
        return clusters
    names = clusters.astype(object)
    names[clusters < 0] = None
    return names


def found_on_new(model: LaptSNE, X: Any) -> dict[str, NDArray[Any]]:
    """Return the cluster and the support of new rows, if the model can tell."""
    found = {}
    if hasattr(model, "predict"):
        found["cluster"] = np.asarray(model.predict(X))
    if hasattr(model, "support"):
        found["support"] = np.asarray(model.support(X))
    return found


def support_warning(found: dict[str, NDArray[Any]]) -> str | None:
    """Return a warning if many new rows are unlike the data that the model was fitted to."""
    if "support" not in found:
        return None
    without = found["support"] < MIN_SUPPORT
    share = float(np.mean(without))
    if share <= _MAX_UNSUPPORTED:
        return None
    return (
        f"{without.sum()} of {len(without)} rows ({share:.0%}) have no support: the model was fitted to no data like "
        "them, so that their positions mean little. Check that the columns have the same units, or fit a new map."
    )


def _has_landmarks(model: LaptSNE) -> bool:
    return hasattr(model, "landmark_embedding_")
