"""The estimator: it stores the parameters and wires the parts."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from laptsne import parameters
from laptsne._runtime.stacked_rows import stacked_rows
from laptsne._runtime.threads import Workers
from laptsne.diagnostics import DiagnosticsMixin
from laptsne.engine.descent import Descent
from laptsne.engine.loop import Result
from laptsne.engine.state import Callback
from laptsne.fitting import data_eigenvalues, fit_affinities
from laptsne.graph.affinity import auto_perplexity, feasible_perplexity, joint_affinities
from laptsne.graph.metric_params import is_pairwise
from laptsne.graph.neighbors import neighbor_graph
from laptsne.kernels import Kernel
from laptsne.memory import check_memory
from laptsne.new_points import NewPointsMixin, mapping_of
from laptsne.persistence import PersistenceMixin
from laptsne.summary import SummaryMixin
from laptsne.tsne_loss import TsneLossMixin

# One memory layout: sums along rows and columns differ in their last bits between layouts.
_CHECKS: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}


class LaptSNE(
    SummaryMixin,
    DiagnosticsMixin,
    NewPointsMixin,
    PersistenceMixin,
    TsneLossMixin,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
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
        Effective number of neighbours of a point. "auto" is 30, but at most ``(n_samples - 1) / 3``. A number too large
        for the data is lowered with a warning.
    n_clusters : int, "auto" or "eigengap", default="auto"
        Number of eigenvalues that are penalised, K in the formula. "auto" finds the clusters of the data for which
        there is evidence (:func:`laptsne.clusters.find_clusters`); of more than 60, the largest 60 are
        contracted. Without evidence it is 1, and the result is plain t-SNE. "eigengap" is the rule of the paper: the
        largest gap between the eigenvalues of the data's graph, which finds a number whether or not there are clusters.
    contraction : float or "auto", default="auto"
        Strength :math:`\lambda`; 0 is plain t-SNE. "auto" is 0.2 divided by the number of clusters that are contracted.
        With ``contraction_kernel="student"`` it is 0.4 divided by that number, but at most 0.04. With contraction,
        attractive forces are also multiplied by 1.2; see ``exaggeration`` of :class:`laptsne.Descent`.
    contraction_kernel : {"gaussian", "student"}, default="gaussian"
        Similarities of which the Laplacian is computed. "gaussian" separates the clusters of the data, ``labels_``, and
        divides none of them. It has a short range: once the gap between two clusters is a few widths, contraction ends,
        so that clusters keep their shape. "student" is the paper's choice, one kernel for both terms: it has no range,
        and clusters shrink to dots if the contraction is strong. With ``kernel="gaussian"``, both terms have that
        kernel.
    contraction_width : float or "auto", default="auto"
        Width of the Gaussian, in units of the embedding. "auto" is 0.75 times the RMS radius of the embedding divided
        by the square root of the number of clusters. A width below a quarter of the spacing of the points or above the
        radius of the embedding is replaced by that limit, with a warning.
    penalty : {"log", "trace"} or float in (0, 1], default="log"
        The function :math:`\phi`: "log" is :math:`\log(\sigma + \varepsilon)`, "trace" is :math:`\sigma`, and a
        number p is :math:`(\sigma + \varepsilon)^p - \varepsilon^p`. The floor :math:`\varepsilon` bounds the slope at
        0: an eigenvalue well below it counts as zero. It is 0.01, and 0.001 with ``contraction_kernel="student"``;
        because of it, ``objective_`` with p = 0.5 is below :math:`\mathrm{KL} + \lambda \sum_k \sigma_k^p`.
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
        Number of neighbours under P that move with each point of a batch. The paper has 10; at the same cost, larger
        batches without neighbours converge further (docs/method.md).
    metric : str or callable, default="euclidean"
        A metric of scikit-learn's nearest neighbours; "precomputed" if X holds distances (dense), is a sparse graph of
        distances, or a tuple (indices, distances); or "affinities" if X is P itself, such as ``affinities_`` of another
        fit. For more than 10,000 samples with dense features, neighbours in "euclidean", "sqeuclidean", "cosine" and
        "correlation" are approximate, with a recall of at least 0.98 as measured on a sample; otherwise exact.
    metric_params : dict, default=None
        Further arguments of the metric: of a callable; ``p`` and ``w`` of "minkowski"; ``V`` of "seuclidean" (default:
        the variances); ``V`` or ``VI`` of "mahalanobis", the covariance or its inverse.
    n_neighbors : int, "auto" or "all", default="auto"
        Number of neighbours with non-zero affinity: "auto" is three times the perplexity, "all" every pair, as in the
        paper.
    out_of_sample : {"placement", "network"}, default="placement"
        How :meth:`transform` embeds new points. "placement" minimises the objective over each new point with all others
        fixed, and keeps the data. "network" trains the paper's neural network, and keeps only that: it approximates the
        embedding, so that ``transform`` of the training data is near ``embedding_`` but not equal to it.
    method : {"auto", "exact", "fourier"}, default="auto"
        How sums over the embedding are computed: "exact" over all pairs, "fourier" on a grid by FFT, in linear time and
        for the Student kernel only. "auto" takes the faster one, and computes the contraction on a mesh in any case if
        it has a Gaussian kernel of its own. With mini-batches that is so with "exact" as well.
    optimizer : Descent, default=None
        Momentum, schedules and stopping; None is ``Descent()``.
    checkpoint : path, default=None
        File to which the state of the fit is written every 30 seconds. Calling fit again after the process was killed
        resumes from it, with the same result to the bit; a finished fit removes it. It needs an integer
        ``random_state``.
    callbacks : callable or sequence of callables, default=None
        Each is called with a :class:`laptsne.engine.state.State` before every step. A callback that returns True
        ends the fit.
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
        P; a dense array with ``n_neighbors="all"``.
    perplexity_ : float
        The perplexity used.
    n_clusters_ : int
        Number of clusters; 1 means no contraction, since the first eigenvalue is always 0.
    contraction_ : float
        Contraction strength of the last iteration.
    contraction_width_ : float or None
        Width of the Gaussian kernel of the contraction; None if both terms have the same kernel.
    data_eigenvalues_ : array
        Smallest eigenvalues of the Laplacian of the data's graph; with ``n_clusters="auto"`` computed when first read.
    eigenvalues_ : array of shape (n_contracted,)
        Smallest eigenvalues of the Laplacian of the embedding's graph; with ``contraction_kernel="gaussian"`` its Ritz
        values among the functions that are constant on each contracted cluster, which are upper bounds of them.
    eigenvalue_residual_ : float
        Largest residual norm of the corresponding vectors: a bound on the distance to the next eigenvalue.
    kl_divergence_ : float
        KL divergence of the embedding.
    objective_ : float
        ``kl_divergence_`` plus ``contraction_`` times the sum of the penalties of ``eigenvalues_``.
    labels_ : array of shape (n_samples,)
        Cluster of each point in the data, from the largest, 0, to the smallest, ``n_clusters_ - 1``; -1 for points of
        none. With a given ``n_clusters``, the data are divided into that many, whether or not they are separate.
    clusters_ : ClusterTable
        Evidence for each cluster, computed when it is first read: size, contrast and reciprocity with the nearest
        cluster, stability and a verdict. Not available for a model read from a file, unless it was read before.
    reliability_ : Reliability or None
        How far the position of each point can be relied on; None before :meth:`diagnose`.
    n_iter_ : int
        Number of iterations.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features, if X has names.

    References
    ----------
    Y. Sun, Y. Han and J. Fan, "Laplacian-based Cluster-Contractive t-SNE for High-Dimensional Data
    Visualization", ACM Transactions on Knowledge Discovery from Data, 2023.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from laptsne import LaptSNE
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = LaptSNE(max_iter=100, random_state=0).fit(X[:300])
    >>> model.embedding_.shape, model.transform(X[300:310]).shape
    ((300, 2), (10, 2))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = parameters.CONSTRAINTS
    # The largest part of a model, which only a further fit needs.
    _not_saved: ClassVar[set[str]] = {"affinities_"}

    embedding_: NDArray[Any]
    _data_eigenvalues: NDArray[np.float64] | None = None

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
        out_of_sample: str = "placement",
        method: str = "auto",
        optimizer: Descent | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        callbacks: Callback | Sequence[Callback] | None = None,
        verbose: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.perplexity = perplexity
        self.n_clusters = n_clusters
        self.contraction = contraction
        self.contraction_kernel = contraction_kernel
        self.contraction_width = contraction_width
        self.penalty = penalty
        self.kernel = kernel
        self.init = init
        self.early_exaggeration = early_exaggeration
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.n_batch_neighbors = n_batch_neighbors
        self.metric = metric
        self.metric_params = metric_params
        self.n_neighbors = n_neighbors
        self.out_of_sample = out_of_sample
        self.method = method
        self.optimizer = optimizer
        self.checkpoint = checkpoint
        self.callbacks = callbacks
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.random_state = random_state

    @classmethod
    def paper(cls, n_clusters: int | str = "eigengap", contraction: float = 0.01, **changes: Any) -> Self:
        """LaptSNE as its authors ran it: trace penalty, spectral initialisation, all pairs, no exaggeration.

        Parameters
        ----------
        n_clusters : int or "eigengap", default="eigengap"
            k-hat; the authors read it off a plot of the eigenvalues.
        contraction : float, default=0.01
            lambda; the authors used 0.01 to 0.1.
        **changes
            Other parameters.

        Examples
        --------
        >>> from laptsne import LaptSNE
        >>> LaptSNE.paper(n_clusters=11, contraction=0.1).penalty
        'trace'
        """
        return cls(n_clusters=n_clusters, contraction=contraction, **(parameters.paper_settings() | changes))

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute the embedding of X.

        A keyboard interrupt during the descent is raised after ``embedding_``, of the last iteration, has been set.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or column of lists
            The data; see ``metric`` for distances, graphs and affinities. A column of lists or arrays of a data frame
            is a matrix with one row per list.
        y : ignored
        """
        if isinstance(X, tuple) and isinstance(self.metric, str) and self.metric == "precomputed":
            if len(X) != 2:
                raise ValueError(f"X: expected a tuple (indices, distances), got one of {len(X)} elements.")
            X = neighbor_graph(*X)
        with self._unchanged_by_failure():
            X = self._validated(X, ensure_min_samples=2)
            self._check_parameters(X.shape[0])
            check_memory(self.get_params(deep=False), self._memory_kind, X)
            random_state = check_random_state(self.random_state)
            with Workers(self.n_jobs) as workers:
                # The affinities are not bound to a name here, which would keep them beside their reordered copy.
                result = self._fit_affinities(X, self._joint_affinities(X, workers), random_state, workers)
            self._mapping = mapping_of(self, X, self.embedding_, result.potential, random_state)
        if result.interrupted:
            raise KeyboardInterrupt(
                f"fit was interrupted at iteration {result.n_iter}; embedding_ holds the embedding at that point."
            )
        return self

    @contextmanager
    def _unchanged_by_failure(self) -> Iterator[None]:
        """Leave the estimator as it was if an error is raised: its attributes would not belong together."""
        before = vars(self).copy()
        try:
            yield
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    def fit_transform(self, X: Any, y: Any = None) -> NDArray[Any]:
        """Compute the embedding of X and return it; see :meth:`fit`."""
        return np.asarray(self.fit(X).embedding_)

    def fit_predict(self, X: Any, y: Any = None) -> NDArray[np.intp]:
        """Compute the embedding of X and return the cluster of each point, -1 for none; see :meth:`fit`."""
        return np.asarray(self.fit(X).labels_)

    def _validated(self, X: Any, **options: Any) -> Any:
        X = validate_data(self, stacked_rows(X), **_CHECKS, **options)
        return scipy.sparse.csr_matrix(X) if scipy.sparse.issparse(X) else X  # sparse arrays lack some methods

    def _check_parameters(self, n_samples: int) -> None:
        parameters.check_combinations(self.get_params(deep=False), n_samples)

    @property
    def _is_pairwise(self) -> bool:
        return is_pairwise(self.metric)

    def _perplexity(self, n_samples: int) -> float:
        return float(auto_perplexity(n_samples) if isinstance(self.perplexity, str) else self.perplexity)

    def _joint_affinities(self, X: Any, workers: Workers) -> Any:
        options: dict[str, Any] = {"n_neighbors": self.n_neighbors, "metric": self.metric}
        options["perplexity"] = self._perplexity(X.shape[0])
        self.perplexity_ = feasible_perplexity(X, **options)
        return joint_affinities(X, metric_params=self.metric_params, workers=workers, **options)

    def _fit_affinities(self, X: Any, P: Any, random_state: Any, workers: Workers) -> Result:
        """Compute the embedding of X from its affinities, and store what describes it."""
        fit = fit_affinities(self, X, P, random_state, workers)
        self.affinities_, self._data_eigenvalues = fit.affinities, fit.data_eigenvalues
        result = fit.result
        self.embedding_ = result.embedding.astype(X.dtype, copy=False)
        self.n_iter_ = result.n_iter
        self.labels_ = fit.labels
        self.n_clusters_ = int(fit.labels.max()) + 1 if self.n_clusters == "auto" else result.n_clusters
        self._clusters = None
        self.contraction_ = result.contraction
        self.contraction_width_ = result.contraction_width
        self.eigenvalues_ = result.eigenvalues
        self.eigenvalue_residual_ = result.residual
        setattr(self, self._loss_attribute, result.kl_divergence)
        self.objective_ = result.objective
        self.reliability_ = None
        self._potential = result.potential
        return result

    @property
    def data_eigenvalues_(self) -> NDArray[np.float64]:
        """Smallest eigenvalues of the Laplacian of ``affinities_``, computed when they are first read."""
        check_is_fitted(self)
        if self._data_eigenvalues is None:
            self._data_eigenvalues = data_eigenvalues(self.affinities_, self.n_components, self.n_jobs)
        return self._data_eigenvalues

    @data_eigenvalues_.setter
    def data_eigenvalues_(self, values: NDArray[np.float64]) -> None:
        self._data_eigenvalues = values

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_pairwise
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
