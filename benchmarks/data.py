"""What several benchmarks share: data reduced as the paper does not say but everybody does."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduction.data import reduced


def enlarged_mnist(n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """MNIST reduced to 50 dimensions: n of its points, or copies with a little noise where it has too few."""
    stored = Path(tempfile.gettempdir()) / "laptsne-benchmark-mnist.npz"
    if not stored.exists():
        X, y = reduced("mnist")
        np.savez(stored, X=X, y=y)
    with np.load(stored) as arrays:
        X, y = arrays["X"], arrays["y"]
    rng = np.random.default_rng(0)
    if n == len(X):
        return X, y
    rows = rng.choice(len(X), n, replace=n > len(X))
    found = X[rows].astype(np.float32)
    if n > len(X):
        found += rng.normal(size=found.shape).astype(np.float32) * (0.1 * X.std(axis=0)).astype(np.float32)
    return found, y[rows]


def mixture(n: int, n_features: int = 50, n_groups: int = 100) -> tuple[NDArray[Any], NDArray[Any]]:
    """Gaussians in 50 dimensions whose spread falls from axis to axis, as that of data reduced by PCA does."""
    rng = np.random.default_rng(0)
    spread = 1 / np.sqrt(np.arange(1, n_features + 1))
    centres = rng.normal(scale=4, size=(n_groups, n_features)) * spread
    group = rng.integers(0, n_groups, n)
    found = rng.normal(scale=1.5, size=(n, n_features)).astype(np.float32)
    found *= spread.astype(np.float32)
    found += centres.astype(np.float32)[group]
    return found, group
