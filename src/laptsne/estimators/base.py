"""What all estimators share: the course of a fit, new points, evidence, files."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils import check_array, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from laptsne._runtime.stacked_rows import stacked_rows
from laptsne._runtime.threads import Workers
from laptsne.clusters.contrasts import FeatureTable, distinguishing_features, nearest_clusters
from laptsne.clusters.linkage import ClusterTree
from laptsne.clusters.table import ClusterTable, evidence
from laptsne.estimators.distributed import is_dask, mapped
from laptsne.fitted_map import CHECKS, FittedMap, read_model
from laptsne.graph.distances import is_pairwise
from laptsne.graph.neighbors import check_file, first_copies, first_not_finite, neighbor_graph
from laptsne.graph.spectrum import MAX_CLUSTERS, laplacian_spectrum
from laptsne.memory import check_memory
from laptsne.methods import Fit, Method, fit
from laptsne.reliability import Reliability
from laptsne.settings import callbacks_of, has_method
from laptsne.transform.network import Network

# Parameters that a fitted model does not need and that may be arbitrary objects: saved as None.
_DROPPED = {"callbacks", "checkpoint"}
# The largest part of a model, which only a further fit needs, and what the map holds.
_NOT_SAVED = {"affinities_", "fitted_map_", "embedding_", "labels_"}
_ON_DEMAND = ("clusters_", "cluster_tree_", "data_eigenvalues_")

# Parameters of umap-learn and openTSNE that have another name here.
_NAMES_ELSEWHERE = {
    "precomputed_knn": "metric='precomputed' and fit((indices, distances))",
    "metric_kwds": "metric_params",
    "n_epochs": "max_iter",
    "n_iter": "max_iter",
    "initialization": "init",
    "negative_gradient_method": "method",
}


class MapEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Base class of the estimators; a subclass says which method its parameters stand for."""

    _prefix: ClassVar[str] = ""  # of the attributes that describe the points of affinities_

    reliability_: Reliability | None = None

    metric: Any
    n_jobs: int | None
    random_state: Any
    callbacks: Any
    checkpoint: Any
    verbose: bool
    n_components: int

    def __new__(cls, *args: Any, **settings: Any) -> Self:
        """Raise TypeError for a parameter by the name that it has in another library."""
        for name in _NAMES_ELSEWHERE.keys() & settings:
            raise TypeError(f"{cls.__name__} has no parameter {name!r}; use {_NAMES_ELSEWHERE[name]}.")
        created: Self = super().__new__(cls)
        return created

    def _store(self, parameters: dict[str, Any]) -> None:
        """Set the arguments of ``__init__``, its ``locals()``, as attributes."""
        self.__dict__.update({name: parameters[name] for name in self._get_param_names()})

    @abstractmethod
    def _method(self, X: Any) -> Method:
        """Return the method that the parameters stand for; raise ValueError if they do not work together, or for X."""

    @abstractmethod
    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute the embedding of X."""

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Compute the embedding of X and return it; see :meth:`fit`."""
        return self.fit(X).embedding_

    def fit_predict(self, X: Any, y: Any = None) -> NDArray[np.intp]:
        """Compute the embedding of X and return the cluster of each point, -1 for none; see :meth:`fit`."""
        return np.asarray(self.fit(X).labels_)

    def transform(self, X: Any) -> Any:
        """Embed new points in the fitted embedding, which does not change.

        Each point is embedded independently of the others. With ``out_of_sample="placement"``, a row of the training
        data gets its position. Not available with ``metric="affinities"``, nor for placement with a Gaussian kernel.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_points, n_features)
            New points; with ``metric="precomputed"`` their distances to the training data, of shape
            (n_points, n_samples). Blocks of a Dask array are embedded where they are.

        Returns
        -------
        Y : array of shape (n_points, n_components)
            A Dask array if X is one.
        """
        check_is_fitted(self)
        if is_dask(X):
            return mapped(X, self.fitted_map_, self.n_jobs)
        rows = self._new(X)
        return self.fitted_map_.place(rows, self.n_jobs)

    @available_if(lambda self: has_method("support", self.get_params(deep=False)))  # type: ignore[untyped-decorator]
    def support(self, X: Any) -> NDArray[np.float64]:
        """Compare the distances of new points to their neighbours in the training data with distances within the data.

        The support of a point is the share of training points that are at least as isolated as it is: uniform between
        0 and 1 for new points of the distribution of the training data, and close to 0 for points unlike them, which
        :meth:`transform` places nevertheless. Not available with ``metric="affinities"``, with
        ``out_of_sample="network"``, which keeps no data, nor with a Gaussian kernel.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_points, n_features)
            New points, as in :meth:`transform`.

        Returns
        -------
        support : array of shape (n_points,)
        """
        rows = self._new(X)
        return self.fitted_map_.support(rows, self.n_jobs)

    @available_if(lambda self: has_method("predict", self.get_params(deep=False)))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the cluster of new points: that of their neighbours in the training data.

        The neighbours vote with their affinities. A point has the label -1 if the vote is for -1, or if its
        :meth:`support` is less than 0.01. Available if :meth:`support` is.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_points, n_features)
            New points, as in :meth:`transform`.

        Returns
        -------
        labels : array of shape (n_points,)
        """
        rows = self._new(X)
        return self.fitted_map_.predict(rows, self.n_jobs)

    @available_if(lambda self: self._has_shares())  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the share of each cluster in the affinities of new points to the training data.

        Rows sum to less than 1 if some neighbours are in no cluster. Available if :meth:`predict` is, for dense data.

        Parameters
        ----------
        X : array of shape (n_points, n_features)
            New points, as in :meth:`transform`.

        Returns
        -------
        shares : array of shape (n_points, n_clusters_)
        """
        rows = self._new(X)
        return self.fitted_map_.predict_proba(rows, self.n_jobs)

    @cached_property
    def clusters_(self) -> ClusterTable:
        """Evidence for each cluster, computed when it is first read."""
        return self._evidence[0]

    @cached_property
    def cluster_tree_(self) -> ClusterTree:
        """How the clusters are nested, with the evidence for every split, computed when it is first read."""
        return self._evidence[1]

    @cached_property
    def _evidence(self) -> tuple[ClusterTable, ClusterTree]:
        check_is_fitted(self)
        first = None if self._fit_data is None else first_copies(self._fit_data)
        with Workers(self.n_jobs) as workers:
            P = self._known_affinities(workers)
            return evidence(getattr(self, f"{self._prefix}labels_"), P, workers, first)

    def _has_shares(self) -> bool:
        # What takes sparse data and has predict_proba counts as a classifier in scikit-learn.
        if scipy.sparse.issparse(getattr(getattr(self, "fitted_map_", None), "data", None)):
            raise AttributeError("predict_proba is for dense data; use fitted_map_.predict_proba.")
        return has_method("predict", self.get_params(deep=False))

    @property
    def cluster_layers_(self) -> NDArray[np.int64]:
        """Nested labels from fine, ``labels_``, to coarse, shape (n_layers, n_samples); -1 for none."""
        return self.cluster_tree_.layers(self.labels_)

    @cached_property
    def data_eigenvalues_(self) -> NDArray[np.float64]:
        """Smallest eigenvalues of the Laplacian of the affinities, for the eigengap heuristic."""
        with Workers(self.n_jobs) as workers:
            return laplacian_spectrum(self._known_affinities(workers), MAX_CLUSTERS + 1, workers).eigenvalues

    def diagnose(self, *, length: float | None = None) -> Reliability:
        """Compute how far the position of each point can be relied on, and store it as ``reliability_``.

        :class:`laptsne.reliability.Reliability` defines the score of a point. It is for LaptSNE with the Student kernel
        and ``out_of_sample="placement"``, and features in "euclidean", "sqeuclidean", "cosine" or "correlation";
        otherwise it is None, and ``reliability_.reason`` says why.

        Parameters
        ----------
        length : float, optional
            By how much the data of a point are nudged. By default half the median distance to the neighbour whose rank
            is the perplexity.

        Returns
        -------
        reliability : Reliability
        """
        check_is_fitted(self)
        if length is not None and not (np.isfinite(length) and length > 0):
            raise ValueError(f"length={length!r} must be a positive number; leave it out for the default.")
        self.reliability_ = self.fitted_map_.reliability(length, self.n_jobs)
        return self.reliability_

    def distinguish(
        self, X: Any = None, feature_names: Sequence[str] | None = None, *, max_features: int | None = 20
    ) -> FeatureTable:
        """Rank the features of each cluster against its nearest sibling in the tree and against all other points.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Features of the training data, not necessarily those of the embedding. By default the data of the fit,
            if the model keeps them.
        feature_names, max_features
            As in :func:`laptsne.clusters.distinguishing_features`.

        Returns
        -------
        table : FeatureTable
            The most distinguishing features first; empty without at least one cluster and other points.
        """
        check_is_fitted(self)
        if X is None:
            X = self._fit_data
            if X is None:
                raise ValueError("X is needed: this model does not keep the data of its fit.")
            feature_names = getattr(self, "feature_names_in_", None) if feature_names is None else feature_names
        X = X if hasattr(X, "shape") else np.asarray(X)
        if X.shape[0] != len(self.labels_):
            raise ValueError(f"X has {X.shape[0]} rows, but labels_ has {len(self.labels_)}; give the rows of the fit.")
        labels, Y = (getattr(self, f"{self._prefix}{name}") for name in ("labels_", "embedding_"))
        nearest = nearest_clusters(labels, getattr(self, "affinities_", None), Y)
        options: dict[str, Any] = {"nearest": nearest, "feature_names": feature_names, "n_jobs": self.n_jobs}
        return distinguishing_features(X, self.labels_, max_features=max_features, **options)

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write the fitted model to a file of arrays and JSON, without pickle.

        ``affinities_``, ``callbacks``, and a ``random_state`` that is not a number are not saved. With
        ``out_of_sample="placement"``, the file contains the data. Its size in bytes is returned.
        """
        check_is_fitted(self)
        parameters = {
            name: None if name in _DROPPED or isinstance(value, np.random.RandomState | np.random.Generator) else value
            for name, value in self.get_params(deep=False).items()
        }
        if hasattr(self, "affinities_") and self._fit_data is None:
            for name in _ON_DEMAND:  # what cannot be computed after loading is computed now
                getattr(self, name)
        fitted = {name: value for name, value in vars(self).items() if _is_fitted(name) and name not in _NOT_SAVED}
        return self.fitted_map_.to_file(path, **{"class": type(self).__name__}, parameters=parameters, fitted=fitted)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model written by :meth:`save`, without running code from the file.

        ValueError is raised if the file is damaged, of a newer version, of another format or of another class.
        """
        import laptsne  # noqa: PLC0415  its classes import this module

        fitted_map, content = read_model(path)
        if "class" not in content:
            raise ValueError(f"{path} holds a map without an estimator; read it with FittedMap.from_file.")
        kind, kinds = content["class"], {cls.__name__: cls}
        if cls is laptsne.LaptSNE:
            kinds |= {"LandmarkLaptSNE": laptsne.LandmarkLaptSNE, "LapUMAP": laptsne.LapUMAP}
        if kind not in kinds:
            raise ValueError(f"{path} holds a model of class {kind!r}; load it with laptsne.{kind}.load.")
        try:
            # Not taken from a file even if present: the next fit would write to a checkpoint path of the file's choice.
            given = {name: value for name, value in content["parameters"].items() if name not in _DROPPED}
            model: Self = kinds[kind](**given)
            for name, value in content["fitted"].items():
                if not _is_fitted(name):
                    raise ValueError(f"{path}: {name!r} is not the name of a fitted attribute.")
                if value is not None or name not in _ON_DEMAND:
                    setattr(model, name, value)
            model._validate_params()
            model._take_over(fitted_map)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path}: parts of the model are missing or of the wrong type ({error!r}).") from error
        return model

    def _take_over(self, fitted_map: FittedMap) -> None:
        """Set the attributes that are those of a map read from a file; raise ValueError if others do not fit it."""
        self.fitted_map_, self.embedding_, self.labels_ = fitted_map, fitted_map.embedding, fitted_map.labels
        if self.embedding_.shape[1] != self.n_components:
            raise ValueError(f"embedding_ has not n_components={self.n_components} columns")
        if fitted_map.obstacle is None and self.n_features_in_ != fitted_map.n_features:
            raise ValueError(f"n_features_in_ is {self.n_features_in_}, but the map has {fitted_map.n_features}")

    def _descended(self, method: Method, X: Any, P: Any, random_state: Any, workers: Workers) -> Fit:
        """Compute the embedding of X from its affinities, and store what describes it."""
        shown: dict[str, Any] = {"callbacks": callbacks_of(self.callbacks), "verbose": bool(self.verbose)}
        found = fit(method, X, P, random_state, workers, checkpoint=self.checkpoint, **shown)
        result = found.result
        self.affinities_, self.perplexity_ = found.affinities, method.metric.perplexity
        if found.data_eigenvalues is not None:
            self.data_eigenvalues_ = found.data_eigenvalues
        self.n_iter_ = result.n_iter
        self.labels_, self.n_clusters_ = found.labels, found.n_clusters
        self.contraction_, self.contraction_width_ = result.contraction, result.contraction_width
        self.eigenvalues_, self.eigenvalue_residual_ = result.eigenvalues, result.residual
        setattr(self, f"{method.loss_name.lower().replace(' ', '_')}_", result.loss)
        self.objective_ = result.objective
        self.reliability_ = None
        return found

    def _mapped(self, method: Method, X: Any, found: Fit, random_state: Any) -> FittedMap:
        """Return the map of a fit, with the network trained, if there is one; not after an interrupt."""
        fitted = FittedMap.of(method, X, found)
        if getattr(self, "out_of_sample", "placement") == "placement":
            return fitted
        network = None if found.result.interrupted else Network.trained(X, fitted.embedding, random_state)
        return replace(fitted, data=None, network=network)

    def _raise_if_interrupted(self, found: Fit) -> None:
        if found.result.interrupted:
            when = f"fit was interrupted at iteration {found.result.n_iter}"
            raise KeyboardInterrupt(f"{when}; {self._prefix}embedding_ holds the embedding at that point.")

    @contextmanager
    def _unchanged_by_failure(self) -> Iterator[None]:
        """Leave the estimator as it was if an error is raised: its attributes would not belong together."""
        before = dict(vars(self))
        for name in (*_ON_DEMAND, "_evidence"):  # those of the fit before
            self.__dict__.pop(name, None)
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _validated(self, X: Any, **options: Any) -> Any:
        check_file(X)
        try:
            X = validate_data(self, stacked_rows(X), **CHECKS, **options)
        except ValueError as error:
            where = "" if (row := first_not_finite(X)) is None else f", row {row:,},"
            raise ValueError(str(error).replace("Input X contains", f"Input X{where} contains")) from None
        return scipy.sparse.csr_matrix(X) if scipy.sparse.issparse(X) else X  # sparse arrays lack some methods

    def _new(self, X: Any) -> Any:
        """Validate new points."""
        check_is_fitted(self)
        # A step of the preprocessing may replace missing values.
        finite = True if self.fitted_map_.preprocessing is None else "allow-nan"
        return self._validated(X, reset=False, ensure_all_finite=finite)

    def _known_affinities(self, workers: Workers) -> Any:
        """Return the affinities of the data, computed again if the model was read from a file."""
        check_is_fitted(self)
        if hasattr(self, "affinities_"):
            return self.affinities_
        if self._fit_data is None:
            raise AttributeError("The file of this model has neither affinities_ nor data; fit the model again.")
        return self._method(self._fit_data).graph(self._fit_data, workers)

    @property
    def _fit_data(self) -> Any:
        """The data of the affinities, None if the model does not keep them or is one of landmarks."""
        return None if self.fitted_map_.is_sample else self.fitted_map_.data

    @property
    def _n_features_out(self) -> int:
        return int(self.fitted_map_.embedding.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_pairwise(self.metric)
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _is_fitted(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


# After the class: set_output would wrap a conditional method into one that is always there.
_if_available = available_if(lambda self: has_method("transform", self.get_params(deep=False)))
MapEstimator.transform = _if_available(MapEstimator.transform)  # type: ignore[method-assign]


class UpdatableEstimator(MapEstimator):
    """Base class of the estimators that embed all points together, and can do so near earlier positions."""

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
        return self._fitted(X)

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def update(self, X: Any, positions: ArrayLike | None = None, *, weight: float = 50) -> Self:
        r"""Compute the embedding of X again, with points near their earlier positions, so that the maps are comparable.

        Points with a position start there, and others at the mean of their neighbours. The objective has the term
        :math:`\frac{w}{2n} \sum_i \|y_i - y_i'\|^2 / R^2` over the points with a position :math:`y_i'`, where R is the
        RMS radius of these, as in dynamic t-SNE (Rauber, Falcao and Telea, 2016). All other points are free, and so are
        the clusters: rows that are not in X leave the map, and new clusters can appear. ``objective_`` lacks the term.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            All data, as in :meth:`fit`: rows of the last fit that are to stay, and new ones, in any order.
        positions : array of shape (n_samples, n_components), optional
            Earlier position of each row, NaN for new ones. By default, rows that equal rows of the last fit have their
            position in ``embedding_``.
        weight : float, default=50
            The weight w. With the default, the median point moves by less than 10 % of R on ordinary data.
        """
        if not (np.isfinite(weight) and weight > 0):
            raise ValueError(
                f"weight={weight!r} must be a positive number; use fit for a map without earlier positions."
            )
        if positions is None:
            check_is_fitted(self)
        return self._fitted(X, positions, weight)

    def _fitted(self, X: Any, positions: ArrayLike | None = None, weight: float = 0.0) -> Self:
        if isinstance(X, tuple) and self.metric == "precomputed":
            if len(X) != 2:
                raise ValueError(f"X: expected a tuple (indices, distances), got one of {len(X)} elements.")
            X = neighbor_graph(*X)
        with self._unchanged_by_failure():
            X = self._validated(X, ensure_min_samples=2)
            method = self._method(X)
            if weight:
                method = method.holding(self._earlier(X, positions), weight)
            check_memory(self.get_params(deep=False), X)
            random_state = check_random_state(self.random_state)
            with Workers(self.n_jobs, verbose=bool(self.verbose)) as workers:
                # The affinities are not bound to a name here, which would keep them beside their reordered copy.
                found = self._descended(method, X, method.graph(X, workers), random_state, workers)
            self.fitted_map_ = self._mapped(method, X, found, random_state)
            self.embedding_ = self.fitted_map_.embedding
        self._raise_if_interrupted(found)
        return self

    def _earlier(self, X: Any, positions: ArrayLike | None) -> NDArray[np.float64]:
        """Return the earlier position of each row of X, NaN for none; raise ValueError if no row has one."""
        shape, remedy = (X.shape[0], self.n_components), "pass positions, with NaN for new rows"
        if positions is None:
            data, known = self.fitted_map_.data, self.fitted_map_.embedding
            if data is None:
                raise ValueError(f"This model keeps no data in which to find rows of X; {remedy}.")
            if X.shape[1] != data.shape[1]:
                raise ValueError(f"X has {X.shape[1]} features, and the last fit had {data.shape[1]}; {remedy}.")
            both = [data, X.astype(data.dtype, copy=False)]
            if any(map(scipy.sparse.issparse, both)):
                rows = scipy.sparse.vstack([scipy.sparse.csr_matrix(part) for part in both], "csr")
            else:
                rows = np.concatenate(both)
            first = first_copies(rows)[len(known) :]
            Y = np.where(first[:, None] < len(known), known[np.minimum(first, len(known) - 1)], np.nan)
        else:
            Y = check_array(positions, dtype=np.float64, ensure_all_finite="allow-nan", input_name="positions")
        if Y.shape != shape:
            raise ValueError(f"positions has shape {Y.shape}, but (n_samples, n_components) is {shape}; {remedy}.")
        Y = np.where(np.isnan(Y).any(axis=1, keepdims=True), np.nan, Y)
        if np.isnan(Y).all():
            where = "has a position" if positions is not None else "equals a row of the last fit"
            raise ValueError(f"No row of X {where}, so that there is nothing to hold; {remedy}, or use fit.")
        return np.asarray(Y, dtype=np.float64)
