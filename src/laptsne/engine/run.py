"""One descent: positions, velocities and gains, and how a step changes them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.compiled import compiled
from laptsne.contraction.similarity import rms_radius
from laptsne.engine.descent import Descent
from laptsne.engine.initialization import MAX_COORDINATE
from laptsne.engine.problem import Problem
from laptsne.engine.state import State
from laptsne.fields import Fields

Embedding = NDArray[np.float64]

_GAIN_INCREASE = 0.2
# The eigenvectors of a wide kernel last longer: share of its width that counts as a unit of refresh_distance.
_REFRESH_WIDTHS = 0.25
# Final exaggeration if clusters are contracted (docs/method.md has what else was tried).
LATE_EXAGGERATION = 1.2
# With contraction, points beyond this distance from the centre, in RMS radii of the embedding, are pulled back:
# hardly anything else holds stray points, and they would extend the map. A disc ends at 1.4, a square at 1.7.
_BOUNDARY = 1.6
_STIFFNESS = 0.05  # of the pull, times the number of points


@compiled
def _step_rows(
    start: int,
    stop: int,
    gradient: Embedding,
    rate: float,
    momentum: float,
    max_step: float,
    gain_increase: float,
    boundary: float,
    stiffness: float,
    gains: Embedding | None,
    velocity: Embedding,
    Y: Embedding,
    moved: Embedding,
) -> None:
    """Update the velocity and gains of each point, and set its new position."""
    n_dims = Y.shape[1]
    for i in range(start, stop):
        square = distance = 0.0
        for d in range(n_dims):
            distance += Y[i, d] * Y[i, d]
        pull = stiffness * (1 - boundary / np.sqrt(distance)) if distance > boundary * boundary else 0.0
        for d in range(n_dims):
            slope, speed = gradient[i, d] + pull * Y[i, d], velocity[i, d]
            if gains is not None:
                # The gain grows while the velocity points downhill.
                gain = gains[i, d] + gain_increase if slope * speed < 0 else max(gains[i, d] * 0.8, 0.01)
                gains[i, d] = gain
                slope *= gain
            speed = momentum * speed - rate * slope
            velocity[i, d] = speed
            square += speed * speed
        cut = max_step / np.sqrt(square) if square > max_step * max_step else 1.0
        for d in range(n_dims):
            velocity[i, d] *= cut
            moved[i, d] = Y[i, d] + velocity[i, d]


class Run:
    """The state of a descent in which all points move in every iteration.

    Parameters
    ----------
    problem : Problem
    Y : array of shape (n_samples, n_components)
        Initial embedding.
    descent : Descent
    max_iter, early_exaggeration, learning_rate
        As in :class:`laptsne.LaptSNE`.

    Attributes
    ----------
    Y : array of shape (n_samples, n_components)
        Current embedding.
    applied : float
        Contraction strength of the last step; 0 before the first.
    """

    def __init__(
        self,
        problem: Problem,
        Y: Embedding,
        descent: Descent,
        *,
        max_iter: int,
        early_exaggeration: float,
        learning_rate: float | str,
    ) -> None:
        self.problem, self.Y, self.descent, self.max_iter = problem, Y.copy(), descent, max_iter
        self.early_exaggeration, self.learning_rate = early_exaggeration, learning_rate
        self.n_exaggerated = int(descent.exaggeration_share * max_iter) if early_exaggeration != 1 else 0
        self.velocity = np.zeros_like(self.Y)
        self.gains = np.ones_like(self.Y) if descent.gains else None
        self.last_refresh = -descent.refresh_every
        self.best, self.unimproved = np.inf, 0
        self.iteration, self.strength, self.applied = 0, 0.0, 0.0

    def evaluate(self, iteration: int) -> State:
        """Evaluate the current embedding."""
        self.iteration = iteration
        share = self.descent.contraction_share(iteration, self.max_iter)
        self.strength = self.problem.strength * share
        self.fields = self._step_fields(iteration)
        return State(iteration, self.strength, lambda: self.exaggeration, self.fields, self.Y, self.problem)

    def _step_fields(self, iteration: int) -> Fields:
        """Fields of the current embedding; accurate ones while points come to rest."""
        backend = self.problem.backend
        if self.descent.is_settling(iteration, self.max_iter):
            return backend.fields(self.Y)
        return backend.step_fields(self.Y, iteration)

    def step(self) -> bool:
        """Move the points; return False, without a move, if the embedding would diverge."""
        contraction = self._contraction_gradient() if self.strength else None
        gradient = self.problem.kl.gradient(self.fields, self.exaggeration)
        if contraction is not None:
            gradient += self.strength * contraction
        moved = self._moved(gradient, self.gains, self.velocity, self.Y)
        if moved is None:
            return False
        self.Y, self.applied = moved, self.strength
        return True

    def has_converged(self, state: State) -> bool:
        """Whether the objective has stopped decreasing; False while the schedules still change it."""
        descent, t = self.descent, self.iteration
        is_full = t == 0 or self._share(t - 1) == 1
        if t < self.n_exaggerated or not is_full or t % self.check_every or descent.tol == 0:
            return False
        if state.objective < self.best - descent.tol * abs(state.kl_divergence):
            self.best, self.unimproved = state.objective, 0
        else:
            self.unimproved += 1
        return self.unimproved >= descent.patience

    @property
    def check_every(self) -> int:
        """Iterations between convergence checks."""
        return self.descent.check_every

    @property
    def exaggeration(self) -> float:
        """Current factor on the attractive forces."""
        if self.iteration < self.n_exaggerated:
            return self.early_exaggeration
        share = self._share(self.iteration)
        middle = min(self.descent.middle_exaggeration, self.early_exaggeration)
        return float(middle ** (1 - share) * self._final_exaggeration**share)

    def _share(self, iteration: int) -> float:
        """How far the objective has come from that of the middle phase, 0, to the final one, 1."""
        share = self.descent.contraction_share(iteration, self.max_iter)
        # Without contraction there is nothing to wait for: more iterations are left for the final objective.
        return share if self.problem.contracts or not share else 1.0

    @property
    def _final_exaggeration(self) -> float:
        if self.descent.exaggeration is not None:
            return self.descent.exaggeration
        return LATE_EXAGGERATION if self.problem.contracts else 1.0

    @property
    def rate(self) -> float:
        """Current step size."""
        if not isinstance(self.learning_rate, str):
            return float(self.learning_rate)
        return len(self.Y) / self.exaggeration / 4 * self._rate_factor

    @property
    def momentum(self) -> float:
        """Current momentum."""
        return self.descent.momentum_at(self.iteration, self.max_iter, self.exaggeration)

    @property
    def _rate_factor(self) -> float:
        """Length of steps relative to the rule of scikit-learn: twice up to an exaggeration of 2, once from 4 on."""
        return min(max(4 / self.exaggeration, 1.0), 2.0)

    @property
    def gain_increase(self) -> float:
        """Increase of a gain while its direction persists."""
        return _GAIN_INCREASE

    def _moved(
        self, gradient: Embedding, gains: Embedding | None, velocity: Embedding, Y: Embedding
    ) -> Embedding | None:
        """New positions, with gains and velocities updated in place; None if they are out of bounds."""
        descent, moved = self.descent, np.empty_like(Y)
        # Not with the kernel of the paper.
        pulled = self.strength > 0 and self.problem.backend.similarity is not None
        stiffness = _STIFFNESS / len(self.Y) if pulled else 0.0
        boundary = _BOUNDARY * rms_radius(self.Y) if stiffness else 0.0
        rules = (self.rate, self.momentum, descent.max_step, self.gain_increase, boundary, stiffness)
        args = (gradient, *rules, gains, velocity, Y, moved)
        self.fields.workers.rows(_step_rows, len(moved), *args, work=20.0 * moved.size)
        largest = float(np.maximum(moved.max(), -moved.min()))
        in_bounds = largest < MAX_COORDINATE  # False for NaN
        return moved if in_bounds and self.problem.backend.is_feasible(moved, largest) else None

    def _contraction_gradient(self) -> Embedding:
        contraction = self.problem.contraction
        if self._refresh_due(self.iteration, self.fields):
            contraction.refresh(self.fields)
            # The similarities follow the embedding while it still expands, then the objective stays the same.
            contraction.fixed = contraction.fixed or self.descent.is_settling(self.iteration, self.max_iter)
            self.last_refresh = self.iteration
        return contraction.gradient(self.fields)

    def _refresh_due(self, iteration: int, fields: Fields) -> bool:
        contraction = self.problem.contraction
        if iteration - self.last_refresh >= min(self.descent.refresh_every, contraction.max_age):
            return True
        width = 1.0 if contraction.kernel is None else contraction.kernel.width
        return contraction.moved(fields) >= self.descent.refresh_distance * max(1.0, _REFRESH_WIDTHS * width)

    def can_checkpoint(self, iteration: int) -> bool:
        """Whether the state before an iteration is small: of the eigenvectors only the start is needed."""
        contracts = self.problem.strength * self.descent.contraction_share(iteration, self.max_iter) > 0
        return not contracts or self._refresh_due(iteration, self._step_fields(iteration))

    def state(self) -> dict[str, Any]:
        """Numbers and arrays from which the run can be resumed, if it :meth:`can_checkpoint`."""
        moving = {"Y": self.Y, "velocity": self.velocity, "applied": self.applied, "last_refresh": self.last_refresh}
        progress = {"best": float(self.best), "unimproved": self.unimproved}
        gains = {} if self.gains is None else {"gains": self.gains}
        term = {f"term_{name}": part for name, part in self.problem.contraction.state().items()}
        return moving | progress | gains | term

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state."""
        for name in ("Y", "velocity") if self.gains is None else ("Y", "velocity", "gains"):
            part = state[name]
            if part.shape != self.Y.shape or part.dtype != self.Y.dtype or not np.isfinite(part).all():
                raise ValueError(f"{name} is not a finite array of shape {self.Y.shape}")
        if self.gains is not None and state["gains"].min() <= 0:
            raise ValueError("gains are not positive")
        term = {name.removeprefix("term_"): part for name, part in state.items() if name.startswith("term_")}
        self.Y, self.velocity = state["Y"], state["velocity"]
        self.gains = None if self.gains is None else state["gains"]
        self.applied, self.last_refresh = state["applied"], state["last_refresh"]
        self.best, self.unimproved = state["best"], state["unimproved"]
        self.problem.contraction.restore(term, self.problem.backend.workers)
