"""The methods that share one engine, each a few functions, and the steps of a fit."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array, Floats
from laptsne._runtime.warn import warn
from laptsne.clusters.counting import find_clusters, given_clusters, main_clusters
from laptsne.clusters.cuts import quotient
from laptsne.contraction.cluster_term import ClusterTerm, nested_groups
from laptsne.contraction.eigenvector_term import EigenvectorTerm
from laptsne.contraction.term import MAX_CONTRACTED, Contraction, Penalty
from laptsne.engine.checkpoint import Checkpoint, digest_of
from laptsne.engine.cross_entropy import CrossEntropy
from laptsne.engine.initialization import completed, initial_embedding
from laptsne.engine.kl import Batches, KLDivergence
from laptsne.engine.minimise import Callback, Descending, Loss, Result, minimise
from laptsne.engine.progress import ProgressLines
from laptsne.engine.schedule import Schedule
from laptsne.fields.umap_kernel import UmapKernel
from laptsne.graph.affinity import fuzzy_graph, joint_affinities
from laptsne.graph.neighbors import first_copies
from laptsne.graph.spectrum import (
    MAX_CLUSTERS,
    component_layout,
    eigengap_clusters,
    in_order,
    laplacian_spectrum,
    of_points,
    ordered_for_locality,
    reordered,
)
from laptsne.kernels import Kernel

_SPAN = 10.0  # of the initial embedding of UMAP, as in umap-learn
# Clusters that share at least this part of their affinity are entangled. Separate ones, of which the map of t-SNE has
# gaps, are contracted with _LEAST of the strength (docs/notes/method-what-was-tried.md).
_SHARED, _LEAST = 0.03, 0.1
_MAX_HOLD = 1.0  # weight of squared distances from earlier positions; with larger ones the descent may oscillate
_LATE, _SMALL = 0.15, 400  # final exaggeration beyond 1 of entangled clusters with at most this number of points


@dataclass(frozen=True)
class Metric:
    """How the data are compared.

    ``perplexity`` is the effective number of neighbours that the data support, and ``n_neighbors`` that of neighbours
    with an affinity, "auto" for three times as many, or "all".
    """

    name: Any
    params: dict[str, Any] | None
    perplexity: float
    n_neighbors: int | str = "auto"

    @property
    def options(self) -> dict[str, Any]:
        """The metric as arguments of functions."""
        return {"metric": self.name, "metric_params": self.params}


@dataclass(frozen=True)
class ContractionSettings:
    """Which clusters are contracted, and how much.

    ``n_clusters`` is a number, "auto" for the clusters for which there is evidence, or "eigengap". The strength is
    ``strength``, or if that is None ``total`` over all clusters, but at most ``most`` per cluster. With
    ``one_kernel``, similarities are those of the loss, otherwise Gaussian with a ``width`` of their own, None for one
    that follows the embedding.
    """

    n_clusters: int | str
    strength: float | None
    total: float
    width: float | None
    penalty: Penalty
    most: float = float("inf")
    one_kernel: bool = False

    def entanglement(self, labels: Array, P: Any) -> float:
        """Return the share of affinity between different clusters, relative to one that counts as 1, but at most 1."""
        if self.one_kernel:
            return 1.0
        between = quotient(P, np.where(labels < 0, labels.max(initial=0) + 1, labels))
        return min(1.0, float(1 - between.diagonal().sum() / between.sum()) / _SHARED)

    def strength_of(self, term: Contraction, entanglement: float) -> float:
        """Return the strength per cluster; 0 for a single one, of which the first eigenvalue is always 0."""
        if term.n_clusters > 1:
            total = self.total * (_LEAST + (1 - _LEAST) * entanglement)
            default = min(self.most, total / (term.n_clusters * term.n_levels))
            return default if self.strength is None else self.strength
        if self.strength and self.n_clusters == "auto":
            remedy = "Set n_clusters to contract nevertheless."
            warn(f"contraction={self.strength} has no effect: there is no evidence of clusters. {remedy}")
        return 0.0

    def term(self, labels: Array, n_clusters: int, P: Any, start: Array) -> Contraction:
        """Return the contraction term, given the cluster of every point, -1 for none, and a guess of eigenvectors."""
        if not self.one_kernel:
            return ClusterTerm(labels, self.penalty, self.width, groups=nested_groups(labels, P))
        # Indicator vectors of the clusters nearly span the eigenvectors of the embedding's graph.
        indicators = (labels[:, None] == np.arange(1, n_clusters)).astype(np.float32)
        return EigenvectorTerm(n_clusters, self.penalty, np.column_stack([indicators, start]))


@dataclass(frozen=True)
class Method(ABC):
    """A method of embedding: its graph, initial embedding and loss, with numbers for all settings."""

    loss_name: ClassVar[str]

    n_components: int
    metric: Metric
    contraction: ContractionSettings
    schedule: Schedule
    init: str | ArrayLike
    kernel: Kernel | UmapKernel

    def holding(self, positions: Floats, weight: float) -> Self:
        """Return the method that holds points near earlier positions, NaN for those that have none.

        Forces between distant groups are inverse to their distance. With a weight relative to the squared radius,
        points therefore move by about the same share of the radius in small and in large maps.
        """
        square = float(np.nanvar(positions, axis=0).sum())
        hold = min(weight / square, _MAX_HOLD) if square > 0 else _MAX_HOLD
        return replace(self, init=positions, schedule=replace(self.schedule, hold=hold))

    @abstractmethod
    def graph(self, X: Any, workers: Workers) -> Any:
        """Return the affinities of the data, symmetric with sum 1."""

    @abstractmethod
    def loss(self, P: Any, workers: Workers) -> Loss:
        """Return the loss of embeddings of the points of P."""

    def late_exaggeration(self, labels: Array, entanglement: float) -> float:
        """Return the factor on the attraction at the end, given the clusters that are contracted."""
        return self.schedule.descent.exaggeration or 1.0

    def start(
        self, X: Any, P: Any, eigenvectors: Array, order: Array | None, random_state: Any, workers: Workers
    ) -> Array:
        """Return the initial embedding, given eigenvectors of the Laplacian of P, whose points have another order."""
        options = {"metric": self.metric.name, "random_state": random_state}
        return initial_embedding(self.init, X, of_points(eigenvectors, order), self.n_components, **options)


@dataclass(frozen=True)
class Tsne(Method):
    """The method of t-SNE: affinities of a perplexity, and the KL divergence.

    ``perplexity`` is the requested one, which :class:`Metric` lowers if the data do not support it. ``refine`` is that
    of :func:`laptsne.graph.affinity.joint_affinities`, ``fourier`` and ``coarse`` are those of
    :class:`laptsne.engine.kl.KLDivergence`.
    """

    loss_name: ClassVar[str] = "KL divergence"

    kernel: Kernel
    perplexity: float
    refine: bool
    fourier: bool
    coarse: bool
    n_batch_neighbors: int

    def graph(self, X: Any, workers: Workers) -> Any:
        options = {"n_neighbors": self.metric.n_neighbors, "workers": workers, **self.metric.options}
        return joint_affinities(X, perplexity=self.perplexity, refine=self.refine, **options)

    def late_exaggeration(self, labels: Array, entanglement: float) -> float:
        """Return the given factor, or one that is 1 for separate or large clusters and more for others."""
        if self.schedule.descent.exaggeration is not None or self.contraction.one_kernel:
            return super().late_exaggeration(labels, entanglement)
        n_clusters = int(labels.max(initial=0)) + 1
        return 1 + _LATE * entanglement * min(1.0, _SMALL * n_clusters / labels.size)

    def loss(self, P: Any, workers: Workers) -> KLDivergence:
        return KLDivergence(P, self.kernel, fourier=self.fourier, coarse=self.coarse, workers=workers)


@dataclass(frozen=True)
class Umap(Method):
    """The method of UMAP: a fuzzy graph, and the cross entropy that umap-learn effectively minimises."""

    loss_name: ClassVar[str] = "cross entropy"

    kernel: UmapKernel
    n_neighbors: int
    local_connectivity: float
    set_op_mix_ratio: float
    repulsion: float
    exact: bool

    def graph(self, X: Any, workers: Workers) -> Any:
        perplexity = self.metric.perplexity
        if self.metric.name == "affinities":
            return joint_affinities(X, perplexity=perplexity, **self.metric.options)
        options = {"local_connectivity": self.local_connectivity, "set_op_mix_ratio": self.set_op_mix_ratio}
        graph = fuzzy_graph(X, n_neighbors=self.n_neighbors, workers=workers, **self.metric.options, **options)
        return joint_affinities(graph, perplexity=perplexity, metric="affinities")

    def start(
        self, X: Any, P: Any, eigenvectors: Array, order: Array | None, random_state: Any, workers: Workers
    ) -> Array:
        """Return the initial embedding, with the components of the graph side by side, scaled as in umap-learn."""
        apart = component_layout(P, self.n_components, workers)
        directions = eigenvectors if apart is None else np.pad(apart, ((0, 0), (1, 0)))
        Y = super().start(X, P, directions, order, random_state, workers)
        if isinstance(self.init, str):
            extent = np.ptp(Y, axis=0)
            Y = _SPAN * (Y - Y.min(axis=0)) / np.where(extent > 0, extent, 1)
            Y -= Y.mean(axis=0)
        return Y

    def loss(self, P: Any, workers: Workers) -> CrossEntropy:
        return CrossEntropy(P, kernel=self.kernel, repulsion=self.repulsion, exact=self.exact, workers=workers)


@dataclass(frozen=True)
class Fit:
    """The result of a descent, and what is known of the data's graph.

    ``labels`` has the cluster of every point, from 0, and -1 for none. ``data_eigenvalues`` are None if the descent did
    not need them.
    """

    result: Result
    affinities: Any
    labels: NDArray[np.intp]
    n_clusters: int
    data_eigenvalues: Floats | None


def fit(
    method: Method,
    X: Any,
    P: Any,
    random_state: np.random.RandomState,
    workers: Workers,
    *,
    callbacks: Sequence[Callback] = (),
    checkpoint: str | os.PathLike[str] | None = None,
    verbose: bool = False,
) -> Fit:
    """Compute the embedding of data from their affinities, which may be reordered in place."""
    batches, order = None, None
    if isinstance(method, Tsne) and method.schedule.batch_size is not None:
        batches = Batches(P, method.kernel, method.schedule.batch_size, method.n_batch_neighbors, random_state)
    else:
        P, order = ordered_for_locality(P, workers)
    wanted, requested = method.n_components, method.contraction.n_clusters
    if requested != "auto":  # otherwise clusters are found in the graph, and eigenvectors are only for the start
        wanted = max(wanted, MAX_CLUSTERS, requested if isinstance(requested, int) else 0)
    workers.report("spectrum of the affinities")
    spectrum = laplacian_spectrum(P, wanted + 1, workers)
    # From here on, points have the order of P.
    anchors = in_order(np.asarray(method.init), order) if method.schedule.hold else None
    if anchors is None:
        Y = in_order(method.start(X, P, spectrum.eigenvectors, order, random_state, workers), order)
    else:
        Y = completed(anchors, P, random_state)
    first = first_copies(X)
    first = first if order is None else np.argsort(order)[first[order]]
    workers.report("clusters")
    labels, contracted, n_clusters = _clusters(method.contraction, P, spectrum.eigenvalues, first, workers)
    term = method.contraction.term(contracted, int(n_clusters), P, spectrum.eigenvectors[:, 1:])
    entanglement = method.contraction.entanglement(contracted, P)
    strength = method.contraction.strength_of(term, entanglement)
    late = method.late_exaggeration(contracted, entanglement) if strength else 1.0
    schedule = replace(method.schedule, strength=strength, late_exaggeration=late)
    # What init and metric change is in the affinities and the initial embedding.
    decisive = [getattr(method, field.name) for field in fields(method) if field.name not in ("init", "metric")]
    stored = None if checkpoint is None else Checkpoint(checkpoint, digest_of(decisive, P, Y))
    shown = [ProgressLines(schedule.max_iter, method.loss_name)] if verbose else []
    descent = Descending(method.loss(P, workers), term, schedule, Y, batches=batches, order=order, anchors=anchors)
    result = minimise(descent, callbacks=[*callbacks, *shown], checkpoint=stored)
    for lines in shown:
        lines.end(result.n_iter, result.loss)
    if order is not None:
        P = reordered(P, np.argsort(order))
        P.sort_indices()  # in place: another copy would set a new peak of memory
        result, labels = replace(result, embedding=of_points(result.embedding, order)), of_points(labels, order)
    # Of clusters for which there is evidence, small ones are not contracted.
    n_clusters = int(labels.max()) + 1 if requested == "auto" else n_clusters
    return Fit(result, P, labels, n_clusters, None if requested == "auto" else spectrum.eigenvalues)


def _clusters(
    settings: ContractionSettings, P: Any, eigenvalues: Array, first: Array, workers: Workers
) -> tuple[Array, Array, int]:
    """Return the cluster of every point, that which is contracted, and the number of contracted clusters."""
    if settings.n_clusters == "auto":
        labels = find_clusters(P, first=first, workers=workers)
        contracted = main_clusters(labels, P, MAX_CONTRACTED)
        return labels, contracted, int(contracted.max()) + 1
    suggested = settings.n_clusters == "eigengap"
    n_clusters = eigengap_clusters(eigenvalues) if suggested else int(settings.n_clusters)
    labels = given_clusters(P, n_clusters, first=first, workers=workers)
    return labels, labels, n_clusters if settings.one_kernel else int(labels.max()) + 1
