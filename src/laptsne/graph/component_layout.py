"""Spectral coordinates of a graph with several components, side by side."""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from laptsne._runtime.threads import Workers
from laptsne.graph.components import components
from laptsne.graph.spectrum import laplacian_spectrum

_GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))  # between successive components, which fills a disc evenly


def component_layout(P: Any, n_dims: int, workers: Workers) -> NDArray[np.float64] | None:
    """Return coordinates of shape (n_samples, n_dims), or None if the graph is connected.

    Of a graph with several components, the eigenvectors after the first tell components apart, and all points of one
    coincide. Here, each component has its own eigenvectors as coordinates, within a disc whose area is proportional to
    its size. The largest component is in the centre, the others around it on a spiral.

    Parameters
    ----------
    P : sparse matrix in CSR format or array, of shape (n_samples, n_samples)
        Symmetric weights.
    n_dims : int
    workers : Workers
    """
    graph = scipy.sparse.csr_matrix(P)
    component = components(graph.indptr, graph.indices, graph.data)
    sizes = np.bincount(component)
    if sizes.size == 1:
        return None
    order = np.argsort(-sizes, kind="stable")
    radii, centres = _discs(sizes[order] / component.size, n_dims)
    rank = np.argsort(order)
    Y = centres[rank[component]]
    for place in np.flatnonzero(sizes[order] > n_dims + 1):
        members = np.flatnonzero(component == order[place])
        vectors = laplacian_spectrum(graph[members][:, members], n_dims + 1, workers).eigenvectors[:, 1:]
        largest = np.abs(vectors).max(axis=0)
        Y[members] += radii[place] * vectors / np.where(largest > 0, largest, 1)
    return Y


def _discs(shares: NDArray[np.float64], n_dims: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return radii and centres of discs, or intervals in one dimension, with these areas, which decrease."""
    if n_dims == 1:  # on alternate sides of the first
        radii = shares / 2
        distances = 2 * (np.cumsum(radii) - radii) - radii[0] + radii
        distances[0] = 0
        return radii, (distances * (-1.0) ** np.arange(radii.size))[:, None]
    radii = np.sqrt(shares)
    distances = np.sqrt(np.cumsum(shares) - shares) + radii
    distances[0] = 0
    angles = _GOLDEN_ANGLE * np.arange(radii.size)
    centres = np.zeros((radii.size, n_dims))
    centres[:, :2] = distances[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return radii, centres
