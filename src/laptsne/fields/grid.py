r"""Convolution with a kernel on a regular grid, by FFT.

The Fourier transform of the kernel decays like :math:`e^{-|\omega|}`, so that a grid with a spacing of at most half the
kernel's width resolves it. Charges are spread on the grid and fields interpolated from it by a window, whose effect on
the spectrum is compensated in the spectrum of the kernel (particle-mesh method; Hockney and Eastwood 1988).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.fft
import scipy.ndimage

from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.fields.spreading import CubicSpline, Window, interpolate_rows, spread_parts, tables
from laptsne.fields.umap_kernel import FarRepulsion
from laptsne.kernels import Gaussian, Student

RadialKernel = Student | Gaussian | FarRepulsion
STUDENT, GAUSSIAN, SPLINE = Student(), Gaussian(), CubicSpline()
# The Student kernel is periodic on the grid, with a kink at half the period, which is negligible above this period.
_MIN_PERIOD = 24.0
_REACH = 6.0  # distance, in widths, beyond which a Gaussian kernel is negligible
_MAX_SHARP = 0.7  # spacing, in widths, above which compensating the window would amplify the error
# Cells per side up to which a Gaussian kernel is faster by matrices, one per axis, than by transforms.
_MAX_SIDE = 400
_OPERATIONS = 16  # of a matrix product, in the time of an elementary one
_MIN_THREADED = 1 << 17  # cells of a transform; below, several threads are slower than one
SPACING_PER_WIDTH = 0.35  # of a mesh for a Gaussian kernel; errors are quadratic in it, up to 6 % of gradients here
_PARTS = 4  # in which a single field is spread, so that its bits do not depend on the number of threads
_MARGIN = 4  # cells around the embedding, for the splines and for points that move
# Upper limit of the number of nodes: proportional to the number of points, between these bounds.
_NODES_PER_POINT = 64
_FEW_NODES, MAX_NODES = 1 << 18, 1 << 21


def bulk_box(y: Array, spacing: float, max_cells: int) -> tuple[Array, Array]:
    """Return the corners of the bounding box of points of shape (n_dims, n_samples), or of most of them.

    If it has more than ``max_cells`` cells, each axis is limited to the range of the inner 99 % of the points, extended
    by its width on both sides. Forces beyond it are negligible, and callers move stray points to its edge.
    """
    low, high = y.min(axis=1), y.max(axis=1)
    if np.prod((high - low) / spacing) <= max_cells:
        return low, high
    n_outer = min(-(-y.shape[1] // 200), (y.shape[1] - 1) // 2)
    ordered = np.partition(y, (n_outer, -n_outer - 1), axis=1)
    inner_low, inner_high = ordered[:, n_outer], ordered[:, -n_outer - 1]
    width = inner_high - inner_low
    return np.maximum(low, inner_low - width), np.minimum(high, inner_high + width)


def sides(extents: Array, spacing: float, margin: int) -> tuple[int, ...]:
    """Return the number of cells per side, in steps of a few percent, so that a growing embedding rarely changes it."""
    least = [int(cells) + margin for cells in np.ceil(extents / spacing)]
    steps = [max(8, 1 << max(cells.bit_length() - 5, 0)) for cells in least]
    return tuple(-(-cells // step) * step for cells, step in zip(least, steps, strict=True))


def period(cells: int, spacing: float, kernel: RadialKernel = STUDENT) -> int:
    """Return the size of the transforms, so large that points do not interact with images of others."""
    if isinstance(kernel, Gaussian):
        least = cells + int(np.ceil(_REACH * kernel.width / spacing))
    else:
        least = max(2 * cells, int(_MIN_PERIOD / spacing))
    size = scipy.fft.next_fast_len(least, real=True)
    while size % 2:
        size = scipy.fft.next_fast_len(size + 1, real=True)
    return int(size)


@lru_cache(maxsize=4)
def kernel_spectrum(sizes: tuple[int, ...], spacing: float, window: Window, kernel: RadialKernel) -> Array:
    """Return the spectrum of the kernel on a periodic grid, with the window compensated.

    The window blurs and aliases charges; the factor minimises the squared error over all positions within a cell.
    """
    lines = [np.minimum(np.arange(size), size - np.arange(size)) * spacing for size in sizes]
    r2: Any = sum(np.ix_(*(line**2 for line in lines)))
    spectrum = scipy.fft.rfftn(kernel(r2)).real
    if spacing <= _MAX_SHARP * kernel.width:
        omegas = [2 * np.pi * np.fft.fftfreq(size) for size in sizes[:-1]] + [2 * np.pi * np.fft.rfftfreq(sizes[-1])]
        images = [sum(window.spectrum(omega + 2 * np.pi * k) ** 2 for k in range(-2, 3)) for omega in omegas]
        for factor in np.ix_(*(window.spectrum(omegas[d]) ** 2 / images[d] ** 2 for d in range(len(sizes)))):
            spectrum *= factor
    return np.asarray(spectrum, dtype=np.float32)


def _convolve_by_axis(start: int, stop: int, grids: Array, matrices: list[Array], out: Array) -> None:
    """Set out to the grids convolved with a Gaussian kernel, given its matrix for each axis."""
    axes = range(grids.ndim - 1)
    # Charges of a cluster fill a small part of the mesh: only there, the products take time.
    for g in range(start, stop):  # one by one: the bits of a product depend on its number of rows
        filled = [np.flatnonzero(grids[g].any(axis=tuple({*axes} - {axis}))) for axis in axes]
        box = [slice(nodes[0], nodes[-1] + 1) if nodes.size else slice(0, 0) for nodes in filled]
        product = grids[g][tuple(box)]
        if len(axes) == 2:
            np.matmul(matrices[0][:, box[0]], product @ matrices[1][box[1]], out=out[g])
            continue
        for axis in reversed(axes):  # the last axis becomes the first: after one turn, they are in order
            product = np.moveaxis(np.ascontiguousarray(product) @ matrices[axis][box[axis]], -1, 0)
        out[g] = product


@lru_cache(maxsize=32)  # for each level of a tree of clusters, one per axis
def _gaussian_matrix(cells: int, spacing: float, window: Window) -> Array:
    """Return the Gaussian kernel between the nodes of an axis, with the window compensated; spacing in widths."""
    size = period(cells, spacing, GAUSSIAN)
    line = scipy.fft.irfft(kernel_spectrum((size,), spacing, window, GAUSSIAN), size)
    return np.ascontiguousarray(line[np.abs(np.arange(cells)[:, None] - np.arange(cells))], dtype=np.float32)


def _convolve(
    start: int, stop: int, grids: Array, kernel: Array, sizes: tuple[int, ...], n_threads: int, out: Array
) -> None:
    options: dict[str, Any] = {"workers": n_threads, "overwrite_x": True}
    cells = grids.shape[1:]
    for g in range(start, stop):
        # Axis by axis: forward transforms skip the padding, which is zero, and backward ones skip what is cut off.
        spectrum = scipy.fft.rfft(grids[g], sizes[-1], axis=-1, workers=n_threads)
        for axis in range(len(cells) - 1):
            spectrum = scipy.fft.fft(spectrum, sizes[axis], axis=axis, **options)
        spectrum *= kernel
        for axis in range(len(cells) - 1):
            spectrum = scipy.fft.ifft(spectrum, axis=axis, **options)
            spectrum = spectrum[(slice(None),) * axis + (slice(cells[axis]),)]
        out[g] = scipy.fft.irfft(spectrum, sizes[-1], axis=-1, **options)[..., : cells[-1]]


@dataclass(frozen=True)
class Mesh:
    """A regular mesh for charges and their fields under a kernel; node m lies at origin + spacing (m - shift)."""

    origin: Array
    spacing: float
    cells: tuple[int, ...]
    workers: Workers
    kernel: RadialKernel = STUDENT
    window: Window = SPLINE
    shift: int = 0
    last: Array | None = None  # largest positions of points, in cells, if not the end of the mesh

    @classmethod
    def around(
        cls, y: Array, spacing: float, workers: Workers, kernel: RadialKernel = STUDENT, most: int | None = None
    ) -> Mesh:
        """Return a mesh over the points, coarser than requested if it would have more than ``most`` nodes."""
        most = most or min(max(_NODES_PER_POINT * y.shape[1], _FEW_NODES), MAX_NODES)
        low, high = bulk_box(y, spacing, most)
        extents = high - low
        thin = float(extents.max()) * (2 * _MARGIN + 2) ** (len(y) - 1) / most  # if the points lie on a line
        spacing = max(spacing, float(np.prod(extents) / most) ** (1 / len(y)), thin)
        # On a fixed lattice, so that the nodes of successive meshes coincide.
        origin = (np.floor(low / spacing) - _MARGIN) * spacing
        return cls(origin, spacing, sides(high - origin, spacing, _MARGIN + 1), workers, kernel)

    @classmethod
    def bounding(
        cls, y: Array, spacing: float, workers: Workers, kernel: RadialKernel, window: Window, max_cells: int
    ) -> Mesh:
        """Return the smallest mesh for a window with the points, or with :func:`bulk_box`, inside."""
        low, high = bulk_box(y, spacing, max_cells)
        shift = window.width // 2 - 1
        cells = sides(high - low, spacing, window.width)
        return cls(low, spacing, cells, workers, kernel, window, shift, (high - low) / spacing + shift)

    @property
    def n_transformed(self) -> float:
        """The number of cells of the transforms."""
        return float(np.prod([float(period(side, self.spacing, self.kernel)) for side in self.cells]))

    @property
    def _shape(self) -> tuple[int, ...]:
        """The shape of a grid with three axes; those that the embedding lacks have length 1."""
        return (*[1] * (3 - len(self.cells)), *reversed(self.cells))

    def positions(self, y: Array) -> Array:
        """Return coordinates in cells, clipped to the inside of the mesh.

        Kernels index their arrays by these: no position that is not finite may reach them.
        """
        u = (y - self.origin[:, None]) / self.spacing + self.shift
        if np.isnan(u).any():
            raise FloatingPointError("positions of points are not finite; lower the strength of the forces.")
        last = np.nextafter(np.array(self.cells) - 3.0, 0) if self.last is None else self.last
        return np.asarray(u.clip(max(self.shift, 1), last[:, None]))

    def spread(self, y: Array, charges: Array, sizes: Array | None = None) -> Array:
        """Return charges of shape (n_fields, n_samples) at y, of shape (n_dims, n_samples), spread on the nodes.

        With ``sizes``, successive parts of that many points have a grid each.
        """
        n_fields, n_samples = charges.shape
        n_parts = _PARTS if n_fields == 1 else 1
        edges = np.linspace(0, n_samples, n_parts + 1).astype(np.int64) if sizes is None else np.cumsum([0, *sizes])
        grids = np.zeros((n_fields * (edges.size - 1), *self._shape), np.float32)
        args = (self.positions(y), tables(self.window)[0], (0,) * self.window.width, charges, edges, grids)
        self.workers.rows(spread_parts, len(grids), *args, work=40.0 * charges.size, alignment=1)
        if len(grids) > n_fields and sizes is None:
            grids = grids.sum(axis=0, keepdims=True)
        return grids.reshape(-1, *reversed(self.cells))

    def interpolate(self, y: Array, grids: Array) -> Array:
        """Return the fields given by grids at y, shape (n_samples, n_fields)."""
        return self.with_gradient(y, grids, None)[0]

    def with_gradient(
        self, y: Array, grids: Array, weights: Array | None, own: Array | None = None
    ) -> tuple[Array, Array]:
        """Return the same, and the sum of the gradients with respect to positions in cells, times the weights.

        Weights are in single precision, of shape (n_fields, n_samples). Without weights there is no gradient. With
        ``own``, the number of a grid for each point, only the field of that grid counts.
        """
        n_dims, n_samples = y.shape
        field, gradient = np.empty((n_samples, len(grids) if own is None else 1)), np.zeros((n_samples, n_dims))
        grids = grids.reshape(len(grids), *self._shape)
        args = (self.positions(y), tables(self.window), (0,) * self.window.width, grids, own, weights)
        self.workers.rows(interpolate_rows, n_samples, *args, (field, gradient), work=100.0 * field.size)
        return field, gradient

    def convolved(self, grids: Array) -> Array:
        """Return each of ``grids``, of shape (n_grids, ..., n_y, n_x), convolved with the kernel."""
        kernel, spacing, n_threads, out = self.kernel, self.spacing, self.workers.n_threads, np.empty_like(grids)
        if isinstance(kernel, Gaussian):
            # In widths, so that spectra can be used again while an embedding grows, and width and spacing with it.
            kernel, spacing = GAUSSIAN, round(spacing / kernel.width, 12)
            if max(self.cells) <= _MAX_SIDE:
                matrices = [_gaussian_matrix(side, spacing, self.window) for side in grids.shape[1:]]
                work = float(grids.size) * sum(self.cells) / _OPERATIONS
                self.workers.rows(_convolve_by_axis, len(grids), grids, matrices, out, work=work, alignment=1)
                return out
        sizes = tuple(period(side, spacing, kernel) for side in grids.shape[1:])
        spectrum = kernel_spectrum(sizes, spacing, self.window, kernel)
        if len(grids) < n_threads:
            _convolve(0, len(grids), grids, spectrum, sizes, n_threads if np.prod(sizes) >= _MIN_THREADED else 1, out)
        else:  # one grid per thread, which stays in its cache
            args = (grids, spectrum, sizes, 1, out)
            self.workers.rows(_convolve, len(grids), *args, work=100.0 * grids.size, alignment=1)
        return out

    def field(self, y: Array, charges: Array) -> Array:
        """Return grids with the fields of charges of shape (n_fields, n_samples) at y."""
        return self.convolved(self.spread(y, charges))

    def resampled(self, grid: Array, mesh: Mesh) -> Array:
        """Return a field given by a grid of this mesh as a grid of another one."""
        index = np.unravel_index(np.arange(np.prod(mesh.cells)), mesh.cells[::-1])
        nodes = np.stack(index[::-1]) * mesh.spacing + mesh.origin[:, None]
        values = self.interpolate(nodes, grid[None]).reshape(mesh.cells[::-1])
        # The coefficients of the splines that have these values at the nodes: splines of the values would be blurred.
        return np.asarray(scipy.ndimage.spline_filter(values, mode="mirror", output=np.float32))
