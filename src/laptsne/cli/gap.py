"""``laptsne gap``: the eigenvalues of the data and what they say of its clusters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from laptsne import plotting
from laptsne._runtime.atomic_file import atomic_write
from laptsne._runtime.threads import Workers
from laptsne.cli import options
from laptsne.cli.embed import Files
from laptsne.cli.fitting import Settings, data, refused
from laptsne.cli.tables import Table
from laptsne.cli.terminal import app, reported, say, waiting
from laptsne.graph.affinity import joint_affinities
from laptsne.graph.spectrum import MAX_CLUSTERS, eigengap_clusters, laplacian_spectrum
from laptsne.parameters import auto_perplexity

_WIDTH = 40  # letters that the longest bar takes


@app.command()
def gap(
    source: options.Source,
    label: options.Label = None,
    no_label: options.NoLabel = False,
    plot: Annotated[Path | None, typer.Option(help="Picture of the eigenvalues: .png, .svg or .pdf.")] = None,
    perplexity: options.Perplexity = None,
    metric: options.Metric = "euclidean",
    jobs: options.Jobs = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Print the smallest eigenvalues of the data's graph, without making a map.

    Clusters that hardly touch give eigenvalues near 0; the largest gap above them says how many there are.
    `laptsne embed` asks for evidence beyond that: a valley around every cluster in the map.

    **Examples**

    ```
    laptsne gap digits
    laptsne gap cells.csv --label celltype --plot eigenvalues.png
    ```
    """
    with reported():
        files = Files(plot=plot)
        files.check(source, force=force)
        table = data(source, label=label, guess=not no_label, quiet=quiet)
        with waiting("finding neighbours", quiet=quiet), refused():
            sigma = _eigenvalues(table, Settings(perplexity=perplexity, metric=metric, jobs=jobs))
        n_clusters = eigengap_clusters(sigma)
        typer.echo("\n".join(_lines(sigma, n_clusters)))
        if plot is not None:
            with atomic_write(plot) as path:
                plotting.eigenvalues(sigma, n_clusters).figure.savefig(path, dpi=150)  # type: ignore[union-attr]
        if not quiet:
            say([f"clusters     {n_clusters} by the eigengap of {table.X.shape[0]} points", *_files(plot)])


def _files(plot: Path | None) -> list[str]:
    return [] if plot is None else [f"files        {plot}"]


def _eigenvalues(table: Table, settings: Settings) -> NDArray[np.float64]:
    perplexity = auto_perplexity(table.X.shape[0]) if settings.perplexity is None else settings.perplexity
    with Workers(settings.jobs) as workers:
        P = joint_affinities(table.X, perplexity=perplexity, metric=settings.metric, workers=workers)
        return laplacian_spectrum(P, MAX_CLUSTERS + 1, workers).eigenvalues


def _lines(sigma: NDArray[np.float64], n_clusters: int) -> list[str]:
    """A table with a bar for every eigenvalue; the gap that is chosen is marked."""
    lines = [f"{'k':>3}  {'eigenvalue':>10}  {'gap':>8}"]
    for k, (value, step) in enumerate(zip(sigma, [*np.diff(sigma), np.nan], strict=True), start=1):
        bar = "#" * round(_WIDTH * value / (sigma.max() or 1))
        mark = "<- the gap" if k == n_clusters else ""
        shown = f"{step:8.4f}" if np.isfinite(step) else " " * 8
        lines.append(f"{k:>3}  {value:>10.4f}  {shown}  {f'{bar} {mark}'.strip()}".rstrip())
    return lines
