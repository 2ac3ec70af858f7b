"""The contraction term: penalised smallest eigenvalues of the normalised Laplacian of the map's graph."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.threads import Workers
from laptsne.embedding.fields import Fields
from laptsne.embedding.objective.penalty import Penalty
from laptsne.graph.eigensolver import Eigenpairs

# Vectors that the block carries beyond the wanted ones: they speed up the convergence of the last wanted.
_GUARD = 2
_AT_FULL_PULL = 10  # clusters


def pull(n_clusters: int) -> float:
    """Share of the full pull: less for more than ten clusters, so that all have the same together; none for one."""
    return min(1.0, _AT_FULL_PULL / n_clusters) if n_clusters > 1 else 0.0


class Contraction(ABC):
    r"""The term :math:`R(Y) = \sum_{k=1}^{K} \phi(\sigma_k(L_Y))` of a map.

    :math:`L_Y = I - D^{-1/2} K D^{-1/2}` is the normalised Laplacian of the similarities :math:`k_{ij}` of the map and
    :math:`\sigma_1 = 0 \le \sigma_2 \le \dots` are its eigenvalues. :meth:`refresh` finds them and their vectors
    for the map at hand; between refreshes :meth:`gradient` follows the map by what was found.

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

    def refresh(self, fields: Fields, *, tol: float | None = None, max_passes: int | None = None) -> None:
        """Find the eigenpairs of the map, starting from those of the last refresh.

        A few passes are enough to follow a map that moves a little between refreshes; the first refresh, from
        the eigenvectors of the data, may take ten.
        """
        self._pairs = self._solve(fields, tol or self._tol, max_passes or (10 if self._pairs is None else self._passes))
        self._fields = fields
        self._prepare(fields)

    _tol: float
    _passes: int

    @abstractmethod
    def _solve(self, fields: Fields, tol: float, max_passes: int) -> Eigenpairs:
        """Find the eigenpairs, without the first."""

    @abstractmethod
    def _prepare(self, fields: Fields) -> None:
        """Compute from the eigenpairs what the gradient needs."""

    @abstractmethod
    def gradient(self, fields: Fields) -> NDArray[np.float64]:
        """Gradient with respect to the map, by what was found at the last refresh."""

    def state(self) -> dict[str, Any]:
        """Numbers and arrays from which the next refresh can start as it would from this object."""
        state: dict[str, Any] = {"start": self._start}
        if self._pairs is not None:
            state |= {"values": self._pairs.values, "vectors": self._pairs.vectors, "residual": self._pairs.residual}
        return state

    def restore(self, state: dict[str, Any], workers: Workers) -> None:
        """Take over a state; there is no gradient before the next refresh."""
        self._start = state["start"]
        if "values" in state:
            self._pairs = Eigenpairs(state["values"], state["vectors"], state["residual"])

    def observed_at(self, fields: Fields) -> Self:
        """The term refreshed at another map, itself unchanged."""
        if fields is self._fields:
            return self
        observer = copy.copy(self)
        observer.refresh(fields)
        return observer

    def moved(self, fields: Fields) -> float:
        """How far the points have moved since the last refresh, as root mean square; infinite before the first."""
        if self._fields is None:
            return float("inf")
        return float(np.linalg.norm(fields.Y - self._fields.Y) / np.sqrt(fields.n_samples))

    @property
    def eigenvalues(self) -> NDArray[np.float64]:
        """The K smallest eigenvalues of the Laplacian at the last refresh."""
        mu = self._refreshed.values[: self.n_clusters - 1]
        sigma = np.ones(self.n_clusters)  # also those that a graph of fewer points lacks
        sigma[0], sigma[1 : mu.size + 1] = 0, 1 - mu
        return sigma.clip(0, 2)

    @property
    def eigengap(self) -> float | None:
        """Gap between the last of these eigenvalues and the next; None before the first refresh."""
        if self._pairs is None or self.n_clusters < 2 or self._pairs.values.size < self.n_clusters:
            return None
        return float(self._pairs.values[self.n_clusters - 2] - self._pairs.values[self.n_clusters - 1])

    @property
    def residual(self) -> float:
        """How well the eigenpairs of the last refresh satisfy their equation: no value is off by more than this."""
        return self._refreshed.residual

    @property
    def _refreshed(self) -> Eigenpairs:
        if self._pairs is None:
            raise RuntimeError("Contraction: call refresh(fields) before asking for values or gradients.")
        return self._pairs
