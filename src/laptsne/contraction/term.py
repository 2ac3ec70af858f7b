"""The contraction term: penalised smallest eigenvalues of the normalised Laplacian of the embedding's graph."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.threads import Workers
from laptsne.contraction.penalty import Penalty
from laptsne.contraction.similarity import Similarity
from laptsne.fields import Fields
from laptsne.graph.spectrum import Eigenpairs
from laptsne.kernels import Gaussian

# Vectors in the block beyond the wanted ones, which speed up the convergence of the last of these.
_GUARD = 2


def indicators(labels: NDArray[Any], n_clusters: int) -> NDArray[np.float32]:
    """Return the indicators of all clusters but the first, shape (n_samples, n_clusters - 1)."""
    return np.asarray(labels[:, None] == np.arange(1, n_clusters), dtype=np.float32)


class Contraction(ABC):
    r"""The term :math:`R(Y) = \sum_{k=1}^{K} \phi(\sigma_k(L_Y))` of an embedding.

    :math:`L_Y = I - D^{-1/2} W D^{-1/2}` is the normalised Laplacian of the similarities :math:`w_{ij}` of the
    embedding, with eigenvalues :math:`\sigma_1 = 0 \le \sigma_2 \le \dots`. :meth:`refresh` computes the eigenpairs of
    an embedding; until the next refresh :meth:`gradient` follows the embedding with these.

    Parameters
    ----------
    n_clusters : int
        K, the number of eigenvalues.
    penalty : Penalty
        :math:`\phi`.
    start : array of shape (n_samples, n_vectors)
        First guess of the eigenvectors, for instance those of the data's graph; not needed with ``labels``.
    similarity : Similarity, optional
        How the similarities are computed; by default they are those of the KL divergence.
    labels : integer array of shape (n_samples,), optional
        Cluster of the data, from 0 to ``n_clusters - 1``, of every point. With these, eigenvectors are sought among the
        functions that are constant on each cluster: the eigenvalues are Ritz values, upper bounds of those of the
        embedding's graph, and lowering them separates these clusters and divides none of them.

    Attributes
    ----------
    max_age : float
        Number of iterations after which a refresh is due at the latest.
    kernel : Gaussian or None
        Kernel of the similarities at the last refresh; None for that of the KL divergence.
    regularization : float
        Total similarity added to the degree of each point at the last refresh.
    fixed : bool
        Whether kernel and regularisation stay as they are, rather than following the embedding at each refresh.
    """

    max_age = float("inf")

    def __init__(
        self,
        n_clusters: int,
        penalty: Penalty,
        start: NDArray[np.float64],
        similarity: Similarity | None = None,
        labels: NDArray[np.integer[Any]] | None = None,
    ) -> None:
        self.n_clusters, self.penalty, self.similarity, self.labels = n_clusters, penalty, similarity, labels
        self.kernel: Gaussian | None = None
        self.regularization, self.fixed = 0.0, similarity is None
        self.start = start[:, : n_clusters - 1 + _GUARD]
        self._fields: Fields | None = None  # of the embedding at the last refresh
        self._pairs: Eigenpairs | None = None

    def refresh(self, fields: Fields, *, tol: float | None = None, max_passes: int | None = None) -> None:
        """Compute the eigenpairs of an embedding, starting from those of the last refresh.

        Few passes suffice to follow an embedding that moves slowly; the first refresh may take ten.
        """
        if not self.fixed and self.similarity is not None:
            self.kernel = self.similarity.kernel(fields.Y, self.n_clusters)
        passes = max_passes or (10 if self._pairs is None else self._passes)
        self._pairs = self._solve(fields, tol or self._tol, passes if self.labels is None else 1)
        self._fields = fields
        self._prepare(fields)

    _tol: float
    _passes: int

    @classmethod
    def like(cls, other: Contraction, start: NDArray[Any] | None = None) -> Self:
        """Return a term of this kind with the similarities of another one.

        It has the clusters and the first guess of the other term, or no clusters and the first guess ``start``.
        """
        if start is None:
            term = cls(other.n_clusters, other.penalty, other.start, other.similarity, other.labels)
        else:
            term = cls(other.n_clusters, other.penalty, start, other.similarity)
        term.kernel, term.regularization, term.fixed = other.kernel, other.regularization, True
        return term

    @property
    @abstractmethod
    def eigenvectors(self) -> NDArray[np.float64]:
        """Eigenvectors of the K smallest eigenvalues at the last refresh, shape (n_samples, n_clusters)."""

    @abstractmethod
    def _solve(self, fields: Fields, tol: float, max_passes: int) -> Eigenpairs:
        """Compute the eigenpairs, without the first."""

    @abstractmethod
    def _prepare(self, fields: Fields) -> None:
        """Compute from the eigenpairs what the gradient needs."""

    @abstractmethod
    def gradient(self, fields: Fields) -> NDArray[np.float64]:
        """Gradient with respect to the embedding, with the eigenpairs of the last refresh."""

    def state(self) -> dict[str, Any]:
        """Numbers and arrays from which the next refresh can start."""
        state: dict[str, Any] = {"start": self.start, "regularization": self.regularization, "fixed": self.fixed}
        if self.kernel is not None:
            state["width"] = self.kernel.width
        if self._pairs is not None:
            state |= {"values": self._pairs.values, "vectors": self._pairs.vectors, "residual": self._pairs.residual}
        return state

    def restore(self, state: dict[str, Any], workers: Workers) -> None:
        """Restore a state; there is no gradient before the next refresh."""
        self.start = state["start"]
        self.regularization, self.fixed = state["regularization"], state["fixed"]
        self.kernel = Gaussian(state["width"]) if "width" in state else None
        if "values" in state:
            self._pairs = Eigenpairs(state["values"], state["vectors"], state["residual"])

    def observed_at(self, fields: Fields) -> Self:
        """The term refreshed at another embedding; this object is unchanged."""
        if fields is self._fields:
            return self
        observer = copy.copy(self)
        observer.refresh(fields)
        return observer

    def _regularize(self, mean_degree: float) -> None:
        """Set the regularisation by the mean degree of the points, unless it is fixed."""
        if not self.fixed and self.similarity is not None:
            self.regularization = self.similarity.regularization * mean_degree

    def moved(self, fields: Fields) -> float:
        """RMS displacement of the points since the last refresh; infinite before the first."""
        if self._fields is None:
            return float("inf")
        return float(np.linalg.norm(fields.Y - self._fields.Y) / np.sqrt(fields.n_samples))

    @property
    def eigenvalues(self) -> NDArray[np.float64]:
        """The K smallest eigenvalues of the Laplacian at the last refresh."""
        mu = self._refreshed.values[: self.n_clusters - 1]
        sigma = np.ones(self.n_clusters)  # also for those that a graph of fewer points lacks
        sigma[0], sigma[1 : mu.size + 1] = 0, 1 - mu
        return sigma.clip(0, 2)

    @property
    def residual(self) -> float:
        """Largest residual norm of the eigenpairs of the last refresh: a bound on the error of each eigenvalue."""
        return self._refreshed.residual

    @property
    def _refreshed(self) -> Eigenpairs:
        if self._pairs is None:
            raise RuntimeError("Contraction: call refresh(fields) before reading values or gradients.")
        return self._pairs
