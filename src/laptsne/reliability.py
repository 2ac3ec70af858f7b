"""How far the position of every point can be relied on: by how much it moves when the data of the point are nudged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd

from laptsne._runtime.compiled import compiled
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array, Floats
from laptsne.fields.grid import MAX_NODES, Mesh
from laptsne.fields.potential import Potential
from laptsne.graph.affinity import conditional_affinities
from laptsne.graph.distances import EUCLIDEAN_METRICS, as_euclidean, is_pairwise, squarable
from laptsne.graph.neighbors import neighbor_distances
from laptsne.methods import Metric
from laptsne.transform.placement import descend

# Length of a nudge, in median distances to the neighbour whose rank is the perplexity: half a neighbourhood.
_LENGTH = 0.5
# Neighbours among which those of the moved row are found, in units of the perplexity. Affinities end at 3; with 4.5,
# ranks of the scores of 500 digits correlate with the exact ones by 0.97, in plain maps (benchmarks/reliability.py).
_CANDIDATES = 4.5
_N_DIRECTIONS = 3
_PCA_ROWS, _PCA_VALUES = 1 << 14, 1 << 25  # from which the directions are computed, at most
# Spacing of the mesh, by dimension: that of placement has errors too large for ranks (benchmarks/reliability.py).
_SPACING = {1: 0.1, 2: 0.2, 3: 0.4}
_SAME = 1.0  # distance from a minimum within which a start leads to the same one, as a rule
_NEGLIGIBLE = 1e-3  # affinity, relative to the highest, below which neighbours are left out
_TINY, _MAX_EXPONENT = 1e-300, 300.0  # against division by zero, and against overflow


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
        How far the point moves if its data are nudged: the largest distance between its position and the minimum of its
        loss, over moves of its row of X by ``length`` along the three leading principal directions of X, in both
        senses. The affinities are those of the moved row, never refined. The minimum is the lowest of those found from
        the point's position and from the two points of highest affinity. In units of the embedding. Points of high
        scores sit at gaps that the embedding overstates, or at its tears.
    length : float or None
        By how much rows were moved, in units of the data. With ``metric="cosine"`` or "correlation", these are rows
        scaled to length 1, for the latter after centring each.
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
    >>> LaptSNE(random_state=0).fit(load_digits().data[:300]).diagnose().perturbation.shape
    (300,)
    """

    perturbation: Floats | None
    length: float | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for a score that is not one number per point, as in a damaged file."""
        score = self.perturbation
        if score is not None and (score.ndim != 1 or score.dtype.kind != "f"):
            raise ValueError(f"reliability: scores of shape {score.shape} and type {score.dtype} are inconsistent.")

    def __repr__(self) -> str:
        """Return the median and the 95th percentile, or the reason why there is no score."""
        score = self.perturbation
        if score is None or not score.size:
            return f"<Reliability {self.reason or 'of no points'}>"
        return f"<Reliability perturbation: {np.median(score):.3g} ({np.quantile(score, 0.95):.3g} at 95 %)>"


def reliability_of(
    X: Any, Y: Array, potential: Potential | None, metric: Metric, length: float | None, workers: Workers
) -> Reliability:
    """Compute the reliability of the points of an embedding Y with the given potential of new points.

    X has the rows that are nudged, by ``length`` or a default; without X, or a potential, there is a reason instead.
    """
    reason = _obstacle(X, potential, metric)
    if reason is not None or potential is None:
        return Reliability(None, reason=reason)
    name, n_samples, X = EUCLIDEAN_METRICS[metric.name], len(Y), squarable(X)
    if name in ("cosine", "correlation"):
        X = normalize(X) if scipy.sparse.issparse(X) else as_euclidean(X, name)[0]
    n_neighbors = min(max(int(_CANDIDATES * metric.perplexity), 1), n_samples - 1)
    graph = neighbor_distances(X, n_neighbors, workers=workers)
    neighbors = NudgedNeighbors(graph, metric.perplexity, 1 if name == "euclidean" else 2, workers)
    length = _LENGTH * neighbors.radius if length is None else float(length)
    jumps, field = np.zeros(n_samples), _finer(potential, Y, workers).field
    for along in np.asarray(X @ principal_directions(X).T, dtype=np.float64).T:
        for step in (length, -length):
            P = neighbors.affinities(along, step)
            args = (P.indptr, P.indices, P.data, Y.astype(np.float64), field, jumps)
            workers.rows(_jump_rows, n_samples, *args, work=1e3 * P.nnz)
    return Reliability(jumps, length)


def _obstacle(X: Any, potential: Potential | None, metric: Metric) -> str | None:
    """Return why there can be no score, or None."""
    name = metric.name
    if X is None:
        kept = f"metric={name!r} has no" if is_pairwise(name) else "out_of_sample='network' keeps no"
        return f"{kept} features that could be nudged"
    if not isinstance(name, str) or name not in EUCLIDEAN_METRICS or metric.params:
        return f"metric={name!r} is not one of {', '.join(map(repr, EUCLIDEAN_METRICS))} without parameters"
    if potential is None or potential.charge <= 0:
        return "the file of the model does not contain the forces between its points; fit the model again"
    return None


class NudgedNeighbors:
    """Affinities of points to their neighbours if one of the points moves.

    Squared distances in the metric are a ``power`` of squared Euclidean distances, which are those of the graph.
    """

    def __init__(self, graph: Any, perplexity: float, power: int, workers: Workers) -> None:
        self.perplexity, self.power, self.workers = perplexity, power, workers
        self.indices, self.indptr = graph.indices.reshape(graph.shape[0], -1), graph.indptr
        self.squared = np.square(graph.data, dtype=np.float64).reshape(self.indices.shape)
        self.conditional = self._conditional(self.squared)
        rank = min(max(int(perplexity), 1), self.indices.shape[1]) - 1
        furthest = np.partition(self.squared, rank, axis=1)[:, rank]
        self.radius = float(np.median(np.sqrt(furthest)))  # median distance to the neighbour of this rank
        # The precision of each point, from its affinities to the nearest neighbour and to that of this rank.
        lengths = furthest**power - self.squared.min(axis=1) ** power
        least = -np.partition(-self.conditional, rank, axis=1)[:, rank]
        ratio = self.conditional.max(axis=1) / np.maximum(least, _TINY)
        self.precision = np.divide(np.log(ratio), lengths, out=np.zeros_like(lengths), where=lengths > 0)[:, None]

    def _conditional(self, squared: Array) -> Array:
        return conditional_affinities(np.sqrt(squared) ** self.power, self.perplexity, self.workers)

    def affinities(self, along: Array, step: float) -> Any:
        """Return N times the affinities of each point if it moves by a step, given all points along its direction."""
        change = 2 * step * (along[:, None] - along[self.indices]) + step**2
        own = self._conditional(np.maximum(self.squared + change, 0))
        # Those of its neighbours, whose precisions are kept: for them, the differences have the other sign.
        moved = np.maximum(self.squared + 2 * step**2 - change, 0)
        exponent = self.precision * (self.squared**self.power - moved**self.power)
        weight = self.conditional * np.exp(np.minimum(exponent, _MAX_EXPONENT))
        others = weight / np.maximum(1 - self.conditional + weight, _TINY)
        shape = (len(own), len(own))
        own, others = (
            scipy.sparse.csr_matrix((p.ravel(), self.indices.ravel(), self.indptr), shape) for p in (own, others)
        )
        return ((own + others.T) / 2).tocsr()


def principal_directions(X: Any) -> Array:
    """Return up to three leading principal directions of evenly spaced rows, shape (n_directions, n_features)."""
    n_rows = min(_PCA_ROWS, _PCA_VALUES // X.shape[1] + 1)
    rows = X[:: -(-X.shape[0] // n_rows)].astype(np.float64)
    rows = rows.toarray() if scipy.sparse.issparse(rows) else rows
    rows -= rows.mean(axis=0)
    return np.asarray(randomized_svd(rows, min(_N_DIRECTIONS, *rows.shape), random_state=0)[2])


@compiled
def _jump_rows(
    start: int, stop: int, indptr: Array, indices: Array, p: Array, Y: Array, potential: Any, jumps: Array
) -> None:
    """Raise jumps to the displacement of each point to the minimum of its loss with affinities p."""
    w, s = np.empty((2, 3, 4))
    field, scratch = (*potential, w, s), np.empty((3, Y.shape[1]))
    y, best = np.empty((2, Y.shape[1]))
    for i in range(start, stop):
        own = p[indptr[i] : indptr[i + 1]]
        kept = np.argsort(-own, kind="mergesort")[: (own >= _NEGLIGIBLE * own.max()).sum()]
        q, near = own[kept], Y[indices[indptr[i] : indptr[i + 1]][kept]]
        lowest, best[:] = np.inf, Y[i]
        for n in range(min(kept.size + 1, 3)):  # from the point's position and the two points of highest affinity
            y[:] = Y[i] if n == 0 else near[n - 1]
            if n > 0 and ((y - best) ** 2).sum() < _SAME * _SAME:
                continue
            loss = descend(y, q, near, None, field, Y[i], scratch)
            if loss < lowest:
                lowest, best[:] = loss, y
        jumps[i] = max(jumps[i], np.sqrt(((best - Y[i]) ** 2).sum()))


def _finer(potential: Potential, Y: Array, workers: Workers) -> Potential:
    """Return the potential with the repulsion computed, and the contraction interpolated, on a finer mesh."""
    y, ones = np.array(Y.T, dtype=np.float64, order="C"), np.ones((1, len(Y)), np.float32)
    coarse = Mesh(potential.origin, potential.spacing, potential.grid.shape[::-1], workers)
    fine = Mesh.around(y, min(_SPACING[len(y)], potential.spacing), workers, most=MAX_NODES)
    charge = np.float32(potential.charge)
    contraction = potential.grid - charge * coarse.field(y, ones)[0]
    grid = charge * fine.field(y, ones)[0] + coarse.resampled(contraction, fine)
    return Potential(fine.origin, fine.spacing, grid, potential.charge)
