"""How a descent proceeds: what a user may set, and the numbers that follow for every iteration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, validate_parameter_constraints

# Momentum without exaggeration, and where the attraction is stiff: under strong exaggeration a higher one makes the
# objective rise (benchmarks/constants.py).
_MOMENTUM, _STIFF_MOMENTUM = 0.95, 0.8
# Mini-batches take longer steps the fewer points move at once, up to this factor. A point whose neighbours are fixed
# overshoots sooner than one that moves with them: bound on the distance that momentum makes of a unit gradient, in
# units of n_samples, if hardly any points move (benchmarks/paper.py).
_MAX_STEP_SCALE, _MAX_DISTANCE = 4.0, 0.55


@dataclass(frozen=True)
class Descent:
    """Settings of the gradient descent, passed as ``LaptSNE(optimizer=Descent(...))``.

    The defaults suit nearly all data.

    Parameters
    ----------
    momentum : float, default=None
        Fraction of the previous step that is added to the next one. None follows the exaggeration: 0.95 without, 0.8
        from a factor of 4 on, with mini-batches and in the last tenth of the iterations.
    exaggeration : float, default=None
        Factor on the attractive forces at the end. None is 1, or up to 1.15 if small clusters that share affinity are
        contracted.
    contraction_start : float, default=0.45
        Fraction of the iterations after which contraction starts.
    contraction_ramp : float, default=0.2
        Fraction of the iterations over which contraction rises to its full strength.
    refresh_every : int, default=24
        Number of iterations after which the eigenvectors of the embedding's graph are recomputed, earlier if the points
        have moved far; at most 5 with the default contraction. The paper has 1.
    tol : float, default=1e-3
        The descent stops once the objective has not decreased by this fraction of the loss in two consecutive checks,
        50 iterations apart. Checks begin when exaggeration and contraction have their final values; 0 disables them.
    """

    momentum: float | None = None
    exaggeration: float | None = None
    contraction_start: float = 0.45
    contraction_ramp: float = 0.2
    refresh_every: int = 24
    tol: float = 1e-3

    def __post_init__(self) -> None:
        """Check the settings."""
        validate_parameter_constraints(_CONSTRAINTS, vars(self), "Descent")


_SHARE = [Interval(Real, 0, 1, closed="both")]
_CONSTRAINTS: dict[str, list[Any]] = {
    "momentum": [Interval(Real, 0, 1, closed="left"), None],
    "exaggeration": [Interval(Real, 1, math.inf, closed="left"), None],
    "contraction_start": _SHARE,
    "contraction_ramp": _SHARE,
    "refresh_every": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
}


@dataclass(frozen=True)
class Schedule:
    """The numbers of a descent, as functions of the iteration alone."""

    max_iter: int
    descent: Descent = Descent()
    early_exaggeration: float = 12.0
    # Before contraction: attraction beyond that of t-SNE lets related groups find each other. While contraction rises,
    # exaggeration falls to its final value.
    middle_exaggeration: float = 2.0
    late_exaggeration: float = 1.0  # final value, unless ``descent`` has another one
    learning_rate: float | None = None  # None follows the number of samples and the exaggeration
    strength: float = 0.0  # of the contraction at the end; 0 if nothing is contracted
    early_share: float = 0.3  # fraction of the iterations with early exaggeration
    settling_share: float = 0.1  # the same, at the end, with low momentum: points come to rest among their neighbours
    gains: bool = True
    max_step: float = 5.0  # longer steps of a point are clipped
    decay: float = 0.0  # fraction of the iterations, at the end, in which the step size falls to 0
    batch_size: int | None = None  # number of points that move in an iteration
    hold: float = 0.0  # weight of the squared distances from earlier positions
    check_every: int = 50

    @property
    def n_exaggerated(self) -> int:
        """Number of iterations with early exaggeration."""
        return int(self.early_share * self.max_iter) if self.early_exaggeration != 1 else 0

    def contraction(self, iteration: int) -> float:
        """Strength of the contraction at an iteration."""
        return self.strength * self._ramp(iteration)

    def exaggeration(self, iteration: int) -> float:
        """Factor on the attractive forces at an iteration."""
        if iteration < self.n_exaggerated:
            return self.early_exaggeration
        share = self._progress(iteration)
        middle = min(self.middle_exaggeration, self.early_exaggeration)
        final = self.descent.exaggeration or self.late_exaggeration
        return float(middle ** (1 - share) * final**share)

    def is_settling(self, iteration: int) -> bool:
        """Whether an iteration is among the last ones, in which points come to rest."""
        return iteration >= (1 - self.settling_share) * self.max_iter

    def momentum(self, iteration: int) -> float:
        """Momentum at an iteration."""
        if self.descent.momentum is not None:
            return self.descent.momentum
        # Longer steps of few points make the descent stiff in all phases.
        if self.batch_size is not None or self.is_settling(iteration):
            return _STIFF_MOMENTUM
        return max(_STIFF_MOMENTUM, 1 - (1 - _MOMENTUM) * self.exaggeration(iteration))

    def rate(self, iteration: int, n_samples: int) -> float:
        """Step size at an iteration, for all points."""
        rate = self.learning_rate
        if rate is None:
            # Relative to the rule of scikit-learn, twice up to an exaggeration of 2, once from 4 on.
            exaggeration = self.exaggeration(iteration)
            factor = 1.0 if self.batch_size is not None else min(max(4 / exaggeration, 1.0), 2.0)
            rate = n_samples / exaggeration / 4 * factor
        return rate * min(1.0, (1 - iteration / self.max_iter) / self.decay) if self.decay else rate

    def batch_scale(self, iteration: int, n_moving: int, n_samples: int) -> float:
        """Length of the steps of a batch relative to those of all points."""
        share_fixed = 1 - n_moving / n_samples
        reach = self.rate(iteration, n_samples) * self.exaggeration(iteration)
        distance = reach / (1 - self.momentum(iteration)) / n_samples
        return min(n_samples / n_moving, _MAX_STEP_SCALE, _MAX_DISTANCE / max(distance * share_fixed, 1e-9))

    def iterations(self, n_moves: int, n_samples: int) -> int:
        """Return the number of iterations in which each point moves this often."""
        return math.ceil(n_moves * n_samples / min(self.batch_size or n_samples, n_samples))

    def is_check(self, iteration: int, n_samples: int) -> bool:
        """Whether convergence is checked: every 50 iterations, in which all points move."""
        # Exaggeration and contraction had their final values in the iteration before.
        is_final = iteration >= self.n_exaggerated and (iteration == 0 or self._progress(iteration - 1) == 1)
        return self.descent.tol > 0 and iteration % self.iterations(self.check_every, n_samples) == 0 and is_final

    def _ramp(self, iteration: int) -> float:
        """Fraction of the full contraction strength at an iteration."""
        elapsed = iteration - self.descent.contraction_start * self.max_iter
        if elapsed < 0:
            return 0.0
        ramp = self.descent.contraction_ramp * self.max_iter
        return min(1.0, (elapsed + 1) / ramp) if ramp >= 1 else 1.0

    def _progress(self, iteration: int) -> float:
        """How far the objective has come from that of the middle phase, 0, to the final one, 1."""
        ramp = self._ramp(iteration)
        # Without contraction there is nothing to wait for: more iterations are left for the final objective.
        return ramp if self.strength > 0 or not ramp else 1.0
