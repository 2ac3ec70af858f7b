"""The similarity of two points of an embedding in UMAP, and its repulsion."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import factorial

import numpy as np
from scipy.optimize import curve_fit

from laptsne._runtime.compiled import inlined
from laptsne._runtime.typing import Array

SOFTENING = 1e-3  # added to squared distances, as umap-learn does in its repulsion
_ORDER = 4  # of the polynomial that continues the repulsion to distances below the cutoff


@dataclass(frozen=True)
class UmapKernel:
    r"""The kernel :math:`\varphi(r) = 1 / (1 + a (r^2 + \varepsilon)^b)` of UMAP.

    The softening :math:`\varepsilon` = 0.001 bounds the repulsion of points that coincide. McInnes, Healy and Melville
    (2018), "UMAP: Uniform Manifold Approximation and Projection for Dimension Reduction".

    Parameters
    ----------
    a, b : float
    """

    a: float
    b: float

    @classmethod
    def of(cls, min_dist: float, spread: float) -> UmapKernel:
        """Return the kernel that is closest to 1 up to ``min_dist`` and an exponential of scale ``spread`` beyond.

        Examples
        --------
        >>> from laptsne.embedding.umap_kernel import UmapKernel
        >>> kernel = UmapKernel.of(min_dist=0.1, spread=1.0)
        >>> round(kernel.a, 2), round(kernel.b, 2)
        (1.58, 0.9)
        """
        r = np.linspace(0, 3 * spread, 300)
        target = np.where(r < min_dist, 1.0, np.exp(-(r - min_dist) / spread))
        (a, b), _ = curve_fit(lambda r, a, b: 1 / (1 + a * r ** (2 * b)), r, target)
        return cls(float(a), float(b))

    def repulsion(self, r2: Array) -> Array:
        r"""Return the repulsion potential :math:`-\log(1 - \varphi)` at squared distances r2."""
        return np.asarray(np.log1p(1 / (self.a * (r2 + SOFTENING) ** self.b)))

    def repulsion_slope(self, r2: Array) -> Array:
        """Return its derivative with respect to r2."""
        s = r2 + SOFTENING
        return np.asarray(-self.b / (s * (1 + self.a * s**self.b)))


@inlined
def umap_attraction(r2: float, a: float, b: float) -> tuple[float, float]:
    """Return the attraction potential -log(phi) at a squared distance, and its derivative with respect to that."""
    s = r2 + SOFTENING
    power = a * s**b
    return np.log1p(power), b * power / (s * (1 + power))


@dataclass(frozen=True)
class FarRepulsion:
    """The repulsion of a kernel, made smooth at distances below a cutoff, so that a grid resolves it.

    Below the cutoff it is the Taylor polynomial in the squared distance. The difference, the near part, ends there.

    Parameters
    ----------
    kernel : UmapKernel
    cutoff : float
    """

    kernel: UmapKernel
    cutoff: float

    @property
    def width(self) -> float:
        """Distance over which it varies."""
        return self.cutoff / 2

    @cached_property
    def _taylor(self) -> Array:
        """Coefficients of the powers of r^2 - cutoff^2."""
        a, b = self.kernel.a, self.kernel.b
        # Derivatives of log(a s^b + 1) - b log s - log a, by the chain rule on power series around s0.
        s0 = self.cutoff**2 + SOFTENING
        powers = np.array([a * _falling(b, k) * s0 ** (b - k) / factorial(k) for k in range(_ORDER + 1)])
        series = _log_series(1 + powers[0], powers[1:])
        logs = np.array([np.log(s0)] + [-((-1.0) ** k) / (k * s0**k) for k in range(1, _ORDER + 1)])
        series -= b * logs
        series[0] -= np.log(a)
        return series

    def __call__(self, r2: Array) -> Array:
        """Return the values at squared distances r2."""
        near = r2 < self.cutoff**2
        smooth = np.polynomial.polynomial.polyval(r2 - self.cutoff**2, self._taylor)
        return np.where(near, smooth, self.kernel.repulsion(r2))

    def near_tables(self, n_steps: int) -> tuple[Array, Array]:
        """Return values and slopes of the near part at n_steps + 1 equidistant distances from 0 to the cutoff."""
        r2 = np.linspace(0, self.cutoff, n_steps + 1) ** 2
        x = r2 - self.cutoff**2
        slope = np.polynomial.polynomial.polyder(self._taylor)
        values = self.kernel.repulsion(r2) - np.polynomial.polynomial.polyval(x, self._taylor)
        slopes = self.kernel.repulsion_slope(r2) - np.polynomial.polynomial.polyval(x, slope)
        return values.astype(np.float32), slopes.astype(np.float32)


def _falling(x: float, k: int) -> float:
    return float(np.prod([x - i for i in range(k)]))


def _log_series(first: float, others: Array) -> Array:
    """Return the power series of the logarithm of a series, given its constant and its further coefficients."""
    f = np.concatenate([[first], others])
    logs = np.zeros(f.size)
    logs[0] = np.log(first)
    for k in range(1, f.size):
        logs[k] = (f[k] - sum(j * logs[j] * f[k - j] for j in range(1, k)) / k) / first
    return logs
