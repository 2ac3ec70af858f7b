"""What a file contains, before the columns to embed are chosen."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from laptsne.cli.errors import InputError

MISSING = ("", "na", "n/a", "nan", "null", "none", "#n/a", "?")  # spellings of a missing value, in lower case
EXACT = 2**53  # whole numbers of this size or more are not exact as floats


@dataclass(frozen=True)
class FileContents:
    """The columns of a table, or a matrix with columns beside it."""

    name: str  # the file, as messages name it
    columns: pa.Table = field(default_factory=lambda: pa.table({}))  # values as they came, to be written back
    numbers: Mapping[str, pa.ChunkedArray] = field(default_factory=dict)  # the columns of numbers, by name
    matrix: Any = None  # array or sparse matrix of shape (n_rows, n_features); then no column is embedded
    features: tuple[str, ...] | None = None  # names of the columns of the matrix
    first_row: int = 1  # its number in messages: 2 if the header is row 1, as in a spreadsheet
    notes: tuple[str, ...] = ()  # what the user should know about how the file was read
    continuous: frozenset[str] = frozenset()  # columns that are measurements, such as genes, even if whole numbers

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.columns.num_rows if self.matrix is None else self.matrix.shape[0])


def typed_contents(name: str, columns: pa.Table, **parts: Any) -> FileContents:
    """Return columns that have types; text is text even if it could be read as numbers."""
    found = {column: as_numbers(columns[column]) for column in columns.column_names}
    numbers = {column: values for column, values in found.items() if values is not None}
    return FileContents(name, columns, numbers, **parts)


def as_numbers(values: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return integers, floats, booleans and decimals as integers or floats; None for anything else."""
    kind = values.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return values
    if pa.types.is_boolean(kind):
        return values.cast(pa.int8())
    if pa.types.is_decimal(kind) or pa.types.is_null(kind):
        return values.cast(pa.float64())
    return None


def as_floats(numbers: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return numbers with NaN for missing values; not by pyarrow, which refuses integers that are not exact."""
    if not numbers.null_count:
        floats: NDArray[np.float64] = numbers.to_numpy().astype(np.float64)
        return floats
    missing = numbers.is_null().to_numpy()
    return np.where(missing, np.nan, numbers.fill_null(0).to_numpy().astype(np.float64))


def as_numpy(values: pa.ChunkedArray, numbers: pa.ChunkedArray | None = None) -> NDArray[Any]:
    """Return a column for figures: booleans, numbers with NaN or strings with None for missing values.

    Numbers in text are strings if they would not be written the same: 007, True. Equal strings are one object.
    """
    if pa.types.is_boolean(values.type) and not values.null_count:
        flags: NDArray[np.bool_] = values.to_numpy()
        return flags
    if numbers is not None and not _are_words(values, numbers):
        return as_floats(numbers) if numbers.null_count else numbers.to_numpy()
    codes = as_text(values).combine_chunks()
    strings = np.array([*(text or None for text in codes.dictionary.to_pylist()), None], dtype=object)
    result: NDArray[Any] = strings[codes.indices.cast(pa.int64()).fill_null(len(strings) - 1).to_numpy()]
    return result


def _are_words(values: pa.ChunkedArray, numbers: pa.ChunkedArray) -> bool:
    """Return whether values are identifiers or booleans rather than the numbers that they can be read as."""
    if pa.types.is_boolean(values.type):
        return True
    if is_text(values) and (has_leading_zeros(values) or _any_match(values, r"(?i)^\s*(true|false)\s*$")):
        return True
    exact = pa.types.is_integer(numbers.type) and not numbers.null_count  # in NumPy
    return not exact and are_integers(values, numbers) and largest(numbers) >= EXACT


def are_integers(values: pa.ChunkedArray, numbers: pa.ChunkedArray) -> bool:
    """Return whether numbers are integers by their type or, in text, by their spelling."""
    if pa.types.is_integer(numbers.type) or not is_text(values):
        return bool(pa.types.is_integer(numbers.type))
    return not _any_match(values, r"\d[.eE]|[.,]\d")


def largest(numbers: pa.ChunkedArray) -> float:
    """Return the largest absolute value, 0 if there is none."""
    found = pa.compute.min_max(numbers)
    low, high = found["min"].as_py(), found["max"].as_py()
    return 0 if low is None else float(max(-low, high))


def has_leading_zeros(values: pa.ChunkedArray) -> bool:
    """Return whether some value is spelled as a whole number that begins with a zero, as postcodes are."""
    return _any_match(values, r"^\s*[+-]?0\d+\s*$")


def _any_match(values: pa.ChunkedArray, pattern: str) -> bool:
    """Return whether a pattern matches some of the values, which are text."""
    texts = as_text(values).combine_chunks().dictionary if pa.types.is_dictionary(values.type) else values
    return bool(pa.compute.any(pa.compute.match_substring_regex(texts, pattern)).as_py())


def as_text(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values as dictionary-encoded text: a string that every row repeats is held once, as in a Parquet file."""
    if pa.types.is_temporal(values.type):
        values = spelled_times(values)
    if not is_text(values):
        texts = [None if value is None else str(value) for value in values.to_pylist()]
        values = pa.chunked_array([pa.array(texts, pa.string())])
    codes = (values if pa.types.is_dictionary(values.type) else values.dictionary_encode()).combine_chunks()
    if not pa.types.is_string(codes.dictionary.type):
        strings = pa.array([None if v is None else str(v) for v in codes.dictionary.to_pylist()], pa.string())
        codes = pa.DictionaryArray.from_arrays(codes.indices, strings)
    return pa.chunked_array([codes])


def spelled_times(values: Any) -> Any:
    """Return dates and times as text, without fractions of a second that are zero."""
    return pa.compute.replace_substring_regex(values.cast(pa.string()), r"\.0+$", "")


def is_text(values: pa.ChunkedArray) -> bool:
    """Return whether values are text or categories."""
    kind = values.type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind))


def is_list(kind: pa.DataType) -> bool:
    """Return whether a type is that of lists of numbers, such as embeddings."""
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if not any(check(kind) for check in lists):
        return False
    return bool(pa.types.is_integer(kind.value_type) or pa.types.is_floating(kind.value_type))


def are_grouped(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return which values look like numbers with thousands separators, such as 1,234."""
    return pa.compute.match_substring_regex(text, r"^\s*[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?\s*$")


def is_number(text: str) -> bool:
    """Return whether a string can be read as a number, infinity and NaN included."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_missing(text: str | None) -> bool:
    """Return whether a string stands for a missing value."""
    return text is None or text.strip().lower() in MISSING


def check_names(names: Sequence[str], file: str) -> None:
    """Raise InputError if two columns have the same name."""
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"{file}: there are two columns {twice!r}; give each a name of its own.")
