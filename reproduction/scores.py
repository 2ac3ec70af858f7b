"""What a map is scored by: tidiness, by labels and by k-means, and faithfulness to the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne import metrics
from reproduction.data import NEIGHBORS, Data
from reproduction.store import code_digest

_MAX_RANKED = 20_000
_KS = (10, 20, 40, 80)
_LARGE_KS = (100, 200, 400, 800)
_LARGE_SETS = ("mnist", "fashion_mnist", "har")
CLUSTER_SCORES = ("NMI", "SC", "DBI")


@dataclass(frozen=True)
class Score:
    """Scores that are computed together.

    Parameters
    ----------
    name : str
        Which ones.
    parameters : dict
        With what.
    compute : callable
        Takes data and map; returns the scores by their names.
    """

    name: str
    parameters: dict[str, Any]
    compute: Callable[[Data, NDArray[Any]], dict[str, float]]

    def key(self, data: Data, map_digest: str) -> Mapping[str, Any]:
        """All that the scores depend on."""
        return {
            "kind": "score",
            "name": self.name,
            "parameters": self.parameters,
            "map": map_digest,
            "data": data.digest,
            "labels": data.labels_digest,
            "code": code_digest("laptsne.metrics"),
        }


def neighbor_counts(name: str) -> tuple[int, ...]:
    """Numbers of neighbours at which the paper gives accuracies on a set."""
    return _LARGE_KS if name in _LARGE_SETS else _KS


def knn_name(k: int, protocol: str = "cross-validated") -> str:
    """Name of an accuracy among the scores of a map."""
    return f"{k}-nn" + (" on training points" if protocol == "paper" else "")


def cluster_name(score: str, n_clusters: int) -> str:
    """Name of a score of k-means among the scores of a map."""
    return f"{score} of {n_clusters} clusters"


def knn(ks: tuple[int, ...], protocol: str) -> Score:
    """Accuracy of a vote of nearest neighbours."""

    def compute(data: Data, Y: NDArray[Any]) -> dict[str, float]:
        usable = [k for k in ks if k < 0.8 * len(Y)]
        found = metrics.knn_accuracy(Y, data.y, usable, protocol=protocol)
        return {knn_name(k, protocol): float(value) for k, value in zip(usable, np.atleast_1d(found), strict=True)}

    return Score("knn", {"ks": list(ks), "protocol": protocol}, compute)


def clusters(n_clusters: int) -> Score:
    """NMI, silhouette and Davies-Bouldin index of k-means on the map."""

    def compute(data: Data, Y: NDArray[Any]) -> dict[str, float]:
        found = metrics.cluster_scores(Y, data.y, n_clusters)
        return {cluster_name(name, n_clusters): float(value) for name, value in zip(CLUSTER_SCORES, found, strict=True)}

    return Score("clusters", {"n_clusters": n_clusters}, compute)


def faithfulness() -> Score:
    """Trustworthiness and continuity; of large sets among points chosen at random, the same ones for all maps."""

    def compute(data: Data, Y: NDArray[Any]) -> dict[str, float]:
        rows = np.arange(len(Y))
        if len(Y) > _MAX_RANKED:
            rows = np.sort(np.random.default_rng(0).choice(len(Y), _MAX_RANKED, replace=False))
        return {
            "trustworthiness": float(metrics.trustworthiness(data.X[rows], Y[rows], n_neighbors=NEIGHBORS)),
            "continuity": float(metrics.continuity(data.X[rows], Y[rows], n_neighbors=NEIGHBORS)),
        }

    return Score("faithfulness", {"n_neighbors": NEIGHBORS, "max_points": _MAX_RANKED}, compute)


def kept() -> Score:
    """Share of the nearest neighbours in the data that are nearest neighbours in the map."""

    def compute(data: Data, Y: NDArray[Any]) -> dict[str, float]:
        return {"neighbours kept": float(data.faithfulness.neighbors_kept(Y))}

    return Score("kept", {"n_neighbors": NEIGHBORS}, compute)


def scores_for(purpose: str, data: Data, counts: tuple[int, ...] = ()) -> list[Score]:
    """The scores that a run is for.

    Parameters
    ----------
    purpose : {"table", "sweep", "frontier", "none"}
        What the run is for.
    data : Data
        The data.
    counts : tuple of int
        Numbers of clusters besides that of the classes, for tables.
    """
    if purpose == "none":
        return []
    if purpose == "sweep":
        return [knn((20,), "paper"), clusters(data.n_classes), kept()]
    if purpose == "frontier":
        return [knn((10,), "cross-validated"), clusters(data.n_classes), kept()]
    ks = neighbor_counts(data.name)
    wanted = dict.fromkeys((data.n_classes, *counts))
    honest = tuple(dict.fromkeys((10, *ks)))
    return [
        knn(ks, "paper"),
        knn(honest, "cross-validated"),
        *(clusters(count) for count in wanted),
        kept(),
        faithfulness(),
    ]
