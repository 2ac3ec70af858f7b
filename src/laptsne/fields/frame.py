"""A regular mesh over an embedding, on which charges are spread, convolved with a kernel and interpolated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.fields.grid import STUDENT, bulk_box, convolved, n_cells
from laptsne.fields.spreading import CubicSpline, interpolate, spread, spread_parts
from laptsne.kernels import RadialKernel

SPACING_PER_WIDTH = 0.35  # of a mesh for a Gaussian kernel; errors are quadratic in it, up to 6 % of gradients here
_SPLINE = CubicSpline()
_MARGIN = 4  # cells around the embedding, for the splines and for points that move
# Upper limit of the number of nodes: proportional to the number of points, between these bounds.
_NODES_PER_POINT = 64
_FEW_NODES, MAX_NODES = 1 << 18, 1 << 21


@dataclass(frozen=True)
class Frame:
    """A regular mesh: node m lies at origin + spacing m."""

    origin: Array
    spacing: float
    cells: tuple[int, ...]
    workers: Workers
    kernel: RadialKernel = STUDENT

    @classmethod
    def around(
        cls, y: Array, spacing: float, workers: Workers, kernel: RadialKernel = STUDENT, most: int | None = None
    ) -> Frame:
        """Return a mesh over the points, coarser than requested if it would have more than ``most`` nodes."""
        most = most or min(max(_NODES_PER_POINT * y.shape[1], _FEW_NODES), MAX_NODES)
        low, high = bulk_box(y, spacing, most)
        extents = high - low
        thin = float(extents.max()) * (2 * _MARGIN + 2) ** (len(y) - 1) / most  # if the points lie on a line
        spacing = max(spacing, float(np.prod(extents) / most) ** (1 / len(y)), thin)
        # On a fixed lattice, so that the nodes of successive meshes coincide.
        origin = (np.floor(low / spacing) - _MARGIN) * spacing
        cells = tuple(n_cells(float(extent), spacing, _MARGIN + 1) for extent in high - origin)
        return cls(origin, spacing, cells, workers, kernel)

    def _cell_units(self, y: Array) -> Array:
        """Return coordinates in cells, clipped to the inside of the mesh.

        Kernels index their arrays by these: no position that is not finite may reach them.
        """
        last = np.array(self.cells)[:, None] - 3.0
        u = (y - self.origin[:, None]) / self.spacing
        if np.isnan(u).any():
            raise FloatingPointError("positions of points are not finite; lower the strength of the forces.")
        return np.asarray(u.clip(1, np.nextafter(last, 0)))

    def spread(self, y: Array, charges: Array) -> Array:
        """Return charges of shape (n_fields, n_samples) at y, of shape (n_dims, n_samples), spread on the nodes."""
        return spread(_SPLINE, self._cell_units(y), charges, self.cells, self.workers)

    def spread_clusters(self, y: Array, sizes: Array) -> Array:
        """Return points ordered by cluster, spread on one grid per cluster; ``sizes`` are those of the clusters."""
        return spread_parts(_SPLINE, self._cell_units(y), sizes, self.cells, self.workers)

    def interpolate(self, y: Array, grids: Array) -> Array:
        """Return the fields given by grids at y, shape (n_samples, n_fields)."""
        return interpolate(_SPLINE, self._cell_units(y), grids, None, self.workers)[0]

    def gradient(self, y: Array, grid: Array) -> Array:
        """Return the gradient of the field given by a grid at y, shape (n_samples, n_dims)."""
        ones = np.ones((1, y.shape[1]), np.float32)
        return interpolate(_SPLINE, self._cell_units(y), grid[None], ones, self.workers)[1] / self.spacing

    def convolved(self, grids: Array) -> Array:
        """Return grids convolved with the kernel."""
        return convolved(grids, self.spacing, _SPLINE, self.workers, self.kernel)

    def nodes(self, active: Array) -> Array:
        """Return the coordinates of nodes given by flat index, shape (n_dims, n_active)."""
        index = np.unravel_index(active, self.cells[::-1])
        return np.stack(index[::-1]) * self.spacing + self.origin[:, None]
