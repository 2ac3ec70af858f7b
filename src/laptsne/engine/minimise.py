"""The gradient descent: one loop over a loss and a contraction, and its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from laptsne._runtime.compiled import compiled
from laptsne._runtime.typing import Array
from laptsne._runtime.warn import warn
from laptsne.contraction.similarity import rms_radius
from laptsne.contraction.term import Contraction as Term
from laptsne.contraction.term import LazyPotential
from laptsne.engine.checkpoint import Checkpoint
from laptsne.engine.cross_entropy import CrossEntropy
from laptsne.engine.initialization import MAX_COORDINATE
from laptsne.engine.kl import KLDivergence
from laptsne.engine.schedule import Schedule
from laptsne.engine.state import Callback, Position, State
from laptsne.fields import Fields
from laptsne.fields.potential import Potential

Embedding = NDArray[np.float64]
Loss = KLDivergence | CrossEntropy

_GAIN_INCREASE = 0.2
_FINAL_TOL = 1e-3  # residual of the eigenvectors of the final embedding
# Eigenvectors are recomputed once the RMS displacement of the points since the last time exceeds this distance, or this
# share of the width of the contraction's kernel: those of a wide kernel last longer.
_REFRESH_DISTANCE, _REFRESH_WIDTHS = 1.0, 0.25
# With contraction, points beyond this distance from the centre, in RMS radii of the embedding, are pulled back: hardly
# anything else holds stray points, and they would extend the map. A disc ends at 1.4, a square at 1.7.
_BOUNDARY = 1.6
_STIFFNESS = 0.05  # of the pull, times the number of points
_LONG = 100  # iterations; shorter runs may be far from a minimum whatever their settings
# The width of the kernel. At the end of an ordinary long run nine points in ten move by less than a fifth of it.
_KERNEL_WIDTH = 1.0
_MAX_ADRIFT = 0.1  # fraction of the points that may still move that far, or in a short run by the longest step
_ROUNDING = 1e-6  # of a KL divergence


@dataclass(frozen=True)
class Result:
    """The result of a descent; ``contraction`` is the strength at the last step, ``residual`` that of eigenvalues."""

    embedding: Embedding
    n_iter: int
    interrupted: bool
    contraction: float
    contraction_width: float | None
    exaggeration: float
    eigenvalues: NDArray[np.float64]
    residual: float
    loss: float
    objective: float
    potential: Potential | LazyPotential | None


@dataclass
class Descending:
    """A descent on its way: what is minimised, by which schedule, and where it has got to.

    ``order`` has the indices of the points of the data, if those of the descent have another order.
    """

    loss: Loss
    term: Term
    schedule: Schedule
    position: Position
    order: Array | None = None

    @property
    def strength(self) -> float:
        """Current strength of the contraction."""
        return self.schedule.contraction(self.position.iteration)

    def fields(self) -> Fields:
        """Fields of the current embedding; accurate ones while points come to rest."""
        t = self.position.iteration
        if self.schedule.is_settling(t):
            return self.loss.fields(self.position.Y)
        return self.loss.step_fields(self.position.Y, t)

    def seen(self, fields: Fields) -> State:
        """Return the current state for callbacks."""
        exaggeration = self.schedule.exaggeration(self.position.iteration)
        parts: dict[str, Any] = {"loss": self.loss, "term": self.term, "order": self.order, "fields": fields}
        return State(self.position, contraction=self.strength, exaggeration=exaggeration, **parts)

    def contraction_gradient(self, fields: Fields) -> Embedding:
        """Return the gradient of the contraction, of which the eigenvalues are computed again if that is due."""
        if self.refresh_due(fields):
            self.term.refresh(fields)
            # The similarities follow the embedding while it still expands, then the objective stays the same.
            self.term.fixed = self.term.fixed or self.schedule.is_settling(self.position.iteration)
            self.position.last_refresh = self.position.iteration
        return self.term.gradient(fields)

    def refresh_due(self, fields: Fields) -> bool:
        """Whether the eigenvalues are to be computed again."""
        age = self.position.iteration - self.position.last_refresh
        if age >= min(self.schedule.descent.refresh_every, self.term.max_age):
            return True
        width = 1.0 if self.term.kernel is None else self.term.kernel.width
        return self.term.moved(fields) >= max(_REFRESH_DISTANCE, _REFRESH_WIDTHS * width)

    def moved(
        self,
        gradient: Embedding,
        gains: Embedding | None,
        velocity: Embedding,
        Y: Embedding,
        scale: float = 1.0,
    ) -> Embedding | None:
        """Return new positions of points, with their gains and velocities updated in place; None if out of bounds.

        Step sizes and the growth of gains are multiplied by ``scale``.
        """
        t, n_samples, whole = self.position.iteration, len(self.position.Y), self.position.Y
        rate, momentum = scale * self.schedule.rate(t, n_samples), self.schedule.momentum(t)
        stiffness, boundary, centre = 0.0, 0.0, np.zeros(Y.shape[1])
        if self.strength > 0 and self.term.similarity is not None:  # not with the kernel of the paper
            stiffness, boundary = _STIFFNESS / n_samples, _BOUNDARY * rms_radius(whole)
            centre = np.array([column.mean() for column in whole.T])  # reductions over short rows are slow
        moved = np.empty_like(Y)
        rules = (rate, momentum, self.schedule.max_step, scale * _GAIN_INCREASE, centre, boundary, stiffness)
        args = (gradient, rules, gains, velocity, Y, moved)
        self.loss.workers.rows(_step_rows, len(moved), *args, work=20.0 * moved.size)
        largest = float(np.maximum(moved.max(), -moved.min()))
        in_bounds = largest < MAX_COORDINATE  # False for NaN
        return moved if in_bounds and self.loss.is_feasible(moved, largest) else None

    def has_converged(self, state: State) -> bool:
        """Whether the objective has stopped decreasing; False while the schedule still changes it."""
        position = self.position
        if not self.schedule.is_check(position.iteration, len(position.Y)):
            return False
        if state.objective < position.best - self.schedule.descent.tol * abs(state.kl_divergence):
            position.best, position.n_stalled = state.objective, 0
        else:
            position.n_stalled += 1
        return self.schedule.has_stalled(position.n_stalled)

    def can_checkpoint(self, step: AllPoints) -> bool:
        """Whether the state is complete without gradients of the contraction, which are not stored."""
        return self.strength == 0 or step.is_resumable(self) or self.refresh_due(self.fields())

    def state(self, step: AllPoints) -> dict[str, Any]:
        """Return everything that a checkpoint stores, by part and name."""
        parts = {"position": self.position.state(), "term": self.term.state(), "step": step.state()}
        return {f"{part}.{name}": value for part, values in parts.items() for name, value in values.items()}

    def restore(self, state: dict[str, Any], step: AllPoints) -> None:
        """Resume from a state; raise ValueError, naming the part, if it is not one of this descent."""
        parts: dict[str, dict[str, Any]] = {"position": {}, "term": {}, "step": {}}
        for key, value in state.items():
            part, _, name = key.partition(".")
            parts[part][name] = value
        self.position.restore(parts["position"], self.schedule.max_iter)
        self.term.restore(parts["term"])
        step.restore(parts["step"])


class AllPoints:
    """The rule by which all points move in every iteration, and the interface of such rules."""

    def __call__(self, descent: Descending, fields: Fields) -> bool:
        """Move the points; return False, without a move, if the embedding would diverge."""
        position, strength = descent.position, descent.strength
        contraction = descent.contraction_gradient(fields) if strength else None
        gradient = descent.loss.gradient(fields, descent.schedule.exaggeration(position.iteration))
        if contraction is not None:
            gradient += strength * contraction
        if descent.loss.stiffness is not None:
            gradient /= descent.loss.stiffness
        moved = descent.moved(gradient, position.gains, position.velocity, position.Y)
        if moved is None:
            return False
        position.Y, position.applied = moved, strength
        return True

    def is_resumable(self, descent: Descending) -> bool:
        """Whether the rule can be resumed whatever the state of the contraction, of which no gradient is stored."""
        return False

    def state(self) -> dict[str, Any]:
        """Return numbers and arrays from which the rule can be resumed."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state."""


def minimise(
    loss: Loss,
    Y: Embedding,
    term: Term,
    schedule: Schedule,
    *,
    step: AllPoints | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
    order: Array | None = None,
) -> Result:
    """Minimise a loss plus contraction, starting from an embedding, and evaluate the final one.

    A keyboard interrupt ends the descent early, with the embedding of the last complete iteration.
    """
    start = Position.at(Y, gains=schedule.gains, refresh_every=schedule.descent.refresh_every)
    descent = Descending(loss, term, schedule, start, order)
    interrupted = iterate(descent, step or AllPoints(), callbacks, checkpoint)
    position = descent.position
    fields = loss.fields(position.Y)
    term.refresh(fields, tol=_FINAL_TOL, max_passes=100)
    value = loss.value(fields)
    _warn_if_lost(descent, value)
    _warn_if_clipped(descent)
    exaggeration = schedule.exaggeration(min(position.iteration, schedule.max_iter - 1))
    result = Result(
        embedding=position.Y,
        n_iter=position.iteration,
        interrupted=interrupted,
        contraction=position.applied,
        contraction_width=None if term.kernel is None else term.kernel.width,
        exaggeration=exaggeration,
        eigenvalues=term.eigenvalues,
        residual=term.residual,
        loss=value,
        objective=value + position.applied * float(term.penalty.value(term.eigenvalues).sum()),
        potential=loss.potential(term, fields, position.applied, exaggeration),
    )
    if checkpoint is not None and not interrupted:
        checkpoint.remove()
    return result


def iterate(
    descent: Descending, step: AllPoints, callbacks: Sequence[Callback] = (), checkpoint: Checkpoint | None = None
) -> bool:
    """Take steps until the descent ends; return whether a keyboard interrupt ended it."""
    position = descent.position
    if checkpoint is not None:
        checkpoint.resume(lambda state: descent.restore(state, step))
    try:
        while position.iteration < descent.schedule.max_iter:
            if checkpoint is not None and checkpoint.is_due and descent.can_checkpoint(step):
                checkpoint.write(descent.state(step))
            if not _advance(descent, step, callbacks):
                break
            position.iteration += 1
    except KeyboardInterrupt:
        return True
    return False


def _advance(descent: Descending, step: AllPoints, callbacks: Sequence[Callback]) -> bool:
    """Take one step; return False, without a step, if the descent is over."""
    fields = descent.fields()
    state = descent.seen(fields)
    answers = [callback(state) for callback in callbacks]
    if any(isinstance(answer, bool | np.bool_) and answer for answer in answers) or descent.has_converged(state):
        return False
    with np.errstate(over="ignore", invalid="ignore"):  # the step itself checks for overflow
        moved = step(descent, fields)
    if not moved:
        warn(
            f"The embedding diverged at iteration {state.iteration}; the one before is kept. {_remedy(descent)}",
            ConvergenceWarning,
        )
    return moved


@compiled
def _step_rows(
    start: int,
    stop: int,
    gradient: Embedding,
    rules: Any,
    gains: Embedding | None,
    velocity: Embedding,
    Y: Embedding,
    moved: Embedding,
) -> None:
    """Update the velocity and gains of each point, and set its new position."""
    rate, momentum, max_step, gain_increase, centre, boundary, stiffness = rules
    n_dims = Y.shape[1]
    for i in range(start, stop):
        square = distance = 0.0
        for d in range(n_dims):
            distance += (Y[i, d] - centre[d]) ** 2
        pull = stiffness * (1 - boundary / np.sqrt(distance)) if distance > boundary * boundary else 0.0
        for d in range(n_dims):
            slope, speed = gradient[i, d] + pull * (Y[i, d] - centre[d]), velocity[i, d]
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


def _remedy(descent: Descending) -> str:
    t = min(descent.position.iteration, descent.schedule.max_iter - 1)
    rate = descent.schedule.rate(t, len(descent.position.Y))
    return f"Lower learning_rate (now {rate:.4g}) or contraction (now {descent.schedule.strength:.4g})."


def _warn_if_lost(descent: Descending, loss: float) -> None:
    """Warn if the descent ended in an embedding that does not represent the data."""
    n_iter, trivial = descent.position.iteration, descent.loss.trivial
    far = 0.99 * descent.schedule.max_step
    if n_iter >= _LONG:
        far = min(far, _KERNEL_WIDTH)
    adrift = float((np.linalg.norm(descent.position.velocity, axis=1) > far).mean())
    if adrift > _MAX_ADRIFT:
        lost = f"The embedding did not settle: {adrift:.0%} of the points still move by more than {far:.3g} per step."
    elif n_iter >= _LONG and loss > trivial + _ROUNDING:
        lost = (
            f"The loss, {loss:.4g}, is higher than that of an embedding with all points in one position, {trivial:.4g}."
        )
    else:
        return
    warn(f"{lost} {_remedy(descent)}", ConvergenceWarning)


def _warn_if_clipped(descent: Descending) -> None:
    """Warn if the width of the contraction's kernel was out of range for the embedding."""
    term = descent.term
    given, kernel = None if term.similarity is None else term.similarity.width, term.kernel
    if given is None or kernel is None or not descent.schedule.strength or kernel.width == given:
        return
    reason = "larger than the embedding" if given > kernel.width else "so small that points have no neighbours"
    warn(
        f"contraction_width={given:.4g} is {reason}; {kernel.width:.4g} was used instead. Give a width between the "
        "spacing of the points and the radius of the embedding, or 'auto'.",
    )
