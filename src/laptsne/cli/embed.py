"""``laptsne embed``: a map of a table, as a table, a picture, a page and a model."""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from laptsne import plotting
from laptsne._runtime.atomic_file import atomic_write
from laptsne.cli import options
from laptsne.cli.fitting import MAX_ITER, Made, Settings, data, make, refused
from laptsne.cli.page import with_gaps, write_page
from laptsne.cli.summary import summary
from laptsne.cli.tables import WRITABLE, InputError, check_targets, write
from laptsne.cli.terminal import app, reported, say
from laptsne.contraction_path import ContractionPath

_PICTURES = (".png", ".svg", ".pdf")
_PAGES = (".html", ".htm")
_STDOUT = Path("-")


@app.command()
def embed(
    source: options.Source,
    label: options.Label = None,
    no_label: options.NoLabel = False,
    out: Annotated[
        Path | None, typer.Option(help="Table of the map: .csv, .tsv, .parquet, .npy, or - for CSV to standard output.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Picture of the map: .png, .svg or .pdf.")] = None,
    html: options.Html = None,
    save: Annotated[Path | None, typer.Option(help="Model to keep, for `laptsne transform`.")] = None,
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
    """Make a map and write it as a table, a picture, and a page to explore it.

    Columns of numbers are embedded, truth values as 0 and 1. Columns of labels, text, and numbers that only count
    or name the rows are not; they are kept beside the map. Where neither --out, --plot nor --html is given, the map
    goes to NAME-map.csv and NAME-map.png; where the data come from standard input, to standard output.

    **Examples**

    ```
    laptsne embed digits
    laptsne embed cells.csv --label celltype --out map.csv --plot map.svg
    laptsne embed cells.parquet --html cells.html --save cells.laptsne
    cat cells.csv | laptsne embed - --out - | head -n 3
    ```
    """
    with reported():
        started = time.perf_counter()
        files = Files(out, plot, html, save).completed(source)
        files.check(source, force=force)
        settings = Settings(perplexity, contraction, clusters, seed, metric, iterations, jobs)
        made = make(data(source, label=label, guess=not no_label, quiet=quiet), settings, quiet=quiet)
        path = files.write(made, quiet=quiet)
        if not quiet:
            say(summary(made, path, files.named(), time.perf_counter() - started))


@dataclass(frozen=True)
class Files:
    """What is to be written."""

    out: Path | None = None
    plot: Path | None = None
    html: Path | None = None
    save: Path | None = None

    def completed(self, source: str) -> Files:
        """With the files that are written where none is named."""
        if self.out or self.plot or self.html:
            return self
        if source == "-":
            return Files(_STDOUT, save=self.save)
        name = stem(source)
        plot = Path(f"{name}-map.png") if find_spec("matplotlib") else None
        if plot is None:
            say(['laptsne: there is no picture, since matplotlib is missing; pip install "laptsne[plot]".'], "yellow")
        return Files(Path(f"{name}-map.csv"), plot, save=self.save)

    def check(self, source: str, *, force: bool) -> None:
        """Refuse before the work what could not be written after it."""
        for path, endings in ((self.out, WRITABLE), (self.plot, _PICTURES), (self.html, _PAGES)):
            if path is not None and path != _STDOUT and path.suffix.lower() not in endings:
                raise InputError(f"{path} cannot be written; give a name that ends in {' or '.join(endings)}.")
        if _STDOUT in (self.plot, self.html, self.save):
            raise InputError("only --out can be -, for standard output; give a file.")
        needs = ((self.plot, "matplotlib", "plot"), (self.out if self._is_parquet else None, "pyarrow", "cli"))
        for path, library, extra in needs:
            if path is not None and find_spec(library) is None:
                raise InputError(f'writing {path} needs {library}, which is missing; pip install "laptsne[{extra}]".')
        check_targets([path for path in self.named() if path != _STDOUT], source=source, force=force)

    @property
    def _is_parquet(self) -> bool:
        return self.out is not None and self.out.suffix.lower() == ".parquet"

    def write(self, made: Made, *, quiet: bool) -> ContractionPath | None:
        """Write all; return the path of contraction that is in the page, if there is one."""
        table, model = made.table, made.model
        if self.save is not None:
            with refused():
                model.save(self.save)
        if self.out is not None:
            out = None if self.out == _STDOUT else self.out
            write(out, model.embedding_, clusters=model.labels_, label=table.label, columns=table.columns)
        if self.plot is not None:
            labels = model.labels_ if table.label is None else with_gaps(table.columns[table.label])
            ax = plotting.scatter(model.embedding_, labels)
            with atomic_write(self.plot) as path:
                ax.figure.savefig(path, dpi=150)  # type: ignore[union-attr]
        return None if self.html is None else write_page(made, self.html, quiet=quiet)

    def named(self) -> list[Path]:
        """All files."""
        return [path for path in (self.out, self.plot, self.html, self.save) if path is not None]


def stem(source: str) -> str:
    """Name of a file without its folder and endings."""
    return Path(source.removesuffix(".gz")).stem
