"""Repulsion of all pairs of points under the kernel of UMAP, exactly or on a grid with a near part.

The near part is summed over pairs of points that are closer than a cutoff, found in a grid of cells.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from laptsne._runtime.compiled import compiled
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.fields.grid import Mesh, bulk_box
from laptsne.fields.spreading import ExponentialSemicircle
from laptsne.fields.umap_kernel import SOFTENING, FarRepulsion, UmapKernel

_MAX_NEAR_CELLS = 1 << 24
_WINDOW = ExponentialSemicircle(6, 2.7 * 6)
_SPACING = {1: 0.5, 2: 0.5, 3: 0.3}  # of the grid, in cutoffs, by dimension
# Limit on the cells of the grid per point, and bounds of this limit; the lower one by dimension.
CELLS_PER_POINT = 4
_MIN_CELLS, MAX_CELLS = {1: 1 << 16, 2: 1 << 16, 3: 1 << 20}, 1 << 23
_TABLE = 4096  # entries of the tables of the near part
# Mean number of neighbours within the cutoff of the near part, by dimension. The cutoff lies between bounds and changes
# by factors of 2^(1/4), so that successive embeddings share the spectrum of the kernel.
_N_NEAR = {1: 64, 2: 40, 3: 500}
_MIN_CUTOFF, _MAX_CUTOFF = 0.03, 2.0
_COARSE = 0.25  # size of the cells in which points are counted for that
# While the embedding is so dense that there are more neighbours, as at the beginning, the near part is left out.
_MAX_NEAR = 16  # times the number above
_BALL = {1: 2.0, 2: np.pi, 3: 4 / 3 * np.pi}  # volume of the unit ball


class Repulsion(NamedTuple):
    """Sums over the other points j: of (q_i + q_j) V(r_ij), or None, and its gradient with V alone differentiated."""

    value: Array | None  # shape (n_samples,)
    gradient: Array  # shape (n_samples, n_components)


@compiled
def _pair_rows(start: int, stop: int, y: Array, q: Array, kernel: Any, value: Array | None, gradient: Array) -> None:
    """Set value and gradient of the rows by sums over all points."""
    (a, b, bound, bend), (n_dims, n) = kernel, y.shape
    for i in range(start, stop):
        gradient[i] = 0
        total = 0.0
        for j in range(n):
            if j != i:
                s = SOFTENING
                for d in range(n_dims):
                    s += (y[d, i] - y[d, j]) ** 2
                power = a * max(s, bend) ** b
                weight = q[i] + q[j]
                slope = b / (s * (1 + power)) if s > bend else bound / (2 * np.sqrt(s))
                for d in range(n_dims):
                    gradient[i, d] -= 2 * weight * slope * (y[d, i] - y[d, j])
                if value is not None:
                    total += weight * (np.log1p(1 / power) + bound * max(np.sqrt(bend) - np.sqrt(s), 0.0))
        if value is not None:
            value[i] = total


def pair_repulsion(y: Array, q: Array, kernel: UmapKernel, workers: Workers, *, with_value: bool = False) -> Repulsion:
    """Return the repulsion by sums over all pairs, for points of shape (n_components, n_samples) and charges q."""
    n_dims, n = y.shape
    value, gradient = np.empty(n) if with_value else None, np.empty((n, n_dims))
    shape = (kernel.a, kernel.b, kernel.bound, kernel.bend)
    workers.rows(_pair_rows, n, y, q, shape, value, gradient, work=20.0 * n * n)
    return Repulsion(value, gradient)


def grid_repulsion(y: Array, q: Array, kernel: UmapKernel, workers: Workers, *, with_value: bool = False) -> Repulsion:
    """Return the same in nearly linear time: the smooth part of the kernel on a grid, the rest over near pairs."""
    cutoff, n_near = _cutoff(y)
    far = FarRepulsion(kernel, cutoff)
    gradient, value = _far_sums(y, q, far, workers)
    sums = Repulsion(value if with_value else None, gradient)
    if n_near <= _MAX_NEAR * _N_NEAR[len(y)]:
        add_near_sums(sorted_into_cells(y, cutoff), q, cutoff, far.near_tables(_TABLE), sums, workers)
    return sums


def _far_sums(y: Array, q: Array, far: FarRepulsion, workers: Workers) -> tuple[Array, Array]:
    """Return the gradient and the value of the far part."""
    mesh = Mesh.bounding(y, _SPACING[len(y)] * far.width, workers, far, _WINDOW, _max_cells(*y.shape))
    charges = np.stack([np.ones_like(q), q]).astype(np.float32)
    fields, gradient = mesh.with_gradient(y, mesh.field(y, charges), charges[::-1].copy())
    itself = float(far(np.zeros(1))[0])
    return gradient / mesh.spacing, q * (fields[:, 0] - itself) + fields[:, 1] - q * itself


def _max_cells(n_dims: int, n_samples: int) -> int:
    """Return the largest number of cells of the grid, without its margins."""
    return min(max(CELLS_PER_POINT * n_samples, _MIN_CELLS[n_dims]), MAX_CELLS)


def _cutoff(y: Array) -> tuple[float, float]:
    """Return the cutoff of the near part, and the mean number of points within it of a point."""
    n_dims = len(y)
    counts = _numbered(y, _COARSE)[2].astype(np.float64)
    crowding = float((counts * (counts - 1)).sum() / y.shape[1])  # mean number of other points in the cell of a point
    density = max(crowding, 1e-3) / _COARSE**n_dims
    wanted = (_N_NEAR[n_dims] / (_BALL[n_dims] * density)) ** (1 / n_dims)
    # Embeddings that are far larger than usual get a coarser grid.
    low, high = bulk_box(y, _SPACING[n_dims] * _MIN_CUTOFF, _max_cells(*y.shape))
    feasible = float(np.prod(np.maximum(high - low, _MAX_CUTOFF)) / _max_cells(*y.shape)) ** (1 / n_dims)
    wanted = max(float(np.clip(wanted, _MIN_CUTOFF, _MAX_CUTOFF)), feasible / _SPACING[n_dims])
    cutoff = _MAX_CUTOFF * 2 ** (np.ceil(4 * np.log2(wanted / _MAX_CUTOFF)) / 4)
    return cutoff, float(_BALL[n_dims] * density * cutoff**n_dims)


class Cells(NamedTuple):
    """Points sorted by the cell of a regular grid in which they lie."""

    y: Array  # single-precision coordinates in the order of the cells, shape (n_dims, n_samples)
    order: Array  # index of each of these points
    key: Array  # number of the cell of each of these points
    starts: Array  # first point of each cell, shape (n_cells + 1,)
    strides: Array  # from one cell to the next along each axis, shape (3,)


@compiled
def _sort(y: Array, centre: Array, key: Array, starts: Array, order: Array, sorted_key: Array, out: Array) -> None:
    """Sort points by their key: a counting sort, given the first position of each key."""
    position = starts.copy()
    for i in range(key.size):
        p = position[key[i]]
        position[key[i]] += 1
        order[p] = i
        sorted_key[p] = key[i]
        for d in range(y.shape[0]):
            out[d, p] = y[d, i] - centre[d]


def _numbered(y: Array, size: float) -> tuple[Array, Array, Array]:
    """Return the cell of every point, the strides of the axes and the number of points per cell."""
    low, span = y.min(axis=1), np.ptp(y, axis=1)
    size = max(size, float(np.prod(np.maximum(span, size)) / _MAX_NEAR_CELLS) ** (1 / len(y)))
    counts = np.ones(3, np.int64)
    counts[: len(y)] = (span / size).astype(np.int64) + 3
    strides = np.array([1, counts[0], counts[0] * counts[1]])
    key = strides[: len(y)] @ (((y - low[:, None]) / size).astype(np.int64) + 1)
    return key, strides, np.bincount(key, minlength=int(np.prod(counts)))


def sorted_into_cells(y: Array, size: float) -> Cells:
    """Sort points of shape (n_dims, n_samples) into cells of at least this size, with a border of empty cells."""
    key, strides, counts = _numbered(y, size)
    starts = np.concatenate([[0], np.cumsum(counts)])
    order, sorted_key, ordered = np.empty_like(key), np.empty_like(key), np.empty(y.shape, np.float32)
    _sort(y, y.mean(axis=1), key, starts, order, sorted_key, ordered)
    return Cells(ordered, order, sorted_key, starts, strides)


@lru_cache(maxsize=3)
def _near_kernel(n_dims: int) -> Callable[..., None]:
    """Return the kernel for this number of dimensions, a constant that removes the loops over further ones.

    It adds the sums of the points in its rows. There are no branches in the innermost loop, so that it vectorises: the
    tables end in zeros, and a point adds nothing to its own gradient.
    """

    @compiled
    def near_rows(
        start: int, stop: int, cells: Any, q: Array, scale: float, tables: Any, gradient: Array, value: Array | None
    ) -> None:
        (y, order, key, starts, strides), (values, slopes) = cells, tables
        zero, factor = y.dtype.type(0), y.dtype.type(scale)
        last = y.dtype.type(slopes.size - 2)
        for i in range(start, stop):
            own, x0 = q[i], y[0, i]
            x1 = y[1, i] if n_dims > 1 else zero
            x2 = y[2, i] if n_dims > 2 else zero
            s0 = s1 = s2 = total = d1 = d2 = zero
            for c in range(-1 if n_dims > 2 else 0, 2 if n_dims > 2 else 1):
                for b in range(-1 if n_dims > 1 else 0, 2 if n_dims > 1 else 1):
                    cell = key[i] + c * strides[2] + b * strides[1]
                    lo, hi = starts[cell - 1], starts[cell + 2]
                    u0, charge = y[0, lo:hi], q[lo:hi]
                    u1, u2 = y[min(1, n_dims - 1), lo:hi], y[n_dims - 1, lo:hi]
                    for j in range(hi - lo):
                        d0 = x0 - u0[j]
                        r2 = d0 * d0
                        if n_dims > 1:
                            d1 = x1 - u1[j]
                            r2 += d1 * d1
                        if n_dims > 2:
                            d2 = x2 - u2[j]
                            r2 += d2 * d2
                        step = min(r2 * factor, last)
                        m = np.int32(step)
                        t = step - y.dtype.type(m)
                        weight = own + charge[j]
                        pull = weight * (slopes[m] + t * (slopes[m + 1] - slopes[m]))
                        s0 += pull * d0
                        if n_dims > 1:
                            s1 += pull * d1
                        if n_dims > 2:
                            s2 += pull * d2
                        if value is not None:
                            total += weight * (values[m] + t * (values[m + 1] - values[m]))
            k = order[i]
            sums = (s0, s1, s2)
            for d in range(n_dims):
                gradient[k, d] += 2 * sums[d]
            if value is not None:
                value[k] += total - 2 * own * values[0]

    return near_rows


def add_near_sums(
    cells: Cells, q: Array, cutoff: float, tables: tuple[Array, Array], sums: Repulsion, workers: Workers
) -> None:
    """Add the sums of (q_i + q_j) V(r_ij) over the neighbours j of each point i, and its gradient, to ``sums``.

    The tables have V and its derivative with respect to r^2 at equidistant r^2 from 0 to that of the cutoff, which is
    at most the size of a cell.
    """
    padded = (np.pad(tables[0], (0, 2)), np.pad(tables[1], (0, 2)))
    args = (tuple(cells), q[cells.order].astype(np.float32), (tables[0].size - 1) / cutoff**2, padded)
    n = cells.order.size
    workers.rows(_near_kernel(len(cells.y)), n, *args, sums.gradient, sums.value, work=200.0 * n)
