"""Data sets of the LaptSNE paper: read from a folder of yours, or downloaded once and kept."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from sklearn.datasets import load_digits

from laptsne._runtime.array_file import DAMAGE, load_npz, write_archive
from reproduction.datasets.cache import cache_folder
from reproduction.datasets.download import obtain
from reproduction.datasets.sources import SOURCES
from reproduction.datasets.waveform import waveform

__all__ = ["NAMES", "cache_folder", "load", "title"]

NAMES = ("digits", "waveform", *SOURCES)

_TITLES = {
    "digits": "Digits",
    "waveform": "Waveform",
    "coil20": "COIL20",
    "coil100": "COIL100",
    "har": "HAR",
    "mnist": "MNIST",
    "fashion_mnist": "Fashion-MNIST",
}
# Features of HAR computed again from the recordings, for where the published file is out of reach.
_REBUILT = "har_reconstructed.npz"


def load(name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Load a data set by name.

    Parameters
    ----------
    name : {"digits", "waveform", "coil20", "coil100", "har", "mnist", "fashion_mnist"}
        "digits" comes with scikit-learn and "waveform" is generated. The others are files of arrays X and y, such
        as ``mnist.npz``. They are looked for in the folder that the environment variable LAPTSNE_DATA names and then
        in :func:`cache_folder`. Where there is none, the published archives are downloaded, compared with their
        SHA-256, and converted into such a file in the cache. For "har" the folder of LAPTSNE_DATA may instead hold
        ``har_reconstructed.npz``, features that were computed again from the recordings; :func:`title` then says so.

    Returns
    -------
    X : array of shape (n_samples, n_features)
        Images one a row: of 28 x 28 grey values in "mnist" and "fashion_mnist", whose training images come first,
        128 x 128 in "coil20", and 32 x 32, means over squares of the published ones, in "coil100".
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
    path = _stored(name)
    if path is None:
        path = _cached(name)
        X, y = obtain(name, path.parent)
        write_archive(path, {"data": name}, {"X": X, "y": y})
    try:
        arrays = load_npz(path, ["X", "y"])
        return arrays["X"], arrays["y"]
    except (MemoryError, *DAMAGE) as error:
        raise OSError(f"{path} is not a file of arrays X and y ({error}); delete it or put another there.") from error


def title(name: str) -> str:
    """Name of a data set as tables show it; it tells HAR from a reconstruction of it.

    Parameters
    ----------
    name : str
        One of ``NAMES``.

    Examples
    --------
    >>> from reproduction.datasets import title
    >>> title("fashion_mnist")
    'Fashion-MNIST'
    """
    _check(name)
    path = _stored(name)
    rebuilt = path is not None and path.name == _REBUILT
    return f"{_TITLES[name]} (rebuilt)" if rebuilt else _TITLES[name]


def _check(name: str) -> None:
    if name not in NAMES:
        raise ValueError(f"name must be one of {', '.join(NAMES)}; got {name!r}.")


def _stored(name: str) -> Path | None:
    """The file that load would read, if there is one already."""
    own = os.environ.get("LAPTSNE_DATA")
    names = [f"{name}.npz", *([_REBUILT] if name == "har" else [])]
    for path in (Path(own, file) for file in names if own):
        if path.is_file():
            return path
    return _cached(name) if _cached(name).is_file() else None


def _cached(name: str) -> Path:
    return cache_folder() / f"{name}.npz"
