"""Kinds of columns: numbers that can be embedded, and those that only name, count or describe the rows."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from laptsne.cli.tables.contents import (
    EXACT,
    FileContents,
    are_grouped,
    are_integers,
    as_floats,
    as_text,
    has_leading_zeros,
    is_list,
    is_missing,
    is_number,
    is_text,
)

# Kinds that are embedded unless the user says otherwise.
EMBEDDED = ("numbers", "mixed")
_MIN_COUNTED = 10  # rows from which on 0, 1, 2, ... is a row number rather than a measurement
_FAR = 10_000  # consecutive numbers from here on are identifiers; years are less
_EXACT_NAMES = frozenset({"index", "row", "rowid", "unnamed0", "indexlevel0"})
_LAST_WORDS = frozenset(
    {*("id", "ids", "uid", "uuid", "guid", "barcode", "isbn", "ean", "sku", "ssn"), *("zip", "zipcode", "postcode")}
)


def kind_of(contents: FileContents, name: str) -> str:
    """Return what a column holds.

    That is "numbers", "list", "identifier", "date", "text", "empty", "grouped" (numbers with thousands separators) or
    "mixed" (half of the values or more, but not all, are numbers).
    """
    values, numbers = contents.columns[name], contents.numbers.get(name)
    if is_list(values.type):
        return "list"
    if numbers is None:
        return _kind_of_text(values) if is_text(values) else "date" if pa.types.is_temporal(values.type) else "text"
    floats = as_floats(numbers)
    if np.isnan(floats).all():
        return "empty"
    if not is_whole(floats):
        return "numbers"
    if _names_rows(name, values, numbers, floats):
        return "identifier"
    return "date" if _are_dates(floats) else "numbers"


def plain_name(name: str) -> str:
    """Return the letters and digits of a name, in lower case."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def is_whole(floats: NDArray[np.float64]) -> bool:
    """Return whether all values that are not missing are whole numbers."""
    floats = floats[~np.isnan(floats)]
    return bool((floats == np.floor(floats)).all())


def _kind_of_text(values: pa.ChunkedArray) -> str:
    counts = pa.compute.value_counts(as_text(values).combine_chunks())
    pairs = zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)
    present = {text: count for text, count in pairs if not is_missing(text)}
    if not present:
        return "empty"
    n_present, n_numbers = sum(present.values()), sum(n for text, n in present.items() if is_number(text))
    if n_present <= 2 * n_numbers < 2 * n_present:
        return "mixed"
    grouped = are_grouped(pa.array(present, pa.string()))
    n_grouped = sum(n for n, found in zip(present.values(), grouped.to_pylist(), strict=True) if found)
    return "grouped" if n_grouped and n_grouped + n_numbers == n_present else "text"


def _names_rows(name: str, values: pa.ChunkedArray, numbers: pa.ChunkedArray, floats: NDArray[np.float64]) -> bool:
    """Return whether whole numbers count or identify the rows."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)
    if plain_name(name) in _EXACT_NAMES or (words and words[-1].lower() in _LAST_WORDS):
        return True
    if is_text(values) and has_leading_zeros(values):
        return True
    # 64-bit identifiers; floats of this size are whole in any case.
    if are_integers(values, numbers) and np.nanmedian(np.abs(floats)) >= EXACT:
        return True
    first = floats[0]
    consecutive = len(floats) >= _MIN_COUNTED and bool((floats - first == np.arange(len(floats))).all())
    return consecutive and (first in (0, 1) or first >= _FAR)


def _are_dates(floats: NDArray[np.float64]) -> bool:
    """Return whether whole numbers are dates such as 20240131."""
    days = floats[~np.isnan(floats)]
    if days.min() < 1900_01_01 or days.max() > 2100_12_31:
        return False
    month, day = days // 100 % 100, days % 100
    return bool(((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all())
