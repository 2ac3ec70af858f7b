"""The minimisation problem: KL divergence plus contraction, and how much of the latter."""

from dataclasses import dataclass

from laptsne._runtime.typing import Array
from laptsne._runtime.warn import warn
from laptsne.contraction.term import Contraction
from laptsne.engine.backend import Backend
from laptsne.engine.cross_entropy import CrossEntropy
from laptsne.engine.kl import KLDivergence

_TOTAL = 0.2  # strength over all clusters; docs/method.md has what else was tried
_STUDENT_TOTAL, _STUDENT_MAX = 0.4, 0.04  # the same, and the most per cluster, with the Student kernel


def auto_contraction(n_clusters: int, *, gaussian: bool) -> float:
    """Default contraction strength, which is divided among the clusters; 0 for a single cluster."""
    if n_clusters == 1:
        return 0.0
    return _TOTAL / n_clusters if gaussian else min(_STUDENT_MAX, _STUDENT_TOTAL / n_clusters)


def strength_of(contraction: float | None, n_clusters: int, *, gaussian: bool, counted: bool) -> float:
    """Contraction strength for a number of clusters.

    Parameters
    ----------
    contraction : float or None
        The requested strength; None is :func:`auto_contraction`.
    n_clusters : int
    gaussian : bool
        Whether the contraction has a Gaussian kernel of its own.
    counted : bool
        Whether the clusters were counted in the data, rather than given.
    """
    if contraction is None:
        return auto_contraction(n_clusters, gaussian=gaussian)
    if contraction and n_clusters == 1 and counted:
        warn(
            f"contraction={contraction} has no effect: there is no evidence of clusters. "
            "Set n_clusters to contract nevertheless.",
        )
        return 0.0
    return contraction


@dataclass
class Problem:
    """What is minimised: the two terms and the strength of the second.

    Parameters
    ----------
    kl : KLDivergence or CrossEntropy
    backend : Backend
        How sums over the embedding are computed.
    contraction : Contraction
    strength : float
        Full strength of the contraction.
    order : array of shape (n_samples,), optional
        Indices of the points of the data, if those of the problem have another order.
    """

    kl: KLDivergence | CrossEntropy
    backend: Backend
    contraction: Contraction
    strength: float
    order: Array | None = None

    @property
    def contracts(self) -> bool:
        """Whether there are clusters to contract."""
        return self.strength > 0 and self.contraction.n_clusters > 1
