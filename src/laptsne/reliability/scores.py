"""The reliability of every point of an embedding, and why it may not be known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.fields.potential import Potential
from laptsne.graph.distances import EUCLIDEAN_METRICS, is_pairwise
from laptsne.reliability.perturbation import nudged_neighbors, perturbation_scores

# Length of a nudge, in median distances to the neighbour whose rank is the perplexity: half a neighbourhood.
_LENGTH = 0.5
# Neighbours among which those of the moved row are found, in units of the perplexity. Affinities end at 3; with 4.5,
# ranks of the scores of 500 digits correlate with the exact ones by 0.97, in plain maps (benchmarks/reliability.py).
_CANDIDATES = 4.5


@dataclass(frozen=True, repr=False, eq=False)
class Reliability:
    r"""How far the position of each point can be relied on.

    The score describes the loss of a point i as a function of its position y, with all other points fixed,

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
    length : float or None
        By how much rows were moved, in units of the data.
    reason : str or None
        Why there is no score.

    References
    ----------
    Z. Liu, R. Ma and Y. Zhong, "Assessing and improving reliability of neighbor embedding methods: a map-continuity
    perspective", Nature Communications 16, 2025. The definition is theirs, for the objective of LaptSNE.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from laptsne import LaptSNE
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = LaptSNE(random_state=0).fit(X[:300])
    >>> model.diagnose().perturbation.shape
    (300,)
    >>> model.reliability_.reason is None
    True
    """

    perturbation: NDArray[np.float64] | None
    length: float | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for a score that is not one number per point, as in a damaged file."""
        if self.perturbation is not None and (self.perturbation.ndim != 1 or self.perturbation.dtype.kind != "f"):
            raise ValueError(
                f"reliability: scores of shape {self.perturbation.shape} and type {self.perturbation.dtype} are "
                "inconsistent with one number per point."
            )

    def __repr__(self) -> str:
        """Return the median and the 95th percentile of the score, or the reason why there is none."""
        score = self.perturbation
        if score is None or not score.size:
            return f"<Reliability {self.reason or 'of no points'}>"
        return f"<Reliability perturbation: {np.median(score):.3g} ({np.quantile(score, 0.95):.3g} at 95 %)>"


def reliability_of(
    X: Any,
    Y: Array,
    potential: Potential | None,
    *,
    metric: Any,
    metric_params: dict[str, Any] | None,
    perplexity: float,
    length: float | None,
    workers: Workers,
) -> Reliability:
    """Compute the reliability of the points of an embedding Y with the given potential of new points.

    X has the rows that are nudged, by ``length`` or a default; without X, or a potential, there is a reason instead.
    """
    reason = _obstacle(X, potential, metric, metric_params)
    if reason is not None or potential is None:
        return Reliability(None, reason=reason)
    n_neighbors = min(max(int(_CANDIDATES * perplexity), 1), len(Y) - 1)
    options: dict[str, Any] = {"perplexity": perplexity, "workers": workers}
    neighbors = nudged_neighbors(X, metric=metric, n_neighbors=n_neighbors, **options)
    length = _LENGTH * neighbors.radius if length is None else float(length)
    scores = perturbation_scores(neighbors, Y, potential, length=length, **options)
    return Reliability(scores, length)


def _obstacle(X: Any, potential: Potential | None, metric: Any, metric_params: Any) -> str | None:
    """Return why there can be no score, or None."""
    if X is None:
        kept = f"metric={metric!r} has no" if is_pairwise(metric) else "out_of_sample='network' keeps no"
        return f"{kept} features that could be nudged"
    if not isinstance(metric, str) or metric not in EUCLIDEAN_METRICS or metric_params:
        return f"metric={metric!r} is not one of {', '.join(map(repr, EUCLIDEAN_METRICS))} without parameters"
    if potential is None or potential.charge <= 0:
        return "the file of the model does not contain the forces between its points; fit the model again"
    return None
