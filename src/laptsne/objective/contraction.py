"""The contraction term: penalised smallest eigenvalues of the normalised Laplacian of the map's graph."""

from __future__ import annotations

import copy

import numpy as np
from numpy.typing import NDArray

from laptsne.eigensolver import Eigenpairs, largest_eigenpairs
from laptsne.fields import Fields
from laptsne.objective.penalty import Penalty

# Vectors that the block carries beyond the wanted ones: they speed up the convergence of the last wanted.
_GUARD = 2


class Contraction:
    r"""The term :math:`R(Y) = \sum_{k=1}^{K} \phi(\sigma_k(L_Y))` of a map, by majorisation.

    :math:`L_Y = I - D^{-1/2} K D^{-1/2}` is the normalised Laplacian of the similarities of the map and
    :math:`\sigma_1 = 0 \le \sigma_2 \le \dots` are its eigenvalues. :meth:`refresh` finds them and their vectors
    :math:`v_k` for the map at hand. From then on, until the next refresh, :meth:`value` and :meth:`gradient` are
    those of the majorant

    .. math:: \sum_k \phi(\sigma_k) + c_k (v_k^T L_Y v_k - \sigma_k), \qquad c_k = \phi'(\sigma_k),

    which is never below R and touches it where it was refreshed, with the same gradient there.

    Parameters
    ----------
    n_clusters : int
        K, the number of eigenvalues.
    penalty : Penalty
        :math:`\phi`.
    start : array of shape (n_samples, n_vectors)
        First guess of the eigenvectors, for instance those of the data.
    """

    def __init__(self, n_clusters: int, penalty: Penalty, start: NDArray[np.float64]) -> None:
        self.n_clusters = n_clusters
        self.penalty = penalty
        self._start = start[:, : n_clusters - 1 + _GUARD]
        self._fields: Fields | None = None  # the map at which the eigenvectors were found
        self._pairs: Eigenpairs | None = None

    def refresh(self, fields: Fields, *, tol: float = 1e-3, max_passes: int = 20) -> None:
        """Find the eigenpairs of the map, starting from those of the last refresh."""
        root = np.sqrt(fields.degrees)
        self._pairs = largest_eigenpairs(
            lambda block: _normalised_similarity(fields, block),
            self._start,
            self.n_clusters - 1,
            known=root / np.linalg.norm(root),
            tol=tol,
            max_passes=max_passes,
        )
        self._start = self._pairs.vectors
        self._fields = fields

    def observed_at(self, fields: Fields) -> Contraction:
        """The term refreshed at another map, itself unchanged."""
        if fields is self._fields:
            return self
        observer = copy.copy(self)
        observer.refresh(fields)
        return observer

    @property
    def residual(self) -> float:
        """Bound on the error of the eigenvalues at the last refresh."""
        return self._refreshed.residual

    @property
    def eigenvalues(self) -> NDArray[np.float64]:
        """The K smallest eigenvalues of the Laplacian at the last refresh."""
        sigma = np.zeros(self.n_clusters)
        sigma[1:] = 1 - self._refreshed.values[: self.n_clusters - 1]
        return sigma.clip(0, 2)

    @property
    def eigenvectors(self) -> NDArray[np.float64]:
        """Their vectors, shape (n_samples, n_clusters)."""
        assert self._fields is not None
        root = np.sqrt(self._fields.degrees)[:, None]
        return np.hstack([root / np.linalg.norm(root), self._vectors])

    def value(self, fields: Fields) -> float:
        """Value of the majorant."""
        sigma = self.eigenvalues
        moved = 1 - np.sum(self._vectors * self._images(fields), axis=0)
        change = self.penalty.slope(sigma[1:]) @ (moved - sigma[1:])
        return float(self.penalty.value(sigma).sum() + change)

    def gradient(self, fields: Fields) -> NDArray[np.float64]:
        r"""Gradient of the majorant with respect to the map.

        With :math:`z_k = \sqrt{c_k} D^{-1/2} v_k` and :math:`g_i = d_i^{-1} \sum_k c_k v_{ik} (M v_k)_i`, where
        :math:`M = I - L_Y`, it is
        :math:`g_i \nabla\varphi_1(y_i) + \nabla\varphi_g(y_i) - 2 \sum_k z_{ik} \nabla\varphi_{z_k}(y_i)`.
        The first eigenvector drops out: its eigenvalue is 0 for every map.
        """
        weights = self.penalty.slope(self.eigenvalues[1:])
        inverse_root = _inverse_root(fields.degrees)
        g = inverse_root**2 * ((self._vectors * self._images(fields)) @ weights)
        z = inverse_root[:, None] * self._vectors * np.sqrt(weights)
        charges = np.column_stack([g, z])
        factors = np.column_stack([np.ones_like(g), -2 * z])
        return g[:, None] * fields.slope + fields.weighted_gradient(factors, charges)

    @property
    def _refreshed(self) -> Eigenpairs:
        if self._pairs is None:
            raise RuntimeError("Contraction: call refresh(fields) before asking for values or gradients.")
        return self._pairs

    @property
    def _vectors(self) -> NDArray[np.float64]:
        return self._refreshed.vectors[:, : self.n_clusters - 1]

    def _images(self, fields: Fields) -> NDArray[np.float64]:
        if fields is self._fields:
            return self._refreshed.images[:, : self.n_clusters - 1]
        return _normalised_similarity(fields, self._vectors)


def _inverse_root(degrees: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return d^(-1/2), and 0 for points that see no other point."""
    return np.divide(1, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)


def _normalised_similarity(fields: Fields, block: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return D^(-1/2) K D^(-1/2) times the block."""
    inverse_root = _inverse_root(fields.degrees)[:, None]
    return inverse_root * fields.values(inverse_root * block)
