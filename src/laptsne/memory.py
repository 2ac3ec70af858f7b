"""The memory that a fit needs, before it is run."""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike
from sklearn.neighbors import VALID_METRICS

from laptsne._runtime import available_memory
from laptsne._runtime.threads import effective_n_jobs
from laptsne._runtime.warn import warn
from laptsne.fields.grid import MAX_NODES
from laptsne.fields.repulsion import CELLS_PER_POINT, MAX_CELLS
from laptsne.graph.affinity import NEIGHBORS_PER_PERPLEXITY, auto_perplexity
from laptsne.graph.distances import EUCLIDEAN_METRICS, ROWS_PER_BLOCK, WORKING_MEMORY_MIB, is_pairwise
from laptsne.graph.neighbors import MAX_EXACT_NEIGHBORS
from laptsne.graph.spectrum import MAX_CLUSTERS
from laptsne.kernels import Student
from laptsne.settings import sums_all_pairs, uses_fourier
from laptsne.transform.sampling import n_sampled

_REFUSED = 0.75  # a fit is refused if this fraction of the estimate exceeds the available memory
_MUTUAL = 1.65  # entries of P per neighbour: 2 if no neighbours are mutual, 1 if all are
_CLUSTERS = 10  # if their number is not given
# Bytes, fitted to peaks measured by benchmarks/memory.py. The first of two is without, the second with neighbours of
# mini-batches from P.
_FIXED = 8 << 20  # stacks of threads, tables, small graphs, fragmentation
_EDGE, _PAIR = (12, 64), (8.5, 16)  # entry of a sparse and of a dense P, with what is derived from it
_GIVEN, _UNION = 48, 72  # entry of a given graph, which is sorted; neighbour in the fuzzy union of LapUMAP
_POINT, _SAMPLED = 1400, 480  # point: clusters, embedding, fields; row of which landmarks are chosen: its neighbours
_VECTOR, _STUDENT_VECTOR = 56, 120  # value of an eigenvector of the data; and of the embedding, if it is on the points
_CELLS_PER_CLUSTER = 14  # cells per side of the mesh of the contraction, for a single cluster
_NODE = 28  # value of an eigenvector of the embedding on a node of the mesh
# Cell of a transform, and by dimension the number of cells: at least, per point, at most. In 3-D, the grid of t-SNE
# grows with the embedding until this limit, beyond which all pairs are summed.
_CELL, _CELLS = 30, {1: (1 << 12, 8, 1 << 28), 2: (1 << 18, 16, 1 << 28), 3: (1 << 28, 0, 1 << 28)}
_UMAP_CELL, _UMAP_CELLS = 36, {1: 1 << 16, 2: 1 << 16, 3: 1 << 20}


def estimate_memory(
    n_samples: int,
    n_features: int,
    *,
    dtype: DTypeLike = np.float64,
    estimator: type[Any] | None = None,
    **settings: Any,
) -> int:
    """Estimate the peak memory of a fit, in bytes.

    It is the growth of the process during ``estimator(**settings).fit(X)``, within about a third: what is not known
    beforehand, such as the number of clusters and the extent of the embedding, is assumed to be typical.

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
    """Return the estimate for the parameters of an estimator and n points, or n sampled rows for landmarks.

    A given graph has ``n_given`` entries per row.
    """
    d, k = p["n_components"], _n_neighbors(p, n, n_given)
    n_edges = n * min(k * (1.0 if p["metric"] == "affinities" else _MUTUAL), n - 1.0)
    n_clusters = _CLUSTERS if isinstance(p["n_clusters"], str) else p["n_clusters"]
    n_vectors = 4 + (d if p["n_clusters"] == "auto" else max(d, MAX_CLUSTERS, n_clusters))
    batches = p.get("batch_size") is not None and p["n_batch_neighbors"] > 0
    graph = _EDGE[batches] * n_edges + n * max(_POINT, _VECTOR * n_vectors) if k < n else _PAIR[batches] * n * n
    union = _UNION * n * k if "min_dist" in p else 0  # of LapUMAP
    one_kernel = p.get("contraction_kernel") == "student" or p.get("kernel", "student") not in ("student", Student())
    mesh = _NODE * min(_CELLS_PER_CLUSTER**d * n_clusters, MAX_NODES)
    vectors = (n_clusters + 1) * (_STUDENT_VECTOR * n if one_kernel else mesh)
    descent = n_edges * 8 + n * _POINT / 2 + _grid(p, n) + vectors
    sample = n * (itemsize * n_features + _SAMPLED) if "n_landmarks" in p else 0
    return _FIXED + int(sample + max(graph, union, descent, _search(p, n, n_features, itemsize, k, n_given)))


def _n_neighbors(p: dict[str, Any], n: int, n_given: float) -> float:
    """Neighbours per point with an affinity, n if P is dense."""
    if p["metric"] == "affinities" and n_given:
        return n_given
    if p["n_neighbors"] == "all" or p["metric"] == "affinities":
        return n
    perplexity = auto_perplexity(n) if p.get("perplexity", "auto") == "auto" else p["perplexity"]
    wanted = int(NEIGHBORS_PER_PERPLEXITY * perplexity) if p["n_neighbors"] == "auto" else p["n_neighbors"]
    return min(max(wanted, 1), n - 1, n_given or n)


def _search(p: dict[str, Any], n: int, n_features: int, itemsize: int, k: float, n_given: float) -> float:
    """The search for neighbours: copies of the data, indices and distances, and blocks of the distance matrix."""
    block = min(WORKING_MEMORY_MIB << 20, 8 * n * (n if k >= n else min(n, ROWS_PER_BLOCK)))
    metric, pairwise = p["metric"], is_pairwise(p["metric"])
    if n_given or metric == "affinities":
        return _GIVEN * n_given * n
    if k >= n:
        return 4.0 * n * n + 3 * block
    named = isinstance(metric, str)
    indexed = named and metric in EUCLIDEAN_METRICS and not p["metric_params"] and n > MAX_EXACT_NEIGHBORS
    copies = 0 if pairwise else 2 * itemsize + 4 if indexed else 8
    if indexed or (named and metric in {*VALID_METRICS["kd_tree"], "sqeuclidean"}):
        block = 0
    n_threads = 1 if pairwise else effective_n_jobs(p["n_jobs"])
    return n * (20 * k + copies * n_features) + 2 * n_threads * block


def _grid(p: dict[str, Any], n: int) -> float:
    """The transforms of the largest grid of the descent."""
    d = p["n_components"]
    if "min_dist" in p:  # LapUMAP
        if sums_all_pairs(p, n):
            return 0.0
        cells = min(max(CELLS_PER_POINT * n, _UMAP_CELLS[d]), MAX_CELLS)
        return float(_UMAP_CELL * (2.2 * (cells ** (1 / d) + 6)) ** d)  # twice the sides, with margins
    if not uses_fourier(p, n):
        return 0.0
    least, per_point, most = _CELLS[d]
    return float(_CELL * min(max(least, per_point * n), most, max(n**2, 1 << 22)))


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
