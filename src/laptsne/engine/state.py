"""The state of a descent as callbacks see it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from laptsne.contraction.term import Contraction
from laptsne.fields import Fields
from laptsne.graph.spectrum import of_points

if TYPE_CHECKING:
    from laptsne.engine.minimise import Descending


class State:
    """The state of a descent before a step, as callbacks see it.

    Values are computed on access, so that a callback pays only for what it reads. They are those of the iteration even
    if the state is kept.

    Attributes
    ----------
    iteration : int
        Number of steps taken so far.
    contraction : float
        Current strength of the contraction.
    exaggeration : float
        Current factor on the attractive forces.
    """

    def __init__(self, descent: Descending, fields: Fields) -> None:
        self.iteration, self.contraction = descent.iteration, descent.strength
        self.exaggeration = descent.schedule.exaggeration(descent.iteration)
        self._Y, self._fields, self._loss, self._order = descent.Y, fields, descent.loss, descent.order
        self._term = copy.copy(descent.term)  # a refresh replaces what it computes, so that this keeps what is known

    @property
    def embedding(self) -> NDArray[np.float64]:
        """A copy of the embedding, of shape (n_samples, n_components)."""
        return self._Y.copy() if self._order is None else of_points(self._Y, self._order)

    @cached_property
    def kl_divergence(self) -> float:
        """Loss of the embedding, without exaggeration: the KL divergence, or the cross entropy of LapUMAP."""
        return self._loss.value(self._accurate)

    @property
    def eigenvalues(self) -> NDArray[np.float64]:
        """Penalised eigenvalues of the Laplacian of the embedding's graph, up to ``residual``."""
        return self._observed.eigenvalues

    @property
    def residual(self) -> float:
        """Bound on the error of each of ``eigenvalues``."""
        return self._observed.residual

    @cached_property
    def objective(self) -> float:
        """The current objective: exaggerated loss plus contraction times the penalised eigenvalues."""
        loss = self.kl_divergence
        if self.exaggeration != 1:
            loss = self._loss.value(self._accurate, self.exaggeration)
        penalised = self._term.penalty.value(self.eigenvalues).sum() if self.contraction else 0.0
        return float(loss + self.contraction * penalised)

    @cached_property
    def _accurate(self) -> Fields:
        """Fields for values that are reported, not those of a step."""
        return self._fields.accurate

    @cached_property
    def _observed(self) -> Contraction:
        return self._term.observed_at(self._fields)


Callback = Callable[[State], Any]
