"""``laptsne transform``: new rows on a map that was saved."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from laptsne import LaptSNE
from laptsne.cli import options
from laptsne.cli.embed import Files, stem
from laptsne.cli.fitting import data, refused
from laptsne.cli.tables import InputError, Table, write
from laptsne.cli.terminal import app, reported, say


@app.command()
def transform(
    model_file: Annotated[Path, typer.Argument(metavar="MODEL", help="A model that `laptsne embed --save` wrote.")],
    source: options.Source,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Table of the places: .csv, .tsv, .parquet, .npy, or - for standard output (default: NAME-placed.csv)."
        ),
    ] = None,
    label: options.Label = None,
    no_label: options.NoLabel = False,
    jobs: options.Jobs = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Place new rows on the map of a saved model, which stays as it is.

    Where the model knows the names of its features, the columns of FILE are taken by name, in any order.

    **Examples**

    ```
    laptsne transform cells.laptsne new-cells.csv --out new-map.csv
    cat new-cells.csv | laptsne transform cells.laptsne - --out - | head -n 3
    ```
    """
    with reported():
        started = time.perf_counter()
        default = Path("-") if source == "-" else Path(f"{stem(source)}-placed.csv")
        files = Files(out or default)
        files.check(source, force=force)
        model, features = _loaded(model_file)
        table = data(source, label=label, guess=not no_label, features=features, n_rows=1, quiet=quiet)
        _check_width(model, table)
        model.n_jobs = jobs
        with refused():
            Y = model.transform(table.X)
        write(None if files.out == Path("-") else files.out, Y, label=table.label, columns=table.columns)
        if not quiet:
            seconds = time.perf_counter() - started
            say([f"placed       {len(Y)} points among {len(model.embedding_)}, in {seconds:.1f} s: {files.out}"])


def _loaded(path: Path) -> tuple[LaptSNE, list[str] | None]:
    """A model and the names of its features, where it knows them."""
    if path.is_dir() or not path.exists():
        raise InputError(f"there is no model {path}; make one with laptsne embed FILE --save {path}.")
    with refused():
        model = LaptSNE.load(path)
    # The columns are brought into order by these names here; the model itself is then given an array.
    if not hasattr(model, "feature_names_in_"):
        return model, None
    names = [str(name) for name in model.feature_names_in_]
    del model.feature_names_in_
    return model, names


def _check_width(model: LaptSNE, table: Table) -> None:
    if table.X.shape[1] != model.n_features_in_:
        raise InputError(
            f"{table.name} has {table.X.shape[1]} features, but the model was made of {model.n_features_in_}; "
            "give the columns that it was made of."
        )
