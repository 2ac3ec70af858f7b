"""How the sums of LapUMAP are computed, and its potential for new points."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from laptsne.contraction.term import Contraction
from laptsne.engine.backend import Backend
from laptsne.engine.cross_entropy import CrossEntropy
from laptsne.fields import ExactFields, Fields
from laptsne.fields.grid import Frame
from laptsne.fields.potential import Potential
from laptsne.fields.umap_kernel import FarRepulsion

_SPACING = {1: 0.03, 2: 0.08, 3: 0.25}  # of the mesh of the potential
_CUTOFF = 3.0  # distance below which its repulsion is smooth, in nodes


@dataclass(frozen=True)
class UmapBackend(Backend):
    """The backend of a loss that computes the repulsion itself.

    Parameters
    ----------
    loss : CrossEntropy
    """

    loss: CrossEntropy | None = None

    def fields(self, Y: NDArray[np.float64]) -> Fields:
        """The fields of an embedding, of which only the positions are used."""
        return ExactFields(Y, workers=self.workers)

    def is_feasible(self, Y: NDArray[np.float64], largest: float) -> bool:
        """Whether the loss can be computed in reasonable time, which it can: the grid leaves out stray points."""
        return True

    def potential(self, contraction: Contraction, strength: float, exaggeration: float) -> Potential:
        r"""The potential of a new point over the embedding of the last refresh, without the attraction.

        It is the change of the objective by a point of mean degree, times n / 2:
        :math:`\frac{\gamma m}{4 n} \sum_j (1 + n p_j) V(|y - y_j|) + \frac{n \lambda}{2} \psi(y)`, divided by the
        exaggeration.
        """
        assert self.loss is not None
        y, loss = contraction.points, self.loss
        frame = Frame.around(y, _SPACING[len(y)], self.workers)
        frame = replace(frame, kernel=FarRepulsion(loss.kernel, _CUTOFF * frame.spacing))
        charges = (1 + loss.degrees).astype(np.float32)[None]
        grid = loss.repulsion / (4 * y.shape[1]) * frame.convolved(frame.spread(y, charges))[0]
        if strength:
            grid += y.shape[1] * strength / 2 * contraction.potential_grid(frame)
        return Potential(frame.origin, frame.spacing, (grid / exaggeration).astype(np.float32))
