"""Embeddings in CSV, TSV, Parquet, Feather and NPY files."""

import csv
import sys
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
from numpy.typing import NDArray

from laptsne._runtime.atomic_file import atomic_write
from laptsne.cli.tables.contents import is_text

WRITABLE = (".csv", ".tsv", ".parquet", ".feather", ".npy")
_ROWS = 1 << 16  # written at a time


def write_embedding(
    out: Path | None,
    Y: NDArray[np.floating],
    columns: pa.Table,
    *,
    clusters: NDArray[Any] | None = None,
    label: str | None = None,
) -> None:
    """Write x, y, cluster, label and the other columns, one row per sample.

    ``out`` is a file that ends in one of ``WRITABLE``, of which .npy holds the embedding alone; None is CSV to standard
    output. ``label`` names the label column, which is called ``label`` in the file.
    """
    table = _assemble(Y, columns, clusters, label)
    if out is None:
        _write_text(sys.stdout, table, ",")
        sys.stdout.flush()
        return
    with atomic_write(out) as path:
        ending = out.suffix.lower()
        if ending == ".npy":
            np.save(path, Y, allow_pickle=False)
        elif ending == ".parquet":
            pa.parquet.write_table(table, path)
        elif ending == ".feather":
            pa.feather.write_feather(table, path)
        else:
            with path.open("w", newline="", encoding="utf-8") as file:
                _write_text(file, table, "\t" if ending == ".tsv" else ",")


def _assemble(Y: NDArray[np.floating], columns: pa.Table, clusters: NDArray[Any] | None, label: str | None) -> pa.Table:
    n_components = Y.shape[1]
    axes = "xyz"[:n_components] if n_components <= 3 else [f"x{i}" for i in range(1, n_components + 1)]
    assembled = {axis: pa.chunked_array([values]) for axis, values in zip(axes, Y.T, strict=True)}
    if clusters is not None:
        assembled["cluster"] = pa.chunked_array([clusters])
    if label is not None:
        assembled["label"] = columns[label]
    for name in columns.column_names:
        if name != label:
            free = name
            while free in assembled:  # the columns of the embedding keep their names
                free = f"data_{free}"
            assembled[free] = columns[name]
    return pa.table({name: c.cast(pa.string()) if is_text(c) else c for name, c in assembled.items()})


def _write_text(file: IO[str], table: pa.Table, delimiter: str) -> None:
    # By the standard library: pyarrow's writer quotes the header and every string.
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow(table.column_names)
    for batch in table.to_batches(max_chunksize=_ROWS):
        writer.writerows(zip(*(column.to_pylist() for column in batch.columns), strict=True))
