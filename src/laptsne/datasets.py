"""Data sets of the LaptSNE paper."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

_FILES = {
    "coil20": "coil20.npz",
    "coil100": "coil100.npz",
    "har": "har_reconstructed.npz",
    "mnist": "mnist.npz",
    "fashion_mnist": "fashion_mnist.npz",
}
NAMES = ("digits", "waveform", *_FILES)


def load(name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Load a data set by name.

    Parameters
    ----------
    name : {"digits", "waveform", "coil20", "coil100", "har", "mnist", "fashion_mnist"}
        "digits" comes with scikit-learn and "waveform" is generated. The others are read from a file of
        arrays X and y in the folder that the environment variable LAPTSNE_DATA names. The file of "har" is a
        reconstruction of the UCI data, not the published file.

    Returns
    -------
    X : array of shape (n_samples, n_features)
    y : array of shape (n_samples,)
        Labels.

    Examples
    --------
    >>> from laptsne.datasets import load
    >>> X, y = load("digits")
    >>> X.shape
    (1797, 64)
    """
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X, y
    if name == "waveform":
        return _waveform()
    if name not in _FILES:
        raise ValueError(f"name must be one of {', '.join(NAMES)}; got {name!r}.")
    folder = os.environ.get("LAPTSNE_DATA")
    path = Path(folder or ".") / _FILES[name]
    if folder is None or not path.is_file():
        raise FileNotFoundError(
            f"{name} is not here: put {_FILES[name]}, with arrays X and y, into a folder and set the environment "
            f"variable LAPTSNE_DATA to it (now {folder!r})."
        )
    with np.load(path, allow_pickle=False) as file:
        return file["X"], file["y"]


def _waveform(n_samples: int = 5000, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """Breiman's waveforms: each class mixes two of three triangles by a random share, with unit noise."""
    rng = np.random.default_rng(seed)
    position = np.arange(1, 22)
    triangles = np.maximum(6 - np.abs(position - np.array([[7], [15], [11]])), 0)
    y = rng.integers(0, 3, n_samples)
    share = rng.random((n_samples, 1))
    first, second = triangles[np.array([0, 0, 1])[y]], triangles[np.array([1, 2, 2])[y]]
    return share * first + (1 - share) * second + rng.standard_normal((n_samples, 21)), y
