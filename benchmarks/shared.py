"""What several benchmarks share: command lines, data and clocks."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

THREADS = 2
_ROOT = Path(__file__).parent.parent
# For reproduction/, which is not part of the wheel, and the helpers of the tests.
sys.path[1:1] = [folder for folder in (str(_ROOT), str(_ROOT / "tests")) if folder not in sys.path]


def command_line(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser whose help is the docstring of a benchmark."""
    return argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)


def strength(text: str) -> float | str:
    """Return the contraction that an option gives: "auto" or a number."""
    return text if text == "auto" else float(text)


def load(name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return X and y of one of the paper's sets."""
    from reproduction import datasets

    return datasets.load(name)


def reduced(name: str, n_components: int = 50) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return X and y of one of the paper's sets; X is reduced by PCA if it has more than 64 features."""
    from sklearn.decomposition import PCA

    X, y = load(name)
    if X.shape[1] <= 64:
        return X, y
    return PCA(n_components, random_state=0).fit_transform(X.astype(np.float32)), y


def enlarged_mnist(n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return MNIST reduced to 50 dimensions: n of its points, or n copies with a little noise if MNIST is smaller."""
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
    """Return Gaussians whose standard deviation falls from axis to axis, like that of data reduced by PCA."""
    rng = np.random.default_rng(0)
    spread = 1 / np.sqrt(np.arange(1, n_features + 1))
    centres = rng.normal(scale=4, size=(n_groups, n_features)) * spread
    group = rng.integers(0, n_groups, n)
    X = rng.normal(scale=1.5, size=(n, n_features)).astype(np.float32)
    X *= spread.astype(np.float32)
    X += centres.astype(np.float32)[group]
    return X, group


def mixture_file(path: Path, n: int, n_features: int = 50, n_groups: int = 100, n_rows: int = 1 << 18) -> None:
    """Write n rows of such a mixture to a .npy file, block by block."""
    rng = np.random.default_rng(0)
    spread = (1 / np.sqrt(np.arange(1, n_features + 1))).astype(np.float32)
    centres = rng.normal(scale=4, size=(n_groups, n_features)).astype(np.float32) * spread
    X = np.lib.format.open_memmap(path, "w+", np.float32, (n, n_features))
    for start in range(0, n, n_rows):
        size = min(n_rows, n - start)
        noise = rng.standard_normal((size, n_features), np.float32) * np.float32(1.5) * spread
        X[start : start + size] = centres[rng.integers(0, n_groups, size)] + noise
    X.flush()


def points(data: str, n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return n points and their classes, of "mnist" or "mixture"."""
    return enlarged_mnist(n) if data == "mnist" else mixture(n)


def seconds(function: Callable[[], Any]) -> float:
    """Return the time of one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def median_seconds(function: Callable[[], Any], repeats: int) -> float:
    """Return the median time of a call; there is no warm-up."""
    return statistics.median(seconds(function) for _ in range(repeats))
