"""``laptsne explore``: the page of a map, in the browser."""

from __future__ import annotations

import time
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from laptsne.cli import options
from laptsne.cli.embed import Files, stem
from laptsne.cli.fitting import MAX_ITER, Settings, data, make
from laptsne.cli.summary import summary
from laptsne.cli.tables import InputError
from laptsne.cli.terminal import app, reported, say


@app.command()
def explore(
    source: Annotated[
        str, typer.Argument(metavar="FILE", help="A page written before, or what `laptsne embed` reads.")
    ],
    label: options.Label = None,
    no_label: options.NoLabel = False,
    html: options.Html = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Write the page, and open no browser.")] = False,
    perplexity: options.Perplexity = None,
    contraction: options.Strength = None,
    clusters: options.Clusters = None,
    metric: options.Metric = "euclidean",
    iterations: options.Iterations = MAX_ITER,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Make a map and open its page in the browser, or open a page that was written before.

    The page goes to NAME-map.html where --html does not say another.

    **Examples**

    ```
    laptsne explore digits
    laptsne explore cells.csv --label celltype --html cells.html --no-open
    laptsne explore cells.html
    ```
    """
    with reported():
        started = time.perf_counter()
        if Path(source).suffix.lower() in (".html", ".htm"):
            page = Path(source)
            if not page.is_file():
                raise InputError(f"there is no page {page}; write one with laptsne embed --html {page}.")
        else:
            page = html or Path(f"{'stdin' if source == '-' else stem(source)}-map.html")
            files = Files(html=page)
            files.check(source, force=force)
            settings = Settings(perplexity, contraction, clusters, seed, metric, iterations, jobs)
            made = make(data(source, label=label, guess=not no_label, quiet=quiet), settings, quiet=quiet)
            path = files.write(made, quiet=quiet)
            if not quiet:
                say(summary(made, path, files.named(), time.perf_counter() - started))
        if not no_open and not webbrowser.open(page.resolve().as_uri()):
            say([f"laptsne: no browser was found; open {page} in one."], "yellow")
