"""What the objective asks of a map."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.threads import Workers

Field = NDArray[np.float64]


class Fields(ABC):
    r"""Fields of charges on the points of a map :math:`Y`, and their gradients.

    The field of charges :math:`c` is :math:`\varphi_c(y_i) = \sum_{j \ne i} c_j k_{ij}`, with the similarities
    :math:`k_{ij}` of the points.

    Attributes
    ----------
    n_samples, n_components : int
        Shape of the map.
    workers : Workers
        Threads.
    Y : array of shape (n_samples, n_components)
        The map.
    geometry : tuple
        Coordinates and precisions as the compiled kernels take them.
    """

    n_samples: int
    n_components: int
    workers: Workers
    Y: NDArray[Any]
    geometry: tuple[Any, ...]

    _unit: tuple[Field, Field] | None = None

    @property
    def degrees(self) -> Field:
        """The field of unit charges at every point, shape (n_samples,): the degrees of the map's graph."""
        return self._unit_field()[0]

    @property
    def slope(self) -> Field:
        """The gradient of the field of unit charges, shape (n_samples, n_components)."""
        return self._unit_field()[1]

    def _unit_field(self) -> tuple[Field, Field]:
        if self._unit is None:
            self._unit = self._compute_unit()
        return self._unit

    @abstractmethod
    def _compute_unit(self) -> tuple[Field, Field]:
        """Degrees and slope."""

    @abstractmethod
    def values(self, charges: Field) -> Field:
        """Fields of the columns of ``charges``, shape (n_samples, n_charges)."""

    @abstractmethod
    def pack(self, weights: Field, charges: Field) -> Any:
        """Bring weights and charges into the form that :meth:`weighted_gradient` takes, for this map and later ones."""

    @abstractmethod
    def weighted_gradient(self, packed: Any) -> Field:
        r"""Return :math:`\sum_m a_{im} \nabla\varphi_{c_m}(y_i)` of packed weights :math:`a` and charges :math:`c`."""
