"""The similarity of two points of the map as a function of their distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


@dataclass(frozen=True)
class Student:
    r"""Student kernel of t-SNE, :math:`k(r) = 1 / (1 + r^2)`."""

    def precision(self, n_samples: int, dtype: DTypeLike) -> None:
        """Return None: this kernel has no width."""

    def of(self, rows: NDArray[Any]) -> Student:
        """Return the kernel of some of the points."""
        return self


@dataclass(frozen=True, eq=False)
class Gaussian:
    r"""Gaussian kernel :math:`k(r) = \exp(-r^2 / 2 \sigma^2)`.

    Parameters
    ----------
    sigma : float or array of shape (n_samples,), default=1.0
        The width. With one width a point, the similarity of i and j is the mean of the two kernels,
        :math:`\tfrac12 [\exp(-r^2 / 2\sigma_i^2) + \exp(-r^2 / 2\sigma_j^2)]`.

    Examples
    --------
    >>> from laptsne import LaptSNE
    >>> from laptsne.embedding.kernels import Gaussian
    >>> LaptSNE(kernel=Gaussian(sigma=2.0)).kernel
    Gaussian(sigma=2.0)
    """

    sigma: float | NDArray[np.floating[Any]] = 1.0

    def precision(self, n_samples: int, dtype: DTypeLike) -> NDArray[Any]:
        r"""Return :math:`1 / \sigma^2` of every point."""
        sigma = np.asarray(self.sigma, dtype=np.float64)
        if sigma.ndim > 1 or not (np.isfinite(sigma).all() and (sigma > 0).all()):
            raise ValueError(f"kernel: sigma must be positive, one number or one a point; got {self.sigma!r}.")
        if sigma.ndim == 1 and sigma.size != n_samples:
            raise ValueError(
                f"kernel: sigma has {sigma.size} values, but there are {n_samples} points; "
                "give one number for all or one a point."
            )
        return np.full(n_samples, 1.0 / sigma**2, dtype=dtype)

    def of(self, rows: NDArray[Any]) -> Gaussian:
        """Return the kernel of some of the points."""
        return self if np.ndim(self.sigma) == 0 else Gaussian(np.asarray(self.sigma)[rows])


Kernel = Student | Gaussian
