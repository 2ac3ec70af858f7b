"""Potential in which a new point moves over a finished embedding."""

from dataclasses import dataclass

import numpy as np

from laptsne._runtime.typing import Array


@dataclass(frozen=True)
class Potential:
    r"""Smooth function of the position, given by coefficients of cubic B-splines on a regular mesh.

    Parameters
    ----------
    origin : array of shape (n_components,)
        Coordinates of the first node.
    spacing : float
        Distance between adjacent nodes.
    grid : single-precision array of shape (..., n_y, n_x)
        Coefficients.
    """

    origin: Array
    spacing: float
    grid: Array

    def __post_init__(self) -> None:
        """Raise ValueError if the parts are inconsistent, for instance if they come from a damaged file."""
        if self.origin.shape != (self.grid.ndim,) or min(self.grid.shape) < 4 or not self.spacing > 0:
            raise ValueError(
                f"potential: origin of shape {self.origin.shape}, spacing {self.spacing} and grid of shape "
                f"{self.grid.shape} are inconsistent."
            )
        if not all(np.isfinite(part).all() for part in (self.origin, self.spacing, self.grid)):
            raise ValueError("potential: values must not be NaN or infinite.")

    @property
    def padded(self) -> Array:
        """The grid with three axes; those that the embedding lacks have length 1."""
        return np.asarray(self.grid.reshape((1,) * (3 - self.grid.ndim) + self.grid.shape))
