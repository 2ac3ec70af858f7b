"""The estimator: it stores the parameters and wires the parts."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.neighbors import VALID_METRICS
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from laptsne._runtime.threads import Workers
from laptsne.clusters.evidence import evident_clusters
from laptsne.clusters.labels import cluster_labels
from laptsne.distributed import is_dask, mapped
from laptsne.embedding.backend import Backend
from laptsne.embedding.checkpoint import Checkpoint, digest_of
from laptsne.embedding.initialization import initial_map
from laptsne.embedding.kernels import Gaussian, Kernel, Student
from laptsne.embedding.minibatch import Batches, BatchRun
from laptsne.embedding.objective import Contraction, KLDivergence, MeshContraction, Penalty, pull
from laptsne.embedding.optimizer import Callback, Descent, Problem, Run, descend, warn_if_lost
from laptsne.embedding.potential import Potential
from laptsne.embedding.progress import ProgressBar
from laptsne.graph.affinity import joint_affinities
from laptsne.graph.neighbors import neighbor_graph
from laptsne.graph.ordering import ordered_for_locality, reordered
from laptsne.graph.spectrum import MAX_CLUSTERS, Spectrum, eigengap_clusters, laplacian_spectrum
from laptsne.memory import check_memory
from laptsne.persistence import load_model, save_model
from laptsne.transform import LazyPotential, Network, Placement

_AUTO_CONTRACTION = 0.04  # docs/evaluation.md has the evidence for this and for the perplexity
_MAX_CONTRACTED = 60  # clusters found by themselves are no more than this
# Up to this many points pairs are faster than transforms, by the dimension of the map (benchmarks/crossover.py).
_MAX_EXACT = {1: 1000, 2: 6000, 3: 40_000}
# What does not change a descent, or is known by the affinities and the first map.
_NO_MATTER = {"checkpoint", "callbacks", "verbose", "n_jobs", "out_of_sample", "init", "perplexity", "n_neighbors"} | {
    "metric",
    "metric_params",
}
# One layout for all: sums along rows and columns have other bits in another.
_CHECKS: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}
_KERNELS: dict[str, Kernel] = {"student": Student(), "gaussian": Gaussian()}
# Names of scikit-learn's trees that its distances of all pairs do not know.
_OF_TREES = {"infinity", "p", "pyfunc", "sokalmichener"}
_METRICS = {*VALID_METRICS["brute"], *VALID_METRICS["ball_tree"], *VALID_METRICS["kd_tree"]} - _OF_TREES


def auto_perplexity(n_samples: int) -> float:
    """The perplexity for so many points, where none is given."""
    return max(1.0, min(float(np.clip(np.sqrt(n_samples) / 6, 20, 30)), (n_samples - 1) / 3))


def auto_contraction(n_clusters: int) -> float:
    """The strength for so many clusters, where none is given."""
    return _AUTO_CONTRACTION * pull(n_clusters)


class LaptSNE(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Cluster-contractive t-SNE.

    Minimises over the map :math:`Y`

    .. math:: \mathrm{KL}(P \| Q_Y) + \lambda \sum_{k=1}^{K} \phi(\sigma_k(L_Y)),

    the loss of t-SNE plus a penalty on the smallest eigenvalues of the normalised Laplacian of the map's own
    similarity graph. Each eigenvalue near zero is a cluster that hardly touches the rest: pressing them down pulls
    clusters together and apart from each other.

    Parameters
    ----------
    n_components : {1, 2, 3}, default=2
        Dimension of the map.
    perplexity : float or "auto", default="auto"
        Effective number of neighbours of a point. "auto" is a sixth of the root of the number of points, from 20 to
        30, or what few points allow. A number is lowered with a warning where there are too few points.
    n_clusters : int, "auto" or "eigengap", default="auto"
        The paper's k-hat, K in the formula: how many eigenvalues are pressed to zero. "auto" counts the clusters for
        which there is evidence when contraction is about to begin: groups of the map with a valley of density around
        them that are separate in the data, too (:func:`laptsne.clusters.evidence.evident_clusters`). Where there are
        none, it is 1, and the map remains one of plain t-SNE; of more than ten, those much smaller than the others do
        not count.
        "eigengap" is the paper's way: the largest gap between the eigenvalues of the data's own graph, whether there
        are clusters or not.
    contraction : float or "auto", default="auto"
        The strength :math:`\lambda`. 0 is plain t-SNE; "auto" is
        ``0.04 * min(1, 10 / n_clusters_)`` where there are clusters, and 0 where not. Where it is not 0, the attraction
        is multiplied as well, by up to 2: see ``exaggeration`` of :class:`laptsne.Descent`.
    penalty : {"log", "trace"} or float in (0, 1], default="log"
        The function :math:`\phi`: :math:`\log(\sigma + 10^{-3})`, :math:`\sigma`, or :math:`\sigma^p`.
    kernel : {"student", "gaussian"} or kernel object, default="student"
        Similarity of two points of the map. :class:`laptsne.embedding.kernels.Gaussian` sets the width, for all points
        or one a point.
    init : {"spectral", "pca", "random"} or array of shape (n_samples, n_components), default="spectral"
        Where the points start.
    early_exaggeration : float, default=12.0
        Factor on the attraction in the first third of the iterations; 1 is none.
    learning_rate : float or "auto", default="auto"
        Step size. "auto" is ``max(n_samples / exaggeration / 4, 50)`` for the exaggeration in force.
    max_iter : int, default=750
        Largest number of iterations.
    batch_size : int, default=None
        The paper's LaptSNE-Mini: every iteration moves only this many points, and the neighbours of each that
        ``n_batch_neighbors`` asks for, and takes time in proportion to them. None moves all points.
    n_batch_neighbors : int, default=0
        Neighbours under P that move with each point of a batch. The paper has 10; at the same cost, a larger batch
        without them comes further (docs/method.md).
    metric : str or callable, default="euclidean"
        A metric of scikit-learn's neighbours; "precomputed", where X holds distances (dense), is a sparse
        neighbour graph of distances, or a tuple (indices, distances) of neighbours; or "affinities", where X is P
        itself, such as another run's ``affinities_``. Of more than 10,000 points with dense features, neighbours in
        "euclidean", "sqeuclidean", "cosine" and "correlation" are approximate, with a recall of at least 0.98 as
        measured on some of the points; in other metrics, and of sparse features, they are exact.
    metric_params : dict, default=None
        Further arguments of the metric: of a function; ``p`` and ``w`` of "minkowski"; ``V`` of "seuclidean", the
        variances where it is not given; ``V`` or ``VI`` of "mahalanobis", the covariance and its inverse.
    n_neighbors : int, "auto" or "all", default="auto"
        Neighbours over which P is spread: "auto" three times the perplexity, "all" every pair, as in the paper.
    out_of_sample : {"placement", "network"}, default="placement"
        How :meth:`transform` maps new points: "placement" lets each descend its own part of the objective over the
        frozen map, which keeps the data; "network" trains the paper's network on the data and the map, and keeps
        the network alone.
    method : {"auto", "exact", "fourier"}, default="auto"
        How sums over the map are computed: "exact" takes all pairs, "fourier" a grid and its transforms, in linear time
        and for the Student kernel only. "auto" takes the faster.
    optimizer : Descent, default=None
        Momentum, schedules and stopping; None takes the defaults of :class:`laptsne.Descent`.
    checkpoint : path, default=None
        A file to which the state of the run is written every half minute. The same call after the process was
        killed takes it up there and ends with the same bits; a run that ends removes the file. It needs a
        ``random_state``.
    callbacks : callable or sequence of callables, default=None
        Each is called with a :class:`laptsne.embedding.optimizer.State` before every step; one that returns True ends
        the run.
    verbose : bool, default=False
        Whether to show a progress bar.
    n_jobs : int, default=None
        Number of threads; None and -1 take all cores that the process may use. It does not change the result.
    random_state : int, RandomState instance or None, default=None
        Seed of the random part of the initialisation.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        The map.
    affinities_ : sparse matrix in CSR form of shape (n_samples, n_samples)
        P; a dense array where ``n_neighbors="all"``.
    perplexity_ : float
        The perplexity asked for, or chosen by the number of points.
    n_clusters_ : int
        The number of eigenvalues pressed to zero; 1 is none, since the first is 0 in every map.
    contraction_ : float
        The strength used.
    data_eigenvalues_ : array
        Smallest eigenvalues of the Laplacian of the data's graph.
    eigenvalues_ : array of shape (n_clusters_,)
        Smallest eigenvalues of the Laplacian of the map's graph.
    eigenvalue_residual_ : float
        How well the eigenvectors behind ``eigenvalues_`` satisfy their equation: none is off by more than this.
    kl_divergence_ : float
        KL divergence of the map.
    objective_ : float
        ``kl_divergence_`` plus ``contraction_`` times the sum of the penalties of ``eigenvalues_``.
    labels_ : array of shape (n_samples,)
        Clusters, 0 to ``n_clusters_ - 1``, read from the eigenvectors of the map's graph.
    n_iter_ : int
        Number of iterations run.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features, where X has names.

    References
    ----------
    Y. Sun, Y. Han and J. Fan, "Laplacian-based Cluster-Contractive t-SNE for High-Dimensional Data
    Visualization", ACM Transactions on Knowledge Discovery from Data, 2023.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from laptsne import LaptSNE
    >>> X, _ = load_digits(return_X_y=True)
    >>> Y = LaptSNE(max_iter=100, random_state=0).fit_transform(X[:300])
    >>> Y.shape
    (300, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, 3, closed="both")],
        "perplexity": [Interval(Real, 1, None, closed="left"), StrOptions({"auto"})],
        "n_clusters": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto", "eigengap"})],
        "contraction": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "penalty": [Interval(Real, 0, 1, closed="right"), StrOptions({"log", "trace"})],
        "kernel": [StrOptions({"student", "gaussian"}), Student, Gaussian],
        "init": [StrOptions({"spectral", "pca", "random"}), "array-like"],
        "early_exaggeration": [Interval(Real, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "n_batch_neighbors": [Interval(Integral, 0, None, closed="left")],
        "metric": [StrOptions(_METRICS | {"precomputed", "affinities"}), callable],
        "metric_params": [dict, None],
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto", "all"})],
        "out_of_sample": [StrOptions({"placement", "network"})],
        "method": [StrOptions({"auto", "exact", "fourier"})],
        "optimizer": [Descent, None],
        "checkpoint": [str, os.PathLike, None],
        "callbacks": [callable, list, tuple, None],
        "verbose": ["verbose"],
        "n_jobs": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Integral, None, -1, closed="right"),
            None,
        ],
        "random_state": ["random_state"],
    }

    # The largest part of a model, which only a further fit needs.
    _left_out: ClassVar[set[str]] = {"affinities_"}

    embedding_: NDArray[Any]
    _mapping: Placement | Network | None

    def __init__(
        self,
        n_components: int = 2,
        *,
        perplexity: float | str = "auto",
        n_clusters: int | str = "auto",
        contraction: float | str = "auto",
        penalty: float | str = "log",
        kernel: str | Kernel = "student",
        init: str | ArrayLike = "spectral",
        early_exaggeration: float = 12.0,
        learning_rate: float | str = "auto",
        max_iter: int = 750,
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
        """LaptSNE as its authors ran it: trace penalty, spectral start, all pairs, no exaggeration.

        Parameters
        ----------
        n_clusters : int or "eigengap", default="eigengap"
            k-hat; the authors read it off a plot of the eigenvalues.
        contraction : float, default=0.01
            lambda; the authors took 0.01 to 0.1.
        **changes
            Any other parameter.

        Examples
        --------
        >>> from laptsne import LaptSNE
        >>> LaptSNE.paper(n_clusters=11, contraction=0.1).penalty
        'trace'
        """
        settings: dict[str, Any] = {
            "perplexity": 25.0,
            "penalty": "trace",
            "kernel": "student",
            "init": "spectral",
            "early_exaggeration": 1.0,
            "learning_rate": 100.0,
            "max_iter": 500,
            "n_neighbors": "all",
            "method": "exact",
            "optimizer": Descent(
                momentum=0.5, exaggeration=1.0, contraction_start=0, contraction_ramp=0, refresh_every=1
            ),
        }
        return cls(n_clusters=n_clusters, contraction=contraction, **(settings | changes))

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None) -> Self:
        """Make the map of X.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The data; see ``metric`` for distances, graphs and affinities.
        y : ignored

        Returns
        -------
        self : LaptSNE
        """
        if isinstance(X, tuple) and isinstance(self.metric, str) and self.metric == "precomputed":
            if len(X) != 2:
                raise ValueError(f"X: a tuple holds two arrays, (indices, distances), but this one has {len(X)} parts.")
            X = neighbor_graph(*X)
        X = validate_data(self, X, **_CHECKS, ensure_min_samples=2)
        self._check_settings(X.shape[0])
        check_memory(self, X)
        random_state = check_random_state(self.random_state)
        options: dict[str, Any] = {"metric": self.metric, "metric_params": self.metric_params}
        with Workers(self.n_jobs) as workers:
            self._choose_perplexity(X.shape[0])
            options |= {"perplexity": self.perplexity_, "n_neighbors": self.n_neighbors, "workers": workers}
            # The affinities have no name here: they would stay beside their reordered copy.
            potential = self._make_map(X, joint_affinities(X, **options), random_state, workers)
        if self.out_of_sample == "network":
            self._mapping = Network.trained(X, self.embedding_, random_state)
        elif potential is not None and self.metric != "affinities":
            self._mapping = self._placement(None if self._is_pairwise else X, self.embedding_, potential)
        else:
            self._mapping = None
        return self

    def _check_settings(self, n_samples: int) -> None:
        """Refuse what cannot work for a map of so many points, before anything is computed."""
        if self.out_of_sample == "network" and self._is_pairwise:
            raise ValueError(
                f"out_of_sample='network' learns from features, but with metric={self.metric!r} X has none; "
                "use out_of_sample='placement'."
            )
        if self.batch_size is None and self.n_batch_neighbors:
            raise ValueError(
                f"n_batch_neighbors={self.n_batch_neighbors} has no use without batches; give batch_size as well."
            )
        self._observers()
        if self.checkpoint is not None and not isinstance(self.random_state, Integral):
            raise ValueError(
                f"checkpoint={str(self.checkpoint)!r} needs a run that can be made again, but "
                f"random_state={self.random_state!r}; give random_state an integer."
            )
        if self.checkpoint is not None and (
            Path(self.checkpoint).is_dir() or not Path(self.checkpoint).parent.is_dir()
        ):
            raise ValueError(
                f"checkpoint={str(self.checkpoint)!r} is a folder or in none that exists; "
                "give the path of a file in a folder that does."
            )
        if not isinstance(self.n_clusters, str) and self.n_clusters >= n_samples:
            raise ValueError(
                f"n_clusters={self.n_clusters} is out of range for {n_samples} samples; "
                f"give a number from 1 to {n_samples - 1}, or 'auto'."
            )

    def _choose_perplexity(self, n_samples: int) -> None:
        chosen = auto_perplexity(n_samples) if isinstance(self.perplexity, str) else self.perplexity
        self.perplexity_ = float(chosen)

    def _make_map(self, X: Any, P: Any, random_state: Any, workers: Workers) -> Potential | LazyPotential | None:
        """Make the map of X by its affinities; return the potential that it leaves to new points, if there is one."""
        P, order = ordered_for_locality(P, workers) if self.batch_size is None else (P, None)
        spectrum = self._spectrum(P, order, workers)
        Y = initial_map(self.init, X, spectrum, self.n_components, metric=self.metric, random_state=random_state)
        potential = self._descend(KLDivergence(P, order), spectrum, Y, random_state, workers)
        self.affinities_ = P if order is None else reordered(P, np.argsort(order))
        if order is not None:
            self.affinities_.sort_indices()  # in place, where another copy would be the largest yet
        self.embedding_ = self.embedding_.astype(X.dtype, copy=False)
        return potential

    def _placement(self, X: Any, Y: NDArray[Any], potential: Potential | LazyPotential) -> Placement:
        """New points placed among those of X, at Y."""
        options = {"metric": self.metric, "metric_params": self.metric_params}
        return Placement(X, Y, potential, perplexity=self.perplexity_, **options)

    def fit_transform(self, X: Any, y: Any = None) -> NDArray[Any]:
        """Make the map of X and return it.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The data; see ``metric`` for distances, graphs and affinities.
        y : ignored

        Returns
        -------
        Y : array of shape (n_samples, n_components)
        """
        return np.asarray(self.fit(X).embedding_)

    def transform(self, X: Any) -> Any:
        """Map new points into the finished map, which stays as it is.

        Every point is mapped by itself: its place does not depend on the others in X. With
        ``out_of_sample="placement"``, a row equal to one of the data of the map gets its place.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_points, n_features)
            New points; with ``metric="precomputed"`` their distances to the data of the map, of shape
            (n_points, n_samples). The blocks of a Dask array are mapped where they are.

        Returns
        -------
        Y : array of shape (n_points, n_components)
            A Dask array where X is one.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from laptsne import LaptSNE
        >>> X, _ = load_digits(return_X_y=True)
        >>> model = LaptSNE(max_iter=100, random_state=0).fit(X[:300])
        >>> model.transform(X[300:310]).shape
        (10, 2)
        """
        check_is_fitted(self)
        if self._mapping is None:
            raise ValueError(self._unmappable())
        if is_dask(X):
            if X.ndim != 2 or X.shape[1] != self.n_features_in_:
                raise ValueError(f"X has shape {X.shape}, but the map was made of {self.n_features_in_} features.")
            return mapped(X, self._mapping)
        return self._transformed(X)

    def _transformed(self, X: Any) -> NDArray[Any]:
        assert self._mapping is not None
        X = validate_data(self, X, **_CHECKS, reset=False)
        if self._is_pairwise and (scipy.sparse.issparse(X) or X.min() < 0):
            raise ValueError(
                "metric='precomputed': transform needs a dense matrix of the distances of new points to all points "
                "of the map, each at least 0."
            )
        with Workers(self.n_jobs) as workers:
            return self._mapping.place(X, workers)

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write the fitted model to one file of arrays and JSON, without pickle.

        ``affinities_`` are left out; so are ``callbacks``, and a ``random_state`` that is not a number. The data are in
        the file where :meth:`transform` needs them, which is with ``out_of_sample="placement"``.

        Parameters
        ----------
        path : path
            The file; replaced where it exists, whole or not at all.

        Returns
        -------
        size : int
            Size of the file in bytes.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from sklearn.datasets import load_digits
        >>> from laptsne import LaptSNE
        >>> X, _ = load_digits(return_X_y=True)
        >>> model = LaptSNE(max_iter=100, random_state=0).fit(X[:300])
        >>> path = Path(tempfile.mkdtemp(), "digits.laptsne")
        >>> size = model.save(path)
        >>> LaptSNE.load(path).embedding_.shape
        (300, 2)
        """
        check_is_fitted(self)
        return save_model(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that :meth:`save` wrote. Nothing in the file is run.

        Parameters
        ----------
        path : path
            The file. ValueError where it is of a newer version, cut short, changed or something else.
        """
        model: Self = load_model(path, {kind.__name__: kind for kind in (cls, *cls.__subclasses__())})
        return model

    def _unmappable(self) -> str:
        if self._is_pairwise:
            return "metric='affinities': there is no way to place new points; give the data or distances to fit."
        return (
            f"out_of_sample='placement' needs kernel='student', but this map was made with kernel={self.kernel!r}; "
            "fit with out_of_sample='network'."
        )

    @property
    def _is_pairwise(self) -> bool:
        return isinstance(self.metric, str) and self.metric in ("precomputed", "affinities")

    def _spectrum(self, P: Any, order: NDArray[Any] | None, workers: Workers) -> Spectrum:
        wanted = 0 if isinstance(self.n_clusters, str) else self.n_clusters
        spectrum = laplacian_spectrum(P, max(MAX_CLUSTERS, wanted, self.n_components) + 1, workers)
        self.data_eigenvalues_ = spectrum.eigenvalues
        self._contract(wanted or eigengap_clusters(spectrum.eigenvalues))
        if order is not None:
            spectrum.eigenvectors[order] = spectrum.eigenvectors.copy()
        return spectrum

    def _descend(
        self, kl: KLDivergence, spectrum: Spectrum, Y: NDArray[np.float64], random_state: Any, workers: Workers
    ) -> Potential | LazyPotential | None:
        """Make the map; return the potential that it leaves to new points, where there is one."""
        backend = self._backend(len(Y), workers)
        contraction = backend.contraction(self.n_clusters_, spectrum.eigenvectors[:, 1:])
        problem = Problem(kl, contraction, self.contraction_, backend.fields)
        if self.n_clusters == "auto":

            def contract(n_clusters: int, start: NDArray[Any]) -> tuple[Contraction, float]:
                self._contract(n_clusters)
                return backend.contraction(n_clusters, start), self.contraction_

            def decision(Y: NDArray[np.float64]) -> tuple[int, NDArray[Any]]:
                labels = evident_clusters(Y, kl.P, order=kl.order, workers=workers)
                n_clusters = min(int(labels.max(initial=0)) + 1, _MAX_CONTRACTED)
                # Indicators of the clusters span nearly what the eigenvectors do.
                inside = labels[:, None] == np.arange(1, n_clusters)
                return n_clusters, np.column_stack([inside.astype(np.float32), spectrum.eigenvectors[:, 1:]])

            problem.contract, problem.decision = contract, decision
        schedule: dict[str, Any] = {
            "max_iter": self.max_iter,
            "early_exaggeration": self.early_exaggeration,
            "learning_rate": self.learning_rate,
        }
        descent = self.optimizer or Descent()
        if self.batch_size is None:
            run = Run(problem, Y, descent, **schedule)
        else:
            batches = Batches(kl.P, self.batch_size, self.n_batch_neighbors, random_state)
            run = BatchRun(batches, backend.kernel, problem, Y, descent, **schedule)
        checkpoint = self._checkpoint(kl, Y)
        with contextlib.ExitStack() as stack:
            observers = self._observers()
            if self.verbose:
                observers.append(stack.enter_context(ProgressBar(self.max_iter)))
            self.embedding_, self.n_iter_ = descend(run, observers, checkpoint)
        problem.decide(self.embedding_)  # where the run was over before contraction began
        contraction, fields = problem.contraction, backend.fields(self.embedding_)
        pairs = backend.finished(contraction, fields)
        potential: Potential | LazyPotential | None = None
        if isinstance(contraction, MeshContraction):
            potential = contraction.potential(self.contraction_, run.exaggeration)
        elif isinstance(backend.kernel, Student):
            mesh = MeshContraction(self.n_clusters_, backend.penalty, pairs.block)
            potential = LazyPotential(mesh, self.contraction_, run.exaggeration)
        self.eigenvalues_ = pairs.eigenvalues
        self.eigenvalue_residual_ = pairs.residual
        self.kl_divergence_ = kl.value(fields)
        warn_if_lost(run, self.n_iter_, self.kl_divergence_)
        self.objective_ = self.kl_divergence_ + self.contraction_ * float(
            backend.penalty.value(self.eigenvalues_).sum()
        )
        self.labels_ = cluster_labels(pairs.eigenvectors)
        if checkpoint is not None:
            checkpoint.close()
        return potential

    def _checkpoint(self, kl: KLDivergence, Y: NDArray[np.float64]) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        settings = {name: value for name, value in self.get_params(deep=False).items() if name not in _NO_MATTER}
        return Checkpoint(self.checkpoint, digest_of(settings, kl.P, Y))

    def _contract(self, n_clusters: int) -> None:
        """Set how many clusters to contract, and how strongly."""
        self.n_clusters_ = n_clusters
        if isinstance(self.contraction, str):
            self.contraction_ = auto_contraction(n_clusters)
            return
        self.contraction_ = float(self.contraction)
        if self.contraction_ and n_clusters == 1 and self.n_clusters == "auto":
            warnings.warn(
                f"contraction={self.contraction} has nothing to contract: there is no evidence of clusters. "
                "Give n_clusters to contract nevertheless.",
                UserWarning,
                stacklevel=2,
            )
            self.contraction_ = 0.0

    def _backend(self, n_samples: int, workers: Workers) -> Backend:
        kernel = _KERNELS[self.kernel] if isinstance(self.kernel, str) else self.kernel
        return Backend(kernel, Penalty(self.penalty), self._uses_fourier(kernel, n_samples), workers)

    def _uses_fourier(self, kernel: Kernel, n_samples: int) -> bool:
        if self.method == "fourier" and not isinstance(kernel, Student):
            raise ValueError(
                f"method='fourier' needs kernel='student', got kernel={self.kernel!r}; use method='exact'."
            )
        if self.batch_size is not None:
            if self.method == "fourier":
                raise ValueError(
                    f"batch_size={self.batch_size} sums over pairs, which method='fourier' does not; use method='auto'."
                )
            return False
        if self.method == "auto":
            return isinstance(kernel, Student) and n_samples > _MAX_EXACT[self.n_components]
        return self.method == "fourier"

    def _observers(self) -> list[Callback]:
        callbacks = [] if self.callbacks is None else self.callbacks
        observers = list(callbacks) if isinstance(callbacks, Sequence) else [callbacks]
        for observer in observers:
            if not callable(observer):
                raise ValueError(
                    f"callbacks: {observer!r} cannot be called; give functions of one argument, the state."
                )
        return observers

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_pairwise
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
