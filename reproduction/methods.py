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
from laptsne.graph.spectrum import laplacian_spectrum
from reproduction.result_cache import code_digest

Array = NDArray[Any]
Settings = dict[str, Any]

# The warm-up uses more points than the size at which methods switch algorithms, so that everything is compiled.
_WARM_UP_POINTS = 12_000
# Above this size scikit-learn's Laplacian eigenmaps, which factorise the graph, take too long; ours iterate.
_MAX_FACTORISED = 20_000


@dataclass(frozen=True)
class Fit:
    """An embedding and what is known about how it was computed."""

    embedding: Array
    facts: dict[str, Any] = field(default_factory=dict)  # JSON values: seconds, warnings, LaptSNE's attributes
    snapshots: dict[int, Array] = field(default_factory=dict)  # embeddings by iteration
    rows: Array | None = None  # numbers of the embedded rows, None if all are


@dataclass(frozen=True)
class Method:
    """A method: how it is fitted, and with which settings.

    Parameters
    ----------
    fit : callable
        Takes the data, a seed and the settings.
    settings : callable
        Returns the settings for a number of points.
    package, distribution : str
        The name by which the library is imported and the one by which it is installed.
    own : bool
        Whether it is ours: its results then depend on our code rather than on the version of a library.
    probe : callable
        For a method of ours, returns a digest on which its results depend instead of on all of our code.
    reduced : bool
        Whether it receives the data reduced by PCA rather than as loaded.
    warm_up : dict
        Settings changed for a first, short, untimed fit; empty if the method compiles nothing.
    """

    fit: Callable[[Array, int, Settings], Fit]
    settings: Callable[[int], Settings] = lambda n_samples: {}
    package: str = "sklearn"
    distribution: str = "scikit-learn"
    own: bool = False
    probe: Callable[[], str] | None = None
    reduced: bool = True
    warm_up: Settings = field(default_factory=dict)

    def source(self) -> str:
        """Return what the results depend on: a digest of our code, or the version of a library."""
        if self.probe:
            return self.probe()
        return code_digest("laptsne.estimators.laptsne") if self.own else self.version()

    def version(self) -> str:
        """Return the version of the library; raise MissingLibraryError if it is not installed."""
        try:
            importlib.import_module(self.package)
            return importlib.metadata.version(self.distribution)
        except ImportError as error:
            raise MissingLibraryError(
                f'{self.distribution} is not installed; install it with pip install ".[benchmark]".'
            ) from error


class MissingLibraryError(Exception):
    """The library of a method is not installed."""


def timed_fit(method: Method, X: Array, seed: int, settings: Settings, *, warm_up: bool) -> Fit:
    """Fit and time a method, after a short fit that compiles what needs compiling."""
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        if warm_up and method.warm_up:
            method.fit(X[:_WARM_UP_POINTS], seed, settings | method.warm_up)
            caught.clear()
        started = time.perf_counter()
        fit = method.fit(X, seed, settings)
        seconds = time.perf_counter() - started
    if not np.isfinite(fit.embedding).all():
        raise ValueError("the embedding has coordinates that are not finite.")
    messages = sorted({str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)})
    facts = {"seconds": seconds, "warnings": messages} | fit.facts
    return Fit(np.asarray(fit.embedding, np.float32), facts, fit.snapshots, fit.rows)


def fit_laptsne(X: Array, seed: int, settings: Settings) -> Fit:
    """Fit LaptSNE. Settings beyond its parameters: ``paper``, ``descent``, and ``keep`` (iterations to record)."""
    settings = dict(settings)
    make = LaptSNE.paper if settings.pop("paper", False) else LaptSNE
    iterations = set(settings.pop("keep", ()))
    snapshots: dict[int, Array] = {}

    def keep(state: Any) -> None:
        if state.iteration in iterations:
            snapshots[state.iteration] = state.embedding.astype(np.float32)

    if "descent" in settings:
        settings["optimizer"] = Descent(**dict(settings.pop("descent")))
    model = make(random_state=seed, callbacks=keep if iterations else None, **settings)
    Y = model.fit_transform(X)
    facts = {
        "n_clusters": int(model.n_clusters_),
        "contraction": float(model.contraction_),
        "kl": float(model.kl_divergence_),
        "n_iter": int(model.n_iter_),
        "data_eigenvalues": model.data_eigenvalues_.tolist(),
    }
    if model.n_iter_ in iterations:  # callbacks see the embedding before each step, so never the last one
        snapshots[model.n_iter_] = Y.astype(np.float32)
    return Fit(Y, facts, snapshots)


def _opentsne(X: Array, seed: int, settings: Settings) -> Fit:
    openTSNE = importlib.import_module("openTSNE")
    return Fit(np.asarray(openTSNE.TSNE(random_state=seed, n_jobs=-1, **settings).fit(X)))


def _umap(X: Array, seed: int, settings: Settings) -> Fit:
    # With a random_state UMAP runs on one thread: NumPy's global state is seeded instead, as far as that goes.
    np.random.seed(seed)  # noqa: NPY002
    return Fit(importlib.import_module("umap").UMAP(**settings).fit_transform(X))


def _pacmap(X: Array, seed: int, settings: Settings) -> Fit:
    pacmap = importlib.import_module("pacmap")
    logging.getLogger("pacmap.pacmap").setLevel(logging.ERROR)  # it warns that a seed was given
    return Fit(pacmap.PaCMAP(random_state=seed, **settings).fit_transform(X))


def _eigenmaps(X: Array, seed: int, settings: Settings) -> Fit:
    if len(X) <= _MAX_FACTORISED:
        model = SpectralEmbedding(affinity="nearest_neighbors", random_state=seed, n_jobs=-1, **settings)
        return Fit(model.fit_transform(X))
    graph = kneighbors_graph(X, settings["n_neighbors"], include_self=True, n_jobs=-1)
    graph = scipy.sparse.csr_matrix((graph + graph.T) / 2)
    vectors = laplacian_spectrum(graph, 3).eigenvectors[:, 1:]
    return Fit(vectors / np.sqrt(np.asarray(graph.sum(axis=1))))


def batch_size(n_samples: int) -> int:
    """Return the batch size of LaptSNE-Mini: a seventh of the points, and at most what keeps a fit to minutes."""
    return min(max(200, n_samples // 7), 5000)


_OURS: dict[str, Any] = {"package": "laptsne", "distribution": "laptsne", "own": True, "warm_up": {"max_iter": 20}}

METHODS = {
    "LaptSNE": Method(fit_laptsne, **_OURS),
    "LaptSNE-Mini": Method(fit_laptsne, lambda n: {"batch_size": batch_size(n)}, **_OURS),
    # As in the paper: no exaggeration, and its perplexities for small and large sets.
    "t-SNE": Method(
        lambda X, seed, settings: Fit(TSNE(random_state=seed, n_jobs=-1, **settings).fit_transform(X)),
        lambda n: {"early_exaggeration": 1.0, "perplexity": 25.0 if n <= 10_000 else 30.0, "max_iter": 500},
    ),
    "openTSNE": Method(_opentsne, package="openTSNE", distribution="openTSNE"),
    "UMAP": Method(_umap, package="umap", distribution="umap-learn", warm_up={"n_epochs": 11}),
    "PaCMAP": Method(_pacmap, package="pacmap", distribution="pacmap", warm_up={"num_iters": (5, 5, 5)}),
    # scikit-learn's default of a tenth of the points, as in the paper, as long as the graph stays sparse.
    "Eigenmaps": Method(_eigenmaps, lambda n: {"n_neighbors": min(n // 10, 500)}),
    "PCA": Method(lambda X, seed, settings: Fit(PCA(2, random_state=seed, **settings).fit_transform(X))),
}
