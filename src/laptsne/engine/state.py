"""The state of a descent as callbacks see it."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne.contraction.term import Contraction
from laptsne.engine.problem import Problem
from laptsne.fields import Fields
from laptsne.graph.ordering import of_points


class State:
    """The state of a descent before a step.

    Values are computed on access, so that a callback pays only for what it reads.

    Attributes
    ----------
    iteration : int
        Number of steps taken so far.
    contraction : float
        Current strength of the contraction.
    """

    def __init__(
        self,
        iteration: int,
        contraction: float,
        exaggeration: Callable[[], float],
        fields: Fields,
        Y: NDArray[np.float64],
        problem: Problem,
    ) -> None:
        self.iteration = iteration
        self.contraction = contraction
        self._exaggeration, self._step_fields, self._Y = exaggeration, fields, Y
        self._kl, self._term, self._backend = problem.kl, problem.contraction, problem.backend
        self._order = problem.order

    @property
    def embedding(self) -> NDArray[np.float64]:
        """A copy of the embedding, of shape (n_samples, n_components)."""
        return self._Y.copy() if self._order is None else of_points(self._Y, self._order)

    @cached_property
    def _fields(self) -> Fields:
        """Fields for values that are reported, not those of a step."""
        return self._step_fields.accurate

    @cached_property
    def exaggeration(self) -> float:
        """Current factor on the attractive forces."""
        return self._exaggeration()

    @cached_property
    def kl_divergence(self) -> float:
        """KL divergence of the embedding, without exaggeration."""
        return self._kl.value(self._fields)

    @property
    def eigenvalues(self) -> NDArray[np.float64]:
        """The ``n_clusters`` smallest eigenvalues of the Laplacian of the embedding's graph, up to ``residual``."""
        return self._observed.eigenvalues

    @property
    def residual(self) -> float:
        """Residual norm of the eigenpairs behind ``eigenvalues``: a bound on the error of each eigenvalue."""
        return self._observed.residual

    @cached_property
    def eigengap(self) -> float | None:
        """Gap between eigenvalue ``n_clusters`` and the next one, to within 0.002; None for a single cluster.

        It takes several applications of the graph, about the cost of as many iterations.
        """
        return self._backend.eigengap(self._term, self._fields)

    @cached_property
    def objective(self) -> float:
        """The current objective: exaggerated KL divergence plus contraction times the penalised eigenvalues."""
        divergence = self.kl_divergence
        if self.exaggeration != 1:
            divergence = self._kl.value(self._fields, self.exaggeration)
        penalised = self._term.penalty.value(self.eigenvalues).sum() if self.contraction else 0.0
        return float(divergence + self.contraction * penalised)

    @cached_property
    def _observed(self) -> Contraction:
        return self._term.observed_at(self._step_fields)


Callback = Callable[[State], Any]
