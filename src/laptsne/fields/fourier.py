r"""Sums over all pairs in linear time: charges are spread on a grid, convolved there by FFT, and read at the points.

The Fourier transform of the Student kernel falls off like :math:`e^{-|\omega|}`, so that a grid with a spacing of
a third of the kernel's width holds it. Points enter and leave the grid through a window of eight cells a side; what the
window does to the spectrum is undone in the kernel's. The gradient is read with the derivative of the window, so
that a field and its gradient need one transform there and one back.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from laptsne.compiled import compiled
from laptsne.fields.base import Field, Fields
from laptsne.fields.chebyshev import MAX_SPAN, ChebyshevBox
from laptsne.workers import Workers

Array = NDArray[Any]

_SPACING = 0.35
_WIDTH = 8  # cells of the window
_BETA = 1.9 * _WIDTH  # how sharply it falls
_TABLE = 1024  # the window is read from a table with this many steps a cell
# The kernel repeats with the period of the grid. Below this period its kink half-way would show.
_MIN_PERIOD = 24.0
# Fields that are transformed together: as many as fit into half a gigabyte, or that many.
_BATCH_CELLS = 1 << 26
_MAX_CELLS = 1 << 28
_MAX_BATCH = 16


class Stencil(NamedTuple):
    """Where the window of every point lies on the grid, and its values and slopes there."""

    first: Array  # (n_samples, 3): first cell
    values: Array  # (n_samples, 3, _WIDTH)
    slopes: Array  # (n_samples, 3, _WIDTH)


@compiled
def _stencil_rows(
    start: int,
    stop: int,
    u: Array,
    n_dims: int,
    table: Array,
    slope_table: Array,
    first: Array,
    values: Array,
    slopes: Array,
) -> None:
    """Look up the windows of the points at u, in cells; dimensions that a map lacks have one cell of weight 1."""
    for i in range(start, stop):
        for d in range(3):
            if d < n_dims:
                x = u[i, d]
                cell = int(np.floor(x))
                first[i, d] = cell - (_WIDTH // 2 - 1)
                position = (x - cell) * _TABLE
                row = min(int(position), _TABLE - 1)
                t = position - row
                for a in range(_WIDTH):
                    values[i, d, a] = (1 - t) * table[row, a] + t * table[row + 1, a]
                    slopes[i, d, a] = (1 - t) * slope_table[row, a] + t * slope_table[row + 1, a]
            else:
                first[i, d] = 0
                values[i, d, 0] = 1
                slopes[i, d, 0] = 0


@compiled
def _spread_fields(
    start: int, stop: int, first: Array, values: Array, widths: tuple[int, int], charges: Array, grids: Array
) -> None:
    """Add the charges of the fields start to stop to their grids: one field, one thread, one order of sums."""
    wy, wz = widths
    for f in range(start, stop):
        for i in range(first.shape[0]):
            x = first[i, 0]
            for c in range(wz):
                vz = charges[f, i] * values[i, 2, c]
                for b in range(wy):
                    vy = vz * values[i, 1, b]
                    line = grids[f, first[i, 2] + c, first[i, 1] + b, x : x + _WIDTH]
                    for a in range(_WIDTH):
                        line[a] += vy * values[i, 0, a]


@compiled
def _read_rows(
    start: int,
    stop: int,
    first: Array,
    values: Array,
    slopes: Array,
    widths: tuple[int, int],
    grids: Array,
    weights: Array | None,
    field: Array,
    gradient: Array,
) -> None:
    """Set field[i, f] to the fields at the points; add to gradient their gradients, each times its weight there.

    Without weights there is no gradient.
    """
    wy, wz = widths
    for i in range(start, stop):
        x = first[i, 0]
        for f in range(grids.shape[0]):
            value = gx = gy = gz = grids.dtype.type(0)
            for c in range(wz):
                for b in range(wy):
                    line = grids[f, first[i, 2] + c, first[i, 1] + b, x : x + _WIDTH]
                    s = t = grids.dtype.type(0)
                    for a in range(_WIDTH):
                        s += values[i, 0, a] * line[a]
                        if weights is not None:
                            t += slopes[i, 0, a] * line[a]
                    value += values[i, 2, c] * values[i, 1, b] * s
                    if weights is not None:
                        gx += values[i, 2, c] * values[i, 1, b] * t
                        gy += values[i, 2, c] * slopes[i, 1, b] * s
                        gz += slopes[i, 2, c] * values[i, 1, b] * s
            field[i, f] = value
            if weights is not None:
                gradient[i, 0] += weights[f, i] * gx
                gradient[i, 1] += weights[f, i] * gy
                gradient[i, 2] += weights[f, i] * gz


def _lines(columns: Array) -> Array:
    return np.ascontiguousarray(columns.T, dtype=np.float32)


def _window(x: Array) -> Array:
    z = np.clip(2 * x / _WIDTH, -1, 1)
    return np.asarray(np.exp(_BETA * (np.sqrt(1 - z**2) - 1)) * (np.abs(2 * x / _WIDTH) < 1))


@lru_cache(maxsize=1)
def _tables() -> tuple[Array, Array]:
    """Window and slope at the _WIDTH cells around a point, by the place of the point in its cell."""
    place = np.arange(_TABLE + 1) / _TABLE
    # The cell a lies at a - (_WIDTH / 2 - 1) from the floor of the point. The slope is that by the point's place.
    offset = np.arange(_WIDTH) - (_WIDTH // 2 - 1) - place[:, None]
    step = 1e-4
    slope = (_window(offset - step) - _window(offset + step)) / (2 * step)
    return _window(offset).astype(np.float32), slope.astype(np.float32)


def _window_spectrum(omega: Array) -> Array:
    node, weight = np.polynomial.legendre.leggauss(100)
    x = node * _WIDTH / 2
    return np.asarray((_window(x) * weight * _WIDTH / 2) @ np.cos(np.outer(x, omega)))


@lru_cache(maxsize=4)
def _kernel_spectrum(size: int, n_dims: int) -> Array:
    """Spectrum of the Student kernel on a periodic grid, with the window's share undone.

    The window blurs a charge and aliases it; the factor below is the one of least squared error over all
    places of the points within their cells.
    """
    r = np.minimum(np.arange(size), size - np.arange(size)) * _SPACING
    r2 = sum(np.expand_dims(r**2, tuple(e for e in range(n_dims) if e != d)) for d in range(n_dims))
    spectrum = scipy.fft.rfftn(1 / (1 + r2), axes=range(n_dims)).real
    omega = 2 * np.pi * np.fft.fftfreq(size)
    images = sum(_window_spectrum(omega + 2 * np.pi * k) ** 2 for k in range(-2, 3))
    factor = _window_spectrum(omega) ** 2 / images**2
    for d in range(n_dims):
        part = factor[: size // 2 + 1] if d == n_dims - 1 else factor
        spectrum = spectrum * np.expand_dims(part, tuple(e for e in range(n_dims) if e != d))
    return np.asarray(spectrum, dtype=np.float32)


def _grid_size(span: float) -> int:
    """Cells a side: twice those that the points take, in steps, so that a growing map keeps its grid for a while."""
    cells = int(np.ceil(span / _SPACING)) + _WIDTH
    step = max(8, 1 << max(cells.bit_length() - 5, 0))
    cells = -(-cells // step) * step
    least = max(2 * cells, int(_MIN_PERIOD / _SPACING))
    size = scipy.fft.next_fast_len(least, real=True)
    while size % 2:
        size = scipy.fft.next_fast_len(size + 1, real=True)
    return int(size)


def grid_fits(Y: NDArray[np.float64]) -> bool:
    """Whether the grid of a map is small enough; that of a map with a point thrown far away may not be."""
    return bool(_grid_size(float(np.ptp(Y, axis=0).max())) ** Y.shape[1] <= _MAX_CELLS)


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
        self.workers = workers or Workers(1)
        self._Y = Y - Y.mean(axis=0)
        y = np.ascontiguousarray(self._Y.T.astype(np.float32))
        self.geometry = (*y, *[None] * (3 - self.n_components), None)
        span = float(np.ptp(self._Y, axis=0).max())
        self._mesh: ChebyshevBox | _Mesh
        self._mesh = ChebyshevBox(self._Y) if span <= MAX_SPAN else _Mesh(self._Y, span, self.workers)

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
    """A grid around the map, with the stencils of its points."""

    def __init__(self, Y: NDArray[np.float64], span: float, workers: Workers) -> None:
        self.workers = workers
        self.n_dims = Y.shape[1]
        self.size = _grid_size(span)
        self.used = self.size // 2
        self.widths = tuple(_WIDTH if d < self.n_dims else 1 for d in (1, 2))  # every map has a first dimension
        u = (Y - Y.min(axis=0)) / _SPACING + (_WIDTH // 2 - 1)
        n = len(Y)
        first = np.empty((n, 3), np.int32)
        values, slopes = np.empty((2, n, 3, _WIDTH), np.float32)
        self.stencil = Stencil(first, values, slopes)
        workers.rows(_stencil_rows, n, u, self.n_dims, *_tables(), *self.stencil, work=100.0 * n)

    def fields(
        self, charges: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Fields of the charges with the points themselves, and the sum of their gradients times the weights."""
        n, n_charges = charges.shape
        field = np.empty((n, n_charges))
        gradient = np.zeros((n, 3))
        batch = min(max(_BATCH_CELLS // self.size**self.n_dims, 1), _MAX_BATCH)
        for start in range(0, n_charges, batch):
            columns = slice(start, start + batch)
            grids = self._convolved(_lines(charges[:, columns]))
            args = (grids, None if weights is None else _lines(weights[:, columns]))
            part = np.empty((n, grids.shape[0]))
            work = 100.0 * n * grids.shape[0]
            self.workers.rows(_read_rows, n, *self.stencil, self.widths, *args, part, gradient, work=work)
            field[:, columns] = part
        return field, gradient[:, : self.n_dims] / _SPACING

    def _convolved(self, charges: Array) -> Array:
        """Grids of the fields, on the part of the grid where the points are."""
        n_fields = charges.shape[0]
        shape = tuple(self.used if d < self.n_dims else 1 for d in reversed(range(3)))
        grids = np.zeros((n_fields, *shape), np.float32)
        first, values, _ = self.stencil
        work = 40.0 * charges.size
        self.workers.rows(_spread_fields, n_fields, first, values, self.widths, charges, grids, work=work, alignment=1)
        # Axis by axis: transforms run only over lines that hold something, and back only over those that are read.
        axes = list(range(4 - self.n_dims, 4))
        options = {"workers": self.workers.n_threads, "overwrite_x": True}
        spectrum = scipy.fft.rfft(grids, self.size, axis=axes[-1], **options)
        for axis in axes[:-1]:
            spectrum = scipy.fft.fft(spectrum, self.size, axis=axis, **options)
        spectrum *= _kernel_spectrum(self.size, self.n_dims)
        keep: list[slice] = [slice(None)] * 4
        for axis in axes[:-1]:
            keep[axis] = slice(self.used)
            spectrum = scipy.fft.ifft(spectrum, axis=axis, **options)[tuple(keep)]
        field = scipy.fft.irfft(spectrum, self.size, axis=axes[-1], workers=self.workers.n_threads)
        return np.ascontiguousarray(field[..., : self.used])
