"""A path of embeddings from plain t-SNE to strong contraction, each started from its neighbour on the path."""

import os
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from laptsne._runtime.colours import encode_labels
from laptsne._runtime.drawing import draw_map
from laptsne._runtime.files import atomic_write
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.clusters.counting import main_clusters
from laptsne.contraction.term import MAX_CONTRACTED, Contraction
from laptsne.engine.minimise import Descending, iterate
from laptsne.estimators.base import MapEstimator
from laptsne.fitted_map import FittedMap
from laptsne.graph.distances import is_pairwise
from laptsne.graph.spectrum import in_order, of_points, ordered_for_locality
from laptsne.methods import Method
from laptsne.metrics import affinity_recall, rasterized, trustworthiness

_STRONGEST = 3.0  # times the contraction of the model
# Iterations from one embedding to the next: fewer for many points, whose steps are longer.
_MAX_ITER, _MIN_ITER = 200, 60
_MAX_MOVES = 4e6  # iterations times points
_MAX_SCORED = 3000  # points on which embeddings are scored
_NEIGHBORS = 15
_TOL, _MAX_PASSES = 1e-3, 100  # of the eigenvectors of each embedding
_RATE, _STEPS, _PAUSE = 20, 16, 20  # of a film: frames per second, from map to map, and at either end


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
        Mean fraction of the 15 neighbours with the largest affinities that are among the 15 nearest in the embedding.
    neighbors_seen : array of shape (n_maps,)
        The same after the embedding has been drawn in 400 x 400 pixels.
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

    def save(self, path: str | os.PathLike[str], labels: ArrayLike | None = None) -> Path:
        """Write a film of the points moving along the path, as GIF or MP4, and return its path.

        Parameters
        ----------
        path : path-like
            File to write, which ends in .gif, or in .mp4 if ffmpeg is installed. An existing file is replaced.
        labels : array-like of shape (n_samples,), optional
            Labels or numbers by which points are coloured, such as ``labels_`` of the model.
        """
        out, writer = Path(path), {".gif": "pillow", ".mp4": "ffmpeg"}.get(Path(path).suffix.lower())
        if writer is None:
            raise ValueError(f"path={str(path)!r} must end in .gif or .mp4; plotting.explorer writes HTML files.")
        if self.embeddings.shape[2] != 2:
            raise ValueError(f"embeddings have shape {self.embeddings.shape}; a film needs n_components=2.")
        maps = self.embeddings - (self.embeddings.max(axis=1) + self.embeddings.min(axis=1))[:, None] / 2
        maps /= np.abs(maps).max(axis=(1, 2), keepdims=True)  # each fills the view, as in the explorer
        points = draw_map(maps[0], encode_labels(labels, maps.shape[1]))
        points.axes.set(xlim=(-1.05, 1.05), ylim=(-1.05, 1.05))
        from matplotlib.animation import writers  # noqa: PLC0415  matplotlib is optional, and slow to import

        if not writers.is_available(writer):
            raise RuntimeError(f"path={str(path)!r} needs {writer}, which was not found; install it, or save a .gif.")
        last, film = len(maps) - 1, writers[writer](fps=_RATE)
        with atomic_write(out) as temporary, film.saving(points.figure, temporary, points.figure.dpi):
            for at in np.clip(np.arange(-_PAUSE, last * _STEPS + _PAUSE + 1) / _STEPS, 0, last):
                left = min(int(at), last - 1)
                points.set_offsets(maps[left] + (at - left) * (maps[left + 1] - maps[left]))
                strength = np.interp(at, range(last + 1), self.contractions)
                points.axes.set_title(f"contraction {strength:.3f}", loc="left")
                film.grab_frame()
        return out


def contraction_path(model: MapEstimator, X: Any, *, n_maps: int = 7, n_jobs: int | None = None) -> ContractionPath:
    """Compute embeddings from plain t-SNE to three times the contraction of a fitted model.

    The path starts at the embedding of the model and proceeds in small steps in both directions, so that points can be
    followed along it. The exaggeration of :class:`laptsne.Descent` increases with the contraction, up to the model's.

    Parameters
    ----------
    model : LaptSNE or LapUMAP
        A model fitted in this process: a loaded one has no affinities.
    X : array or sparse matrix
        The data of the model, for the trustworthiness.
    n_maps : int, default=7
        Number of embeddings, at least 2.
    n_jobs : int, optional
        Number of threads, by default that of the model.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from laptsne import LaptSNE
    >>> from laptsne.contraction import contraction_path
    >>> X = load_iris().data
    >>> model = LaptSNE(n_clusters=3, max_iter=250, random_state=0).fit(X)
    >>> contraction_path(model, X, n_maps=4).embeddings.shape
    (4, 150, 2)
    """
    check_is_fitted(model)
    fitted = model.fitted_map_
    if n_maps < 2:
        raise ValueError(f"n_maps must be at least 2, for no and for strong contraction; got {n_maps}.")
    if fitted.method is None or fitted.affinities is None:
        raise ValueError("model was loaded from a file or is one of landmarks, without affinities_; fit a LaptSNE.")
    if fitted.n_clusters == 1:
        raise ValueError("model has n_clusters_=1, so there is nothing to contract; fit it with n_clusters.")
    with Workers(model.n_jobs if n_jobs is None else n_jobs) as workers:
        walk = _Walk(fitted, fitted.method, workers)
        strengths, chosen = walk.strengths(n_maps)
        start = in_order(np.asarray(fitted.embedding, dtype=np.float64), walk.order)
        before, after = walk.maps(start, strengths[:chosen][::-1]), walk.maps(start, strengths[chosen + 1 :])
        maps = [*before[::-1], start, *after]
        losses, eigenvalues = zip(*map(walk.evaluated, maps), strict=True)
    embeddings = np.stack([of_points(Y, walk.order) for Y in maps]).astype(np.float32)
    return ContractionPath(
        contractions=strengths,
        embeddings=embeddings,
        kl_divergences=np.array(losses),
        eigenvalues=np.stack(eigenvalues),
        chosen=chosen,
        **_scores(fitted, X, embeddings),
    )


class _Walk:
    """What all descents along the path share; points have the order of the reordered affinities."""

    def __init__(self, fitted: FittedMap, method: Method, workers: Workers) -> None:
        P, self.order = ordered_for_locality(fitted.affinities, workers, copy=True)
        self.P, self.loss = P, method.loss(P, workers)
        labels = in_order(fitted.labels, self.order)
        counted = method.contraction.n_clusters == "auto"
        self.labels = main_clusters(labels, P, MAX_CONTRACTED) if counted else labels
        self.n_clusters = int(self.labels.max()) + 1
        # The width of the model for all embeddings, so that only the strength changes.
        self.settings = replace(method.contraction, width=fitted.contraction_width)
        default = replace(method.contraction, strength=method.contraction.strength or None)
        self.own = fitted.contraction
        entanglement = method.contraction.entanglement(self.labels, P)
        self.reference = self.own or default.strength_of(self._term(), entanglement)
        self.exaggeration = method.late_exaggeration(self.labels, entanglement)
        max_iter = int(np.clip(_MAX_MOVES / len(labels), _MIN_ITER, _MAX_ITER))
        descent = replace(method.schedule.descent, contraction_start=0, contraction_ramp=0)
        changes: dict[str, Any] = {"early_exaggeration": 1.0, "check_every": 25, "batch_size": None}
        self.schedule = replace(method.schedule, max_iter=max_iter, descent=descent, **changes)

    def strengths(self, n_maps: int) -> tuple[Array, int]:
        """Return the strengths of the embeddings, and the index of the model's."""
        below = n_maps // 2 if self.own else 1
        factors = np.concatenate([np.arange(below) / below, np.geomspace(1, _STRONGEST, n_maps - below)])
        return self.reference * factors, below if self.own else 0

    def evaluated(self, Y: Array) -> tuple[float, Array]:
        """Return the loss and the eigenvalues of an embedding."""
        fields, term = self.loss.fields(Y), self._term()
        term.refresh(fields, tol=_TOL, max_passes=_MAX_PASSES)
        return self.loss.value(fields), term.eigenvalues

    def maps(self, Y: Array, strengths: Array) -> list[Array]:
        """Return embeddings at these strengths, each started from the one before."""
        found = []
        for strength in map(float, strengths):
            exaggeration = self.exaggeration ** min(1.0, strength / self.reference)
            descent = replace(self.schedule.descent, exaggeration=exaggeration)
            schedule = replace(self.schedule, descent=descent, strength=strength)
            descending = Descending(self.loss, self._term(), schedule, Y)
            if iterate(descending):
                raise KeyboardInterrupt
            Y = descending.Y
            found.append(Y)
        return found

    def _term(self) -> Contraction:
        return self.settings.term(self.labels, self.n_clusters, self.P, np.empty((len(self.labels), 0)))


def _scores(fitted: FittedMap, X: Any, embeddings: Array) -> dict[str, Array]:
    """Return the faithfulness of embeddings, measured on a sample of the points."""
    n_samples, metric = len(fitted.embedding), fitted.metric.name
    size = min(n_samples, _MAX_SCORED)
    rows = np.sort(np.random.default_rng(0).choice(n_samples, size, replace=False))
    n_neighbors = max(1, min(_NEIGHBORS, (size - 1) // 2))
    trusted = np.full(len(embeddings), np.nan)
    has_distances = metric == "precomputed" and hasattr(X, "shape") and not scipy.sparse.issparse(X)
    if size >= 4 and (has_distances or not is_pairwise(metric)):
        data = X[rows].toarray() if scipy.sparse.issparse(X) else np.asarray(X)[rows]
        data = data[:, rows] if has_distances else data
        trusted[:] = [trustworthiness(data, Y[rows], n_neighbors=n_neighbors, metric=metric) for Y in embeddings]

    kept = partial(affinity_recall, fitted.affinities, n_neighbors=n_neighbors, rows=rows)
    return {
        "trustworthiness": trusted,
        "neighbors_kept": np.array([kept(Y) for Y in embeddings]),
        "neighbors_seen": np.array([kept(rasterized(Y)) for Y in embeddings]),
    }
