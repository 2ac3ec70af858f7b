"""The interface of fields, and fields summed over all pairs, without storing any N x N matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np

from laptsne._runtime.compiled import compiled, inlined, window
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array, Floats
from laptsne.kernels import Kernel, Student, similarity

# Pairs are processed in tiles of _ROWS by _COLUMNS, which fit into the L1 cache, and charges four at a time, so that
# each number loaded is used four times.
_ROWS = 4
_COLUMNS = 512


class Fields(ABC):
    r"""Fields of charges on the points of an embedding :math:`Y`, and their gradients.

    The field of charges :math:`c` is :math:`\varphi_c(y_i) = \sum_{j \ne i} c_j w_{ij}`, with the similarities
    :math:`w_{ij}` of the embedding. t-SNE and its contraction need only such fields and their gradients.
    """

    geometry: tuple[Any, ...]  # three arrays of coordinates and the precision of the kernel, or None instead

    def __init__(self, Y: Array, workers: Workers | None) -> None:
        self.n_samples, self.n_components = Y.shape
        self.Y, self.workers = Y, workers or Workers(1)

    @property
    def degrees(self) -> Floats:
        """Field of unit charges, shape (n_samples,): the degrees of the embedding's graph."""
        return self._unit[0]

    @property
    def slope(self) -> Floats:
        """Gradient of the field of unit charges, shape (n_samples, n_components)."""
        return self._unit[1]

    @property
    def accurate(self) -> Fields:
        """Fields of the same embedding that are accurate enough to be reported."""
        return self

    @cached_property
    def _unit(self) -> tuple[Floats, Floats]:
        return self._compute_unit()

    @abstractmethod
    def _compute_unit(self) -> tuple[Floats, Floats]:
        """Compute degrees and slope."""

    @abstractmethod
    def values(self, charges: Floats) -> Floats:
        """Return the fields of the columns of ``charges``, shape (n_samples, n_charges)."""

    @abstractmethod
    def weighted_gradient(self, weights: Floats, charges: Floats) -> Floats:
        r"""Return :math:`\sum_m a_{im} \nabla\varphi_{c_m}(y_i)` for weights :math:`a` and charges :math:`c`."""


@inlined
def _mix_tile(weights: Array, charges: Array, i: int, tile: Array) -> None:
    """Set tile[r, j] to the sum over m of weights[i + r, m] charges[m, j]; tile and charges are flat."""
    c = _COLUMNS
    tile[:] = 0
    for m in range(0, weights.shape[1], 4):
        q = charges[m * c : (m + 4) * c]
        a0, a1, a2, a3 = weights[i, m : m + 4]
        b0, b1, b2, b3 = weights[i + 1, m : m + 4]
        d0, d1, d2, d3 = weights[i + 2, m : m + 4]
        e0, e1, e2, e3 = weights[i + 3, m : m + 4]
        for j in range(c):
            q0, q1, q2, q3 = q[j], q[j + c], q[j + 2 * c], q[j + 3 * c]
            tile[j] += a0 * q0 + a1 * q1 + a2 * q2 + a3 * q3
            tile[j + c] += b0 * q0 + b1 * q1 + b2 * q2 + b3 * q3
            tile[j + 2 * c] += d0 * q0 + d1 * q1 + d2 * q2 + d3 * q3
            tile[j + 3 * c] += e0 * q0 + e1 * q1 + e2 * q2 + e3 * q3


@inlined
def _sum_tile(tile: Array, charges: Array, i: int, out: Array) -> None:
    """Add to out[i + r, m] the sum over j of tile[r, j] charges[m, j]; tile and charges are flat."""
    c = _COLUMNS
    for m in range(0, out.shape[1], 2):
        q = charges[m * c : (m + 2) * c]
        a0 = a1 = b0 = b1 = d0 = d1 = e0 = e1 = tile.dtype.type(0)
        for j in range(c):
            q0, q1 = q[j], q[j + c]
            a0 += tile[j] * q0
            a1 += tile[j] * q1
            b0 += tile[j + c] * q0
            b1 += tile[j + c] * q1
            d0 += tile[j + 2 * c] * q0
            d1 += tile[j + 2 * c] * q1
            e0 += tile[j + 3 * c] * q0
            e1 += tile[j + 3 * c] * q1
        for r, (first, second) in enumerate(((a0, a1), (b0, b1), (d0, d1), (e0, e1))):
            out[i + r, m] += first
            out[i + r, m + 1] += second


@compiled
def _value_rows(
    start: int, stop: int, y0: Array, y1: Any, y2: Any, precision: Any, rows: Any, charges: Array, out: Array
) -> None:
    """Add the fields of the charges to out, at all points or at ``rows``."""
    n, zero = y0.size, y0.dtype.type(0)
    tile = np.zeros(_ROWS * _COLUMNS, y0.dtype)
    for lo in range(0, n, _COLUMNS):
        hi = min(lo + _COLUMNS, n)
        z0, z1, z2 = window(y0, lo, hi), window(y1, lo, hi), window(y2, lo, hi)
        for block in range(start, stop, _ROWS):
            for i in range(block, min(block + _ROWS, stop)):
                own = i if rows is None else rows[i]
                x0 = y0[own]
                x1 = zero if y1 is None else y1[own]
                x2 = zero if y2 is None else y2[own]
                row = tile[(i - block) * _COLUMNS : (i - block) * _COLUMNS + hi - lo]
                for j in range(hi - lo):
                    d0 = x0 - z0[j]
                    d1 = zero if y1 is None else x1 - z1[j]
                    d2 = zero if y2 is None else x2 - z2[j]
                    row[j], _ = similarity(d0 * d0 + d1 * d1 + d2 * d2, precision)
                if lo <= own < hi:
                    row[own - lo] = 0
            _sum_tile(tile, charges[lo // _COLUMNS], block, out)


@compiled
def _gradient_rows(
    start: int, stop: int, y0: Array, y1: Any, y2: Any, precision: Any, rows: Any, weights: Any, charges: Any, sums: Any
) -> None:
    """Add the field of unit charges to degrees and its gradient to slope, at all points or at ``rows``.

    If charges are given, add the gradients of their fields, multiplied by the weights of the point, to weighted.
    """
    (degrees, slope, weighted), n, zero = sums, y0.size, y0.dtype.type(0)
    tile = np.empty(_ROWS * _COLUMNS, y0.dtype)
    for lo in range(0, n, _COLUMNS):
        hi = min(lo + _COLUMNS, n)
        for block in range(start, stop, _ROWS):
            if charges is not None and weights is not None:
                _mix_tile(weights, charges[lo // _COLUMNS], block, tile)
            for i in range(block, min(block + _ROWS, stop)):
                own = i if rows is None else rows[i]
                x0 = y0[own]
                x1 = zero if y1 is None else y1[own]
                x2 = zero if y2 is None else y2[own]
                degree = s0 = s1 = s2 = w0 = w1 = w2 = zero
                # Split the tile at the point itself: a test inside the loop would cost a third more.
                cut = own if lo <= own < hi else hi
                for first, last in ((lo, cut), (cut + 1, hi)):
                    z0, z1, z2 = window(y0, first, last), window(y1, first, last), window(y2, first, last)
                    row = tile[(i - block) * _COLUMNS + first - lo : (i - block + 1) * _COLUMNS]
                    for j in range(last - first):
                        d0 = x0 - z0[j]
                        d1 = zero if y1 is None else x1 - z1[j]
                        d2 = zero if y2 is None else x2 - z2[j]
                        k, h = similarity(d0 * d0 + d1 * d1 + d2 * d2, precision)
                        degree += k
                        s0 += h * d0
                        s1 += h * d1
                        s2 += h * d2
                        if charges is not None:
                            h *= row[j]
                            w0 += h * d0
                            w1 += h * d1
                            w2 += h * d2
                degrees[i] += degree
                for d, (s, w) in enumerate(((s0, w0), (s1, w1), (s2, w2))):
                    slope[i, d] -= s
                    weighted[i, d] -= w


class ExactFields(Fields):
    """Fields of an embedding of 1 to 3 dimensions, exact up to rounding, in quadratic time and linear memory.

    Sums are computed in the precision of the embedding and returned in double precision. With ``rows``, fields are
    computed at these points only, one row of each result per entry.
    """

    def __init__(
        self, Y: Array, kernel: Kernel | None = None, workers: Workers | None = None, rows: Array | None = None
    ) -> None:
        super().__init__(Y, workers)
        self.rows, self._n_rows = rows, self.n_samples if rows is None else len(rows)
        y = np.ascontiguousarray((Y - Y.mean(axis=0)).T)
        self.dtype = y.dtype
        precision = (kernel or Student()).precision
        self.geometry = (*y, *[None] * (3 - self.n_components), precision and self.dtype.type(precision))

    def values(self, charges: Floats) -> Floats:
        out = np.zeros((_padded(self._n_rows), _padded(charges.shape[1])))
        self._run(_value_rows, self._tiled(charges), out)
        return out[: self._n_rows, : charges.shape[1]]

    def weighted_gradient(self, weights: Floats, charges: Floats) -> Floats:
        padded = np.zeros((_padded(self._n_rows), _padded(weights.shape[1])), self.dtype)
        padded[: self._n_rows, : weights.shape[1]] = weights
        return self._gradients(padded, self._tiled(charges))

    def _compute_unit(self) -> tuple[Floats, Floats]:
        self._gradients(None, None)
        return self._unit

    def _gradients(self, weights: Array | None, charges: Array | None) -> Floats:
        """Return weighted gradients; keep the field of unit charges, which comes with them."""
        degrees = np.zeros(self._n_rows)
        slope, weighted = np.zeros((2, self._n_rows, 3))
        self._run(_gradient_rows, weights, charges, (degrees, slope, weighted))
        self._unit = degrees, slope[:, : self.n_components]
        return weighted[:, : self.n_components]

    def _tiled(self, charges: Floats) -> Array:
        """Return the charges tile by tile of the points, as the kernels take them."""
        n_tiles, n_charges = -(-self.n_samples // _COLUMNS), _padded(charges.shape[1])
        lines = np.zeros((n_charges, n_tiles * _COLUMNS), self.dtype)
        lines[: charges.shape[1], : self.n_samples] = charges.T
        return lines.reshape(n_charges, n_tiles, _COLUMNS).transpose(1, 0, 2).reshape(n_tiles, -1)

    def _run(self, kernel: Any, *args: Any) -> None:
        work = float(self._n_rows) * self.n_samples
        self.workers.rows(kernel, self._n_rows, *self.geometry, self.rows, *args, work=work)


def _padded(size: int) -> int:
    """Round up to a multiple of the number of rows of a tile."""
    return -(-size // _ROWS) * _ROWS
