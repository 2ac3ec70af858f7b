"""How sums over the embedding are computed: over all pairs, or on a grid by FFT."""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.threads import Workers
from laptsne.contraction.cluster_term import ClusterTerm
from laptsne.contraction.eigenvector_term import EigenvectorTerm, indicators
from laptsne.contraction.similarity import Penalty, Similarity
from laptsne.contraction.term import Contraction, LazyPotential
from laptsne.fields import CoarseFields, ExactFields, Fields, FourierFields, grid_fits, is_feasible
from laptsne.fields.fourier import is_fast
from laptsne.fields.potential import Potential
from laptsne.kernels import Kernel, Student

# Up to this number of points all pairs are faster than a grid, by dimension (benchmarks/crossover.py).
_MAX_EXACT = {1: 1000, 2: 6000, 3: 40_000}
_FINAL_TOL = 1e-3  # residual of the eigenvectors of the final embedding


def uses_fourier(method: str, kernel: Kernel, batch_size: int | None, n_samples: int, n_components: int) -> bool:
    """Whether sums are computed on a grid.

    Raise ValueError if ``method="fourier"`` is not possible.
    """
    if method == "fourier" and not isinstance(kernel, Student):
        raise ValueError(f"method='fourier' needs kernel='student', got kernel={kernel!r}; use method='exact'.")
    if method == "fourier" and batch_size is not None:
        raise ValueError(
            f"method='fourier' moves all points at once, but batch_size={batch_size}; use method='auto', or no batches."
        )
    if method == "auto":
        return batch_size is None and isinstance(kernel, Student) and n_samples > _MAX_EXACT[n_components]
    return method == "fourier"


@dataclass(frozen=True)
class Backend:
    """The choice between all pairs and a grid, for all parts of a descent.

    Parameters
    ----------
    kernel : Kernel
        Similarity of two points of the embedding.
    penalty : Penalty
        Penalty of the eigenvalues.
    fourier : bool
        Whether sums are computed on a grid, in linear time.
    workers : Workers
        Threads.
    similarity : Similarity, optional
        Similarities of the contraction term; by default it has the kernel above.
    mesh : bool
        Whether the contraction term is computed on a mesh even if other sums are over pairs.
    coarse : bool
        Whether the forces of single steps may be computed on a coarse grid, in two dimensions.
    """

    kernel: Kernel
    penalty: Penalty
    fourier: bool
    workers: Workers
    similarity: Similarity | None = None
    mesh: bool = False
    coarse: bool = False

    def fields(self, Y: NDArray[np.float64]) -> Fields:
        """The fields of an embedding."""
        if self.fourier and grid_fits(Y):
            return FourierFields(Y, self.workers)
        # Only differences of coordinates matter: single precision is enough for any spread.
        return ExactFields(Y.astype(np.float32), self.kernel, self.workers)

    def step_fields(self, Y: NDArray[np.float64], step: int) -> Fields:
        """The fields of an embedding, as accurate as a step of the descent, of this number, needs them."""
        if self.coarse and Y.shape[1] == 2 and is_fast(len(Y)):
            fields = CoarseFields(Y, self.workers, step)
            if fields.is_fast:
                return fields
        return self.fields(Y)

    def is_feasible(self, Y: NDArray[np.float64], largest: float) -> bool:
        """Whether the fields of an embedding, with this largest coordinate, can be computed in reasonable time."""
        return not self.fourier or is_feasible(Y, largest)

    def contraction(self, labels: NDArray[Any], n_clusters: int, start: NDArray[Any]) -> Contraction:
        """The contraction term.

        Parameters
        ----------
        labels : array of shape (n_samples,)
            Cluster of every point in the data, -1 for none.
        n_clusters : int
            Number of eigenvalues.
        start : array of shape (n_samples, n_vectors)
            First guess of further eigenvectors.
        """
        # A kernel of its own separates the clusters of the data only, the paper's whatever the map contains.
        if self.similarity is not None:
            return ClusterTerm(labels, self.penalty, self.similarity, mesh=self.fourier or self.mesh)
        # Indicator vectors of the clusters nearly span the eigenvectors of the embedding's graph.
        return EigenvectorTerm(n_clusters, self.penalty, np.column_stack([indicators(labels, n_clusters), start]))

    def finished(self, contraction: Contraction, fields: Fields) -> Contraction:
        """The term at the final embedding, with converged eigenpairs."""
        contraction.refresh(fields, tol=_FINAL_TOL, max_passes=100)
        return contraction

    def eigengap(self, contraction: Contraction, fields: Fields) -> float | None:
        """Gap between eigenvalue K and the next one, both converged; None for K = 1 or too few points."""
        if not 1 < contraction.n_clusters < fields.n_samples:
            return None
        # The next eigenvalue is among the guard vectors, which need not converge. With one more, it is not mistaken for
        # a close one after it.
        n_wanted = contraction.n_clusters + 2
        if isinstance(contraction, ClusterTerm):
            start = indicators(contraction.labels, contraction.n_clusters)
            observer: Contraction = EigenvectorTerm(n_wanted, self.penalty, start, contraction.similarity)
            observer.restore(contraction.observed_at(fields).state() | {"start": start, "is_followed": False})
        else:
            observer = copy.copy(contraction)
            observer.n_clusters = n_wanted
        observer.fixed = True
        sigma = self.finished(observer, fields).eigenvalues
        return float(sigma[-2] - sigma[-3])

    def potential(
        self, contraction: Contraction, strength: float, exaggeration: float
    ) -> Potential | LazyPotential | None:
        """The potential for placing new points in the final embedding; None for kernels other than Student's."""
        if not isinstance(self.kernel, Student):
            return None
        if isinstance(contraction, EigenvectorTerm) and self.fourier:  # its fields are there, and take long
            return contraction.potential(strength, exaggeration)
        return LazyPotential(contraction.released(), strength, exaggeration)
