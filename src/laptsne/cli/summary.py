"""What was done, in five lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from laptsne.cli.fitting import Made
from laptsne.contraction_path import ContractionPath
from laptsne.graph.spectrum import eigengap_clusters


def summary(made: Made, path: ContractionPath | None, files: Sequence[str | Path], seconds: float) -> list[str]:
    """Points, clusters and why, contraction and what it cost, time, and files."""
    n_points, n_features = made.table.X.shape
    return [
        f"points       {n_points} x {n_features}",
        f"clusters     {_clusters(made)}",
        f"contraction  {_contraction(made, path)}",
        f"time         {seconds:.1f} s, {made.seconds:.1f} s of it for the map, {made.model.n_iter_} iterations",
        f"files        {', '.join(map(str, files))}",
    ]


def _clusters(made: Made) -> str:
    if made.settings.clusters is not None:
        return f"{made.model.n_clusters_}, as given"
    if made.model.n_clusters_ == 1:
        return "none: there is no evidence of any, so this is a map of t-SNE"
    gap = eigengap_clusters(made.model.data_eigenvalues_)
    return f"{made.model.n_clusters_}, with evidence in the map and the data (the data's eigengap alone says {gap})"


def _contraction(made: Made, path: ContractionPath | None) -> str:
    model, onset = made.model, made.onset
    now = f"{model.contraction_:g}, KL {model.kl_divergence_:.3f}"
    if not model.contraction_:
        return now
    if path is not None:
        plain = float(path.kl_divergences[0])
        return f"{now}: {model.kl_divergence_ - plain:+.3f} over the {plain:.3f} without contraction"
    if onset.iteration is None:
        return f"{now}; the iterations were over before it began"
    return f"{now}; {onset.kl_divergence:.3f} when it began, after {onset.iteration} iterations"
