"""A path of embeddings from plain t-SNE to strong contraction, each started from its neighbour on the path."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_is_fitted

from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.clusters.counting import main_clusters
from laptsne.contraction.similarity import MAX_CONTRACTED, Similarity
from laptsne.engine.loop import iterate
from laptsne.engine.problem import Problem, auto_contraction
from laptsne.engine.run import LATE_EXAGGERATION
from laptsne.estimator import LaptSNE
from laptsne.graph.ordering import in_order, of_points, ordered_for_locality
from laptsne.metrics import affinity_recall, rasterized, trustworthiness
from laptsne.parameters import has_one_kernel

_STRONGEST = 3.0  # times the contraction of the model
# Iterations from one embedding to the next: fewer for many points, whose steps are longer.
_MAX_ITER, _MIN_ITER = 200, 60
_MAX_MOVES = 4e6  # iterations times points
_MAX_SCORED = 3000  # points on which embeddings are scored
_NEIGHBORS = 15


@dataclass(frozen=True)
class ContractionPath:
    """Embeddings of the same points with increasing contraction.

    Attributes
    ----------
    contractions : array of shape (n_maps,)
        Strengths in ascending order, starting at 0.
    embeddings : array of shape (n_maps, n_samples, n_components)
    kl_divergences : array of shape (n_maps,)
    trustworthiness : array of shape (n_maps,)
        Trustworthiness with 15 neighbours on at most 3,000 points; NaN if the distances between these are not known.
    neighbors_kept : array of shape (n_maps,)
        Mean fraction of the 15 neighbours with the largest affinities that are among the 15 nearest in the embedding,
        for the same points.
    neighbors_seen : array of shape (n_maps,)
        The same after the embedding has been drawn in 400 x 400 pixels (:func:`laptsne.metrics.rasterized`).
    eigenvalues : array of shape (n_maps, n_clusters)
        Smallest eigenvalues of the Laplacian of each embedding's graph.
    chosen : int
        Index of the embedding of the model.
    """

    contractions: Array
    embeddings: Array
    kl_divergences: Array
    trustworthiness: Array
    neighbors_kept: Array
    neighbors_seen: Array
    eigenvalues: Array
    chosen: int

    def __repr__(self) -> str:
        n_maps, n_samples = self.embeddings.shape[:2]
        span = f"{self.contractions[0]:.3g} to {self.contractions[-1]:.3g}"
        return f"ContractionPath({n_maps} maps of {n_samples:,} points, contraction {span}, chosen={self.chosen})"


def contraction_path(model: LaptSNE, X: Any, *, n_maps: int = 7) -> ContractionPath:
    """Compute embeddings from plain t-SNE to three times the contraction of a fitted model.

    The path starts at the embedding of the model and proceeds in small steps in both directions, so that points can be
    followed along it, and changes are due to contraction alone. The exaggeration that comes with contraction (see
    :class:`laptsne.Descent`) increases with it, up to that of the model.

    Parameters
    ----------
    model : LaptSNE
        A model fitted in this process: a loaded one has no affinities.
    X : array or sparse matrix
        The data of the model, for the trustworthiness.
    n_maps : int, default=7
        Number of embeddings, at least 2.

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
        raise ValueError(f"n_maps must be at least 2, for no and for strong contraction; got {n_maps}.")
    if not hasattr(model, "affinities_"):
        raise ValueError("model was loaded from a file, which has no affinities_; fit it again.")
    if model.affinities_.shape[0] != len(model.embedding_):
        raise ValueError("model has the affinities_ of landmarks, not those of all points; fit a LaptSNE.")
    if model.n_clusters_ == 1:
        raise ValueError("model has n_clusters_=1, so there is nothing to contract; fit it with n_clusters.")
    strengths, chosen = _strengths(model, n_maps)
    with Workers(model.n_jobs) as workers:
        walk = _Walk(model, workers)
        start = walk.stop_at(in_order(np.asarray(model.embedding_, dtype=np.float64), walk.order))
        stronger = walk.stops(start, strengths[chosen + 1 :])
        weaker = walk.stops(start, strengths[:chosen][::-1])
    stops = [*weaker[::-1], start, *stronger]
    embeddings = np.stack([of_points(stop.Y, walk.order) for stop in stops]).astype(np.float32)
    scores = _Scores(model, X)
    return ContractionPath(
        contractions=strengths,
        embeddings=embeddings,
        kl_divergences=np.array([stop.kl_divergence for stop in stops]),
        trustworthiness=np.array([scores.trustworthiness(Y) for Y in embeddings]),
        neighbors_kept=np.array([scores.kept(Y) for Y in embeddings]),
        neighbors_seen=np.array([scores.kept(rasterized(Y)) for Y in embeddings]),
        eigenvalues=np.stack([stop.eigenvalues for stop in stops]),
        chosen=chosen,
    )


def _strengths(model: LaptSNE, n_maps: int) -> tuple[Array, int]:
    """Strengths of the embeddings, and the index of the model's."""
    own = _strength(model, model.n_clusters_)
    below = n_maps // 2 if model.contraction_ else 1
    factors = np.geomspace(1, _STRONGEST, n_maps - below) if n_maps - below > 1 else np.ones(1)
    strengths = own * np.concatenate([np.arange(below) / below, factors])
    return strengths, below if model.contraction_ else 0


def _strength(model: LaptSNE, n_clusters: int) -> float:
    """The contraction of the model, or the default one if it has none."""
    given = model.contraction_ or model._contraction(n_clusters)
    return given or auto_contraction(n_clusters, gaussian=not has_one_kernel(model))


@dataclass(frozen=True)
class _Stop:
    """One embedding of the path."""

    Y: Array
    kl_divergence: float
    eigenvalues: Array


class _Walk:
    """What all descents along the path share; points have the order of the reordered affinities."""

    def __init__(self, model: LaptSNE, workers: Workers) -> None:
        P, self.order = ordered_for_locality(model.affinities_, workers, copy=True)
        self.kl = model._loss(P)
        backend = model._backend(self.kl, workers)
        # The width of the model for all embeddings, so that only the strength changes.
        width = None if backend.similarity is None else Similarity(model.contraction_width_)
        self.backend = replace(backend, similarity=width)
        labels = in_order(np.asarray(model.labels_), self.order)
        self.labels = main_clusters(labels, P, MAX_CONTRACTED) if model.n_clusters == "auto" else labels
        self.n_clusters = int(self.labels.max()) + 1
        self.own_strength = _strength(model, self.n_clusters)
        self.descent = replace(model._descent(), contraction_start=0, contraction_ramp=0, check_every=25)
        self.learning_rate, self.run_class = model._step_size(len(labels)), model._run_class
        self.exaggeration = self.descent.exaggeration or LATE_EXAGGERATION

    def stop_at(self, Y: Array) -> _Stop:
        """Evaluate an embedding."""
        fields = self.backend.fields(Y)
        contraction = self.backend.contraction(self.labels, self.n_clusters, np.empty((len(self.labels), 0)))
        return _Stop(Y, self.kl.value(fields), self.backend.finished(contraction, fields).eigenvalues)

    def stops(self, stop: _Stop, strengths: Sequence[float] | Array) -> list[_Stop]:
        """Embeddings at these strengths, each started from the one before."""
        found = []
        for strength in strengths:
            stop = self.stop_at(self._descended(stop.Y, float(strength)))
            found.append(stop)
        return found

    def _descended(self, Y: Array, strength: float) -> Array:
        share = min(1.0, strength / self.own_strength)
        descent = replace(self.descent, exaggeration=self.exaggeration**share)
        contraction = self.backend.contraction(self.labels, self.n_clusters, np.empty((len(self.labels), 0)))
        max_iter = int(np.clip(_MAX_MOVES / len(Y), _MIN_ITER, _MAX_ITER))
        schedule: dict[str, Any] = {"early_exaggeration": 1.0, "learning_rate": self.learning_rate}
        problem = Problem(self.kl, self.backend, contraction, strength)
        run = self.run_class(problem, Y, descent, max_iter=max_iter, **schedule)
        if iterate(run)[1]:
            raise KeyboardInterrupt
        return run.Y


class _Scores:
    """Faithfulness of embeddings, measured on a sample of the points."""

    def __init__(self, model: LaptSNE, X: Any) -> None:
        n_samples = len(model.embedding_)
        size = min(n_samples, _MAX_SCORED)
        self._rows = np.sort(np.random.default_rng(0).choice(n_samples, size, replace=False))
        self._metric = model.metric
        self._data = self._distances_or_features(model, X)
        self._n_neighbors = max(1, min(_NEIGHBORS, (size - 1) // 2))
        self._P = model.affinities_

    def _distances_or_features(self, model: LaptSNE, X: Any) -> Array | None:
        """The input of trustworthiness; None if there are neither features nor all distances."""
        if model.metric == "affinities" or (model.metric == "precomputed" and not hasattr(X, "shape")):
            return None
        if scipy.sparse.issparse(X):
            return None if model.metric == "precomputed" else np.asarray(X[self._rows].toarray())
        sample = np.asarray(X)[self._rows]
        return sample[:, self._rows] if model.metric == "precomputed" else sample

    def trustworthiness(self, Y: Array) -> float:
        if self._data is None or len(self._rows) < 4:
            return float("nan")
        options = {"n_neighbors": self._n_neighbors, "metric": self._metric}
        return float(trustworthiness(self._data, Y[self._rows], **options))

    def kept(self, Y: Array) -> float:
        return affinity_recall(self._P, Y, n_neighbors=self._n_neighbors, rows=self._rows)
