"""A path of maps from plain t-SNE to strong contraction, each begun where its neighbour on the path ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.spatial import KDTree
from sklearn.manifold import trustworthiness
from sklearn.utils.validation import check_is_fitted

from laptsne._runtime.threads import Workers
from laptsne.embedding.backend import Backend
from laptsne.embedding.objective import KLDivergence
from laptsne.embedding.optimizer import Descent, Problem, Run, descend, late_exaggeration
from laptsne.estimator import LaptSNE, auto_contraction
from laptsne.graph.ordering import ordered_for_locality

Array = NDArray[Any]

_STRONGEST = 3.0  # times the contraction of the model
_MAX_ITER, _MIN_ITER = 200, 60  # from one map to the next: fewer of large maps, which move as far in each
_MAX_MOVES = 4e6  # of single points
_MAX_SCORED = 3000  # points by which maps are scored
_NEIGHBORS = 15


@dataclass(frozen=True)
class ContractionPath:
    """Maps of the same points at rising contraction.

    Attributes
    ----------
    contractions : array of shape (n_maps,)
        The strengths, from 0 upwards.
    embeddings : array of shape (n_maps, n_samples, n_components)
        The maps.
    kl_divergences : array of shape (n_maps,)
        KL divergence of every map.
    trustworthiness : array of shape (n_maps,)
        Share of the neighbourhoods of every map that the data bear out, 15 neighbours, among at most 3,000 points; not
        a number where the data have no distances between all of these.
    neighbors_kept : array of shape (n_maps,)
        Share of the 15 most similar points of a point that are among its 15 nearest in the map, for the same points.
    eigenvalues : array of shape (n_maps, n_clusters)
        Smallest eigenvalues of the Laplacian of every map.
    chosen : int
        Which of the maps is that of the model.
    """

    contractions: Array
    embeddings: Array
    kl_divergences: Array
    trustworthiness: Array
    neighbors_kept: Array
    eigenvalues: Array
    chosen: int


def contraction_path(model: LaptSNE, X: Any, *, n_maps: int = 7) -> ContractionPath:
    """Return maps at rising contraction, from plain t-SNE over that of a fitted model to three times its contraction.

    The path begins at the model's own map and goes both ways in small steps, so that points can be followed along it
    and what changes is the work of contraction. The factor on the attraction that goes with contraction
    (see :class:`laptsne.Descent`) rises with it, up to that of the model.

    Parameters
    ----------
    model : LaptSNE
        A model that was fitted, not loaded: its affinities are needed.
    X : array or sparse matrix
        What the model was fitted to, for the trustworthiness of the maps.
    n_maps : int, default=7
        Number of maps, at least 2.

    Returns
    -------
    path : ContractionPath

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from laptsne import LaptSNE
    >>> from laptsne.contraction_path import contraction_path
    >>> X = load_iris().data
    >>> model = LaptSNE(n_clusters=3, max_iter=250, random_state=0).fit(X)
    >>> path = contraction_path(model, X, n_maps=4)
    >>> path.embeddings.shape
    (4, 150, 2)
    >>> bool(path.eigenvalues[-1, 2] < path.eigenvalues[0, 2])
    True
    """
    check_is_fitted(model)
    if n_maps < 2:
        raise ValueError(f"n_maps must be at least 2, from no contraction to strong contraction; got {n_maps}.")
    if not hasattr(model, "affinities_"):
        raise ValueError("model was loaded from a file, which has no affinities_; fit it again.")
    if model.affinities_.shape[0] != len(model.embedding_):
        raise ValueError("model is of landmarks, whose affinities are not those of all points; fit a LaptSNE.")
    if model.n_clusters_ == 1:
        raise ValueError("model has n_clusters_=1, so there is nothing to contract; fit it with n_clusters.")
    strengths, chosen = _strengths(model, n_maps)
    with Workers(model.n_jobs) as workers:
        walker = _Walker(model, workers)
        start = _Stop.of(walker, np.asarray(model.embedding_, dtype=np.float64))
        upwards = walker.walk(start, strengths[chosen + 1 :])
        downwards = walker.walk(start, strengths[:chosen][::-1])
        stops = [*downwards[::-1], start, *upwards]
    embeddings = np.stack([stop.Y for stop in stops]).astype(np.float32)
    scores = _Scores(model, X)
    return ContractionPath(
        contractions=strengths,
        embeddings=embeddings,
        kl_divergences=np.array([stop.kl_divergence for stop in stops]),
        trustworthiness=np.array([scores.trustworthiness(Y) for Y in embeddings]),
        neighbors_kept=np.array([scores.neighbors_kept(Y) for Y in embeddings]),
        eigenvalues=np.stack([stop.eigenvalues for stop in stops]),
        chosen=chosen,
    )


def _strengths(model: LaptSNE, n_maps: int) -> tuple[Array, int]:
    """Strengths of the maps, and which of them is the model's."""
    own = model.contraction_ or auto_contraction(model.n_clusters_)
    below = n_maps // 2 if model.contraction_ else 1
    factors = np.geomspace(1, _STRONGEST, n_maps - below) if n_maps - below > 1 else np.ones(1)
    strengths = own * np.concatenate([np.arange(below) / below, factors])
    return strengths, below if model.contraction_ else 0


@dataclass(frozen=True)
class _Stop:
    """One map of the path."""

    Y: Array
    kl_divergence: float
    eigenvalues: Array

    @classmethod
    def of(cls, walker: _Walker, Y: Array) -> _Stop:
        fields = walker.backend.fields(Y)
        contraction = walker.backend.contraction(walker.n_clusters, walker.start)
        return cls(Y, walker.kl.value(fields), walker.backend.finished(contraction, fields).eigenvalues)


class _Walker:
    """What all descents along the path share."""

    def __init__(self, model: LaptSNE, workers: Workers) -> None:
        self.backend: Backend = model._backend(len(model.embedding_), workers)
        self.kl = KLDivergence(*ordered_for_locality(model.affinities_, workers))
        self.n_clusters: int = model.n_clusters_
        self.start = (model.labels_[:, None] == np.arange(1, self.n_clusters)).astype(np.float32)
        self.own_strength: float = model.contraction_ or auto_contraction(self.n_clusters)
        self.descent = replace(model.optimizer or Descent(), contraction_start=0, contraction_ramp=0, check_every=25)
        self.learning_rate = model.learning_rate
        fields = self.backend.fields(np.asarray(model.embedding_, dtype=np.float64))
        self.exaggeration = self.descent.exaggeration or late_exaggeration(fields, self.n_clusters)

    def walk(self, stop: _Stop, strengths: Sequence[float] | Array) -> list[_Stop]:
        """Maps at these strengths, one after the other, from a given one on."""
        stops = []
        for strength in strengths:
            stop = _Stop.of(self, self._descended(stop.Y, float(strength)))
            stops.append(stop)
        return stops

    def _descended(self, Y: Array, strength: float) -> Array:
        share = min(1.0, strength / self.own_strength)
        descent = replace(self.descent, exaggeration=1 + share * (self.exaggeration - 1))
        contraction = self.backend.contraction(self.n_clusters, self.start)
        problem = Problem(self.kl, contraction, strength, self.backend.fields)
        max_iter = int(np.clip(_MAX_MOVES / len(Y), _MIN_ITER, _MAX_ITER))
        run = Run(problem, Y, descent, max_iter=max_iter, early_exaggeration=1.0, learning_rate=self.learning_rate)
        return descend(run)[0]


class _Scores:
    """How faithful maps are, by some of the points."""

    def __init__(self, model: LaptSNE, X: Any) -> None:
        n_samples = len(model.embedding_)
        size = min(n_samples, _MAX_SCORED)
        self._rows = np.sort(np.random.default_rng(0).choice(n_samples, size, replace=False))
        self._metric = model.metric
        self._data = self._distances_or_features(model, X)
        self._n_neighbors = max(1, min(_NEIGHBORS, (size - 1) // 2))
        P = scipy.sparse.csr_matrix(scipy.sparse.csr_matrix(model.affinities_)[self._rows])
        self._similar = [_largest(row, self._n_neighbors) for row in _rows(P)]

    def _distances_or_features(self, model: LaptSNE, X: Any) -> Array | None:
        """What trustworthiness is measured by; None where there is nothing of the kind."""
        if model.metric == "affinities" or (model.metric == "precomputed" and not hasattr(X, "shape")):
            return None
        if scipy.sparse.issparse(X):
            return None if model.metric == "precomputed" else np.asarray(X[self._rows].toarray())
        chosen = np.asarray(X)[self._rows]
        return chosen[:, self._rows] if model.metric == "precomputed" else chosen

    def trustworthiness(self, Y: Array) -> float:
        if self._data is None or len(self._rows) < 4:
            return float("nan")
        options = {"n_neighbors": self._n_neighbors, "metric": self._metric}
        return float(trustworthiness(self._data, Y[self._rows], **options))

    def neighbors_kept(self, Y: Array) -> float:
        nearest = KDTree(Y).query(Y[self._rows], self._n_neighbors + 1)[1]
        kept = [np.isin(similar, near).mean() for similar, near in zip(self._similar, nearest, strict=True)]
        return float(np.mean(kept))


def _rows(P: Any) -> list[tuple[Array, Array]]:
    """Columns and values of every row of a sparse matrix."""
    return [(P.indices[a:b], P.data[a:b]) for a, b in pairwise(P.indptr)]


def _largest(row: tuple[Array, Array], n: int) -> Array:
    columns, values = row
    found: Array = columns[np.argsort(-values, kind="stable")[:n]]
    return found
