"""Where the points of the map start."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA

from laptsne.graph.spectrum import Spectrum

# Small against the unit of the kernel, so that in the beginning every point feels every other.
_SPREAD = 1e-4
_JITTER = 0.01
# Beyond it squared distances would leave single precision. Maps of a million points have coordinates of hundreds.
MAX_COORDINATE = 1e15


def initial_map(
    init: str | ArrayLike,
    X: Any,
    spectrum: Spectrum,
    n_components: int,
    *,
    metric: Any,
    random_state: np.random.RandomState,
) -> NDArray[np.float64]:
    """Return the first map, of shape (n_samples, n_components).

    Parameters
    ----------
    init : "spectral", "pca", "random" or array of shape (n_samples, n_components)
        "spectral" takes the eigenvectors of the data's Laplacian that follow the first, which tells only the degrees.
        All but an array are scaled to a small spread, and points that coincide (duplicates, or the components of
        a graph in parts) are told apart by a little noise. An array is taken as it is.
    """
    n_samples = X.shape[0]
    if not isinstance(init, str):
        return _given(init, n_samples, n_components)
    noise = random_state.standard_normal((n_samples, n_components))
    if init == "random":
        return _SPREAD * noise
    directions = _principal(X, n_components, metric) if init == "pca" else spectrum.eigenvectors[:, 1:]
    Y = np.zeros((n_samples, n_components))
    width = min(n_components, directions.shape[1])
    Y[:, :width] = directions[:, :width]
    Y -= Y.mean(axis=0)
    # PCA keeps the proportions of its axes; eigenvectors have the same norm anyway.
    spread = Y.std(axis=0).max()
    return _SPREAD * ((Y / spread if spread > 0 else Y) + _JITTER * noise)


def _principal(X: Any, n_components: int, metric: Any) -> NDArray[np.float64]:
    if isinstance(metric, str) and metric in ("precomputed", "affinities"):
        raise ValueError(f"init='pca' needs features, but metric={metric!r}; use init='spectral'.")
    # Features may be as large as the number type allows: their squares must not overflow.
    X = X / (float(abs(X).max()) or 1.0)
    if abs(X.max(axis=0) - X.min(axis=0)).max() == 0:  # all rows are equal: there is no direction
        return np.zeros((X.shape[0], n_components))
    n_components = min(n_components, *X.shape)
    sparse = scipy.sparse.issparse(X)
    if sparse and n_components == min(X.shape):
        X, sparse = X.toarray(), False
    pca = PCA(n_components, svd_solver="arpack" if sparse else "auto", random_state=0)
    return np.asarray(pca.fit_transform(X), dtype=np.float64)


def _given(init: ArrayLike, n_samples: int, n_components: int) -> NDArray[np.float64]:
    try:
        Y = np.array(init, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"init is not an array of numbers ({error}); give one, or a word such as 'pca'.") from error
    if Y.shape != (n_samples, n_components):
        raise ValueError(
            f"init has shape {Y.shape}, but the map has shape {(n_samples, n_components)} "
            "(n_samples, n_components); give an array of that shape."
        )
    if not np.isfinite(Y).all():
        raise ValueError("init has values that are not finite; replace NaN and infinity in it.")
    largest = float(np.abs(Y).max())
    if largest >= MAX_COORDINATE:
        raise ValueError(
            f"init has values up to {largest:.2g}, too far away for a map; scale it to a spread of about 1."
        )
    return Y
