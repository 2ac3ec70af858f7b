"""Repulsion of all pairs of points under the kernel of UMAP, exactly or on a grid with a sum over near pairs."""

from itertools import product
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from laptsne._runtime.compiled import compiled, window
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
    mesh = Mesh.bounding(y, _SPACING[len(y)] * cutoff, workers, far, _WINDOW, _max_cells(*y.shape))
    charges = np.stack([np.ones_like(q), q]).astype(np.float32)
    fields, gradient = mesh.with_gradient(y, mesh.field(y, charges), charges[::-1].copy())
    itself = float(far(np.zeros(1))[0])
    value = q * (fields[:, 0] - itself) + fields[:, 1] - q * itself
    sums = Repulsion(value if with_value else None, gradient / mesh.spacing)
    if n_near <= _MAX_NEAR * _N_NEAR[len(y)]:
        add_near_sums(y, q, far, sums, workers)
    return sums


def _max_cells(n_dims: int, n_samples: int) -> int:
    """Return the largest number of cells of the grid, without its margins."""
    return min(max(CELLS_PER_POINT * n_samples, _MIN_CELLS[n_dims]), MAX_CELLS)


def _cutoff(y: Array) -> tuple[float, float]:
    """Return the cutoff of the near part, and the mean number of points within it of a point."""
    n_dims = len(y)
    counts = np.bincount(_cells(y, _COARSE)[0]).astype(np.float64)
    crowding = float((counts * (counts - 1)).sum() / y.shape[1])  # mean number of other points in the cell of a point
    density = max(crowding, 1e-3) / _COARSE**n_dims
    wanted = (_N_NEAR[n_dims] / (_BALL[n_dims] * density)) ** (1 / n_dims)
    # Embeddings that are far larger than usual get a coarser grid.
    low, high = bulk_box(y, _SPACING[n_dims] * _MIN_CUTOFF, _max_cells(*y.shape))
    feasible = float(np.prod(np.maximum(high - low, _MAX_CUTOFF)) / _max_cells(*y.shape)) ** (1 / n_dims)
    wanted = max(float(np.clip(wanted, _MIN_CUTOFF, _MAX_CUTOFF)), feasible / _SPACING[n_dims])
    cutoff = _MAX_CUTOFF * 2 ** (np.ceil(4 * np.log2(wanted / _MAX_CUTOFF)) / 4)
    return cutoff, float(_BALL[n_dims] * density * cutoff**n_dims)


def _cells(y: Array, size: float) -> tuple[Array, Array]:
    """Return the cell of each point in a grid with empty cells at its border, and the numbers of cells per axis."""
    low, span = y.min(axis=1), np.ptp(y, axis=1)
    size = max(size, float(np.prod(np.maximum(span, size)) / _MAX_NEAR_CELLS) ** (1 / len(y)))
    sides = (span / size).astype(np.int64) + 3
    return np.ravel_multi_index(tuple(((y - low[:, None]) / size).astype(np.int64) + 1), sides, order="F"), sides


@compiled
def _near_rows(
    start: int, stop: int, y0: Array, y1: Any, y2: Any, q: Array, cells: Any, tables: Any, gradient: Array, value: Any
) -> None:
    """Add the sums of points that are sorted by cell.

    There are no branches in the innermost loop, so that it vectorises: the tables end in zeros, and a point adds
    nothing to its own gradient.
    """
    (order, cell, starts, shifts), (values, slopes, scale) = cells, tables
    single, zero = y0.dtype.type, y0.dtype.type(0)
    factor, last = single(scale), single(slopes.size - 2)
    for i in range(start, stop):
        own, x0 = q[i], y0[i]
        x1 = zero if y1 is None else y1[i]
        x2 = zero if y2 is None else y2[i]
        s0 = s1 = s2 = total = zero
        for shift in shifts:
            lo, hi = starts[cell[i] + shift - 1], starts[cell[i] + shift + 2]
            u0, u1, u2, charge = y0[lo:hi], window(y1, lo, hi), window(y2, lo, hi), q[lo:hi]
            for j in range(hi - lo):
                d0 = x0 - u0[j]
                d1 = zero if y1 is None else x1 - u1[j]
                d2 = zero if y2 is None else x2 - u2[j]
                step = min((d0 * d0 + d1 * d1 + d2 * d2) * factor, last)
                m = np.int32(step)
                t = step - single(m)
                weight = own + charge[j]
                pull = weight * (slopes[m] + t * (slopes[m + 1] - slopes[m]))
                s0 += pull * d0
                if y1 is not None:
                    s1 += pull * d1
                if y2 is not None:
                    s2 += pull * d2
                if value is not None:
                    total += weight * (values[m] + t * (values[m + 1] - values[m]))
        k, sums = order[i], (s0, s1, s2)
        for d in range(gradient.shape[1]):
            gradient[k, d] += 2 * sums[d]
        if value is not None:
            value[k] += total - 2 * own * values[0]


def add_near_sums(y: Array, q: Array, far: FarRepulsion, sums: Repulsion, workers: Workers) -> None:
    """Add what the far part lacks, from tables: sums over the points in the same cell as each point, and next to it."""
    n_dims, n = y.shape
    cell, sides = _cells(y, far.width)
    # The points of each cell, in their order; this is a counting sort.
    members = scipy.sparse.coo_array((np.ones(n, bool), (cell, np.arange(n))), (int(np.prod(sides)), n)).tocsr()
    order = members.indices
    ordered = (y - y.mean(axis=1, keepdims=True)).astype(np.float32).take(order, axis=1)
    strides = np.cumprod([1, *sides[:-1]])
    shifts = np.array([strides[:0:-1] @ step for step in product((-1, 0, 1), repeat=n_dims - 1)], dtype=np.int64)
    cells = (order, cell[order], members.indptr, shifts)
    tables = (*(np.pad(table, (0, 2)) for table in far.near_tables(_TABLE)), _TABLE / far.width**2)
    args = (*ordered, *[None] * (3 - n_dims), q[order].astype(np.float32), cells, tables)
    workers.rows(_near_rows, n, *args, sums.gradient, sums.value, work=200.0 * n)
