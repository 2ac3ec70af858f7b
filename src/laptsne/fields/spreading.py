"""Spreading of charges on the nodes of a grid around each point, and interpolation of fields from them, by a window."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.typing import Array

_STEPS = 1024  # entries per cell of the tables of windows


@inlined
def spline_weights(t: float) -> tuple[float, float, float, float]:
    """Return the cubic B-splines of the four nodes around a point that is t in [0, 1] cells beyond the second."""
    s = 1 - t
    return s * s * s / 6, (3 * t * t * t - 6 * t * t + 4) / 6, (3 * s * s * s - 6 * s * s + 4) / 6, t * t * t / 6


@inlined
def spline_slopes(t: float) -> tuple[float, float, float, float]:
    """Return the derivatives of :func:`spline_weights` with respect to the position of the point."""
    s = 1 - t
    return -s * s / 2, (3 * t * t - 4 * t) / 2, (4 * s - 3 * s * s) / 2, t * t / 2


@dataclass(frozen=True)
class CubicSpline:
    """The cubic B-spline, which is smooth enough for potentials."""

    width = 4

    def table(self, t: Array) -> tuple[Array, Array]:
        """Return weights and slopes, of shape (len(t), width), for points at the distances t from their floor."""
        # As Python runs them, for all t at once: compiling them would take longer than their table.
        parts: tuple[Any, Any] = spline_weights, spline_slopes
        weights, slopes = (np.array(getattr(part, "py_func", part)(t)) for part in parts)
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
        node, weight = _quadrature(100)
        x = node * self.width / 2
        return np.asarray((self(x) * weight * self.width / 2) @ np.cos(np.outer(x, omega)))


Window = CubicSpline | ExponentialSemicircle
_quadrature = lru_cache(maxsize=1)(np.polynomial.legendre.leggauss)


@inlined
def _weigh(position: float, table: Array, weights: Array, width: int) -> int:
    """Set the weights of the nodes around a position, given in cells; return the first of these nodes."""
    cell = int(position)  # positions are not negative
    step = (position - cell) * _STEPS
    row = int(step)
    t = np.float32(step - row)
    lower, upper = table[row], table[row + 1]
    for a in range(width):
        weights[a] = lower[a] + t * (upper[a] - lower[a])
    return cell - (width // 2 - 1)


# The length of the tuple ``nodes`` is the width of the window: a constant of the compiled code, which unrolls loops.
@compiled
def spread_parts(
    start: int, stop: int, u: Array, table: Array, nodes: Any, charges: Array, edges: Array, grids: Array
) -> None:
    """Add the charges of each part of the points to its own grid, grids[field * n_parts + part]."""
    n_dims, n_parts, width = u.shape[0], edges.size - 1, len(nodes)
    w, first = np.ones((3, width), table.dtype), np.zeros(3, np.int64)
    wx, wy, wz = w
    for t in range(start, stop):
        charge = charges[t // n_parts]
        for i in range(edges[t % n_parts], edges[t % n_parts + 1]):
            for d in range(n_dims):
                first[d] = _weigh(u[d, i], table, w[d], width)
            x, y, z = first
            for c in range(width if n_dims > 2 else 1):
                for b in range(width if n_dims > 1 else 1):
                    q = charge[i] * wz[c] * wy[b]
                    line = grids[t, z + c, y + b, x : x + width]
                    for a in range(width):
                        line[a] += q * wx[a]


@compiled
def interpolate_rows(
    start: int, stop: int, u: Array, tables: Any, nodes: Any, grids: Array, own: Any, weights: Any, sums: Any
) -> None:
    """Set field[i, f] to the fields at the points, or to that of the ``own`` grid of each point alone.

    Add their gradients, multiplied by the weights, to gradient; there is none without weights.
    """
    n_dims, width, (table, slope_table), (field, gradient) = u.shape[0], len(nodes), tables, sums
    w, first = np.ones((3, width), table.dtype), np.zeros(3, np.int64)
    slopes, zero = np.zeros_like(w), table.dtype.type(0)
    (wx, wy, wz), (sx, sy, sz) = w, slopes
    for i in range(start, stop):
        for d in range(n_dims):
            first[d] = _weigh(u[d, i], table, w[d], width)
            _weigh(u[d, i], slope_table, slopes[d], width)
        x, y, z = first
        grid = 0 if own is None else own[i]
        for f in range(grids.shape[0] if own is None else 1):
            value = gx = gy = gz = zero
            for c in range(width if n_dims > 2 else 1):
                for b in range(width if n_dims > 1 else 1):
                    line = grids[grid + f, z + c, y + b, x : x + width]
                    s = t = zero
                    for a in range(width):
                        s += wx[a] * line[a]
                        if weights is not None:
                            t += sx[a] * line[a]
                    value += wz[c] * wy[b] * s
                    if weights is not None:
                        gx += wz[c] * wy[b] * t
                        gy += wz[c] * sy[b] * s
                        gz += sz[c] * wy[b] * s
            field[i, f] = value
            if weights is not None:
                sums = (gx, gy, gz)
                for d in range(n_dims):
                    gradient[i, d] += weights[f, i] * sums[d]


@lru_cache(maxsize=4)
def tables(window: Window) -> tuple[Array, Array]:
    """Return weights and slopes of the nodes around a point, one row per position of the point in its cell."""
    weights, slopes = window.table(np.arange(_STEPS + 1) / _STEPS)
    return np.ascontiguousarray(weights, dtype=np.float32), np.ascontiguousarray(slopes, dtype=np.float32)
