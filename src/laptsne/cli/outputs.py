"""The files that the commands write: tables, plots and explorers."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import scipy.sparse
from numpy.typing import NDArray

from laptsne import plotting
from laptsne._runtime.files import atomic_open, atomic_write
from laptsne.cli.reading import EXAMPLE, read_genes
from laptsne.cli.tables import Dataset, spelled_times
from laptsne.cli.terminal import InputError

STDOUT = Path("-")
_WRITABLE = (".csv", ".tsv", ".parquet", ".feather", ".arrow", ".npy")  # the last for arrays alone
_PLOTS = (".png", ".svg", ".pdf")
_HTML = (".html", ".htm")
_ROWS = 1 << 16  # of text, written at a time
_SQUARE, _SIZES = (5.5, 5.5), {1: (6.5, 2.6)}  # of plots by number of dimensions, in inches
_MODULES = ("matplotlib.backends.backend_agg", "laptsne.plotting.canvas", "laptsne.plotting.text_labels")
_MAX_FEATURES = 20  # that are columns of the explorer; more would bury the others


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

    def or_default(self, source: str, what: str = "map") -> OutputFiles:
        """Return these files, or the default ones if none of them shows the embedding."""
        if self.out or self.plot or self.html:
            return self
        name = f"{stem(source)}-{what}"
        plot = Path(f"{name}.png") if what == "map" and source != "-" else None
        return replace(self, out=STDOUT if source == "-" else Path(f"{name}.csv"), plot=plot)

    def paths(self) -> list[Path]:
        """Return the paths that are given."""
        return [path for path in (self.out, self.plot, self.html, self.save, self.distinguish) if path is not None]

    def check(self, source: str, *, n_components: int = 2, force: bool) -> None:
        """Raise InputError, before the work, if a file could not be written after it."""
        expected = ((self.out, _WRITABLE), (self.plot, _PLOTS), (self.html, _HTML), (self.distinguish, _WRITABLE[:-1]))
        for path, endings in expected:
            if path not in (None, STDOUT) and path.suffix.lower() not in endings:
                raise InputError(f"{path} cannot be written; give a name that ends in {' or '.join(endings)}.")
        if STDOUT in (self.plot, self.html, self.save, self.distinguish):
            raise InputError("only --out can be -, for standard output; give a file.")
        if self.html is not None and n_components != 2:
            remedy = "embed with --dims 2, or give --out alone"
            raise InputError(f"{self.html} shows two dimensions, not {n_components}; {remedy}.")
        if self.text is not None and self.html is None:
            raise InputError(f"--text {self.text} names clusters in the explorer; give --html as well.")
        paths = [path for path in self.paths() if path != STDOUT]
        for i, path in enumerate(paths):
            if path.resolve() in [other.resolve() for other in paths[:i]]:
                raise InputError(f"{path} is named twice; give each file a name of its own.")
            _check_writable(path, Path(source), force=force)

    def check_columns(self, dataset: Dataset) -> None:
        """Raise InputError, before the work, if the column of texts holds no texts."""
        if self.text is not None and dataset.values(self.text, "of texts").dtype.kind not in "OU":
            raise InputError(f"--text {self.text} is not a column of texts; name another.")

    def first_color(self, dataset: Dataset) -> str | None:
        """Return the column that colours the plot, None for the clusters."""
        return self.color[0] if self.color else dataset.label


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


def write_map(
    out: Path | None, Y: NDArray[np.floating], columns: pa.Table, found: Mapping[str, NDArray[Any]] | None = None
) -> None:
    """Write the coordinates, what was found on the samples, such as clusters, and the columns as they came.

    Of these, a .npy file holds the coordinates alone. None writes nothing.
    """
    if out is not None and out.suffix.lower() == ".npy":
        with atomic_open(out) as file:  # np.save would add another ending to .NPY
            np.save(file, Y, allow_pickle=False)
    elif out is not None:
        own = dict(zip("xyz", Y.T, strict=False)) | dict(found or {})
        names = columns.column_names
        assembled = {free_name(name, names): pa.chunked_array([values]) for name, values in own.items()}
        write_table(out, pa.table(assembled | {name: _plain(columns[name]) for name in names}))


def write_table(out: Path, table: pa.Table) -> None:
    """Write a table to a file, or as CSV to standard output for ``-``."""
    if out == STDOUT:
        _write_text(sys.stdout, table, ",")
        sys.stdout.flush()
        return
    ending = out.suffix.lower()
    with atomic_write(out) as path:
        if ending == ".parquet":
            pa.parquet.write_table(table, path)
        elif ending in (".feather", ".arrow"):
            pa.feather.write_feather(table, path)
        else:
            with path.open("w", newline="", encoding="utf-8") as file:
                _write_text(file, table, "\t" if ending == ".tsv" else ",")


def free_name(name: str, taken: list[str]) -> str:
    """Return the name of a column of the map, with a prefix if a column of the data has it."""
    while name in taken:
        name = f"map_{name}"
    return name


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _write_text(file: IO[str], table: pa.Table, delimiter: str) -> None:
    # By the standard library: pyarrow's writer quotes the header and every string.
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow(table.column_names)
    for batch in table.to_batches(max_chunksize=_ROWS):
        writer.writerows(zip(*(_spelled(column) for column in batch.columns), strict=True))


def _spelled(column: pa.Array) -> list[Any]:
    """Return values as csv writes them: floats of single precision with no more digits than that."""
    if pa.types.is_float32(column.type) and not column.null_count:
        return list(column.to_numpy().astype(str))
    return list((spelled_times(column) if pa.types.is_temporal(column.type) else column).to_pylist())


def import_beside() -> None:
    """Import matplotlib, which takes as long as the fit of a small table, in a thread beside that fit."""
    Thread(target=lambda: [import_module(name) for name in _MODULES], daemon=True).start()


def save_figure(ax: Any, path: Path) -> None:
    """Write the figure of some axes."""
    with atomic_write(path) as temporary:
        ax.figure.savefig(temporary, dpi=150)


def save_plot(Y: Any, values: Any, path: Path, *, title: str | None = None, continuous: bool = False) -> None:
    """Write a plot of an embedding; its figure is a new one, whatever was drawn before."""
    from matplotlib.figure import Figure  # noqa: PLC0415  slow to import

    figure = Figure(figsize=_SIZES.get(Y.shape[1], _SQUARE), layout="constrained")
    ax = figure.add_subplot(projection="3d" if Y.shape[1] == 3 else None)
    save_figure(plotting.scatter(Y, values, ax=ax, title=title, continuous=continuous or None), path)


def write_explorer(maps: Any, out: Path, dataset: Dataset, **options: Any) -> None:
    """Write the explorer of an embedding or a contraction path."""
    path = Path(dataset.name)
    # A 10x matrix has the same name everywhere, so that the folder is the title.
    title = path.resolve().parent.name if path.name.startswith("matrix.mtx") else path.name
    with atomic_write(out) as temporary:
        plotting.explorer(maps, temporary, title=title, continuous=dataset.continuous, **options)


def explorer_columns(dataset: Dataset, found: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the label, what was found, the columns beside the embedding, and the features if they are few."""
    kept = {name: dataset.values(name) for name in dataset.columns.column_names}
    columns = {} if dataset.label is None else {dataset.label: kept[dataset.label]}
    columns |= {free_name(name, list(kept)): values for name, values in found.items()} | kept
    if _are_few(dataset.features or (), dataset.X):
        columns |= {name: dataset.X[:, i] for i, name in enumerate(dataset.features or ()) if name not in columns}
    return columns


def _are_few(features: Sequence[str], X: Any) -> bool:
    return len(features) <= _MAX_FEATURES and not scipy.sparse.issparse(X)


def explorer_features(dataset: Dataset) -> dict[str, Any]:
    """Return the features that are not columns of the explorer: many columns of a table, or the genes of cells."""
    X, names = dataset.X, dataset.features
    if names is None and Path(dataset.name).suffix.lower() == ".h5ad":
        X, names = read_genes(Path(dataset.name)) or (X, None)
        if X.shape[0] != dataset.X.shape[0]:  # rows were left out
            return {}
    lists = any(width > 1 for width in (dataset.inputs or {}).values())  # numbers without a meaning of their own
    return {} if names is None or lists or _are_few(names, X) else {"features": X, "feature_names": names}


def explorer_images(dataset: Dataset) -> NDArray[np.uint8] | None:
    """Return the rows of the built-in example as greyscale images."""
    if dataset.name != EXAMPLE or dataset.X.shape[1] != 64:  # it may be transposed
        return None
    return np.rint(dataset.X * (255 / dataset.X.max())).astype(np.uint8).reshape(-1, 8, 8)
