"""Parameters and schedules of the gradient descent."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any

# Momentum without exaggeration, and where the attraction is stiff: under strong exaggeration a higher one makes the
# objective rise (benchmarks/constants.py).
_MOMENTUM = 0.95
STIFF_MOMENTUM = 0.8


@dataclass(frozen=True)
class Descent:
    """Parameters of the gradient descent, passed as ``LaptSNE(optimizer=Descent(...))``.

    The defaults suit nearly all data.

    Parameters
    ----------
    momentum : float, default=None
        Fraction of the previous step that is added to the next one. None follows the exaggeration: 0.95 without, 0.9 at
        a factor of 2 and 0.8 from 4 on, where the attraction is too stiff for more, and 0.8 with mini-batches.
    gains : bool, default=True
        Whether each coordinate has a step size of its own, which grows while the sign of its gradient persists
        (delta-bar-delta, as in the reference implementation of t-SNE).
    max_step : float, default=5.0
        Upper bound on the distance that a point moves in one iteration; longer steps are clipped.
    exaggeration_share : float, default=0.3
        Fraction of the iterations with early exaggeration.
    middle_exaggeration : float, default=2.0
        Exaggeration between that phase and the start of contraction, at most the early exaggeration. Attraction beyond
        that of t-SNE lets related groups find each other. While contraction rises, exaggeration falls to its final
        value, at once if there is no contraction.
    exaggeration : float, default=None
        Final exaggeration. None is 1.2 if clusters are contracted and 1 otherwise.
    contraction_start : float, default=0.45
        Fraction of the iterations after which contraction starts.
    contraction_ramp : float, default=0.2
        Fraction of the iterations over which contraction rises to its full strength.
    settling_share : float, default=0.1
        Fraction of the iterations, at the end, in which the momentum is at most 0.8, so that points come to rest among
        their neighbours. It has no effect on a momentum that is given.
    refresh_every : int, default=24
        Number of iterations after which the eigenvectors of the embedding's graph are recomputed; at most 3 on the mesh
        of the default contraction, where that is cheap.
    refresh_distance : float, default=1.0
        They are also recomputed once the RMS displacement since the last update exceeds this distance, or this multiple
        of a quarter of the width of the contraction's kernel, if that is longer.
    check_every : int, default=50
        Number of iterations between convergence checks. With mini-batches, an iteration in which a fraction of the
        points moves counts as that fraction.
    tol : float, default=1e-3
        The descent stops once the objective has not decreased by this fraction of the KL divergence in ``patience``
        consecutive checks. Checks begin when exaggeration and contraction have reached their final values; 0 disables
        them.
    patience : int, default=2
        Number of checks; see ``tol``.
    """

    momentum: float | None = None
    gains: bool = True
    max_step: float = 5.0
    exaggeration_share: float = 0.3
    middle_exaggeration: float = 2.0
    exaggeration: float | None = None
    contraction_start: float = 0.45
    contraction_ramp: float = 0.2
    settling_share: float = 0.1
    refresh_every: int = 24
    refresh_distance: float = 1.0
    check_every: int = 50
    tol: float = 1e-3
    patience: int = 2

    def __post_init__(self) -> None:
        """Check the parameters."""
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("exaggeration", "momentum") and value is None:
                continue
            kind = Integral if field.type == "int" else Real
            _require(isinstance(value, kind), field.name, value, f"of type {field.type}")
        for name in ("exaggeration_share", "contraction_start", "contraction_ramp", "settling_share"):
            _require(0 <= getattr(self, name) <= 1, name, getattr(self, name), "a fraction from 0 to 1")
        for name in ("refresh_every", "check_every", "patience"):
            _require(getattr(self, name) >= 1, name, getattr(self, name), "an integer of at least 1")
        factor, middle = 1 if self.exaggeration is None else self.exaggeration, self.middle_exaggeration
        _require(1 <= factor < math.inf, "exaggeration", factor, "None, or a finite number of at least 1")
        _require(1 <= middle < math.inf, "middle_exaggeration", middle, "a finite number of at least 1")
        momentum = self.momentum or 0.0
        _require(0 <= momentum < 1, "momentum", momentum, "None, or a number from 0 to below 1")
        _require(self.max_step > 0, "max_step", self.max_step, "a positive number")
        _require(self.refresh_distance >= 0, "refresh_distance", self.refresh_distance, "a number of at least 0")
        _require(self.tol >= 0, "tol", self.tol, "a number of at least 0")

    def momentum_at(self, iteration: int, max_iter: int, exaggeration: float) -> float:
        """Momentum at an iteration with some exaggeration."""
        if self.momentum is not None:
            return self.momentum
        if self.is_settling(iteration, max_iter):
            return STIFF_MOMENTUM
        return max(STIFF_MOMENTUM, 1 - (1 - _MOMENTUM) * exaggeration)

    def is_settling(self, iteration: int, max_iter: int) -> bool:
        """Whether an iteration is among the last ones, in which points come to rest."""
        return iteration >= (1 - self.settling_share) * max_iter

    def contraction_share(self, iteration: int, max_iter: int) -> float:
        """Fraction of the full contraction strength at an iteration."""
        elapsed = iteration - self.contraction_start * max_iter
        if elapsed < 0:
            return 0.0
        ramp = self.contraction_ramp * max_iter
        return min(1.0, (elapsed + 1) / ramp) if ramp >= 1 else 1.0


def _require(condition: bool, name: str, value: Any, requirement: str) -> None:  # noqa: FBT001
    if not condition:
        raise ValueError(f"Descent: {name} must be {requirement}; got {value!r}.")
