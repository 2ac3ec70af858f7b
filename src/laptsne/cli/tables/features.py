"""Columns of numbers and of lists as one matrix of features."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import scipy.sparse
from numpy.typing import NDArray

from laptsne.cli.errors import InputError
from laptsne.cli.tables.contents import FileContents, as_floats, as_text, is_list, is_missing, is_number


def feature_matrix(
    contents: FileContents, names: Iterable[str], expected: Mapping[str, int]
) -> tuple[NDArray[Any], dict[str, int]]:
    """Return these columns as a matrix, with NaN for missing values, and the number of features of each.

    It is of single precision if all of them are lists of such numbers. ``expected`` are the numbers of features that
    columns must have.
    """
    lists = {name: is_list(contents.columns[name].type) for name in names}
    blocks = {name: (_list_matrix if lists[name] else _number_column)(contents, name) for name in lists}
    widths = {name: block.shape[1] for name, block in blocks.items()}
    for name, width in expected.items():
        if widths.get(name, width) != width:
            raise InputError(
                f"{contents.name}: column {name} has {widths[name]} values per row, but the model was fitted to "
                f"{width}; give the column that it was fitted to."
            )
    X = next(iter(blocks.values())) if len(blocks) == 1 else np.hstack(list(blocks.values()))
    return X, widths


def feature_names(widths: Mapping[str, int]) -> tuple[str, ...]:
    """Return the name of each feature: that of its column, with an index if the column has lists."""
    names = ([name] if width == 1 else [f"{name}[{i}]" for i in range(width)] for name, width in widths.items())
    return tuple(name for group in names for name in group)


def check_finite(contents: FileContents, X: Any) -> None:
    """Raise InputError if a matrix has infinite values, or a sparse one missing values."""
    entries = scipy.sparse.coo_matrix(X) if scipy.sparse.issparse(X) else None
    values = X if entries is None else entries.data
    is_bad = np.isinf(values) if entries is None else ~np.isfinite(values)
    if not is_bad.any():
        return
    bad = np.argwhere(is_bad)[0]
    row, column = bad if entries is None else (entries.row[bad[0]], entries.col[bad[0]])
    value = values[tuple(bad)]
    raise InputError(
        f"{contents.name}: the value in row {row + 1}, column {column + 1} is "
        f"{'missing (NaN)' if np.isnan(value) else value}; "
        "fill it in, or remove the rows or the columns with such values."
    )


def _number_column(contents: FileContents, name: str) -> NDArray[np.float64]:
    """Return a column of numbers, of shape (n_rows, 1); raise InputError if it is not numbers, or infinite."""
    numbers, where = contents.numbers.get(name), f"{contents.name}: column {name}"
    if numbers is None:
        texts = enumerate(as_text(contents.columns[name]).to_pylist(), start=contents.first_row)
        bad = next((f"row {row} has {text!r}" for row, text in texts if not (is_missing(text) or is_number(text))), "")
        remedy = "correct it, name the column with --label if it holds labels, or leave it out with --drop"
        raise InputError(f"{where} is not all numbers: {bad or 'its type is text'}; {remedy}.")
    floats = as_floats(numbers)
    infinite = np.flatnonzero(np.isinf(floats))
    if infinite.size:
        row, value = infinite[0] + contents.first_row, floats[infinite[0]]
        raise InputError(
            f"{where} is {value} in row {row} and infinite in {infinite.size} of {len(floats)} rows; "
            "correct these values, remove the rows, or leave the column out with --drop."
        )
    return floats[:, None]


def _list_matrix(contents: FileContents, name: str) -> NDArray[Any]:
    """Return a column of lists of equal length as a matrix; rows without a list are NaN."""
    values, where = contents.columns[name], f"{contents.name}: column {name}"
    lengths = as_floats(pa.compute.list_value_length(values))
    present = np.flatnonzero(~np.isnan(lengths))
    width = int(lengths[present[0]]) if present.size else 0
    if not width:
        raise InputError(f"{where} has empty lists; give one with a list of numbers in every row.")
    other = present[lengths[present] != width]
    if other.size:
        sizes = (f"row {i + contents.first_row} has {int(lengths[i])} values" for i in (present[0], other[0]))
        raise InputError(f"{where} has lists of different lengths: {', '.join(sizes)}; give lists of one length.")
    element = values.type.value_type
    single = pa.types.is_float32(element) or pa.types.is_float16(element)
    X = np.full((len(values), width), np.nan, np.float32 if single else np.float64)
    start = 0
    for chunk in values.chunks:
        rows = start + np.flatnonzero(chunk.is_valid().to_numpy(zero_copy_only=False))
        start += len(chunk)
        numbers = chunk.flatten().to_numpy(zero_copy_only=False).reshape(len(rows), width)  # without null lists
        if len(rows) == len(chunk):
            X[start - len(chunk) : start] = numbers
        else:
            X[rows] = numbers
    if np.isinf(X).any():
        row = int(np.flatnonzero(np.isinf(X).any(axis=1))[0])
        raise InputError(f"{where} has an infinite value in row {row + contents.first_row}; correct or remove it.")
    return X
