"""Readers by file ending; tables in Parquet files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
from sklearn.datasets import load_digits

from laptsne._runtime.memory import check_room
from laptsne.cli.errors import InputError
from laptsne.cli.tables.arrays import read_npy, read_npz
from laptsne.cli.tables.contents import FileContents, as_column, check_names
from laptsne.cli.tables.delimited import read_delimited
from laptsne.cli.tables.h5ad import read_h5ad
from laptsne.cli.tables.matrix_market import read_matrix_market


def read_parquet(path: Path) -> FileContents:
    """Read a Parquet file without its columns of lists and structures."""
    try:
        metadata = pa.parquet.read_metadata(path)
        schema = metadata.schema.to_arrow_schema()
        check_names(schema.names, str(path))
        # Numbers, and the matrix that is embedded. Text is read as dictionaries: a string that every row repeats takes
        # no room in the file, and would take any amount of memory.
        check_room(2 * 8 * metadata.num_rows * metadata.num_columns)
        texts = [field.name for field in schema if pa.types.is_string(field.type)]
        table = pa.parquet.read_table(path, read_dictionary=texts)
        table.validate(full=True)  # a damaged file may have codes beyond its dictionaries
        nested = [field.name for field in table.schema if pa.types.is_nested(field.type)]
        table = table.drop_columns(nested)
        columns = pa.table({name: as_column(table[name]) for name in table.column_names})
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"{path} is not a Parquet file, or is damaged ({reason}); write or download it again."
        ) from error
    if not metadata.num_rows:
        raise InputError(f"{path} has no rows; give a table with at least two.")
    notes = (f"left out, since they hold lists: {', '.join(nested)}",) if nested else ()
    return FileContents(str(path), columns, notes=notes)


_READERS: dict[str, Callable[[Path], FileContents]] = {
    ".csv": read_delimited,
    ".csv.gz": read_delimited,
    ".tsv": read_delimited,
    ".tsv.gz": read_delimited,
    ".parquet": read_parquet,
    ".npy": read_npy,
    ".npz": read_npz,
    ".h5ad": read_h5ad,
    ".mtx": read_matrix_market,
    ".mtx.gz": read_matrix_market,
}
EXAMPLE = "digits"  # the built-in data set


def read_source(source: str) -> FileContents:
    """Read a file by its ending, the built-in example by its name, or CSV from standard input as ``-``.

    Examples
    --------
    >>> from laptsne.cli.tables.reading import read_source
    >>> read_source("digits").matrix.shape
    (1797, 64)
    """
    if source == "-":
        return read_delimited(None)
    if source == EXAMPLE:
        X, y = load_digits(return_X_y=True)
        return FileContents(source, pa.table({"label": y}), matrix=X)
    path = Path(source)
    if path.is_dir():
        raise InputError(f"{path} is a folder; give a file in it.")
    if not path.exists():
        raise InputError(f"there is no file {source}; give a file, or the example {EXAMPLE}.")
    reader = next((reader for ending, reader in _READERS.items() if path.name.lower().endswith(ending)), None)
    if reader is None:
        raise InputError(f"{path} cannot be read; give a file that ends in {', '.join(_READERS)}.")
    if not path.stat().st_size and path.is_file():
        raise InputError(f"{path} is empty: it has no rows; give a file with data.")
    try:
        return reader(path)
    except MemoryError as error:
        raise InputError(f"{path} does not fit into memory: {error}; give fewer rows or columns.") from error
