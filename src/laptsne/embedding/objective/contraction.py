"""The contraction term: penalised smallest eigenvalues of the normalised Laplacian of the embedding's graph."""

import copy
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.threads import Workers
from laptsne.embedding.fields import Fields
from laptsne.embedding.objective.penalty import Penalty
from laptsne.graph.eigensolver import Eigenpairs

# Vectors in the block beyond the wanted ones, which speed up the convergence of the last of these.
_GUARD = 2


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
        First guess of the eigenvectors, for instance those of the data's graph.
    """

    def __init__(self, n_clusters: int, penalty: Penalty, start: NDArray[np.float64]) -> None:
        self.n_clusters = n_clusters
        self.penalty = penalty
        self._start = start[:, : n_clusters - 1 + _GUARD]
        self._fields: Fields | None = None  # of the embedding at the last refresh
        self._pairs: Eigenpairs | None = None

    def refresh(self, fields: Fields, *, tol: float | None = None, max_passes: int | None = None) -> None:
        """Compute the eigenpairs of an embedding, starting from those of the last refresh.

        Few passes suffice to follow an embedding that moves slowly; the first refresh may take ten.
        """
        self._pairs = self._solve(fields, tol or self._tol, max_passes or (10 if self._pairs is None else self._passes))
        self._fields = fields
        self._prepare(fields)

    _tol: float
    _passes: int

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
        state: dict[str, Any] = {"start": self._start}
        if self._pairs is not None:
            state |= {"values": self._pairs.values, "vectors": self._pairs.vectors, "residual": self._pairs.residual}
        return state

    def restore(self, state: dict[str, Any], workers: Workers) -> None:
        """Restore a state; there is no gradient before the next refresh."""
        self._start = state["start"]
        if "values" in state:
            self._pairs = Eigenpairs(state["values"], state["vectors"], state["residual"])

    def observed_at(self, fields: Fields) -> Self:
        """The term refreshed at another embedding; this object is unchanged."""
        if fields is self._fields:
            return self
        observer = copy.copy(self)
        observer.refresh(fields)
        return observer

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
