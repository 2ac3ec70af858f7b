"""Readers by file ending."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
from sklearn.datasets import load_digits

from laptsne.cli.errors import InputError
from laptsne.cli.tables.arrays import read_npy, read_npz
from laptsne.cli.tables.arrow import read_arrow, read_parquet
from laptsne.cli.tables.contents import FileContents, typed_contents
from laptsne.cli.tables.delimited import read_delimited
from laptsne.cli.tables.h5ad import read_h5ad
from laptsne.cli.tables.tenx import read_matrix, tenx_matrix

_READERS: dict[str, Callable[[Path], FileContents]] = {
    ".csv": read_delimited,
    ".csv.gz": read_delimited,
    ".tsv": read_delimited,
    ".tsv.gz": read_delimited,
    ".parquet": read_parquet,
    ".feather": read_arrow,
    ".arrow": read_arrow,
    ".npy": read_npy,
    ".npz": read_npz,
    ".h5ad": read_h5ad,
    ".mtx": read_matrix,
    ".mtx.gz": read_matrix,
}
EXAMPLE = "digits"  # the built-in data set


def read_source(source: str, *, rep: str | None = None, genes: Sequence[str] = ()) -> FileContents:
    """Read a file by its ending, the built-in example by its name, or CSV from standard input as ``-``.

    ``rep`` and ``genes`` name the array of an h5ad file to embed, and genes that become columns if it has them.

    Examples
    --------
    >>> from laptsne.cli.tables.reading import read_source
    >>> read_source("digits").matrix.shape
    (1797, 64)
    """
    path = Path(source)
    is_h5ad = path.name.lower().endswith(".h5ad")
    if rep is not None and not is_h5ad:
        raise InputError(f"--rep {rep} names an array of an .h5ad file, but {source} is none; remove the option.")
    if source == "-":
        return read_delimited(None)
    if source == EXAMPLE:
        X, y = load_digits(return_X_y=True)
        return typed_contents(source, pa.table({"label": y}), matrix=X)
    if path.is_dir():
        folder, found = path, tenx_matrix(path)
        if found is None:
            raise InputError(f"{folder} is a folder without matrix.mtx; give a file in it, or a 10x folder.")
        path = found
    if not path.exists():
        raise InputError(f"there is no file {source}; give a file, or the example {EXAMPLE}.")
    reader = next((reader for ending, reader in _READERS.items() if path.name.lower().endswith(ending)), None)
    if reader is None:
        raise InputError(f"{path} cannot be read; give a file that ends in {', '.join(_READERS)}.")
    if not path.stat().st_size and path.is_file():
        raise InputError(f"{path} is empty: it has no rows; give a file with data.")
    try:
        return read_h5ad(path, rep=rep, genes=genes) if is_h5ad else reader(path)
    except MemoryError as error:
        raise InputError(f"{path} does not fit into memory: {error}; give fewer rows or columns.") from error
