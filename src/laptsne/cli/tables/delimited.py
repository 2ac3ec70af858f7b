"""Tables in delimited text, CSV and TSV, plain or compressed by gzip."""

import contextlib
import csv
import gzip
import io
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv

from laptsne._runtime.available_memory import check_room
from laptsne.cli.errors import InputError
from laptsne.cli.tables.contents import MISSING, FileContents, are_grouped, check_names, is_number

_LINE = 1 << 26  # bytes of the longest line: a small compressed file may contain one without end
_GZIP = b"\x1f\x8b"


def read_delimited(path: Path | None) -> FileContents:
    """Read a table with a header from a file, or from standard input if there is no path."""
    name = "standard input" if path is None else str(path)
    try:
        with open_binary(path) as file:
            return _parse(file, name, tabs=name.lower().endswith((".tsv", ".tsv.gz")))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{name} is damaged ({error}); compress or download it again.") from error
    except (csv.Error, UnicodeDecodeError, pa.ArrowException) as error:
        if isinstance(error, UnicodeDecodeError) or "UTF8" in str(error):
            raise InputError(f"{name} is not text in UTF-8; save it as CSV in that encoding.") from error
        if "straddl" in str(error):  # a row does not fit into a block
            raise _too_long(name) from error
        raise InputError(f"{name} is not a table in text ({error}); save it as CSV.") from error


def open_binary(path: Path | None) -> IO[bytes]:
    """Open a file or standard input, decompressed if its content is gzip, whatever its name."""
    # Buffered again: an object that replaces standard input may lack peek.
    raw = io.BufferedReader(cast(Any, sys.stdin.buffer)) if path is None else path.open("rb")
    return cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if raw.peek(2)[:2] == _GZIP else raw


def lines(file: IO[bytes], name: str) -> Iterator[str]:
    """Iterate over lines of text; raise InputError if one is too long to be held."""
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    while line := text.readline(_LINE):
        if len(line) == _LINE:
            raise _too_long(name)
        yield line


def _too_long(name: str) -> InputError:
    return InputError(f"{name} has a line of more than {_LINE} characters; give fewer columns.")


def _no_rows(name: str) -> InputError:
    return InputError(f"{name} has no rows below its header; give a table with a header and at least two rows.")


def _parse(file: IO[bytes], name: str, *, tabs: bool) -> FileContents:
    head = file.read(_LINE)
    delimiter = "\t" if tabs else _delimiter(head, name)
    reader = csv.reader(lines(io.BytesIO(head), name), delimiter=delimiter)
    header = [cell.strip() or f"Unnamed: {i}" for i, cell in enumerate(next(reader, []))]  # named as by pandas
    if not header:
        raise _no_rows(name)
    _check_header(header, name)
    # A last row of empty fields: if a quote is never closed, the field swallows it.
    last = f'\n""{delimiter * (len(header) - 1)}\n'.encode()
    try:
        table = pa.csv.read_csv(
            _CheckedStream(head, file, last, len(header)),
            # One thread: otherwise the numbers of invalid rows are unknown.
            pa.csv.ReadOptions(column_names=header, skip_rows=reader.line_num, block_size=_LINE, use_threads=False),
            pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            # All as text: pyarrow would take dates, times and hexadecimal identifiers for something else.
            pa.csv.ConvertOptions(column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=False),
        )
    except pa.ArrowInvalid as error:
        if bad := re.search(r"Row #(\d+): Expected \d+ columns, got (\d+)", str(error)):
            reason = f"row {bad[1]} has {bad[2]} values, the header {len(header)}"
            remedy = "correct that row"
            if delimiter == "," and int(bad[2]) == 2 * len(header):
                remedy += ", or separate the columns by semicolons if the numbers have decimal commas"
            raise InputError(f"{name}: {reason}; {remedy}.") from error
        raise
    if any(column[-1].as_py() for column in table.columns):
        raise InputError(f"{name} is not a table in text (a quote is never closed); close or remove it.")
    if table.num_rows == 1:
        raise _no_rows(name)
    return _contents(name, table.slice(0, table.num_rows - 1))


def _delimiter(head: bytes, name: str) -> str:
    """Return the delimiter that divides the header into the most fields, and the row below into as many."""

    def fit(delimiter: str) -> tuple[bool, int, bool]:
        rows = csv.reader(lines(io.BytesIO(head), name), delimiter=delimiter)
        sizes = [len(next(rows, ()))]
        with contextlib.suppress(csv.Error):  # a quote may be open, which is reported later
            sizes.append(len(next(rows, ())))
        return sizes[0] == sizes[-1] > 1, sizes[0], sizes[0] == sizes[-1]

    return max(",;\t", key=fit)


def _contents(name: str, table: pa.Table) -> FileContents:
    """Return the text of a table, and the numbers of those columns that are numbers."""
    found = {column: parse_numbers(table[column]) for column in table.column_names}
    commas = [column for column in found if found[column] is None and _has_decimal_commas(table[column])]
    found |= {column: parse_numbers(_with_points(table[column])) for column in commas}
    numbers = {column: values for column, values in found.items() if values is not None}
    commas = [column for column in commas if column in numbers]
    notes = (f"read with decimal commas: {', '.join(commas)}",) if commas else ()
    return FileContents(name, table, numbers, first_row=2, notes=notes)


class _CheckedStream(io.RawIOBase):
    """A byte stream that raises MemoryError once the columns of numbers read from it would not fit into memory."""

    def __init__(self, head: bytes, rest: IO[bytes], last: bytes, n_columns: int) -> None:
        self._blocks = self._iterate(head, rest, last, n_columns)

    @staticmethod
    def _iterate(block: bytes, rest: IO[bytes], last: bytes, n_columns: int) -> Iterator[bytes]:
        n_rows = 0
        while block:
            n_rows += max(block.count(b"\n"), block.count(b"\r"))
            check_room(2 * 8 * n_rows * n_columns)  # columns, and the matrix that is embedded
            yield block
            block = rest.read(_LINE)
        yield last

    def readable(self) -> bool:
        """Return True, as pyarrow requires."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next block, which is no larger than pyarrow's."""
        return next(self._blocks, b"")


def _check_header(header: list[str], name: str) -> None:
    numbers = [cell for cell in header if is_number(cell) and cell.lower() not in MISSING]
    fractions = [cell for cell in numbers if not cell.lstrip("-").isdigit()]
    if fractions or (len(numbers) == len(header) > len(set(header))):
        cell = (fractions or [cell for cell in header if header.count(cell) > 1])[0]
        raise InputError(f"{name}: the first line holds numbers ({cell}), not names; put a line with names above it.")
    check_names(header, name)


def parse_numbers(text: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return text as numbers if all values are numbers, booleans or missing; None otherwise."""
    text = pa.compute.utf8_trim_whitespace(text)
    with contextlib.suppress(pa.ArrowInvalid):
        return _numbers(text)
    with contextlib.suppress(pa.ArrowInvalid):
        return _numbers(_canonical(text))
    return None


def _numbers(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return floats, or integers if all are; raise ArrowInvalid if some are neither."""
    floats = text.cast(pa.float64())  # first: pyarrow takes hexadecimal identifiers for integers, but not for floats
    with contextlib.suppress(pa.ArrowInvalid):
        return text.cast(pa.int64())  # exact beyond 2^53
    return floats


def _canonical(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return text with null for missing values, and 1 and 0 for true and false."""
    lower = pa.compute.utf8_lower(text)
    lower = pa.compute.if_else(pa.compute.is_in(lower, value_set=pa.array(MISSING)), None, lower)
    for word, digit in (("true", "1"), ("false", "0")):
        lower = pa.compute.if_else(pa.compute.equal(lower, word), digit, lower)
    return lower


def _with_points(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return 1.234,5 as 1234.5."""
    ungrouped = pa.compute.replace_substring_regex(text, r"\.(\d{3})\b", r"\1")
    return pa.compute.replace_substring(ungrouped, ",", ".")


def _has_decimal_commas(text: pa.ChunkedArray) -> bool:
    """Return whether some values have a decimal comma that cannot be a thousands separator."""
    decimal = pa.compute.match_substring_regex(text, r"^\s*[+-]?[\d.]*,\d+([eE][+-]?\d+)?\s*$")
    return bool(pa.compute.any(pa.compute.and_not(decimal, are_grouped(text))).as_py())
