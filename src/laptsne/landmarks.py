"""LaptSNE of more data than fits into memory: a map of landmarks, and all other points placed in it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import _fit_context, clone
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from laptsne._runtime.threads import Workers
from laptsne.distributed import DaskParts, is_dask, rows_of
from laptsne.embedding.kernels import Gaussian
from laptsne.embedding.lazy_potential import LazyPotential
from laptsne.estimator import LaptSNE
from laptsne.graph.affinity import distance_graph, graph_affinities, joint_affinities
from laptsne.graph.neighbors import NeighborIndex, row_batches
from laptsne.kmeans import OnePart, Rows, Sampler, find_landmarks, joined
from laptsne.memory_model import check_memory
from laptsne.transform import Network
from laptsne.transform.placement import MAX_PERPLEXITY, settled

Array = NDArray[Any]

_N_NEIGHBORS = int(3 * MAX_PERPLEXITY)  # that tell the place of a row
_ROUNDS = 2  # in which rows are placed by the others that have places


class LandmarkLaptSNE(LaptSNE):
    """LaptSNE for large data: the paper's Algorithm 2.

    k-means finds centres, the data points nearest to them are the landmarks, LaptSNE makes a map of these, and every
    point is placed in it as :meth:`LaptSNE.transform` places new points. Beyond the paper, each landmark stands for the
    points around it: its affinities are theirs together, and points are placed by all the points that have places.

    ``fit`` and ``transform`` take arrays, memory-mapped ones among them, of which only blocks of rows are read at a
    time; Dask arrays, whose blocks stay where they are; and iterators of blocks of rows. The result does not depend on
    how the rows are cut into blocks.

    Parameters
    ----------
    n_landmarks : int, default=1000
        Number of centres; at most as many landmarks. k-means sees twenty rows for each, or 100,000 if that is more.
    **settings
        All parameters of :class:`LaptSNE`. The metric must be one of features; k-means is Euclidean.

    Attributes
    ----------
    landmarks_ : array of shape (n_landmarks_,)
        Numbers of the rows that are landmarks.
    landmark_embedding_ : array of shape (n_landmarks_, n_components)
        Their map.
    embedding_ : array of shape (n_samples, n_components)
        The map of all rows; a Dask array, not computed yet, where X was one; none where X was an iterator.

    All other attributes are those of :class:`LaptSNE` for the map of the landmarks.

    Examples
    --------
    >>> import numpy as np
    >>> from laptsne import LandmarkLaptSNE
    >>> X = np.random.default_rng(0).normal(size=(2000, 5))
    >>> LandmarkLaptSNE(n_landmarks=200, max_iter=100, random_state=0).fit_transform(X).shape
    (2000, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LaptSNE._parameter_constraints,
        "n_landmarks": [Interval(Integral, 2, None, closed="left")],
    }
    _not_saved: ClassVar[set[str]] = LaptSNE._not_saved | {"embedding_"}

    def __init__(self, n_landmarks: int = 1000, **settings: Any) -> None:
        super().__init__(**settings)
        self.n_landmarks = n_landmarks

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the landmarks of X, make their map, and place all rows in it.

        Parameters
        ----------
        X : array, Dask array, or iterator of arrays
            The data, of shape (n_samples, n_features), or blocks of its rows.
        y : ignored

        Returns
        -------
        self : LandmarkLaptSNE
        """
        self._check_parameters(self.n_landmarks)
        seed = int(check_random_state(self.random_state).randint(2**31))
        sampler = Sampler.of(self.n_landmarks, seed)
        if is_dask(X):
            X = rows_of(X)
            self._require_rows(X.shape[0])
            parts = DaskParts.sampled(X, sampler)
            landmarks = find_landmarks(parts, self.n_landmarks, parts.n_sampled, seed)
            fitted = parts.on_one_worker(_fitted, clone(self), landmarks)
            self.__dict__.update(fitted.__dict__)
            self.embedding_ = self.transform(X)
            return self
        blocks = _blocks(X)
        sample, n_rows = sampler.sample(_checked(blocks))
        self._require_rows(n_rows)
        part = OnePart(sample, self.n_jobs)
        _fitted(self, find_landmarks(part, self.n_landmarks, sample.indices.size, seed), sample)
        if _is_array(X):
            if hasattr(X, "columns"):
                validate_data(self, X, skip_check_array=True)  # the names of the features
            self.embedding_ = np.concatenate([self._transformed(block) for block in _blocks(X)])
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Find the landmarks of X, make their map, and return the places of all rows of X.

        Parameters
        ----------
        X : array or Dask array of shape (n_samples, n_features)
            The data.
        y : ignored

        Returns
        -------
        Y : array or Dask array of shape (n_samples, n_components)
        """
        if not (is_dask(X) or _is_array(X)):
            raise ValueError(
                "X: an iterator of blocks is read only once; call fit with it, and transform with another one."
            )
        return self.fit(X).embedding_

    def transform(self, X: Any) -> Any:
        """Place points in the map of the landmarks.

        Parameters
        ----------
        X : array, Dask array, or iterator of arrays
            Points, of shape (n_points, n_features), or blocks of them.

        Returns
        -------
        Y : array or Dask array of shape (n_points, n_components), or iterator of such blocks
        """
        check_is_fitted(self)
        if is_dask(X) or _is_array(X):
            return super().transform(X)
        return (self._transformed(block) for block in _checked(X))

    @property
    def _n_features_out(self) -> int:
        return int(self.landmark_embedding_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    def _check_parameters(self, n_samples: int) -> None:
        super()._check_parameters(n_samples)
        if self._is_pairwise:
            raise ValueError(f"metric={self.metric!r}: LandmarkLaptSNE needs features, for its k-means; use LaptSNE.")
        if self.n_neighbors == "all":
            raise ValueError(
                "n_neighbors='all' needs all pairs of the rows that k-means sees; give a number, or 'auto'."
            )
        gaussian = self.kernel == "gaussian" or isinstance(self.kernel, Gaussian)
        if gaussian and self.out_of_sample == "placement":
            raise ValueError(
                f"out_of_sample='placement' needs kernel='student', got kernel={self.kernel!r}; "
                "use out_of_sample='network'."
            )

    def _require_rows(self, n_rows: int) -> None:
        if self.n_landmarks > n_rows:
            raise ValueError(
                f"n_landmarks={self.n_landmarks} is more than the {n_rows} rows of X; lower it, or use LaptSNE."
            )


def _with_settings(own: Any, settings: Any) -> inspect.Signature:
    """The signature of ``own`` with the parameters of ``settings`` in place of its keywords."""
    first = [p for p in inspect.signature(own).parameters.values() if p.kind is not p.VAR_KEYWORD]
    others = list(inspect.signature(settings).parameters.values())[1:]
    return inspect.Signature([*first, *(p.replace(kind=p.KEYWORD_ONLY) for p in others)])


# scikit-learn, help() and editors read the parameters here.
setattr(LandmarkLaptSNE.__init__, "__signature__", _with_settings(LandmarkLaptSNE.__init__, LaptSNE.__init__))  # noqa: B010


def _fitted(model: LandmarkLaptSNE, landmarks: Rows, *parts: Rows) -> LandmarkLaptSNE:
    """The model with its map of the landmarks, and places in it for all rows that k-means saw."""
    sample = joined(parts)
    rows = np.flatnonzero(np.isin(sample.indices, landmarks.indices))
    n_clusters = 1 if isinstance(model.n_clusters, str) else model.n_clusters
    if len(rows) <= n_clusters:
        raise ValueError(
            f"n_landmarks={model.n_landmarks} gave only {len(rows)}, as rows of X are nearly equal: too few for a map. "
            "Use LaptSNE, or a lower n_clusters."
        )
    X = validate_data(model, sample.values, dtype=[np.float64, np.float32], order="C", ensure_min_samples=2)
    check_memory(model._demand(X), model)
    random_state = check_random_state(model.random_state)
    model.perplexity_ = model._perplexity(len(X))
    with Workers(model.n_jobs) as workers:
        options = {"metric": model.metric, "metric_params": model.metric_params, "workers": workers}
        index = NeighborIndex(X[rows], n_neighbors=min(_N_NEIGHBORS, len(rows)), **options)
        found = zip(*(index.search(X[batch], workers) for batch in row_batches(X)), strict=True)
        around = [np.concatenate(part) for part in found]
        P, nearest = _coarse_affinities(X, rows, around[0][:, 0], model, **options)
        potential = model._fit_affinities(X[rows], P, random_state, workers).potential
        model.landmarks_, model.landmark_embedding_ = sample.indices[rows], model.embedding_
        del model.embedding_
        if potential is None:
            model._mapping = Network.trained(X[rows], model.landmark_embedding_, random_state)
            return model
        if isinstance(potential, LazyPotential):
            potential = potential.compute(model.landmark_embedding_, workers)
        # First by the landmarks around them, then by the nearest of all rows that now have places.
        Y = model.landmark_embedding_
        for indices, distances in (around, *[nearest] * _ROUNDS):
            Y = settled(indices, distances, MAX_PERPLEXITY, Y, potential, workers)
            Y[rows] = model.landmark_embedding_
    Y = Y.astype(X.dtype)
    model._mapping = model._mapping_of(X, Y, potential, random_state)
    return model


def _affinities(X: Array, model: LandmarkLaptSNE, **options: Any) -> tuple[Any, tuple[Array, Array]]:
    """Affinities of rows, and the neighbours that tell their places."""
    graph = distance_graph(X, model.perplexity_, model.n_neighbors, **options)
    nearest = _nearest(graph, _N_NEIGHBORS)
    return graph_affinities(graph, model.perplexity_, options["workers"]), nearest


def _nearest(graph: Any, n_neighbors: int) -> tuple[Array, Array]:
    """Indices and distances of the nearest neighbours in a graph, nearest first."""
    parts = [part.reshape(graph.shape[0], -1) for part in (graph.indices, graph.data)]
    found = [np.empty_like(part[:, :n_neighbors]) for part in parts]
    for rows in row_batches(parts[0]):
        order = np.argsort(parts[1][rows], axis=1, kind="stable")[:, :n_neighbors]
        for near, part in zip(found, parts, strict=True):
            near[rows] = np.take_along_axis(part[rows], order, axis=1)
    return found[0], found[1]


def _coarse_affinities(
    X: Array, rows: Array, label: Array, model: LandmarkLaptSNE, **options: Any
) -> tuple[Any, tuple[Array, Array]]:
    """Affinities of the rows that are landmarks: of all rows X nearest to each, together. And the neighbours of all."""
    P, nearest = _affinities(X, model, **options)
    P = scipy.sparse.csr_matrix((P.data, label[P.indices], P.indptr), (len(X), len(rows)))
    belongs = scipy.sparse.csc_matrix((np.ones(len(X), P.dtype), label, np.arange(len(X) + 1)), (len(rows), len(X)))
    coarse = belongs.tocsr() @ P
    del P
    coarse.setdiag(0)
    if (coarse.sum(axis=1) == 0).any():  # where rows have no neighbours but those of the same landmark
        coarse = coarse + _affinities(X[rows], model, **options)[0]
    return joint_affinities(coarse, perplexity=model.perplexity_, metric="affinities"), nearest


def _is_array(X: Any) -> bool:
    """Whether X is the data themselves, not blocks of them."""
    if isinstance(X, list | tuple):
        return not (len(X) and getattr(X[0], "ndim", 0) == 2)
    return not isinstance(X, Iterator)


def _blocks(X: Any) -> Iterable[Array]:
    """Blocks of rows."""
    if scipy.sparse.issparse(X):
        raise ValueError(
            "X is sparse, and LandmarkLaptSNE needs dense data; reduce it first, for instance with "
            "sklearn.decomposition.TruncatedSVD."
        )
    if not _is_array(X):
        return X  # type: ignore[no-any-return]
    rows = X if hasattr(X, "shape") else np.asarray(X)
    if len(rows.shape) != 2:
        raise ValueError(f"Expected 2D array, got an array of shape {rows.shape}; rows are points, columns features.")
    batches = row_batches(rows)
    rows = rows.iloc if hasattr(rows, "iloc") else rows
    return (rows[batch] for batch in batches)


def _checked(blocks: Iterable[Any]) -> Iterator[Array]:
    """Blocks as arrays of numbers, all with one number of features; an error says which block is wrong."""
    n_features = None
    for number, block in enumerate(blocks):
        try:
            rows = check_array(block, dtype=[np.float64, np.float32], ensure_min_samples=0)
        except (ValueError, TypeError) as error:
            raise type(error)(f"Block {number} of X: {error}") from error
        if n_features not in (None, rows.shape[1]):
            raise ValueError(f"Block {number} of X has {rows.shape[1]} features, and those before it {n_features}.")
        n_features = rows.shape[1]
        yield rows
