"""Affinities of the data: the symmetric joint probabilities P of t-SNE, and the fuzzy graph of UMAP."""

from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils import gen_batches

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne._runtime.warn import warn
from laptsne.graph.distances import all_distances, canonical
from laptsne.graph.neighbors import neighbor_distances
from laptsne.graph.paths import mutual_edges, nearest_along
from laptsne.graph.row_blocks import stacked

NEIGHBORS_PER_PERPLEXITY = 3  # neighbours with an affinity; benchmarks/constants.py has what fewer change
# Refined affinities below this share of the mean row sum are left out: 2 % of the total, half of all. The second is for
# more than MAX_WIDE points, up to which the default perplexity is 30, not 15 (docs/scale.md).
_SMALLEST = (1e-3, 2e-3)
MAX_WIDE = 500_000
_BLOCK = 1024
_ROWS, _BLOCKS, _ADDED = 2048, 128, 48  # least rows, and most blocks, of what is computed in blocks of rows, and added
_MAX_UNITS = 6  # of distances in which the precision is searched
_SQUARABLE = (1e-100, 1e100)  # distances whose squares neither overflow nor underflow
_MAX_STEPS, _TOL, _MIN_SCALE = 64, 1e-5, 1e-3  # of UMAP: bisections, error of their sum, scale in mean distances


@inlined
def moments(row: Array, nearest: float, unit: float, beta: float) -> tuple[float, float, float]:
    """Return the sum of the weights exp(-beta d) of a row, and the mean and variance of d under them."""
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
def _bounded_precision(row: Array, nearest: float, unit: float, perplexity: float) -> float:
    """Return the beta up to 1e12 at which the entropy of a row is log(perplexity), or the last one tried."""
    beta, low, high = 1.0, 0.0, np.inf
    for _ in range(200):
        total, mean, variance = moments(row, nearest, unit, beta)
        surplus = np.log(total) + beta * mean - np.log(perplexity)
        if abs(surplus) < 1e-5 or beta > 1e12 or beta < 1e-12:
            break
        if surplus > 0:
            low = beta
        else:
            high = beta
        # Newton's method in log(beta), safeguarded by bisection.
        halved = 2 * beta if high == np.inf else (low + high) / 2
        slope = beta * beta * variance
        newton = beta * np.exp(min(surplus / slope, 5.0)) if slope > 0 else 0.0
        beta = newton if low < newton < high else halved
    return beta


@inlined
def precision(row: Array, nearest: float, unit: float, perplexity: float) -> float:
    """Return the beta at which the entropy of a row is log(perplexity), or a large one if too many are the nearest.

    The unit is the furthest distance, which an outlier makes large: then smaller ones are tried, down to rounding.
    """
    factor, beta = 1.0, 0.0
    for _ in range(_MAX_UNITS):
        beta = _bounded_precision(row, nearest, unit * factor, perplexity) * factor
        if beta <= 1e12 * factor or beta * unit * nearest > 1e12:
            break
        factor *= 1e10
    return beta


@compiled
def _conditional_rows(start: int, stop: int, indptr: Array, squared: Array, perplexity: float, p: Array) -> None:
    """Set ``p``, which may be ``squared`` itself, to the conditional affinities of rows of squared distances."""
    for i in range(start, stop):
        row = squared[indptr[i] : indptr[i + 1]]
        out = p[indptr[i] : indptr[i + 1]]
        nearest, furthest = np.inf, -1.0
        for squared_distance in row:
            nearest = min(nearest, squared_distance)
            if squared_distance < np.inf:
                furthest = max(furthest, squared_distance)
        if furthest < 0:  # no neighbour
            out[:] = 0
            continue
        # In units of the spread of the row, the search does not depend on the scale of data. Rows of equal distances,
        # or with few neighbours, become uniform over the nearest.
        unit = 1.0 / (furthest - nearest) if furthest > nearest else 1.0
        beta = precision(row, nearest, unit, perplexity)
        total = moments(row, nearest, unit, beta)[0]
        for e in range(row.size):
            out[e] = np.exp(-beta * (row[e] - nearest) * unit) / total if row[e] < np.inf else 0.0


def joint_affinities(
    X: Any,
    *,
    perplexity: float,
    n_neighbors: int | str = "auto",
    metric: Any = "euclidean",
    metric_params: dict[str, Any] | None = None,
    refine: bool = False,
    workers: Workers | None = None,
) -> Any:
    r"""Compute symmetric affinities :math:`p_{ij} = (p_{j|i} + p_{i|j}) / 2N` with Gaussian conditionals.

    :math:`p_{j|i} \propto \exp(-\beta_i d_{ij}^2)` over the neighbours j of i, where :math:`\beta_i` gives the row the
    entropy :math:`\log(\mathrm{perplexity})`.

    X holds features; distances or a neighbour graph if ``metric="precomputed"``; P itself if ``metric="affinities"``.
    The perplexity is lowered with a warning if there are less than three times as many neighbours. ``n_neighbors`` with
    an affinity are three times the perplexity if "auto", and all points, for a dense P, if "all". P has the shape
    (n_samples, n_samples), is in single precision, and sums to 1.

    With ``refine``, conditionals of a sparse P are the mean of these and of those for distances along the mutual edges
    of the graph with ``perplexity`` neighbours (:func:`laptsne.graph.paths.mutual_edges`), and small entries of P are
    left out.
    """
    workers, X = workers or Workers(1), canonical(X)
    if metric in ("precomputed", "affinities"):
        if X.shape[0] != X.shape[1]:
            wanted = "a square matrix with one row and one column per sample"
            raise ValueError(f"metric={metric!r} needs {wanted}; X has shape {X.shape}.")
        if _values(X).min(initial=0) < 0:
            raise ValueError(f"metric={metric!r}: X has negative values; give distances or affinities of at least 0.")
        if metric_params:
            raise ValueError(f"metric_params={metric_params!r} has no use with metric={metric!r}; leave it out.")
    most, options = X.shape[0] - 1, {"metric": metric, "metric_params": metric_params}
    if metric == "affinities":
        if n_neighbors != "auto":
            raise ValueError(f"n_neighbors={n_neighbors!r} has no use with metric='affinities'; leave it out.")
        P = _given(X)
    elif n_neighbors == "all":
        P = _dense_affinities(X, perplexity, workers, **options)
    else:
        if not isinstance(n_neighbors, str) and n_neighbors > most:
            range_ = f"for {most + 1} samples; give a number from 1 to {most}, 'auto' or 'all'."
            raise ValueError(f"n_neighbors={n_neighbors} is out of range {range_}")
        options["workers"] = workers
        P = graph_affinities(distance_graph(X, perplexity, n_neighbors, **options), perplexity, workers, refine=refine)
    isolated = np.diff(P.indptr) == 0 if scipy.sparse.issparse(P) else ~P.any(axis=1)
    if isolated.any():
        warn(
            f"{isolated.sum()} of {P.shape[0]} points have no neighbour with a positive affinity, so that their "
            "positions in the embedding carry no information. Connect them to neighbours in X, or leave them out.",
        )
    return P


def auto_perplexity(n_samples: int) -> float:
    """Default perplexity for a number of samples; docs/evaluation.md and docs/scale.md have the evidence for it."""
    return max(1.0, min(30.0 if n_samples <= MAX_WIDE else 15.0, (n_samples - 1) / 3))


def feasible_perplexity(X: Any, *, perplexity: float, n_neighbors: Any = "auto", metric: Any = "euclidean") -> float:
    """Return the perplexity that :func:`joint_affinities` uses for the arguments: at most a third of the neighbours."""
    if metric == "affinities":
        return perplexity
    available = X.shape[0] - 1 if n_neighbors == "all" else count_neighbors(perplexity, n_neighbors, X.shape[0])
    if metric == "precomputed" and scipy.sparse.issparse(X):
        edges = canonical(X).tocoo()
        available = min(available, int(np.bincount(edges.row[edges.row != edges.col], minlength=1).max()))
    return _lowered(perplexity, available)


def count_neighbors(perplexity: float, n_neighbors: int | str, n_samples: int) -> int:
    """Return the number of neighbours with an affinity: the given one, or with "auto" that of the perplexity."""
    wanted = int(NEIGHBORS_PER_PERPLEXITY * perplexity) if n_neighbors == "auto" else int(n_neighbors)
    return min(max(wanted, 1), n_samples - 1)


def _lowered(perplexity: float, n_neighbors: int) -> float:
    """Return the perplexity that a number of neighbours supports."""
    enough = int(NEIGHBORS_PER_PERPLEXITY * perplexity) <= n_neighbors  # rounded down, like the number of neighbours
    return max(perplexity if enough else n_neighbors / NEIGHBORS_PER_PERPLEXITY, 1.0)


def _feasible(perplexity: float, n_neighbors: int) -> float:
    lowered = _lowered(perplexity, n_neighbors)
    if lowered < perplexity:
        warn(
            f"perplexity={perplexity:g} takes {int(NEIGHBORS_PER_PERPLEXITY * perplexity)} neighbours per point, but "
            f"there are only {n_neighbors}: it is lowered to {lowered:.4g}. Set perplexity to at most that to silence "
            "this warning.",
        )
    return lowered


def distance_graph(X: Any, perplexity: float, n_neighbors: int | str, **options: Any) -> Any:
    """Return the distances to the neighbours that get an affinity; options as in :func:`neighbor_distances`."""
    return neighbor_distances(X, count_neighbors(perplexity, n_neighbors, X.shape[0]), **options)


def graph_affinities(graph: Any, perplexity: float, workers: Workers, *, refine: bool = False) -> Any:
    """Return the affinities of :func:`joint_affinities` for a graph of distances to neighbours."""
    perplexity = _feasible(perplexity, int(np.diff(graph.indptr).max()))
    workers.report("affinities")
    directed = _directed(graph, perplexity, workers, refine=refine)
    del graph
    smallest = 2 * _SMALLEST[directed.shape[0] > MAX_WIDE] if refine else 0.0
    return _normalised(plus_transpose(directed, smallest=smallest, workers=workers))


def _directed(graph: Any, perplexity: float, workers: Workers, *, refine: bool) -> Any:
    """Return the conditional affinities for a graph of distances to neighbours, refined or not."""
    n_neighbors, n_rows = int(NEIGHBORS_PER_PERPLEXITY * perplexity), max(_ROWS, -(-graph.shape[0] // _BLOCKS))
    edges = mutual_edges(graph, int(perplexity), workers) if refine else None

    def block(rows: slice) -> Any:
        own = _sparse_conditional(graph[rows], perplexity)
        if edges is None:
            return own
        along = _sparse_conditional(nearest_along(edges, rows, n_neighbors), perplexity)
        # Half of each, and the row as it is where no edge is mutual.
        own.data *= np.repeat(np.where(np.diff(along.indptr) > 0, np.float32(0.5), 1), np.diff(own.indptr))
        along.data *= np.float32(0.5)
        return own + along

    return stacked(block, graph.shape, n_rows, np.float32, workers)


def _sparse_conditional(graph: Any, perplexity: float) -> Any:
    """Return conditional affinities from the entries of a graph of distances, with sorted rows that sum to 1."""
    squared = _representable(graph.data.astype(np.float64), *_SQUARABLE)
    np.square(squared, out=squared)
    p = np.empty(graph.nnz, np.float32)
    _conditional_rows(0, graph.shape[0], graph.indptr, squared, perplexity, p)
    found = scipy.sparse.csr_matrix((p, graph.indices, graph.indptr), graph.shape)
    found.sort_indices()
    return found


def _dense_affinities(X: Any, perplexity: float, workers: Workers, **options: Any) -> Array:
    perplexity = _feasible(perplexity, X.shape[0] - 1)
    squared = all_distances(X, **options)
    np.square(squared, out=squared)
    np.fill_diagonal(squared, np.inf)
    _condition(squared, perplexity, workers)
    return np.asarray(_normalised(_symmetrised(squared)))


def _condition(squared: Array, perplexity: float, workers: Workers) -> None:
    """Replace squared distances by conditional affinities, in place."""
    indptr, flat = np.arange(len(squared) + 1) * squared.shape[1], squared.reshape(-1)
    workers.rows(_conditional_rows, len(squared), indptr, flat, perplexity, flat, work=100.0 * flat.size)


def conditional_affinities(distances: Array, perplexity: float, workers: Workers) -> Array:
    """Return affinities of points to their own neighbours, given distances (n_points, n_neighbors); rows sum to 1."""
    p = distances.astype(np.float64)
    # Row by row: the affinities of a point must not depend on the other points.
    longest = p.max(axis=1)
    for i in np.flatnonzero((longest <= _SQUARABLE[0]) | (longest >= _SQUARABLE[1])):
        p[i] = _representable(p[i], *_SQUARABLE)
    np.square(p, out=p)
    _condition(p, max(min(perplexity, p.shape[1] / NEIGHBORS_PER_PERPLEXITY), 1.0), workers)
    return p


def _representable(values: Any, low: float, high: float) -> Any:
    """Return values in units of the largest if that is out of bounds: affinities do not depend on the unit."""
    largest = float(_values(values).max(initial=0))
    return values if low < largest < high or largest == 0 else values / largest


def _values(X: Any) -> Any:
    return X.data if scipy.sparse.issparse(X) else X


def _symmetrised(P: Array) -> Array:
    """Add the transpose of P in place, block by block, without a second matrix."""
    for a, b in combinations_with_replacement(gen_batches(P.shape[0], _BLOCK), 2):
        block = P[a, b] + P[b, a].T
        P[a, b], P[b, a] = block, block.T
    return P


def _normalised(P: Any) -> Any:
    total = float(P.sum(dtype=np.float64))
    if total <= 0:
        raise ValueError("X has no positive affinity; give a graph or affinities with at least one edge.")
    values = _values(P)
    values /= values.dtype.type(total)
    return P


def _given(X: Any) -> Any:
    """Return affinities given by the user: symmetric, without a diagonal, with sum 1."""
    X = _representable(X, 1e-15, 1e15)
    if not scipy.sparse.issparse(X):
        P = np.array(X, dtype=np.float32)
        np.fill_diagonal(P, 0)
        return _normalised(_symmetrised(P))
    P = X.tocsr().astype(np.float32)
    P = P + P.T
    P.setdiag(0)
    return _normalised(_tidied(P))


def plus_transpose(
    matrix: Any, n_rows: int | None = None, *, smallest: float = 0.0, workers: Workers | None = None
) -> Any:
    """Return the sum of a CSR matrix and its transpose, ``n_rows`` at a time, with sorted rows.

    Entries that are 0 or less than ``smallest`` are left out.
    """

    def block(rows: slice) -> Any:
        own = matrix[rows]
        own.sort_indices()  # sums of unsorted rows take several times as long
        both = own + matrix[:, rows].T.tocsr()
        both.data[both.data < smallest] = 0
        return _tidied(both)

    n_rows = n_rows or max(_ROWS, -(-matrix.shape[0] // _ADDED))
    return stacked(block, matrix.shape, n_rows, matrix.dtype, workers or Workers(1))


def _tidied(matrix: Any) -> Any:
    matrix.sort_indices()
    matrix.eliminate_zeros()
    return matrix


@compiled
def _membership_rows(start: int, stop: int, graph: Any, options: tuple[float, float, float], membership: Array) -> None:
    """Set memberships exp(-(d - rho) / sigma), with sigma such that those of a row sum to the target."""
    (indptr, distances), (local_connectivity, target, mean_distance) = graph, options
    whole = int(np.floor(local_connectivity))
    for i in range(start, stop):
        row = distances[indptr[i] : indptr[i + 1]]
        out = membership[indptr[i] : indptr[i + 1]]
        if row.size == 0:
            continue
        # The distance up to which neighbours have membership 1 is interpolated between those of two neighbours.
        ordered = np.append(0.0, np.sort(row[row > 0]))
        rho = ordered[min(whole, ordered.size - 1)]
        if whole < ordered.size - 1:
            rho += (local_connectivity - whole) * (ordered[whole + 1] - rho)
        low, high, sigma = 0.0, np.inf, 1.0
        for _ in range(_MAX_STEPS):
            total = 0.0
            for e in range(row.size):
                total += np.exp(-max(row[e] - rho, 0.0) / sigma)
            if abs(total - target) < _TOL:
                break
            if total > target:
                high = sigma
                sigma = (low + high) / 2
            else:
                low = sigma
                sigma = 2 * sigma if high == np.inf else (low + high) / 2
        own_mean = row.sum() / (row.size + 1)  # umap-learn counts the point itself
        sigma = max(sigma, _MIN_SCALE * (own_mean if rho > 0 else mean_distance))
        for e in range(row.size):
            beyond = row[e] - rho
            out[e] = 1.0 if beyond <= 0 or sigma == 0 else np.exp(-beyond / sigma)


def fuzzy_graph(
    X: Any, *, n_neighbors: int, local_connectivity: float = 1.0, set_op_mix_ratio: float = 1.0, **options: Any
) -> Any:
    r"""Compute the fuzzy graph of UMAP as a CSR matrix with symmetric weights from 0 to 1 in single precision.

    The membership of a neighbour at distance :math:`d` is :math:`\exp(-(d - \rho_i) / \sigma_i)`, with the distance
    :math:`\rho_i` of the ``local_connectivity`` nearest neighbours and memberships that sum to :math:`\log_2 k`, where
    one of the k neighbours is the point itself. The weights are the fuzzy union :math:`a + a^T - a \circ a^T`, whose
    share is ``set_op_mix_ratio``, mixed with the intersection :math:`a \circ a^T`. Options are ``metric``,
    ``metric_params`` and ``workers`` of :func:`neighbor_distances`.
    """
    workers = options.pop("workers", None) or Workers(1)
    distances = neighbor_distances(X, n_neighbors - 1, workers=workers, **options)
    far, membership = distances.data.astype(np.float64), np.empty(distances.nnz, np.float32)
    mean = float(far.sum() / max(far.size + distances.shape[0], 1))
    args = ((distances.indptr, far), (float(local_connectivity), float(np.log2(n_neighbors)), mean), membership)
    workers.rows(_membership_rows, distances.shape[0], *args, work=2000.0 * far.size)
    directed = scipy.sparse.csr_matrix((membership, distances.indices, distances.indptr), distances.shape)
    directed.eliminate_zeros()
    back = directed.T.tocsr()
    both = directed.multiply(back)
    mix = np.float32(set_op_mix_ratio)
    return _tidied(scipy.sparse.csr_matrix(mix * (directed + back - both) + (1 - mix) * both))
