"""Backend over all pairs in linear time: charges are spread on a grid, convolved there by FFT, and read at the points.

The gradient is read with the derivative of the window, so that a field and its gradient need one transform there and
one back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.threads import Workers
from laptsne.embedding.fields.base import Field, Fields
from laptsne.embedding.fields.chebyshev import MAX_SPAN, ChebyshevBox
from laptsne.embedding.fields.grid import Window, convolved, n_cells, period
from laptsne.embedding.fields.stencil import read, spread

Array = NDArray[Any]

SPACING = 0.35
_WIDTH = 8
_WINDOW = Window(_WIDTH, 1.9 * _WIDTH)
# Fields that are transformed together: as many as fit into half a gigabyte, or that many.
_BATCH_CELLS = 1 << 26
_MAX_CELLS = 1 << 28
_MAX_BATCH = 16
# Where there are more cells than pairs, pairs are faster; grids up to this size are always fast enough.
_SMALL_GRID = 1 << 22


def _lines(columns: Array) -> Array:
    return np.ascontiguousarray(columns.T, dtype=np.float32)


def _cells(y: NDArray[np.float64]) -> tuple[int, ...]:
    return tuple(n_cells(float(extent), SPACING, _WIDTH) for extent in np.ptp(y, axis=1))


def grid_fits(Y: NDArray[np.float64]) -> bool:
    """Whether the grid of a map is small enough; that of a map with a point thrown far away may not be."""
    most = min(max(len(Y) ** 2, _SMALL_GRID), _MAX_CELLS)
    return bool(np.prod([float(period(side, SPACING)) for side in _cells(np.ascontiguousarray(Y.T))]) <= most)


class FourierFields(Fields):
    """Fields of the map ``Y`` with the Student kernel, in time and memory that grow with n_samples and the map's area.

    Parameters
    ----------
    Y : array of shape (n_samples, n_components)
        The map, of 1 to 3 dimensions.
    workers : Workers, optional
        Threads.
    """

    def __init__(self, Y: NDArray[np.float64], workers: Workers | None = None) -> None:
        self.n_samples, self.n_components = Y.shape
        self.Y = Y
        self.workers = workers or Workers(1)
        # Coordinate by coordinate: reductions over short rows are slow.
        y = np.array(Y.T, dtype=np.float64, order="C")
        y -= y.mean(axis=1, keepdims=True)
        self.geometry = (*y.astype(np.float32), *[None] * (3 - self.n_components), None)
        small = float(np.ptp(y, axis=1).max()) <= MAX_SPAN
        self._mesh: ChebyshevBox | _Mesh = ChebyshevBox(y.T) if small else _Mesh(y, self.workers)

    def values(self, charges: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._mesh.fields(charges, None)[0] - charges

    def pack(self, weights: NDArray[np.float64], charges: NDArray[np.float64]) -> tuple[Array, Array]:
        return weights, charges

    def weighted_gradient(self, packed: tuple[Array, Array]) -> NDArray[np.float64]:
        weights, charges = packed
        return self._mesh.fields(charges, weights)[1]

    def _compute_unit(self) -> tuple[Field, Field]:
        ones = np.ones((self.n_samples, 1))
        field, gradient = self._mesh.fields(ones, ones)
        # A point feels itself on the grid, with the similarity 1.
        return np.maximum(field[:, 0] - 1, np.finfo(np.float32).tiny), gradient


class _Mesh:
    """A grid around the map, and the places of its points on it."""

    def __init__(self, y: NDArray[np.float64], workers: Workers) -> None:
        self.workers = workers
        self.cells = _cells(y)
        self.u = (y - y.min(axis=1, keepdims=True)) / SPACING + (_WIDTH // 2 - 1)

    def fields(
        self, charges: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Fields of the charges with the points themselves, and the sum of their gradients times the weights."""
        field, gradient = np.empty(charges.shape), np.zeros((len(charges), len(self.u)))
        batch = min(max(_BATCH_CELLS // int(2 ** len(self.cells) * np.prod(self.cells)), 1), _MAX_BATCH)
        for start in range(0, charges.shape[1], batch):
            columns = slice(start, start + batch)
            grids = spread(_WINDOW, self.u, _lines(charges[:, columns]), self.cells, self.workers)
            grids = convolved(grids, SPACING, _WINDOW, self.workers)
            lines = None if weights is None else _lines(weights[:, columns])
            field[:, columns], part = read(_WINDOW, self.u, grids, lines, self.workers)
            gradient += part
        return field, gradient / SPACING
