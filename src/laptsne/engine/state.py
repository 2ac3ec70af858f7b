"""The state of a descent: what changes in it, and what callbacks see of it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.typing import Array
from laptsne.fields import Fields
from laptsne.graph.spectrum import of_points

if TYPE_CHECKING:
    from laptsne.contraction.term import Contraction as Term
    from laptsne.engine.minimise import Loss


@dataclass
class Position:
    """Everything that changes in a descent, apart from the contraction; a checkpoint stores it field by field.

    ``applied`` is the contraction strength of the last step; ``best`` and ``n_stalled`` are the lowest objective of the
    convergence checks and the number of checks since.
    """

    Y: NDArray[np.float64]
    velocity: NDArray[np.float64]
    gains: NDArray[np.float64] | None
    last_refresh: int
    iteration: int = 0
    applied: float = 0.0
    best: float = float("inf")
    n_stalled: int = 0

    @classmethod
    def at(cls, Y: NDArray[np.float64], *, gains: bool, refresh_every: int) -> Position:
        """Return the start of a descent."""
        return cls(Y.copy(), np.zeros_like(Y), np.ones_like(Y) if gains else None, -refresh_every)

    def state(self) -> dict[str, Any]:
        """Return the fields that a checkpoint stores."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def restore(self, state: dict[str, Any], max_iter: int) -> None:
        """Take over a stored state; raise ValueError, naming the field, if it is not one of this descent."""
        for name, now in self.state().items():
            value = state[name]
            if isinstance(now, np.ndarray):
                fits = value.shape == now.shape and value.dtype == now.dtype and (name != "gains" or value.min() > 0)
            else:
                fits = type(value) in (type(now), int)
            if not fits or (name == "iteration" and not 0 <= value <= max_iter):
                raise ValueError(f"{name} is not that of a descent of this length and size")
            setattr(self, name, value)


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

    def __init__(
        self,
        position: Position,
        *,
        contraction: float,
        exaggeration: float,
        fields: Fields,
        loss: Loss,
        term: Term,
        order: Array | None,
    ) -> None:
        self.iteration, self.contraction, self.exaggeration = position.iteration, contraction, exaggeration
        self._Y, self._step_fields, self._loss, self._order = position.Y, fields, loss, order
        self._term = copy.copy(term)  # a refresh replaces what it computes, so that this keeps what is known now

    @property
    def embedding(self) -> NDArray[np.float64]:
        """A copy of the embedding, of shape (n_samples, n_components)."""
        return self._Y.copy() if self._order is None else of_points(self._Y, self._order)

    @cached_property
    def kl_divergence(self) -> float:
        """Loss of the embedding, without exaggeration: the KL divergence, or the cross entropy of LapUMAP."""
        return self._loss.value(self._fields)

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
            loss = self._loss.value(self._fields, self.exaggeration)
        penalised = self._term.penalty.value(self.eigenvalues).sum() if self.contraction else 0.0
        return float(loss + self.contraction * penalised)

    @cached_property
    def _fields(self) -> Fields:
        """Fields for values that are reported, not those of a step."""
        return self._step_fields.accurate

    @cached_property
    def _observed(self) -> Term:
        return self._term.observed_at(self._step_fields)


Callback = Callable[[State], Any]
