"""Embeddings in CSV, TSV, Parquet, Feather, Arrow and NPY files."""

import csv
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
from numpy.typing import NDArray

from laptsne._runtime.files import atomic_write
from laptsne.cli.tables.contents import spelled_times

WRITABLE = (".csv", ".tsv", ".parquet", ".feather", ".arrow", ".npy")
_ROWS = 1 << 16  # written at a time


def write_embedding(
    out: Path | None, Y: NDArray[np.floating], columns: pa.Table, found: Mapping[str, NDArray[Any]] | None = None
) -> None:
    """Write the coordinates, what was found on the samples, such as clusters, and the columns as they came.

    ``out`` is a file that ends in one of ``WRITABLE``, of which .npy holds the embedding alone; None is CSV to standard
    output.
    """
    if out is not None and out.suffix.lower() == ".npy":
        # np.save would add another ending to .NPY
        with atomic_write(out) as path, path.open("wb") as array:
            np.save(array, Y, allow_pickle=False)
        return
    write_arrow(out, _assemble(Y, columns, found or {}))


def write_arrow(out: Path | None, table: pa.Table) -> None:
    """Write a table to a file that ends in one of ``WRITABLE`` but .npy; None is CSV to standard output."""
    if out is None:
        _write_text(sys.stdout, table, ",")
        sys.stdout.flush()
        return
    with atomic_write(out) as path:
        ending = out.suffix.lower()
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


def _assemble(Y: NDArray[np.floating], columns: pa.Table, found: Mapping[str, NDArray[Any]]) -> pa.Table:
    n_components = Y.shape[1]
    axes = "xyz"[:n_components] if n_components <= 3 else [f"x{i}" for i in range(1, n_components + 1)]
    names = columns.column_names
    own = {**dict(zip(axes, Y.T, strict=True)), **found}
    assembled = {free_name(name, names): pa.chunked_array([values]) for name, values in own.items()}
    return pa.table(assembled | {name: _plain(columns[name]) for name in names})


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column without the dictionary that it is held by."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _write_text(file: IO[str], table: pa.Table, delimiter: str) -> None:
    # By the standard library: pyarrow's writer quotes the header and every string.
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow(table.column_names)
    for batch in table.to_batches(max_chunksize=_ROWS):
        writer.writerows(zip(*(_spelled(column) for column in batch.columns), strict=True))


def _spelled(column: pa.Array) -> list[Any]:
    """Return values as csv writes them; times in full, and floats of single precision with no more digits than that."""
    if pa.types.is_temporal(column.type):
        column = spelled_times(column)
    single = pa.types.is_float32(column.type) and not column.null_count
    values: list[Any] = column.to_numpy().astype(str).tolist() if single else column.to_pylist()
    return values
