"""Parameters of the estimators: which values they take, which work together, and what they mean for given data."""

from __future__ import annotations

import os
from collections.abc import Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from laptsne._runtime.warn import warn
from laptsne.contraction.term import FLOOR, Penalty
from laptsne.engine.minimise import Callback
from laptsne.engine.schedule import Descent, Schedule
from laptsne.fields.umap_kernel import UmapKernel
from laptsne.graph.affinity import auto_perplexity, feasible_perplexity
from laptsne.graph.distances import METRICS, PAIRWISE_METRICS, is_pairwise
from laptsne.kernels import Gaussian, Kernel, Student
from laptsne.methods import ContractionSettings, Metric, Tsne, Umap

_KERNELS: dict[str, Kernel] = {"student": Student(), "gaussian": Gaussian()}

# Up to this number of points all pairs are faster than a grid, by dimension (benchmarks/sums.py).
_MAX_EXACT = {1: 1000, 2: 6000, 3: 40_000}
_TOTAL = 1.2  # contraction strength over all clusters and levels; docs/notes/method-what-was-tried.md has others
_STUDENT_TOTAL, _STUDENT_MOST = 0.4, 0.04  # the same, and the most per cluster, with the Student kernel

# For UMAP: the strength at which no score is lower than that of umap-learn on the sets for choosing constants, and the
# fraction of the iterations after which contraction starts, before steps decay (docs/umap.md).
_UMAP_TOTAL, _UMAP_START = 0.24, 0.25
_UMAP_MAX_STEP = 0.5  # in units of the spread
# Step size of a point of mean degree, times n_samples. From 0.5 on, the objective oscillates (docs/umap.md).
_UMAP_RATE = 0.3
_UMAP_DECAY = 0.5  # fraction of the iterations, at the end, in which the step size falls to 0, as in umap-learn
_UMAP_MAX_EXACT = {1: 300, 2: 500, 3: 3000}

_SHARED: dict[str, list[Any]] = {
    "n_components": [Interval(Integral, 1, None, closed="left")],
    "n_clusters": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto", "eigengap"})],
    "contraction": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
    "contraction_width": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
    "init": [StrOptions({"spectral", "pca", "random"}), "array-like"],
    "learning_rate": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "metric": [StrOptions(METRICS | set(PAIRWISE_METRICS)), callable],
    "metric_params": [dict, None],
    "method": [StrOptions({"auto", "exact", "fourier"})],
    "optimizer": [Descent, None],
    "checkpoint": [str, os.PathLike, None],
    "callbacks": [callable, list, tuple, None],
    "verbose": ["verbose"],
    "n_jobs": [Interval(Integral, 1, None, closed="left"), Interval(Integral, None, -1, closed="right"), None],
    "random_state": ["random_state"],
}
TSNE_CONSTRAINTS: dict[str, list[Any]] = _SHARED | {
    "perplexity": [Interval(Real, 1, None, closed="left"), StrOptions({"auto"})],
    "contraction_kernel": [StrOptions({"gaussian", "student"})],
    "penalty": [Interval(Real, 0, 1, closed="right"), StrOptions({"log", "trace"})],
    "kernel": [StrOptions(set(_KERNELS)), Student, Gaussian],
    "early_exaggeration": [Interval(Real, 1, None, closed="left")],
    "batch_size": [Interval(Integral, 1, None, closed="left"), None],
    "n_batch_neighbors": [Interval(Integral, 0, None, closed="left")],
    "n_neighbors": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto", "all"})],
    "refine_affinities": ["boolean"],
    "out_of_sample": [StrOptions({"placement", "network"})],
}
UMAP_CONSTRAINTS: dict[str, list[Any]] = _SHARED | {
    "n_neighbors": [Interval(Integral, 2, None, closed="left")],
    "min_dist": [Interval(Real, 0, None, closed="left")],
    "spread": [Interval(Real, 0, None, closed="neither")],
    "local_connectivity": [Interval(Real, 0, None, closed="left")],
    "set_op_mix_ratio": [Interval(Real, 0, 1, closed="both")],
    "repulsion_strength": [Interval(Real, 0, None, closed="neither")],
    "negative_sample_rate": [Interval(Integral, 1, None, closed="left")],
}


def tsne_method(p: dict[str, Any], X: Any) -> Tsne:
    """Return the method of t-SNE with the parameters of a LaptSNE, resolved for X; raise ValueError if it cannot be."""
    n_samples, kernel = X.shape[0], kernel_of(p["kernel"])
    check_tsne(p, n_samples)
    perplexity = float(auto_perplexity(n_samples) if p["perplexity"] == "auto" else p["perplexity"])
    neighbors = {"metric": p["metric"], "n_neighbors": p["n_neighbors"]}
    feasible = feasible_perplexity(X, perplexity=perplexity, **neighbors)
    one_kernel = p["contraction_kernel"] == "student" or not isinstance(kernel, Student)
    in_batches, exact = p["batch_size"] is not None, p["method"] == "exact"
    strength: dict[str, Any] = {"total": _TOTAL, "penalty": Penalty(p["penalty"], FLOOR)}
    if one_kernel:
        strength = {"total": _STUDENT_TOTAL, "most": _STUDENT_MOST, "penalty": Penalty(p["penalty"])}
    return Tsne(
        n_components=int(p["n_components"]),
        perplexity=perplexity,
        refine=bool(p["refine_affinities"]),
        metric=Metric(p["metric"], p["metric_params"], float(feasible), p["n_neighbors"]),
        contraction=_contraction(p, one_kernel=one_kernel, **strength),
        schedule=Schedule(
            max_iter=int(p["max_iter"]),
            descent=p["optimizer"] or Descent(),
            early_exaggeration=p["early_exaggeration"],
            learning_rate=_number(p["learning_rate"]),
            batch_size=p["batch_size"],
        ),
        init=p["init"],
        kernel=kernel,
        fourier=uses_fourier(p, n_samples),
        coarse=isinstance(kernel, Student) and not exact and not in_batches and not one_kernel,
        n_batch_neighbors=p["n_batch_neighbors"],
    )


def umap_method(p: dict[str, Any], X: Any) -> Umap:
    """Return the method of UMAP with the parameters of a LapUMAP, resolved for X; raise ValueError if it cannot be."""
    n_samples, n_components, n_neighbors = X.shape[0], int(p["n_components"]), int(p["n_neighbors"])
    spread = float(p["spread"])
    _check_shared(p, n_samples)
    if p["min_dist"] > p["spread"]:
        raise ValueError(f"min_dist={p['min_dist']!r} is larger than spread={p['spread']!r}; give at most the latter.")
    if n_neighbors > n_samples and p["metric"] != "affinities":
        n_neighbors = n_samples
        lowered = f"n_neighbors={p['n_neighbors']} is larger than the number of samples and lowered to {n_samples}"
        warn(f"{lowered}; set it to at most that to silence this warning.")
    rate = _number(p["learning_rate"])
    return Umap(
        n_components=n_components,
        n_neighbors=n_neighbors,
        metric=Metric(p["metric"], p["metric_params"], n_neighbors / 3),  # new points have three times as many
        contraction=_contraction(p, total=_UMAP_TOTAL, penalty=Penalty("log", FLOOR)),
        schedule=Schedule(
            max_iter=int(p["max_iter"]),
            descent=p["optimizer"] or Descent(exaggeration=1.0, contraction_start=_UMAP_START),
            early_exaggeration=1.0,
            middle_exaggeration=1.0,
            learning_rate=_UMAP_RATE * n_samples * spread**2 if rate is None else rate,
            gains=False,
            max_step=_UMAP_MAX_STEP * spread,
            decay=_UMAP_DECAY,
        ),
        kernel=UmapKernel.of(float(p["min_dist"]), spread, n_components),
        repulsion=float(p["repulsion_strength"]) * p["negative_sample_rate"],
        exact=sums_all_pairs(p, n_samples),
        local_connectivity=p["local_connectivity"],
        set_op_mix_ratio=p["set_op_mix_ratio"],
        init=p["init"],
    )


def _contraction(p: dict[str, Any], **others: Any) -> ContractionSettings:
    strength, width = _number(p["contraction"]), _number(p["contraction_width"])
    return ContractionSettings(n_clusters=p["n_clusters"], strength=strength, width=width, **others)


def _number(value: float | str) -> float | None:
    """Return a parameter as a number, None for "auto"."""
    return None if isinstance(value, str) else float(value)


def kernel_of(kernel: str | Kernel) -> Kernel:
    """Return the kernel for the parameter ``kernel``."""
    return _KERNELS[kernel] if isinstance(kernel, str) else kernel


def uses_fourier(p: dict[str, Any], n_samples: int) -> bool:
    """Whether the sums of t-SNE are computed on a grid; raise ValueError if that is requested and impossible."""
    method, is_student = p["method"], isinstance(kernel_of(p["kernel"]), Student)
    if method == "fourier" and not is_student:
        raise ValueError(f"method='fourier' needs kernel='student', got kernel={p['kernel']!r}; use method='exact'.")
    if method == "fourier" and p["batch_size"] is not None:
        raise ValueError(f"method='fourier' moves all points, but batch_size={p['batch_size']}; use method='auto'.")
    if method == "auto":
        return p["batch_size"] is None and is_student and n_samples > _MAX_EXACT[p["n_components"]]
    return bool(method == "fourier")


def sums_all_pairs(p: dict[str, Any], n_samples: int) -> bool:
    """Whether the repulsion of UMAP is computed over all pairs."""
    return p["method"] == "exact" or (p["method"] == "auto" and n_samples <= _UMAP_MAX_EXACT[p["n_components"]])


def callbacks_of(callbacks: Callback | Sequence[Callback] | None) -> list[Callback]:
    """Return the parameter ``callbacks`` as a list."""
    if callbacks is None:
        return []
    found = list(callbacks) if isinstance(callbacks, Sequence) else [callbacks]
    for callback in found:
        if not callable(callback):
            raise ValueError(f"callbacks: {callback!r} is not callable; give functions of one argument, the state.")
    return found


def has_method(name: str, p: dict[str, Any]) -> bool:
    """Whether an estimator has "transform", "support" or "predict"; raise an AttributeError that says why if not."""
    in_network = p.get("out_of_sample") == "network"
    if p["metric"] == "affinities":
        raise AttributeError(f"{name} needs features or distances, but this model was fitted to affinities.")
    if in_network and name != "transform":
        raise AttributeError(
            f"{name} needs the data, which out_of_sample='network' does not keep; use out_of_sample='placement'."
        )
    if isinstance(kernel_of(p.get("kernel", "student")), Gaussian) and not in_network:
        instead = " or out_of_sample='network'" if name == "transform" else ""
        raise AttributeError(f"{name} is not available with kernel={p['kernel']!r}; use kernel='student'{instead}.")
    return True


def _check_shared(p: dict[str, Any], n_samples: int) -> None:
    if p["n_components"] > len(_MAX_EXACT):
        clusters = "Clusters are those of the data, in labels_, for any n_components"
        features = "for features, use sklearn.manifold.SpectralEmbedding(affinity='precomputed') with affinities_"
        raise ValueError(f"n_components={p['n_components']}: maps have 1, 2 or 3 dimensions. {clusters}; {features}.")
    if not isinstance(p["n_clusters"], str) and p["n_clusters"] >= n_samples:
        allowed = f"give a number from 1 to {n_samples - 1}, or 'auto'"
        raise ValueError(f"n_clusters={p['n_clusters']} is out of range for {n_samples} samples; {allowed}.")
    callbacks_of(p["callbacks"])
    path, random_state = p["checkpoint"], p["random_state"]
    if path is not None and not isinstance(random_state, Integral):
        raise ValueError(f"checkpoint needs a reproducible run; set random_state to an integer, not {random_state!r}.")
    if path is not None and (Path(path).is_dir() or not Path(path).parent.is_dir()):
        raise ValueError(f"checkpoint={str(path)!r}: give the path of a file in an existing folder.")


def check_tsne(p: dict[str, Any], n_samples: int) -> None:
    """Raise ValueError for parameters of t-SNE that do not work together, or not for this number of samples."""
    _check_shared(p, n_samples)
    if p["out_of_sample"] == "network" and is_pairwise(p["metric"]):
        raise ValueError(f"metric={p['metric']!r} has no features to learn from; use out_of_sample='placement'.")
    if p["batch_size"] is None and p["n_batch_neighbors"]:
        raise ValueError(f"n_batch_neighbors={p['n_batch_neighbors']} has no effect; set batch_size as well.")
    one_kernel = not isinstance(kernel_of(p["kernel"]), Student)
    if one_kernel and p["contraction_kernel"] == "student":
        shared = f"kernel={p['kernel']!r}, which both terms share"
        raise ValueError(f"contraction_kernel='student' has no effect with {shared}; use kernel='student' as well.")
    if not isinstance(p["contraction_width"], str) and (one_kernel or p["contraction_kernel"] == "student"):
        use = "kernel='student' and contraction_kernel='gaussian', or contraction_width='auto'"
        width = f"contraction_width={p['contraction_width']!r}"
        raise ValueError(f"{width} needs a Gaussian kernel of the contraction alone; use {use}.")


def paper_settings() -> dict[str, Any]:
    """Return the parameters with which the authors of the method ran it, but ``n_clusters`` and ``contraction``."""
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
        "refine_affinities": False,
        "method": "exact",
        "optimizer": Descent(momentum=0.5, exaggeration=1.0, contraction_start=0, contraction_ramp=0, refresh_every=1),
    }
