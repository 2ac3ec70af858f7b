"""The width of the similarities of the points of an embedding, and penalties of their eigenvalues."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

# In RMS radii of the embedding / sqrt(n_clusters) (docs/notes/method-what-was-tried.md has others).
_WIDTH = 0.75
# Floor of the penalty: an eigenvalue well below it counts as zero, and its cluster is not contracted any further.
FLOOR = 0.01
MAX_CONTRACTED = 60  # clusters that are contracted if their number is not given
# Least width, in RMS radii / sqrt(n_samples): a quarter of the distance between neighbours of points in a disc.
_MIN_WIDTH = 0.6


def kernel_width(Y: NDArray[Any], n_clusters: int, wanted: float | None = None) -> float:
    """Return the width of the Gaussian kernel of the contraction for an embedding with a number of clusters.

    By default, it is proportional to the radius that each of K equal clusters has if together they fill the embedding,
    but at least 1, the width of the kernel of the KL divergence. It is at least a quarter of the spacing of the points
    and at most the radius of the embedding.
    """
    n_samples, n_dims = Y.shape
    radius = max(rms_radius(Y), 1.0)  # less in the first iterations only, where gradients would be too large
    width = max(_WIDTH * radius / n_clusters ** (1 / n_dims), 1.0) if wanted is None else wanted
    return float(np.clip(width, _MIN_WIDTH * radius / n_samples ** (1 / n_dims), radius))


def rms_radius(Y: NDArray[Any]) -> float:
    """Return the RMS distance of the points from their mean."""
    # Column by column: reductions over short rows are slow.
    return float(np.sqrt(sum(np.var(column, dtype=np.float64) for column in Y.T)))


@dataclass(frozen=True)
class Penalty:
    r"""A concave function :math:`\phi(\sigma)` of an eigenvalue, and its slope.

    It is :math:`\log(\sigma + \varepsilon)` if ``kind`` is "log", :math:`\sigma` if it is "trace", and
    :math:`(\sigma + \varepsilon)^p - \varepsilon^p` if it is a power p. The floor :math:`\varepsilon` keeps the slope
    finite at 0: an eigenvalue well below it counts as zero.
    """

    kind: str | float
    floor: float = 1e-3

    def value(self, sigma: Values) -> Values:
        """Return the penalty of each eigenvalue."""
        if self.kind == "log":
            return np.log(sigma + self.floor)
        p = self._power
        return np.asarray((sigma + self.floor) ** p - self.floor**p)

    def slope(self, sigma: Values) -> Values:
        """Return the derivative of the penalty at each eigenvalue."""
        if self.kind == "log":
            return 1 / (sigma + self.floor)
        return np.asarray(self._power * (sigma + self.floor) ** (self._power - 1))

    @property
    def _power(self) -> float:
        return 1.0 if self.kind == "trace" else float(self.kind)
