"""Windows by which the charge of a point is distributed among the nodes of a grid around it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from laptsne._runtime.compiled import inlined
from laptsne._runtime.typing import Array


@inlined
def cubic_spline(t: float, weights: Array, slopes: Array) -> None:
    """Set the cubic B-splines of the four nodes around a point, and their derivatives with respect to its position.

    The point lies at the distance t in [0, 1], in cells, from the second node.
    """
    s = 1 - t
    weights[0], slopes[0] = s * s * s / 6, -s * s / 2
    weights[1], slopes[1] = (3 * t * t * t - 6 * t * t + 4) / 6, (3 * t * t - 4 * t) / 2
    weights[2], slopes[2] = (3 * s * s * s - 6 * s * s + 4) / 6, (4 * s - 3 * s * s) / 2
    weights[3], slopes[3] = t * t * t / 6, t * t / 2


@dataclass(frozen=True)
class CubicSpline:
    """The cubic B-spline, which is smooth enough for potentials."""

    width = 4

    def table(self, t: Array) -> tuple[Array, Array]:
        """Return weights and slopes, both of shape (len(t), width), for points at the distances t from their floor."""
        weights, slopes = np.empty((2, self.width, len(t)))
        # The function itself, for all t at once: compiling it would take longer than its table.
        formula: Callable[..., None] = getattr(cubic_spline, "py_func", cubic_spline)
        formula(t, weights, slopes)
        return weights.T, slopes.T

    def spectrum(self, omega: Array) -> Array:
        """Return the Fourier transform at the frequencies omega, in radians per cell."""
        return np.asarray(np.sinc(omega / (2 * np.pi)) ** 4)


@dataclass(frozen=True)
class ExponentialSemicircle:
    r"""The window :math:`e^{\beta (\sqrt{1 - z^2} - 1)}` of Barnett, Magland and af Klinteberg (2019)."""

    width: int  # number of cells; even
    beta: float  # sharpness

    def __call__(self, x: Array) -> Array:
        """Return the values at the distances x, in cells."""
        z = 2 * x / self.width
        return np.asarray(np.exp(self.beta * (np.sqrt(1 - np.clip(z, -1, 1) ** 2) - 1)) * (np.abs(z) < 1))

    def table(self, t: Array) -> tuple[Array, Array]:
        """Return weights and slopes as :meth:`CubicSpline.table` does."""
        offset = np.arange(self.width) - (self.width // 2 - 1) - t[:, None]
        step = 1e-4  # differences, since the derivative is infinite at the edge
        return self(offset), (self(offset - step) - self(offset + step)) / (2 * step)

    def spectrum(self, omega: Array) -> Array:
        """Return the Fourier transform at the frequencies omega, in radians per cell."""
        node, weight = _quadrature()
        x = node * self.width / 2
        return np.asarray((self(x) * weight * self.width / 2) @ np.cos(np.outer(x, omega)))


Window = CubicSpline | ExponentialSemicircle


@lru_cache(maxsize=1)
def _quadrature() -> tuple[Array, Array]:
    return np.polynomial.legendre.leggauss(100)
