"""A path of maps from plain t-SNE to strong contraction, each begun where its neighbour on the path ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ContractionPath:
    """Maps of the same points at rising contraction.

    Attributes
    ----------
    contractions : array of shape (n_maps,)
        The strengths, from 0 upwards.
    embeddings : array of shape (n_maps, n_samples, n_components)
        The maps.
    kl_divergences : array of shape (n_maps,)
        KL divergence of every map.
    trustworthiness : array of shape (n_maps,)
        Trustworthiness of every map, by the neighbours in the data's graph where there are no features.
    neighbors_kept : array of shape (n_maps,)
        Share of each point's neighbours in the data that are its neighbours in the map.
    eigenvalues : array of shape (n_maps, n_clusters)
        Smallest eigenvalues of the Laplacian of every map.
    chosen : int
        Which of the maps is that of the model.
    """

    contractions: NDArray[np.float64]
    embeddings: NDArray[np.float32]
    kl_divergences: NDArray[np.float64]
    trustworthiness: NDArray[np.float64]
    neighbors_kept: NDArray[np.float64]
    eigenvalues: NDArray[np.float64]
    chosen: int


def contraction_path(model: Any, X: Any, *, n_maps: int = 7) -> ContractionPath:
    """Return the maps of a fitted model's data at rising contraction, the model's own among them."""
    raise NotImplementedError
