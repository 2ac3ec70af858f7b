"""Penalties: concave functions of the eigenvalues, whose sum is the contraction term."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Penalty:
    r"""A penalty :math:`\phi(\sigma)` and its slope.

    ====================  ==========================================================
    ``kind``              :math:`\phi(\sigma)`
    ====================  ==========================================================
    "trace", 1            :math:`\sigma`
    p in (0, 1)           :math:`(\sigma + \varepsilon)^p - \varepsilon^p`
    "log"                 :math:`\log(\sigma + \varepsilon)`
    ====================  ==========================================================

    The floor :math:`\varepsilon` keeps the slope finite at 0: an eigenvalue well below it counts as zero.

    Examples
    --------
    >>> import numpy as np
    >>> from laptsne.contraction.penalty import Penalty
    >>> Penalty("trace").value(np.array([0.0, 0.25]))
    array([0.  , 0.25])
    >>> Penalty("log").slope(np.array([0.009])).round(6)
    array([100.])
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
