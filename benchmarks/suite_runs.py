"""The sets of the suite, the scores of a map, and the runs of all methods, which are computed once and then loaded.

This is used by suite.py, clusters.py, constants.py and lapumap.py; it has no command of its own.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import inspect
import logging
import os
import subprocess
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import shared  # noqa: F401  for reproduction/ on the path
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation
from scipy.sparse import triu
from sklearn.metrics import normalized_mutual_info_score
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

# On a busy machine, OpenMP threads that spin while they wait make small fits of openTSNE and PaCMAP 50 times slower.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from laptsne.metrics import rasterized
from reproduction.dataset import LARGE, N_COMPONENTS, Dataset
from reproduction.dataset import SETS as PAPER
from reproduction.datasets import cache_folder
from reproduction.methods import METHODS, Fit, Method, Settings, timed_fit
from reproduction.result_cache import ResultCache, code_digest
from reproduction.runs import Run
from reproduction.scores import (
    ScoreGroup,
    cluster_name,
    kmeans_scores,
    knn_scores,
    neighbor_scores,
    rank_scores,
    sampled_rows,
)

__all__ = ["CACHE", "CONTINUUM", "GROUPS", "LARGE", "PAPER", "SETS", "VARIANTS", "Dataset", "SuiteRunner", "load"]

SUITE = (
    "audio_frog_calls",
    "faces_pie10_pose",
    "faces_yaleb",
    "genetics_human_populations",
    "image_binary_alphadigits",
    "image_kannada_digits",
    "remote_crop_series",
    "sc_cell_lines_celseq2",
    "sc_cord_blood",
    "sc_human_kidney",
    "sc_paul15_myeloid",
    "sc_pbmc4k",
    "sc_pbmc68k_700",
    "sensor_gas_drift",
    "series_ecg5000",
    "series_fifty_words",
    "speech_isolet",
    "tab_abalone_age",
    "tab_dry_bean",
    "tab_image_segmentation",
    "tab_page_blocks",
    "text_20news_tfidf",
    "text_banking77_use",
    "text_reuters52_tfidf",
)
# Continuous data, in which separated clusters are not to be expected.
CONTINUUM = ("genetics_human_populations", "sc_paul15_myeloid", "tab_abalone_age")
# The alphabet splits the suite: the first, third, ... set for choosing constants, the others for reporting.
GROUPS = {
    "choosing": tuple(name for name in sorted(SUITE)[::2] if name not in CONTINUUM),
    "reporting": tuple(name for name in sorted(SUITE)[1::2] if name not in CONTINUUM),
    "paper": PAPER,
    "continuum": CONTINUUM,
}
_PAPER_ROWS = {
    "digits": 1797,
    "coil20": 1440,
    "waveform": 5000,
    "coil100": 7200,
    "har": 10_299,
    "mnist": 70_000,
    "fashion_mnist": 70_000,
}
_MAX_SEEDED = 3000  # rows below which several seeds are run
SETS = (*SUITE, *PAPER)


def load(name: str) -> Dataset:
    """Load a set of the suite or of the paper."""
    if name in PAPER:
        return Dataset.load(name)
    with np.load(_path(name)) as arrays:
        return Dataset(name, arrays["X"], arrays["y"])


def group(name: str) -> str:
    """Return the group over which the scores of a set are averaged."""
    return next(title for title, names in GROUPS.items() if name in names)


def n_rows(name: str) -> int:
    """Return the number of rows without loading the data."""
    if name in PAPER:
        return _PAPER_ROWS[name]
    with np.load(_path(name)) as arrays:
        return len(arrays["y"])


def n_seeds(n_samples: int, most: int) -> int:
    """Return the number of seeds: several on small sets, otherwise one."""
    return most if n_samples < _MAX_SEEDED else 1


def _path(name: str) -> Path:
    folder = os.environ.get("LAPTSNE_DATA")
    if folder is None:
        raise FileNotFoundError("Set the environment variable LAPTSNE_DATA to the folder that contains suite/.")
    return Path(folder, "suite", f"{name}.npz")


# Scores

Array = NDArray[Any]
IMAGE_SIZE = 400  # pixels, width and height
MARKER_RADIUS = 2  # pixels
_MAX_RANKED = 20_000  # points among which trustworthiness is computed, as in the reproduction
_MAX_LEIDEN = 20_000  # points on which the graph for Leiden is built
_N_NEIGHBORS_LEIDEN = 15  # the point itself is one of them, as in scanpy
RESOLUTIONS = tuple(step / 10 for step in range(1, 21))  # those of openproblems
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


def leiden_scores(data: Dataset, Y: Array, max_points: int) -> dict[str, float]:
    """NMI of the resolution of Leiden with the highest; for large sets on random points, the same for all maps."""
    rows = sampled_rows(len(Y), max_points)
    partitions = leiden(neighbor_graph(Y[rows]), RESOLUTIONS)
    return {"NMI of Leiden": max(float(normalized_mutual_info_score(data.y[rows], labels)) for labels in partitions)}


def neighbor_graph(Y: Array) -> Any:
    """Return scanpy's connectivities, which are the fuzzy weights of UMAP, from exact neighbours in the map."""
    from umap.umap_ import fuzzy_simplicial_set

    k = _N_NEIGHBORS_LEIDEN
    distances, indices = NearestNeighbors(n_neighbors=k).fit(Y).kneighbors(Y)
    return fuzzy_simplicial_set(Y, k, None, "euclidean", knn_indices=indices, knn_dists=distances)[0]


def leiden(weights: Any, resolutions: Sequence[float]) -> list[Array]:
    """Return the clusters of a symmetric graph at each resolution."""
    import igraph
    import leidenalg

    edges = triu(weights).tocoo()
    graph = igraph.Graph(n=weights.shape[0], edges=np.column_stack([edges.row, edges.col]))
    quality = leidenalg.RBConfigurationVertexPartition
    options = {"weights": edges.data.tolist(), "n_iterations": 2, "seed": 0}
    partitions = (leidenalg.find_partition(graph, quality, resolution_parameter=r, **options) for r in resolutions)
    return [np.array(partition.membership) for partition in partitions]


def snc_scores(data: Dataset, Y: Array, max_points: int, iterations: int) -> dict[str, float]:
    """Steadiness and cohesiveness (Jeon et al. 2021); for large sets among random points, the same for all maps."""
    from zadu.measures import steadiness_cohesiveness

    rows = sampled_rows(len(Y), max_points)
    found = steadiness_cohesiveness.measure(data.X[rows], Y[rows], iteration=iterations, random_state=0)
    return {name: float(found[name]) for name in ("steadiness", "cohesiveness")}


# The scores of the tables, by the function that computes them.
SCORES_OF: dict[Callable[..., dict[str, float]], tuple[str, ...]] = {
    knn_scores: ("10-NN",),
    kmeans_scores: ("NMI", "SC", "DBI"),
    leiden_scores: ("NMI of Leiden",),
    neighbor_scores: ("kept",),
    seen_scores: ("seen",),
    ink_scores: ("ink",),
    rank_scores: ("trustworthiness",),
    snc_scores: ("steadiness", "cohesiveness"),
}


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
        ScoreGroup(leiden_scores, {"max_points": _MAX_LEIDEN}),
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


def scoring_digest() -> str:
    """Return the digest of the code of the scores above and the versions of the libraries that compute them."""
    functions = (seen_scores, ink_scores, leiden_scores, neighbor_graph, leiden, snc_scores)
    code = [inspect.getsource(function) for function in functions]
    versions = [importlib.metadata.version(name) for name in ("leidenalg", "umap-learn", "zadu")]
    facts = [IMAGE_SIZE, MARKER_RADIUS, _N_NEIGHBORS_LEIDEN, RESOLUTIONS, versions]
    return hashlib.sha256(repr((code, facts)).encode()).hexdigest()[:32]


# Runs

CACHE = cache_folder().parent / "laptsne-suite"


def _localmap(X: Any, seed: int, settings: Settings) -> Fit:
    pacmap = importlib.import_module("pacmap")
    logging.getLogger("pacmap.pacmap").setLevel(logging.ERROR)  # it warns that a seed was given
    return Fit(pacmap.LocalMAP(random_state=seed, **settings).fit_transform(X))


_BASE = {**METHODS, "LocalMAP": Method(_localmap, package="pacmap", distribution="pacmap")}
# The method and the settings that differ from its defaults, by the name in the tables.
VARIANTS: dict[str, tuple[str, Settings]] = {
    "LaptSNE": ("LaptSNE", {}),
    "t-SNE (ours)": ("LaptSNE", {"contraction": 0, "refine_affinities": False}),
    "openTSNE": ("openTSNE", {}),
    "openTSNE, exaggeration 2": ("openTSNE", {"exaggeration": 2}),
    "UMAP": ("UMAP", {}),
    "PaCMAP": ("PaCMAP", {}),
    "LocalMAP": ("LocalMAP", {}),
}


def make_run(name: str, method: str, settings: Settings, seed: int = 0) -> Run:
    """Return the run of a method with changed settings."""
    return Run(name, method, seed, tuple(settings.items()))


def commit() -> str:
    """Return the commit of the code, with a mark if the working tree differs from it."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=10"]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


class SuiteRunner:
    """Makes runs, or loads those made before from a folder; ``say`` hears of anything that takes time."""

    def __init__(self, cache: Path = CACHE, say: Callable[[str], None] = lambda text: None) -> None:
        self._cache, self._say = ResultCache(cache), say
        # Before the first run, since the code on disk may change while runs go on.
        self._code, self._scoring = code_digest("laptsne.estimators.laptsne"), scoring_digest()
        code_digest("laptsne.metrics")
        self._commit = commit()

    def origin(self, method: str) -> dict[str, str]:
        """Return what computes the maps of a method: the commit and digest of our code, or a library's version."""
        if _BASE[method].own:
            return {"commit": self._commit, "code": self._code[:10]}
        return {"version": _BASE[method].version()}

    def scores(self, data: Dataset, run: Run, groups: list[ScoreGroup]) -> dict[str, float] | None:
        """Return the scores of a run, including KL and n_clusters of our methods; None if the method fails."""
        try:
            fit = self.fit(data, run)
        except Exception as error:  # whatever a library raises, the other runs go on
            self._say(f"{_describe(run)}: failed: {type(error).__name__}: {error}")
            return None
        digest = str(joblib.hash(fit.embedding))
        scores: dict[str, float] = {}
        for group in groups:
            key = group.key(data, digest) | {"suite": self._scoring}
            scores |= self._cache.get(key, lambda group=group: compute(group, data, fit.embedding))
        facts = {"kl": "KL", "n_clusters": "n_clusters"}
        return scores | {name: fit.facts[fact] for fact, name in facts.items() if fact in fit.facts}

    def fit(self, data: Dataset, run: Run) -> Fit:
        """Return the fit of a run, whose ``embedding`` is the map."""
        method = _BASE[run.method]
        settings = method.settings(len(data.loaded)) | dict(run.changes)

        def compute() -> Fit:
            self._say(f"{_describe(run)}: fitting")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return timed_fit(method, data.X, run.seed, settings, warm_up=False)

        key = {
            "kind": "fit",
            "method": run.method,
            "settings": settings,
            "seed": run.seed,
            "data": data.digest,
            "n_components": N_COMPONENTS,
            "code": self._code if method.own else method.version(),
        }
        return self._cache.get(key, compute)


def _describe(run: Run) -> str:
    changes = "".join(f", {name} {value}" for name, value in run.changes)
    return f"{run.data}: {run.method}{changes}, seed {run.seed}"
