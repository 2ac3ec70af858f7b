"""The gradient descent: one loop over a loss and a contraction, and its result."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from laptsne._runtime.compiled import compiled
from laptsne._runtime.typing import Array, Floats
from laptsne._runtime.warn import warn
from laptsne.contraction.term import Contraction, LazyPotential, rms_radius
from laptsne.engine.checkpoint import Checkpoint
from laptsne.engine.cross_entropy import CrossEntropy
from laptsne.engine.initialization import MAX_COORDINATE
from laptsne.engine.kl import Batches, KLDivergence
from laptsne.engine.schedule import Schedule
from laptsne.fields import Fields
from laptsne.fields.potential import Potential
from laptsne.graph.spectrum import of_points

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
_PATIENCE = 2  # checks without progress after which a descent stops
# What a checkpoint holds of a descent, apart from the contraction and the batches.
_STORED = ("Y", "velocity", "gains", "iteration", "last_refresh", "n_stalled", "applied", "best")


@dataclass(frozen=True)
class Result:
    """The result of a descent; ``contraction`` is the strength at the last step, ``residual`` that of eigenvalues."""

    embedding: Floats
    n_iter: int
    interrupted: bool
    contraction: float
    contraction_width: float | None
    exaggeration: float
    eigenvalues: Floats
    residual: float
    loss: float
    objective: float
    potential: Potential | LazyPotential | None


@dataclass(eq=False)
class Descending:
    """A descent on its way: what is minimised, by which schedule, and where it has got to.

    ``applied`` is the contraction strength of the last step; ``best`` and ``n_stalled`` are the lowest objective of the
    convergence checks and the number of checks since. ``order`` has the indices of the points of the data. Points are
    held near ``anchors``, which are NaN for those that are free.
    """

    loss: Loss
    term: Contraction
    schedule: Schedule
    Y: Floats
    batches: Batches | None = None
    order: Array | None = None
    anchors: Floats | None = None

    def __post_init__(self) -> None:
        self.Y, self.velocity = self.Y.copy(), np.zeros_like(self.Y)
        self.gains = np.ones_like(self.Y) if self.schedule.gains else None
        self.iteration, self.last_refresh, self.n_stalled = 0, 0, 0
        self.applied, self.best = 0.0, float("inf")

    @property
    def strength(self) -> float:
        """Current strength of the contraction."""
        return self.schedule.contraction(self.iteration)

    def fields(self) -> Fields:
        """Fields of the current embedding; accurate ones while points come to rest."""
        return self.loss.fields(self.Y, None if self.schedule.is_settling(self.iteration) else self.iteration)

    def step(self, fields: Fields) -> bool:
        """Move all points or a batch; return False, without a move, if the embedding would diverge."""
        batches, strength, exaggeration = self.batches, self.strength, self.schedule.exaggeration(self.iteration)
        drawn: Any = (slice(None), fields) if batches is None else batches.draw(fields)
        rows, near = drawn
        # Before the gradient of the loss: the fields of unit charges may come with it.
        contraction = self.contraction_gradient(fields, near, rows) if strength else None
        if batches is None:
            gradient = self.loss.gradient(fields, exaggeration)
        else:
            assert isinstance(self.loss, KLDivergence)
            gradient = self.loss.gradient(near, exaggeration, rows, batches.normaliser)
        if contraction is not None:
            gradient += strength * contraction
        if self.anchors is not None:
            gradient += self.schedule.hold / len(self.Y) * np.nan_to_num(self.Y[rows] - self.anchors[rows])
        if self.loss.stiffness is not None:
            gradient /= self.loss.stiffness
        moved = self.moved(gradient, rows)
        if moved is None:
            return False
        if batches is not None:
            batches.follow(rows, near, moved)
            part, moved = moved, self.Y.copy()
            moved[rows] = part
        self.Y, self.applied = moved, strength
        return True

    def contraction_gradient(self, fields: Fields, near: Fields, rows: Any) -> Floats:
        """Return rows of the gradient of the contraction, given the fields there; refresh it if that is due."""
        if self.refresh_due(fields):
            self.term.refresh(fields)
            # The similarities follow the embedding while it still expands, then the objective stays the same.
            self.term.fixed = self.term.fixed or self.schedule.is_settling(self.iteration)
            self.last_refresh = self.iteration
        return self.term.gradient(near, rows)

    def refresh_due(self, fields: Fields) -> bool:
        """Whether the eigenvalues are to be computed again."""
        most = self.schedule.iterations(self.schedule.descent.refresh_every, len(self.Y))
        if self.iteration - self.last_refresh >= min(most, self.term.max_age):
            return True
        return self.term.moved(fields) >= max(_REFRESH_DISTANCE, _REFRESH_WIDTHS * (self.term.width or 1.0))

    def moved(self, gradient: Floats, rows: Any = slice(None)) -> Floats | None:
        """Return new positions of points, and update their gains and velocities; None if out of bounds."""
        t, n_samples = self.iteration, len(self.Y)
        Y: Floats = self.Y[rows]
        velocity, gains = self.velocity[rows], None if self.gains is None else self.gains[rows]
        scale = 1.0 if self.batches is None else self.schedule.batch_scale(t, len(Y), n_samples)
        rate, momentum = scale * self.schedule.rate(t, n_samples), self.schedule.momentum(t)
        stiffness, boundary, centre = 0.0, 0.0, np.zeros(Y.shape[1])
        if self.strength > 0 and self.term.width is not None:  # not with the kernel of the paper
            stiffness, boundary = _STIFFNESS / n_samples, _BOUNDARY * rms_radius(self.Y)
            centre = np.array([column.mean() for column in self.Y.T])  # reductions over short rows are slow
        moved = np.empty_like(Y)
        rules = (rate, momentum, self.schedule.max_step, scale * _GAIN_INCREASE, centre, boundary, stiffness)
        args = (gradient, rules, gains, velocity, Y, moved)
        self.loss.workers.rows(_step_rows, len(moved), *args, work=20.0 * moved.size)
        largest = float(np.maximum(moved.max(), -moved.min()))
        if not (largest < MAX_COORDINATE and self.loss.is_feasible(moved, largest)):  # or NaN
            return None
        self.velocity[rows] = velocity
        if self.gains is not None:
            self.gains[rows] = gains
        return moved

    def has_converged(self, state: State) -> bool:
        """Whether the objective has stopped decreasing; False while the schedule still changes it."""
        if not self.schedule.is_check(self.iteration, len(self.Y)):
            return False
        if state.objective < self.best - self.schedule.descent.tol * abs(state.kl_divergence):
            self.best, self.n_stalled = state.objective, 0
        else:
            self.n_stalled += 1
        return self.n_stalled >= _PATIENCE

    def state(self) -> dict[str, Any]:
        """Return everything that a checkpoint stores, by part and name."""
        parts = {"descent": {name: getattr(self, name) for name in _STORED}, "term": self.term.state()}
        if self.batches is not None:
            parts["batches"] = self.batches.state()
        return {f"{part}.{name}": value for part, values in parts.items() for name, value in values.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state; raise ValueError, naming the part, if it is not one of this descent."""
        parts: dict[str, dict[str, Any]] = {"descent": {}, "term": {}, "batches": {}}
        for key, value in state.items():
            part, _, name = key.partition(".")
            parts[part][name] = value
        for name in _STORED:
            now, value = getattr(self, name), parts["descent"][name]
            fits = np.shape(value) == np.shape(now) and np.asarray(value).dtype == np.asarray(now).dtype
            if fits and name == "iteration":
                fits = 0 <= value <= self.schedule.max_iter
            elif fits and name == "gains" and value is not None:
                fits = value.min() > 0
            if not fits:
                raise ValueError(f"{name} is not that of a descent of this length and size")
            setattr(self, name, value)
        self.term.restore(parts["term"])
        if self.batches is not None:
            self.batches.restore(parts["batches"])


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
    def embedding(self) -> Floats:
        """A copy of the embedding, of shape (n_samples, n_components)."""
        return self._Y.copy() if self._order is None else of_points(self._Y, self._order)

    @cached_property
    def kl_divergence(self) -> float:
        """Loss of the embedding, without exaggeration: the KL divergence, or the cross entropy of LapUMAP."""
        return self._loss.value(self._fields.accurate)

    @property
    def eigenvalues(self) -> Floats:
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
            loss = self._loss.value(self._fields.accurate, self.exaggeration)
        return loss + (self.contraction * self._observed.value() if self.contraction else 0.0)

    @cached_property
    def _observed(self) -> Contraction:
        return self._term.observed_at(self._fields)


Callback = Callable[[State], Any]


def minimise(descent: Descending, callbacks: Sequence[Callback] = (), checkpoint: Checkpoint | None = None) -> Result:
    """Take steps until the descent ends or is interrupted from the keyboard, and evaluate the final embedding."""
    interrupted = iterate(descent, callbacks, checkpoint)
    loss, term, schedule, applied = descent.loss, descent.term, descent.schedule, descent.applied
    fields = loss.fields(descent.Y)
    term.refresh(fields, tol=_FINAL_TOL, max_passes=100)
    value = loss.value(fields)
    _warn_if_lost(descent, value)
    _warn_if_clipped(descent)
    exaggeration = schedule.exaggeration(min(descent.iteration, schedule.max_iter - 1))
    result = Result(
        embedding=descent.Y,
        n_iter=descent.iteration,
        interrupted=interrupted,
        contraction=applied,
        contraction_width=term.width,
        exaggeration=exaggeration,
        eigenvalues=term.eigenvalues,
        residual=term.residual,
        loss=value,
        objective=value + applied * term.value(),
        potential=loss.potential(term, fields, applied, exaggeration),
    )
    if checkpoint is not None and not interrupted:
        checkpoint.remove()
    return result


def iterate(descent: Descending, callbacks: Sequence[Callback] = (), checkpoint: Checkpoint | None = None) -> bool:
    """Take steps until the descent ends; return whether a keyboard interrupt ended it."""
    if checkpoint is not None:
        checkpoint.resume(descent.restore)
    try:
        while descent.iteration < descent.schedule.max_iter:
            fields = descent.fields()
            # Gradients of the contraction are not stored: the next ones must not depend on them.
            if checkpoint is not None and checkpoint.is_due and (descent.strength == 0 or descent.refresh_due(fields)):
                checkpoint.write(descent.state())
            state = State(descent, fields)
            answers = [callback(state) for callback in callbacks]
            is_stopped = any(isinstance(answer, bool | np.bool_) and answer for answer in answers)
            if is_stopped or descent.has_converged(state):
                break
            with np.errstate(over="ignore", invalid="ignore"):  # the step itself checks for overflow
                moved = descent.step(fields)
            if not moved:
                message = f"The embedding diverged at iteration {state.iteration}; the one before is kept."
                warn(f"{message} {_remedy(descent)}", ConvergenceWarning)
                break
            descent.iteration += 1
    except KeyboardInterrupt:
        return True
    return False


@compiled
def _step_rows(
    start: int, stop: int, gradient: Array, rules: Any, gains: Array | None, velocity: Array, Y: Array, moved: Array
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
    t = min(descent.iteration, descent.schedule.max_iter - 1)
    rate = descent.schedule.rate(t, len(descent.Y))
    return f"Lower learning_rate (now {rate:.4g}) or contraction (now {descent.schedule.strength:.4g})."


def _warn_if_lost(descent: Descending, loss: float) -> None:
    """Warn if the descent ended in an embedding that does not represent the data."""
    n_iter, trivial, far = descent.iteration, descent.loss.trivial, 0.99 * descent.schedule.max_step
    if n_iter >= _LONG:
        far = min(far, _KERNEL_WIDTH)
    adrift = float((np.linalg.norm(descent.velocity, axis=1) > far).mean())
    if adrift > _MAX_ADRIFT:
        lost = f"The embedding did not settle: {adrift:.0%} of the points still move by more than {far:.3g} per step."
    elif n_iter >= _LONG and loss > trivial + _ROUNDING:
        worse = "is higher than that of an embedding with all points in one position"
        lost = f"The loss, {loss:.4g}, {worse}, {trivial:.4g}."
    else:
        return
    warn(f"{lost} {_remedy(descent)}", ConvergenceWarning)


def _warn_if_clipped(descent: Descending) -> None:
    """Warn if the width of the contraction's kernel was out of range for the embedding."""
    given, used = descent.term.wanted_width, descent.term.width
    if given is None or used is None or not descent.schedule.strength or used == given:
        return
    reason = "larger than the embedding" if given > used else "so small that points have no neighbours"
    warn(f"contraction_width={given:.4g} is {reason}; {used:.4g} was used instead. Give a width in between, or 'auto'.")
