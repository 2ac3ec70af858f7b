"""Affinities of a point whose data are moved along a direction, without a new neighbour search."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.graph.affinity import moments, precision
from laptsne.graph.distances import EUCLIDEAN_METRICS
from laptsne.graph.neighbors import neighbor_distances

EUCLIDEAN, SQUARED, ANGULAR = range(3)  # how distances follow from inner products
_FORMS = {"euclidean": EUCLIDEAN, "sqeuclidean": SQUARED, "cosine": ANGULAR, "correlation": ANGULAR}
N_DIRECTIONS = 3
_PCA_ROWS = 1 << 14  # from which the directions are computed
_PCA_FEATURES = 2048  # beyond which their covariance matrix is not stored
_SQUARABLE = (1e-15, 1e15)  # values whose products neither overflow nor underflow in single precision


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
    name = EUCLIDEAN_METRICS[metric]
    X, unit = _scaled(X)
    graph = neighbor_distances(X, n_neighbors, metric=name, metric_params=None, workers=workers)
    n_samples = X.shape[0]
    rows = np.empty((n_samples, 4))
    squared = np.square(graph.data, dtype=np.float64)
    workers.rows(_precision_rows, n_samples, n_neighbors, squared, perplexity, rows, work=100.0 * squared.size)
    directions = principal_directions(X)
    if name == "correlation":
        X = X - X.mean(axis=1, keepdims=True)
        directions = directions - directions.mean(axis=1, keepdims=True)
    norms = _norms(X)
    chord = _chords(graph.data.reshape(n_samples, -1), norms, _FORMS[name])
    rank = min(max(int(perplexity), 1), n_neighbors) - 1
    both = _union(graph)
    return NudgedNeighbors(
        *(both.indptr, both.indices, both.data, rows),
        projections=np.asarray(X @ directions.T, dtype=np.float64),
        lengths=(directions**2).sum(axis=1),
        norms=norms,
        form=_FORMS[name],
        unit=unit,
        radius=unit * float(np.median(np.partition(chord, rank, axis=1)[:, rank])),
    )


def _scaled(X: Any) -> tuple[Any, float]:
    """Return X in units in which products of its values can be represented, and the unit."""
    largest = float(max(X.max(), -X.min()))
    if largest == 0 or _SQUARABLE[0] < largest < _SQUARABLE[1]:
        return X, 1.0
    unit = float(np.ldexp(1.0, int(np.frexp(largest)[1])))
    return X.astype(np.float64) / unit, unit


def _union(graph: Any) -> Any:
    """Return the graph with both directions of every edge; a distance of 0 stays an edge."""
    shifted = scipy.sparse.csr_matrix((graph.data + 1.0, graph.indices, graph.indptr), graph.shape)
    both = shifted.maximum(shifted.T.tocsr()).tocsr()
    both.data -= 1.0
    return both


def _norms(X: Any) -> Array:
    squares = X.multiply(X).sum(axis=1) if scipy.sparse.issparse(X) else np.einsum("ij,ij->i", X, X, dtype=np.float64)
    return np.sqrt(np.asarray(squares, dtype=np.float64)).ravel()


def _chords(distances: Array, norms: Array, form: int) -> Array:
    """Return distances in units of the data."""
    if form == EUCLIDEAN:
        return distances
    roots = np.sqrt(np.maximum(distances, 0))
    return roots if form == SQUARED else np.asarray(np.sqrt(2.0) * roots * norms[:, None])


def principal_directions(X: Any) -> Array:
    """Return up to three leading principal directions of X, shape (n_directions, n_features).

    They are computed from up to 16,384 evenly spaced rows.
    """
    rows = X[:: -(-X.shape[0] // _PCA_ROWS)]
    n_rows, n_features = rows.shape
    n_directions = min(N_DIRECTIONS, n_features)
    mean = np.asarray(rows.mean(axis=0, dtype=np.float64)).ravel()
    sparse = scipy.sparse.issparse(rows)
    if n_features <= _PCA_FEATURES:
        centred = (rows.toarray() if sparse else rows) - mean
        return np.ascontiguousarray(np.linalg.eigh(centred.T @ centred)[1][:, : -n_directions - 1 : -1].T)
    if abs(rows.max(axis=0) - rows.min(axis=0)).max() == 0:  # ARPACK fails for equal rows
        return np.eye(n_directions, n_features)

    def scatter(v: Array) -> Array:
        projected = rows @ v.ravel() - mean @ v.ravel()
        return np.asarray(rows.T @ projected - mean * projected.sum())

    operator = scipy.sparse.linalg.LinearOperator((n_features, n_features), scatter, dtype=np.float64)
    start = np.random.RandomState(0).standard_normal(n_features)
    vectors = scipy.sparse.linalg.eigsh(operator, min(n_directions, n_rows), v0=start)[1]
    return np.ascontiguousarray(vectors[:, ::-1].T)


@compiled
def _precision_rows(start: int, stop: int, k: int, squared: Array, perplexity: float, rows: Array) -> None:
    """Set what describes rows of k squared distances."""
    for i in range(start, stop):
        row = squared[i * k : (i + 1) * k]
        nearest, furthest = row.min(), row.max()
        unit = 1.0 / (furthest - nearest) if furthest > nearest else 1.0
        beta = precision(row, nearest, unit, perplexity)
        rows[i, 0], rows[i, 1], rows[i, 2] = beta * unit, nearest, furthest
        rows[i, 3] = moments(row, nearest, unit, beta)[0]


@inlined
def nudged_distance(
    d: float, form: int, step: float, zi: float, zj: float, length: float, norm_i: float, norm_j: float
) -> float:
    """Return the squared distance, in the metric, of a row moved by a step along a direction.

    ``zi`` and ``zj`` are the projections of the two rows on the direction, ``length`` is its squared length.
    """
    if form != ANGULAR:
        squared = d * d if form == EUCLIDEAN else d
        squared = max(squared + 2 * step * (zi - zj) + step * step * length, 0.0)
        return float(squared if form == EUCLIDEAN else squared * squared)
    norm = np.sqrt(max(norm_i * norm_i + 2 * step * zi + step * step * length, 0.0))
    if norm == 0 or norm_j == 0:
        return 1.0
    angle = 1 - ((1 - d) * norm_i * norm_j + step * zj) / (norm * norm_j)
    return float(angle * angle)
