"""Which scores of reliability a fitted model has, and their computation."""

from typing import Any

import numpy as np
import scipy.sparse

from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.contraction.term import LazyPotential
from laptsne.fields.potential import Potential
from laptsne.graph.affinity import joint_affinities
from laptsne.graph.neighbors import EUCLIDEAN_METRICS
from laptsne.kernels import Student
from laptsne.reliability.nudged import NudgedNeighbors
from laptsne.reliability.own_loss import OwnPotential
from laptsne.reliability.perturbation import perturbation_scores
from laptsne.reliability.scores import Reliability
from laptsne.reliability.singularity import singularity_scores
from laptsne.transform import Placement

# Length of a nudge, in median distances to the neighbour whose rank is the perplexity: half a neighbourhood.
_LENGTH = 0.5
# Neighbours among which those of the moved row are found, in units of the perplexity. Affinities end at 3; with 4.5,
# ranks of the scores of 500 points correlate with the exact ones by 0.98 or more (benchmarks/reliability.py).
_CANDIDATES = 4.5


def diagnosis(model: Any, length: float | None, workers: Workers) -> Reliability:
    """Compute the reliability of the points of a fitted LaptSNE, which is not changed.

    A score that the model does not allow is None; see :meth:`laptsne.LaptSNE.diagnose`.
    """
    Y, mapping = model.embedding_, model._mapping
    potential = _potential(model, workers)
    if potential is None:
        return Reliability(None, None, reason=_without_potential(model))
    X = mapping.X if isinstance(mapping, Placement) else None
    own = OwnPotential.of(potential, Y, workers)
    P = _affinities(model, X, workers)
    singularity = None if P is None else singularity_scores(P, Y, own, workers)
    reasons = [] if P is not None else ["no singularity: the affinities of the model were not saved; fit it again"]
    obstacle = _without_nudge(model, X)
    if obstacle is not None:
        return Reliability(None, singularity, reason="; ".join([*reasons, f"no perturbation: {obstacle}"]))
    perturbation, length = _perturbation(model, X, Y, own, length, workers)
    return Reliability(perturbation, singularity, length)


def _perturbation(
    model: Any, X: Any, Y: Array, own: OwnPotential, length: float | None, workers: Workers
) -> tuple[Array, float]:
    perplexity = model.perplexity_
    n_neighbors = min(max(int(_CANDIDATES * perplexity), 1), len(Y) - 1)
    options: dict[str, Any] = {"perplexity": perplexity, "workers": workers}
    neighbors = NudgedNeighbors.of(X, metric=model.metric, n_neighbors=n_neighbors, **options)
    length = _LENGTH * neighbors.radius if length is None else float(length)
    return perturbation_scores(neighbors, Y, own, length=length, **options), length


def _potential(model: Any, workers: Workers) -> Potential | None:
    """Return the potential of the embedding, or None if it is not known."""
    mapping = model._mapping
    potential: Any = (
        mapping.potential(workers) if isinstance(mapping, Placement) else getattr(model, "_potential", None)
    )
    if isinstance(potential, LazyPotential):
        potential = potential.compute(model.embedding_, workers)
    return potential if potential is not None and potential.charge > 0 else None


def _without_potential(model: Any) -> str:
    if model.kernel != "student" and not isinstance(model.kernel, Student):
        return f"scores are for kernel='student', but kernel={model.kernel!r}"
    return "the file of the model does not contain the forces between its points; fit the model again"


def _without_nudge(model: Any, X: Any) -> str | None:
    """Return why the data of a point cannot be moved."""
    if X is None:
        kept = f"metric={model.metric!r} has no" if model._is_pairwise else "out_of_sample='network' keeps no"
        return f"{kept} features that could be nudged"
    if not isinstance(model.metric, str) or model.metric not in EUCLIDEAN_METRICS or model.metric_params:
        return f"metric={model.metric!r} is not one of {', '.join(map(repr, EUCLIDEAN_METRICS))} without parameters"
    return None


def _affinities(model: Any, X: Any, workers: Workers) -> Any:
    """Return the affinities in CSR format, computed again if the model was saved without them."""
    P = getattr(model, "affinities_", None)
    if P is None and X is not None:
        options = {"metric": model.metric, "metric_params": model.metric_params, "n_neighbors": model.n_neighbors}
        P = joint_affinities(X, perplexity=model.perplexity_, workers=workers, **options)
    return P if P is None or scipy.sparse.issparse(P) else scipy.sparse.csr_matrix(np.asarray(P))
