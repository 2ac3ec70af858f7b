"""The potential in which one more point would move over a finished map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Potential:
    r"""A smooth function over the map, as the coefficients of cubic splines on a regular mesh.

    Parameters
    ----------
    origin : array of shape (n_components,)
        Place of the first node.
    spacing : float
        Distance of two nodes.
    grid : single-precision array of shape (..., n_y, n_x)
        Coefficients.
    """

    origin: Array
    spacing: float
    grid: Array

    def __post_init__(self) -> None:
        """Refuse what does not fit together, as a damaged file might bring."""
        if self.origin.shape != (self.grid.ndim,) or min(self.grid.shape) < 4 or not self.spacing > 0:
            raise ValueError(
                f"potential: origin of shape {self.origin.shape}, spacing {self.spacing} and grid of shape "
                f"{self.grid.shape} do not belong together."
            )
        if not all(np.isfinite(part).all() for part in (self.origin, self.spacing, self.grid)):
            raise ValueError("potential: it has values that are NaN or infinite.")

    @property
    def padded(self) -> Array:
        """The grid with three dimensions, of one cell where the map has fewer."""
        return np.asarray(self.grid.reshape((1,) * (3 - self.grid.ndim) + self.grid.shape))
