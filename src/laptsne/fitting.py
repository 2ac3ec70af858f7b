"""The steps of a fit once affinities are known: spectrum, initial embedding, descent."""

import contextlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.threads import Workers
from laptsne.clusters.counting import find_clusters, given_clusters, main_clusters
from laptsne.contraction.similarity import FLOOR, MAX_CONTRACTED, Penalty, Similarity
from laptsne.engine.backend import Backend, uses_fourier
from laptsne.engine.checkpoint import Checkpoint, digest_of
from laptsne.engine.cross_entropy import CrossEntropy
from laptsne.engine.kl import KLDivergence
from laptsne.engine.loop import Result, minimize
from laptsne.engine.minibatch import Batches, BatchRun
from laptsne.engine.problem import Problem, strength_of
from laptsne.engine.progress import progress
from laptsne.engine.run import Run
from laptsne.graph.ordering import in_order, of_points, ordered_for_locality, reordered
from laptsne.graph.spectrum import MAX_CLUSTERS, Spectrum, eigengap_clusters, laplacian_spectrum
from laptsne.kernels import Student
from laptsne.parameters import callbacks_of, has_one_kernel, kernel_of

Loss = KLDivergence | CrossEntropy
# Parameters that do not change a descent, and those that act through the affinities and the initial embedding.
_NOT_IN_DIGEST = {
    *("checkpoint", "callbacks", "verbose", "n_jobs", "out_of_sample"),
    *("init", "perplexity", "n_neighbors", "metric", "metric_params"),
}


@dataclass(frozen=True)
class Fit:
    """The result of a descent, and what is known of the data's graph.

    Attributes
    ----------
    result : Result
    affinities : sparse matrix or array of shape (n_samples, n_samples)
    labels : array of shape (n_samples,)
        Cluster of every point, from 0; -1 for none.
    data_eigenvalues : array or None
        Smallest eigenvalues of the Laplacian of the affinities; None if the descent did not need them
        (:func:`data_eigenvalues`).
    """

    result: Result
    affinities: Any
    labels: NDArray[np.intp]
    data_eigenvalues: NDArray[np.float64] | None


def fit_affinities(model: Any, X: Any, P: Any, random_state: np.random.RandomState, workers: Workers) -> Fit:
    """Compute the embedding of X from its affinities.

    Parameters
    ----------
    model : LaptSNE
        Source of the parameters; it is not changed.
    X : array or sparse matrix
        The data, for the initial embedding.
    P : sparse matrix in CSR format or array, of shape (n_samples, n_samples)
        Affinities.
    random_state : RandomState
    workers : Workers
        Threads.
    """
    P, order = ordered_for_locality(P, workers) if model.batch_size is None else (P, None)
    spectrum = _spectrum(model, P, workers)
    # From here on, points have the order of P.
    directions = model._directions(P, spectrum.eigenvectors, workers)
    Y = in_order(model._initial(X, of_points(directions, order), random_state), order)
    kl = model._loss(P)
    labels = _clusters(model, P, spectrum, workers)
    problem = replace(_problem(model, kl, labels, spectrum, workers), order=order)
    run = _run(model, problem, Y, random_state)
    with progress(model.max_iter) if model.verbose else contextlib.nullcontext() as shown:
        callbacks = callbacks_of(model.callbacks) + ([] if shown is None else [shown])
        result = minimize(run, callbacks, _checkpoint(model, kl, Y))
        if shown is not None:
            shown.end(result.n_iter, result.kl_divergence, result.contraction)
    del run, Y  # velocities, gains and the grid
    if order is not None:
        P = reordered(P, np.argsort(order))
        P.sort_indices()  # in place: another copy would set a new peak of memory
        result, labels = replace(result, embedding=of_points(result.embedding, order)), of_points(labels, order)
    return Fit(result, P, labels, None if model.n_clusters == "auto" else spectrum.eigenvalues)


def data_eigenvalues(P: Any, n_components: int, n_jobs: int | None) -> NDArray[np.float64]:
    """Smallest eigenvalues of the Laplacian of the affinities, enough for the eigengap heuristic."""
    with Workers(n_jobs) as workers:
        return laplacian_spectrum(P, max(MAX_CLUSTERS, n_components) + 1, workers).eigenvalues


def backend_of(model: Any, n_samples: int, workers: Workers) -> Backend:
    """How sums over the embedding are computed with the parameters of a model."""
    kernel = kernel_of(model.kernel)
    fourier = uses_fourier(model.method, kernel, model.batch_size, n_samples, model.n_components)
    if has_one_kernel(model):
        return Backend(kernel, Penalty(model.penalty), fourier, workers)
    similarity = Similarity(None if isinstance(model.contraction_width, str) else float(model.contraction_width))
    # A mesh resolves the wide kernel of the contraction, so that pairs are only worth their cost on request.
    mesh = model.method != "exact" or model.batch_size is not None
    coarse = isinstance(kernel, Student) and model.method != "exact" and model.batch_size is None
    return Backend(kernel, Penalty(model.penalty, FLOOR), fourier, workers, similarity, mesh, coarse)


def _spectrum(model: Any, P: Any, workers: Workers) -> Spectrum:
    """Spectrum of the data's graph.

    If clusters are counted in the data, only the eigenvectors of the initial embedding are needed.
    """
    wanted = model.n_components
    if model.n_clusters != "auto":
        wanted = max(wanted, MAX_CLUSTERS, 0 if isinstance(model.n_clusters, str) else model.n_clusters)
    return laplacian_spectrum(P, wanted + 1, workers)


def _clusters(model: Any, P: Any, spectrum: Spectrum, workers: Workers) -> NDArray[np.intp]:
    """Cluster of every point: those of the data, or as many as requested."""
    if model.n_clusters == "auto":
        return find_clusters(P, workers=workers)
    suggested = model.n_clusters == "eigengap"
    n_clusters = eigengap_clusters(spectrum.eigenvalues) if suggested else int(model.n_clusters)
    return given_clusters(P, n_clusters, workers=workers)


def _problem(model: Any, kl: Loss, labels: NDArray[np.intp], spectrum: Spectrum, workers: Workers) -> Problem:
    counted = model.n_clusters == "auto"
    if counted:
        labels = main_clusters(labels, kl.P, MAX_CONTRACTED)
    backend = model._backend(kl, workers)
    n_clusters = int(labels.max()) + 1
    if backend.similarity is None and not counted:  # that many eigenvalues, however many clusters there are
        suggested = model.n_clusters == "eigengap"
        n_clusters = eigengap_clusters(spectrum.eigenvalues) if suggested else int(model.n_clusters)
    gaussian = backend.similarity is not None
    strength = strength_of(model._contraction(n_clusters), n_clusters, gaussian=gaussian, counted=counted)
    return Problem(kl, backend, backend.contraction(labels, n_clusters, spectrum.eigenvectors[:, 1:]), strength)


def _run(model: Any, problem: Problem, Y: NDArray[np.float64], random_state: np.random.RandomState) -> Run:
    descent = model._descent()
    schedule = {"max_iter": model.max_iter, "early_exaggeration": model.early_exaggeration}
    schedule["learning_rate"] = model._step_size(len(Y))
    if model.batch_size is None:
        return model._run_class(problem, Y, descent, **schedule)  # type: ignore[no-any-return]
    batches = Batches(problem.kl.P, model.batch_size, model.n_batch_neighbors, random_state)
    return BatchRun(batches, problem, Y, descent, **schedule)


def _checkpoint(model: Any, kl: Loss, Y: NDArray[np.float64]) -> Checkpoint | None:
    if model.checkpoint is None:
        return None
    settings = {name: value for name, value in model.get_params(deep=False).items() if name not in _NOT_IN_DIGEST}
    return Checkpoint(model.checkpoint, digest_of(settings, kl.P, Y))
