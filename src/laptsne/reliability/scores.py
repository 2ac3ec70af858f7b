"""The reliability of every point of an embedding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, repr=False, eq=False)
class Reliability:
    r"""How far the position of each point can be relied on.

    Both scores describe the loss of a point i as a function of its position y, with all other points fixed,

    .. math:: \ell_i(y) = \sum_j p_j \log(1 + |y - y_j|^2) + V_i(y), \quad p_j = N p_{ij},

    where :math:`V_i` is the repulsion from all other points and the contraction. It is N / 2 times what the point
    contributes to the objective, so that scores of embeddings of different sizes compare.

    Attributes
    ----------
    perturbation : array of shape (n_samples,) or None
        How far the point moves if its data are nudged: the largest distance between its position and the minimum of
        its loss, over moves of its row of X by ``length`` along the three leading principal directions of X, in both
        senses. The affinities are those of the moved row. The minimum is the lowest of those found from the point's
        position and from the two points of highest affinity. In units of the embedding. Points of high scores sit at
        gaps that the embedding overstates, or at its tears.
    singularity : array of shape (n_samples,) or None
        The inverse of the least eigenvalue of the Hessian of the loss at the point's position, at most 1,000. Where it
        is high, there is a direction in which the position is hardly determined. 1,000 means that the point is not at
        a minimum at all, for instance because the descent was too short.
    length : float or None
        By how much rows were moved, in units of the data.
    reason : str or None
        Why a score is None.

    References
    ----------
    Z. Liu, R. Ma and Y. Zhong, "Assessing and improving reliability of neighbor embedding methods: a map-continuity
    perspective", Nature Communications 16, 2025. The definitions are theirs, for the objective of LaptSNE. Their
    singularity score is N / 2 times this one.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from laptsne import LaptSNE
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = LaptSNE(random_state=0).fit(X[:300])
    >>> model.diagnose().singularity.shape
    (300,)
    >>> model.reliability_.reason is None
    True
    """

    perturbation: NDArray[np.float64] | None
    singularity: NDArray[np.float64] | None
    length: float | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        """Raise ValueError if the parts are inconsistent, for instance if they come from a damaged file."""
        scores = [score for score in (self.perturbation, self.singularity) if score is not None]
        if any(score.ndim != 1 or score.shape != scores[0].shape for score in scores):
            raise ValueError(f"reliability: scores of shapes {[score.shape for score in scores]} are inconsistent.")

    def __repr__(self) -> str:
        """Return the median and the 95th percentile of each score, or the reason why there is none."""
        parts = [
            f"{name}: {np.median(score):.3g} ({np.quantile(score, 0.95):.3g} at 95 %)"
            for name, score in (("perturbation", self.perturbation), ("singularity", self.singularity))
            if score is not None and score.size
        ]
        return f"<Reliability {'; '.join(parts if self.reason is None else [*parts, self.reason])}>"
