"""Affinities of the data: the symmetric joint probabilities P of t-SNE."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.threads import Workers
from laptsne.graph.neighbors import all_distances, neighbor_distances

Array = NDArray[Any]
_BLOCK = 1024
# Distances whose squares neither overflow nor vanish.
_SQUARABLE = (1e-100, 1e100)


@inlined
def _moments(row: Array, nearest: float, unit: float, beta: float) -> tuple[float, float, float]:
    """Sum of the weights exp(-beta d) of a row, and mean and variance of d under them."""
    total, weighted, squares = 0.0, 0.0, 0.0
    for e in range(row.size):
        if row[e] < np.inf:
            d = (row[e] - nearest) * unit
            weight = np.exp(-beta * d)
            total += weight
            weighted += weight * d
            squares += weight * d * d
    return total, weighted / total, squares / total - (weighted / total) ** 2


@inlined
def _precision(row: Array, nearest: float, unit: float, perplexity: float) -> float:
    """The beta at which the entropy of a row is log(perplexity), or the last one tried where there is none."""
    beta, low, high = 1.0, 0.0, np.inf
    for _ in range(200):
        total, mean, variance = _moments(row, nearest, unit, beta)
        surplus = np.log(total) + beta * mean - np.log(perplexity)
        if abs(surplus) < 1e-5 or beta > 1e12 or beta < 1e-12:
            break
        if surplus > 0:
            low = beta
        else:
            high = beta
        # Newton's step on the scale of log(beta) where it stays within the bracket; else the bracket is halved.
        halved = 2 * beta if high == np.inf else (low + high) / 2
        slope = beta * beta * variance
        newton = beta * np.exp(min(surplus / slope, 5.0)) if slope > 0 else 0.0
        beta = newton if low < newton < high else halved
    return beta


@compiled
def _conditional_rows(start: int, stop: int, indptr: Array, squared: Array, perplexity: float, p: Array) -> None:
    """Set p to the conditional affinities of every row of squared distances; p may be squared itself.

    Infinite distances get the affinity 0. A row of equal distances, or with too few neighbours for the
    perplexity, ends up uniform over its nearest points.
    """
    for i in range(start, stop):
        row = squared[indptr[i] : indptr[i + 1]]
        out = p[indptr[i] : indptr[i + 1]]
        nearest, furthest = np.inf, -1.0
        for e in range(row.size):
            nearest = min(nearest, row[e])
            if row[e] < np.inf:
                furthest = max(furthest, row[e])
        if furthest < 0:  # no neighbour at all
            out[:] = 0
            continue
        # In units of the row's own spread, the search starts alike whatever the scale of the data.
        unit = 1.0 / (furthest - nearest) if furthest > nearest else 1.0
        beta = _precision(row, nearest, unit, perplexity)
        total = _moments(row, nearest, unit, beta)[0]
        for e in range(row.size):
            out[e] = np.exp(-beta * (row[e] - nearest) * unit) / total if row[e] < np.inf else 0.0


def joint_affinities(
    X: Any,
    *,
    perplexity: float,
    n_neighbors: int | str = "auto",
    metric: Any = "euclidean",
    metric_params: dict[str, Any] | None = None,
    workers: Workers | None = None,
) -> Any:
    r"""Symmetric affinities :math:`p_{ij} = (p_{j|i} + p_{i|j}) / 2N` with Gaussian conditionals.

    :math:`p_{j|i} \propto \exp(-\beta_i d_{ij}^2)` over the neighbours j of i, where :math:`\beta_i` gives the row the
    entropy :math:`\log(\mathrm{perplexity})`.

    Parameters
    ----------
    X : array or sparse matrix
        Features, or what ``metric`` says: "precomputed" distances or neighbour graph, or the "affinities".
    perplexity : float
        Effective number of neighbours; lowered with a warning to a third of the neighbours there are.
    n_neighbors : int, "auto" or "all", default="auto"
        Neighbours that get an affinity: "auto" three times the perplexity, "all" every pair (a dense matrix).
    metric : str or callable, default="euclidean"
        What scikit-learn's neighbours take, "precomputed", or "affinities" where X is P already.
    metric_params : dict, optional
        Further arguments of the metric.
    workers : Workers, optional
        Threads.

    Returns
    -------
    P : sparse matrix in CSR form, or array where ``n_neighbors="all"``
        Single precision; sums to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from laptsne.graph.affinity import joint_affinities
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> P = joint_affinities(X, perplexity=10)
    >>> P.shape, round(float(P.sum()), 4)
    ((100, 100), 1.0)
    """
    workers = workers or Workers(1)
    if isinstance(metric, str) and metric in ("precomputed", "affinities"):
        _check_square(X, metric)
        if metric_params:
            raise ValueError(f"metric_params={metric_params!r} has no use with metric={metric!r}; leave it out.")
        if metric == "affinities":
            if n_neighbors != "auto":
                raise ValueError(f"n_neighbors={n_neighbors!r} has no use with metric='affinities'; leave it out.")
            return _given(X)
    n_samples = X.shape[0]
    if not isinstance(n_neighbors, str) and n_neighbors >= n_samples:
        raise ValueError(
            f"n_neighbors={n_neighbors} is out of range for {n_samples} samples; "
            f"give a number from 1 to {n_samples - 1}, 'auto' or 'all'."
        )
    if n_neighbors == "all":
        perplexity = _feasible(perplexity, n_samples - 1)
        squared = all_distances(X, metric=metric, metric_params=metric_params)
        np.square(squared, out=squared)
        np.fill_diagonal(squared, np.inf)
        indptr, flat = np.arange(n_samples + 1) * n_samples, squared.reshape(-1)
        work = 100.0 * flat.size
        workers.rows(_conditional_rows, n_samples, indptr, flat, perplexity, flat, work=work)
        return _normalised(_symmetrised(squared))
    options = {"metric": metric, "metric_params": metric_params, "workers": workers}
    return graph_affinities(distance_graph(X, perplexity, n_neighbors, **options), perplexity, workers)


def distance_graph(X: Any, perplexity: float, n_neighbors: int | str, **options: Any) -> Any:
    """Distances to the neighbours over which P is spread; options as in :func:`neighbor_distances`."""
    wanted = int(3 * perplexity) if n_neighbors == "auto" else int(n_neighbors)
    return neighbor_distances(X, min(max(wanted, 1), X.shape[0] - 1), **options)


def graph_affinities(graph: Any, perplexity: float, workers: Workers) -> Any:
    """Symmetric affinities over a graph of distances to neighbours, as :func:`joint_affinities` has them."""
    perplexity = _feasible(perplexity, int(np.diff(graph.indptr).max()))
    p = np.empty(graph.nnz, np.float32)
    squared = _representable(graph.data.astype(np.float64), *_SQUARABLE)
    np.square(squared, out=squared)
    args = (graph.indptr, squared, perplexity, p)
    workers.rows(_conditional_rows, graph.shape[0], *args, work=100.0 * p.size)
    conditional = scipy.sparse.csr_matrix((p, graph.indices, graph.indptr), graph.shape)
    del graph, args, squared
    joint = conditional + conditional.T.tocsr()
    joint.sort_indices()
    joint.eliminate_zeros()
    return _normalised(joint)


def conditional_affinities(distances: Array, perplexity: float, workers: Workers) -> Array:
    """Affinities of points to their own neighbours, row by row; the perplexity is lowered where these are too few.

    Parameters
    ----------
    distances : array of shape (n_points, n_neighbors)
        Distances to the neighbours.
    perplexity : float
        Effective number of neighbours.

    Returns
    -------
    p : array of shape (n_points, n_neighbors)
        Every row sums to 1.
    """
    n_points, n_neighbors = distances.shape
    p = distances.astype(np.float64)
    # Row by row: affinities of a point must not depend on the others.
    longest = p.max(axis=1)
    for i in np.flatnonzero((longest <= _SQUARABLE[0]) | (longest >= _SQUARABLE[1])):
        p[i] = _representable(p[i], *_SQUARABLE)
    np.square(p, out=p)
    indptr, flat = np.arange(n_points + 1) * n_neighbors, p.reshape(-1)
    perplexity = max(min(perplexity, n_neighbors / 3), 1.0)
    workers.rows(_conditional_rows, n_points, indptr, flat, perplexity, flat, work=100.0 * flat.size)
    return p


def _representable(values: Any, low: float, high: float) -> Any:
    """Values in units of the largest where that is out of bounds, else as they are. Affinities know no unit."""
    largest = float(values.max()) if values.size else 0.0
    return values if low < largest < high or largest == 0 else values / largest


def _feasible(perplexity: float, n_neighbors: int) -> float:
    """Lower the perplexity to what the number of neighbours can carry."""
    # A third, rounded down to whole neighbours as 3 x perplexity is.
    if int(3 * perplexity) <= n_neighbors:
        return max(perplexity, 1.0)
    lowered = max(n_neighbors / 3, 1.0)
    warnings.warn(
        f"perplexity={perplexity:g} needs {int(3 * perplexity)} neighbours a point, but there are only "
        f"{n_neighbors}: it is lowered to {lowered:.4g}. Set perplexity to at most that to silence this warning.",
        UserWarning,
        stacklevel=2,
    )
    return lowered


def _check_square(X: Any, metric: str) -> None:
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            f"metric={metric!r} needs a square matrix, one row and one column a sample; X has shape {X.shape}."
        )
    if (X.data if scipy.sparse.issparse(X) else X).min(initial=0) < 0:
        raise ValueError(
            f"metric={metric!r} needs values of at least 0, but X has negative values; give distances or affinities."
        )


def _symmetrised(P: Array) -> Array:
    """P + P^T in place, block by block, so that no second matrix is made."""
    n = P.shape[0]
    for a in range(0, n, _BLOCK):
        for b in range(a, n, _BLOCK):
            rows, columns = slice(a, a + _BLOCK), slice(b, b + _BLOCK)
            block = P[rows, columns] + P[columns, rows].T
            P[rows, columns] = block
            P[columns, rows] = block.T
    return P


def _normalised(P: Any) -> Any:
    total = float(P.sum(dtype=np.float64))
    if total <= 0:
        raise ValueError(
            "X: no point has a neighbour with a positive affinity; give a graph or affinities with at least one edge."
        )
    values = P.data if scipy.sparse.issparse(P) else P
    values /= values.dtype.type(total)
    return P


def _given(X: Any) -> Any:
    """Affinities from the user: made symmetric, without a diagonal, with sum 1."""
    X = _representable(X, 1e-15, 1e15)
    if not scipy.sparse.issparse(X):
        P = np.array(X, dtype=np.float32)
        np.fill_diagonal(P, 0)
        return _normalised(_symmetrised(P))
    P = X.tocsr().astype(np.float32)
    P = P + P.T
    P.setdiag(0)
    P.eliminate_zeros()
    P.sort_indices()
    return _normalised(P)
