"""The initial embedding."""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.decomposition import PCA

from laptsne._runtime.typing import Floats
from laptsne._runtime.warn import warn

_SPREAD = 1e-4  # standard deviation of the first coordinate, small relative to the kernel, as usual for t-SNE
_JITTER = 0.01  # noise, relative to that
# Squared distances of larger coordinates overflow in single precision. Those of a million points are in the hundreds.
MAX_COORDINATE = 1e15


def initial_embedding(
    init: str | ArrayLike, X: Any, eigenvectors: Floats, n_components: int, *, metric: Any, random_state: RandomState
) -> Floats:
    """Return the initial embedding, of shape (n_samples, n_components).

    "spectral" takes the eigenvectors after the first, which only reflects the degrees. Except for an array, the
    embedding is scaled to a small standard deviation, and noise separates points that coincide.
    """
    n_samples = X.shape[0]
    if not isinstance(init, str):
        return _given(init, n_samples, n_components, random_state)
    noise = random_state.standard_normal((n_samples, n_components))
    if init == "random":
        return _SPREAD * noise
    directions = _principal(X, n_components, metric) if init == "pca" else eigenvectors[:, 1:]
    Y = np.zeros((n_samples, n_components))
    width = min(n_components, directions.shape[1])
    Y[:, :width] = directions[:, :width]
    Y -= Y.mean(axis=0)
    # One scale for all axes: PCA keeps the proportions of its axes, and eigenvectors have equal norms.
    spread = Y.std(axis=0).max()
    return _SPREAD * ((Y / spread if spread > 0 else Y) + _JITTER * noise)


def completed(positions: Floats, P: Any, random_state: RandomState) -> Floats:
    """Return positions with those that are NaN at the mean of their neighbours, weighted by the affinities P.

    Points without a path to one with a position start at the centre of the others. Noise separates them.
    """
    known = ~np.isnan(positions[:, 0])
    Y = np.where(known[:, None], positions, 0.0)
    noise = _SPREAD * random_state.standard_normal(Y.shape) * ~known[:, None]
    centre = Y[known].mean(axis=0)
    while True:
        weight = np.where(known, 0.0, P @ known.astype(P.dtype))
        reached = weight > 0
        if not reached.any():
            Y[~known] = centre
            return Y + noise
        Y[reached] = (P @ Y)[reached] / weight[reached, None]
        known |= reached


def _principal(X: Any, n_components: int, metric: Any) -> Floats:
    if isinstance(metric, str) and metric in ("precomputed", "affinities"):
        raise ValueError(f"init='pca' needs features, but metric={metric!r}; use init='spectral'.")
    # Squares of the features must not overflow.
    X = X / (float(abs(X).max()) or 1.0)
    if abs(X.max(axis=0) - X.min(axis=0)).max() == 0:  # all rows are equal
        return np.zeros((X.shape[0], n_components))
    n_components = min(n_components, *X.shape)
    sparse = scipy.sparse.issparse(X)
    if sparse and n_components == min(X.shape):
        X, sparse = X.toarray(), False
    pca = PCA(n_components, svd_solver="arpack" if sparse else "auto", random_state=0)
    return np.asarray(pca.fit_transform(X), dtype=np.float64)


def _given(init: ArrayLike, n_samples: int, n_components: int, random_state: RandomState) -> Floats:
    """An array as initial embedding, centred: sums in single precision would lose small differences to an offset."""
    try:
        Y = np.array(init, dtype=np.float64)
    except (TypeError, ValueError) as error:
        expected = "'spectral', 'pca', 'random' or an array of numbers"
        raise ValueError(f"init is not an array of numbers ({error}); give {expected}.") from error
    shape = (n_samples, n_components)
    if Y.shape != shape:
        raise ValueError(f"init has shape {Y.shape}, but (n_samples, n_components) is {shape}; give an array of that.")
    if not np.isfinite(Y).all():
        raise ValueError("init contains NaN or infinite values; replace them.")
    largest = float(np.abs(Y).max())
    if largest >= MAX_COORDINATE:
        raise ValueError(f"init has values up to {largest:.2g}, too large for an embedding; scale it to a spread of 1.")
    if n_samples > 1 and not np.ptp(Y, axis=0).any():
        warn("init: all rows are equal, so that no forces separate the points; noise is added. Use init='random'.")
        return _SPREAD * random_state.standard_normal(Y.shape)
    Y -= Y.mean(axis=0)
    return Y
