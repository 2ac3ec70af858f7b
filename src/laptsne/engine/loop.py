"""The loop of the gradient descent, and its result."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from laptsne._runtime.warn import warn
from laptsne.contraction.term import LazyPotential
from laptsne.engine.checkpoint import Checkpoint
from laptsne.engine.run import Run
from laptsne.engine.state import Callback
from laptsne.fields.potential import Potential

_LONG = 100  # iterations; shorter runs may be far from a minimum whatever their settings
# The width of the kernel. At the end of an ordinary long run nine points in ten move by less than a fifth of it.
_KERNEL_WIDTH = 1.0
_MAX_ADRIFT = 0.1  # fraction of the points that may still move that far, or in a short run by max_step
_ROUNDING = 1e-6  # of a KL divergence


@dataclass(frozen=True)
class Result:
    """The result of a descent.

    Attributes
    ----------
    embedding : array of shape (n_samples, n_components)
    n_iter : int
        Number of iterations.
    interrupted : bool
        Whether the run was stopped by a keyboard interrupt.
    n_clusters : int
        Number of clusters contracted, or that would be had the run not ended before contraction started.
    contraction : float
        Contraction strength of the last step.
    contraction_width : float or None
        Width of the kernel of the contraction; None if it is that of the KL divergence.
    eigenvalues : array of shape (n_clusters,)
        Smallest eigenvalues of the Laplacian of the embedding's graph.
    residual : float
        Largest residual norm of their eigenvectors.
    kl_divergence, objective : float
    potential : Potential, LazyPotential or None
        The potential for placing new points; None if the kernel has none.
    """

    embedding: NDArray[np.float64]
    n_iter: int
    interrupted: bool
    n_clusters: int
    contraction: float
    contraction_width: float | None
    eigenvalues: NDArray[np.float64]
    residual: float
    kl_divergence: float
    objective: float
    potential: Potential | LazyPotential | None


def minimize(run: Run, callbacks: Sequence[Callback] = (), checkpoint: Checkpoint | None = None) -> Result:
    """Run a descent to its end and evaluate the final embedding.

    A keyboard interrupt ends the descent early, with the embedding of the last complete iteration.
    """
    n_iter, interrupted = iterate(run, callbacks, checkpoint)
    problem = run.problem
    backend, term = problem.backend, problem.contraction
    fields = backend.fields(run.Y)
    finished = backend.finished(term, fields)
    kl_divergence = problem.kl.value(fields)
    _warn_if_lost(run, n_iter, kl_divergence)
    _warn_if_clipped(run)
    penalised = float(term.penalty.value(finished.eigenvalues).sum())
    result = Result(
        embedding=run.Y,
        n_iter=n_iter,
        interrupted=interrupted,
        n_clusters=term.n_clusters,
        contraction=run.applied,
        contraction_width=None if term.kernel is None else term.kernel.width,
        eigenvalues=finished.eigenvalues,
        residual=finished.residual,
        kl_divergence=kl_divergence,
        objective=kl_divergence + run.applied * penalised,
        potential=backend.potential(term, run.applied, run.exaggeration),
    )
    if checkpoint is not None and not interrupted:
        checkpoint.remove()
    return result


def iterate(run: Run, callbacks: Sequence[Callback] = (), checkpoint: Checkpoint | None = None) -> tuple[int, bool]:
    """Take steps until the run ends; return their number and whether a keyboard interrupt ended it."""
    iteration = start = 0 if checkpoint is None else checkpoint.resume(run)
    try:
        for iteration in range(start, run.max_iter):
            if checkpoint is not None:
                checkpoint.write_if_due(run, iteration)
            if not _advance(run, iteration, callbacks):
                return iteration, False
    except KeyboardInterrupt:
        return iteration, True
    return run.max_iter, False


def _advance(run: Run, iteration: int, callbacks: Sequence[Callback]) -> bool:
    """Take one step; return False, without a step, if the run is over."""
    state = run.evaluate(iteration)
    answers = [callback(state) for callback in callbacks]
    if any(isinstance(answer, bool | np.bool_) and answer for answer in answers) or run.has_converged(state):
        return False
    with np.errstate(over="ignore", invalid="ignore"):  # the step itself checks for overflow
        moved = run.step()
    if not moved:
        warn(
            f"The embedding diverged at iteration {iteration}; the one before is kept. {_remedy(run)}",
            ConvergenceWarning,
        )
    return moved


def _remedy(run: Run) -> str:
    return f"Lower learning_rate (now {run.rate:.4g}) or contraction (now {run.problem.strength:.4g})."


def _warn_if_lost(run: Run, n_iter: int, kl_divergence: float) -> None:
    """Warn if the run ended in an embedding that does not represent the data."""
    far = 0.99 * run.descent.max_step
    if n_iter >= _LONG:
        far = min(far, _KERNEL_WIDTH)
    adrift = float((np.linalg.norm(run.velocity, axis=1) > far).mean())
    trivial = run.problem.kl.trivial
    if adrift > _MAX_ADRIFT:
        lost = f"The embedding did not settle: {adrift:.0%} of the points still move by more than {far:.3g} per step."
    elif n_iter >= _LONG and kl_divergence > trivial + _ROUNDING:
        lost = (
            f"The KL divergence, {kl_divergence:.4g}, is higher than that of an embedding with all points in one "
            f"position, {trivial:.4g}."
        )
    else:
        return
    warn(f"{lost} {_remedy(run)}", ConvergenceWarning)


def _warn_if_clipped(run: Run) -> None:
    """Warn if the width of the contraction's kernel was out of range for the embedding."""
    term = run.problem.contraction
    given, kernel = None if term.similarity is None else term.similarity.width, term.kernel
    if given is None or kernel is None or not run.problem.contracts or kernel.width == given:
        return
    reason = "larger than the embedding" if given > kernel.width else "so small that points have no neighbours"
    warn(
        f"contraction_width={given:.4g} is {reason}; {kernel.width:.4g} was used instead. Give a width between the "
        "spacing of the points and the radius of the embedding, or 'auto'.",
    )
