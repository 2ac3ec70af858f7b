r"""Sums over all pairs, computed pair by pair without storing any N x N matrix.

For a kernel :math:`k` with :math:`\nabla_i k_{ij} = -h_{ij} (y_i - y_j)`, a *field* of charges :math:`c` is
:math:`\varphi_c(y_i) = \sum_{j \ne i} c_j k_{ij}`. All that t-SNE and its contraction need of the map are
such fields and their gradients.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne.compiled import compiled, window
from laptsne.kernels import Kernel, Student
from laptsne.workers import Workers

# Sums over several charges go by tiles of one row by _TILE columns, whose buffer stays in the nearest cache,
# and take _WIDTH charges at a time, so that a number read from the buffer is used that often.
_TILE = 512
_WIDTH = 4


@compiled
def similarity(r2, a, b):  # type: ignore[no-untyped-def]
    """Return k and h at squared distance r2, where the gradient of k_ij is -h_ij (y_i - y_j).

    a and b are the precisions of the two points; None, None is the Student kernel.
    """
    one = type(r2)(1)
    half = type(r2)(0.5)
    if a is None:
        k = one / (one + r2)
        h = (k + k) * k
    else:
        ki = half * np.exp(-half * a * r2)
        kj = half * np.exp(-half * b * r2)
        k = ki + kj
        h = a * ki + b * kj
    return k, h


@compiled
def _unit_rows(start, stop, y0, y1, y2, precision, degrees, slope):  # type: ignore[no-untyped-def]
    """The field of unit charges and its gradient, in one pass."""
    n = y0.size
    zero = y0.dtype.type(0)
    for i in range(start, stop):
        x0 = y0[i]
        x1 = zero if y1 is None else y1[i]
        x2 = zero if y2 is None else y2[i]
        a = None if precision is None else precision[i]
        degree = s0 = s1 = s2 = zero
        for side in range(2):  # the points before i, then those after it
            lo, hi = (0, i) if side == 0 else (i + 1, n)
            z0, z1, z2 = window(y0, lo, hi), window(y1, lo, hi), window(y2, lo, hi)
            b = window(precision, lo, hi)
            for j in range(hi - lo):
                d0 = x0 - z0[j]
                d1 = zero if y1 is None else x1 - z1[j]
                d2 = zero if y2 is None else x2 - z2[j]
                k, h = similarity(d0 * d0 + d1 * d1 + d2 * d2, a, None if a is None else b[j])
                degree += k
                s0 += h * d0
                s1 += h * d1
                s2 += h * d2
        degrees[i] = degree
        slope[i, 0], slope[i, 1], slope[i, 2] = -s0, -s1, -s2


@compiled
def _value_rows(start, stop, y0, y1, y2, precision, charges, out):  # type: ignore[no-untyped-def]
    """Add the fields of several charges to out; the number of charges is a multiple of _WIDTH."""
    n = y0.size
    zero = y0.dtype.type(0)
    buffer = np.empty(_TILE, y0.dtype)
    for lo in range(0, n, _TILE):
        hi = min(lo + _TILE, n)
        tile = buffer[: hi - lo]
        z0, z1, z2 = window(y0, lo, hi), window(y1, lo, hi), window(y2, lo, hi)
        b = window(precision, lo, hi)
        for i in range(start, stop):
            x0 = y0[i]
            x1 = zero if y1 is None else y1[i]
            x2 = zero if y2 is None else y2[i]
            a = None if precision is None else precision[i]
            for j in range(tile.size):
                d0 = x0 - z0[j]
                d1 = zero if y1 is None else x1 - z1[j]
                d2 = zero if y2 is None else x2 - z2[j]
                tile[j], _ = similarity(d0 * d0 + d1 * d1 + d2 * d2, a, None if a is None else b[j])
            if lo <= i < hi:
                tile[i - lo] = 0
            for m in range(0, charges.shape[0], _WIDTH):
                c0, c1 = charges[m, lo:hi], charges[m + 1, lo:hi]
                c2, c3 = charges[m + 2, lo:hi], charges[m + 3, lo:hi]
                s0 = s1 = s2 = s3 = zero
                for j in range(tile.size):
                    s0 += tile[j] * c0[j]
                    s1 += tile[j] * c1[j]
                    s2 += tile[j] * c2[j]
                    s3 += tile[j] * c3[j]
                out[i, m] += s0
                out[i, m + 1] += s1
                out[i, m + 2] += s2
                out[i, m + 3] += s3


@compiled
def _gradient_rows(start, stop, y0, y1, y2, precision, weights, charges, out):  # type: ignore[no-untyped-def]
    """Add the gradients of several fields, each times a weight at the point, to out."""
    n = y0.size
    zero = y0.dtype.type(0)
    buffer = np.empty(_TILE, y0.dtype)
    for lo in range(0, n, _TILE):
        hi = min(lo + _TILE, n)
        tile = buffer[: hi - lo]
        z0, z1, z2 = window(y0, lo, hi), window(y1, lo, hi), window(y2, lo, hi)
        b = window(precision, lo, hi)
        for i in range(start, stop):
            tile[:] = 0
            for m in range(0, charges.shape[0], _WIDTH):
                c0, c1 = charges[m, lo:hi], charges[m + 1, lo:hi]
                c2, c3 = charges[m + 2, lo:hi], charges[m + 3, lo:hi]
                a0, a1, a2, a3 = weights[m, i], weights[m + 1, i], weights[m + 2, i], weights[m + 3, i]
                for j in range(tile.size):
                    tile[j] += a0 * c0[j] + a1 * c1[j] + a2 * c2[j] + a3 * c3[j]
            x0 = y0[i]
            x1 = zero if y1 is None else y1[i]
            x2 = zero if y2 is None else y2[i]
            a = None if precision is None else precision[i]
            s0 = s1 = s2 = zero
            for j in range(tile.size):
                d0 = x0 - z0[j]
                d1 = zero if y1 is None else x1 - z1[j]
                d2 = zero if y2 is None else x2 - z2[j]
                _, h = similarity(d0 * d0 + d1 * d1 + d2 * d2, a, None if a is None else b[j])
                h *= tile[j]
                s0 += h * d0
                s1 += h * d1
                s2 += h * d2
            out[i, 0] -= s0
            out[i, 1] -= s1
            out[i, 2] -= s2


class ExactFields:
    """Fields of the map ``Y``, exact up to rounding, in O(n_samples^2) time and O(n_samples) memory.

    Parameters
    ----------
    Y : array of shape (n_samples, n_components)
        The map, of 1 to 3 dimensions. Sums are computed in its precision and returned in double precision.
    kernel : Student or Gaussian, default=Student()
        The similarity of two points.
    workers : Workers, optional
        Threads to share the rows among.
    """

    def __init__(self, Y: NDArray[Any], kernel: Kernel | None = None, workers: Workers | None = None) -> None:
        self.n_samples, self.n_components = Y.shape
        self.workers = workers or Workers(1)
        y = np.ascontiguousarray((Y - Y.mean(axis=0)).T)
        self.dtype = y.dtype
        precision = (kernel or Student()).precision(self.n_samples, self.dtype)
        self.geometry = (*y, *[None] * (3 - self.n_components), precision)

    @cached_property
    def _unit(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        degrees = np.empty(self.n_samples)
        slope = np.empty((self.n_samples, 3))
        self._run(_unit_rows, degrees, slope, n_charges=1)
        return degrees, slope[:, : self.n_components]

    @property
    def degrees(self) -> NDArray[np.float64]:
        """The field of unit charges at every point, shape (n_samples,): the degrees of the map's graph."""
        return self._unit[0]

    @property
    def slope(self) -> NDArray[np.float64]:
        """The gradient of the field of unit charges, shape (n_samples, n_components)."""
        return self._unit[1]

    def values(self, charges: NDArray[np.float64]) -> NDArray[np.float64]:
        """Fields of the columns of ``charges``, shape (n_samples, n_charges)."""
        n_charges = charges.shape[1]
        rows = self._rows(charges)
        out = np.zeros(rows.shape[::-1])
        self._run(_value_rows, rows, out, n_charges=n_charges)
        return out[:, :n_charges]

    def weighted_gradient(
        self, weights: NDArray[np.float64], charges: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        r"""Return :math:`\sum_m a_{im} \nabla\varphi_{c_m}(y_i)`, shape (n_samples, n_components)."""
        out = np.zeros((self.n_samples, 3))
        self._run(_gradient_rows, self._rows(weights), self._rows(charges), out, n_charges=charges.shape[1])
        return out[:, : self.n_components]

    def _rows(self, columns: NDArray[np.float64]) -> NDArray[Any]:
        """Columns as contiguous rows, filled up with zeros to a multiple of _WIDTH."""
        n_columns = columns.shape[1]
        rows = np.zeros((-(-n_columns // _WIDTH) * _WIDTH, self.n_samples), self.dtype)
        rows[:n_columns] = columns.T
        return rows

    def _run(self, kernel: Any, *args: NDArray[Any], n_charges: int) -> None:
        work = float(self.n_samples) ** 2 * (1 + n_charges / 4)
        self.workers.rows(kernel, self.n_samples, *self.geometry, *args, work=work)
