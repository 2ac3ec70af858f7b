"""Interface of the sums over all pairs that the objective needs."""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.threads import Workers

Field = NDArray[np.float64]


class Fields(ABC):
    r"""Fields of charges on the points of an embedding :math:`Y`, and their gradients.

    The field of charges :math:`c` is :math:`\varphi_c(y_i) = \sum_{j \ne i} c_j w_{ij}`, with the similarities
    :math:`w_{ij}` of the embedding. t-SNE and its contraction need only such fields and their gradients.
    """

    n_samples: int
    n_components: int
    workers: Workers
    Y: NDArray[Any]
    geometry: tuple[Any, ...]  # three arrays of coordinates and one of precisions for the kernels, or None instead

    @property
    def degrees(self) -> Field:
        """Field of unit charges, shape (n_samples,): the degrees of the embedding's graph."""
        return self._unit[0]

    @property
    def slope(self) -> Field:
        """Gradient of the field of unit charges, shape (n_samples, n_components)."""
        return self._unit[1]

    @cached_property
    def _unit(self) -> tuple[Field, Field]:
        return self._compute_unit()

    @property
    def accurate(self) -> "Fields":
        """Fields of the same embedding that are accurate enough to be reported."""
        return self

    @abstractmethod
    def _compute_unit(self) -> tuple[Field, Field]:
        """Compute degrees and slope."""

    @abstractmethod
    def values(self, charges: Field) -> Field:
        """Return the fields of the columns of ``charges``, shape (n_samples, n_charges)."""

    @abstractmethod
    def pack(self, weights: Field, charges: Field) -> Any:
        """Convert weights and charges for :meth:`weighted_gradient` of this embedding and later ones."""

    @abstractmethod
    def weighted_gradient(self, packed: Any) -> Field:
        r"""Return :math:`\sum_m a_{im} \nabla\varphi_{c_m}(y_i)` for packed weights :math:`a` and charges :math:`c`."""
