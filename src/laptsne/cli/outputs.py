"""The files that the commands write: tables, plots and explorers."""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import scipy.sparse

from laptsne import plotting
from laptsne._runtime.files import atomic_write
from laptsne._runtime.typing import Array
from laptsne.cli.options import STDOUT
from laptsne.cli.reading import read_genes
from laptsne.cli.tables import Dataset, spelled_times
from laptsne.explorer.payload import CLUSTERS
from laptsne.plotting.figures import SIZES

_ROWS = 1 << 16  # of text, written at a time
_HEADINGS, _COLOUR_BAR = 0.4, 0.9  # height of the titles, and width of a colour bar with its ticks, in inches
_MAX_FEATURES = 20  # that are columns of the explorer; more would bury the others


def write_map(out: Path | None, Y: Array, columns: pa.Table, found: Mapping[str, Array] | None = None) -> None:
    """Write the coordinates, what was found on the samples, and the columns as they came; to .npy the first alone."""
    if out is not None and out.suffix.lower() == ".npy":
        with atomic_write(out) as path, path.open("wb") as file:  # np.save would add another ending to .NPY
            np.save(file, Y, allow_pickle=False)
    elif out is not None:
        own, names = {**dict(zip("xyz", Y.T, strict=False)), **(found or {})}, columns.column_names
        assembled = {free_name(name, names): pa.chunked_array([values]) for name, values in own.items()}
        for name, column in zip(names, columns.columns, strict=True):
            is_coded = pa.types.is_dictionary(column.type)
            assembled[name] = column.cast(column.type.value_type) if is_coded else column
        write_table(out, pa.table(assembled))


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


def save_figure(ax: Any, path: Path) -> None:
    """Write a figure."""
    with atomic_write(path) as temporary:
        ax.figure.savefig(temporary, dpi=150)


def save_plot(Y: Array, panels: Mapping[str, Array | None], path: Path, dataset: Dataset, title: str) -> None:
    """Write a plot of an embedding, with a panel for each colouring; keys make it wider, and the maps no smaller."""
    from matplotlib.figure import Figure  # noqa: PLC0415  slow to import

    width, height = SIZES[Y.shape[1]]
    if Y.shape[1] == 2:  # a flat map takes less room
        across, up = np.ptp(Y, axis=0)
        height = float(np.clip(1.1 * width * up / max(across, 1e-9), height / 2, height))
    figure = Figure(figsize=(width * len(panels), height + _HEADINGS), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False, subplot_kw={"projection": "3d"} if Y.shape[1] == 3 else {})[0]
    for ax, (name, values) in zip(axes, panels.items(), strict=True):
        where = "on" if name == CLUSTERS else "auto"
        plotting.scatter(Y, values, ax=ax, continuous=name in dataset.continuous or None, legend=where)
        ax.set_title(name if values is None else f"colour: {name}", fontsize="medium", parse_math=False)
    legends = [legend for ax in axes if (legend := ax.get_legend()) is not None]
    beside = sum(legend.get_window_extent().width for legend in legends) / figure.dpi
    figure.set_figwidth(width * len(axes) + beside + _COLOUR_BAR * (len(figure.axes) - len(axes)))
    figure.suptitle(f"{title_of(dataset)}: {title}", parse_math=False)
    save_figure(axes[0], path)


def title_of(dataset: Dataset) -> str:
    """Return the name of the file, or of the folder of a 10x matrix, whose name is the same everywhere."""
    path = Path(dataset.name)
    return path.resolve().parent.name if path.name.startswith("matrix.mtx") else path.name


def write_explorer(maps: Any, out: Path, dataset: Dataset, **options: Any) -> None:
    """Write the explorer of an embedding or a contraction path."""
    with atomic_write(out) as temporary:
        plotting.explorer(maps, temporary, title=title_of(dataset), continuous=dataset.continuous, **options)


def explorer_columns(dataset: Dataset, found: dict[str, Array]) -> dict[str, Array]:
    """Return the label, what was found, the columns beside the embedding, and the features if they are few."""
    kept = {name: dataset.values(name) for name in dataset.columns.column_names}  # the label first
    columns = {} if dataset.label is None else {dataset.label: kept[dataset.label]}
    columns |= {free_name(name, list(kept)): values for name, values in found.items()} | kept
    if _has_few(dataset):
        columns |= {name: dataset.X[:, i] for i, name in enumerate(dataset.features or ()) if name not in columns}
    return columns


def _has_few(dataset: Dataset) -> bool:
    return len(dataset.features or ()) <= _MAX_FEATURES and not scipy.sparse.issparse(dataset.X)


def explorer_features(dataset: Dataset) -> dict[str, Any]:
    """Return features that are not columns of the explorer: many columns of a table, or the genes of cells."""
    X, names = measurements(dataset)
    if names is None or (names is dataset.features and _has_few(dataset)):
        return {}
    return {"features": X, "feature_names": names}


def measurements(dataset: Dataset, *, whatever_size: bool = False) -> tuple[Any, tuple[str, ...] | None]:
    """Return the features and their names; of an h5ad file the genes, whatever is embedded, if all rows are."""
    found = None
    if dataset.features is None and Path(dataset.name).suffix.lower() == ".h5ad":
        found = read_genes(Path(dataset.name), whatever_size=whatever_size)
    return found if found and found[0].shape[0] == dataset.X.shape[0] else (dataset.X, dataset.features)
