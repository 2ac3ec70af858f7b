"""UMAP with contraction: the estimator of t-SNE with another graph, kernel and loss."""

import os
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from laptsne import parameters
from laptsne._runtime.threads import Workers
from laptsne._runtime.warn import warn
from laptsne.engine.cross_entropy import CrossEntropy
from laptsne.engine.descent import Descent
from laptsne.engine.run import Run
from laptsne.engine.state import Callback
from laptsne.engine.umap_backend import UmapBackend
from laptsne.engine.umap_run import UmapRun
from laptsne.estimator import LaptSNE
from laptsne.fields.umap_kernel import UmapKernel
from laptsne.graph.affinity import joint_affinities
from laptsne.graph.component_layout import component_layout
from laptsne.graph.fuzzy import fuzzy_graph
from laptsne.reliability import Reliability

_SPAN = 10.0  # of the initial embedding, as in umap-learn
_MAX_STEP = 0.5
# Step size of a point of mean degree, times n_samples. From 0.5 on, the objective oscillates (docs/umap.md).
_RATE = 0.3
# Contraction strength over all clusters, at which no score is lower than that of umap-learn on the sets for choosing
# constants, and the fraction of the iterations after which it starts: before steps decay (docs/umap.md).
_TOTAL = 0.03
_START = 0.25
_MAX_PAIRS = {1: 300, 2: 500, 3: 3000}  # points up to which all pairs are faster than a grid, by dimension

_OWN_CONSTRAINTS: dict[str, list[Any]] = {
    "n_neighbors": [Interval(Integral, 2, None, closed="left")],
    "min_dist": [Interval(Real, 0, None, closed="left")],
    "spread": [Interval(Real, 0, None, closed="neither")],
    "local_connectivity": [Interval(Real, 0, None, closed="left")],
    "set_op_mix_ratio": [Interval(Real, 0, 1, closed="both")],
    "repulsion_strength": [Interval(Real, 0, None, closed="neither")],
    "negative_sample_rate": [Interval(Integral, 1, None, closed="left")],
    "method": [StrOptions({"auto", "exact", "fourier"})],
}
_SHARED = (
    *("n_components", "n_clusters", "contraction", "contraction_width", "metric", "metric_params", "init"),
    *("learning_rate", "max_iter", "optimizer", "checkpoint", "callbacks", "verbose", "n_jobs", "random_state"),
)


class LapUMAP(LaptSNE):
    r"""UMAP with contraction of the clusters of the data.

    The graph, the kernel and the parameters are those of umap-learn. The loss is the one that umap-learn effectively
    minimises (:class:`laptsne.engine.cross_entropy.CrossEntropy`), but it is minimised in full instead of by random
    negative samples: the repulsion of all pairs is computed on a grid by FFT, and over near pairs where a grid would
    not resolve it. With the same ``random_state`` the result is the same to the bit for any number of threads.

    As in :class:`LaptSNE`, the clusters for which the data give evidence are contracted; without evidence, or with
    ``contraction=0``, the result is a map of UMAP.

    Parameters
    ----------
    n_neighbors : int, default=15
        Number of neighbours of each point including itself, as in umap-learn. A number larger than that of the samples
        is lowered with a warning.
    n_components : {1, 2, 3}, default=2
        Dimension of the embedding.
    min_dist : float, default=0.1
        How close neighbours may lie in the embedding, at most ``spread``.
    spread : float, default=1.0
        Scale of the embedding.
    metric : str or callable, default="euclidean"
        A metric of scikit-learn's nearest neighbours; "precomputed" if X holds distances (dense), is a sparse graph of
        distances, or a tuple (indices, distances); or "affinities" if X is the graph itself, such as ``graph_`` of an
        umap-learn model, ``obsp["connectivities"]`` of scanpy or ``affinities_`` of another fit.
    metric_params : dict, default=None
        Further arguments of the metric, as in :class:`LaptSNE`.
    local_connectivity : float, default=1.0
        Number of nearest neighbours to which every point is connected with weight 1.
    set_op_mix_ratio : float, default=1.0
        Between the intersection, 0, and the union, 1, of the neighbourhoods of two points.
    repulsion_strength : float, default=1.0
        Factor of the repulsion.
    negative_sample_rate : int, default=5
        Another factor of the repulsion: the number of negative samples per edge that umap-learn would draw.
    n_clusters : int, "auto" or "eigengap", default="auto"
        Number of clusters that are contracted, as in :class:`LaptSNE`.
    contraction : float or "auto", default="auto"
        Strength of the contraction; 0 is UMAP. "auto" is 0.03 divided by the number of clusters that are contracted.
    contraction_width : float or "auto", default="auto"
        Width of the kernel of the contraction, as in :class:`LaptSNE`.
    init : {"spectral", "pca", "random"} or array of shape (n_samples, n_components), default="spectral"
        Initial embedding, scaled to a span of 10. An array is centred, otherwise used as it is.
    learning_rate : float or "auto", default="auto"
        Step size of a point of mean degree at the beginning; "auto" is ``0.3 * n_samples * spread ** 2``.
    max_iter : int, default=200
        Maximum number of iterations. In the second half of them, the step size falls to 0.
    method : {"auto", "exact", "fourier"}, default="auto"
        How the repulsion is computed: "exact" over all pairs, "fourier" on a grid and over near pairs.
    optimizer : Descent, default=None
        Momentum, schedules and stopping; None is ``Descent(gains=False, max_step=0.5 * spread,
        contraction_start=0.25, middle_exaggeration=1, exaggeration=1)``.
    checkpoint, callbacks, verbose, n_jobs, random_state
        As in :class:`LaptSNE`.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        The embedding.
    affinities_ : sparse matrix in CSR format of shape (n_samples, n_samples)
        The graph, divided by the sum of its weights.
    cross_entropy_ : float
        Loss of the embedding without contraction.
    objective_ : float
        ``cross_entropy_`` plus ``contraction_`` times the sum of the penalties of ``eigenvalues_``.
    labels_ : array of shape (n_samples,)
        Cluster of every point, as in :class:`LaptSNE`, which also describes the other attributes.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        name: parameters.CONSTRAINTS[name] for name in _SHARED
    } | _OWN_CONSTRAINTS
    _loss_attribute: ClassVar[str] = "cross_entropy_"
    _run_class: ClassVar[type[Run]] = UmapRun
    _memory_kind: ClassVar[str] = "umap"
    # What LaptSNE has as parameters.
    perplexity, kernel, contraction_kernel, penalty = "auto", "student", "gaussian", "log"
    early_exaggeration, batch_size, n_batch_neighbors, out_of_sample = 1.0, None, 0, "placement"

    cross_entropy_: float

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
        self.n_neighbors = n_neighbors
        self.n_components = n_components
        self.min_dist = min_dist
        self.spread = spread
        self.metric = metric
        self.metric_params = metric_params
        self.local_connectivity = local_connectivity
        self.set_op_mix_ratio = set_op_mix_ratio
        self.repulsion_strength = repulsion_strength
        self.negative_sample_rate = negative_sample_rate
        self.n_clusters = n_clusters
        self.contraction = contraction
        self.contraction_width = contraction_width
        self.init = init
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.method = method
        self.optimizer = optimizer
        self.checkpoint = checkpoint
        self.callbacks = callbacks
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.random_state = random_state

    def diagnose(self, *, length: float | None = None) -> Reliability:
        """Say that there are no scores of reliability: they are defined for the loss of t-SNE.

        Parameters
        ----------
        length : float, optional
            Not used.

        Returns
        -------
        reliability : Reliability
            Without scores; ``reason`` says why.
        """
        del length
        self.reliability_ = Reliability(None, reason="scores are for the loss of t-SNE; fit a LaptSNE")
        return self.reliability_

    def _check_parameters(self, n_samples: int) -> None:
        shared = {name: getattr(self, name) for name in parameters.CONSTRAINTS}
        parameters.check_combinations(shared, n_samples)
        if self.min_dist > self.spread:
            raise ValueError(
                f"min_dist={self.min_dist!r} is larger than spread={self.spread!r}; give at most the latter."
            )

    def _joint_affinities(self, X: Any, workers: Workers) -> Any:
        n_neighbors = int(self.n_neighbors)
        if n_neighbors > X.shape[0] and self.metric != "affinities":
            n_neighbors = X.shape[0]
            warn(
                f"n_neighbors={self.n_neighbors} is larger than the number of samples and lowered to {n_neighbors}; "
                "set it to at most that to silence this warning.",
            )
        self.perplexity_ = n_neighbors / 3  # new points have three times as many neighbours
        if not (isinstance(self.metric, str) and self.metric == "affinities"):
            options = {"metric": self.metric, "metric_params": self.metric_params, "n_neighbors": n_neighbors}
            options |= {"local_connectivity": self.local_connectivity, "set_op_mix_ratio": self.set_op_mix_ratio}
            X = fuzzy_graph(X, workers=workers, **options)
            return joint_affinities(X, perplexity=self.perplexity_, metric="affinities")
        return joint_affinities(
            X, perplexity=self.perplexity_, metric="affinities", metric_params=self.metric_params, workers=workers
        )

    def _loss(self, P: Any) -> CrossEntropy:
        n_samples = P.shape[0]
        exact = self.method == "exact" or (self.method == "auto" and n_samples <= _MAX_PAIRS[self.n_components])
        repulsion = float(self.repulsion_strength) * self.negative_sample_rate
        return CrossEntropy(P, kernel=self._placement_kernel(), repulsion=repulsion, exact=exact)

    def _backend(self, loss: Any, workers: Workers) -> UmapBackend:
        return UmapBackend(
            **vars(super()._backend(loss, workers)) | {"fourier": False, "mesh": True, "coarse": False, "loss": loss}
        )

    def _directions(self, P: Any, eigenvectors: NDArray[Any], workers: Workers) -> NDArray[Any]:
        apart = component_layout(P, self.n_components, workers)
        return eigenvectors if apart is None else np.pad(apart, ((0, 0), (1, 0)))

    def _initial(self, X: Any, eigenvectors: NDArray[Any], random_state: Any) -> NDArray[np.float64]:
        Y = super()._initial(X, eigenvectors, random_state)
        if isinstance(self.init, str):
            extent = np.ptp(Y, axis=0)
            Y = _SPAN * (Y - Y.min(axis=0)) / np.where(extent > 0, extent, 1)
            Y -= Y.mean(axis=0)
        return Y

    def _contraction(self, n_clusters: int) -> float | None:
        requested = super()._contraction(n_clusters)
        return _TOTAL / n_clusters if requested is None and n_clusters > 1 else requested

    def _descent(self) -> Descent:
        if self.optimizer is not None:
            return self.optimizer
        attraction: dict[str, Any] = {"middle_exaggeration": 1.0, "exaggeration": 1.0}
        return Descent(gains=False, max_step=_MAX_STEP * self.spread, contraction_start=_START, **attraction)

    def _step_size(self, n_samples: int) -> float | str:
        return _RATE * n_samples * self.spread**2 if isinstance(self.learning_rate, str) else self.learning_rate

    def _placement_kernel(self) -> UmapKernel:
        return UmapKernel.of(float(self.min_dist), float(self.spread), self.n_components)
