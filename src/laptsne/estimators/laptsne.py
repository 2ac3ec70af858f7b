"""LaptSNE and LapUMAP: t-SNE and UMAP with contraction of clusters."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Self

from numpy.typing import ArrayLike

from laptsne.engine.minimise import Callback
from laptsne.engine.schedule import Descent
from laptsne.estimators.base import UpdatableEstimator
from laptsne.kernels import Kernel
from laptsne.methods import Tsne, Umap
from laptsne.settings import TSNE_CONSTRAINTS, UMAP_CONSTRAINTS, paper_settings, tsne_method, umap_method


class LaptSNE(UpdatableEstimator):
    r"""Cluster-contractive t-SNE.

    LaptSNE minimises

    .. math:: \mathrm{KL}(P \| Q_Y) + \lambda \sum_{k=1}^{K} \phi(\sigma_k(L_Y))

    over the embedding :math:`Y`: the loss of t-SNE plus a penalty on the smallest eigenvalues of the normalised
    Laplacian of the embedding's own similarity graph. An eigenvalue near zero belongs to a cluster that is nearly
    disconnected from the rest, so the penalty contracts clusters and separates them from each other.

    Parameters
    ----------
    n_components : {1, 2, 3}, default=2
        Dimension of the embedding.
    perplexity : float or "auto", default="auto"
        Effective number of neighbours of a point. "auto" is 30 (15 for more than 500,000 points), but at most
        ``(n_samples - 1) / 3``. A number too large for the data is lowered with a warning.
    n_clusters : int, "auto" or "eigengap", default="auto"
        Number of eigenvalues that are penalised, K in the formula. "auto" finds the clusters of the data for which
        there is evidence (:func:`laptsne.clusters.find_clusters`), and contracts the largest 60. Without evidence it is
        1, and the result is t-SNE. "eigengap" is the rule of the paper: the largest gap between the eigenvalues
        of the data's graph, which finds a number whether or not there are clusters.
    contraction : float or "auto", default="auto"
        Strength :math:`\lambda` per cluster; 0 is t-SNE. "auto" is 0.12 over all clusters and
        levels of their tree if the clusters are separate in the data, and up to 1.2 if they share affinity. With
        ``contraction_kernel="student"`` it is 0.4 over all clusters, but at most 0.04 each.
    contraction_kernel : {"gaussian", "student"}, default="gaussian"
        Similarities of which the Laplacian is computed. "gaussian" has a short range: once the gap between two clusters
        is a few times their radius, contraction ends, so that clusters keep their shape. Unions of clusters are
        contracted as well, on coarser and coarser levels, so that gaps are the wider the less related two clusters are.
        "student" is the paper's choice, one level and one kernel for both terms: its range is infinite, and clusters
        shrink to dots if the contraction is strong.
    contraction_width : float or "auto", default="auto"
        Width of the Gaussian on the finest level, in units of the embedding; those of coarser levels are proportional
        to it. "auto" is the mean radius of the clusters in the embedding, which half of their points are within.
    penalty : {"log", "trace"} or float in (0, 1], default="log"
        The function :math:`\phi`: "log" is :math:`\log(\sigma + \varepsilon)`, "trace" is :math:`\sigma`, and a
        number p is :math:`(\sigma + \varepsilon)^p - \varepsilon^p`. The floor :math:`\varepsilon` bounds the slope at
        0: an eigenvalue well below it counts as zero. It is 0.1, and 0.001 with ``contraction_kernel="student"``.
    kernel : {"student", "gaussian"} or kernel object, default="student"
        Similarity of two points of the embedding in the KL divergence. :class:`laptsne.kernels.Gaussian` sets
        the width, for all points or one per point.
    init : {"spectral", "pca", "random"} or array of shape (n_samples, n_components), default="spectral"
        Initial embedding. An array is centred, otherwise used as it is.
    early_exaggeration : float, default=12.0
        Factor on the attractive forces in the first 30 % of the iterations; 1 disables it.
    learning_rate : float or "auto", default="auto"
        Step size. "auto" is ``n_samples / exaggeration / 4`` with the current exaggeration, and up to twice that where
        the exaggeration is below 4.
    max_iter : int, default=300
        Maximum number of iterations.
    batch_size : int, default=None
        Number of points that move per iteration, the paper's LaptSNE-Mini. None moves all points.
    n_batch_neighbors : int, default=0
        Number of neighbours under P that move with each point of a batch; the paper has 10.
    metric : str or callable, default="euclidean"
        A metric of scikit-learn's nearest neighbours; "precomputed" if X holds distances (dense), is a sparse graph of
        distances, or a tuple (indices, distances); or "affinities" if X is P itself. For more than 10,000 samples with
        dense features, neighbours in "euclidean", "sqeuclidean", "cosine" and "correlation" are approximate, with a
        recall of at least 0.98; otherwise exact.
    metric_params : dict, default=None
        Further arguments of the metric: of a callable; ``p`` and ``w`` of "minkowski"; ``V`` of "seuclidean" (default:
        the variances); ``V`` or ``VI`` of "mahalanobis", the covariance or its inverse.
    n_neighbors : int, "auto" or "all", default="auto"
        Number of neighbours with non-zero affinity: "auto" is three times the perplexity, "all" every pair, as in the
        paper.
    refine_affinities : bool, default=True
        Whether P also comes from the lengths of paths along mutual neighbours, so that
        points that are near by chance, as in many dimensions, count less. With False, ``contraction=0`` is plain t-SNE.
        P is never refined with ``n_neighbors="all"`` and ``metric="affinities"``. New points are placed by unrefined
        affinities.
    out_of_sample : {"placement", "network"}, default="placement"
        How :meth:`transform` embeds new points. "placement" minimises the objective over each new point with all others
        fixed, and keeps the data. "network" trains and keeps the paper's neural network, an approximation.
    method : {"auto", "exact", "fourier"}, default="auto"
        How sums over the embedding are computed: "exact" over all pairs, "fourier" on a grid, in linear time and for
        the Student kernel only. "auto" takes the faster one.
    optimizer : Descent, default=None
        Momentum, schedules and stopping; None is ``Descent()``.
    checkpoint : path, default=None
        File to which the state of the fit is written every 30 seconds, and from which a fit resumes, with the same
        result to the bit; a finished fit removes it. It needs an integer ``random_state``.
    callbacks : callable or sequence of callables, default=None
        Each is called with a :class:`laptsne.State` before every step. A callback that returns True ends the fit.
    verbose : bool, default=False
        Whether to show the progress.
    n_jobs : int, default=None
        Number of threads; None and -1 use all available cores. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the random part of the initial embedding.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        The embedding.
    affinities_ : sparse matrix in CSR format of shape (n_samples, n_samples)
        P, from which the embedding was computed: refined, if ``refine_affinities``. A dense array with
        ``n_neighbors="all"``.
    perplexity_ : float
        The perplexity used.
    n_clusters_ : int
        Number of clusters; 1 means no contraction, since the first eigenvalue is always 0.
    contraction_ : float
        Contraction strength of the last iteration.
    contraction_width_ : float or None
        Width of the Gaussian kernel of the finest level; None if both terms have the same kernel.
    data_eigenvalues_ : array
        Smallest eigenvalues of the Laplacian of the data's graph; with ``n_clusters="auto"`` computed when first read.
    eigenvalues_ : array of shape (n_contracted,)
        Smallest eigenvalues of the Laplacian of the embedding's graph; with ``contraction_kernel="gaussian"`` upper
        bounds, its Ritz values among the functions that are constant on each contracted cluster (the finest level).
    eigenvalue_residual_ : float
        Largest residual norm of the corresponding vectors: a bound on the distance to the next eigenvalue.
    kl_divergence_ : float
        KL divergence of the embedding.
    objective_ : float
        ``kl_divergence_`` plus ``contraction_`` times the sum of the penalties of ``eigenvalues_``, and of those of
        coarser levels by their weights.
    labels_ : array of shape (n_samples,)
        Cluster of each point in the data, from the largest, 0, to the smallest, ``n_clusters_ - 1``; -1 for none.
    clusters_ : ClusterTable
        Evidence for each cluster, computed when it is first read.
    cluster_tree_ : ClusterTree
        How the clusters are nested, with the evidence for every split, computed when it is first read.
    cluster_layers_ : array of shape (n_layers, n_samples)
        Nested labels, from ``labels_`` to coarser ones; -1 for none.
    fitted_map_ : FittedMap
        The map as plain arrays, without an estimator.
    reliability_ : Reliability or None
        How far the position of each point can be relied on; None before :meth:`diagnose`.
    n_iter_ : int
        Number of iterations.
    n_features_in_, feature_names_in_
        Number of features seen in fit, and their names, if X has names.

    References
    ----------
    Y. Sun, Y. Han and J. Fan, "Laplacian-based Cluster-Contractive t-SNE for High-Dimensional Data
    Visualization", ACM Transactions on Knowledge Discovery from Data, 2023. A. Dalmia and S. Sia, "Clustering with
    UMAP: why and how connectivity matters", 2021, for the refinement.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from laptsne import LaptSNE
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = LaptSNE(max_iter=100, random_state=0).fit(X[:300])
    >>> model.embedding_.shape, model.transform(X[300:310]).shape
    ((300, 2), (10, 2))
    """

    _parameter_constraints = TSNE_CONSTRAINTS

    def __init__(
        self,
        n_components: int = 2,
        *,
        perplexity: float | str = "auto",
        n_clusters: int | str = "auto",
        contraction: float | str = "auto",
        contraction_kernel: str = "gaussian",
        contraction_width: float | str = "auto",
        penalty: float | str = "log",
        kernel: str | Kernel = "student",
        init: str | ArrayLike = "spectral",
        early_exaggeration: float = 12.0,
        learning_rate: float | str = "auto",
        max_iter: int = 300,
        batch_size: int | None = None,
        n_batch_neighbors: int = 0,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        n_neighbors: int | str = "auto",
        refine_affinities: bool = True,
        out_of_sample: str = "placement",
        method: str = "auto",
        optimizer: Descent | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        callbacks: Callback | Sequence[Callback] | None = None,
        verbose: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self._store(locals())

    @classmethod
    def paper(cls, n_clusters: int | str = "eigengap", contraction: float = 0.01, **changes: Any) -> Self:
        """LaptSNE as its authors ran it: trace penalty, spectral initialisation, all pairs, no exaggeration.

        ``n_clusters`` is their k-hat, which they read off a plot of the eigenvalues, and ``contraction`` their lambda,
        from 0.01 to 0.1. Other parameters can be given as well.
        """
        return cls(n_clusters=n_clusters, contraction=contraction, **(paper_settings() | changes))

    def _method(self, X: Any) -> Tsne:
        return tsne_method(self.get_params(deep=False), X)


class LapUMAP(UpdatableEstimator):
    r"""UMAP with contraction of the clusters of the data.

    The graph, the kernel and the parameters are those of umap-learn. The loss is the one that umap-learn effectively
    minimises (:class:`laptsne.engine.cross_entropy.CrossEntropy`), in full instead of by random negative samples. As in
    :class:`LaptSNE`, the clusters for which the data give evidence are contracted.

    Parameters
    ----------
    n_neighbors : int, default=15
        Number of neighbours of each point including itself, as in umap-learn.
    n_components : {1, 2, 3}, default=2
        Dimension of the embedding.
    min_dist : float, default=0.1
        How close neighbours may lie in the embedding, at most ``spread``.
    spread : float, default=1.0
        Scale of the embedding.
    metric : str or callable, default="euclidean"
        As in :class:`LaptSNE`; "affinities" if X is the graph itself, such as ``graph_`` of an umap-learn model.
    local_connectivity : float, default=1.0
        Number of nearest neighbours to which every point is connected with weight 1.
    set_op_mix_ratio : float, default=1.0
        Between the intersection, 0, and the union, 1, of the neighbourhoods of two points.
    repulsion_strength : float, default=1.0
        Factor of the repulsion.
    negative_sample_rate : int, default=5
        Another factor of the repulsion.
    contraction : float or "auto", default="auto"
        Strength of the contraction; 0 is UMAP. "auto" is 0.24 over all clusters and levels.
    init : {"spectral", "pca", "random"} or array of shape (n_samples, n_components), default="spectral"
        Initial embedding, scaled to a span of 10. An array is centred, otherwise used as it is.
    learning_rate : float or "auto", default="auto"
        Step size of a point of mean degree at the beginning; "auto" is ``0.3 * n_samples * spread ** 2``.
    max_iter : int, default=200
        Maximum number of iterations. In the second half of them, the step size falls to 0.
    method : {"auto", "exact", "fourier"}, default="auto"
        How the repulsion is computed: "exact" over all pairs, "fourier" on a grid and over near pairs.
    optimizer : Descent, default=None
        Momentum, schedules and stopping; None is ``Descent(exaggeration=1, contraction_start=0.25)``.
    metric_params, n_clusters, contraction_width, checkpoint, callbacks, verbose, n_jobs, random_state
        As in :class:`LaptSNE`.

    Attributes
    ----------
    affinities_ : sparse matrix in CSR format of shape (n_samples, n_samples)
        The graph, divided by the sum of its weights.
    cross_entropy_ : float
        Loss of the embedding without contraction.
    objective_ : float
        ``cross_entropy_`` plus ``contraction_`` times the sum of the penalties, as in :class:`LaptSNE`.

    All other attributes are those of :class:`LaptSNE`.

    References
    ----------
    L. McInnes, J. Healy and J. Melville, "UMAP: Uniform Manifold Approximation and Projection for Dimension
    Reduction", 2018. S. Damrich and F. Hamprecht, "On UMAP's true loss function", NeurIPS 2021.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from laptsne import LapUMAP
    >>> X, _ = load_digits(return_X_y=True)
    >>> LapUMAP(max_iter=100, random_state=0).fit_transform(X[:300]).shape
    (300, 2)
    """

    _parameter_constraints = UMAP_CONSTRAINTS

    def __init__(
        self,
        n_neighbors: int = 15,
        n_components: int = 2,
        *,
        min_dist: float = 0.1,
        spread: float = 1.0,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        local_connectivity: float = 1.0,
        set_op_mix_ratio: float = 1.0,
        repulsion_strength: float = 1.0,
        negative_sample_rate: int = 5,
        n_clusters: int | str = "auto",
        contraction: float | str = "auto",
        contraction_width: float | str = "auto",
        init: str | ArrayLike = "spectral",
        learning_rate: float | str = "auto",
        max_iter: int = 200,
        method: str = "auto",
        optimizer: Descent | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        callbacks: Callback | Sequence[Callback] | None = None,
        verbose: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self._store(locals())

    def _method(self, X: Any) -> Umap:
        return umap_method(self.get_params(deep=False), X)
