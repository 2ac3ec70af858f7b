"""Tables and matrices in text files, plain or compressed by gzip: CSV, TSV, Matrix Market, and 10x folders."""

import contextlib
import csv
import gzip
import io
import itertools
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import scipy.sparse
from numpy.typing import NDArray

from laptsne._runtime.available_memory import check_room
from laptsne.cli.tables import GROUPED, MISSING, Dataset, check_names, damage_reported, is_number, turned
from laptsne.cli.terminal import InputError

_LINE = 1 << 26  # bytes of the longest line: a small compressed file may contain one without end
_TOO_LONG = "{} has a line of more than {} characters; give fewer columns."
_NO_ROWS = "{} has no rows below its header; give a table with a header and at least two rows."
_NAMES = 1 << 26  # bytes of the names of genes or cells, enough for millions
_ROW = 256  # bytes of a list of a few strings, beside their characters
_GZIP = b"\x1f\x8b"
_DECIMAL = r"^\s*[+-]?[\d.]*,\d+([eE][+-]?\d+)?\s*$"  # numbers with decimal commas
_MIRROR_SIGN = {"general": 0, "symmetric": 1, "skew-symmetric": -1}  # of Matrix Market
_TENX = "matrix.mtx"
_GENES = "Gene Expression"


def _opened(path: Path) -> IO[bytes]:
    """Open a file, or standard input for ``-``, decompressed if its content is gzip, whatever its name."""
    # Buffered again: an object that replaces standard input may lack peek.
    raw = io.BufferedReader(cast(Any, sys.stdin.buffer)) if path == Path("-") else path.open("rb")
    return cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if raw.peek(2)[:2] == _GZIP else raw


def _lines(file: IO[bytes], name: str) -> Iterator[str]:
    """Iterate over lines of text; raise InputError if one is too long to be held."""
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    while line := text.readline(_LINE):
        if len(line) == _LINE:
            raise InputError(_TOO_LONG.format(name, _LINE))
        yield line


# CSV and TSV. All columns are read as text: pyarrow would take dates, times and hexadecimal identifiers for numbers.


def read_text(path: Path) -> Dataset:
    """Read a table with a header from a file, or from standard input if the path is ``-``."""
    name = "standard input" if path == Path("-") else str(path)
    try:
        with _opened(path) as file:
            return _parsed(file, name, tabs=name.lower().endswith((".tsv", ".tsv.gz")))
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{name} is damaged ({error}); compress or download it again.") from error
    except (csv.Error, UnicodeDecodeError, pa.ArrowException) as error:
        if isinstance(error, UnicodeDecodeError) or "UTF8" in str(error):
            raise InputError(f"{name} is not text in UTF-8; save it as CSV in that encoding.") from error
        if "straddl" in str(error):  # a row does not fit into a block
            raise InputError(_TOO_LONG.format(name, _LINE)) from error
        raise InputError(f"{name} is not a table in text ({error}); save it as CSV.") from error


def _parsed(file: IO[bytes], name: str, *, tabs: bool) -> Dataset:
    head = file.read(_LINE)
    delimiter = "\t" if tabs else _delimiter(head, name)
    reader = csv.reader(_lines(io.BytesIO(head), name), delimiter=delimiter)
    header = [cell.strip() or f"Unnamed: {i}" for i, cell in enumerate(next(reader, []))]  # named as by pandas
    _check_header(header, name)
    # A last row of empty fields: if a quote is never closed, the field swallows it.
    last = f'\n""{delimiter * (len(header) - 1)}\n'.encode()
    try:
        table = pa.csv.read_csv(
            _Blocks(head, file, last, len(header)),
            # One thread: otherwise the numbers of invalid rows are unknown.
            pa.csv.ReadOptions(column_names=header, skip_rows=reader.line_num, block_size=_LINE, use_threads=False),
            pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            pa.csv.ConvertOptions(column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=False),
        )
    except pa.ArrowInvalid as error:
        bad = re.search(r"Row #(\d+): Expected \d+ columns, got (\d+)", str(error))
        if bad is None:
            raise
        remedy = "correct that row"
        if delimiter == "," and int(bad[2]) == 2 * len(header):
            remedy += ", or separate the columns by semicolons if the numbers have decimal commas"
        message = f"{name}: row {bad[1]} has {bad[2]} values, the header {len(header)}; {remedy}."
        raise InputError(message) from error
    if any(column[-1].as_py() for column in table.columns):
        raise InputError(f"{name} is not a table in text (a quote is never closed); close or remove it.")
    if table.num_rows <= 1:
        raise InputError(_NO_ROWS.format(name))
    return _with_numbers(name, table.slice(0, table.num_rows - 1))


def _delimiter(head: bytes, name: str) -> str:
    """Return the delimiter that divides the header into the most fields, and the row below into as many."""

    def fit(delimiter: str) -> tuple[bool, int, bool]:
        rows = csv.reader(_lines(io.BytesIO(head), name), delimiter=delimiter)
        sizes = [len(next(rows, ()))]
        with contextlib.suppress(csv.Error):  # a quote may be open, which is reported later
            sizes.append(len(next(rows, ())))
        return sizes[0] == sizes[-1] > 1, sizes[0], sizes[0] == sizes[-1]

    return max(",;\t", key=fit)


def _check_header(header: list[str], name: str) -> None:
    if not header:
        raise InputError(_NO_ROWS.format(name))
    numbers = [cell for cell in header if is_number(cell) and cell.lower() not in MISSING]
    bad = [cell for cell in numbers if not cell.lstrip("-").isdigit()]
    if not bad and len(numbers) == len(header):
        bad = [cell for cell in header if header.count(cell) > 1]
    if bad:
        raise InputError(f"{name}: the first line holds numbers ({bad[0]}), not names; put a line with names above it.")
    check_names(header, name)


class _Blocks(io.RawIOBase):
    """The bytes of a file in blocks; MemoryError once the columns of numbers among them would not fit into memory."""

    def __init__(self, head: bytes, rest: IO[bytes], last: bytes, n_columns: int) -> None:
        self._blocks = itertools.chain([head], iter(lambda: rest.read(_LINE), b""), [last])
        self._n_columns, self._n_rows = n_columns, 0

    def readable(self) -> bool:
        """Return True, as pyarrow requires."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next block, which is no larger than pyarrow's."""
        block = next(self._blocks, b"")
        self._n_rows += max(block.count(b"\n"), block.count(b"\r"))
        check_room(2 * 8 * self._n_rows * self._n_columns)  # columns, and the matrix that is embedded
        return block


def _with_numbers(name: str, table: pa.Table) -> Dataset:
    """Return the text of a table, and the numbers of those columns that are numbers."""
    numbers, commas = {}, []
    for column, text in zip(table.column_names, table.columns, strict=True):
        found = _as_numbers(text)
        if found is None:
            decimal = pc.match_substring_regex(text, _DECIMAL)
            if pc.any(pc.and_not(decimal, pc.match_substring_regex(text, GROUPED))).as_py():
                ungrouped = pc.replace_substring_regex(text, r"\.(\d{3})\b", r"\1")
                found = _as_numbers(pc.replace_substring(ungrouped, ",", "."))
                commas += [] if found is None else [column]
        if found is not None:
            numbers[column] = found
    notes = (f"read with decimal commas: {', '.join(commas)}",) if commas else ()
    return Dataset(name, table, numbers, first_row=2, notes=notes)


def _as_numbers(text: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return floats, or integers if all are; None if some values are no numbers, booleans or missing values."""
    text = pc.utf8_trim_whitespace(text)
    try:
        floats = text.cast(pa.float64())  # first: pyarrow takes hexadecimal identifiers for integers, not for floats
    except pa.ArrowInvalid:
        text = pc.utf8_lower(text)
        text = pc.if_else(pc.is_in(text, value_set=pa.array(MISSING)), None, text)
        for word, digit in (("true", "1"), ("false", "0")):
            text = pc.if_else(pc.equal(text, word), digit, text)
        try:
            floats = text.cast(pa.float64())
        except pa.ArrowInvalid:
            return None
    with contextlib.suppress(pa.ArrowInvalid):
        return text.cast(pa.int64())  # exact beyond 2^53
    return floats


# Matrix Market. SciPy's reader is faster, but some malformed files crash it, and the process with it.


def read_matrix(path: Path) -> Dataset:
    """Read a Matrix Market file: as cells x genes if 10x names of both are beside it, else with rows as samples."""
    matrix = _matrix_market(path)
    barcodes, features = _beside(path, "barcodes"), _beside(path, "features") or _beside(path, "genes")
    if barcodes is not None and features is not None:
        return _tenx(path, matrix, barcodes, features)
    size = "{} points with {} features".format(*matrix.shape)
    return Dataset(
        str(path), X=matrix, notes=(f"rows are points: {size}; transpose the matrix if it is the other way",)
    )


def _matrix_market(path: Path) -> Any:
    with damage_reported(path, "in Matrix Market format"), _opened(path) as file:
        text = _lines(file, str(path))
        words = next(text, "").lower().split()
        if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
            raise ValueError("it does not begin with %%MatrixMarket matrix")
        layout, field, symmetry = words[2:]
        if field not in ("real", "integer", "pattern") or symmetry not in _MIRROR_SIGN:
            raise ValueError(f"{field} {symmetry} matrices are not supported, only real ones")
        entries = (line for line in text if line.strip() and not line.startswith("%"))
        sizes = [int(word) for word in next(entries, "").split()]
        if min(sizes, default=0) < 1:
            raise ValueError("its header declares no entries")
        if layout == "coordinate" and len(sizes) == 3:
            check_room(8 * sizes[0])  # row pointers, however few entries there are
            numbers = _numbers(entries, sizes[2], 2 if field == "pattern" else 3)
            return _sparse(numbers, sizes, _MIRROR_SIGN[symmetry])
        if layout != "array" or len(sizes) != 2 or symmetry != "general" or field == "pattern":
            raise ValueError(f"{layout} {symmetry} matrices with {len(sizes)} sizes are not supported")
        return turned(_numbers(entries, sizes[0] * sizes[1], 1).reshape(sizes[1], sizes[0]))  # column by column


def _numbers(entries: Iterator[str], n_lines: int, n_columns: int) -> NDArray[np.float64]:
    check_room(2 * 8 * n_lines * n_columns)  # the numbers, and the matrix made of them
    numbers = np.loadtxt(itertools.islice(entries, n_lines + 1), comments="%", ndmin=2)
    if numbers.shape != (n_lines, n_columns):
        raise ValueError(f"{n_lines} lines of {n_columns} numbers should follow, and there are {numbers.shape}")
    return numbers


def _sparse(numbers: NDArray[np.float64], sizes: list[int], mirror_sign: int) -> Any:
    indices = numbers[:, :2].T - 1
    if (indices != np.floor(indices)).any() or (indices < 0).any() or (sizes[:2] <= indices.T).any():
        raise ValueError("there is an entry outside the matrix")
    values = numbers[:, 2] if numbers.shape[1] == 3 else np.ones(len(numbers))
    found = scipy.sparse.csr_matrix((values, indices.astype(np.int64)), shape=sizes[:2])
    return (found + mirror_sign * scipy.sparse.tril(found, -1).T).tocsr() if mirror_sign else found


# Single cells as 10x writes them: a matrix of genes x cells, with the names of both beside it.


def tenx_matrix(folder: Path) -> Path:
    """Return the matrix in a 10x folder."""
    if found := _plain_or_packed(folder / _TENX):
        return found
    raise InputError(f"{folder} is a folder without matrix.mtx; give a file in it, or a 10x folder.")


def _beside(path: Path, kind: str) -> Path | None:
    """Return the table of names beside a matrix; both may have a prefix, as in GSM1_matrix.mtx.gz."""
    prefix, found, _ = path.name.partition(_TENX)
    return _plain_or_packed(path.parent / f"{prefix}{kind}.tsv") if found else None


def _plain_or_packed(path: Path) -> Path | None:
    return next((found for found in (path, path.with_name(f"{path.name}.gz")) if found.is_file()), None)


def _tenx(path: Path, matrix: Any, barcodes: Path, features: Path) -> Dataset:
    cells = [row[0] for row in _rows(barcodes)]
    genes = [[*row, "", "", ""][:3] for row in _rows(features)]
    if matrix.shape == (len(genes), len(cells)):
        matrix = turned(matrix)
    elif matrix.shape != (len(cells), len(genes)):
        raise InputError(
            f"{path} is a matrix of {matrix.shape[0]} x {matrix.shape[1]}, but there are names of {len(genes)} genes "
            f"and {len(cells)} cells beside it; use the files that belong to it."
        )
    notes = [f"10x: {len(cells)} cells x {len(genes)} genes"]
    kept = [i for i, gene in enumerate(genes) if gene[2] == _GENES]
    if 0 < len(kept) < len(genes):
        notes.append(f"left out, since they are not genes: {len(genes) - len(kept)} features")
        matrix, genes = matrix[:, kept], [genes[i] for i in kept]
    symbols = [symbol or identifier for identifier, symbol, _ in genes]
    counts = Counter(symbols)
    names = [s if counts[s] == 1 else f"{s} ({gene[0]})" for s, gene in zip(symbols, genes, strict=True)]
    check_names(names, str(features))
    columns = pa.table({"barcode": pa.array(cells, pa.string())})
    return Dataset(str(path), columns, X=matrix, features=tuple(names), notes=tuple(notes))


def _rows(path: Path) -> list[list[str]]:
    """Return the fields of each line of a table of names."""
    with damage_reported(path, "a table of names"), _opened(path) as file:
        data = file.read(_NAMES + 1)
        if len(data) > _NAMES:
            raise InputError(f"{path} has more than {_NAMES} characters of names; give fewer rows and columns.")
        check_room(2 * len(data) + _ROW * data.count(b"\n"))
        lines = data.decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    return [line.split("\t") for line in lines if line]
