"""Sums over the kernel of the map, behind one interface."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from laptsne.fields.exact import ExactFields
from laptsne.fields.fourier import FourierFields, grid_fits
from laptsne.workers import Workers

__all__ = ["ExactFields", "Fields", "FourierFields", "grid_fits"]


class Fields(Protocol):
    r"""What the objective asks of a map :math:`Y`: fields of charges on its points, and their gradients."""

    n_samples: int
    n_components: int
    workers: Workers

    @property
    def geometry(self) -> tuple[Any, ...]:
        """Coordinates and precisions as the compiled kernels take them."""

    @property
    def degrees(self) -> NDArray[np.float64]:
        r"""The field of unit charges, :math:`d_i = \sum_{j \ne i} k_{ij}`."""

    @property
    def slope(self) -> NDArray[np.float64]:
        """The gradient of the field of unit charges."""

    def values(self, charges: NDArray[np.float64]) -> NDArray[np.float64]:
        """Fields of the columns of ``charges``."""

    def pack(self, weights: NDArray[np.float64], charges: NDArray[np.float64]) -> Any:
        """Bring weights and charges into the form that :meth:`weighted_gradient` takes, for this map and later ones."""

    def weighted_gradient(self, packed: Any) -> NDArray[np.float64]:
        r"""Return :math:`\sum_m a_{im} \nabla\varphi_{c_m}(y_i)` of packed weights :math:`a` and charges :math:`c`."""
