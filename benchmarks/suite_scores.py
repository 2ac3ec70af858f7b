"""Scores of an embedding in the suite.

>>> from suite_scores import score
>>> from suite_sets import load
>>> score(load("digits"), Y)  # a dict from the name of each score to its value
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation
from suite_sets import Dataset
from threadpoolctl import threadpool_limits

from laptsne.metrics import rasterized
from reproduction.scores import ScoreGroup, cluster_name, kmeans_scores, knn_scores, neighbor_scores, rank_scores

Array = NDArray[Any]
IMAGE_SIZE = 400  # pixels, width and height
MARKER_RADIUS = 2  # pixels
_MAX_RANKED = 20_000  # points among which trustworthiness is computed, as in the reproduction
_MAX_SNC = 1500  # points among which steadiness and cohesiveness are computed
_SNC_ITERATIONS = 600  # four times zadu's default, which halves the standard deviation between seeds


def seen_scores(data: Dataset, Y: Array) -> dict[str, float]:
    """Share of the nearest neighbours in the data that are nearest among the pixels; ties are broken at random."""
    return {"seen": float(data.faithfulness.neighbors_kept(rasterized(Y, IMAGE_SIZE)))}


def ink_scores(data: Dataset, Y: Array) -> dict[str, float]:
    """Number of pixels that round markers cover, as a share of those that they could cover at most."""
    offsets = np.arange(-MARKER_RADIUS, MARKER_RADIUS + 1)
    marker = offsets[:, None] ** 2 + offsets**2 <= MARKER_RADIUS**2
    image = np.zeros((IMAGE_SIZE, IMAGE_SIZE), bool)
    image[tuple(np.rint(rasterized(Y, IMAGE_SIZE)).astype(np.int64).T)] = True
    most = min(len(Y) * int(marker.sum()), image.size)
    return {"ink": float(binary_dilation(image, marker).sum() / most)}


def snc_scores(data: Dataset, Y: Array, max_points: int, iterations: int) -> dict[str, float]:
    """Steadiness and cohesiveness (Jeon et al. 2021); for large sets among random points, the same for all maps."""
    from zadu.measures import steadiness_cohesiveness

    rows = np.arange(len(Y))
    if len(Y) > max_points:
        rows = np.sort(np.random.default_rng(0).choice(len(Y), max_points, replace=False))
    found = steadiness_cohesiveness.measure(data.X[rows], Y[rows], iteration=iterations, random_state=0)
    return {name: float(found[name]) for name in ("steadiness", "cohesiveness")}


def frontier_groups(data: Dataset) -> list[ScoreGroup]:
    """Return the scores that a point of the frontier needs."""
    return [
        ScoreGroup(kmeans_scores, {"n_clusters": data.n_classes}),
        ScoreGroup(neighbor_scores, {}),
        ScoreGroup(seen_scores, {}),
    ]


def table_groups(data: Dataset) -> list[ScoreGroup]:
    """Return the scores of the tables."""
    return [
        ScoreGroup(knn_scores, {"ks": (10,), "protocol": "cross-validated"}),
        *frontier_groups(data),
        ScoreGroup(ink_scores, {}),
        ScoreGroup(rank_scores, {"max_points": _MAX_RANKED}),
        ScoreGroup(snc_scores, {"max_points": _MAX_SNC, "iterations": _SNC_ITERATIONS}),
    ]


def compute(group: ScoreGroup, data: Dataset, Y: Array) -> dict[str, float]:
    """Compute the scores of a group, under the names that the tables use."""
    short = {cluster_name(name, data.n_classes): name for name in ("NMI", "SC", "DBI")}
    short |= {"10-nn": "10-NN", "neighbours kept": "kept"}
    with warnings.catch_warnings(), threadpool_limits(1, "openmp"):  # k-means gains nothing from threads here
        warnings.simplefilter("ignore")  # classes with fewer members than folds
        return {short.get(name, name): value for name, value in group.compute(data, Y, **group.parameters).items()}


def score(data: Dataset, Y: Array) -> dict[str, float]:
    """Return all scores of an embedding."""
    Y = np.asarray(Y)
    return {name: value for group in table_groups(data) for name, value in compute(group, data, Y).items()}


def scoring_digest() -> str:
    """Digest of the code of this module and the version of zadu."""
    tree = ast.dump(ast.parse(Path(__file__).read_bytes()))
    return hashlib.sha256((tree + importlib.metadata.version("zadu")).encode()).hexdigest()[:32]
