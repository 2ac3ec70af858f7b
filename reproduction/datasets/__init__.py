"""The data sets of the LaptSNE paper: read from a folder of yours, or downloaded once."""

from __future__ import annotations

import os
from pathlib import Path

from sklearn.datasets import load_digits

from reproduction.datasets.archives import ARCHIVES, cache_folder, read_archives
from reproduction.datasets.readers import Arrays, read_npz
from reproduction.datasets.waveform import waveform

__all__ = ["NAMES", "cache_folder", "load", "title"]

_TITLES = {
    "digits": "Digits",
    "waveform": "Waveform",
    "coil20": "COIL20",
    "coil100": "COIL100",
    "har": "HAR",
    "mnist": "MNIST",
    "fashion_mnist": "Fashion-MNIST",
}
NAMES = ("digits", "waveform", *ARCHIVES)
# Features of HAR recomputed from the recordings, for use where the published file cannot be had.
_REBUILT = "har_reconstructed.npz"


def load(name: str) -> Arrays:
    """Load a data set by name.

    Parameters
    ----------
    name : {"digits", "waveform", "coil20", "coil100", "har", "mnist", "fashion_mnist"}
        "digits" comes with scikit-learn and "waveform" is generated. The others are read from an NPZ file with arrays
        X and y, such as ``mnist.npz``, in the folder given by the environment variable LAPTSNE_DATA; if there is none,
        from the published archives, which are downloaded once into :func:`cache_folder` and checked against their
        SHA-256. For "har" that folder may instead hold ``har_reconstructed.npz``; :func:`title` then says so.

    Returns
    -------
    X : array of shape (n_samples, n_features)
        One image per row in the image data: 28 x 28 grey values in "mnist" and "fashion_mnist" (training images
        first), 128 x 128 in "coil20", and 32 x 32 in "coil100", averaged over blocks of 4 x 4 published pixels.
    y : array of shape (n_samples,)
        Labels.

    Examples
    --------
    >>> from reproduction.datasets import load
    >>> X, y = load("digits")
    >>> X.shape
    (1797, 64)
    """
    _check(name)
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X, y
    if name == "waveform":
        return waveform()
    path = _local_file(name)
    return read_archives(name) if path is None else read_npz(path)


def title(name: str) -> str:
    """Return the name of a data set as tables show it; a reconstruction of HAR is marked as such.

    Examples
    --------
    >>> from reproduction.datasets import title
    >>> title("fashion_mnist")
    'Fashion-MNIST'
    """
    _check(name)
    path = _local_file(name)
    return f"{_TITLES[name]} (rebuilt)" if path is not None and path.name == _REBUILT else _TITLES[name]


def _check(name: str) -> None:
    if name not in NAMES:
        raise ValueError(f"name must be one of {', '.join(NAMES)}; got {name!r}.")


def _local_file(name: str) -> Path | None:
    """Return the file of a data set in the folder LAPTSNE_DATA, if there is one."""
    folder = os.environ.get("LAPTSNE_DATA")
    names = (f"{name}.npz", *([_REBUILT] if name == "har" else []))
    paths = (Path(folder, file) for file in names if folder)
    return next((path for path in paths if path.is_file()), None)
