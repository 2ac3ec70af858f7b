"""Potential in which a new point moves over a finished embedding."""

from dataclasses import dataclass

import numpy as np

from laptsne._runtime.compiled import inlined
from laptsne._runtime.typing import Array
from laptsne.fields.spreading import spline_slopes, spline_weights


@dataclass(frozen=True)
class Potential:
    """Smooth function of the position, given by coefficients of cubic B-splines on a regular mesh.

    Each point of the embedding contributes ``charge`` times its similarity to the position; it is 0 if unknown, as in
    files of earlier versions.
    """

    origin: Array  # of the first node
    spacing: float
    grid: Array  # coefficients in single precision, of shape (..., n_y, n_x)
    charge: float = 0.0

    def __post_init__(self) -> None:
        """Raise ValueError if the parts are inconsistent, for instance if they come from a damaged file."""
        if self.origin.shape != (self.grid.ndim,) or min(self.grid.shape) < 4 or not self.spacing > 0:
            shapes = f"origin of shape {self.origin.shape}, spacing {self.spacing} and grid of shape {self.grid.shape}"
            raise ValueError(f"potential: {shapes} are inconsistent.")
        if not all(np.isfinite(part).all() for part in (self.origin, self.spacing, self.grid, self.charge)):
            raise ValueError("potential: values must not be NaN or infinite.")

    @property
    def field(self) -> tuple[Array, float, Array, float]:
        """What kernels take: the parts, with three axes of the grid; those that the embedding lacks have length 1."""
        grid = self.grid.reshape((1,) * (3 - self.grid.ndim) + self.grid.shape)
        return self.origin, self.spacing, grid, self.charge


@inlined
def potential_at(y: Array, origin: Array, spacing: float, grid: Array, w: Array, s: Array, gradient: Array) -> float:
    """Return the potential at y and set its gradient; outside the mesh it is constant."""
    n_dims = y.size
    x = [0, 0, 0]
    w[1:, 0], s[1:, 0] = 1, 0  # dimensions that the embedding lacks
    for d in range(n_dims):
        u = (y[d] - origin[d]) / spacing
        if not u >= 1:  # NaN as well: nothing else keeps indices inside the grid
            u = 1.0
        u = min(u, grid.shape[2 - d] - 2.000001)
        cell = int(np.floor(u))
        w[d, 0], w[d, 1], w[d, 2], w[d, 3] = spline_weights(u - cell)
        s[d, 0], s[d, 1], s[d, 2], s[d, 3] = spline_slopes(u - cell)
        x[d] = cell - 1
    value = gx = gy = gz = 0.0
    for c in range(4 if n_dims > 2 else 1):
        for b in range(4 if n_dims > 1 else 1):
            for a in range(4):
                node = grid[x[2] + c, x[1] + b, x[0] + a]
                value += node * w[0, a] * w[1, b] * w[2, c]
                gx += node * s[0, a] * w[1, b] * w[2, c]
                gy += node * w[0, a] * s[1, b] * w[2, c]
                gz += node * w[0, a] * w[1, b] * s[2, c]
    slope = (gx, gy, gz)
    for d in range(n_dims):
        gradient[d] = slope[d] / spacing
    return value
