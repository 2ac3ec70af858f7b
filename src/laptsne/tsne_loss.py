"""What depends on the loss that an estimator minimises: that of t-SNE."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.threads import Workers
from laptsne.engine.backend import Backend
from laptsne.engine.cross_entropy import CrossEntropy
from laptsne.engine.descent import Descent
from laptsne.engine.initialization import initial_embedding
from laptsne.engine.kl import KLDivergence
from laptsne.engine.run import Run
from laptsne.fields.umap_kernel import UmapKernel
from laptsne.fitting import backend_of


class TsneLossMixin:
    """The parts of a fit with the loss of t-SNE, which estimators with another loss on the same engine replace."""

    _loss_attribute: ClassVar[str] = "kl_divergence_"
    _run_class: ClassVar[type[Run]] = Run
    _memory_kind: ClassVar[str] = "tsne"

    contraction: float | str
    init: Any
    learning_rate: float | str
    metric: Any
    n_components: int
    optimizer: Descent | None

    def _loss(self, P: Any) -> KLDivergence | CrossEntropy:
        return KLDivergence(P)

    def _backend(self, loss: Any, workers: Workers) -> Backend:
        return backend_of(self, loss.P.shape[0], workers)

    def _directions(self, P: Any, eigenvectors: NDArray[Any], workers: Workers) -> NDArray[Any]:
        """Coordinates of a spectral initial embedding in the order of P, after a first column that is not used."""
        return eigenvectors

    def _initial(self, X: Any, eigenvectors: NDArray[Any], random_state: Any) -> NDArray[np.float64]:
        options = {"metric": self.metric, "random_state": random_state}
        return initial_embedding(self.init, X, eigenvectors, self.n_components, **options)

    def _contraction(self, n_clusters: int) -> float | None:
        """Strength of the contraction; None for the default of t-SNE."""
        return None if isinstance(self.contraction, str) else float(self.contraction)

    def _descent(self) -> Descent:
        return self.optimizer or Descent()

    def _step_size(self, n_samples: int) -> float | str:
        return self.learning_rate

    def _placement_kernel(self) -> UmapKernel | None:
        """Kernel of the attraction of new points; None for Student's."""
        return None
