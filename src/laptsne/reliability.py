"""How far the position of every point can be relied on.

The perturbation score is how far the minimum of a point's own loss moves when its data are nudged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.fields.grid import MAX_NODES, Mesh
from laptsne.fields.potential import Potential
from laptsne.graph.affinity import moments, precision
from laptsne.graph.distances import EUCLIDEAN_METRICS, as_euclidean, is_pairwise, squarable
from laptsne.graph.neighbors import neighbor_distances
from laptsne.transform.placement import descend, field_of

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

    perturbation: NDArray[np.float64] | None
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
    neighbors = nudged_neighbors(X, metric=metric, perplexity=perplexity, n_neighbors=n_neighbors, workers=workers)
    length = _LENGTH * neighbors.radius if length is None else float(length)
    jumps, field = np.empty(len(Y)), field_of(_finer(potential, Y, workers))
    args = (length, perplexity, Y.astype(np.float64), neighbors, field, jumps)
    workers.rows(_jump_rows, len(Y), *args, work=1e3 * len(neighbors.indices))
    return Reliability(jumps, length)


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


class NudgedNeighbors(NamedTuple):
    """Neighbours of every point, and what their distances become when the point moves along a direction.

    Edges are those of the neighbour graph in both directions.
    """

    indptr: Array
    indices: Array
    squared: Array  # Euclidean distances
    rows: Array  # precision, least and largest squared distance and sum of weights of each point, (n_samples, 4)
    projections: Array  # inner products of the points and the directions, (n_samples, n_directions)
    power: int  # of squared Euclidean distances that gives squared distances in the metric, up to a factor
    radius: float  # median distance to the neighbour whose rank is the perplexity


def nudged_neighbors(X: Any, *, metric: str, perplexity: float, n_neighbors: int, workers: Workers) -> NudgedNeighbors:
    """Search the neighbours of X, for one of the metrics that follow from Euclidean distances."""
    name, n_samples, X = EUCLIDEAN_METRICS[metric], X.shape[0], squarable(X)
    if name in ("cosine", "correlation"):
        X = normalize(X) if scipy.sparse.issparse(X) else as_euclidean(X, name)[0]
    graph = neighbor_distances(X, n_neighbors, workers=workers)
    rank = min(max(int(perplexity), 1), n_neighbors) - 1
    radius = float(np.median(np.partition(graph.data.reshape(n_samples, -1), rank, axis=1)[:, rank]))
    # Positive, so that the distance of duplicates stays an edge.
    graph.data = np.maximum(np.square(graph.data, dtype=np.float64), np.finfo(np.float64).tiny)
    rows, power = np.empty((n_samples, 4)), 1 if name == "euclidean" else 2
    workers.rows(_describe_rows, n_samples, n_neighbors, graph.data**power, perplexity, rows, work=100.0 * graph.nnz)
    both = graph.maximum(graph.T.tocsr())
    projections = np.asarray(X @ principal_directions(X).T, dtype=np.float64)
    return NudgedNeighbors(both.indptr, both.indices, both.data, rows, projections, power, radius)


def principal_directions(X: Any) -> Array:
    """Return up to three leading principal directions of evenly spaced rows, shape (n_directions, n_features)."""
    n_rows = min(_PCA_ROWS, _PCA_VALUES // X.shape[1] + 1)
    rows = X[:: -(-X.shape[0] // n_rows)].astype(np.float64)
    rows = rows.toarray() if scipy.sparse.issparse(rows) else rows
    rows -= rows.mean(axis=0)
    return np.asarray(randomized_svd(rows, min(_N_DIRECTIONS, *rows.shape), random_state=0)[2])


@inlined
def _described(squared: Array, perplexity: float) -> tuple[float, float, float, float]:
    """Return the precision of a row of squared distances, the least and the largest, and the sum of their weights."""
    nearest, furthest = squared.min(), squared.max()
    unit = 1.0 / (furthest - nearest) if furthest > nearest else 1.0
    beta = precision(squared, nearest, unit, perplexity)
    return beta * unit, nearest, furthest, moments(squared, nearest, unit, beta)[0]


@compiled
def _describe_rows(start: int, stop: int, k: int, squared: Array, perplexity: float, rows: Array) -> None:
    """Set what describes rows of k squared distances."""
    for i in range(start, stop):
        rows[i, 0], rows[i, 1], rows[i, 2], rows[i, 3] = _described(squared[i * k : (i + 1) * k], perplexity)


@inlined
def nudged_distances(i: int, step: float, direction: int, neighbors: NudgedNeighbors, squared: Array) -> None:
    """Set the squared distances, in the metric, of row i to its neighbours if it moves by a step along a direction."""
    first, z = neighbors.indptr[i], neighbors.projections[:, direction]
    for e in range(squared.size):
        j = neighbors.indices[first + e]
        moved = neighbors.squared[first + e] + 2 * step * (z[i] - z[j]) + step * step
        squared[e] = max(moved, 0.0) ** neighbors.power


@inlined
def _affinities(squared: Array, old: Array, rows: Array, columns: Array, perplexity: float, p: Array) -> None:
    """Set p to N times the affinities of a point whose squared distances to its neighbours change from old ones."""
    beta, nearest, _, total = _described(squared, perplexity)
    for e in range(squared.size):
        p[e] = np.exp(-beta * (squared[e] - nearest)) / total / 2
        row = rows[columns[e]]
        if squared[e] <= row[2]:  # still among the neighbours of the other point, whose precision is kept
            weight = np.exp(-row[0] * (squared[e] - row[1]))
            before = np.exp(-row[0] * (old[e] - row[1])) if old[e] <= row[2] else 0.0
            p[e] += weight / max(row[3] - before + weight, weight) / 2


@compiled
def _jump_rows(
    start: int, stop: int, length: float, perplexity: float, Y: Array, neighbors: Any, potential: Any, jumps: Array
) -> None:
    """Set the largest displacement of each point over all directions and both signs."""
    w, s = np.empty((2, 3, 4))
    field, scratch = (*potential, w, s), np.empty((3, Y.shape[1]))
    y, best = np.empty((2, Y.shape[1]))
    for i in range(start, stop):
        columns = neighbors.indices[neighbors.indptr[i] : neighbors.indptr[i + 1]]
        near = Y[columns]
        old, squared, p = np.empty((3, columns.size))
        nudged_distances(i, 0.0, 0, neighbors, old)
        jumps[i] = 0
        for a in range(2 * neighbors.projections.shape[1]):
            nudged_distances(i, length if a % 2 else -length, a // 2, neighbors, squared)
            _affinities(squared, old, neighbors.rows, columns, perplexity, p)
            kept = np.argsort(-p, kind="mergesort")[: (p >= _NEGLIGIBLE * p.max()).sum()]
            q, around = p[kept], near[kept]
            lowest, best[:] = np.inf, Y[i]
            for n in range(min(kept.size + 1, 3)):  # from the point's position and the two points of highest affinity
                y[:] = Y[i] if n == 0 else around[n - 1]
                if n > 0 and ((y - best) ** 2).sum() < _SAME * _SAME:
                    continue
                loss = descend(y, q, around, None, field, Y[i], scratch)
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
