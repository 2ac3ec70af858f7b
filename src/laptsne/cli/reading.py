"""Readers by file ending.

Nothing in a file is executed, and what a file declares or decompresses to is compared with the available memory by
``check_room`` before it is allocated.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import itertools
import math
import re
import struct
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import scipy.sparse
from sklearn.datasets import load_digits

from laptsne._runtime.available_memory import check_room
from laptsne._runtime.files import ArrayHeader, npz_headers, read_array_header
from laptsne._runtime.typing import Array
from laptsne.cli import tables
from laptsne.cli.tables import Dataset, as_floats, check_names, damage_reported, is_list, listed, typed_contents
from laptsne.cli.terminal import InputError

EXAMPLE = "digits"  # the built-in data set
_MATRICES = ("X", "data", "x", "features", "arr_0")
_LABELS = ("y", "labels", "label", "target")
_TEXT = 128  # bytes per label, as text of any kind
_FILE = b"ARROW1\x00\x00"  # begins an Arrow file; what follows is an Arrow stream, and a footer
_TEXTS = ("string", "large_string", "string_view", "binary", "large_binary")  # types that Parquet holds as bytes
_PCA, _X = "X_pca", "X"
_MAX_SHOWN = 400_000_000  # bytes of a matrix that is read only for the explorer
_LINE = 1 << 26  # bytes of the longest line: a small compressed file may contain one without end
_TOO_LONG = "{} has a line of more than {} characters; give fewer columns."
_NO_ROWS = "{} has no rows below its header; give a table with a header and at least two rows."
_NAMES = 1 << 26  # bytes of the names of genes or cells, enough for millions
_ROW = 256  # bytes of a list of a few strings, beside their characters
_DECIMAL = r"^\s*[+-]?[\d.]*,\d+([eE][+-]?\d+)?\s*$"  # numbers with decimal commas
_MIRROR_SIGN = {"general": 0, "symmetric": 1, "skew-symmetric": -1}  # of Matrix Market
_TENX = "matrix.mtx"


def read_source(source: str, *, rep: str | None = None, genes: Sequence[str] = ()) -> Dataset:
    """Read a file by its ending, the built-in example by its name, or CSV from standard input as ``-``.

    ``rep`` and ``genes`` name the array of an h5ad file to embed, and genes that become columns if it has them.
    """
    path = Path(source)
    if rep is not None and path.suffix.lower() != ".h5ad":
        raise InputError(f"--rep {rep} names an array of an .h5ad file, but {source} is none; remove the option.")
    if source == "-":
        return _read_text(path)
    if source == EXAMPLE:
        X, y = load_digits(return_X_y=True)
        return typed_contents(source, pa.table({"label": y}), X=X)
    path = (_plain_or_packed(path / _TENX) if path.is_dir() else None) or path
    if path.is_dir():
        raise InputError(f"{path} is a folder without {_TENX}; give a file in it, or a 10x folder.")
    if not path.exists():
        raise InputError(f"there is no file {source}; give a file, or the example {EXAMPLE}.")
    readers: dict[str, Callable[[Path], Dataset]] = {
        **dict.fromkeys((".csv", ".csv.gz", ".tsv", ".tsv.gz"), _read_text),
        ".parquet": _read_parquet,
        **dict.fromkeys((".feather", ".arrow"), _read_arrow),
        ".npy": _read_npy,
        ".npz": _read_npz,
        ".h5ad": lambda path: _read_h5ad(path, rep=rep, genes=genes),
        **dict.fromkeys((".mtx", ".mtx.gz"), _read_matrix),
    }
    ending = next((ending for ending in readers if path.name.lower().endswith(ending)), None)
    if ending is None:
        raise InputError(f"{path} cannot be read; give a file that ends in {', '.join(readers)}.")
    if path.is_file() and not path.stat().st_size:
        raise InputError(f"{path} is empty: it has no rows; give a file with data.")
    try:
        return readers[ending](path)
    except MemoryError as error:
        raise InputError(f"{path} does not fit into memory: {error}; give fewer rows or columns.") from error


def _opened(path: Path) -> IO[bytes]:
    """Open a file, or standard input for ``-``, decompressed if its content is gzip, whatever its name."""
    # Buffered again: an object that replaces standard input may lack peek.
    raw = io.BufferedReader(cast(Any, sys.stdin.buffer)) if path == Path("-") else path.open("rb")
    return cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if raw.peek(2)[:2] == b"\x1f\x8b" else raw


def _lines(file: IO[bytes], name: str) -> Iterator[str]:
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    while line := text.readline(_LINE):
        if len(line) == _LINE:
            raise InputError(_TOO_LONG.format(name, _LINE))
        yield line


def _read_text(path: Path) -> Dataset:
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
            # As text: pyarrow would take dates, times and hexadecimal identifiers for numbers.
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
    # The one that divides the header into the most fields, and the row below into as many.
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
    numbers = [cell for cell in header if tables.is_number(cell) and cell.lower() not in tables.MISSING]
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
        """Return True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next block, which is no larger than pyarrow's."""
        block = next(self._blocks, b"")
        self._n_rows += max(block.count(b"\n"), block.count(b"\r"))
        check_room(2 * 8 * self._n_rows * self._n_columns)  # columns, and the matrix that is embedded
        return block


def _with_numbers(name: str, table: pa.Table) -> Dataset:
    numbers, commas = {}, []
    for column, text in zip(table.column_names, table.columns, strict=True):
        found = _as_numbers(text)
        if found is None:
            decimal = pc.match_substring_regex(text, _DECIMAL)
            if pc.any(pc.and_not(decimal, pc.match_substring_regex(text, tables.GROUPED))).as_py():
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
        text = pc.if_else(pc.is_in(text, value_set=pa.array(tables.MISSING)), None, text)
        for word, digit in (("true", "1"), ("false", "0")):
            text = pc.if_else(pc.equal(text, word), digit, text)
        try:
            floats = text.cast(pa.float64())
        except pa.ArrowInvalid:
            return None
    with contextlib.suppress(pa.ArrowInvalid):
        return text.cast(pa.int64())  # exact beyond 2^53
    return floats


def _read_matrix(path: Path) -> Dataset:
    """Read a matrix: as cells x genes if 10x names of both are beside it, else with rows as samples."""
    matrix = _matrix_market(path)
    prefix, is_tenx, _ = path.name.partition(_TENX)  # as in GSM1_matrix.mtx.gz
    names = (path.with_name(f"{prefix}{kind}.tsv") for kind in ("barcodes", "features", "genes"))
    barcodes, features, genes = (_plain_or_packed(name) if is_tenx else None for name in names)
    if barcodes and (features or genes):
        return _tenx(path, matrix, barcodes, features or genes)
    note = "rows are points: {} points with {} features; transpose the matrix if it is the other way"
    return Dataset(str(path), X=matrix, notes=(note.format(*matrix.shape),))


def _matrix_market(path: Path) -> Any:
    # SciPy's reader is faster, but some malformed files crash it, and the process with it.
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
        return tables.turned(_numbers(entries, sizes[0] * sizes[1], 1).reshape(sizes[1], sizes[0]))  # column by column


def _numbers(entries: Iterator[str], n_lines: int, n_columns: int) -> Array:
    check_room(2 * 8 * n_lines * n_columns)  # the numbers, and the matrix made of them
    numbers = np.loadtxt(itertools.islice(entries, n_lines + 1), comments="%", ndmin=2)
    if numbers.shape != (n_lines, n_columns):
        raise ValueError(f"{n_lines} lines of {n_columns} numbers should follow, and there are {numbers.shape}")
    return numbers


def _sparse(numbers: Array, sizes: list[int], mirror_sign: int) -> Any:
    indices = numbers[:, :2].T - 1
    if (indices != np.floor(indices)).any() or (indices < 0).any() or (sizes[:2] <= indices.T).any():
        raise ValueError("there is an entry outside the matrix")
    values = numbers[:, 2] if numbers.shape[1] == 3 else np.ones(len(numbers))
    found = scipy.sparse.csr_matrix((values, indices.astype(np.int64)), shape=sizes[:2])
    mirrored = mirror_sign * (scipy.sparse.tril(found, -1) + scipy.sparse.triu(found, 1)).T if mirror_sign else None
    return found if mirrored is None else (found + mirrored).tocsr()


def _plain_or_packed(path: Path) -> Path | None:
    return next((found for found in (path, path.with_name(f"{path.name}.gz")) if found.is_file()), None)


def _tenx(path: Path, matrix: Any, barcodes: Path, features: Any) -> Dataset:
    cells = [row[0] for row in _rows(barcodes)]
    genes = [[*row, "", "", ""][:3] for row in _rows(features)]
    if matrix.shape == (len(genes), len(cells)):
        matrix = tables.turned(matrix)
    elif matrix.shape != (len(cells), len(genes)):
        raise InputError(
            f"{path} is a matrix of {matrix.shape[0]} x {matrix.shape[1]}, but there are names of {len(genes)} genes "
            f"and {len(cells)} cells beside it; use the files that belong to it."
        )
    notes = [f"10x: {len(cells)} cells x {len(genes)} genes"]
    kept = [i for i, gene in enumerate(genes) if gene[2] == "Gene Expression"]
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
    with damage_reported(path, "a table of names"), _opened(path) as file:
        data = file.read(_NAMES + 1)
        if len(data) > _NAMES:
            raise InputError(f"{path} has more than {_NAMES} characters of names; give fewer rows and columns.")
        check_room(2 * len(data) + _ROW * data.count(b"\n"))
        lines = data.decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    return [line.split("\t") for line in lines if line]


def _read_parquet(path: Path) -> Dataset:
    with damage_reported(path, "a Parquet file"):
        metadata = pa.parquet.read_metadata(path)
        schema = metadata.schema.to_arrow_schema()
        check_names(schema.names, str(path))
        # Numbers, and the matrix that is embedded. Text is read as dictionaries: a string that every row repeats takes
        # no room in the file, and would take any amount of memory.
        groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
        n_values = sum(group.column(j).num_values for group in groups for j in range(metadata.num_columns))
        check_room(2 * 8 * max(n_values, metadata.num_rows * len(schema)))
        left = _nested(schema)
        texts = [field.name for field in schema if str(field.type) in _TEXTS]
        kept = [name for name in schema.names if name not in left]
        return _typed_table(path, pa.parquet.read_table(path, columns=kept, read_dictionary=texts), left)


def _read_arrow(path: Path) -> Dataset:
    with damage_reported(path, "a Feather or Arrow file"), pa.memory_map(str(path)) as file:
        # By the stream and not by the footer of a file, so that what is read is what was checked.
        start = len(_FILE) if file.read(len(_FILE)) == _FILE else 0
        file.seek(start)
        check_room(sum(2 * _decompressed_size(message) for message in pa.ipc.MessageReader.open_stream(file)))
        file.seek(start)
        with pa.ipc.open_stream(file) as stream:
            check_names(stream.schema.names, str(path))
            return _typed_table(path, stream.read_all(), _nested(stream.schema))


def _nested(schema: pa.Schema) -> list[str]:
    return [field.name for field in schema if pa.types.is_nested(field.type) and not is_list(field.type)]


def _typed_table(path: Path, table: pa.Table, left: list[str]) -> Dataset:
    table.validate(full=True)  # a damaged file may have codes beyond its dictionaries
    if not table.num_rows:
        raise InputError(f"{path} has no rows; give a table with at least two.")
    notes = (f"left out, since they are nested: {', '.join(left)}",) if left else ()
    kept = table.select([name for name in table.column_names if name not in left])
    return typed_contents(str(path), kept, notes=notes)


def _decompressed_size(message: pa.Message) -> int:
    """Return the size of the buffers of a message, each of which begins with its size if it is compressed.

    The metadata, which are FlatBuffers, say where they are: the third field of a message is a record batch, or a
    dictionary batch with one as second field; the third field of a record batch are buffers, the fourth compression.
    """
    if message.type == "schema" or message.body is None:
        return 0
    metadata, body = bytes(message.metadata), memoryview(message.body)

    def number(kind: str, position: int) -> int:
        return int(struct.unpack_from(kind, metadata, position)[0])

    def field_of(table: int, index: int) -> int:
        # Position of what a field of a table refers to, 0 if the field is not there.
        vtable, entry = table - number("<i", table), 4 + 2 * index
        offset = number("<H", vtable + entry) if table and entry < number("<H", vtable) else 0
        return table + offset + number("<I", table + offset) if offset else 0

    batch = field_of(number("<I", 0), 2)
    batch = field_of(batch, 1) if message.type == "dictionary" else batch
    vector = field_of(batch, 2)
    if not vector or not field_of(batch, 3):
        return len(body)
    n_buffers = number("<I", vector)
    buffers = np.frombuffer(metadata, "<i8", 2 * n_buffers, vector + 4).reshape(-1, 2)
    sizes = [int(struct.unpack_from("<q", body, offset)[0]) for offset, length in buffers.tolist() if length]
    return max(len(body), sum(size for size in sizes if size > 0))


def _read_npy(path: Path) -> Dataset:
    with damage_reported(path, "an array of numbers in NPY format"), path.open("rb") as file:
        header = read_array_header(file)
        _check_matrix(header, str(path))
        check_room(_needed(header))
        file.seek(0)
        array = np.lib.format.read_array(file, allow_pickle=False)
        return Dataset(str(path), X=as_floats(array.reshape(len(array), -1)))  # images, one per row


def _read_npz(path: Path) -> Dataset:
    with damage_reported(path, "an archive of arrays in NPZ format"):
        headers = npz_headers(path)
        chosen = _choose_matrix(headers, path)
        _check_matrix(headers[chosen], f"{path}: {chosen}")
        shape = headers[chosen].shape[:1]
        names = [name for name in _LABELS if name in headers and headers[name].shape == shape][:1]
        arrays = load_npz(path, [chosen, *names])
        labels = {name: arrays[name] for name in names}
        columns = {n: a.astype(a.dtype.newbyteorder("=") if a.dtype.kind in "biuf" else str) for n, a in labels.items()}
        return typed_contents(str(path), pa.table(columns), X=as_floats(arrays[chosen].reshape(*shape, -1)))


def load_npz(file: Path | IO[bytes], names: Collection[str]) -> dict[str, Any]:
    """Read arrays of an NPZ file; raise MemoryError if they do not fit, and one of ``DAMAGE`` if it is another file."""
    headers = npz_headers(file)
    check_room(sum(_needed(headers[name]) for name in names))
    # Not np.load: of two members "X" and "X.npy" it would read the one whose header was not checked.
    with zipfile.ZipFile(file) as archive:
        return {name: np.lib.format.read_array(archive.open(f"{name}.npy"), allow_pickle=False) for name in names}


def _needed(header: ArrayHeader) -> int:
    # Of the array and of what is made of it: floats, or text.
    if header.dtype in (np.float32, np.float64):
        return max(header.nbytes, header.n_items)
    return header.nbytes + header.n_items * (8 if header.dtype.kind in "biuf" else _TEXT)


def _choose_matrix(headers: dict[str, ArrayHeader], path: Path) -> str:
    matrices = [name for name, header in headers.items() if len(header.shape) >= 2]
    known = [name for name in _MATRICES if name in matrices]
    if known or len(matrices) == 1:
        return (known or matrices)[0]
    shapes = ", ".join(f"{name} {header.shape}" for name, header in headers.items()) or "none"
    raise InputError(f"{path}: it is not clear which array to embed; name one X. Its arrays: {shapes}.")


def _check_matrix(header: ArrayHeader, name: str) -> None:
    if header.dtype.kind not in "biufO":  # objects are refused as they are read
        raise InputError(f"{name} is an array of {header.dtype}, not of numbers; save it as floats.")
    if len(header.shape) < 2 or 0 in header.shape:
        raise InputError(f"{name} has shape {header.shape}; give an array of shape (n_samples, n_features).")


def _read_h5ad(path: Path, rep: str | None, genes: Sequence[str]) -> Dataset:
    """Read an array of obsm, or the matrix X; observations are columns, and so are these genes."""
    with _opened_h5ad(path, rep) as cells:
        columns = {"obs_names": cells.obs_names.to_series()} | {str(name): cells.obs[name] for name in cells.obs}
        columns = {name: _observations(series) for name, series in columns.items()}
        measured: dict[str, pa.Array] = {}
        for part, name in itertools.product((cells, cells.raw), genes):
            if part is not None and name in part.var_names and name not in {*columns, *measured}:
                # Not part[:, name]: raw data on disk ignore the choice of genes.
                values = part.X[:, [part.var_names.get_loc(name)]]
                values = values.toarray() if scipy.sparse.issparse(values) else np.asarray(values)
                measured[name] = pa.array(values.astype(np.float64).ravel())
        if rep not in (None, _X) and rep not in cells.obsm:
            known = listed(sorted(cells.obsm)) or "none"
            raise InputError(f"{path} has no obsm[{rep!r}]; give --rep X, or one of {known}.")
        key = rep or (_PCA if _PCA in cells.obsm else _X)
        matrix = _matrix_of(cells, path) if key == _X else np.asarray(cells.obsm[key])
        note = f"embedded: {'X' if key == _X else f'obsm[{key!r}]'}, {matrix.shape[1]} features"
        note += f", since there is no obsm[{_PCA!r}]" if rep is None and key == _X else ""
        parts: dict[str, Any] = {"features": tuple(map(str, cells.var_names)) if key == _X else None}
        parts |= {"notes": (note,), "continuous": frozenset(measured)}
        return typed_contents(str(path), pa.table(columns | measured), X=matrix, **parts)


def read_genes(path: Path) -> tuple[Any, tuple[str, ...]] | None:
    """Read the matrix X of an h5ad file and the names of its genes; None if there is none, or if it is large."""
    with import_module("h5py").File(path, "r") as file:
        if _X not in file or not 0 < _size(file, path, [_X]) <= _MAX_SHOWN:
            return None
    with _opened_h5ad(path, _X) as cells:
        return _matrix_of(cells, path), tuple(map(str, cells.var_names))


@contextlib.contextmanager
def _opened_h5ad(path: Path, rep: str | None) -> Iterator[Any]:
    """Open a file of which ``rep`` is to be read; its matrix stays on disk until then."""
    try:
        anndata, h5py = import_module("anndata"), import_module("h5py")
    except ImportError as error:
        raise InputError(f'reading {path} needs anndata, which is missing; pip install "laptsne[scanpy]".') from error
    with damage_reported(path, "an h5ad file", Exception):  # whatever anndata and h5py raise, the file is at fault
        with h5py.File(path, "r") as file:
            on_disk = (_X, "raw") if rep != _X and f"obsm/{rep or _PCA}" in file else ()
            check_room(_size(file, path, [name for name in file if name not in on_disk]))
            _size(file, path, [name for name in file if name in on_disk])  # these are to refer to no files either
        cells = anndata.read_h5ad(path, backed="r")
        with contextlib.closing(cells.file):
            yield cells


def _size(group: Any, path: Path, names: Iterable[str], seen: set[Any] | None = None) -> int:
    """Return the bytes that parts of a group take, written to the file or not; refuse references to other files."""
    h5py, size = import_module("h5py"), 0
    for name in names:
        # Groups may contain one another. Each one at the top is counted on its own, since not all of them are read.
        visited = set() if seen is None else seen
        item = None if isinstance(group.get(name, getlink=True), h5py.ExternalLink) else group.get(name)
        if isinstance(item, h5py.Group):
            if item not in visited:
                visited.add(item)
                size += _size(item, path, item, visited)
        elif not isinstance(item, h5py.Dataset) or item.external or item.is_virtual:
            where = f"{group.name.rstrip('/')}/{name}"
            raise InputError(f"{path}: {where} refers to another file, or to nothing; write the data into one file.")
        else:
            size += max(item.size or 0, math.prod(item.chunks or (0,))) * item.dtype.itemsize
    return size


def _matrix_of(cells: Any, path: Path) -> Any:
    try:
        X = cells.X[:]
    except KeyError as error:
        raise InputError(f"{path} has neither X nor obsm[{_PCA!r}]; write one of them.") from error
    if not scipy.sparse.issparse(X):
        return np.asarray(X)
    X.check_format(full_check=True)  # compiled code relies on the indices
    return X.tocsr()


def _observations(series: Any) -> pa.ChunkedArray:
    if series.dtype.kind not in "biuf":  # categories, dates and text
        series = [str(value) if there else None for value, there in zip(series, series.notna(), strict=True)]
    return pa.chunked_array([pa.array(series, from_pandas=True)])
