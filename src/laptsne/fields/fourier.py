"""Fields in linear time: charges are spread on a grid, convolved with the kernel by FFT, and interpolated.

The gradient is interpolated with the derivative of the window, so that a field and its gradient share one pair of
transforms.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.fields.base import Field, Fields
from laptsne.fields.chebyshev import MAX_SPAN, ChebyshevBox
from laptsne.fields.grid import STUDENT, bulk_box, convolved, n_cells, period
from laptsne.fields.stencil import interpolate, spread
from laptsne.fields.window import ExponentialSemicircle
from laptsne.kernels import Gaussian, Student

SPACING = 0.35
_WIDTH = 8
_WINDOW = ExponentialSemicircle(_WIDTH, 1.9 * _WIDTH)
# Fields are transformed together up to this number of cells, and this number of fields.
_BATCH_CELLS = 1 << 26
_MAX_BATCH = 16
_MAX_CELLS = 1 << 28  # of a transform
# With more cells than pairs, pairs are faster; grids up to this size are always fast enough.
_SMALL_GRID = 1 << 22
# Cells per point beyond which stray points are left out of the box. Embeddings have about 5.
_CELLS_PER_POINT = 32


def _lines(columns: Array) -> Array:
    return np.ascontiguousarray(columns.T, dtype=np.float32)


def box(y: NDArray[np.float64], spacing: float = SPACING) -> tuple[Array, Array]:
    """Return the corners of the box of a grid, given the coordinates, one row per dimension."""
    return bulk_box(y, spacing, max(_CELLS_PER_POINT * y.shape[1], _SMALL_GRID // 4))


def _cells(low: Array, high: Array) -> tuple[int, ...]:
    return tuple(n_cells(float(extent), SPACING, _WIDTH) for extent in high - low)


def transform_cells(cells: tuple[int, ...], spacing: float = SPACING) -> float:
    """Return the number of cells of the transforms of a grid."""
    return float(np.prod([float(period(side, spacing)) for side in cells]))


def _cells_of(Y: NDArray[np.float64]) -> float:
    return transform_cells(_cells(*box(np.ascontiguousarray(Y.T))))


def grid_fits(Y: NDArray[np.float64]) -> bool:
    """Return whether the grid of an embedding is small enough, and faster than all pairs."""
    return _cells_of(Y) <= min(max(len(Y) ** 2, _SMALL_GRID), _MAX_CELLS)


def is_feasible(Y: NDArray[np.float64], largest: float) -> bool:
    """Return whether the fields of an embedding take a reasonable time, on a grid or over all pairs.

    The ``largest`` absolute coordinate is known to callers, and usually suffices.
    """
    surely = len(Y) ** 2 <= _MAX_CELLS or (4 * largest / SPACING + 2 * _WIDTH) ** Y.shape[1] < _MAX_CELLS / 2
    return surely or _cells_of(Y) <= _MAX_CELLS


class FourierFields(Fields):
    """Fields of an embedding of 1 to 3 dimensions, in time and memory linear in n_samples and the area.

    The spacing of the grid is a share of the width of the kernel, which is common to all points.
    """

    def __init__(
        self, Y: NDArray[np.float64], workers: Workers | None = None, kernel: Student | Gaussian = STUDENT
    ) -> None:
        self.n_samples, self.n_components = Y.shape
        self.Y = Y
        self._kernel, self._width = (Gaussian(), kernel.width) if isinstance(kernel, Gaussian) else (kernel, 1.0)
        self.workers = workers or Workers(1)
        # One row per coordinate: reductions over short rows are slow.
        y = np.array(Y.T, dtype=np.float64, order="C")
        y -= y.mean(axis=1, keepdims=True)
        self.geometry = (*y.astype(np.float32), *[None] * (3 - self.n_components), None)
        self._y = y

    @cached_property
    def _grid(self) -> "ChebyshevBox | _Grid":
        small = float(np.ptp(self._y, axis=1).max()) <= MAX_SPAN and self._kernel == STUDENT
        return ChebyshevBox(self._y.T) if small else _Grid(self._y / self._width, self.workers, self._kernel)

    def values(self, charges: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._grid.fields(charges, None)[0] - charges

    def pack(self, weights: NDArray[np.float64], charges: NDArray[np.float64]) -> tuple[Array, Array]:
        return weights, charges

    def weighted_gradient(self, packed: tuple[Array, Array]) -> NDArray[np.float64]:
        weights, charges = packed
        return self._grid.fields(charges, weights)[1] / self._width

    def _compute_unit(self) -> tuple[Field, Field]:
        ones = np.ones((self.n_samples, 1))
        field, gradient = self._grid.fields(ones, ones)
        # On the grid a point interacts with itself, with similarity 1.
        return np.maximum(field[:, 0] - 1, np.finfo(np.float32).tiny), gradient / self._width


class _Grid:
    """A grid around the embedding, and the positions of its points on it, in cells."""

    def __init__(self, y: NDArray[np.float64], workers: Workers, kernel: Student | Gaussian) -> None:
        self.workers, self.kernel = workers, kernel
        low, high = box(y)
        self.cells = _cells(low, high)
        inside = np.clip(y, low[:, None], high[:, None])
        self.u = (inside - low[:, None]) / SPACING + (_WIDTH // 2 - 1)

    def fields(
        self, charges: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the fields of the charges, self-interaction included, and the weighted sum of their gradients."""
        field, gradient = np.empty(charges.shape), np.zeros((len(charges), len(self.u)))
        batch = min(max(_BATCH_CELLS // int(2 ** len(self.cells) * np.prod(self.cells)), 1), _MAX_BATCH)
        for start in range(0, charges.shape[1], batch):
            columns = slice(start, start + batch)
            grids = spread(_WINDOW, self.u, _lines(charges[:, columns]), self.cells, self.workers)
            grids = convolved(grids, SPACING, _WINDOW, self.workers, self.kernel)
            lines = None if weights is None else _lines(weights[:, columns])
            field[:, columns], part = interpolate(_WINDOW, self.u, grids, lines, self.workers)
            gradient += part
        return field, gradient / SPACING
