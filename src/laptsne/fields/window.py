"""Windows by which the charge of a point is distributed among the nodes of a grid around it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from laptsne._runtime.compiled import inlined
from laptsne._runtime.typing import Array


@inlined
def spline_weights(t: float) -> tuple[float, float, float, float]:
    """Return the cubic B-splines of the four nodes around a point.

    The point lies at the distance t in [0, 1], in cells, from the second node.
    """
    s = 1 - t
    return s * s * s / 6, (3 * t * t * t - 6 * t * t + 4) / 6, (3 * s * s * s - 6 * s * s + 4) / 6, t * t * t / 6


@inlined
def spline_slopes(t: float) -> tuple[float, float, float, float]:
    """Return the derivatives of :func:`spline_weights` with respect to the position of the point."""
    s = 1 - t
    return -s * s / 2, (3 * t * t - 4 * t) / 2, (4 * s - 3 * s * s) / 2, t * t / 2


@inlined
def cubic_spline(t: float, weights: Array, slopes: Array) -> None:
    """Set :func:`spline_weights` and :func:`spline_slopes`."""
    weights[0], weights[1], weights[2], weights[3] = spline_weights(t)
    slopes[0], slopes[1], slopes[2], slopes[3] = spline_slopes(t)


@dataclass(frozen=True)
class CubicSpline:
    """The cubic B-spline, which is smooth enough for potentials."""

    width = 4

    def table(self, t: Array) -> tuple[Array, Array]:
        """Return weights and slopes, both of shape (len(t), width), for points at the distances t from their floor."""
        # The functions themselves, for all t at once: compiling them would take longer than their table.
        weights, slopes = (np.array(_plain(part)(t)) for part in (spline_weights, spline_slopes))
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


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a compiled function as Python runs it."""
    return getattr(function, "py_func", function)


@lru_cache(maxsize=1)
def _quadrature() -> tuple[Array, Array]:
    return np.polynomial.legendre.leggauss(100)
