"""The similarity of two points of an embedding in UMAP, and its repulsion."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import factorial

import numpy as np
from numpy.polynomial.polynomial import polyder, polyval
from scipy.optimize import brentq, curve_fit
from sklearn.utils import gen_batches

from laptsne._runtime.compiled import inlined
from laptsne._runtime.typing import Array

SOFTENING = 1e-3  # added to squared distances, as umap-learn does in its repulsion
# umap-learn bounds each coordinate of the repulsion of a pair to 4. In the mean over all directions, the force is then
# at most 4 times the sum of the absolute coordinates of a unit vector, by dimension.
_BOUNDS = {1: 4.0, 2: 16 / np.pi, 3: 6.0}
# The attraction is tabulated in single precision at the s = 2^-10 (1 + m / 128), ..., 128 per power of two: the leading
# bits of s are the position in the table, the others are for linear interpolation. Its relative error is 1e-5.
_FRACTION_BITS = 23 - 7
_FIRST = int(np.float32(2.0**-10).view(np.int32)) >> _FRACTION_BITS
_N_TABULATED = 128 * 40
_BLOCK = 1 << 18  # distances that are evaluated together
_ORDER = 4  # of the polynomial that continues the repulsion to distances below the cutoff


@dataclass(frozen=True)
class UmapKernel:
    r"""The kernel :math:`\varphi(r) = 1 / (1 + a s^b)`, :math:`s = r^2 + \varepsilon`, of UMAP, and its repulsion.

    The repulsion potential is :math:`-\log(1 - \varphi)`, but its force is bounded, as in umap-learn: at small
    distances it falls linearly with :math:`\sqrt s`. The softening :math:`\varepsilon` = 0.001 makes it smooth for
    points that coincide. McInnes, Healy and Melville (2018), "UMAP", arXiv:1802.03426.
    """

    a: float
    b: float
    bound: float = _BOUNDS[2]  # of the force of the repulsion of a pair

    @classmethod
    def of(cls, min_dist: float, spread: float, n_components: int = 2) -> UmapKernel:
        """Return the kernel that is closest to 1 up to ``min_dist`` and an exponential of scale ``spread`` beyond."""
        # In units of the spread: otherwise the fit, as that of umap-learn, diverges if it is small.
        r, near = np.linspace(0, 3, 300), min_dist / spread
        target = np.where(r < near, 1.0, np.exp(near - r))
        (a, b), _ = curve_fit(lambda r, a, b: 1 / (1 + a * r ** (2 * b)), r, target)
        return cls(float(a / spread ** (2 * b)), float(b), _BOUNDS[n_components])

    @cached_property
    def bend(self) -> float:
        """The s below which the force is bounded."""
        # The force without bound is 2 b / (sqrt(s) (1 + a s^b)) for s much larger than the softening.
        a, b, bound = self.a, self.b, self.bound
        return float(np.exp(brentq(lambda x: 2 * b / (np.exp(x / 2) * (1 + a * np.exp(b * x))) - bound, -50, 50)))

    @cached_property
    def attraction_table(self) -> Array:
        """Derivatives of -log(phi) with respect to r^2 for :func:`tabulated_slope`."""
        bits = (np.arange(_N_TABULATED, dtype=np.int32) + np.int32(_FIRST)) << _FRACTION_BITS
        s = bits.view(np.float32).astype(np.float64)
        power = self.a * s**self.b
        return np.asarray(self.b * power / (s * (1 + power)), dtype=np.float32)

    def repulsion(self, r2: Array) -> Array:
        """Return the repulsion potential at squared distances r2."""
        s = r2 + SOFTENING
        free = np.log1p(1 / (self.a * np.maximum(s, self.bend) ** self.b))
        return np.asarray(free + self.bound * np.maximum(np.sqrt(self.bend) - np.sqrt(s), 0))

    def repulsion_slope(self, r2: Array) -> Array:
        """Return its derivative with respect to r2."""
        s = r2 + SOFTENING
        return np.asarray(-np.minimum(self.b / (s * (1 + self.a * s**self.b)), self.bound / (2 * np.sqrt(s))))


@inlined
def umap_attraction(r2: float, a: float, b: float) -> tuple[float, float]:
    """Return the attraction potential -log(phi) at a squared distance, and its derivative with respect to that."""
    s = r2 + SOFTENING
    power = a * s**b
    return np.log1p(power), b * power / (s * (1 + power))


@inlined
def tabulated_slope(r2: float, table: Array) -> float:
    """Return the derivative of the attraction at a squared distance, given :attr:`UmapKernel.attraction_table`."""
    bits = np.float32(r2 + np.float32(SOFTENING)).view(np.int32)
    m = min(int(bits >> _FRACTION_BITS) - _FIRST, _N_TABULATED - 2)
    t = np.float32(bits & ((1 << _FRACTION_BITS) - 1)) * np.float32(0.5**_FRACTION_BITS)
    return table[m] + t * (table[m + 1] - table[m])  # type: ignore[no-any-return]


@dataclass(frozen=True)
class FarRepulsion:
    """The repulsion of a kernel, made smooth at distances below a cutoff, so that a grid resolves it.

    Below the cutoff it is the Taylor polynomial in the squared distance. The difference, the near part, ends there.
    """

    kernel: UmapKernel
    width: float  # the cutoff: the distance over which it varies

    @cached_property
    def _taylor(self) -> Array:
        """Coefficients of the powers of r^2 - cutoff^2."""
        a, b = self.kernel.a, self.kernel.b
        s0 = self.width**2 + SOFTENING
        if s0 <= self.kernel.bend:
            series = -self.kernel.bound * _power_series(0.5, s0)
            series[0] = self.kernel.repulsion(np.array(self.width**2))
            return series
        # Derivatives of log(a s^b + 1) - b log s - log a, by the chain rule on power series around s0.
        series = _power_series(b, s0, a)
        series[0] += 1
        logs = np.array([np.log(s0)] + [-((-1.0) ** k) / (k * s0**k) for k in range(1, _ORDER + 1)])
        series = _log_series(series) - b * logs
        series[0] -= np.log(a)
        return series

    def __call__(self, r2: Array) -> Array:
        """Return the values at squared distances r2."""
        values = np.empty_like(r2)
        for rows in gen_batches(len(r2), max(1, _BLOCK * len(r2) // r2.size)):  # grids are large
            smooth = polyval(r2[rows] - self.width**2, self._taylor)
            values[rows] = np.where(r2[rows] < self.width**2, smooth, self.kernel.repulsion(r2[rows]))
        return values

    def near_tables(self, n_steps: int) -> tuple[Array, Array]:
        """Return values and slopes of the near part at n_steps + 1 equidistant r^2 from 0 to that of the cutoff."""
        r2 = np.linspace(0, self.width**2, n_steps + 1)
        x = r2 - self.width**2
        values = self.kernel.repulsion(r2) - polyval(x, self._taylor)
        slopes = self.kernel.repulsion_slope(r2) - polyval(x, polyder(self._taylor))
        return values.astype(np.float32), slopes.astype(np.float32)


def _power_series(power: float, s0: float, factor: float = 1.0) -> Array:
    """Return the power series of factor s^power around s0."""
    falling = [float(np.prod([power - i for i in range(k)])) for k in range(_ORDER + 1)]
    return np.array([factor * falling[k] * s0 ** (power - k) / factorial(k) for k in range(_ORDER + 1)])


def _log_series(f: Array) -> Array:
    """Return the power series of the logarithm of a series."""
    logs = np.zeros(f.size)
    logs[0] = np.log(f[0])
    for k in range(1, f.size):
        logs[k] = (f[k] - sum(j * logs[j] * f[k - j] for j in range(1, k)) / k) / f[0]
    return logs
