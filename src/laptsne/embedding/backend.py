"""How the sums over a map are computed, and what that makes of the contraction term."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.threads import Workers
from laptsne.embedding.fields import ExactFields, Fields, FourierFields, grid_fits
from laptsne.embedding.kernels import Kernel
from laptsne.embedding.objective import Contraction, MeshContraction, PairContraction, Penalty

_FINAL_TOL = 1e-3  # residual of the eigenvectors of a finished map


@dataclass(frozen=True)
class Backend:
    """The one choice between all pairs and transforms, made for every part of a descent.

    Parameters
    ----------
    kernel : Kernel
        Similarity of two points of the map.
    penalty : Penalty
        Of the eigenvalues.
    fourier : bool
        Whether sums are taken on a grid, in linear time.
    workers : Workers
        Threads.
    """

    kernel: Kernel
    penalty: Penalty
    fourier: bool
    workers: Workers

    def fields(self, Y: NDArray[np.float64]) -> Fields:
        """The fields of a map."""
        if self.fourier and grid_fits(Y):
            return FourierFields(Y, self.workers)
        # Coordinates enter by their differences: single precision is enough for any spread of the map.
        return ExactFields(Y.astype(np.float32), self.kernel, self.workers)

    def contraction(self, n_clusters: int, start: NDArray[Any]) -> Contraction:
        """The contraction term, with a first guess of the eigenvectors."""
        kind: type[Contraction] = MeshContraction if self.fourier else PairContraction
        return kind(n_clusters, self.penalty, start)

    def finished(self, contraction: Contraction, fields: Fields) -> PairContraction:
        """The term at a finished map, with eigenpairs on the points themselves."""
        contraction.refresh(fields, tol=_FINAL_TOL, max_passes=100)
        if isinstance(contraction, MeshContraction):  # what the mesh found is polished
            pairs = PairContraction(contraction.n_clusters, self.penalty, contraction.vectors_at(fields))
            pairs.refresh(fields, tol=_FINAL_TOL, max_passes=10)
            return pairs
        assert isinstance(contraction, PairContraction)
        return contraction
