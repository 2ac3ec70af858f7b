"""How far the position of every point can be relied on.

The perturbation score is how far the minimum of a point's own loss moves when its data are nudged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.extmath import row_norms

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.fields.grid import MAX_NODES, Mesh
from laptsne.fields.potential import Potential
from laptsne.graph.affinity import moments, precision
from laptsne.graph.distances import EUCLIDEAN_METRICS, is_pairwise
from laptsne.graph.neighbors import neighbor_distances
from laptsne.transform.placement import descend, field_of

# Length of a nudge, in median distances to the neighbour whose rank is the perplexity: half a neighbourhood.
_LENGTH = 0.5
# Neighbours among which those of the moved row are found, in units of the perplexity. Affinities end at 3; with 4.5,
# ranks of the scores of 500 digits correlate with the exact ones by 0.97, in plain maps (benchmarks/reliability.py).
_CANDIDATES = 4.5
_EUCLIDEAN, _SQUARED, _ANGULAR = range(3)  # how distances follow from inner products
_FORMS = {"euclidean": _EUCLIDEAN, "sqeuclidean": _SQUARED, "cosine": _ANGULAR, "correlation": _ANGULAR}
_N_DIRECTIONS = 3
_PCA_ROWS = 1 << 14  # from which the directions are computed
_PCA_FEATURES = 2048  # beyond which inner products of up to as many rows replace the covariance matrix
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
    args = (length / neighbors.unit, perplexity, Y.astype(np.float64), neighbors, field, jumps)
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

    All lengths except ``radius`` are in units of ``unit``. Edges are those of the neighbour graph in both directions.
    """

    indptr: Array
    indices: Array
    distances: Array
    rows: Array  # precision, least and largest squared distance and sum of weights of each point, (n_samples, 4)
    projections: Array  # inner products of the points and the directions, (n_samples, n_directions)
    lengths: Array  # squared lengths of the directions, which are 1 unless the metric projects them
    norms: Array  # lengths of the rows, for angles
    form: int  # how distances follow from inner products
    unit: float
    radius: float  # median distance, in units of the data, to the neighbour whose rank is the perplexity


def nudged_neighbors(X: Any, *, metric: str, perplexity: float, n_neighbors: int, workers: Workers) -> NudgedNeighbors:
    """Search the neighbours of X, for one of the metrics that follow from inner products."""
    name, n_samples = EUCLIDEAN_METRICS[metric], X.shape[0]
    # A power of 2: products of the values neither overflow nor underflow, and digits are kept.
    unit = float(np.ldexp(1.0, int(np.frexp(max(X.max(), -X.min()))[1]) - 1))
    X = X / X.dtype.type(unit)
    graph = neighbor_distances(X, n_neighbors, metric=name, metric_params=None, workers=workers)
    rows, squared = np.empty((n_samples, 4)), np.square(graph.data, dtype=np.float64)
    workers.rows(_describe_rows, n_samples, n_neighbors, squared, perplexity, rows, work=100.0 * squared.size)
    directions = principal_directions(X)
    if name == "correlation":
        X, directions = (rows - rows.mean(axis=1, keepdims=True) for rows in (X, directions))
    norms = row_norms(X).astype(np.float64)
    rank = min(max(int(perplexity), 1), n_neighbors) - 1
    radii = np.partition(graph.data.reshape(n_samples, -1), rank, axis=1)[:, rank].astype(np.float64)
    if name != "euclidean":
        radii = np.sqrt(np.maximum(radii, 0)) * (np.sqrt(2.0) * norms if _FORMS[name] == _ANGULAR else 1)
    # The graph with both directions of every edge; shifted, so that a distance of 0 stays an edge.
    shifted = scipy.sparse.csr_matrix((graph.data + 1.0, graph.indices, graph.indptr), graph.shape)
    both = shifted.maximum(shifted.T.tocsr()).tocsr()
    return NudgedNeighbors(
        *(both.indptr, both.indices, both.data - 1.0, rows),
        projections=np.asarray(X @ directions.T, dtype=np.float64),
        lengths=(directions**2).sum(axis=1),
        norms=norms,
        form=_FORMS[name],
        unit=unit,
        radius=unit * float(np.median(radii)),
    )


def principal_directions(X: Any) -> Array:
    """Return up to three leading principal directions of evenly spaced rows, shape (n_directions, n_features)."""
    n_features = X.shape[1]
    are_wide = n_features > _PCA_FEATURES
    rows = X[:: -(-X.shape[0] // (_PCA_FEATURES if are_wide else _PCA_ROWS))].astype(np.float64)
    mean = np.asarray(rows.mean(axis=0)).ravel()
    leading = slice(None, -min(_N_DIRECTIONS, n_features) - 1, -1)
    if not are_wide:
        centred = (rows.toarray() if scipy.sparse.issparse(rows) else rows) - mean
        return np.ascontiguousarray(np.linalg.eigh(centred.T @ centred)[1][:, leading].T)
    products = (rows @ rows.T).toarray() if scipy.sparse.issparse(rows) else rows @ rows.T
    products -= products.mean(axis=0)
    weights = np.linalg.eigh(products - products.mean(axis=1, keepdims=True))[1][:, leading]
    directions = np.linalg.qr(rows.T @ weights - np.outer(mean, weights.sum(axis=0)))[0]
    return np.ascontiguousarray(directions.T)


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
    first, form, norms = neighbors.indptr[i], neighbors.form, neighbors.norms
    z, length = neighbors.projections[:, direction], step * step * neighbors.lengths[direction]
    norm = np.sqrt(max(norms[i] * norms[i] + 2 * step * z[i] + length, 0.0))
    for e in range(squared.size):
        j, d = neighbors.indices[first + e], neighbors.distances[first + e]
        if form != _ANGULAR:
            moved = max((d * d if form == _EUCLIDEAN else d) + 2 * step * (z[i] - z[j]) + length, 0.0)
            squared[e] = moved if form == _EUCLIDEAN else moved * moved
        elif norm == 0 or norms[j] == 0:
            squared[e] = 1.0
        else:
            squared[e] = (1 - ((1 - d) * norms[i] * norms[j] + step * z[j]) / (norm * norms[j])) ** 2


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
        for a in range(2 * neighbors.lengths.size):
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
