"""Data that several benchmarks share."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent.parent))  # for reproduction/, which is not part of the wheel
from reproduction.dataset import load_reduced as reduced
from reproduction.datasets import load

__all__ = ["enlarged_mnist", "load", "mixture", "reduced"]


def enlarged_mnist(n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """MNIST reduced to 50 dimensions: n of its points, or copies with a little noise if n is larger than MNIST."""
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
    chosen = X[rows].astype(np.float32)
    if n > len(X):
        chosen += rng.normal(size=chosen.shape).astype(np.float32) * (0.1 * X.std(axis=0)).astype(np.float32)
    return chosen, y[rows]


def mixture(n: int, n_features: int = 50, n_groups: int = 100) -> tuple[NDArray[Any], NDArray[Any]]:
    """Gaussians whose standard deviation falls from axis to axis, like that of data reduced by PCA."""
    rng = np.random.default_rng(0)
    spread = 1 / np.sqrt(np.arange(1, n_features + 1))
    centres = rng.normal(scale=4, size=(n_groups, n_features)) * spread
    group = rng.integers(0, n_groups, n)
    X = rng.normal(scale=1.5, size=(n, n_features)).astype(np.float32)
    X *= spread.astype(np.float32)
    X += centres.astype(np.float32)[group]
    return X, group
