"""Sums over pairs of points that are closer than a cutoff, found in a grid of cells."""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from laptsne._runtime.compiled import compiled
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array

_MAX_CELLS = 1 << 24


class Cells(NamedTuple):
    """Points sorted by the cell of a regular grid in which they lie."""

    y: Array  # single-precision coordinates in the order of the cells, shape (n_dims, n_samples)
    order: Array  # index of each of these points
    key: Array  # number of the cell of each of these points
    starts: Array  # first point of each cell, shape (n_cells + 1,)
    strides: Array  # from one cell to the next along each axis, shape (3,)


@compiled
def _key_rows(start: int, stop: int, y: Array, low: Array, size: float, strides: Array, key: Array) -> None:
    """Set key to the number of the cell of each point."""
    for i in range(start, stop):
        total = np.int64(0)
        for d in range(y.shape[0]):
            total += strides[d] * (np.int64((y[d, i] - low[d]) / size) + 1)
        key[i] = total


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


def _numbered(y: Array, size: float, workers: Workers) -> tuple[Array, Array, Array]:
    """Return the cell of every point, the strides of the axes and the number of points per cell."""
    low, span = y.min(axis=1), np.ptp(y, axis=1)
    size = max(size, float(np.prod(np.maximum(span, size)) / _MAX_CELLS) ** (1 / len(y)))
    counts = np.ones(3, np.int64)
    counts[: len(y)] = (span / size).astype(np.int64) + 3
    strides = np.array([1, counts[0], counts[0] * counts[1]])
    key = np.empty(y.shape[1], np.int64)
    workers.rows(_key_rows, key.size, y, low, size, strides, key, work=10.0 * key.size)
    return key, strides, np.bincount(key, minlength=int(np.prod(counts)))


def crowding(y: Array, size: float, workers: Workers) -> float:
    """Return the mean number of other points in the cell of a point."""
    counts = _numbered(y, size, workers)[2].astype(np.float64)
    return float((counts * (counts - 1)).sum() / y.shape[1])


def sorted_into_cells(y: Array, size: float, workers: Workers) -> Cells:
    """Sort points of shape (n_dims, n_samples) into cells of at least this size, with a border of empty cells."""
    key, strides, counts = _numbered(y, size, workers)
    starts = np.concatenate([[0], np.cumsum(counts)])
    order, sorted_key, ordered = np.empty_like(key), np.empty_like(key), np.empty(y.shape, np.float32)
    _sort(y, y.mean(axis=1), key, starts, order, sorted_key, ordered)
    return Cells(ordered, order, sorted_key, starts, strides)


@lru_cache(maxsize=3)
def _near_kernel(n_dims: int) -> Callable[..., None]:
    """Return the kernel for this number of dimensions, a constant that removes the loops over further ones."""

    @compiled
    def near_rows(
        start: int,
        stop: int,
        y: Array,
        q: Array,
        order: Array,
        key: Array,
        starts: Array,
        strides: Array,
        scale: float,
        tables: Array,
        gradient: Array,
        value: Array | None,
    ) -> None:
        # Add the sums of the points in the rows. There are no branches in the innermost loop, so that it vectorises:
        # the tables end in zeros, and a point adds nothing to its own gradient.
        zero, factor = y.dtype.type(0), y.dtype.type(scale)
        values, slopes = tables[0], tables[1]
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
            gradient[k, 0] += 2 * s0
            if n_dims > 1:
                gradient[k, 1] += 2 * s1
            if n_dims > 2:
                gradient[k, 2] += 2 * s2
            if value is not None:
                value[k] += total - 2 * own * values[0]

    return near_rows


def add_near_sums(
    cells: Cells,
    q: Array,
    cutoff: float,
    tables: tuple[Array, Array],
    gradient: Array,
    value: Array | None,
    workers: Workers,
) -> None:
    """Add the sums of (q_i + q_j) V(r_ij) over the neighbours j of each point i to value, and its gradient to gradient.

    The tables have V and its derivative with respect to r^2 at equidistant r^2 from 0 to that of the cutoff, which is
    at most the size of a cell.
    """
    n = cells.order.size
    padded = np.pad(np.stack(tables), ((0, 0), (0, 2)))
    charges = q[cells.order].astype(np.float32)
    scale = (tables[0].size - 1) / cutoff**2
    places = (cells.y, charges, cells.order, cells.key, cells.starts, cells.strides)
    workers.rows(_near_kernel(len(cells.y)), n, *places, scale, padded, gradient, value, work=200.0 * n)
