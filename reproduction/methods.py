"""The methods that are compared, each with its settings."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import io
import logging
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.manifold import TSNE, SpectralEmbedding
from sklearn.neighbors import kneighbors_graph

from laptsne import Descent, LaptSNE
from laptsne._runtime.threads import Workers
from laptsne.embedding.state import State
from laptsne.graph.spectrum import laplacian_spectrum
from reproduction.store import Entry

Array = NDArray[Any]
Settings = dict[str, Any]

# Warmed up on more points than those at which methods change their ways, so that all that will run is compiled.
_WARM_POINTS = 12_000
# Beyond it the eigenvectors of the neighbour graph come from our own solver; scikit-learn's factorises the graph.
_MAX_FACTORISED = 20_000


@dataclass(frozen=True)
class Method:
    """A method: how it is fitted, and with what.

    Parameters
    ----------
    fit : callable
        Takes the data, a seed and the settings; returns the map, and facts and arrays besides.
    settings : callable
        The settings for so many points.
    package, distribution : str
        The package that is imported, and the name under which it is installed.
    own : bool
        Whether it is ours, so that the map depends on our code.
    warm : dict
        Changes of the settings for the first, short fit that is not timed; empty where nothing is compiled.
    """

    fit: Callable[[Array, int, Settings], tuple[Array, dict[str, Any], dict[str, Array]]]
    settings: Callable[[int], Settings]
    package: str = "sklearn"
    distribution: str = "scikit-learn"
    own: bool = False
    warm: Settings = field(default_factory=dict)

    def version(self) -> str:
        """Version of the library; MissingLibraryError where it is not installed."""
        try:
            importlib.import_module(self.package)
            return importlib.metadata.version(self.distribution)
        except ImportError as error:
            raise MissingLibraryError(
                f'{self.distribution} is not installed; pip install "laptsne[benchmark]" brings it.'
            ) from error


class MissingLibraryError(Exception):
    """A method's library is not there."""


def run_fit(method: Method, X: Array, seed: int, settings: Settings, *, warm: bool) -> Entry:
    """Fit and time it, after a short fit of some of the data that compiles what is to be compiled."""
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        if warm and method.warm:
            method.fit(X[:_WARM_POINTS], seed, settings | method.warm)
            caught.clear()
        started = time.perf_counter()
        Y, facts, arrays = method.fit(X, seed, settings)
        seconds = time.perf_counter() - started
    said = sorted({str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)})
    if not np.isfinite(Y).all():
        raise ValueError("the map has coordinates that are not finite.")
    return Entry({"seconds": seconds, "warnings": said} | facts, {"map": Y.astype(np.float32)} | arrays)


def _laptsne(X: Array, seed: int, settings: Settings) -> tuple[Array, dict[str, Any], dict[str, Array]]:
    """Fit ours. Besides the estimator's settings: ``paper``, ``descent``, and ``keep``, iterations to keep maps of."""
    settings = dict(settings)
    make = LaptSNE.paper if settings.pop("paper", False) else LaptSNE
    kept: dict[int, Array] = {}
    wanted = set(settings.pop("keep", ()))

    def keep(state: State) -> None:
        if state.iteration in wanted:
            kept[state.iteration] = state.embedding.astype(np.float32)

    if "descent" in settings:
        settings["optimizer"] = Descent(**dict(settings.pop("descent")))
    model = make(random_state=seed, callbacks=keep if wanted else None, **settings)
    Y = model.fit_transform(X)
    facts = {
        "n_clusters": int(model.n_clusters_),
        "contraction": float(model.contraction_),
        "kl": float(model.kl_divergence_),
        "n_iter": int(model.n_iter_),
        "data_eigenvalues": model.data_eigenvalues_.tolist(),
    }
    if model.n_iter_ in wanted:  # callbacks see a map before its step, so not the last one
        kept[model.n_iter_] = Y.astype(np.float32)
    arrays = {"kept": np.stack(list(kept.values())), "kept_at": np.array(list(kept))} if kept else {}
    return Y, facts, arrays


def _sklearn_tsne(X: Array, seed: int, settings: Settings) -> tuple[Array, dict[str, Any], dict[str, Array]]:
    return TSNE(random_state=seed, n_jobs=-1, **settings).fit_transform(X), {}, {}


def _opentsne(X: Array, seed: int, settings: Settings) -> tuple[Array, dict[str, Any], dict[str, Array]]:
    openTSNE = importlib.import_module("openTSNE")
    return np.asarray(openTSNE.TSNE(random_state=seed, n_jobs=-1, **settings).fit(X)), {}, {}


def _umap(X: Array, seed: int, settings: Settings) -> tuple[Array, dict[str, Any], dict[str, Array]]:
    # With a seed of its own it would run on one thread: NumPy's is set instead, as far as that goes.
    np.random.seed(seed)  # noqa: NPY002
    return np.asarray(importlib.import_module("umap").UMAP(**settings).fit_transform(X)), {}, {}


def _pacmap(X: Array, seed: int, settings: Settings) -> tuple[Array, dict[str, Any], dict[str, Array]]:
    pacmap = importlib.import_module("pacmap")
    logging.getLogger("pacmap.pacmap").setLevel(logging.ERROR)  # it warns that a seed was given
    return np.asarray(pacmap.PaCMAP(random_state=seed, **settings).fit_transform(X)), {}, {}


def _eigenmaps(X: Array, seed: int, settings: Settings) -> tuple[Array, dict[str, Any], dict[str, Array]]:
    if len(X) <= _MAX_FACTORISED:
        model = SpectralEmbedding(affinity="nearest_neighbors", random_state=seed, n_jobs=-1, **settings)
        return model.fit_transform(X), {}, {}
    graph = kneighbors_graph(X, settings["n_neighbors"], include_self=True, n_jobs=-1)
    graph = scipy.sparse.csr_matrix((graph + graph.T) / 2)
    with Workers() as workers:
        vectors = laplacian_spectrum(graph, 3, workers).eigenvectors[:, 1:]
    return vectors / np.sqrt(np.asarray(graph.sum(axis=1))), {}, {}


def _pca(X: Array, seed: int, settings: Settings) -> tuple[Array, dict[str, Any], dict[str, Array]]:
    return PCA(2, random_state=seed, **settings).fit_transform(X), {}, {}


def batch_size(n_samples: int) -> int:
    """Points that LaptSNE-Mini moves at once: a seventh, but no more than make a fit a matter of minutes."""
    return min(max(200, n_samples // 7), 5000)


_OURS: dict[str, Any] = {"package": "laptsne", "distribution": "laptsne", "own": True, "warm": {"max_iter": 20}}

METHODS = {
    "LaptSNE": Method(_laptsne, lambda n: {}, **_OURS),
    "LaptSNE-Mini": Method(_laptsne, lambda n: {"batch_size": batch_size(n)}, **_OURS),
    # As the paper ran it: without exaggeration, and with its perplexities of small and large sets.
    "t-SNE": Method(
        _sklearn_tsne,
        lambda n: {"early_exaggeration": 1.0, "perplexity": 25.0 if n <= 10_000 else 30.0, "max_iter": 500},
    ),
    "openTSNE": Method(_opentsne, lambda n: {}, "openTSNE", "openTSNE"),
    "UMAP": Method(_umap, lambda n: {}, "umap", "umap-learn", warm={"n_epochs": 11}),
    "PaCMAP": Method(_pacmap, lambda n: {}, "pacmap", "pacmap", warm={"num_iters": (5, 5, 5)}),
    # scikit-learn's default of a tenth of the points, as the paper took it, while that is a sparse graph.
    "Eigenmaps": Method(_eigenmaps, lambda n: {"n_neighbors": min(n // 10, 500)}),
    "PCA": Method(_pca, lambda n: {}),
}
