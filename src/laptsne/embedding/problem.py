"""The minimisation problem: KL divergence plus contraction, and how much of the latter."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne.clusters.evidence import evident_clusters
from laptsne.embedding.backend import Backend
from laptsne.embedding.objective import Contraction, KLDivergence

_TOTAL = 0.4  # strength over all clusters; docs/method.md has what else was tried
_STUDENT_MAX = 0.04  # strength per cluster with the Student kernel
_MAX_CLUSTERS = 60  # that are contracted if their number is not given


def auto_contraction(n_clusters: int, *, gaussian: bool) -> float:
    """Default contraction strength, which is divided among the clusters; 0 for a single cluster."""
    if n_clusters == 1:
        return 0.0
    return _TOTAL / n_clusters if gaussian else min(_STUDENT_MAX, _TOTAL / n_clusters)


@dataclass(frozen=True)
class ContractionRule:
    """How many clusters are contracted, and how strongly.

    Parameters
    ----------
    n_clusters : int or None
        Number of clusters; None counts those evident in the embedding when contraction starts.
    strength : float or None
        Strength; None is :func:`auto_contraction`.
    eigenvectors : array of shape (n_samples, n_vectors)
        Eigenvectors of the data's graph without the first, as a first guess of those of the embedding's.
    gaussian : bool
        Whether the contraction has a Gaussian kernel of its own.
    """

    n_clusters: int | None
    strength: float | None
    eigenvectors: NDArray[Any]
    gaussian: bool

    def count(self, Y: NDArray[np.float64], kl: KLDivergence, backend: Backend) -> tuple[int, NDArray[Any]]:
        """Number of evident clusters of an embedding, and a first guess of the eigenvectors of its graph."""
        labels = evident_clusters(Y, kl.P, order=kl.order, workers=backend.workers)
        n_clusters = min(int(labels.max(initial=0)) + 1, _MAX_CLUSTERS)
        # Indicator vectors of the clusters nearly span the eigenvectors.
        indicators = labels[:, None] == np.arange(1, n_clusters)
        return n_clusters, np.column_stack([indicators.astype(np.float32), self.eigenvectors])

    def strength_of(self, n_clusters: int) -> float:
        """Strength for a number of clusters."""
        if self.strength is None:
            return auto_contraction(n_clusters, gaussian=self.gaussian)
        if self.strength and n_clusters == 1 and self.n_clusters is None:
            warnings.warn(
                f"contraction={self.strength} has no effect: there is no evidence of clusters. "
                "Set n_clusters to contract nevertheless.",
                UserWarning,
                stacklevel=2,
            )
            return 0.0
        return self.strength

    def problem(self, kl: KLDivergence, backend: Backend, n_observed: int) -> Problem:
        """The problem of a descent; ``n_observed`` eigenvalues are reported while clusters are not counted yet."""
        if self.n_clusters is not None:
            term = backend.contraction(self.n_clusters, self.eigenvectors)
            return Problem(kl, backend, term, self.strength_of(self.n_clusters))
        return Problem(kl, backend, backend.contraction(n_observed, self.eigenvectors), 0.0, undecided=self)


@dataclass
class Problem:
    """What is minimised: the two terms and the strength of the second.

    Parameters
    ----------
    kl : KLDivergence
    backend : Backend
        How sums over the embedding are computed.
    contraction : Contraction
    strength : float
        Full strength of the contraction.
    undecided : ContractionRule, optional
        The rule by which clusters will be counted; until then there is no contraction.
    """

    kl: KLDivergence
    backend: Backend
    contraction: Contraction
    strength: float
    undecided: ContractionRule | None = None

    @property
    def contracts(self) -> bool:
        """Whether there are clusters to contract, as far as is known."""
        return self.strength > 0 and self.contraction.n_clusters > 1

    def decide(self, Y: NDArray[np.float64]) -> None:
        """Count the clusters of the embedding, unless that has been done."""
        if self.undecided is not None:
            self.settle(*self.undecided.count(Y, self.kl, self.backend))

    def settle(self, n_clusters: int, start: NDArray[Any]) -> None:
        """Set the number of clusters, with a first guess of the eigenvectors, unless that has been done."""
        if self.undecided is not None:
            self.contraction = self.backend.contraction(n_clusters, start)
            self.strength = self.undecided.strength_of(n_clusters)
            self.undecided = None
