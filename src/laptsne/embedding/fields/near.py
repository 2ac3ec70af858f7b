"""Sums over pairs of points that are closer than a cutoff, found in a grid of cells."""

from typing import NamedTuple

import numpy as np

from laptsne._runtime.compiled import compiled
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array

_MAX_CELLS = 1 << 24


class Cells(NamedTuple):
    """Points sorted by the cell of a regular grid in which they lie."""

    y: Array  # single-precision coordinates in the order of the cells, shape (3, n_samples); 0 beyond the dimension
    order: Array  # index of each of these points
    key: Array  # number of the cell of each of these points
    starts: Array  # first point of each cell, shape (n_cells + 1,)
    strides: tuple[int, int]  # from one cell to the next along the second and third axis


def _numbered(y: Array, size: float) -> tuple[Array, Array, Array]:
    """Return the cell of every point, the strides of the axes and the number of points per cell."""
    low, span = y.min(axis=1), np.ptp(y, axis=1)
    size = max(size, float(np.prod(np.maximum(span, size)) / _MAX_CELLS) ** (1 / len(y)))
    index = np.floor((y - low[:, None]) / size).astype(np.int64) + 1
    counts = np.ones(3, np.int64)
    counts[: len(y)] = index.max(axis=1) + 2
    strides = np.array([1, counts[0], counts[0] * counts[1]])
    key = strides[: len(y)] @ index
    return key, strides, np.bincount(key, minlength=int(np.prod(counts)))


def crowding(y: Array, size: float) -> float:
    """Return the mean number of other points in the cell of a point."""
    counts = _numbered(y, size)[2].astype(np.float64)
    return float((counts * (counts - 1)).sum() / y.shape[1])


def sorted_into_cells(y: Array, size: float) -> Cells:
    """Sort points of shape (n_dims, n_samples) into cells of at least this size, with a border of empty cells."""
    key, strides, counts = _numbered(y, size)
    order = np.argsort(key, kind="stable")
    ordered = np.zeros((3, y.shape[1]), np.float32)
    ordered[: len(y)] = (y - y.mean(axis=1, keepdims=True))[:, order]
    starts = np.concatenate([[0], np.cumsum(counts)])
    return Cells(ordered, order, key[order], starts, (int(strides[1]), int(strides[2])))


@compiled
def _near_rows(
    start: int,
    stop: int,
    n_dims: int,
    y0: Array,
    y1: Array,
    y2: Array,
    q: Array,
    key: Array,
    starts: Array,
    stride_y: int,
    stride_z: int,
    cutoff: float,
    slopes: Array,
    values: Array | None,
    force: Array,
    value: Array | None,
) -> None:
    """Set force to the sums of (q_i + q_j) slope(r) (y_i - y_j) over the pairs within the cutoff; value likewise."""
    zero = y0.dtype.type(0)
    limit = y0.dtype.type(cutoff * cutoff)
    scale = y0.dtype.type((slopes.size - 1) / cutoff)
    for i in range(start, stop):
        x0, x1, x2, own = y0[i], y1[i], y2[i], q[i]
        s0 = s1 = s2 = total = zero
        for c in range(-1 if n_dims > 2 else 0, 2 if n_dims > 2 else 1):
            for b in range(-1 if n_dims > 1 else 0, 2 if n_dims > 1 else 1):
                cell = key[i] + c * stride_z + b * stride_y
                for j in range(starts[cell - 1], starts[cell + 2]):
                    d0, d1, d2 = x0 - y0[j], x1 - y1[j], x2 - y2[j]
                    r2 = d0 * d0 + d1 * d1 + d2 * d2
                    if r2 < limit and j != i:
                        step = np.sqrt(r2) * scale
                        m = min(int(step), slopes.size - 2)
                        t = step - y0.dtype.type(m)
                        weight = own + q[j]
                        pull = weight * (slopes[m] + t * (slopes[m + 1] - slopes[m]))
                        s0 += pull * d0
                        s1 += pull * d1
                        s2 += pull * d2
                        if values is not None:
                            total += weight * (values[m] + t * (values[m + 1] - values[m]))
        force[i, 0], force[i, 1], force[i, 2] = s0, s1, s2
        if value is not None:
            value[i] = total


def near_sums(
    cells: Cells, n_dims: int, q: Array, cutoff: float, slopes: Array, values: Array | None, workers: Workers
) -> tuple[Array, Array | None]:
    """Sum (q_i + q_j) slope(r_ij) (y_i - y_j) and (q_i + q_j) value(r_ij) over the neighbours j of each point i.

    Slopes and values are tables over equidistant distances from 0 to the cutoff, which is at most the size of a cell.
    Both sums are in the order of the points, the first of shape (n_samples, n_dims).
    """
    n = cells.order.size
    force = np.empty((n, 3), np.float32)
    value = None if values is None else np.empty(n, np.float32)
    charges = q[cells.order].astype(np.float32)
    args = (n_dims, *cells.y, charges, cells.key, cells.starts, *cells.strides, cutoff, slopes, values, force, value)
    workers.rows(_near_rows, n, *args, work=200.0 * n)
    forces = np.empty((n, n_dims))
    forces[cells.order] = force[:, :n_dims]
    if value is None:
        return forces, None
    totals = np.empty(n)
    totals[cells.order] = value
    return forces, totals
