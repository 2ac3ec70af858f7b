"""Maps as tables in CSV, TSV, Parquet and NPY."""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.atomic_file import atomic_write
from laptsne.cli.tables.content import Column, required

WRITABLE = (".csv", ".tsv", ".parquet", ".npy")
_AXES = ("x", "y", "z")


def write(
    out: Path | None,
    Y: NDArray[np.floating],
    *,
    clusters: Column | None = None,
    label: str | None = None,
    columns: Mapping[str, Column] | None = None,
) -> None:
    """Write a map with one row a point: x, y, cluster, label and the other columns.

    Parameters
    ----------
    out : Path or None
        A file that ends in .csv, .tsv, .parquet, or .npy, which holds the map alone; None is CSV to standard output.
    Y : array of shape (n_samples, n_components)
        The map.
    clusters : array of shape (n_samples,), optional
        Clusters.
    label : str, optional
        Which of the columns holds the labels; it is called ``label`` in the file.
    columns : mapping of str to array, optional
        What else is known of the points.
    """
    table = _arranged(Y, clusters, label, columns or {})
    if out is None:
        _write_text(sys.stdout, table, ",")
        sys.stdout.flush()
        return
    with atomic_write(out) as path:
        if out.suffix == ".npy":
            np.save(path, Y, allow_pickle=False)
        elif out.suffix == ".parquet":
            arrow = required("pyarrow", f"writing {out}", "cli")
            required("pyarrow.parquet", f"writing {out}", "cli").write_table(arrow.table(table), path)
        else:
            with path.open("w", newline="", encoding="utf-8") as file:
                _write_text(file, table, "\t" if out.suffix == ".tsv" else ",")


def _arranged(
    Y: NDArray[np.floating], clusters: Column | None, label: str | None, columns: Mapping[str, Column]
) -> dict[str, Column]:
    table: dict[str, Column] = dict(zip(_AXES, Y.T, strict=False))
    if clusters is not None:
        table["cluster"] = clusters
    if label is not None:
        table["label"] = columns[label]
    for name, values in columns.items():
        if name != label:
            free = name
            while free in table:  # the map's own columns keep their names
                free = f"data_{free}"
            table[free] = values
    return table


def _write_text(file: IO[str], table: dict[str, Column], delimiter: str) -> None:
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*(column.tolist() for column in table.values()), strict=True))
