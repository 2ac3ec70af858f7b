"""The potential of an exact embedding, which is computed only when new points are placed."""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.threads import Workers, single_threaded_blas
from laptsne.contraction.cluster_term import ClusterContraction
from laptsne.contraction.mesh_term import MeshContraction
from laptsne.fields import ExactFields
from laptsne.fields.potential import Potential

_TOL = 1e-3  # residual of the eigenvectors


@dataclass(frozen=True)
class LazyPotential:
    """A potential that is computed when the first new point is placed.

    Parameters
    ----------
    term : ClusterContraction or MeshContraction
        The contraction term, not refreshed yet.
    strength : float
        Contraction strength.
    exaggeration : float
        Factor on the attractive forces.
    """

    term: ClusterContraction | MeshContraction
    strength: float
    exaggeration: float
    normaliser: float = 0.0

    def compute(self, Y: NDArray[Any], workers: Workers) -> Potential:
        """Compute the potential of an embedding."""
        term = copy.copy(self.term)
        with single_threaded_blas():
            term.refresh(ExactFields(Y.astype(np.float32), workers=workers), tol=_TOL)
        return term.potential(self.strength, self.exaggeration)
