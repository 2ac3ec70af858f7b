"""The cut between clusters of an embedding: how much of their similarity is with other clusters."""

import numpy as np
import scipy.linalg

from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.contraction.penalty import Penalty
from laptsne.fields.frame import Frame
from laptsne.kernels import Gaussian

_SPACING_PER_WIDTH = 0.35  # of the mesh; as for the contraction term
_MAX_NODES = 1 << 24  # of the meshes of all clusters together
_MARGIN = 0.25  # of the span of the embedding on each side, within which points may move
_REGULARIZATION = 0.03  # similarity added to the volume per point, as a share of the mean degree


class ClusterCut:
    r"""Penalised eigenvalues of the Laplacian of the graph of the clusters, whose edges are their cuts.

    With the cut :math:`C_{ab} = \sum_{i \in a, j \in b} w_{ij}` of two clusters and the volumes :math:`v_a` that they
    have in the first embedding, the :math:`\sigma_k` are the eigenvalues of :math:`(\mathrm{diag}(C 1) - C) x = \sigma
    \,\mathrm{diag}(v)\, x`, which are Ritz values of the normalised Laplacian of the points. Volumes are constant, so
    that lowering :math:`\sum_k \phi(\sigma_k)` separates clusters and does not shrink them.

    Similarities are computed on a mesh, one density per cluster. Value and gradient belong to each other to rounding.

    Parameters
    ----------
    y : array of shape (n_components, n_samples)
        First embedding.
    labels : array of shape (n_samples,)
        Cluster of every point; -1 for points that take no part.
    width : float
        Width of the Gaussian kernel of the similarities.
    penalty : Penalty
        :math:`\phi`.
    workers : Workers
        Threads.
    """

    def __init__(self, y: Array, labels: Array, width: float, penalty: Penalty, workers: Workers) -> None:
        self.members = [np.flatnonzero(labels == c) for c in range(int(labels.max()) + 1)]
        self.penalty = penalty
        low, high = y.min(axis=1), y.max(axis=1)
        margin = _MARGIN * (high - low).max()
        room = np.column_stack([y, low - margin, high + margin])
        most = _MAX_NODES // len(self.members)
        self._frame = Frame.around(room, _SPACING_PER_WIDTH * width, workers, Gaussian(width), most)
        sizes = np.array([rows.size for rows in self.members])
        volumes = self._fields(y)[1].sum(axis=1)
        self._volumes = volumes + _REGULARIZATION * volumes.sum() / sizes.sum() * sizes

    def evaluate(self, y: Array) -> tuple[float, Array]:
        """Return the value at an embedding, and the gradient, of shape (n_components, n_samples)."""
        fields, similarity = self._fields(y)
        cut = np.maximum(similarity, 0)
        np.fill_diagonal(cut, 0)
        laplacian = np.diag(cut.sum(axis=1)) - cut
        sigma, vectors = scipy.linalg.eigh(laplacian, np.diag(self._volumes))
        sigma, vectors = np.maximum(sigma[1:], 0), vectors[:, 1:]
        # The derivative by the cut of two clusters is that of the Rayleigh quotients: (x_a - x_b)^2 / 2 per direction.
        products = (vectors * self.penalty.slope(sigma)) @ vectors.T
        own = np.diag(products)
        by_cut = (own[:, None] + own) / 2 - products
        potentials = np.tensordot(2 * by_cut.astype(np.float32), fields, 1)
        gradient = np.zeros_like(y)
        for rows, potential in zip(self.members, potentials, strict=True):
            gradient[:, rows] = self._frame.gradient(y[:, rows], potential).T
        return float(self.penalty.value(sigma).sum()), gradient

    def shares(self, y: Array) -> Array:
        """Return the share of each cluster in the density at every point, shape (n_clusters, n_samples)."""
        density = np.maximum(self._frame.interpolate(y, self._fields(y)[0]).T, 0)
        return np.asarray(density / np.maximum(density.sum(axis=0), np.finfo(np.float32).tiny))

    def _fields(self, y: Array) -> tuple[Array, Array]:
        """Return the field of each cluster on the mesh, and the similarities of clusters, without the points' own."""
        ones = [np.ones((1, rows.size), np.float32) for rows in self.members]
        parts = [self._frame.spread(y[:, rows], one) for rows, one in zip(self.members, ones, strict=True)]
        densities = np.concatenate(parts)
        fields = self._frame.convolved(densities)
        similarity = densities.reshape(len(parts), -1).astype(np.float64) @ fields.reshape(len(parts), -1).T
        similarity = (similarity + similarity.T) / 2
        similarity[np.diag_indices(len(parts))] -= [rows.size for rows in self.members]
        return fields, similarity
