"""The commands: their options and help texts.

Each imports what it runs when it is called, so that ``laptsne --help`` does not wait for numba and scikit-learn.
"""

import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer

from laptsne import __version__
from laptsne.cli import options
from laptsne.cli.errors import InputError
from laptsne.cli.options import InputOptions
from laptsne.cli.terminal import reported, say

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(requested: bool) -> None:  # noqa: FBT001  typer passes it by position
    if requested:
        typer.echo(f"laptsne {__version__}")
        raise typer.Exit


@app.callback()
def _laptsne(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Maps of high-dimensional data in which clusters can be seen."""


@app.command()
def embed(
    source: options.Source,
    label: options.Label = None,
    no_label: options.NoLabel = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Table of the map: .csv, .tsv, .parquet, .feather, .npy, or - for CSV to standard output."),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Plot of the map: .png, .svg or .pdf.")] = None,
    html: options.Html = None,
    save: Annotated[Path | None, typer.Option(help="Fitted model, for `laptsne transform`.")] = None,
    perplexity: options.Perplexity = None,
    contraction: options.Contraction = None,
    clusters: options.Clusters = None,
    metric: options.Metric = "euclidean",
    iterations: options.Iterations = 300,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Embed a table and write the map as a table, a plot and an interactive HTML file.

    Columns of numbers are embedded, booleans as 0 and 1. Labels, text, and numbers that only count or identify the
    rows are not embedded but kept beside the map. Without --out, --plot and --html, the map is written to
    NAME-map.csv and NAME-map.png, or to standard output if the data come from standard input.

    **Examples**

    ```
    laptsne embed digits
    laptsne embed cells.csv --label celltype --out map.csv --plot map.svg
    laptsne embed cells.parquet --html cells.html --save cells.laptsne
    cat cells.csv | laptsne embed - --out - | head -n 3
    ```
    """
    with reported():
        from laptsne.cli.embed import embed_source
        from laptsne.cli.outputs import OutputFiles

        data = InputOptions(source, label, not no_label, quiet)
        parameters: dict[str, Any] = {"perplexity": perplexity, "contraction": contraction, "n_clusters": clusters}
        parameters |= {"metric": metric, "max_iter": iterations, "random_state": seed, "n_jobs": jobs}
        embed_source(data, parameters, OutputFiles(out, plot, html, save).or_default(source), force=force)


@app.command()
def transform(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model written by `laptsne embed --save`.")],
    source: options.Source,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Table of the coordinates: .csv, .tsv, .parquet, .feather, .npy, or - for CSV to standard output "
            "(default: NAME-placed.csv)."
        ),
    ] = None,
    label: options.Label = None,
    no_label: options.NoLabel = False,
    jobs: options.Jobs = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Place new rows on the map of a saved model, which does not change.

    If the model has feature names, the columns of FILE are matched by name, in any order.

    **Examples**

    ```
    laptsne transform cells.laptsne new-cells.csv --out new-map.csv
    cat new-cells.csv | laptsne transform cells.laptsne - --out - | head -n 3
    ```
    """
    with reported():
        from laptsne.cli.transform import transform_source

        data = InputOptions(source, label, not no_label, quiet)
        transform_source(model, data, out=out, n_jobs=jobs, force=force)


@app.command()
def gap(
    source: options.Source,
    label: options.Label = None,
    no_label: options.NoLabel = False,
    plot: Annotated[Path | None, typer.Option(help="Plot of the eigenvalues: .png, .svg or .pdf.")] = None,
    perplexity: options.Perplexity = None,
    metric: options.Metric = "euclidean",
    jobs: options.Jobs = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Print the smallest eigenvalues of the Laplacian of the data's similarity graph, without an embedding.

    Well-separated clusters give eigenvalues near 0; the largest gap above them (the eigengap) estimates their number.
    `laptsne embed` requires more evidence: a density valley around every cluster in the map.

    **Examples**

    ```
    laptsne gap digits
    laptsne gap cells.csv --label celltype --plot eigenvalues.png
    ```
    """
    with reported():
        from laptsne.cli.gap import print_eigenvalues

        data = InputOptions(source, label, not no_label, quiet)
        print_eigenvalues(data, perplexity=perplexity, metric=metric, n_jobs=jobs, plot=plot, force=force)


@app.command()
def explore(
    source: Annotated[
        str, typer.Argument(metavar="FILE", help="An explorer written before, or any input of `laptsne embed`.")
    ],
    label: options.Label = None,
    no_label: options.NoLabel = False,
    html: options.Html = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Write the HTML file without opening a browser.")] = False,
    perplexity: options.Perplexity = None,
    contraction: options.Contraction = None,
    clusters: options.Clusters = None,
    metric: options.Metric = "euclidean",
    iterations: options.Iterations = 300,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Embed a table and open the interactive explorer in the browser, or open one that was written before.

    The explorer is written to NAME-map.html unless --html names another file.

    **Examples**

    ```
    laptsne explore digits
    laptsne explore cells.csv --label celltype --html cells.html --no-open
    laptsne explore cells.html
    ```
    """
    with reported():
        explorer = Path(source)
        if explorer.suffix.lower() not in (".html", ".htm"):
            from laptsne.cli.embed import embed_source
            from laptsne.cli.outputs import OutputFiles, stem

            explorer = html or Path(f"{stem(source)}-map.html")
            data = InputOptions(source, label, not no_label, quiet)
            parameters: dict[str, Any] = {"perplexity": perplexity, "contraction": contraction, "n_clusters": clusters}
            parameters |= {"metric": metric, "max_iter": iterations, "random_state": seed, "n_jobs": jobs}
            embed_source(data, parameters, OutputFiles(html=explorer), force=force)
        elif not explorer.is_file():
            raise InputError(f"there is no file {explorer}; write one with laptsne embed FILE --html {explorer}.")
        if not no_open and not webbrowser.open(explorer.resolve().as_uri()):
            say([f"laptsne: no browser was found; open {explorer} in one."], "yellow")
