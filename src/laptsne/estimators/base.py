"""What all estimators share: the course of a fit, new points, evidence, files."""

from __future__ import annotations

import html
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from laptsne._runtime.colours import MISSING, PALETTE
from laptsne._runtime.stacked_rows import stacked_rows
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.clusters.contrasts import FeatureTable, distinguishing_features, nearest_clusters
from laptsne.clusters.table import ClusterTable, cluster_table
from laptsne.estimators.distributed import is_dask, mapped
from laptsne.fitted_map import CHECKS, FittedMap, read_model
from laptsne.graph.distances import is_pairwise
from laptsne.graph.neighbors import neighbor_graph
from laptsne.memory import check_memory
from laptsne.methods import Fit, Method, data_eigenvalues, fit
from laptsne.reliability import Reliability
from laptsne.settings import callbacks_of, without_comparison, without_transform
from laptsne.transform import Network

# Parameters that a fitted model does not need and that may be arbitrary objects: saved as None.
_DROPPED = {"callbacks", "checkpoint"}

# Of the thumbnail in notebooks: pixels per side and per point, and points, evenly drawn from all.
_SIDE, _WIDTH, _MAX_POINTS = 200, 3, 1000


class MapEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Base class of the estimators; a subclass says which method its parameters stand for."""

    _kind: ClassVar[str]  # of the memory that a fit needs
    _loss_attribute: ClassVar[str]
    # The largest part of a model, which only a further fit needs, and what the map holds.
    _not_saved: ClassVar[set[str]] = {"affinities_", "fitted_map_", "embedding_", "labels_"}

    embedding_: NDArray[Any]
    labels_: NDArray[Any]
    n_clusters_: int
    fitted_map_: FittedMap
    reliability_: Reliability | None = None
    _clusters: ClusterTable | None = None
    _data_eigenvalues: NDArray[np.float64] | None = None

    metric: Any
    n_jobs: int | None
    random_state: Any
    callbacks: Any
    checkpoint: Any
    verbose: bool
    n_components: int

    def _store(self, parameters: dict[str, Any]) -> None:
        """Set the arguments of ``__init__``, its ``locals()``, as attributes."""
        self.__dict__.update({name: parameters[name] for name in self._get_param_names()})

    @abstractmethod
    def _method(self, X: Any) -> Method:
        """Return the method that the parameters stand for, resolved for X."""

    @abstractmethod
    def _check_parameters(self, n_samples: int) -> None:
        """Raise an error for parameters that do not work together, or not with this number of samples."""

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
            check_memory(self.get_params(deep=False), self._kind, X)
            random_state = check_random_state(self.random_state)
            method = self._method(X)
            with Workers(self.n_jobs) as workers:
                # The affinities are not bound to a name here, which would keep them beside their reordered copy.
                found = self._descended(method, X, method.graph(X, workers), random_state, workers)
            self.fitted_map_ = self._mapped(method, X, found, random_state)
            self.embedding_ = self.fitted_map_.embedding
        self._raise_if_interrupted(found)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Compute the embedding of X and return it; see :meth:`fit`."""
        return np.asarray(self.fit(X).embedding_)

    def fit_predict(self, X: Any, y: Any = None) -> NDArray[np.intp]:
        """Compute the embedding of X and return the cluster of each point, -1 for none; see :meth:`fit`."""
        return np.asarray(self.fit(X).labels_)

    def transform(self, X: Any) -> Any:
        """Embed new points in the fitted embedding, which does not change.

        Each point is embedded independently of the others in X. With ``out_of_sample="placement"``, a row equal to one
        of the training data gets its position. Not available with ``metric="affinities"``, nor with a Gaussian kernel
        and ``out_of_sample="placement"``.

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

    @available_if(lambda self: self._can(without_comparison))  # type: ignore[untyped-decorator]
    def support(self, X: Any) -> NDArray[np.float64]:
        """Compare the distances of new points to their neighbours in the training data with distances within the data.

        The support of a point is the share of training points that are at least as isolated as it is; see
        :class:`laptsne.transform.support.Support`. It is uniform between 0 and 1 for new points of the distribution of
        the training data, and close to 0 for points unlike them, which :meth:`transform` places nevertheless. A row
        equal to one of the training data has the support of the latter without itself. Not available with
        ``metric="affinities"``, with ``out_of_sample="network"``, which keeps no data, nor with a Gaussian kernel.

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

    @available_if(lambda self: self._can(without_comparison))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the cluster of new points: that of their neighbours in the training data.

        The neighbours vote with their affinities. A point has the label -1 if the vote is for -1, or if its
        :meth:`support` is less than 0.01. A row equal to one of the training data has the label of the latter.
        Available if :meth:`support` is.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_points, n_features)
            The points, as in :meth:`support`.

        Returns
        -------
        labels : array of shape (n_points,)
        """
        rows = self._new(X)
        return self.fitted_map_.predict(rows, self.n_jobs)

    @property
    def clusters_(self) -> ClusterTable:
        """Evidence for each cluster, computed when it is first read."""
        check_is_fitted(self)
        if self._clusters is None:
            with Workers(self.n_jobs) as workers:
                P = self._known_affinities("clusters_", workers)
                self._clusters = cluster_table(self._clustered_labels, P, workers)
        return self._clusters

    @clusters_.setter
    def clusters_(self, table: ClusterTable | None) -> None:
        self._clusters = table

    @property
    def data_eigenvalues_(self) -> NDArray[np.float64]:
        """Smallest eigenvalues of the Laplacian of the affinities, computed when they are first read."""
        check_is_fitted(self)
        if self._data_eigenvalues is None:
            with Workers(self.n_jobs) as workers:
                P = self._known_affinities("data_eigenvalues_", workers)
                self._data_eigenvalues = data_eigenvalues(P, self.n_components, workers)
        return self._data_eigenvalues

    @data_eigenvalues_.setter
    def data_eigenvalues_(self, values: NDArray[np.float64]) -> None:
        self._data_eigenvalues = values

    def diagnose(self, *, length: float | None = None) -> Reliability:
        """Compute how far the position of each point can be relied on, and store it as ``reliability_``.

        A score per point, in linear time; :class:`laptsne.reliability.Reliability` defines it. It is None, and
        ``reliability_.reason`` says why, for a loss other than that of t-SNE, with a Gaussian kernel, without features
        to be nudged, that is with ``metric="precomputed"``, ``metric="affinities"`` or ``out_of_sample="network"``, and
        with a metric other than "euclidean", "sqeuclidean", "cosine" and "correlation".

        Parameters
        ----------
        length : float, optional
            By how much the data of a point are nudged, in their units. By default half the median distance to the
            neighbour whose rank is the perplexity.

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
        self, X: Any, feature_names: Sequence[str] | None = None, *, max_features: int | None = 20
    ) -> FeatureTable:
        """Rank the features of each cluster against its nearest cluster and against all other points.

        See :func:`laptsne.clusters.distinguishing_features`, and :func:`laptsne.clusters.selection_features` for an
        arbitrary selection of points.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Features of the training data. They may be others than those of the embedding, such as genes instead of
            principal components. Sparse data are not made dense.
        feature_names : sequence of str, optional
            Names of the features; by default the columns of a data frame, or "x0", "x1" and so on.
        max_features : int or None, default=20
            Features per comparison; None for all.

        Returns
        -------
        table : FeatureTable
            The most distinguishing features first; empty without at least one cluster and other points.
        """
        check_is_fitted(self)
        X = X if hasattr(X, "shape") else np.asarray(X)
        if X.shape[0] != len(self.labels_):
            raise ValueError(f"X has {X.shape[0]} rows, but labels_ has {len(self.labels_)}; give the rows of the fit.")
        P = getattr(self, "affinities_", None)
        nearest = nearest_clusters(self._clustered_labels, P, self._clustered_embedding)
        options: dict[str, Any] = {"feature_names": feature_names, "max_features": max_features, "n_jobs": self.n_jobs}
        return distinguishing_features(X, self.labels_, nearest=nearest, **options)

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write the fitted model to a file of arrays and JSON, without pickle.

        ``affinities_``, ``callbacks``, and a ``random_state`` that is not a number are not saved. The file contains the
        data if :meth:`transform` needs them, which is the case with ``out_of_sample="placement"``.

        An existing file is replaced atomically. The size of the file in bytes is returned.
        """
        check_is_fitted(self)
        parameters = {
            name: None if name in _DROPPED or isinstance(value, np.random.RandomState | np.random.Generator) else value
            for name, value in self.get_params(deep=False).items()
        }
        fitted = {name: value for name, value in vars(self).items() if name.endswith("_") and name[0] != "_"}
        fitted = {name: value for name, value in fitted.items() if name not in self._not_saved}
        lost = self.fitted_map_.data is None or self.fitted_map_.is_sample
        if lost and hasattr(self, "affinities_"):
            computed = {"clusters_": self.clusters_, "data_eigenvalues_": self.data_eigenvalues_}
        else:  # with the data, they can be computed after loading
            computed = {"clusters_": self._clusters, "data_eigenvalues_": self._data_eigenvalues}
        fitted |= {name: value for name, value in computed.items() if value is not None}
        return self.fitted_map_.to_file(path, **{"class": type(self).__name__}, parameters=parameters, fitted=fitted)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model written by :meth:`save`, without running code from the file.

        ValueError is raised if the file is damaged, of a newer version, of another format or of another class.
        """
        fitted_map, content = read_model(path)
        if "class" not in content:
            raise ValueError(f"{path} holds a map without an estimator; read it with FittedMap.from_file.")
        kind, kinds = content["class"], cls._loadable()
        if kind not in kinds:
            raise ValueError(f"{path} holds a model of class {kind!r}; load it with laptsne.{kind}.load.")
        try:
            # Not taken from a file even if present: the next fit would write to a checkpoint path of the file's choice.
            given = {name: value for name, value in content["parameters"].items() if name not in _DROPPED}
            model: Self = kinds[kind](**given)
            for name, value in content["fitted"].items():
                if not name.endswith("_") or name.startswith("_"):
                    raise ValueError(f"{path}: {name!r} is not the name of a fitted attribute.")
                setattr(model, name, value)
            model._validate_params()
            model._take_over(fitted_map)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path}: parts of the model are missing or of the wrong type ({error!r}).") from error
        return model

    @classmethod
    def _loadable(cls) -> dict[str, Any]:
        """Return the classes of which :meth:`load` reads the files."""
        return {cls.__name__: cls}

    def _take_over(self, fitted_map: FittedMap) -> None:
        """Set the attributes that are those of a map read from a file; raise ValueError if others do not fit it."""
        self.fitted_map_ = fitted_map
        self.embedding_, self.labels_ = fitted_map.embedding, fitted_map.labels
        self._check_widths()

    def _check_widths(self) -> None:
        if self.fitted_map_.embedding.shape[1] != self.n_components:
            raise ValueError(f"embedding_ has not n_components={self.n_components} columns")
        compares = self.fitted_map_.network is not None or self.fitted_map_.obstacle is None
        if compares and self.n_features_in_ != self.fitted_map_.n_features:
            raise ValueError(f"n_features_in_ is {self.n_features_in_}, but the map has {self.fitted_map_.n_features}")

    def _descended(self, method: Method, X: Any, P: Any, random_state: Any, workers: Workers) -> Fit:
        """Compute the embedding of X from its affinities, and store what describes it."""
        options: dict[str, Any] = {"checkpoint": self.checkpoint, "verbose": bool(self.verbose)}
        found = fit(method, X, P, random_state, workers, callbacks=callbacks_of(self.callbacks), **options)
        result = found.result
        self.affinities_, self._data_eigenvalues = found.affinities, found.data_eigenvalues
        self.perplexity_ = method.metric.perplexity
        self.n_iter_ = result.n_iter
        self.labels_, self.n_clusters_, self._clusters = found.labels, found.n_clusters, None
        self.contraction_, self.contraction_width_ = result.contraction, result.contraction_width
        self.eigenvalues_, self.eigenvalue_residual_ = result.eigenvalues, result.residual
        setattr(self, self._loss_attribute, result.loss)
        self.objective_ = result.objective
        self.reliability_ = None
        return found

    def _mapped(self, method: Method, X: Any, found: Fit, random_state: Any, *, keeps_data: bool = True) -> FittedMap:
        """Return the map of a fit, with the network trained, if there is one; not after an interrupt."""
        if getattr(self, "out_of_sample", "placement") == "placement":
            return FittedMap.of(method, X, found, keeps_data=keeps_data)
        Y = found.result.embedding.astype(X.dtype, copy=False)
        network = None if found.result.interrupted else Network.trained(X, Y, random_state)
        return FittedMap.of(method, X, found, network=network, keeps_data=False)

    def _raise_if_interrupted(self, found: Fit, attribute: str = "embedding_") -> None:
        if found.result.interrupted:
            when = f"fit was interrupted at iteration {found.result.n_iter}"
            raise KeyboardInterrupt(f"{when}; {attribute} holds the embedding at that point.")

    @contextmanager
    def _unchanged_by_failure(self) -> Iterator[None]:
        """Leave the estimator as it was if an error is raised: its attributes would not belong together."""
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _validated(self, X: Any, **options: Any) -> Any:
        X = validate_data(self, stacked_rows(X), **CHECKS, **options)
        return scipy.sparse.csr_matrix(X) if scipy.sparse.issparse(X) else X  # sparse arrays lack some methods

    def _new(self, X: Any) -> Any:
        """Validate new points."""
        check_is_fitted(self)
        # A step of the preprocessing may replace missing values.
        finite = True if self.fitted_map_.preprocessing is None else "allow-nan"
        return self._validated(X, reset=False, ensure_all_finite=finite)

    def _known_affinities(self, wanted: str, workers: Workers) -> Any:
        """Return the affinities of the data, computed again if the model was read from a file."""
        P = getattr(self, "affinities_", None)
        if P is not None:
            return P
        if self.fitted_map_.data is None or self.fitted_map_.is_sample:
            raise AttributeError(
                f"{wanted} needs affinities_, which the file of this model lacks; fit the model again, and read "
                f"{wanted} before it is saved."
            )
        return self._method(self.fitted_map_.data).graph(self.fitted_map_.data, workers)

    @property
    def _clustered_labels(self) -> NDArray[Any]:
        """Clusters of the points of ``affinities_``."""
        return self.labels_

    @property
    def _clustered_embedding(self) -> NDArray[Any]:
        """Positions of the points of ``affinities_``."""
        return self.embedding_

    def _can(self, obstacle: Callable[[dict[str, Any]], str | None]) -> bool:
        """Whether the parameters allow a method; raise an AttributeError that says why if not."""
        reason = obstacle(self.get_params(deep=False))
        if reason is not None:
            raise AttributeError(f"{reason}.")
        return True

    @property
    def _n_features_out(self) -> int:
        return int(self.fitted_map_.embedding.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_pairwise(self.metric)
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _repr_html_inner(self) -> str:
        return self._repr_mimebundle_()["text/html"]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        # A Dask array would have to be computed.
        if "text/html" in bundle and isinstance(getattr(self, "embedding_", None), np.ndarray):
            labels = self.labels_ if isinstance(self.labels_, np.ndarray) else None
            bundle["text/html"] = (
                _summary(type(self).__name__, self.embedding_, labels, self._figures()) + bundle["text/html"]
            )
        return bundle

    def _figures(self) -> list[str]:
        """Return the key figures of the model, as text."""
        clusters = "no evidence of clusters" if self.n_clusters_ <= 1 else f"{self.n_clusters_} clusters"
        loss = f"{self._loss_attribute.removesuffix('_').replace('_', ' ').replace('kl', 'KL')}"
        return [
            f"{clusters}, contraction {self.contraction_:.3g}",
            f"{loss} {getattr(self, self._loss_attribute):.3f}",
            f"{self.n_iter_} iterations",
        ]


# After the class: set_output would wrap a conditional method into one that is always there.
MapEstimator.transform = available_if(lambda self: self._can(without_transform))(MapEstimator.transform)  # type: ignore[method-assign]


def _summary(name: str, Y: Array, labels: Array | None, lines: list[str]) -> str:
    """Return the thumbnail of an embedding, in the colours of its clusters, beside a name and lines of text."""
    if labels is None or len(labels) != len(Y):  # those of landmarks
        labels = np.zeros(len(Y), int)
    drawn = np.linspace(0, len(Y) - 1, min(len(Y), _MAX_POINTS)).round().astype(int)
    shown = np.column_stack([Y, np.zeros(len(Y))])[drawn, :2]
    low, high = shown.min(axis=0), shown.max(axis=0)
    unit = (_SIDE - 3 * _WIDTH) / max(float((high - low).max()), 1e-30)
    places = _SIDE / 2 + (shown - (low + high) / 2) * [unit, -unit]  # rows of an image run downwards
    colours = np.where(labels < 0, MISSING, np.array(PALETTE)[labels % len(PALETTE)])[drawn]
    paths = ""
    for colour in np.unique(colours):
        points = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in places[colours == colour])
        paths += f'<path d="{points}" stroke="{colour}"/>'
    style = f'stroke-width="{_WIDTH}" stroke-linecap="round"'
    label = f'role="img" aria-label="Map of {len(Y):,} points"'
    text = "".join(f"<div>{html.escape(line)}</div>" for line in [f"{len(Y):,} points", *lines])
    return (
        '<div style="display: flex; gap: 16px; align-items: center; font: 13px/1.6 system-ui, sans-serif">'
        f'<svg width="{_SIDE}" height="{_SIDE}" style="background: #ffffff" {style} {label}>{paths}</svg>'
        f"<div><b>{html.escape(name)}</b>{text}</div></div>"
    )
