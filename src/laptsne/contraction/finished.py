"""Contraction of a finished embedding, from this library or any other."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from laptsne._runtime.stacked_rows import stacked_rows
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.clusters.counting import find_clusters, main_clusters
from laptsne.contraction.cluster_term import ClusterTerm, nested_groups
from laptsne.contraction.term import MAX_CONTRACTED, Penalty, rms_radius
from laptsne.fields import ExactFields
from laptsne.fields.grid import SPACING_PER_WIDTH, Mesh
from laptsne.graph.affinity import auto_perplexity, joint_affinities
from laptsne.graph.neighbors import first_copies, neighbor_graph
from laptsne.kernels import Gaussian

# Width of the kernel in which clusters are similar, in RMS radii of the map / sqrt(n_clusters), and distance over which
# displacements vary, in these widths (benchmarks/lapumap.py has others).
WIDTH = 0.25
SMOOTHNESS = 4.0
_FLOOR = 0.01  # of the penalty: an eigenvalue well below it counts as zero
_MIN_SHARE = 0.2  # of the own cluster in the density at a point; a point with less goes with the cluster around it
_MAX_NODES = 1 << 20  # of the mesh of a cluster, on which displacements are computed
_MAX_STRENGTH = 1e3  # above 10, clusters are apart, and only get further apart
_MAX_ITER = 150
_FIRST_STEP, _MAX_STEP, _MIN_STEP = 0.3, 1.0, 1e-5  # 1 would reach the minimum if the gradient were constant
_TOL = 1e-4  # decrease of the objective per step at which the descent ends; an eigenvalue contributes up to log(100)


def contract(
    Y: ArrayLike,
    X: Any,
    *,
    metric: Any = "auto",
    metric_params: dict[str, Any] | None = None,
    strength: float = 1.0,
    n_jobs: int | None = None,
) -> Array:
    r"""Open gaps between the clusters of a finished map, where the data give evidence of clusters.

    Clusters are found in the data, not in the map (:func:`laptsne.clusters.find_clusters`). Where they touch or overlap
    in the map, their points move apart: the displacement :math:`U` minimises

    .. math:: \lambda \sum_k \log(\sigma_k(Y + U) + \varepsilon) + \frac{1}{2 N w^2} \|U\|^2,

    with the eigenvalues of the graph of clusters (:class:`laptsne.contraction.cluster_term.ClusterTerm`), the volumes
    of which are constant, and a norm that is small if the points of a cluster move together. Hence clusters keep their
    shape and their place, and a point deep inside another cluster stays there. A map of data without evidence of
    clusters is returned unchanged.

    Parameters
    ----------
    Y : array of shape (n_samples, n_components)
        The map, of 1 to 3 dimensions, from any method.
    X : array or sparse matrix
        The data of the map, in any form that :class:`laptsne.LaptSNE` takes: features, distances or a graph, such as
        ``graph_`` of an umap-learn model or ``obsp["connectivities"]`` of scanpy.
    metric : str or callable, default="auto"
        As in :class:`laptsne.LaptSNE`. "auto" is "affinities" for a symmetric sparse matrix, and "euclidean" for all
        others.
    metric_params : dict, optional
        Further arguments of the metric.
    strength : float, default=1.0
        :math:`\lambda`, between 0 and 1000: larger values make gaps wider, and 0 changes nothing.
    n_jobs : int, optional
        Number of threads; None and -1 use all available cores. The result does not depend on it.

    Returns
    -------
    contracted : array of shape (n_samples, n_components)
        The map with gaps, in the units and the precision of Y.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.decomposition import PCA
    >>> import laptsne
    >>> X = np.random.default_rng(0).normal(size=(400, 10))
    >>> X[:200] += 2
    >>> Y = PCA(2).fit_transform(X)
    >>> gap = laptsne.contract(Y, X)
    >>> bool(np.ptp(gap[:, 0]) > np.ptp(Y[:, 0]))
    True
    """
    given: Any = strength
    if not isinstance(given, Real) or not 0 <= float(given) <= _MAX_STRENGTH:
        raise ValueError(f"strength={strength!r} is not between 0 and {_MAX_STRENGTH:g}; the default is 1.")
    checked = check_array(Y, dtype=[np.float64, np.float32], copy=True, ensure_min_samples=2, input_name="Y")
    if not 1 <= checked.shape[1] <= 3:
        raise ValueError(f"Y has {checked.shape[1]} columns, but maps have 1 to 3 dimensions; leave the others out.")
    embedding = np.asarray(checked)
    with Workers(n_jobs) as workers:
        P, first = _affinities(X, len(embedding), metric, metric_params, workers)
        labels = main_clusters(find_clusters(P, first=first, workers=workers), P, MAX_CONTRACTED)
        if strength == 0 or labels.max() < 1 or not np.ptp(embedding, axis=0).any():
            return embedding
        # In units of its size, so that nothing depends on the scale of the map.
        radius, centre = rms_radius(embedding.astype(np.float64)), embedding.mean(axis=0, dtype=np.float64)
        y = np.ascontiguousarray((embedding - centre).T / radius, dtype=np.float64)
        moved = _displacements(y, labels, P, float(strength), workers)
        return np.asarray(embedding + (radius * moved.T).astype(embedding.dtype))


def _affinities(
    X: Any, n_samples: int, metric: Any, metric_params: dict[str, Any] | None, workers: Workers
) -> tuple[Any, Array]:
    """Return the affinities and the first copies of the data; raise ValueError if they are not those of the map."""
    if isinstance(X, tuple) and len(X) == 2 and isinstance(metric, str) and metric == "precomputed":
        X = neighbor_graph(*X)
    X = check_array(stacked_rows(X), accept_sparse="csr", dtype=[np.float64, np.float32], order="C", input_name="X")
    if X.shape[0] != n_samples:
        raise ValueError(f"X has {X.shape[0]} rows, but Y has {n_samples}; give the data of the map, in its order.")
    is_square = scipy.sparse.issparse(X) and X.shape[0] == X.shape[1] and X.nnz > 0
    if isinstance(metric, str) and metric == "auto":
        is_graph = is_square and X.data.min() >= 0 and abs(X - X.T).max() <= 1e-6 * X.data.max()
        metric = "affinities" if is_graph else "euclidean"
    options = {"metric": metric, "metric_params": metric_params, "refine": True, "workers": workers}
    return joint_affinities(X, perplexity=auto_perplexity(n_samples), **options), first_copies(X)


def _displacements(y: Array, labels: Array, P: Any, strength: float, workers: Workers) -> Array:
    """Return the displacements that open gaps between clusters, both of shape (n_components, n_samples)."""
    width = WIDTH / (int(labels.max()) + 1) ** (1 / len(y))
    term = _term_of(y, labels, P, width, workers)
    shares = term.shares()
    own = np.where(labels < 0, 0, shares[labels, np.arange(labels.size)])
    labels = np.where((own < _MIN_SHARE) & (shares.max(axis=0) > 0), shares.argmax(axis=0), labels)
    left = np.unique(labels[labels >= 0])  # without clusters of which all points lie in others
    labels = np.where(labels < 0, -1, np.searchsorted(left, labels))
    term = _term_of(y, labels, P, width, workers)
    members = [np.flatnonzero(labels == c) for c in range(term.n_clusters)]
    smooth = SmoothDisplacement(y, members, SMOOTHNESS * width, workers)
    return _descended(term, smooth, y, strength, 1 / (labels.size * width**2))


def _term_of(y: Array, labels: Array, P: Any, width: float, workers: Workers) -> ClusterTerm:
    """Return the contraction term with the volumes that clusters have in the embedding."""
    term = ClusterTerm(labels, Penalty("log", _FLOOR), width, groups=nested_groups(labels, P), min_share=0)
    term.refresh(ExactFields(y.T, workers=workers))
    term.fix_volumes()
    return term


def _descended(term: ClusterTerm, smooth: SmoothDisplacement, y: Array, strength: float, stiffness: float) -> Array:
    """Return the displacements of a gradient descent in their Hilbert space, with a step size that adapts."""

    def evaluated(moved: Array) -> tuple[float, Array]:
        fields = ExactFields((y + moved).T, workers=smooth.workers)
        term.refresh(fields)
        return strength * term.value(), np.ascontiguousarray(term.gradient(fields).T)

    coefficients, moved = np.zeros_like(y), np.zeros_like(y)
    (objective, slope), step, n_steps = evaluated(moved), _FIRST_STEP, 0
    while n_steps < _MAX_ITER and step > _MIN_STEP:
        tried = coefficients - step * (strength / stiffness * slope + coefficients)
        there = smooth.of(tried)
        if not np.isfinite(there).all():
            break
        value, slope_there = evaluated(there)
        decrease = objective - value - 0.5 * stiffness * float(np.vdot(tried, there))
        if decrease < 0:
            step *= 0.5
            continue
        coefficients, moved, slope, objective = tried, there, slope_there, objective - decrease
        step, n_steps = min(1.3 * step, _MAX_STEP), n_steps + 1
        if decrease < _TOL:
            break
    return moved


class SmoothDisplacement:
    r"""Displacements :math:`U = K A` of coefficients A, with a Gaussian kernel K between points of the same cluster.

    With the sums :math:`d` of the kernel, :math:`K_{ij} = d_i^{-1/2} k(|y_i - y_j|)\, d_j^{-1/2}`. Points of a cluster
    that are close to each other move together, so that the cluster keeps its shape up to the width of the kernel. The
    squared norm of U in the Hilbert space of the kernel is :math:`\sum_i a_i \cdot u_i`. Points that are not among the
    ``members`` are not displaced.
    """

    def __init__(self, y: Array, members: list[Array], width: float, workers: Workers) -> None:
        self.workers, self._parts = workers, []
        for rows in members:
            own = np.ascontiguousarray(y[:, rows])
            mesh = Mesh.around(own, SPACING_PER_WIDTH * width, workers, Gaussian(width), _MAX_NODES)
            sums = _smoothed(mesh, own, np.ones((1, rows.size)))
            self._parts.append((rows, own, mesh, 1 / np.sqrt(np.maximum(sums, 1))))

    def of(self, coefficients: Array) -> Array:
        """Return the displacements of coefficients, both of shape (n_components, n_samples)."""
        displacements = np.zeros_like(coefficients)
        for rows, own, mesh, root in self._parts:
            displacements[:, rows] = root * _smoothed(mesh, own, root * coefficients[:, rows])
        return displacements


def _smoothed(mesh: Mesh, y: Array, values: Array) -> Array:
    """Return the sums of values of shape (n_fields, n_points) over all points, weighted by the kernel."""
    return np.asarray(mesh.interpolate(y, mesh.field(y, values.astype(np.float32))).T)
