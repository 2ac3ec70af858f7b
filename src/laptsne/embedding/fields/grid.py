r"""Convolution with the Student kernel on a regular grid, by FFT.

The Fourier transform of the kernel falls off like :math:`e^{-|\omega|}`, so that a grid with a spacing of
half the kernel's width or less holds it. Points enter and leave the grid through a window; what the window does to the
spectrum is undone in the kernel's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from laptsne._runtime.threads import Workers

Array = NDArray[Any]

# The kernel repeats with the period of the grid. Below this period its kink half-way would show.
_MIN_PERIOD = 24.0
# Above this spacing the grid no longer holds the kernel, and to undo the window would magnify what it misses.
_MAX_SHARP = 0.7


@dataclass(frozen=True)
class Window:
    """How a point is shared among the cells around it.

    Parameters
    ----------
    width : int
        Cells a side; even.
    beta : float or None
        Sharpness of the window :math:`e^{\\beta (\\sqrt{1 - z^2} - 1)}`; None is the cubic spline of width 4.
    """

    width: int
    beta: float | None = None

    def __call__(self, x: Array) -> Array:
        """Value at the distance x, in cells."""
        if self.beta is None:
            r = np.abs(x)
            return np.asarray(np.where(r < 1, (3 * r**3 - 6 * r**2 + 4) / 6, np.maximum(2 - r, 0) ** 3 / 6))
        z = 2 * x / self.width
        return np.asarray(np.exp(self.beta * (np.sqrt(1 - np.clip(z, -1, 1) ** 2) - 1)) * (np.abs(z) < 1))

    def spectrum(self, omega: Array) -> Array:
        """Fourier transform at the frequencies omega, in radians a cell."""
        if self.beta is None:
            return np.asarray(np.sinc(omega / (2 * np.pi)) ** 4)
        node, weight = _quadrature()
        x = node * self.width / 2
        return np.asarray((self(x) * weight * self.width / 2) @ np.cos(np.outer(x, omega)))


@lru_cache(maxsize=1)
def _quadrature() -> tuple[Array, Array]:
    return np.polynomial.legendre.leggauss(100)


def bulk_box(y: Array, spacing: float, max_cells: int) -> tuple[Array, Array]:
    """Corners of a box around the points without those far away, if these would make the grid too large.

    The box is that of all points if its cells are at most ``max_cells``. Otherwise, on each axis, it ends where the
    points do, or at a distance from the inner 99 % of them that is as long as these are wide. Beyond it, forces are
    negligible, and stray points are treated as if they were on its edge.

    Parameters
    ----------
    y : array of shape (n_dims, n_samples)
        Coordinates.
    """
    low, high = y.min(axis=1), y.max(axis=1)
    if np.prod((high - low) / spacing) <= max_cells:
        return low, high
    n_outer = -(-y.shape[1] // 200)
    ordered = np.partition(y, (n_outer, -n_outer - 1), axis=1)
    inner_low, inner_high = ordered[:, n_outer], ordered[:, -n_outer - 1]
    width = inner_high - inner_low
    return np.maximum(low, inner_low - width), np.minimum(high, inner_high + width)


def n_cells(extent: float, spacing: float, margin: int) -> int:
    """Cells for the extent and a margin, in steps of a few percent: a growing map keeps its grid for a while."""
    cells = int(np.ceil(extent / spacing)) + margin
    step = max(8, 1 << max(cells.bit_length() - 5, 0))
    return -(-cells // step) * step


def period(cells: int, spacing: float) -> int:
    """Size of the transforms for a side of ``cells``: twice as long, so that no point meets its image."""
    size = scipy.fft.next_fast_len(max(2 * cells, int(_MIN_PERIOD / spacing)), real=True)
    while size % 2:
        size = scipy.fft.next_fast_len(size + 1, real=True)
    return int(size)


@lru_cache(maxsize=4)
def kernel_spectrum(sizes: tuple[int, ...], spacing: float, window: Window) -> Array:
    """Spectrum of the Student kernel on a periodic grid, with the window's share undone.

    The window blurs a charge and aliases it; the factor below is the one of least squared error over all
    places of the points within their cells.
    """
    n_dims = len(sizes)
    r2: Any = 0.0
    for d, size in enumerate(sizes):
        r = np.minimum(np.arange(size), size - np.arange(size)) * spacing
        r2 = r2 + _along(r**2, d, n_dims)
    spectrum = scipy.fft.rfftn(1 / (1 + r2)).real
    for d, size in enumerate(sizes):
        omega = 2 * np.pi * (np.fft.rfftfreq(size) if d == n_dims - 1 else np.fft.fftfreq(size))
        images = sum(window.spectrum(omega + 2 * np.pi * k) ** 2 for k in range(-2, 3))
        factor = window.spectrum(omega) ** 2 / images**2
        spectrum *= _along(factor if spacing <= _MAX_SHARP else np.ones_like(factor), d, n_dims)
    return np.asarray(spectrum, dtype=np.float32)


def _along(values: Array, axis: int, n_dims: int) -> Array:
    return np.expand_dims(values, tuple(e for e in range(n_dims) if e != axis))


def convolved(grids: Array, spacing: float, window: Window, workers: Workers) -> Array:
    """Convolve each of ``grids``, of shape (n_grids, ..., n_y, n_x), with the kernel."""
    sizes = tuple(period(side, spacing) for side in grids.shape[1:])
    spectrum = kernel_spectrum(sizes, spacing, window)
    out = np.empty_like(grids)
    if len(grids) < workers.n_threads:
        _convolve(0, len(grids), grids, spectrum, sizes, workers.n_threads, out)
    else:  # grid by grid, so that each stays in the cache
        work = 100.0 * grids.size
        workers.rows(_convolve, len(grids), grids, spectrum, sizes, 1, out, work=work, alignment=1)
    return out


def _convolve(
    start: int, stop: int, grids: Array, kernel: Array, sizes: tuple[int, ...], n_threads: int, out: Array
) -> None:
    options: dict[str, Any] = {"workers": n_threads, "overwrite_x": True}
    cells = grids.shape[1:]
    for g in range(start, stop):
        # Axis by axis: transforms run only over lines that hold something, and back only over those that are read.
        spectrum = scipy.fft.rfft(grids[g], sizes[-1], axis=-1, workers=n_threads)
        for axis in range(len(cells) - 1):
            spectrum = scipy.fft.fft(spectrum, sizes[axis], axis=axis, **options)
        spectrum *= kernel
        for axis in range(len(cells) - 1):
            spectrum = scipy.fft.ifft(spectrum, axis=axis, **options)
            spectrum = spectrum[(slice(None),) * axis + (slice(cells[axis]),)]
        out[g] = scipy.fft.irfft(spectrum, sizes[-1], axis=-1, **options)[..., : cells[-1]]
