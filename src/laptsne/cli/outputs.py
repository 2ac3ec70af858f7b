"""The files that a command writes."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from laptsne import plotting
from laptsne._runtime.files import atomic_write
from laptsne.cli.drawing import save_plot
from laptsne.cli.errors import InputError
from laptsne.cli.explorer_page import (
    explorer_columns,
    explorer_features,
    explorer_images,
    explorer_path,
    explorer_title,
)
from laptsne.cli.fitting import FittedDataset, input_errors
from laptsne.cli.membership import cluster_names
from laptsne.cli.tables.dataset import Dataset
from laptsne.cli.tables.writing import WRITABLE, write_arrow, write_embedding
from laptsne.contraction_path import ContractionPath
from laptsne.explorer.columns import CLUSTERS

STDOUT = Path("-")
_PLOTS = (".png", ".svg", ".pdf")
_HTML = (".html", ".htm")
_PLOTTED = (1, 2, 3)  # dimensions of maps that plots show
_EXPLORED = (2,)  # and the explorer


@dataclass(frozen=True)
class OutputFiles:
    """Paths of the embedding, its plot, its explorer, the model and the features of clusters, None if not written.

    ``color`` are the columns to colour by, and ``text`` is the column whose words name the clusters in the explorer.
    """

    out: Path | None = None
    plot: Path | None = None
    html: Path | None = None
    save: Path | None = None
    color: tuple[str, ...] = ()
    distinguish: Path | None = None
    text: str | None = None

    def or_default(self, source: str, n_components: int) -> OutputFiles:
        """Return these files, or the default ones if none of them shows the embedding."""
        if self.out or self.plot or self.html:
            return self
        if source == "-":
            return replace(self, out=STDOUT)
        name = stem(source)
        plot = Path(f"{name}-map.png") if n_components in _PLOTTED else None
        return replace(self, out=Path(f"{name}-map.csv"), plot=plot)

    def paths(self) -> list[Path]:
        """Return the paths that are given."""
        return [path for path in (self.out, self.plot, self.html, self.save, self.distinguish) if path is not None]

    def check(self, source: str, *, n_components: int = 2, force: bool) -> None:
        """Raise InputError, before the work, if a file could not be written after it."""
        tables = tuple(ending for ending in WRITABLE if ending != ".npy")
        expected = ((self.out, WRITABLE), (self.plot, _PLOTS), (self.html, _HTML), (self.distinguish, tables))
        for path, endings in expected:
            if path is not None and path != STDOUT and path.suffix.lower() not in endings:
                raise InputError(f"{path} cannot be written; give a name that ends in {' or '.join(endings)}.")
        if STDOUT in (self.plot, self.html, self.save, self.distinguish):
            raise InputError("only --out can be -, for standard output; give a file.")
        for path, dims in ((self.plot, _PLOTTED), (self.html, _EXPLORED)):
            if path is not None and n_components not in dims:
                raise InputError(
                    f"{path} shows two dimensions, not {n_components}; embed with --dims 2, or give --out alone."
                )
        if self.text is not None and self.html is None:
            raise InputError(f"--text {self.text} names clusters in the explorer; give --html as well.")
        paths = [path for path in self.paths() if path != STDOUT]
        for i, path in enumerate(paths):
            if path.resolve() in [other.resolve() for other in paths[:i]]:
                raise InputError(f"{path} is named twice; give each file a name of its own.")
            _check_writable(path, Path(source), force=force)

    def check_columns(self, dataset: Dataset) -> None:
        """Raise InputError, before the work, if the column of texts is none."""
        if self.text is not None and dataset.values(self.text, "of texts").dtype.kind not in "OU":
            raise InputError(f"--text {self.text} is not a column of texts; name another.")

    def first_color(self, dataset: Dataset) -> str | None:
        """Return the column that colours the plot, None for the clusters."""
        return self.color[0] if self.color else dataset.label

    def write(self, fitted: FittedDataset, *, quiet: bool) -> ContractionPath | None:
        """Write the files; return the contraction path that the explorer shows, if any."""
        dataset, model, clusters = fitted.dataset, fitted.model, fitted.clusters
        if self.save is not None:
            with input_errors():
                model.save(self.save)
        write_table(self.out, model.embedding_, dataset.columns, {"cluster": clusters})
        color = self.first_color(dataset)
        if self.plot is not None:
            values = cluster_names(clusters) if color is None else dataset.values(color)
            save_plot(model.embedding_, values, self.plot, title=color, continuous=color in dataset.continuous)
        if self.distinguish is not None:
            with input_errors():
                table = model.distinguish(*fitted.prepared.named_features)
            write_arrow(self.distinguish, pa.table({name: list(values) for name, values in vars(table).items()}))
        if self.html is None:
            return None
        path = explorer_path(fitted, quiet=quiet)
        columns = explorer_columns(dataset, {CLUSTERS: cluster_names(clusters)})
        options: dict[str, Any] = {"images": explorer_images(dataset), "title": explorer_title(dataset)}
        options |= {"continuous": dataset.continuous} | explorer_features(dataset)
        if model.n_clusters_ > 1 and CLUSTERS not in dataset.columns.column_names:
            options |= {"clusters": fitted.evidence, "text": self.text}
        maps = model.embedding_ if path is None else path
        write_explorer(maps, self.html, columns=columns, color=color or next(iter(columns)), **options)
        return path


def write_table(out: Path | None, Y: Any, columns: Any, found: dict[str, Any]) -> None:
    """Write the embedding as a table, to a file or standard output, if there is an ``out``."""
    if out is not None:
        write_embedding(None if out == STDOUT else out, Y, columns, found)


def write_explorer(maps: Any, out: Path, **options: Any) -> None:
    """Write the explorer of an embedding or a contraction path."""
    with atomic_write(out) as temporary:
        plotting.explorer(maps, temporary, **options)


def stem(source: str) -> str:
    """Return the name of the input without its folder and suffixes."""
    return "stdin" if source == "-" else Path(source.removesuffix(".gz")).resolve().stem


def _check_writable(path: Path, source: Path, *, force: bool) -> None:
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent}; create it first.")
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file.")
    if path.exists() and source.exists() and path.samefile(source):
        raise InputError(f"{path} is the input file; give another name to write to.")
    if path.exists() and not force:
        raise InputError(f"{path} exists already; give --force to overwrite it, or another name.")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"the folder {path.parent} is not writable; choose another.")
