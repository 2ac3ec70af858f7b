"""LaptSNE for data that do not fit into memory: embed landmarks and place all other rows among them."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
from sklearn.base import _fit_context
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import sort_graph_by_row_values
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import validate_data

from laptsne._runtime.stacked_rows import stacked_rows
from laptsne._runtime.threads import Workers, single_threaded_blas
from laptsne._runtime.typing import Array
from laptsne._runtime.warn import warn
from laptsne.estimators.base import MapEstimator
from laptsne.estimators.distributed import is_dask, mapped, rows_of, sampled
from laptsne.estimators.laptsne import LaptSNE
from laptsne.fields.potential import Potential
from laptsne.fitted_map import FittedMap
from laptsne.graph.affinity import distance_graph, graph_affinities, joint_affinities
from laptsne.graph.distances import is_pairwise
from laptsne.graph.neighbors import NeighborIndex, row_batches
from laptsne.kernels import Gaussian
from laptsne.memory import check_memory
from laptsne.methods import Fit, Tsne
from laptsne.settings import TSNE_CONSTRAINTS, check_tsne, kernel_of, tsne_method
from laptsne.transform.network import Network
from laptsne.transform.placement import MAX_PERPLEXITY, settled
from laptsne.transform.sampling import checked_block, joined, n_sampled, row_hashes, sample_of

_N_NEIGHBORS = int(3 * MAX_PERPLEXITY)  # neighbours by which a row is placed
_PLACEMENT_ROUNDS = 2  # in which the sampled rows are placed among each other
_KMEANS_ITERATIONS = 10  # landmarks have to cover the data, not to minimise the inertia (docs/scale.md)


def _listing_settings(init: Callable[..., None]) -> Callable[..., None]:
    """Let the signature list the parameters of LaptSNE in place of ``**settings``, as scikit-learn requires."""
    own = [p for p in inspect.signature(init).parameters.values() if p.kind is not p.VAR_KEYWORD]
    inherited = [p.replace(kind=p.KEYWORD_ONLY) for p in inspect.signature(LaptSNE).parameters.values()]
    init.__signature__ = inspect.Signature([*own, *inherited])  # type: ignore[attr-defined]
    return init


class LandmarkLaptSNE(MapEstimator):
    """LaptSNE for large data, with landmarks.

    The paper's Algorithm 2: k-means finds centres, the rows nearest to them are the landmarks, LaptSNE embeds these,
    and every row is placed among them. Unlike in the paper, the affinity of two landmarks is the sum over the sampled
    rows around them, and rows are placed by their neighbours in the whole sample.

    X is an array, which may be memory-mapped, or a Dask array. ``fit`` keeps a sample in memory: 20 rows per landmark,
    or 100,000 if that is more. The result does not depend on the blocks.

    Parameters
    ----------
    n_landmarks : int, default=1000
        Number of k-means centres. There are fewer landmarks if X has fewer distinct rows.
    **settings
        Parameters of :class:`LaptSNE`. The metric must be one of features; k-means is Euclidean.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        Coordinates of all rows. A lazy Dask array if X is one.
    labels_ : array of shape (n_samples,)
        Cluster of each row, if there is :meth:`predict`. A lazy Dask array if X is one.
    landmarks_ : array of shape (n_landmarks_found,)
        Row numbers of the landmarks, ascending.
    landmark_embedding_ : array of shape (n_landmarks_found, n_components)
        Coordinates of the landmarks.
    landmark_labels_ : array of shape (n_landmarks_found,)
        Cluster of each landmark.

    All other attributes are those of :class:`LaptSNE`, for the embedding of the landmarks.

    Examples
    --------
    >>> import numpy as np
    >>> from laptsne import LandmarkLaptSNE
    >>> X = np.random.default_rng(0).normal(size=(2000, 5))
    >>> LandmarkLaptSNE(n_landmarks=200, max_iter=100, random_state=0).fit_transform(X).shape
    (2000, 2)
    """

    _parameter_constraints = TSNE_CONSTRAINTS | {"n_landmarks": [Interval(Integral, 2, None, closed="left")]}
    _prefix: ClassVar[str] = "landmark_"

    n_landmarks: int
    n_neighbors: int | str
    kernel: Any
    out_of_sample: str

    @_listing_settings
    def __init__(self, n_landmarks: int = 1000, **settings: Any) -> None:
        self._store({"n_landmarks": n_landmarks, **LaptSNE(**settings).get_params(deep=False)})

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the landmarks of X, embed them, and place all rows.

        X is an array or a Dask array of shape (n_samples, n_features), and y is ignored. A keyboard interrupt during
        the descent is raised after ``landmark_embedding_`` has been set; no other rows are placed then.
        """
        check_tsne(self.get_params(deep=False), self.n_landmarks)
        if is_pairwise(self.metric):
            raise ValueError(f"metric={self.metric!r}: LandmarkLaptSNE needs features for k-means; use LaptSNE.")
        if self.n_neighbors == "all":
            raise ValueError("n_neighbors='all' would need all pairs of the sampled rows; use 'auto' or an integer.")
        if isinstance(kernel_of(self.kernel), Gaussian) and self.out_of_sample == "placement":
            raise ValueError(f"kernel={self.kernel!r} needs out_of_sample='network', got 'placement'.")
        X = stacked_rows(X)
        X = rows_of(X) if is_dask(X) else _matrix(X)
        if X.shape[0] == 0:
            raise ValueError("X has no rows.")
        if self.n_landmarks > X.shape[0]:
            many = f"n_landmarks={self.n_landmarks} is more than the {X.shape[0]} rows of X"
            warn(f"{many}, so every distinct row is a landmark. Lower n_landmarks, or use LaptSNE.")
        seed = int(check_random_state(self.random_state).randint(2**31))
        with self._unchanged_by_failure():
            sample = (sampled if is_dask(X) else _sampled)(X, n_sampled(self.n_landmarks, X.shape[0]), seed)
            found = self._fit_sample(*sample, seed)
            if hasattr(X, "columns"):
                validate_data(self, X, skip_check_array=True)  # sets feature_names_in_
            if not found.result.interrupted:
                self._place_all(X)
        self._raise_if_interrupted(found)
        return self

    def _method(self, X: Any) -> Tsne:
        return tsne_method(self.get_params(deep=False), X)

    def _fit_sample(self, numbers: Array, X: Array, seed: int) -> Fit:
        """Embed the landmarks of sampled rows, and place the others, by which new rows are placed."""
        X = validate_data(self, X, dtype=[np.float64, np.float32], order="C", ensure_min_samples=2)
        method = self._method(X)
        check_memory(self.get_params(deep=False), X)
        random_state = check_random_state(self.random_state)
        rows = find_landmarks(X, self.n_landmarks, row_hashes(numbers, seed))
        n_clusters = 1 if isinstance(self.n_clusters, str) else self.n_clusters
        if len(rows) <= n_clusters:
            few = f"n_landmarks={self.n_landmarks} gave only {len(rows)} landmarks, since X has few distinct rows"
            raise ValueError(f"{few}, but more than {n_clusters} are needed. Use LaptSNE, or a lower n_clusters.")
        with Workers(self.n_jobs) as workers:
            near, P = _neighborhood(X, rows, method, workers)
            # Sums of t-SNE follow the number of landmarks, not of sampled rows.
            method = replace(self._method(X[rows]), metric=method.metric)
            found = self._descended(method, X[rows], P, random_state, workers)
            self.landmarks_, self.landmark_labels_ = numbers[rows], self.labels_
            self.landmark_embedding_ = found.result.embedding.astype(X.dtype, copy=False)
            del self.labels_  # those of all rows
            if found.result.interrupted or found.result.potential is None:
                self.fitted_map_ = replace(self._mapped(method, X[rows], found, random_state), data=None)
                return found
            fitted = _placed(X, rows, FittedMap.of(method, X[rows], found).computed(self.n_jobs), near, workers)
            if self.out_of_sample == "network":  # which learns from all sampled rows
                network = Network.trained(X, fitted.embedding, random_state)
                fitted = replace(fitted, data=None, potential=None, network=network)
            self.fitted_map_ = fitted
        return found

    def _place_all(self, X: Any) -> None:
        """Set the positions and the clusters of all rows."""
        fitted, positions, labels = self.fitted_map_, [], []
        if is_dask(X):
            self.embedding_ = mapped(X, fitted, self.n_jobs)
            if fitted.network is None:
                self.labels_ = mapped(X, fitted, self.n_jobs, labels=True)
            return
        for rows in _blocks(X):  # one at a time is in memory
            block = self._validated(rows, reset=False)
            positions.append(fitted.place(block, self.n_jobs))
            if fitted.network is None:
                labels.append(fitted.predict(block, self.n_jobs))
        self.embedding_ = np.concatenate(positions)
        if labels:
            self.labels_ = np.concatenate(labels)

    def _take_over(self, fitted_map: FittedMap) -> None:
        super()._take_over(fitted_map)
        del self.embedding_, self.labels_  # those of all rows, which the file lacks
        shape = (len(self.landmark_labels_), self.n_components)
        if self.landmark_embedding_.shape != shape or not np.isfinite(self.landmark_embedding_).all():
            raise ValueError(f"landmark_embedding_ is not a finite array of shape {shape}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


def find_landmarks(X: Array, n_landmarks: int, hashes: Array) -> Array:
    """Return the row nearest to the centre of each cluster of k-means, ascending; of equally near rows the first.

    A few iterations of Lloyd's algorithm, starting from the rows with the lowest hashes, in one thread: the bits of
    scikit-learn's centres depend on the number of threads.
    """
    # Scaled by a power of two and centred, so that squares neither overflow nor vanish in single precision.
    Z = np.ldexp(X, -np.frexp(max(X.max(), -X.min()))[1])
    Z -= Z.mean(axis=0, dtype=np.float64)
    Z = Z.astype(np.float32, copy=False)
    initial = Z[np.argsort(hashes, kind="stable")[:n_landmarks]]
    kmeans = KMeans(len(initial), init=initial, n_init=1, max_iter=_KMEANS_ITERATIONS, copy_x=False)
    with single_threaded_blas(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # centres without rows, where rows are duplicates
        labels = kmeans.fit(Z).labels_
    Z -= kmeans.cluster_centers_[labels]
    order = np.lexsort((np.einsum("ij,ij->i", Z, Z), labels))
    rows = np.sort(order[np.unique(labels[order], return_index=True)[1]])
    # Of duplicates, rounding may assign each to a centre of its own.
    return np.asarray(rows[np.sort(np.unique(X[rows], axis=0, return_index=True)[1])])


def _neighborhood(X: Array, rows: Array, method: Tsne, workers: Workers) -> tuple[list[tuple[Array, Array]], Any]:
    """Return the neighbours of all rows among the landmarks and among all rows, and the affinities of the landmarks.

    The affinity of two landmarks is the sum over the rows that they represent: ``A.T @ P @ A``, where ``A`` assigns
    every row of X to its nearest landmark.
    """
    metric, n_rows = method.metric, len(X)
    options = {"workers": workers, **metric.options}
    index = NeighborIndex(X[rows], n_neighbors=min(_N_NEIGHBORS, len(rows)), **options)
    found = zip(*(index.search(X[batch], workers) for batch in row_batches(X)), strict=True)
    indices, distances = (np.concatenate(part) for part in found)
    graph = distance_graph(X, method.perplexity, metric.n_neighbors, **options)
    ordered = sort_graph_by_row_values(graph, copy=True, warn_when_not_sorted=False)
    among_rows = [part.reshape(n_rows, -1)[:, :_N_NEIGHBORS].copy() for part in (ordered.indices, ordered.data)]
    del ordered
    P = graph_affinities(graph, method.perplexity, workers, refine=method.refine)
    del graph
    P = scipy.sparse.csr_matrix((P.data, indices[:, 0][P.indices], P.indptr), (n_rows, len(rows)))
    parts = (np.ones(n_rows, P.dtype), indices[:, 0], np.arange(n_rows + 1))
    P = scipy.sparse.csc_matrix(parts, (len(rows), n_rows)).tocsr() @ P
    P.setdiag(0)
    if (P.sum(axis=1) == 0).any():  # all neighbours of the rows of a landmark belong to the same landmark
        graph = distance_graph(X[rows], metric.perplexity, metric.n_neighbors, **options)
        P = P + graph_affinities(graph, metric.perplexity, workers, refine=method.refine)
    P = joint_affinities(P, perplexity=metric.perplexity, metric="affinities")
    return [(indices, distances), (among_rows[0], among_rows[1])], P


def _placed(
    X: Array, rows: Array, landmarks: FittedMap, near: list[tuple[Array, Array]], workers: Workers
) -> FittedMap:
    """Return the map of all rows of X, which are placed among the landmarks, then among each other."""
    potential, Y, (among_landmarks, among_rows) = landmarks.potential, landmarks.embedding, near
    assert isinstance(potential, Potential)
    for indices, distances in (among_landmarks, *[among_rows] * _PLACEMENT_ROUNDS):
        Y = settled(indices, distances, MAX_PERPLEXITY, Y, potential, workers, None)
        Y[rows] = landmarks.embedding
    labels = landmarks.labels[among_landmarks[0][:, 0]]
    changes: dict[str, Any] = {"embedding": Y.astype(X.dtype), "labels": labels, "is_sample": True}
    return replace(landmarks, data=X, method=None, affinities=None, **changes)


def _matrix(X: Any) -> Any:
    """Return X with a shape; raise ValueError if it is not a dense matrix."""
    if scipy.sparse.issparse(X):
        raise ValueError("X is sparse; use sklearn.decomposition.TruncatedSVD first, or LaptSNE.")
    X = X if hasattr(X, "shape") else np.asarray(X)
    if len(X.shape) != 2:
        raise ValueError(f"Expected 2D array, got an array of shape {X.shape}; use X.reshape(n_samples, -1).")
    return X


def _sampled(X: Any, n_wanted: int, seed: int) -> tuple[Array, Array]:
    """Return a sample of X, of which one block is in memory at a time."""
    samples, offset = [], 0
    for number, rows in enumerate(_blocks(X)):
        block = checked_block(rows, number)
        samples.append(sample_of(block, offset, X.shape[0], n_wanted, seed))
        offset += len(block)
    return joined(samples)


def _blocks(X: Any) -> Iterator[Any]:
    rows = X.iloc if hasattr(X, "iloc") else X
    return (rows[batch] for batch in row_batches(X))
