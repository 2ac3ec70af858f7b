"""Similarity of two points of the embedding as a function of their distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from laptsne._runtime.compiled import inlined


@dataclass(frozen=True)
class Student:
    r"""Student kernel of t-SNE, :math:`k(r) = 1 / (1 + r^2)`."""

    width = 1.0

    def __call__(self, r2: NDArray[Any]) -> NDArray[Any]:
        """Return the similarities at squared distances r2."""
        k = np.asarray(1 + r2)
        np.divide(1, k, out=k)  # in place, since grids are large
        return k

    def precision(self, n_samples: int, dtype: DTypeLike) -> None:
        """Return None: this kernel has no width."""

    def of(self, rows: NDArray[Any]) -> Student:
        """Return the kernel of a subset of the points."""
        return self


@dataclass(frozen=True, eq=False)
class Gaussian:
    r"""Gaussian kernel :math:`k(r) = \exp(-r^2 / 2 \sigma^2)`.

    Parameters
    ----------
    sigma : float or array of shape (n_samples,), default=1.0
        The width. With one width per point, the similarity of i and j is the mean of the two kernels,
        :math:`\tfrac12 [\exp(-r^2 / 2\sigma_i^2) + \exp(-r^2 / 2\sigma_j^2)]`.

    Examples
    --------
    >>> from laptsne import LaptSNE, kernels
    >>> LaptSNE(kernel=kernels.Gaussian(sigma=2.0)).kernel
    Gaussian(sigma=2.0)
    """

    sigma: float | NDArray[np.floating[Any]] = 1.0

    @property
    def width(self) -> float:
        """The width, if it is common to all points."""
        return float(self.sigma)

    def __call__(self, r2: NDArray[Any]) -> NDArray[Any]:
        """Return the similarities at squared distances r2, for a common width."""
        return np.asarray(np.exp(-r2 / (2 * self.width**2)))

    def precision(self, n_samples: int, dtype: DTypeLike) -> NDArray[Any]:
        r"""Return :math:`1 / \sigma^2` of each point."""
        sigma = np.asarray(self.sigma, dtype=np.float64)
        if sigma.ndim > 1 or not (np.isfinite(sigma).all() and (sigma > 0).all()):
            raise ValueError(f"kernel: sigma must be positive, one number or one per point; got {self.sigma!r}.")
        if sigma.ndim == 1 and sigma.size != n_samples:
            raise ValueError(
                f"kernel: sigma has {sigma.size} values, but there are {n_samples} points; "
                "give one number for all points or one per point."
            )
        return np.full(n_samples, 1.0 / sigma**2, dtype=dtype)

    def of(self, rows: NDArray[Any]) -> Gaussian:
        """Return the kernel of a subset of the points."""
        return self if np.ndim(self.sigma) == 0 else Gaussian(np.asarray(self.sigma)[rows])


Kernel = Student | Gaussian


@inlined
def similarity(r2: float, a: float | None, b: float | None) -> tuple[float, float]:
    """Return k and h at squared distance r2, where the gradient of k_ij is -h_ij (y_i - y_j).

    a and b are the precisions of the two points; both are None for the Student kernel.
    """
    one, half = type(r2)(1), type(r2)(0.5)
    if a is None or b is None:
        k = one / (one + r2)
        h = (k + k) * k
    else:
        ki = half * np.exp(-half * a * r2)
        kj = half * np.exp(-half * b * r2)
        k = ki + kj
        h = a * ki + b * kj
    return k, h


@inlined
def attraction(r2: float, a: float | None, b: float | None) -> tuple[float, float]:
    """Return h / k and log k of :func:`similarity`; both are finite even if k underflows."""
    one, half = type(r2)(1), type(r2)(0.5)
    if a is None or b is None:
        return (one + one) / (one + r2), -np.log(one + r2)
    m = min(a, b)
    ki = np.exp(-half * (a - m) * r2)
    kj = np.exp(-half * (b - m) * r2)
    # The bound prevents overflow in single precision, for narrow kernels and wide embeddings.
    return (a * ki + b * kj) / (ki + kj), np.log(half * (ki + kj)) - min(half * m * r2, type(r2)(1e30))
