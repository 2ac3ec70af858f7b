"""The command ``laptsne``."""

from __future__ import annotations

import csv
import time
import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

from laptsne import LaptSNE, datasets, plotting

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
console = Console(stderr=True, highlight=False)


class InputError(Exception):
    """What the user can mend: said in one line, with exit code 2."""


@app.callback()
def main() -> None:
    """Maps of high-dimensional data in which clusters can be seen."""


@app.command()
def embed(
    source: Annotated[str, typer.Argument(help="A .csv or .npy file, or a data set by name: digits, waveform.")],
    label: Annotated[str | None, typer.Option(help="Column of a CSV file with labels; it is not embedded.")] = None,
    out: Annotated[Path | None, typer.Option(help="Table of the map (default: NAME-map.csv).")] = None,
    plot: Annotated[Path | None, typer.Option(help="Picture of the map (default: NAME-map.png).")] = None,
    perplexity: Annotated[float | None, typer.Option(help="Effective number of neighbours (default: auto).")] = None,
    contraction: Annotated[float | None, typer.Option(help="Strength; 0 is plain t-SNE (default: auto).")] = None,
    clusters: Annotated[int | None, typer.Option(help="Number of clusters to contract (default: auto).")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random start.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files.")] = False,
) -> None:
    """Make a map and write it as a table and a picture.

    Examples:

        laptsne embed digits

        laptsne embed cells.csv --label celltype --out cells-map.csv --plot cells-map.svg
    """
    try:
        started = time.perf_counter()
        name = Path(source).stem
        out, plot = out or Path(f"{name}-map.csv"), plot or Path(f"{name}-map.png")
        _check_target(out, (".csv",), force=force)
        _check_target(plot, (".png", ".svg", ".pdf"), force=force)
        X, labels = _read(source, label)
        estimator = LaptSNE(
            perplexity="auto" if perplexity is None else perplexity,
            contraction="auto" if contraction is None else contraction,
            n_clusters="auto" if clusters is None else clusters,
            verbose=console.is_terminal,
            random_state=seed,
        )
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", UserWarning)
            try:
                Y = estimator.fit_transform(X)
            except ValueError as error:
                raise InputError(str(error)) from error
        _write(out, Y, estimator.labels_, labels)
        ax = plotting.scatter(Y, estimator.labels_ if labels is None else labels)
        ax.figure.savefig(plot, dpi=150)  # type: ignore[union-attr]
    except (InputError, OSError) as error:
        console.print(f"laptsne: {error}", style="red", markup=False, soft_wrap=True)
        raise typer.Exit(2) from error
    for message in dict.fromkeys(str(warning.message) for warning in said):
        console.print(f"laptsne: {message}", style="yellow", markup=False, soft_wrap=True)
    found = f"{estimator.n_clusters_}, {'as given' if clusters else 'with evidence in the map and the data'}"
    if clusters is None and estimator.n_clusters_ == 1:
        found = "none: there is no evidence of any, so this is a map of t-SNE"
    console.print(
        f"points       {X.shape[0]} x {X.shape[1]}\n"
        f"clusters     {found}\n"
        f"contraction  {estimator.contraction_:g}, KL {estimator.kl_divergence_:.3f}\n"
        f"time         {time.perf_counter() - started:.1f} s, {estimator.n_iter_} iterations\n"
        f"files        {out}, {plot}",
        markup=False,
        soft_wrap=True,
    )


@app.command()
def reproduce(
    out: Annotated[Path, typer.Option(help="Folder of the report and of the results it is made of.")] = Path(
        "laptsne-results"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="Three small sets, one seed, in a few minutes.")] = False,
    sets: Annotated[str | None, typer.Option(help="Only these sets, with commas between them.")] = None,
    methods: Annotated[str | None, typer.Option(help="Only these methods, with commas between them.")] = None,
) -> None:
    """Run the paper's experiments again, beside other methods, and write a report.

    What was finished is not run again: stop at any time, and the next call goes on.

    Examples:

        laptsne reproduce --quick

        laptsne reproduce --sets digits,mnist --methods LaptSNE,UMAP --out results
    """
    from laptsne.reproduce import command  # noqa: PLC0415  its libraries are slow to import

    try:
        command.reproduce(out, command.make_options(sets, methods, quick=quick), console)
    except (ValueError, OSError) as error:
        console.print(f"laptsne: {error}", style="red", markup=False, soft_wrap=True)
        raise typer.Exit(2) from error
    except KeyboardInterrupt:
        console.print("laptsne: stopped; the same command goes on from here.", markup=False, soft_wrap=True)
        raise typer.Exit(130) from None
    console.print(f"report  {out / 'report.html'}, {out / 'report.md'}, {out / 'results.json'}", soft_wrap=True)


def _check_target(path: Path, suffixes: tuple[str, ...], *, force: bool) -> None:
    """Refuse before the work what could not be written after it."""
    if path.suffix not in suffixes:
        raise InputError(f"{path} cannot be written; give a name that ends in {' or '.join(suffixes)}.")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent}; make it first.")
    if path.exists() and not force:
        raise InputError(f"{path} exists already; give --force to overwrite it, or another name.")


def _read(source: str, label: str | None) -> tuple[NDArray[Any], NDArray[Any] | None]:
    if source in datasets.NAMES:
        if label is not None:
            raise InputError(
                f"--label {label} names a column of a file, but {source} is a data set with its own labels."
            )
        return datasets.load(source)
    path = Path(source)
    if not path.is_file():
        raise InputError(f"there is no file {source}; give a .csv or .npy file, or one of {', '.join(datasets.NAMES)}.")
    if path.suffix == ".npy":
        if label is not None:
            raise InputError(f"--label {label} names a column, but {path} is an array without names.")
        try:
            return np.load(path, allow_pickle=False), None
        except (ValueError, EOFError) as error:
            raise InputError(f"{path} is not an array of numbers in NPY format ({error}).") from error
    if path.suffix == ".csv":
        return _read_csv(path, label)
    raise InputError(f"{path} is neither .csv nor .npy; convert it to one of these.")


def _read_csv(path: Path, label: str | None) -> tuple[NDArray[Any], NDArray[Any] | None]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header, *rows = [row for row in csv.reader(file) if row] or [[]]
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in UTF-8; save it as CSV in that encoding.") from error
    if not rows:
        raise InputError(f"{path} has no rows below its header; give a table with a header and at least two rows.")
    if label is not None and label not in header:
        raise InputError(f"{path} has no column {label}; its columns are {', '.join(header)}.")
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise InputError(f"{path}: row {number} has {len(row)} values, the header {len(header)}; mend that row.")
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    labels = None if label is None else np.array(columns.pop(label))
    features = []
    for name, values in columns.items():
        try:
            features.append(np.array(values, dtype=np.float64))
        except ValueError as error:
            remedy = "name it with --label if it holds labels, or remove it"
            raise InputError(f"{path}: column {name} is not all numbers ({error}); {remedy}.") from error
    if not features:
        raise InputError(f"{path} has no column to embed besides {label}; give at least one column of numbers.")
    return np.column_stack(features), labels


def _write(path: Path, Y: NDArray[Any], clusters: NDArray[Any], labels: NDArray[Any] | None) -> None:
    header = ["x", "y", "cluster"]
    columns: list[NDArray[Any]] = [Y[:, 0], Y[:, 1], clusters]
    if labels is not None:
        header.append("label")
        columns.append(labels)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(zip(*(column.tolist() for column in columns), strict=True))


if __name__ == "__main__":
    app()
