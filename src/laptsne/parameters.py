"""Which values the parameters of the estimators take, and which combinations work."""

import os
from collections.abc import Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from laptsne.engine.descent import Descent
from laptsne.engine.state import Callback
from laptsne.graph.distances import METRICS, PAIRWISE_METRICS, is_pairwise
from laptsne.kernels import Gaussian, Kernel, Student

_KERNELS: dict[str, Kernel] = {"student": Student(), "gaussian": Gaussian()}

CONSTRAINTS: dict[str, list[Any]] = {
    "n_components": [Interval(Integral, 1, 3, closed="both")],
    "perplexity": [Interval(Real, 1, None, closed="left"), StrOptions({"auto"})],
    "n_clusters": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto", "eigengap"})],
    "contraction": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
    "contraction_kernel": [StrOptions({"gaussian", "student"})],
    "contraction_width": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
    "penalty": [Interval(Real, 0, 1, closed="right"), StrOptions({"log", "trace"})],
    "kernel": [StrOptions(set(_KERNELS)), Student, Gaussian],
    "init": [StrOptions({"spectral", "pca", "random"}), "array-like"],
    "early_exaggeration": [Interval(Real, 1, None, closed="left")],
    "learning_rate": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "batch_size": [Interval(Integral, 1, None, closed="left"), None],
    "n_batch_neighbors": [Interval(Integral, 0, None, closed="left")],
    "metric": [StrOptions(METRICS | set(PAIRWISE_METRICS)), callable],
    "metric_params": [dict, None],
    "n_neighbors": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto", "all"})],
    "out_of_sample": [StrOptions({"placement", "network"})],
    "method": [StrOptions({"auto", "exact", "fourier"})],
    "optimizer": [Descent, None],
    "checkpoint": [str, os.PathLike, None],
    "callbacks": [callable, list, tuple, None],
    "verbose": ["verbose"],
    "n_jobs": [Interval(Integral, 1, None, closed="left"), Interval(Integral, None, -1, closed="right"), None],
    "random_state": ["random_state"],
}


def kernel_of(kernel: str | Kernel) -> Kernel:
    """The kernel for the parameter ``kernel``."""
    return _KERNELS[kernel] if isinstance(kernel, str) else kernel


def has_one_kernel(model: Any) -> bool:
    """Whether contraction and KL divergence have the same kernel, as in the paper."""
    return model.contraction_kernel == "student" or not isinstance(kernel_of(model.kernel), Student)


def can_transform(model: Any) -> bool:
    """Whether a model can embed new points; raise an AttributeError that says why if not."""
    if isinstance(model.metric, str) and model.metric == "affinities":
        raise AttributeError(
            "transform is not available with metric='affinities', which new points lack; fit features or distances."
        )
    if isinstance(kernel_of(model.kernel), Gaussian) and model.out_of_sample == "placement":
        raise AttributeError(
            f"transform is not available with kernel={model.kernel!r} and out_of_sample='placement', which needs "
            "kernel='student'; use out_of_sample='network'."
        )
    return True


def keeps_data(model: Any) -> bool:
    """Whether a model can compare new points with its data; raise an AttributeError that says why if not."""
    if isinstance(model.metric, str) and model.metric == "affinities":
        reason = "metric='affinities', which new points lack; fit features or distances"
    elif model.out_of_sample == "network":
        reason = "out_of_sample='network', which keeps no data to compare with; use out_of_sample='placement'"
    elif isinstance(kernel_of(model.kernel), Gaussian):
        reason = f"kernel={model.kernel!r}, which keeps no data to compare with; use kernel='student'"
    else:
        return True
    raise AttributeError(f"support and predict are not available with {reason}.")


def callbacks_of(callbacks: Callback | Sequence[Callback] | None) -> list[Callback]:
    """The parameter ``callbacks`` as a list."""
    given = [] if callbacks is None else callbacks
    found = list(given) if isinstance(given, Sequence) else [given]
    for callback in found:
        if not callable(callback):
            raise ValueError(f"callbacks: {callback!r} is not callable; give functions of one argument, the state.")
    return found


def check_combinations(parameters: dict[str, Any], n_samples: int) -> None:
    """Raise ValueError for parameters that do not work together, or not for this number of samples."""
    p = parameters
    if p["out_of_sample"] == "network" and is_pairwise(p["metric"]):
        raise ValueError(
            f"out_of_sample='network' learns from features, but metric={p['metric']!r} has none; "
            "use out_of_sample='placement'."
        )
    if p["batch_size"] is None and p["n_batch_neighbors"]:
        raise ValueError(
            f"n_batch_neighbors={p['n_batch_neighbors']} has no effect without mini-batches; set batch_size as well."
        )
    if not isinstance(p["n_clusters"], str) and p["n_clusters"] >= n_samples:
        raise ValueError(
            f"n_clusters={p['n_clusters']} is out of range for {n_samples} samples; "
            f"give a number from 1 to {n_samples - 1}, or 'auto'."
        )
    _check_kernels(p)
    callbacks_of(p["callbacks"])
    if p["checkpoint"] is not None:
        _check_checkpoint(p["checkpoint"], p["random_state"])


def _check_kernels(p: dict[str, Any]) -> None:
    one_kernel = not isinstance(kernel_of(p["kernel"]), Student)
    if one_kernel and p["contraction_kernel"] == "student":
        raise ValueError(
            f"contraction_kernel='student' has no effect with kernel={p['kernel']!r}, which both terms share; "
            "use kernel='student', or leave contraction_kernel at its default."
        )
    if not isinstance(p["contraction_width"], str) and (one_kernel or p["contraction_kernel"] == "student"):
        raise ValueError(
            f"contraction_width={p['contraction_width']!r} needs a Gaussian kernel of the contraction of its own, but "
            f"kernel={p['kernel']!r} and contraction_kernel={p['contraction_kernel']!r}; use kernel='student' and "
            "contraction_kernel='gaussian', or contraction_width='auto'."
        )


def _check_checkpoint(path: str | os.PathLike[str], random_state: Any) -> None:
    if not isinstance(random_state, Integral):
        raise ValueError(
            f"checkpoint={str(path)!r} needs a reproducible run, but random_state={random_state!r}; "
            "set random_state to an integer."
        )
    if Path(path).is_dir() or not Path(path).parent.is_dir():
        raise ValueError(
            f"checkpoint={str(path)!r} is a folder, or in a folder that does not exist; "
            "give the path of a file in an existing folder."
        )


def paper_settings() -> dict[str, Any]:
    """The parameters with which the authors of the method ran it, apart from ``n_clusters`` and ``contraction``."""
    return {
        "perplexity": 25.0,
        "penalty": "trace",
        "kernel": "student",
        "contraction_kernel": "student",
        "init": "spectral",
        "early_exaggeration": 1.0,
        "learning_rate": 100.0,
        "max_iter": 500,
        "n_neighbors": "all",
        "method": "exact",
        "optimizer": Descent(momentum=0.5, exaggeration=1.0, contraction_start=0, contraction_ramp=0, refresh_every=1),
    }
