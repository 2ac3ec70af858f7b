"""Similarity of two points of the embedding as a function of their distance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from laptsne._runtime.compiled import inlined
from laptsne._runtime.typing import Array


@dataclass(frozen=True)
class Student:
    r"""Student kernel of t-SNE, :math:`k(r) = 1 / (1 + r^2)`."""

    width = 1.0
    precision = None

    def __call__(self, r2: Array) -> Array:
        """Return the similarities at squared distances r2."""
        k = np.asarray(1 + r2)
        np.divide(1, k, out=k)  # in place, since grids are large
        return k


@dataclass(frozen=True)
class Gaussian:
    r"""Gaussian kernel :math:`k(r) = \exp(-r^2 / 2 \sigma^2)` of width ``sigma``.

    Examples
    --------
    >>> from laptsne import LaptSNE, kernels
    >>> LaptSNE(kernel=kernels.Gaussian(sigma=2.0)).kernel
    Gaussian(sigma=2.0)
    """

    sigma: float = 1.0

    @property
    def width(self) -> float:
        """The width as a float, also if it is an integer."""
        return float(self.sigma)

    @property
    def precision(self) -> float:
        r"""The factor :math:`1 / \sigma^2` of squared distances."""
        if np.ndim(self.sigma) or not 0 < self.sigma < np.inf:
            raise ValueError(f"kernel: sigma must be a positive number; got {self.sigma!r}.")
        return 1 / self.width**2

    def __call__(self, r2: Array) -> Array:
        """Return the similarities at squared distances r2."""
        return np.asarray(np.exp(-r2 / (2 * self.width**2)))


Kernel = Student | Gaussian


@inlined
def similarity(r2: float, precision: float | None) -> tuple[float, float]:
    """Return k and h at squared distance r2, where the gradient of k_ij is -h_ij (y_i - y_j).

    The precision is that of a Gaussian kernel, None for the Student kernel.
    """
    one, half = type(r2)(1), type(r2)(0.5)
    if precision is None:
        k = one / (one + r2)
        return k, (k + k) * k
    k = np.exp(-half * precision * r2)
    return k, precision * k


@inlined
def attraction(r2: float, precision: float | None) -> tuple[float, float]:
    """Return h / k and log k of :func:`similarity`; both are finite even if k underflows."""
    one, half = type(r2)(1), type(r2)(0.5)
    if precision is None:
        return (one + one) / (one + r2), -np.log(one + r2)
    # The bound prevents overflow in single precision, for narrow kernels and wide embeddings.
    return precision, -min(half * precision * r2, type(r2)(1e30))
