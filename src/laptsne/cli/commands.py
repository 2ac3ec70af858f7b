"""The commands: their options and help texts.

Each imports what it runs when it is called, so that ``laptsne --help`` does not wait for numba and scikit-learn.
"""

import webbrowser
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from laptsne import __version__
from laptsne.cli import options
from laptsne.cli.terminal import InputError, caution

app = typer.Typer(
    no_args_is_help=True,
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
@options.command
def embed(
    data: options.InputOptions,
    features: options.FeatureOptions,
    settings: options.MapOptions,
    files: options.OutputFiles,
) -> None:
    """Embed a table and write the map as a table, a plot and an interactive HTML file.

    Columns of numbers are embedded, booleans as 0 and 1, or the column of lists if there is one. Labels, text, dates,
    and numbers that only count or identify the rows are not embedded but kept beside the map. Without --out, --plot and
    --html, the map is written to NAME-map.csv and NAME-map.png, or to standard output if the data come from there.

    Clusters are listed with the chance that data without clusters look as divided as a cluster and its nearest one: it
    is "clear" if that is at most 0.1 %, "likely" if it is at most 1 %, and otherwise "doubtful".

    **Examples**

    ```
    laptsne embed digits
    laptsne embed cells.parquet --label celltype --scale standard --html cells.html --save cells.laptsne
    cat cells.csv | laptsne embed - --out - | head -n 3
    ```
    """
    from laptsne.cli.runs import embed_source

    embed_source(data, features, settings, files.or_default(data.source))


@app.command()
@options.command
def transform(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model written by `laptsne embed --save`.")],
    data: options.InputOptions,
    files: options.MapFiles,
) -> None:
    """Place new rows on the map of a saved model, which does not change.

    FILE is preprocessed as the data of the model were, and its columns are matched by name, in any order. Plots show
    the old rows in grey. Without --out, --plot and --html, the coordinates are written to NAME-placed.csv.

    **Examples**

    ```
    laptsne transform cells.laptsne new-cells.csv --out new-map.csv --plot new-map.png
    cat new-cells.csv | laptsne transform cells.laptsne - --out - | head -n 3
    ```
    """
    from laptsne.cli.runs import transform_source

    transform_source(model, data, files.or_default(data.source, "placed"))


@app.command()
@options.command
def gap(
    data: options.InputOptions,
    features: options.FeatureOptions,
    settings: options.GraphOptions,
    plot: Annotated[Path | None, typer.Option(help="Plot of the eigenvalues: .png, .svg or .pdf.")] = None,
) -> None:
    """Print the smallest eigenvalues of the Laplacian of the data's similarity graph, without an embedding.

    Well-separated clusters give eigenvalues near 0; the largest gap above them (the eigengap) estimates their number.

    **Examples**

    ```
    laptsne gap digits
    laptsne gap cells.csv --label celltype --plot eigenvalues.png
    ```
    """
    from laptsne.cli.runs import print_eigenvalues

    print_eigenvalues(data, features, settings, plot)


@app.command()
@options.command
def explore(
    data: options.InputOptions,
    features: options.FeatureOptions,
    settings: options.MapOptions,
    files: options.OutputFiles,
    no_open: Annotated[bool, typer.Option("--no-open", help="Write the HTML file without opening a browser.")] = False,
) -> None:
    """Embed a table and open the interactive explorer in the browser, or open one that was written before.

    The explorer is written to NAME-map.html unless --html names another file. FILE is an explorer written before, or
    any input of `laptsne embed`.

    **Examples**

    ```
    laptsne explore digits
    laptsne explore cells.csv --label celltype --html cells.html --no-open
    laptsne explore cells.html
    ```
    """
    explorer = Path(data.source)
    if explorer.suffix.lower() not in options.HTML:
        from laptsne.cli.runs import embed_source

        explorer = files.html or Path(f"{options.stem(data.source)}-map.html")
        embed_source(data, features, settings, replace(files, html=explorer))
    elif not explorer.is_file():
        raise InputError(f"there is no file {explorer}; write one with laptsne embed FILE --html {explorer}.")
    if not no_open and not webbrowser.open(explorer.resolve().as_uri()):
        caution(f"no browser was found; open {explorer} in one.")
