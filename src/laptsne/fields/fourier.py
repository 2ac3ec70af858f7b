"""Fields in linear time: charges are spread on a grid, convolved with the kernel by FFT, and interpolated.

In the first iterations of t-SNE the embedding is tiny, and forces are small differences of large sums, which a grid in
single precision would lose in rounding. Such fields are computed in double precision, by Chebyshev interpolation of the
kernel.

The gradient is interpolated with the derivative of the window, so that a field and its gradient share one pair of
transforms. In two dimensions, steps of a descent have a coarser grid (:class:`CoarseFields`).
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array, Floats
from laptsne.fields.exact import Fields
from laptsne.fields.grid import SPLINE, STUDENT, Mesh, bulk_box, sides
from laptsne.fields.spreading import ExponentialSemicircle, spline_slopes, spline_weights

SPACING = 0.35
_WINDOW = ExponentialSemicircle(8, 1.9 * 8)
_BATCH_CELLS, _MAX_BATCH = 1 << 26, 16  # cells and fields up to which fields are transformed together
_MAX_CELLS = 1 << 28  # of a transform
_SMALL_GRID = 1 << 22  # cells up to which grids are always fast enough; beyond, pairs are faster if they are fewer
_CELLS_PER_POINT = 32  # beyond which stray points are left out of the box; embeddings have about 5
# Of the grid of a step, and that of embeddings of a small span, which costs next to nothing (docs/notes/
# performance-what-was-tried.md has the errors of these and other spacings).
_COARSE_SPACING, _SMALL_SPACING, _SMALL_SPAN = 0.6, 0.3, 30.0
_COARSE_TERMS = 10  # polynomials per axis of a step while the embedding is small
# Shift of the grid per step, in cells: modulo 1, multiples of these fill the square evenly.
_SHIFT = np.array([0.7548776662466927, 0.5698402909980532])
_PARTS = 4  # of the points, summed one by one, so that bits do not depend on the number of threads
# Of embeddings whose kernel is interpolated: larger spans would need too many terms, and a grid is accurate enough.
_MAX_SPAN = 2.0
TERMS = 14  # polynomials per axis
_BLOCK = 64  # points for which these are computed together
# Time of a grid, in that of a pair: fixed, per point, and per cell of a transform (benchmarks/sums.py).
_FIXED, _PER_POINT, _PER_CELL = 3e6, 200.0, 40.0


def _max_cells(n_samples: int) -> int:
    return max(_CELLS_PER_POINT * n_samples, _SMALL_GRID // 4)


def _mesh(y: Floats, workers: Workers) -> Mesh:
    return Mesh.bounding(y, SPACING, workers, STUDENT, _WINDOW, _max_cells(y.shape[1]))


def grid_fits(Y: Floats) -> bool:
    """Return whether the grid of an embedding is small enough, and faster than all pairs."""
    n_transformed = _mesh(np.ascontiguousarray(Y.T), Workers(1)).n_transformed
    return n_transformed <= min(max(len(Y) ** 2, _SMALL_GRID), _MAX_CELLS)


def is_feasible(Y: Floats, largest: float) -> bool:
    """Return whether fields take a reasonable time, which the largest absolute coordinate usually suffices to tell."""
    if len(Y) ** 2 <= _MAX_CELLS or (4 * largest / SPACING + 2 * _WINDOW.width) ** Y.shape[1] < _MAX_CELLS / 2:
        return True
    return _mesh(np.ascontiguousarray(Y.T), Workers(1)).n_transformed <= _MAX_CELLS


class FourierFields(Fields):
    """Fields of an embedding of 1 to 3 dimensions with the Student kernel, in time and memory linear in the area."""

    def __init__(self, Y: Floats, workers: Workers | None = None) -> None:
        super().__init__(Y, workers)
        # One row per coordinate: reductions over short rows are slow.
        y = np.array(Y.T, dtype=np.float64, order="C")
        y -= y.mean(axis=1, keepdims=True)
        self.geometry = (*y.astype(np.float32), *[None] * (3 - self.n_components), None)
        self._y, self._is_small = y, float(np.ptp(y, axis=1).max()) <= _MAX_SPAN

    @cached_property
    def mesh(self) -> Mesh:
        """The mesh around the embedding."""
        return _mesh(self._y, self.workers)

    def values(self, charges: Floats) -> Floats:
        return self._fields(charges, None)[0]

    def weighted_gradient(self, weights: Floats, charges: Floats) -> Floats:
        return self._fields(charges, weights)[1]

    def _compute_unit(self) -> tuple[Floats, Floats]:
        ones = np.ones((self.n_samples, 1))
        field, gradient = self._fields(ones, ones)
        return np.maximum(field[:, 0], np.finfo(np.float32).tiny), gradient

    def _fields(self, charges: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
        """Return the fields of the charges, without the points' own, and the weighted sum of their gradients."""
        if self._is_small:
            return expanded_fields(self._y, charges, weights, self.workers)
        mesh, field, gradient = self.mesh, np.empty(charges.shape), np.zeros(self.Y.shape)
        batch = min(max(_BATCH_CELLS // int(2 ** len(mesh.cells) * np.prod(mesh.cells)), 1), _MAX_BATCH)
        for start in range(0, charges.shape[1], batch):
            columns = slice(start, start + batch)
            lines = None if weights is None else _lines(weights[:, columns])
            grids = mesh.field(self._y, _lines(charges[:, columns]))
            field[:, columns], part = mesh.with_gradient(self._y, grids, lines)
            gradient += part
        field -= charges  # on the grid a point interacts with itself, with similarity 1
        return field, gradient / SPACING


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
def _moment_parts(start: int, stop: int, geometry: Any, charges: Array, edges: Array, moments: Array) -> None:
    """Set the sums of charge times product of polynomials over the points of each part: moments[part, field, z, x, y].

    Axes that the embedding lacks have a single polynomial, 1.
    """
    y, centre, half_span = geometry
    n_dims, n_terms = y.shape[0], moments.shape[3]
    bases = np.ones((3, n_terms, _BLOCK))
    outer, left = np.empty((2, _BLOCK))
    for part in range(start, stop):
        for lo in range(edges[part], edges[part + 1], _BLOCK):
            size = min(_BLOCK, edges[part + 1] - lo)
            for d in range(n_dims):
                _polynomials(y[d, lo : lo + size], centre[d], half_span, bases[d])
            for f in range(charges.shape[0]):
                for c in range(moments.shape[2]):
                    for p in range(size):
                        outer[p] = charges[f, lo + p] * bases[2, c, p]
                    for a in range(n_terms):
                        basis = bases[0, a]
                        for p in range(size):
                            left[p] = outer[p] * basis[p]
                        for b in range(moments.shape[4]):
                            right, total = bases[1, b], 0.0
                            for p in range(size):
                                total += left[p] * right[p]
                            moments[part, f, c, a, b] += total


@compiled
def _evaluate_rows(
    start: int, stop: int, geometry: Any, coefficients: Array, charges: Array, weights: Any, field: Any, gradient: Any
) -> None:
    """Set field[i, f] to the fields without the point itself, and add their weighted gradients to gradient."""
    y, centre, half_span = geometry
    n_dims, n_terms = y.shape[0], coefficients.shape[2]
    bases, slopes = np.ones((3, n_terms, _BLOCK)), np.zeros((3, n_terms, _BLOCK))
    (row, change, value), g = np.empty((3, _BLOCK)), np.empty((3, _BLOCK))
    g0, g1, g2 = g
    for lo in range(start, stop, _BLOCK):
        size = min(_BLOCK, stop - lo)
        for d in range(n_dims):
            _polynomials(y[d, lo : lo + size], centre[d], half_span, bases[d])
            _derivatives(bases[d], half_span, size, slopes[d])
        for f in range(coefficients.shape[0]):
            g[:] = 0
            for p in range(size):
                value[p] = -charges[f, lo + p]
            for c in range(coefficients.shape[1]):
                outer, outer_slope = bases[2, c], slopes[2, c]
                for b in range(coefficients.shape[3]):
                    row[:], change[:] = 0, 0
                    for a in range(n_terms):
                        q, basis, derivative = coefficients[f, c, a, b], bases[0, a], slopes[0, a]
                        for p in range(_BLOCK):
                            row[p] += q * basis[p]
                            change[p] += q * derivative[p]
                    basis, derivative = bases[1, b], slopes[1, b]
                    for p in range(size):
                        value[p] += row[p] * basis[p] * outer[p]
                        g0[p] += change[p] * basis[p] * outer[p]
                        g1[p] += row[p] * derivative[p] * outer[p]
                        g2[p] += row[p] * basis[p] * outer_slope[p]
            for p in range(size):
                field[lo + p, f] = value[p]
                if weights is not None:
                    for d in range(n_dims):
                        gradient[lo + p, d] += weights[f, lo + p] * g[d, p]


def expanded_fields(
    y: Array, charges: Floats, weights: Floats | None, workers: Workers, n_terms: int = TERMS
) -> tuple[Floats, Floats]:
    r"""Return the fields of charges at points of shape (n_dims, n_samples), without the points' own.

    In a box around them, :math:`k(x - y) = \sum_{ab} A_{ab} T_a(x) T_b(y)`, where :math:`T_a` are products of Chebyshev
    polynomials. The second array is the weighted sum of the gradients of the fields.
    """
    (n_dims, n), n_fields = y.shape, charges.shape[1]
    low, high = y.min(axis=1), y.max(axis=1)
    # A power of two, so that the coefficients of a growing embedding are often those of the previous iteration.
    half_span = float(2.0 ** np.ceil(np.log2(max(float((high - low).max()) / 2, 1e-6))))
    geometry = (y, (low + high) / 2, half_span)
    lines, factors = (None if columns is None else np.ascontiguousarray(columns.T) for columns in (charges, weights))
    edges = np.linspace(0, n, _PARTS + 1).astype(np.int64)
    shape = (n_terms if n_dims > 2 else 1, n_terms, n_terms if n_dims > 1 else 1)
    moments = np.zeros((_PARTS, n_fields, *shape))
    work = float(np.prod(shape)) * n * n_fields
    workers.rows(_moment_parts, _PARTS, geometry, lines, edges, moments, work=work, alignment=1)
    # One by one: the bits of a product of matrices depend on their shape.
    matrix = coupling(half_span, n_dims, n_terms)
    sums = moments.sum(axis=0).reshape(n_fields, -1)
    coefficients = np.stack([matrix @ part for part in sums]).reshape(n_fields, *shape)
    field, gradient = np.empty((n, n_fields)), np.zeros((n, n_dims))
    workers.rows(_evaluate_rows, n, geometry, coefficients, lines, factors, field, gradient, work=2 * work)
    return field, gradient


@lru_cache(maxsize=1)  # they are large, and an embedding grows slowly
def coupling(half_span: float, n_dims: int, n_terms: int = TERMS) -> Array:
    """Return the coefficients of the Student kernel in the polynomials of both points, of shape (terms, terms)."""
    node = np.cos(np.pi * (np.arange(n_terms) + 0.5) / n_terms)
    transform = np.polynomial.chebyshev.chebvander(node, n_terms - 1).T * (2 / n_terms)
    transform[0] /= 2
    squared = (half_span * (node[:, None] - node)) ** 2
    r2: Any = 0.0
    for d in range(n_dims):  # axis d is that of the first point, axis n_dims + d that of the second
        others = [e for e in range(2 * n_dims) if e not in (d, n_dims + d)]
        r2 = r2 + np.expand_dims(squared, tuple(others))
    coefficients = STUDENT(r2)
    del r2  # 60 MB in 3-D
    for _ in range(2 * n_dims):  # the last axis becomes the first: after one turn, all are transformed and in order
        coefficients = np.moveaxis(coefficients @ transform.T, -1, 0)
    return np.ascontiguousarray(coefficients).reshape(n_terms**n_dims, n_terms**n_dims)


def _lines(columns: Array) -> Array:
    return np.ascontiguousarray(columns.T, dtype=np.float32)


# Steps take most of the time of a fit, and have kernels of their own: for two dimensions and one field, with splines
# evaluated rather than tabulated, and with the loop over four nodes written out.
@inlined
def _cell(y: float, low: float, high: float, spacing: float) -> tuple[int, float]:
    """Return the first of the four nodes around a coordinate, and the distance from the second, in cells."""
    u = (min(max(y, low), high) - low) / spacing
    cell = int(u)
    return cell, u - cell


@compiled
def _spread_parts(start: int, stop: int, geometry: Any, edges: Array, grids: Array) -> None:
    """Add unit charges at the points of each part to its own grid."""
    (y, low, high, spacing), single = geometry, grids.dtype.type
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
def _interpolate_rows(start: int, stop: int, geometry: Any, grid: Array, degrees: Array, slope: Array) -> None:
    """Set the degrees, without the point itself, and their gradient from the field of all points on the grid."""
    (y, low, high, spacing), single, tiny = geometry, grid.dtype.type, np.finfo(np.float32).tiny
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


class CoarseFields(FourierFields):
    """Forces for the steps of a descent in two dimensions, on a coarse grid with a narrow window.

    A step needs less accuracy than a value that is reported: errors of forces by a few percent vary with the position
    of a point in its cell. The grid is shifted from step to step, so that they average out. On a fixed grid, points
    would come to rest at certain places in its cells. Only ``degrees`` and ``slope`` are computed on it.
    """

    def __init__(self, Y: Floats, workers: Workers | None = None, step: int = 0) -> None:
        super().__init__(Y, workers)
        low, self._high = bulk_box(self._y, _COARSE_SPACING, _max_cells(self.n_samples))
        extents = self._high - low
        spacing = _COARSE_SPACING if extents.max() > _SMALL_SPAN else _SMALL_SPACING
        # One more cell, so that the size of the grid does not depend on the shift.
        cells = sides(extents + spacing, spacing, SPLINE.width)
        self.grid = Mesh(low - spacing * (step * _SHIFT % 1), spacing, cells, self.workers)

    @property
    def is_fast(self) -> bool:
        """Whether the grid is faster than all pairs."""
        time = _FIXED + _PER_POINT * self.n_samples + _PER_CELL * self.grid.n_transformed
        return bool(time < self.n_samples**2)

    @cached_property
    def accurate(self) -> FourierFields:
        """The same fields on a finer grid."""
        return FourierFields(self.Y, self.workers)

    def _compute_unit(self) -> tuple[Floats, Floats]:
        if self._is_small:
            ones = np.ones((self.n_samples, 1))
            field, gradient = expanded_fields(self._y, ones, ones, self.workers, _COARSE_TERMS)
            return field[:, 0], gradient
        mesh, degrees, slope = self.grid, np.empty(self.n_samples), np.empty((self.n_samples, 2))
        geometry = (self._y, mesh.origin, self._high, mesh.spacing)
        edges = np.linspace(0, self.n_samples, _PARTS + 1).astype(np.int64)
        grids = np.zeros((_PARTS, *reversed(mesh.cells)), np.float32)
        work = 40.0 * self.n_samples
        self.workers.rows(_spread_parts, _PARTS, geometry, edges, grids, work=work, alignment=1)
        grid = mesh.convolved(grids.sum(axis=0, keepdims=True))[0]
        self.workers.rows(_interpolate_rows, self.n_samples, geometry, grid, degrees, slope, work=2 * work)
        return degrees, slope
