"""What a file contains, before the columns to embed are chosen."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from laptsne.cli.errors import InputError

MISSING = ("", "na", "n/a", "nan", "null", "none", "#n/a", "?")  # spellings of a missing value, in lower case


@dataclass(frozen=True)
class FileContents:
    """The columns of a table, or a matrix with columns beside it."""

    name: str  # the file, as messages name it
    columns: pa.Table = field(default_factory=lambda: pa.table({}))  # as returned by as_column
    matrix: Any = None  # array or sparse matrix of shape (n_rows, n_features); then no column is embedded
    features: tuple[str, ...] | None = None  # names of the columns of the matrix
    first_row: int = 1  # its number in messages: 2 if the header is row 1, as in a spreadsheet
    notes: tuple[str, ...] = ()  # what the user should know about how the file was read

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.columns.num_rows if self.matrix is None else self.matrix.shape[0])


def as_column(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return booleans, decimals and other numbers as integers or floats, and anything else as text.

    Text is dictionary-encoded, so that a long string that every row repeats is held once, as in a Parquet file.
    """
    kind = values.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return values
    if pa.types.is_boolean(kind):
        return values.cast(pa.int8())
    if pa.types.is_decimal(kind) or pa.types.is_null(kind):
        return values.cast(pa.float64())
    if not (is_text(values) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        values = pa.chunked_array([_strings(values)])
    codes = (values if is_text(values) else values.dictionary_encode()).combine_chunks()
    if not pa.types.is_string(codes.dictionary.type):
        codes = pa.DictionaryArray.from_arrays(codes.indices, _strings(codes.dictionary))
    return pa.chunked_array([codes])


def _strings(values: pa.Array) -> pa.Array:
    return pa.array([None if value is None else str(value) for value in values.to_pylist()], pa.string())


def as_numpy(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return numbers with NaN, or strings with None, for missing values; equal strings are one object."""
    if not is_text(column):
        numbers: NDArray[Any] = column.to_numpy()
        return numbers
    codes = column.combine_chunks()
    strings = np.array([*(text or None for text in codes.dictionary.to_pylist()), None], dtype=object)
    result: NDArray[Any] = strings[codes.indices.cast(pa.int64()).fill_null(len(strings) - 1).to_numpy()]
    return result


def is_text(column: pa.ChunkedArray) -> bool:
    """Return whether a column is text, rather than numbers."""
    return bool(pa.types.is_dictionary(column.type))


def is_number(text: str) -> bool:
    """Return whether a string can be read as a number, infinity and NaN included."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def check_names(names: Sequence[str], file: str) -> None:
    """Raise InputError if two columns have the same name."""
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"{file}: there are two columns {twice!r}; give each a name of its own.")
