"""LaptSNE as its authors published it: by the text of the paper, and with the weights of their code.

Small sets are embedded as they are. MNIST, Fashion-MNIST and HAR go through 10,000 landmarks and the network (Algorithm
2 of the paper): k-means finds the landmarks, LaptSNE embeds them, and a network that is trained on their embedding
embeds all rows. The authors' code is at https://github.com/mathildasy/LaptSNE.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from laptsne import Descent, LaptSNE
from laptsne._runtime.threads import Workers
from laptsne.estimators.landmarks import find_landmarks
from laptsne.transform.network import Network
from reproduction.dataset import reduced
from reproduction.methods import Fit, Method, Settings, fit_laptsne

Array = NDArray[Any]

N_LANDMARKS = 10_000
# More points are embedded on a grid, and with nearest neighbours instead of all pairs: the same map to 1e-3.
_MAX_PAIRS = 3000
# Batches of 100 points with ten neighbours each, and no convergence check, as in the authors' code.
_BATCHES = {"batch_size": 100, "n_batch_neighbors": 10}
_DESCENT = Descent(momentum=0.5, exaggeration=1.0, contraction_start=0, contraction_ramp=0, refresh_every=1, tol=0.0)
_PROBE_POINTS = 150


def _published(X: Array, seed: int, settings: Settings) -> Fit:
    """Fit LaptSNE by the paper. Settings beyond those of :func:`reproduction.methods.fit_laptsne`: ``through``.

    "landmarks" embeds the landmarks only, "rows" all rows by the network; without it there are no landmarks.
    """
    settings = dict(settings)
    through = settings.pop("through", None)
    rows = landmark_rows(X) if through else None
    values = np.asarray(X if rows is None else X[rows], np.float32)
    if len(values) > _MAX_PAIRS:
        # Batches have no grid: their sums run over all pairs of moving points and others.
        settings = {"n_neighbors": "auto", "method": "exact" if "batch_size" in settings else "fourier"} | settings
    fit = fit_laptsne(values, seed, {"paper": True, "optimizer": _DESCENT} | settings)
    if through == "rows":
        network = Network.trained(values, fit.embedding, check_random_state(seed))
        with Workers() as workers:
            return replace(fit, embedding=network.place(np.asarray(X, np.float32), workers))
    return replace(fit, rows=rows)


def landmark_rows(X: Array) -> Array:
    """Return the row numbers of the landmarks, which are found in the data reduced by PCA; kept for the last data."""
    digest = joblib.hash(X)
    if digest not in _landmarks:
        order = np.random.default_rng(0).permutation(len(X))
        _landmarks.clear()
        _landmarks[digest] = find_landmarks(np.asarray(reduced(X), np.float32), N_LANDMARKS, order)
    return _landmarks[digest]


_landmarks: dict[str, Array] = {}


@cache
def probe_digest() -> str:
    """Digest of what the code computes for the paper's settings on a small sample.

    Results "as published" depend on it instead of on the source: they stay valid when other parts of the method change.
    """
    generator = np.random.default_rng(0)
    X = generator.normal(scale=4, size=(3, 5))[np.arange(_PROBE_POINTS) % 3] + generator.normal(size=(_PROBE_POINTS, 5))
    changes: tuple[Settings, ...] = (
        {},
        {"penalty": "log"},
        {"method": "fourier", "n_neighbors": "auto"},
        {"batch_size": 20, "n_batch_neighbors": 2},
    )
    common: Settings = {"n_clusters": 3, "max_iter": 40, "optimizer": _DESCENT, "random_state": 0}
    embeddings = [LaptSNE.paper(**common | change).fit_transform(X) for change in changes]
    network = Network.trained(X, embeddings[0], check_random_state(0))
    with Workers() as workers:
        return str(joblib.hash([*embeddings, network.place(X, workers), find_landmarks(X, 40, np.arange(len(X)))]))


_PUBLISHED: dict[str, Any] = {
    "package": "laptsne",
    "distribution": "laptsne",
    "own": True,
    "probe": probe_digest,
    "reduced": False,
}

METHODS = {
    "LaptSNE as published": Method(_published, **_PUBLISHED),
    "LaptSNE-Mini as published": Method(_published, lambda n: dict(_BATCHES), **_PUBLISHED),
    # The code weighs eigenvector k by the inverse of its eigenvalue, which minimises the sum of their logarithms,
    # where the paper states their sum.
    "LaptSNE as coded": Method(_published, lambda n: {"penalty": "log"}, **_PUBLISHED),
}
