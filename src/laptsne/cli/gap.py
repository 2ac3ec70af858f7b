"""``laptsne gap``: the smallest Laplacian eigenvalues of the data, and the eigengap."""

from pathlib import Path

import numpy as np
import typer
from numpy.typing import NDArray

from laptsne import plotting
from laptsne._runtime.threads import Workers
from laptsne.cli.options import FeatureOptions, InputOptions
from laptsne.cli.outputs import OutputFiles, save_figure
from laptsne.cli.preparation import prepare
from laptsne.cli.terminal import input_errors, say, waiting
from laptsne.graph.affinity import auto_perplexity, joint_affinities
from laptsne.graph.spectrum import MAX_CLUSTERS, eigengap_clusters, laplacian_spectrum

_BAR_WIDTH = 40  # characters of the longest bar


def print_eigenvalues(
    data: InputOptions,
    features: FeatureOptions,
    *,
    perplexity: float | None,
    metric: str,
    n_jobs: int | None,
    plot: Path | None,
    force: bool,
) -> None:
    """Print the eigenvalues as a table, and plot them if a file is given."""
    OutputFiles(plot=plot).check(data.source, force=force)
    X = prepare(data, features).X
    perplexity = auto_perplexity(X.shape[0]) if perplexity is None else perplexity
    with waiting("finding neighbours", quiet=data.quiet), input_errors(), Workers(n_jobs) as workers:
        P = joint_affinities(X, perplexity=perplexity, metric=metric, workers=workers)
        eigenvalues = laplacian_spectrum(P, MAX_CLUSTERS + 1, workers).eigenvalues
    n_clusters = eigengap_clusters(eigenvalues)
    typer.echo("\n".join(_table_lines(eigenvalues, n_clusters)))
    lines = [f"clusters     {n_clusters} by the eigengap of {X.shape[0]} points"]
    if plot is not None:
        save_figure(plotting.eigenvalues(eigenvalues, n_clusters), plot)
        lines.append(f"files        {plot}")
    if not data.quiet:
        say(lines)


def _table_lines(eigenvalues: NDArray[np.float64], n_clusters: int) -> list[str]:
    """Return one line per eigenvalue, with a bar; the eigengap is marked."""
    lines = [f"{'k':>3}  {'eigenvalue':>10}  {'gap':>8}"]
    for k, (value, step) in enumerate(zip(eigenvalues, [*np.diff(eigenvalues), np.nan], strict=True), start=1):
        bar = "#" * round(_BAR_WIDTH * value / (eigenvalues.max() or 1))
        mark = "<- the gap" if k == n_clusters else ""
        shown = f"{step:8.4f}" if np.isfinite(step) else " " * 8
        lines.append(f"{k:>3}  {value:>10.4f}  {shown}  {f'{bar} {mark}'.strip()}".rstrip())
    return lines
