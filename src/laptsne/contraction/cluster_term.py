"""The contraction term of the clusters of the data, on a mesh: an eigenproblem with one row per cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from laptsne._runtime.typing import Array
from laptsne.contraction.mesh_term import (
    EMPTY,
    MIN_DEGREE,
    SPACING_PER_WIDTH,
    full_potential,
    rows_of,
)
from laptsne.contraction.term import Contraction
from laptsne.fields import Fields
from laptsne.fields.frame import MAX_NODES, Frame
from laptsne.fields.potential import Potential
from laptsne.graph.spectrum import Eigenpairs

_MAX_NUMBERS = 4 * MAX_NODES  # on all nodes, over all clusters
_TINY = 1e-12
_ABOVE = 4.0  # larger than all eigenvalues
_RIDGE = 1e-5  # added to both sides of the eigenproblem, relative to the norms of the functions


class ClusterContraction(Contraction):
    r"""The contraction term among functions that are constant on each cluster of the data.

    All points are spread once on a mesh, each on the grid of its cluster. With :math:`n_a` the density of cluster a,
    n the total density and :math:`f_a = n_a / n` the share of the cluster at each node, the functions are
    :math:`u = \sum_a c_a f_a`: a stray point counts as one of the cluster around it. With the similarities W of the
    nodes and the degrees :math:`d = W n - 1`, the eigenvalues are those of a problem with one row per cluster,

    .. math:: S c_k = (1 - \sigma_k) D c_k, \quad S_{ab} = n_a^T (W n_b - f_b), \quad D_{ab} = n_a^T d f_b.

    The gradient at a point is that of the potential of :class:`MeshContraction`, for functions other than eigenvectors:

    .. math:: \psi = W (n g) - \sum_k s_k u_k [2 W (n u_k) - u_k - (1 - \sigma_k) d u_k],
              \quad g = \sum_k s_k (1 - \sigma_k) u_k^2, \quad s_k = \phi'(\sigma_k).

    A refresh takes as many convolutions as there are clusters, on few nodes. Between refreshes points keep their
    gradients.
    """

    _tol, _passes = 0.0, 1  # not used: the eigenproblem is solved directly
    max_age = 3  # with 1, maps are the same within the spread of seeds, and the term costs three times as much

    _gradient: NDArray[np.float64] | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        assert self.labels is not None
        # Points are spread cluster by cluster.
        self._order = np.argsort(self.labels, kind="stable")
        self._sizes = np.bincount(self.labels, minlength=self.n_clusters)

    def gradient(self, fields: Fields) -> NDArray[np.float64]:
        """Return the gradient at the last refresh."""
        if self._gradient is None:
            self._gradient = self._frame.gradient(self._y, self._potential(self._share))
        return self._gradient

    @property
    def eigenvectors(self) -> NDArray[np.float64]:
        """Ritz vectors of the K smallest eigenvalues at the last refresh, shape (n_samples, n_clusters)."""
        shapes = np.vstack([np.ones(self.n_clusters), self._coefficients]) @ self._share
        grids = np.vstack([self._degrees, shapes]).astype(np.float32).reshape(-1, *self._frame.cells[::-1])
        at_points = self._frame.interpolate(self._y, grids)
        vectors = np.sqrt(np.maximum(at_points[:, :1], MIN_DEGREE)) * at_points[:, 1:]
        return np.asarray(vectors / np.linalg.norm(vectors, axis=0))

    @property
    def residual(self) -> float:
        """Largest residual norm of the Ritz vectors at the last refresh."""
        shapes = self._coefficients @ self._share
        image = self._coefficients @ self._images - shapes
        rest = image - self._refreshed.values[:, None] * self._degrees * shapes
        return float(np.sqrt((rest**2 / self._degrees @ self._density).max(initial=0.0)))

    @property
    def points(self) -> Array:
        """Embedding of the last refresh, of shape (n_components, n_samples)."""
        return np.asarray(self._y)

    def potential(self, strength: float, exaggeration: float = 1.0) -> Potential:
        """Return the potential of a new point; see :meth:`MeshContraction.potential`."""
        assert self._fields is not None
        return full_potential(self._fields, self._frame, self._potential_of_new(), strength, exaggeration)

    def potential_at(self, y: Array) -> Array:
        """Return the contraction term of new points at positions of shape (n_components, n_points)."""
        return np.asarray(self._frame.interpolate(y, self._potential_of_new()[None])[:, 0])

    def _potential_of_new(self) -> Array:
        # Beyond the points, the shares are those in the fields.
        near = np.maximum(self._images, _TINY)
        return self._potential(np.where(self._density > EMPTY, self._share, near / near.sum(axis=0)))

    def _solve(self, fields: Fields, tol: float, max_passes: int) -> Eigenpairs:
        assert self.kernel is not None
        self._y = rows_of(fields.Y)
        most = min(MAX_NODES, _MAX_NUMBERS // self.n_clusters)
        spacing = SPACING_PER_WIDTH * self.kernel.width
        self._frame = Frame.around(self._y, spacing, fields.workers, self.kernel, most)
        grids = self._frame.spread_clusters(self._y.take(self._order, axis=1), self._sizes)
        fields_of_clusters = self._frame.convolved(grids).reshape(self.n_clusters, -1)
        densities = grids.reshape(self.n_clusters, -1)
        self._density = densities.sum(axis=0)
        self._share = densities / np.maximum(self._density, np.float32(EMPTY))
        degrees = fields_of_clusters.sum(axis=0) - 1
        n = self._y.shape[1]
        self._regularize(float(self._density @ degrees) / n)
        self._degrees = np.maximum(degrees + np.float32(self.regularization), np.float32(MIN_DEGREE))
        # W n_a, with what the regularisation adds to all similarities.
        self._images = fields_of_clusters + (self.regularization / n * self._sizes).astype(np.float32)[:, None]
        similarity = densities @ (self._images - self._share).T
        metric = (densities * self._degrees) @ self._share.T
        values, self._coefficients = _ritz(similarity.astype(np.float64), metric.astype(np.float64))
        return Eigenpairs(values, self._coefficients, 0.0)

    def _prepare(self, fields: Fields) -> None:
        self._gradient = None

    def _potential(self, share: Array) -> Array:
        """Return the derivative of R with respect to the density of points with these shares of clusters."""
        mu, c = self._refreshed.values, self._coefficients
        weighted = self.penalty.slope((1 - mu).clip(0, 2))[:, None] * c
        own = (weighted.T @ c).astype(np.float32) @ (2 * self._images - share)
        curved = ((mu[:, None] * weighted).T @ c).astype(np.float32) @ share
        g = np.einsum("kn,kn->n", share, curved)
        shape = self._frame.cells[::-1]
        charges = (self._density * g).reshape(1, *shape)
        own -= self._degrees * curved
        potential = self._frame.convolved(charges)[0].ravel() - np.einsum("kn,kn->n", share, own)
        return np.asarray(potential, dtype=np.float32).reshape(shape)


def _ritz(similarity: NDArray[np.float64], metric: NDArray[np.float64]) -> tuple[NDArray[np.float64], Array]:
    """Return the eigenvalues of S c = mu D c without the first, largest first, and their vectors, one per row.

    The first eigenvector is constant. The eigenvalue of a cluster that cannot be told apart from others is 0.
    """
    scale = 1 / np.sqrt(np.maximum(np.diag(metric), _TINY))
    scaled = (metric + metric.T) / 2 * np.outer(scale, scale)
    laplacian = scaled - (similarity + similarity.T) / 2 * np.outer(scale, scale)
    constant = 1 / scale
    # On the diagonal, differences of large numbers would drown the small eigenvalues.
    np.fill_diagonal(laplacian, 0)
    np.fill_diagonal(laplacian, -(laplacian @ constant) / constant)
    first = scaled @ constant
    laplacian += _ABOVE / max(float(constant @ first), _TINY) * np.outer(first, first)
    share = _RIDGE * np.eye(len(scaled))
    sigma, vectors = scipy.linalg.eigh(laplacian + share, scaled + share, check_finite=False)
    return 1 - sigma[:-1], (vectors * scale[:, None]).T[:-1]
