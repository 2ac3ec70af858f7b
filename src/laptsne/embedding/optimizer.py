"""Gradient descent on the objective: momentum, gains, schedules, callbacks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from laptsne._runtime.compiled import compiled
from laptsne.embedding.checkpoint import Checkpoint
from laptsne.embedding.fields import Fields
from laptsne.embedding.initialization import MAX_COORDINATE
from laptsne.embedding.objective import Contraction, KLDivergence

Map = NDArray[np.float64]

_GROWTH = 0.2
_LONG = 100  # iterations; in fewer, a run may not have got anywhere whatever its settings
# The reach of a similarity. At the end of an ordinary long run nine points of ten move by less than a fifth of it.
_REACH = 1.0
_MAX_ADRIFT = 0.1  # share of the points that may still move as far, or in a short run as max_step allows
# What clusters need to hold together grows with their size, in two steps that end at these.
_LARGE_CLUSTER, _HUGE_CLUSTER = 800, 10_000
# Shares of a large cluster that its points may see on average: beyond the first it needs less, beyond the second none.
_FREE_SEEN, _MAX_SEEN = 0.1, 0.3


@compiled
def _step_rows(
    start: int,
    stop: int,
    gradient: Map,
    rate: float,
    momentum: float,
    max_step: float,
    growth: float,
    gains: Map | None,
    velocity: Map,
    Y: Map,
    moved: Map,
) -> None:
    """Set the velocity, the gains and the moved map of every point."""
    n_dims = Y.shape[1]
    for i in range(start, stop):
        square = 0.0
        for d in range(n_dims):
            slope, speed = gradient[i, d], velocity[i, d]
            if gains is not None:
                # Where the step so far goes downhill, keep on.
                gain = gains[i, d] + growth if slope * speed < 0 else max(gains[i, d] * 0.8, 0.01)
                gains[i, d] = gain
                slope *= gain
            speed = momentum * speed - rate * slope
            velocity[i, d] = speed
            square += speed * speed
        cut = max_step / np.sqrt(square) if square > max_step * max_step else 1.0
        for d in range(n_dims):
            velocity[i, d] *= cut
            moved[i, d] = Y[i, d] + velocity[i, d]


@dataclass(frozen=True)
class Descent:
    """How the map is moved. The defaults suit nearly all data; ``LaptSNE(optimizer=Descent(...))`` changes them.

    Parameters
    ----------
    momentum : float, default=0.8
        Share of the last step that is added to the next.
    gains : bool, default=True
        Whether every coordinate has a step size of its own that grows while its direction lasts.
    max_step : float, default=5.0
        Longest way that a point may go in one iteration; longer steps are cut.
    exaggeration_share : float, default=1/3
        Share of the iterations in which the attraction is multiplied by ``early_exaggeration``.
    exaggeration : float, default=None
        Factor on the attraction afterwards. None is ``1 + min(1, size / 800) / 2 + min(1, size / 10_000) / 2`` while
        contraction is in force, where ``size`` is ``n_samples / n_clusters``, and 1 without it; less of it where
        large clusters are so dense already that they would fall in on themselves.
    contraction_start : float, default=1/2
        Share of the iterations after which contraction begins.
    contraction_ramp : float, default=1/4
        Share of the iterations over which contraction rises to its full strength.
    refresh_every : int, default=10
        The eigenvectors of the map are found anew after this many iterations,
    refresh_distance : float, default=1.0
        or as soon as points have moved this far since, as root mean square.
    check_every : int, default=50
        Iterations between two looks at the objective, once no schedule changes it any more.
    tol : float, default=1e-3
        The run ends where the objective has not fallen by this share of the divergence for ``patience`` checks.
    patience : int, default=2
        See ``tol``.
    """

    momentum: float = 0.8
    gains: bool = True
    max_step: float = 5.0
    exaggeration_share: float = 1 / 3
    exaggeration: float | None = None
    contraction_start: float = 1 / 2
    contraction_ramp: float = 1 / 4
    refresh_every: int = 10
    refresh_distance: float = 1.0
    check_every: int = 50
    tol: float = 1e-3
    patience: int = 2

    def __post_init__(self) -> None:
        """Refuse what cannot work, by name."""
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "exaggeration" and value is None:
                continue
            kind = Integral if field.type == "int" else Real
            _require(isinstance(value, kind), field.name, value, f"of type {field.type}")
        for name in ("exaggeration_share", "contraction_start", "contraction_ramp"):
            _require(0 <= getattr(self, name) <= 1, name, getattr(self, name), "a share from 0 to 1")
        for name in ("refresh_every", "check_every", "patience"):
            _require(getattr(self, name) >= 1, name, getattr(self, name), "an integer of at least 1")
        _require(0 <= self.momentum < 1, "momentum", self.momentum, "a number from 0 to below 1")
        _require((self.exaggeration or 1) >= 1, "exaggeration", self.exaggeration, "None, or a number of at least 1")
        _require(self.max_step > 0, "max_step", self.max_step, "a positive number")
        _require(self.refresh_distance >= 0, "refresh_distance", self.refresh_distance, "a number of at least 0")
        _require(self.tol >= 0, "tol", self.tol, "a number of at least 0")

    def contraction_share(self, iteration: int, max_iter: int) -> float:
        """Share of the full contraction in force at an iteration."""
        begun = iteration - self.contraction_start * max_iter
        if begun < 0:
            return 0.0
        ramp = self.contraction_ramp * max_iter
        return min(1.0, (begun + 1) / ramp) if ramp >= 1 else 1.0


def late_exaggeration(fields: Fields, n_clusters: int) -> float:
    """Factor on the attraction that the clusters of a map need while they are contracted; 1 where there are none."""
    if n_clusters == 1:
        return 1.0
    size = fields.n_samples / n_clusters
    need = min(1.0, size / _LARGE_CLUSTER) / 2 + min(1.0, size / _HUGE_CLUSTER) / 2
    if size <= _LARGE_CLUSTER:  # points of small clusters see all of them, and are well
        return 1 + need
    seen = float(fields.degrees.mean()) / size
    return 1 + need * min(1.0, max(0.0, (_MAX_SEEN - seen) / (_MAX_SEEN - _FREE_SEEN)))


def _require(condition: bool, name: str, value: Any, remedy: str) -> None:  # noqa: FBT001
    if not condition:
        raise ValueError(f"Descent: {name} must be {remedy}; got {value!r}.")


class State:
    """What a callback sees. Values are computed when they are asked for, so that a callback pays for what it reads.

    Attributes
    ----------
    iteration : int
        Number of steps taken so far.
    contraction : float
        The strength of the contraction in force.
    exaggeration : float
        The factor on the attraction in force.
    """

    def __init__(
        self,
        iteration: int,
        contraction: float,
        exaggeration: float,
        fields: Fields,
        Y: Map,
        kl: KLDivergence,
        term: Contraction,
    ) -> None:
        self.iteration = iteration
        self.contraction = contraction
        self.exaggeration = exaggeration
        self._fields, self._Y, self._kl, self._term = fields, Y, kl, term

    @property
    def embedding(self) -> Map:
        """A copy of the map, shape (n_samples, n_components)."""
        return self._Y.copy()

    @cached_property
    def kl_divergence(self) -> float:
        """KL divergence of the map, without exaggeration."""
        return self._kl.value(self._fields)

    @property
    def eigenvalues(self) -> NDArray[np.float64]:
        """Smallest eigenvalues of the map's Laplacian, as many as are to be pressed to zero."""
        return self._observed.eigenvalues

    @property
    def eigengap(self) -> float | None:
        """Gap above the eigenvalues to be pressed to zero, as of the last refresh; None before it. It costs nothing."""
        return self._term.eigengap

    @cached_property
    def _observed(self) -> Contraction:
        return self._term.observed_at(self._fields)

    @property
    def residual(self) -> float:
        """How well the eigenvectors behind ``eigenvalues`` satisfy their equation: none is off by more than this."""
        return self._observed.residual

    @cached_property
    def objective(self) -> float:
        """What is minimised now: KL divergence, exaggerated, plus contraction times the penalised eigenvalues."""
        divergence = self.kl_divergence
        if self.exaggeration != 1:
            divergence = self._kl.value(self._fields, self.exaggeration)
        penalised = self._term.penalty.value(self.eigenvalues).sum() if self.contraction else 0.0
        return float(divergence + self.contraction * penalised)


Callback = Callable[[State], Any]


@dataclass
class Problem:
    """What is minimised: the two terms, their weight, and how the fields of a map are made.

    Where there is a ``decision``, it says by the map at which contraction begins how many clusters to contract, with a
    first guess of their eigenvectors, and ``contract`` makes the term and its weight of that; until then both are
    provisional.
    """

    kl: KLDivergence
    contraction: Contraction
    strength: float
    make_fields: Callable[[Map], Fields]
    contract: Callable[[int, NDArray[Any]], tuple[Contraction, float]] | None = None
    decision: Callable[[Map], tuple[int, NDArray[Any]]] | None = None

    def decide(self, Y: Map) -> None:
        """Decide what to contract, once."""
        if self.decision is not None:
            self.settle(*self.decision(Y))

    def settle(self, n_clusters: int, start: NDArray[Any]) -> None:
        """Contract so many clusters, whatever the map."""
        if self.decision is not None:
            assert self.contract is not None
            self.contraction, self.strength = self.contract(n_clusters, start)
            self.decision = None


class InterruptWarning(UserWarning):
    """A run was stopped from the keyboard; its map is that of the last iteration."""


def descend(run: Run, callbacks: Sequence[Callback] = (), checkpoint: Checkpoint | None = None) -> tuple[Map, int]:
    """Minimise the objective; return the last map and the number of steps taken.

    An interrupt from the keyboard ends the run with a warning, and with the map so far.
    """
    iteration = start = 0 if checkpoint is None else checkpoint.resume(run)
    try:
        for iteration in range(start, run.max_iter):
            if checkpoint is not None:
                checkpoint.offer(run, iteration)
            if not _advance(run, iteration, callbacks):
                return run.Y, iteration
    except KeyboardInterrupt:
        if checkpoint is not None:
            checkpoint.kept = True
        warnings.warn(
            f"Interrupted at iteration {iteration} of {run.max_iter}: the map is what it was then.",
            InterruptWarning,
            stacklevel=2,
        )
        return run.Y, iteration
    return run.Y, run.max_iter


def warn_if_lost(run: Run, n_iter: int, divergence: float) -> None:
    """Warn where a run has ended in a map that its settings have torn away from the data.

    Parameters
    ----------
    run : Run
        The run, at its end.
    n_iter : int
        The steps that it took.
    divergence : float
        KL divergence of its map.
    """
    remedy = f"Lower learning_rate (now {run.rate:.4g}) or contraction (now {run.problem.strength:.4g})."
    far = 0.99 * run.descent.max_step
    if n_iter >= _LONG:
        far = min(far, _REACH)
    adrift = float((np.linalg.norm(run.velocity, axis=1) > far).mean())
    if adrift > _MAX_ADRIFT:
        lost = f"The map is adrift: {adrift:.0%} of the points still move by more than {far:.3g} at each step."
    elif n_iter >= _LONG and divergence > run.problem.kl.shapeless:
        lost = (
            f"The map tells less of the data than one with all points in one place: its KL divergence is "
            f"{divergence:.4g}, there it would be {run.problem.kl.shapeless:.4g}."
        )
    else:
        return
    warnings.warn(f"{lost} {remedy}", ConvergenceWarning, stacklevel=2)


def _advance(run: Run, iteration: int, callbacks: Sequence[Callback]) -> bool:
    """Take one step; False, and none, where the run is over."""
    state = run.look(iteration)
    answers = [callback(state) for callback in callbacks]
    if any(isinstance(answer, bool | np.bool_) and answer for answer in answers) or run.settled(state):
        return False
    with np.errstate(over="ignore", invalid="ignore"):  # what leaves the numbers is seen by the step itself
        moved = run.step()
    if not moved:
        warnings.warn(
            f"The map began to diverge at iteration {iteration}; what it was before is kept. "
            f"Lower learning_rate (now {run.rate:.4g}) or contraction (now {run.problem.strength:.4g}).",
            ConvergenceWarning,
            stacklevel=3,
        )
        return False
    return True


class Run:
    """The moving parts of one descent, in which all points move in every iteration.

    Parameters
    ----------
    problem : Problem
        What is minimised.
    Y : array of shape (n_samples, n_components)
        Where the points start.
    descent : Descent
        How they move.
    max_iter, early_exaggeration, learning_rate
        As in :class:`laptsne.LaptSNE`.
    """

    def __init__(
        self,
        problem: Problem,
        Y: Map,
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

    def look(self, iteration: int) -> State:
        """Evaluate the map as it is."""
        self.iteration = iteration
        share = self.descent.contraction_share(iteration, self.max_iter)
        if share:
            self.problem.decide(self.Y)
        problem = self.problem
        self.strength = problem.strength * share
        self.fields = problem.make_fields(self.Y)
        strengths = (self.strength, self.exaggeration)
        return State(iteration, *strengths, self.fields, self.Y, problem.kl, problem.contraction)

    def can_rest(self, iteration: int) -> bool:
        """Whether nothing of the eigenvectors but their start is needed from this iteration on."""
        contracts = self.problem.strength * self.descent.contraction_share(iteration, self.max_iter) > 0
        return not contracts or self._refresh_due(iteration, self.problem.make_fields(self.Y))

    def state(self) -> dict[str, Any]:
        """Numbers and arrays from which the run can go on, where it :meth:`can_rest`."""
        moving = {"Y": self.Y, "velocity": self.velocity, "last_refresh": self.last_refresh}
        decided = {"n_clusters": self.problem.contraction.n_clusters, "pending": self.problem.decision is not None}
        progress = {"best": float(self.best), "unimproved": self.unimproved}
        gains = {} if self.gains is None else {"gains": self.gains}
        term = {f"term_{name}": part for name, part in self.problem.contraction.state().items()}
        return moving | decided | progress | gains | term

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        if not all(state[name].shape == self.Y.shape and np.isfinite(state[name]).all() for name in ("Y", "velocity")):
            raise ValueError("it is not the state of a map of these points")
        term = {name.removeprefix("term_"): part for name, part in state.items() if name.startswith("term_")}
        if not state["pending"]:
            self.problem.settle(state["n_clusters"], term["start"])
        self.Y, self.velocity, self.gains = state["Y"], state["velocity"], state.get("gains")
        self.last_refresh, self.best, self.unimproved = state["last_refresh"], state["best"], state["unimproved"]
        self.problem.contraction.restore(term, self.problem.make_fields(self.Y).workers)

    def settled(self, state: State) -> bool:
        """Whether the objective has stopped falling; asked only when it no longer changes by schedule."""
        descent, t = self.descent, self.iteration
        full = t == 0 or descent.contraction_share(t - 1, self.max_iter) == 1 or not self.problem.strength
        if t < self.n_exaggerated or not full or t % descent.check_every or descent.tol == 0:
            return False
        if state.objective < self.best - descent.tol * abs(state.kl_divergence):
            self.best, self.unimproved = state.objective, 0
        else:
            self.unimproved += 1
        return self.unimproved >= descent.patience

    def step(self) -> bool:
        """Move the map; False, and no move, where that would take it out of all bounds."""
        moved = self._moved(self._gradient(), self.gains, self.velocity, self.Y)
        if moved is None:
            return False
        self.Y = moved
        return True

    def _moved(self, gradient: Map, gains: Map | None, velocity: Map, Y: Map) -> Map | None:
        """Where points go; gains and velocities are set. None where that is out of all bounds."""
        descent, moved = self.descent, np.empty_like(Y)
        args = (gradient, self.rate, descent.momentum, descent.max_step, self.growth, gains, velocity, Y, moved)
        self.fields.workers.rows(_step_rows, len(moved), *args, work=20.0 * moved.size)
        return moved if np.abs(moved).max() < MAX_COORDINATE else None  # None also where it is not a number

    @property
    def growth(self) -> float:
        """What a gain grows by while its direction lasts."""
        return _GROWTH

    @property
    def exaggeration(self) -> float:
        """Factor on the attraction in force."""
        if self.iteration < self.n_exaggerated:
            return self.early_exaggeration
        if self.descent.exaggeration is not None:
            return self.descent.exaggeration
        return late_exaggeration(self.fields, self.problem.contraction.n_clusters) if self.strength else 1.0

    @property
    def rate(self) -> float:
        """Step size in force."""
        if not isinstance(self.learning_rate, str):
            return float(self.learning_rate)
        n_samples = len(self.Y)
        return max(n_samples / self.exaggeration / 4, 50.0)

    def _gradient(self) -> Map:
        contraction = self._contraction_gradient() if self.strength else 0.0
        return self.problem.kl.gradient(self.fields, self.exaggeration) + self.strength * contraction

    def _contraction_gradient(self) -> Map:
        contraction = self.problem.contraction
        if self._refresh_due(self.iteration, self.fields):
            contraction.refresh(self.fields)
            self.last_refresh = self.iteration
        return contraction.gradient(self.fields)

    def _refresh_due(self, iteration: int, fields: Fields) -> bool:
        if iteration - self.last_refresh >= self.descent.refresh_every:
            return True
        return self.problem.contraction.moved(fields) >= self.descent.refresh_distance
