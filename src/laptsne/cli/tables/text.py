"""Tables in text: CSV and TSV, plain or compressed by gzip, without any further library."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from laptsne._runtime.memory import check_room
from laptsne.cli.tables.content import Column, Content, InputError, is_text, repeated, text_column

_CELLS = 500_000  # that are held as text at a time; numbers take an eighth of the room
_LINE = 1 << 26  # characters in a line at most: a small compressed file may hold one without end
_NAME = 1 << 8  # bytes that a column takes, whatever is in it
_STRING = 1 << 6  # bytes that a string takes beside its characters
_GZIP = b"\x1f\x8b"
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "#n/a", "?"})
_TRUTH = {"true": "1", "false": "0"}


def read_text(path: Path | None) -> Content:
    """Read a table with a header from a file, or from standard input where there is no path."""
    name = "standard input" if path is None else str(path)
    try:
        with opened(path) as file:
            return _parsed(file, name, tabbed=path is not None and ".tsv" in path.suffixes)
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not text in UTF-8; save it as CSV in that encoding.") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{name} is damaged ({error}); compress or download it again.") from error
    except csv.Error as error:
        raise InputError(f"{name} is not a table in text ({error}); save it as CSV.") from error


def opened(path: Path | None) -> IO[str]:
    """Open for reading as text, decompressed where it is compressed, whatever its name."""
    # Buffered once more, for what stands in for standard input may be unable to look ahead.
    raw = io.BufferedReader(cast(Any, sys.stdin.buffer)) if path is None else path.open("rb")
    file = cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if raw.peek(2)[:2] == _GZIP else raw
    return io.TextIOWrapper(file, encoding="utf-8-sig", newline="")


def lines(file: IO[str], name: str) -> Iterator[str]:
    """Lines of text, none of them too long to be held."""
    while line := file.readline(_LINE):
        if len(line) == _LINE:
            raise InputError(f"{name} has a line of more than {_LINE} characters; give fewer columns.")
        yield line


def _parsed(file: IO[str], name: str, *, tabbed: bool) -> Content:
    rows_of_text = lines(file, name)
    first = next(rows_of_text, "")
    delimiter = "\t" if tabbed else max(",;\t", key=first.count)
    reader = csv.reader(itertools.chain([first], rows_of_text), delimiter=delimiter)
    header = [cell.strip() or f"Unnamed: {i}" for i, cell in enumerate(next(reader, []))]  # named as by pandas
    _check_header(header, name)
    parts: list[list[Column]] = [[] for _ in header]
    size = _NAME * len(header)
    for rows in _batches(reader, len(header), name):
        for part, values in zip(parts, zip(*rows, strict=True), strict=True):
            part.append(_converted(values))
            size += _size(part[-1])
        check_room(size)  # for the columns that are made of the parts
    if not parts or not parts[0]:
        raise InputError(f"{name} has no rows below its header; give a table with a header and at least two rows.")
    columns = {column: _joined(part) for column, part in zip(header, parts, strict=True)}
    return Content(name, columns, first_row=2)


def _check_header(header: list[str], name: str) -> None:
    twice = repeated(header)
    fractions = [cell for cell in header if not cell.lstrip("-").isdigit() and _is_number(cell)]
    if fractions or (twice and all(_is_number(cell) for cell in header)):
        cell = (fractions or twice)[0]
        raise InputError(f"{name}: the first line holds numbers ({cell}), not names; put a line with names above it.")
    if twice:
        raise InputError(f"{name}: there are two columns {twice[0]!r}; give each a name of its own.")


def _batches(reader: Iterator[list[str]], width: int, name: str) -> Iterator[list[list[str]]]:
    """Rows in batches, all as wide as the header."""
    numbered = enumerate(reader, start=2)
    while batch := list(itertools.islice(numbered, 1 + _CELLS // max(width, 1))):
        for number, row in batch:
            if row and len(row) != width:
                raise InputError(f"{name}: row {number} has {len(row)} values, the header {width}; mend that row.")
        if rows := [row for _, row in batch if row]:
            yield rows


def _converted(values: tuple[str, ...]) -> Column:
    """Numbers where all values are numbers, truth values or missing; otherwise the strings."""
    try:
        return np.array(values, dtype=np.float64)
    except ValueError:
        pass
    plain = [_as_number(value) for value in values]
    try:
        return np.array(plain, dtype=np.float64)
    except ValueError:
        return text_column(value.strip() for value in values)


def _size(column: Column) -> int:
    """Bytes that a column takes."""
    return column.nbytes + (sum(map(len, column)) + _STRING * column.size if is_text(column) else 0)


def _as_number(value: str) -> str:
    value = value.strip().lower()
    return "nan" if value in MISSING else _TRUTH.get(value, value)


def _joined(parts: list[Column]) -> Column:
    if any(map(is_text, parts)):  # text after many numbers: they become text again, as short as they can be written
        parts = [part if is_text(part) else _as_text(part) for part in parts]
    return np.concatenate(parts)


def _as_text(numbers: Column) -> Column:
    return text_column("" if np.isnan(v) else f"{v:.15g}" for v in numbers.tolist())


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return cell.strip().lower() not in MISSING
