"""The data as the methods receive them: one of the paper's sets, reduced by PCA if it has many features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from laptsne.metrics import Faithfulness
from reproduction import datasets

# In order of cost.
SETS = ("digits", "coil20", "waveform", "coil100", "har", "mnist", "fashion_mnist")
LARGE = ("mnist", "fashion_mnist")
_MAX_FEATURES = 64
N_COMPONENTS = 50
N_NEIGHBORS = 30  # at which faithfulness is measured


@dataclass(frozen=True)
class Dataset:
    """A data set, as loaded and as the methods receive it.

    ``digest`` identifies the data as loaded: the reduction may differ in the last bit between machines, and is only
    computed once a method or a score needs it.
    """

    name: str
    loaded: NDArray[Any]
    y: NDArray[Any]

    @classmethod
    def load(cls, name: str) -> Dataset:
        """Load a set; raise FileNotFoundError or another OSError if it is not available."""
        return cls(name, *datasets.load(name))

    def at(self, rows: NDArray[Any]) -> Dataset:
        """Return some rows as a data set of their own."""
        return Dataset(self.name, self.loaded[rows], self.y[rows])

    @cached_property
    def X(self) -> NDArray[Any]:
        """The data, reduced by PCA if they have many features."""
        return reduced(self.loaded)

    @cached_property
    def faithfulness(self) -> Faithfulness:
        """Measures of faithfulness, with the neighbours in the data computed once for all embeddings."""
        return Faithfulness(self.X, n_neighbors=N_NEIGHBORS)

    @cached_property
    def n_classes(self) -> int:
        """Number of distinct labels."""
        return int(np.unique(self.y).size)

    @cached_property
    def digest(self) -> str:
        """Digest of the data."""
        return str(joblib.hash(self.loaded))

    @cached_property
    def labels_digest(self) -> str:
        """Digest of the labels."""
        return str(joblib.hash(self.y))


def load_reduced(name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Load X and y, with X reduced to 50 dimensions by PCA if it has more than 64 features."""
    X, y = datasets.load(name)
    return reduced(X), y


def reduced(X: NDArray[Any]) -> NDArray[Any]:
    """Reduce data to 50 dimensions by PCA if they have more than 64 features."""
    if X.shape[1] <= _MAX_FEATURES:
        return X
    scores: NDArray[Any] = PCA(N_COMPONENTS, random_state=0).fit_transform(X.astype(np.float32))
    return scores
