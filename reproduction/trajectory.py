"""Eigenvalues of the maps on the way of a run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform

from laptsne.graph.spectrum import laplacian_spectrum
from reproduction.data import digest
from reproduction.runs import Laboratory, Record
from reproduction.store import Entry, code_digest


def map_eigenvalues(laboratory: Laboratory, record: Record, n_values: int) -> NDArray[np.float64]:
    """Smallest eigenvalues of the Student kernel's Laplacian of each map kept on the way, one line a map."""
    maps = record.arrays["kept"]
    key = {
        "kind": "eigenvalues",
        "maps": digest(maps),
        "n_values": n_values,
        "code": code_digest("laptsne.graph.spectrum"),
    }

    def make() -> Entry:
        laboratory.say(f"{record.run}: eigenvalues of its maps")
        return Entry({}, {"eigenvalues": np.stack([_eigenvalues(Y, n_values) for Y in maps])})

    return laboratory.store.get(key, make).arrays["eigenvalues"]


def _eigenvalues(Y: NDArray[Any], n_values: int) -> NDArray[np.float64]:
    similarity = squareform(1 / (1 + pdist(Y.astype(np.float64), "sqeuclidean")))
    return laplacian_spectrum(similarity, n_values).eigenvalues
