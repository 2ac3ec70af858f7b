"""Forces for the steps of a descent in two dimensions, on a coarse grid with a narrow window.

A step needs less accuracy than a value that is reported: errors of forces by a few percent vary with the position of a
point in its cell. The grid is shifted from step to step, so that they average out. On a fixed grid, points would come
to rest at certain places in its cells.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.fields.base import Field
from laptsne.fields.chebyshev import MAX_SPAN, coupling
from laptsne.fields.fourier import FourierFields, box, transform_cells
from laptsne.fields.grid import convolved, n_cells
from laptsne.fields.window import CubicSpline, spline_slopes, spline_weights

# Spacing of the grid, and that of embeddings of a small span, which costs next to nothing (docs/performance.md has the
# errors of these and other spacings).
_SPACING, _SMALL_SPACING, _SMALL_SPAN = 0.6, 0.3, 30.0
# Shift of the grid per step, in cells: modulo 1, multiples of these fill the square evenly.
_SHIFT = np.array([0.7548776662466927, 0.5698402909980532])
_SPLINE = CubicSpline()
_TERMS = 10  # polynomials per axis while the embedding is small
_BLOCK = 64  # points for which these are computed together
_PARTS = 4  # of the points, summed one by one, so that bits do not depend on the number of threads
# Time of a grid, in that of a pair: fixed, per point, and per cell of a transform (benchmarks/sums.py).
_FIXED, _PER_POINT, _PER_CELL = 3e6, 200.0, 40.0


def is_fast(n_samples: int, n_transformed: float = 0.0) -> bool:
    """Whether a grid is faster than all pairs, given the number of cells of its transform."""
    return _FIXED + _PER_POINT * n_samples + _PER_CELL * n_transformed < float(n_samples) ** 2


@inlined
def _cell(y: float, low: float, high: float, spacing: float) -> tuple[int, float]:
    """Return the first of the four nodes around a coordinate, and the distance from the second, in cells."""
    u = (min(max(y, low), high) - low) / spacing
    cell = int(u)
    return cell, u - cell


@compiled
def _spread_parts(
    start: int, stop: int, y: Array, low: Array, high: Array, spacing: float, edges: Array, grids: Array
) -> None:
    """Add unit charges at the points of each part to its own grid."""
    single = grids.dtype.type
    for part in range(start, stop):
        grid = grids[part]
        for i in range(edges[part], edges[part + 1]):
            x0, t0 = _cell(y[0, i], low[0], high[0], spacing)
            x1, t1 = _cell(y[1, i], low[1], high[1], spacing)
            a0, a1, a2, a3 = spline_weights(t0)
            w0, w1, w2, w3 = single(a0), single(a1), single(a2), single(a3)
            b0, b1, b2, b3 = spline_weights(t1)
            for row, b in enumerate((b0, b1, b2, b3)):
                line, q = grid[x1 + row, x0 : x0 + 4], single(b)
                line[0] += q * w0
                line[1] += q * w1
                line[2] += q * w2
                line[3] += q * w3


@compiled
def _interpolate_rows(
    start: int,
    stop: int,
    y: Array,
    low: Array,
    high: Array,
    spacing: float,
    grid: Array,
    degrees: Array,
    slope: Array,
) -> None:
    """Set the degrees, without the point itself, and their gradient from the field of all points on the grid."""
    single, tiny = grid.dtype.type, np.finfo(np.float32).tiny
    for i in range(start, stop):
        x0, t0 = _cell(y[0, i], low[0], high[0], spacing)
        x1, t1 = _cell(y[1, i], low[1], high[1], spacing)
        a0, a1, a2, a3 = spline_weights(t0)
        s0, s1, s2, s3 = spline_slopes(t0)
        value = across = along = single(0)
        for row, (b, d) in enumerate(zip(spline_weights(t1), spline_slopes(t1))):  # noqa: B905
            line = grid[x1 + row, x0 : x0 + 4]
            v = single(a0) * line[0] + single(a1) * line[1] + single(a2) * line[2] + single(a3) * line[3]
            value += single(b) * v
            across += single(d) * v
            along += single(b) * (
                single(s0) * line[0] + single(s1) * line[1] + single(s2) * line[2] + single(s3) * line[3]
            )
        degrees[i] = max(value - 1, tiny)
        slope[i, 0] = along / spacing
        slope[i, 1] = across / spacing


@inlined
def _polynomials(y: Array, centre: float, half_span: float, basis: Array) -> None:
    """Set the first Chebyshev polynomials at the coordinates y."""
    for p in range(y.size):
        basis[0, p] = 1
        basis[1, p] = (y[p] - centre) / half_span
    for k in range(2, basis.shape[0]):
        for p in range(y.size):
            basis[k, p] = 2 * basis[1, p] * basis[k - 1, p] - basis[k - 2, p]


@inlined
def _derivatives(basis: Array, half_span: float, size: int, slopes: Array) -> None:
    """Set the derivatives of the polynomials: T'_k = 2 k T_(k-1) + k / (k - 2) T'_(k-2)."""
    for p in range(size):
        slopes[0, p] = 0
        slopes[1, p] = 1 / half_span
        slopes[2, p] = 4 * basis[1, p] / half_span
    for k in range(3, basis.shape[0]):
        for p in range(size):
            slopes[k, p] = 2 * k * basis[k - 1, p] / half_span + k / (k - 2) * slopes[k - 2, p]


@compiled
def _moment_parts(
    start: int, stop: int, y: Array, centre: Array, half_span: float, edges: Array, space: Array, moments: Array
) -> None:
    """Set the sums of the products of polynomials over the points of each part."""
    n_terms = moments.shape[1]
    for part in range(start, stop):
        first, second = space[part, 0], space[part, 1]
        for lo in range(edges[part], edges[part + 1], _BLOCK):
            hi = min(lo + _BLOCK, edges[part + 1])
            _polynomials(y[0, lo:hi], centre[0], half_span, first)
            _polynomials(y[1, lo:hi], centre[1], half_span, second)
            for a in range(n_terms):
                left = first[a, : hi - lo]
                for b in range(n_terms):
                    right, total = second[b, : hi - lo], 0.0
                    for p in range(hi - lo):
                        total += left[p] * right[p]
                    moments[part, a, b] += total


@compiled
def _evaluate_rows(
    start: int,
    stop: int,
    y: Array,
    centre: Array,
    half_span: float,
    coefficients: Array,
    degrees: Array,
    slope: Array,
) -> None:
    """Set the degrees, without the point itself, and their gradient from coefficients of the field of all points."""
    n_terms = coefficients.shape[0]
    first, second, slopes, other = np.empty((4, n_terms, _BLOCK))
    row, change = np.empty((2, _BLOCK))
    for lo in range(start, stop, _BLOCK):
        size = min(_BLOCK, stop - lo)
        _polynomials(y[0, lo : lo + size], centre[0], half_span, first)
        _polynomials(y[1, lo : lo + size], centre[1], half_span, second)
        _derivatives(first, half_span, size, slopes)
        _derivatives(second, half_span, size, other)
        for p in range(size):
            degrees[lo + p], slope[lo + p, 0], slope[lo + p, 1] = -1, 0, 0
        for b in range(n_terms):
            row[:], change[:] = 0, 0
            for a in range(n_terms):
                c, basis, derivative = coefficients[a, b], first[a], slopes[a]
                for p in range(_BLOCK):
                    row[p] += c * basis[p]
                    change[p] += c * derivative[p]
            for p in range(size):
                degrees[lo + p] += row[p] * second[b, p]
                slope[lo + p, 0] += change[p] * second[b, p]
                slope[lo + p, 1] += row[p] * other[b, p]


class CoarseFields(FourierFields):
    """Fields of an embedding in two dimensions, of which the degrees and their gradient are those for a step.

    Charges are spread by cubic B-splines on a grid with a spacing of 0.6, or 0.3 for spans below 30. While the span is
    below 2, the kernel is expanded in 10 Chebyshev polynomials per axis.

    Parameters
    ----------
    Y : array of shape (n_samples, 2)
        The embedding.
    workers : Workers, optional
        Threads.
    step : int
        Number of the step, on which the position of the grid depends.
    """

    def __init__(self, Y: NDArray[np.float64], workers: Workers | None = None, step: int = 0) -> None:
        super().__init__(Y, workers)
        self._low, self._high = box(self._y, _SPACING)
        sides = self._high - self._low
        self._span = float(sides.max())
        self._spacing = _SPACING if self._span > _SMALL_SPAN else _SMALL_SPACING
        # One more cell, so that the size of the grid does not depend on the shift.
        self._cells = tuple(n_cells(float(side) + self._spacing, self._spacing, _SPLINE.width) for side in sides)
        if self._span > MAX_SPAN:
            self._low = self._low - self._spacing * (step * _SHIFT % 1)
        self._edges = np.linspace(0, self.n_samples, _PARTS + 1).astype(np.int64)

    @property
    def is_fast(self) -> bool:
        """Whether the grid is faster than all pairs."""
        return is_fast(self.n_samples, transform_cells(self._cells, self._spacing))

    @cached_property
    def accurate(self) -> FourierFields:
        """The same fields on a finer grid."""
        return FourierFields(self.Y, self.workers)

    def _compute_unit(self) -> tuple[Field, Field]:
        degrees, slope = np.empty(self.n_samples), np.empty((self.n_samples, 2))
        if self._span <= MAX_SPAN:
            self._expand(degrees, slope)
        else:
            self._convolve(degrees, slope)
        return degrees, slope

    def _convolve(self, degrees: Field, slope: Field) -> None:
        geometry = (self._y, self._low, self._high, self._spacing)
        grids = np.zeros((_PARTS, *reversed(self._cells)), np.float32)
        work = 40.0 * self.n_samples
        self.workers.rows(_spread_parts, _PARTS, *geometry, self._edges, grids, work=work, alignment=1)
        grid = convolved(grids.sum(axis=0, keepdims=True), self._spacing, _SPLINE, self.workers)[0]
        self.workers.rows(_interpolate_rows, self.n_samples, *geometry, grid, degrees, slope, work=2 * work)

    def _expand(self, degrees: Field, slope: Field) -> None:
        centre = (self._low + self._high) / 2
        # A power of two, so that the coefficients of a growing embedding are often those of the previous iteration.
        half_span = float(2.0 ** np.ceil(np.log2(max(self._span / 2, 1e-6))))
        geometry = (self._y, centre, half_span)
        moments, space = np.zeros((_PARTS, _TERMS, _TERMS)), np.empty((_PARTS, 2, _TERMS, _BLOCK))
        work = float(_TERMS**2 * self.n_samples)
        args = (*geometry, self._edges, space, moments)
        self.workers.rows(_moment_parts, _PARTS, *args, work=work, alignment=1)
        coefficients = (coupling(half_span, 2, _TERMS) @ moments.sum(axis=0).ravel()).reshape(_TERMS, _TERMS)
        args = (*geometry, coefficients, degrees, slope)
        self.workers.rows(_evaluate_rows, self.n_samples, *args, work=2 * work)
