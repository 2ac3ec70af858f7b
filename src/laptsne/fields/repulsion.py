"""Repulsion of all pairs of points under the kernel of UMAP, exactly or on a grid with a near part."""

from typing import NamedTuple

import numpy as np

from laptsne._runtime.compiled import compiled
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.fields.grid import bulk_box, convolved, n_cells
from laptsne.fields.near import add_near_sums, crowding, sorted_into_cells
from laptsne.fields.stencil import interpolate, spread
from laptsne.fields.umap_kernel import SOFTENING, FarRepulsion, UmapKernel
from laptsne.fields.window import ExponentialSemicircle

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
def _pair_rows(
    start: int,
    stop: int,
    y: Array,
    q: Array,
    a: float,
    b: float,
    bound: float,
    bend: float,
    value: Array | None,
    gradient: Array,
) -> None:
    """Set value and gradient of the rows by sums over all points."""
    n_dims, n = y.shape
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
    workers.rows(_pair_rows, n, y, q, *shape, value, gradient, work=20.0 * n * n)
    return Repulsion(value, gradient)


def grid_repulsion(y: Array, q: Array, kernel: UmapKernel, workers: Workers, *, with_value: bool = False) -> Repulsion:
    """Return the same in nearly linear time: the smooth part of the kernel on a grid, the rest over near pairs."""
    cutoff, n_near = _cutoff(y, workers)
    far = FarRepulsion(kernel, cutoff)
    gradient, value = _far_sums(y, q, far, workers)
    values = value if with_value else None
    if n_near <= _MAX_NEAR * _N_NEAR[len(y)]:
        cells = sorted_into_cells(y, cutoff, workers)
        add_near_sums(cells, q, cutoff, far.near_tables(_TABLE), gradient, values, workers)
    return Repulsion(values, gradient)


def _far_sums(y: Array, q: Array, far: FarRepulsion, workers: Workers) -> tuple[Array, Array]:
    """Return the gradient and the value of the far part."""
    spacing = _SPACING[len(y)] * far.cutoff
    low, high = bulk_box(y, spacing, _max_cells(*y.shape))
    cells = tuple(n_cells(float(extent), spacing, _WINDOW.width) for extent in high - low)
    inside = np.clip(y, low[:, None], high[:, None])
    u = (inside - low[:, None]) / spacing + (_WINDOW.width // 2 - 1)
    charges = np.stack([np.ones_like(q), q]).astype(np.float32)
    grids = convolved(spread(_WINDOW, u, charges, cells, workers), spacing, _WINDOW, workers, far)
    fields, gradient = interpolate(_WINDOW, u, grids, charges[::-1].copy(), workers)
    itself = float(far(np.zeros(1))[0])
    return gradient / spacing, q * (fields[:, 0] - itself) + fields[:, 1] - q * itself


def _max_cells(n_dims: int, n_samples: int) -> int:
    """Return the largest number of cells of the grid, without its margins."""
    return min(max(CELLS_PER_POINT * n_samples, _MIN_CELLS[n_dims]), MAX_CELLS)


def _cutoff(y: Array, workers: Workers) -> tuple[float, float]:
    """Return the cutoff of the near part, and the mean number of points within it of a point."""
    n_dims = len(y)
    density = max(crowding(y, _COARSE, workers), 1e-3) / _COARSE**n_dims
    wanted = (_N_NEAR[n_dims] / (_BALL[n_dims] * density)) ** (1 / n_dims)
    # Embeddings that are far larger than usual get a coarser grid.
    low, high = bulk_box(y, _SPACING[n_dims] * _MIN_CUTOFF, _max_cells(*y.shape))
    feasible = float(np.prod(np.maximum(high - low, _MAX_CUTOFF)) / _max_cells(*y.shape)) ** (1 / n_dims)
    wanted = max(float(np.clip(wanted, _MIN_CUTOFF, _MAX_CUTOFF)), feasible / _SPACING[n_dims])
    cutoff = _MAX_CUTOFF * 2 ** (np.ceil(4 * np.log2(wanted / _MAX_CUTOFF)) / 4)
    return cutoff, float(_BALL[n_dims] * density * cutoff**n_dims)
