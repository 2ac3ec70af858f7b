"""The data that the methods are given: the paper's sets, in the order in which they are run."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from laptsne.metrics import Faithfulness
from reproduction import datasets

# From cheap to costly.
SETS = ("digits", "coil20", "waveform", "coil100", "har", "mnist", "fashion_mnist")
LARGE = ("mnist", "fashion_mnist")
_MAX_FEATURES = 64
COMPONENTS = 50
NEIGHBORS = 30  # of a point, that a map should keep


@dataclass(frozen=True)
class Data:
    """A data set, as it was loaded and as the methods are given it.

    The digest is that of the set as it was loaded: its reduction may differ in the last bit from one machine to the
    next, and is only made when a method or a score asks for it.
    """

    name: str
    loaded: NDArray[Any]
    y: NDArray[Any]

    @cached_property
    def X(self) -> NDArray[Any]:
        """The data, reduced where they have many features."""
        return reduce(self.loaded)

    @cached_property
    def faithfulness(self) -> Faithfulness:
        """Scores of maps by the neighbours in the data, which are found once."""
        return Faithfulness(self.X, n_neighbors=NEIGHBORS)

    @property
    def n_samples(self) -> int:
        """Number of points."""
        return len(self.loaded)

    @property
    def n_classes(self) -> int:
        """Number of different labels."""
        return int(np.unique(self.y).size)

    @cached_property
    def digest(self) -> str:
        """Digest of the data."""
        return digest(self.loaded)

    @cached_property
    def labels_digest(self) -> str:
        """Digest of the labels."""
        return digest(self.y)


def load(name: str) -> Data:
    """Load a set. FileNotFoundError or another OSError where it is not available."""
    return Data(name, *datasets.load(name))


def reduced(name: str, n_components: int = COMPONENTS) -> tuple[NDArray[Any], NDArray[Any]]:
    """Load a data set; reduce it by PCA where it has more than 64 features."""
    X, y = datasets.load(name)
    return reduce(X, n_components), y


def reduce(X: NDArray[Any], n_components: int = COMPONENTS) -> NDArray[Any]:
    """Reduce data by PCA where they have more than 64 features."""
    if X.shape[1] <= _MAX_FEATURES:
        return X
    reduced: NDArray[Any] = PCA(n_components, random_state=0).fit_transform(X.astype(np.float32))
    return reduced


def digest(array: NDArray[Any]) -> str:
    """Digest of the type, the shape and the values of an array."""
    array = np.ascontiguousarray(array)
    found = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
    found.update(array.data)
    return found.hexdigest()[:32]
