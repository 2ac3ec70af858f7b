"""The memory that a fit needs, before it is run."""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike
from sklearn.neighbors import VALID_METRICS

from laptsne._runtime import available_memory
from laptsne._runtime.threads import effective_n_jobs
from laptsne._runtime.warn import warn
from laptsne.contraction.cluster_term import MAX_NUMBERS
from laptsne.fields.repulsion import CELLS_PER_POINT
from laptsne.graph.affinity import auto_perplexity, count_neighbors
from laptsne.graph.distances import EUCLIDEAN_METRICS, ROWS_PER_BLOCK, WORKING_MEMORY_MIB, is_pairwise
from laptsne.graph.neighbors import MAX_EXACT_NEIGHBORS
from laptsne.graph.spectrum import MAX_CLUSTERS
from laptsne.kernels import Student
from laptsne.settings import sums_all_pairs, uses_fourier
from laptsne.transform.sampling import n_sampled

_REFUSED = 0.75  # a fit is refused if this fraction of the estimate exceeds the available memory
_MUTUAL = 1.65  # entries of P per neighbour: 2 if no neighbours are mutual, 1 if all are
_REFINED, _KEPT = 2.0, 1.1  # the same while they are refined, and once small ones are left out
_CLUSTERS = 10  # if their number is not given
# Bytes, fitted to peaks measured by benchmarks/memory.py. The first of two is without, the second with neighbours of
# mini-batches from P.
_FIXED = 8 << 20  # stacks of threads, tables, small graphs, fragmentation
_EDGE, _PAIR = (12, 64), (8.5, 16)  # entry of a sparse and of a dense P, with what is derived from it
_GIVEN, _UNION = 48, 72  # entry of a given graph, which is sorted; neighbour in the fuzzy union of LapUMAP
# Point: clusters, embedding, fields; the same if the peak is that of refined affinities; row of which landmarks are
# chosen: its neighbours.
_POINT, _REFINED_POINT, _SAMPLED = 1400, 600, 480
_VECTOR, _STUDENT_VECTOR = 56, 120  # value of an eigenvector of the data; and of the embedding, if it is on the points
# Fields of the clusters on a mesh: a value on a node, nodes per side, which follow the size of the embedding, at most
# and relative to that of n points (for UMAP, always this number), and by how much a mesh exceeds its limit.
_NODE, _NODES, _NODES_PER_POINT, _UMAP_NODES, _PADDED = 30, {1: 110, 2: 160, 3: 110}, {1: 0.1, 2: 1.5, 3: 5.0}, 40, 1.5
# Cell of the grid of t-SNE, which in 3-D grows with the embedding until a limit, beyond which all pairs are summed, and
# of that of UMAP, by dimension.
_CELL, _CELLS, _MIN_CELLS, _MAX_CELLS = 30, 1 << 18, 1 << 22, 1 << 28
_UMAP_CELL, _UMAP_CELLS = {1: 80, 2: 185, 3: 450}, {1: 1 << 16, 2: 1 << 16, 3: 1 << 20}


def estimate_memory(
    n_samples: int, n_features: int, *, dtype: DTypeLike = np.float64, estimator: type | None = None, **settings: Any
) -> int:
    """Estimate the peak memory of a fit, in bytes.

    It is the growth of the process during ``estimator(**settings).fit(X)``, within about a third.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of X; with ``metric="precomputed"`` it is square and dense.
    dtype : dtype, default=float64
        Single precision, or double precision for all others.
    estimator : class, optional
        :class:`LaptSNE`, :class:`LandmarkLaptSNE` or :class:`LapUMAP`. None is the second with ``n_landmarks``, and the
        first without.
    **settings
        Parameters of the estimator.

    Examples
    --------
    >>> from laptsne import estimate_memory
    >>> 1.5 < estimate_memory(1_000_000, 50) / 2**30 < 4
    True
    """
    import laptsne  # noqa: PLC0415  the estimators import this module

    if min(n_samples, n_features) < 1:
        raise ValueError(f"n_samples and n_features must be at least 1, got {n_samples} and {n_features}.")
    estimator = estimator or (laptsne.LandmarkLaptSNE if "n_landmarks" in settings else laptsne.LaptSNE)
    if estimator not in (laptsne.LaptSNE, laptsne.LandmarkLaptSNE, laptsne.LapUMAP):
        raise ValueError(f"estimator={estimator!r} is not known; give LaptSNE, LandmarkLaptSNE or LapUMAP.")
    model = estimator(**settings)
    model._validate_params()
    p, itemsize = model.get_params(deep=False), 4 if np.dtype(dtype) == np.float32 else 8
    if "n_landmarks" not in p:
        return demand(p, n_samples, n_features, itemsize)
    sampled = n_sampled(p["n_landmarks"], n_samples)
    return demand(p, sampled, n_features, itemsize) + n_samples * int(p["n_components"]) * itemsize


def demand(p: dict[str, Any], n: int, n_features: int, itemsize: int, n_given: float = 0) -> int:
    """Return the estimate for n points, or n rows sampled for landmarks; a graph has ``n_given`` entries per row."""
    d, k, is_umap = p["n_components"], _n_neighbors(p, n, n_given), "min_dist" in p
    batches = p.get("batch_size") is not None and p["n_batch_neighbors"] > 0
    refined = _KEPT if batches else _REFINED
    per_neighbor = 1.0 if p["metric"] == "affinities" else refined if p.get("refine_affinities") else _MUTUAL
    n_edges = n * min(k * per_neighbor, n - 1.0)
    n_clusters = _CLUSTERS if isinstance(p["n_clusters"], str) else p["n_clusters"]
    n_vectors = 4 + (d if p["n_clusters"] == "auto" else max(d, MAX_CLUSTERS, n_clusters))
    point = _REFINED_POINT if p.get("refine_affinities") and not batches else _POINT
    graph = _EDGE[batches] * n_edges + n * max(point, _VECTOR * n_vectors) if k < n else _PAIR[batches] * n * n
    one_kernel = p.get("contraction_kernel") == "student" or p.get("kernel", "student") not in ("student", Student())
    side = _UMAP_NODES if is_umap else min(_NODES[d], _NODES_PER_POINT[d] * n ** (1 / d))
    mesh = _NODE * min(side**d, _PADDED * MAX_NUMBERS / n_clusters)
    descent = 8 * n_edges + n * _POINT / 2 + (n_clusters + 1) * (_STUDENT_VECTOR * n if one_kernel else mesh)
    if is_umap and not sums_all_pairs(p, n):
        descent += _UMAP_CELL[d] * max(CELLS_PER_POINT * n, _UMAP_CELLS[d])
    elif not is_umap and uses_fourier(p, n):
        descent += _CELL * (_CELLS if d < 3 else min(max(n * n, _MIN_CELLS), _MAX_CELLS))
    union = _UNION * n * k if is_umap else 0
    sample = n * (itemsize * n_features + _SAMPLED) if "n_landmarks" in p else 0
    return _FIXED + int(sample + max(graph, union, descent, _search(p, n, n_features, itemsize, k, n_given)))


def _n_neighbors(p: dict[str, Any], n: int, n_given: float) -> float:
    """Neighbours per point with an affinity, n if P is dense."""
    if p["n_neighbors"] == "all" or p["metric"] == "affinities":
        return n_given or n
    perplexity = auto_perplexity(n) if p.get("perplexity", "auto") == "auto" else p["perplexity"]
    return min(count_neighbors(perplexity, p["n_neighbors"], n), n_given or n)


def _search(p: dict[str, Any], n: int, n_features: int, itemsize: int, k: float, n_given: float) -> float:
    """The search for neighbours: copies of the data, indices and distances, and blocks of the distance matrix."""
    metric, pairwise = p["metric"], is_pairwise(p["metric"])
    if n_given or metric == "affinities":
        return _GIVEN * n_given * n
    block = min(WORKING_MEMORY_MIB << 20, 8 * n * (n if k >= n else min(n, ROWS_PER_BLOCK)))
    if k >= n:
        return 4.0 * n * n + 3 * block
    if pairwise:
        return 20 * n * k + 2 * block
    indexed = metric in EUCLIDEAN_METRICS and not p["metric_params"] and n > MAX_EXACT_NEIGHBORS
    if indexed or metric in {*VALID_METRICS["kd_tree"], "sqeuclidean"}:
        block = 0
    copies = 2 * itemsize + 4 if indexed else 8
    return n * (20 * k + copies * n_features) + 2 * effective_n_jobs(p["n_jobs"]) * block


def check_memory(p: dict[str, Any], X: Any) -> None:
    """Warn if fitting X may not fit into memory; raise MemoryError if three quarters of the estimate do not fit."""
    n = X.shape[0]
    n_given = X.nnz / n if scipy.sparse.issparse(X) and is_pairwise(p["metric"]) else 0
    needed, available = demand(p, n, X.shape[1], X.dtype.itemsize, n_given), available_memory.available_memory()
    if available is None or needed <= available:
        return
    k = _n_neighbors(p, n, n_given)
    lower = f"n_neighbors=5 instead of {k}" if "min_dist" in p else f"perplexity=10 instead of {k / 3:.3g}"
    if p["n_neighbors"] == "all":
        remedy = "Use n_neighbors='auto', which does not store all pairs."
    elif n_given or k >= n:
        remedy = "Give a sparse matrix with fewer neighbours per point."
    elif is_pairwise(p["metric"]):
        remedy = f"Give a sparse neighbour graph, or fewer neighbours: {lower}."
    elif "n_landmarks" in p:
        remedy = f"Use fewer landmarks than {p['n_landmarks']:,}, each of which takes 20 rows, or {lower}."
    else:
        remedy = f"Use LandmarkLaptSNE(n_landmarks=10_000), which fits a sample of the points, or {lower}."
    message = (
        f"Fitting {n:,} points needs about {needed / 2**20:,.0f} MiB of memory in addition to the data, but only "
        f"{available / 2**20:,.0f} MiB are available. {remedy}"
    )
    if _REFUSED * needed > available:
        raise MemoryError(message)
    warn(message)
