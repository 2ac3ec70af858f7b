"""Readers by file ending.

Nothing in a file is executed, and what a file declares or decompresses to is compared with the available memory by
``check_room`` before it is allocated, or while it is read.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import io
import math
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from itertools import islice
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
from laptsne.cli import tables
from laptsne.cli.options import EXAMPLE
from laptsne.cli.tables import Dataset, check_names, damage_reported, is_list, listed
from laptsne.cli.terminal import InputError

_STDIN = Path("-")
_LABELS = ("y", "labels", "label", "target")
_TEXT = 128  # bytes per label, as text of any kind
_FILE = b"ARROW1\x00\x00"  # begins an Arrow file; what follows is an Arrow stream, and a footer
_TEXTS = ("string", "large_string", "string_view", "binary", "large_binary")  # types that Parquet holds as bytes
_PCA, _X = "X_pca", "X"
_MAX_SHOWN = 400_000_000  # bytes of a matrix that is read only for the explorer
_BLOCK = 1 << 22  # bytes decompressed at a time
_ROW = 1 << 26  # bytes of the longest row of a table in text
_N_ROWS = 20  # of text, by which its delimiter is found
_NAMES = 256  # bytes of a list of a few strings, beside their characters
_NOT_CP1252 = rb"[\xc2-\xf4][\x80-\xbf]|[\x00-\x08\x0e-\x1f\x81\x8d\x8f\x90\x9d]"  # letters of UTF-8; no text
_UNITS = "$€£¥%"
_GROUPED = r"^\s*[+-]?\d{1,3}(,\d{3})*(,\d{3}\.\d+|,\d{3},\d{3})\s*$"  # unlike 1,234, which may be a decimal comma
_HEXADECIMAL_OR_POSTCODE = r"^[+-]?0([xX].*|\d+)$"
# Numbers with decimal commas, unless these may group thousands, as in 1,234.
_DECIMAL = r"^\s*[+-]?([\d.]*,(\d\d?|\d{4,})|(0?|\d{4,}),\d+)([eE][+-]?\d+)?\s*$"
_TENX = "matrix.mtx"


def read_source(
    source: str, *, rep: str | None = None, genes: Sequence[str] = (), encoding: str | None = None
) -> Dataset:
    """Read a file by its ending, the built-in example by its name, or CSV from standard input as ``-``.

    ``rep`` and ``genes`` name the array of an h5ad file to embed, and genes that become columns if it has them.
    """
    path = Path(source)
    if encoding is not None and path != _STDIN and not path.name.lower().removesuffix(".gz").endswith((".csv", ".tsv")):
        raise InputError(f"--encoding {encoding} is of text, but {source} is no .csv or .tsv file; remove the option.")
    if rep is not None and path.suffix.lower() != ".h5ad":
        raise InputError(f"--rep {rep} names an array of an .h5ad file, but {source} is none; remove the option.")
    if source == EXAMPLE:
        X, y = load_digits(return_X_y=True)
        return Dataset(source, pa.table({"label": y}), X=X)
    if path == _STDIN:
        return _read_text(path, encoding)
    path = (_plain_or_packed(path / _TENX) if path.is_dir() else None) or path
    if path.is_dir():
        raise InputError(f"{path} is a folder without {_TENX}; give a file in it, or a 10x folder.")
    if not path.exists():
        raise InputError(f"there is no file {source}; give a file, or the example {EXAMPLE}.")
    readers: dict[str, Callable[[Path], Dataset]] = {
        **dict.fromkeys((".csv", ".csv.gz", ".tsv", ".tsv.gz", ".xlsx"), partial(_read_text, encoding=encoding)),
        ".parquet": _read_parquet,
        **dict.fromkeys((".feather", ".arrow"), _read_arrow),
        ".npy": _read_npy,
        ".npz": _read_npz,
        ".h5ad": lambda path: _read_h5ad(path, rep, genes),
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


def _content(path: Path) -> bytes:
    """Return what is in a file, or standard input for ``-``, decompressed if it is gzip, whatever its name."""
    # Buffered again: an object that replaces standard input may lack peek.
    raw = io.BufferedReader(cast(Any, sys.stdin.buffer)) if path == _STDIN else path.open("rb")
    content = io.BytesIO()
    with raw:
        file = cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if raw.peek(2)[:2] == b"\x1f\x8b" else raw
        while block := file.read(_BLOCK):
            content.write(block)
            check_room(content.tell())  # as much again: what is made of it
    return content.getvalue()


def _lines(content: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline="")


def _as_utf8(content: bytes, encoding: str | None) -> tuple[bytes, tuple[str, ...]]:
    """Return text as UTF-8, and a note if its encoding is guessed: one of those that Excel writes."""
    guess = "utf-8"
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        guess = "utf-16"
    elif not content.isascii() and re.search(_NOT_CP1252, content) is None:
        guess = "cp1252"
    notes = () if encoding or guess == "utf-8" else (f"read as {guess} (guessed; --encoding names another)",)
    try:
        return (content if (encoding or guess) == "utf-8" else content.decode(encoding or guess).encode()), notes
    except LookupError as error:
        raise InputError(f"--encoding {encoding} is not known; give one such as utf-8 or cp1252.") from error


def _excel_as_csv(path: Path) -> tuple[bytes, tuple[str, ...]]:
    """Return the first sheet of a workbook as CSV, and a note if there are others."""
    try:
        openpyxl = import_module("openpyxl")
    except ImportError as error:
        raise InputError(f'reading {path} needs openpyxl, which is missing; pip install "laptsne[cli]".') from error
    with damage_reported(path, "an Excel workbook", Exception):
        with zipfile.ZipFile(path) as archive:
            check_room(8 * sum(member.file_size for member in archive.infolist()))
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        sheet = book.worksheets[0]
        sheet.reset_dimensions()  # which may be larger than what is in the file
        text = io.StringIO(newline="")
        writer, width, checked = csv.writer(text), 0, 0
        for row in sheet.iter_rows(values_only=True):
            n_cells = max((i for i, cell in enumerate(row, 1) if cell is not None), default=0)
            width = width or n_cells
            writer.writerows([[*row[:n_cells], *[None] * (width - n_cells)]] if n_cells else [])
            if text.tell() > checked + _BLOCK:  # every cell may repeat a long string
                checked = text.tell()
                check_room(2 * checked)
        notes = (f"sheet: {sheet.title}, the first of {len(book.worksheets)}",) if len(book.worksheets) > 1 else ()
        book.close()
    return text.getvalue().encode(), notes


def _read_text(path: Path, encoding: str | None = None) -> Dataset:
    name = "standard input" if path == _STDIN else str(path)
    with damage_reported(name, f"a table as text in {encoding or 'UTF-8'}"):
        is_book = name.lower().endswith(".xlsx")
        content, notes = _excel_as_csv(path) if is_book else _as_utf8(_content(path), encoding)
        possible = "," if is_book else "\t" if name.lower().endswith((".tsv", ".tsv.gz")) else ",;\t"
        delimiter = _delimiter(content, possible)
        reader = csv.reader(_lines(content), delimiter=delimiter)
        header = [cell.strip() or f"Unnamed: {i}" for i, cell in enumerate(next(reader, []))]  # named as by pandas
        _check_header(header, name)
        first = {cell: i for i, cell in reversed([*enumerate(header)])}
        repeated = [f"{cell}.{i}" for i, cell in enumerate(header, 1) if first[cell] != i - 1]
        header = [cell if first[cell] == i else f"{cell}.{i + 1}" for i, cell in enumerate(header)]
        check_names(header, name)
        n_rows = max(content.count(b"\n"), content.count(b"\r"))
        check_room(2 * 8 * n_rows * len(header))  # columns of numbers, and the matrix that is embedded
        # A last row of empty fields: if a quote is never closed, the field swallows it.
        content += f'\n""{delimiter * (len(header) - 1)}\n'.encode()
        try:
            table = pa.csv.read_csv(
                io.BytesIO(content),
                # One thread: otherwise the numbers of invalid rows are unknown.
                pa.csv.ReadOptions(column_names=header, skip_rows=reader.line_num, block_size=_ROW, use_threads=False),
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
            raise ValueError("a quote is never closed")
    if table.num_rows == 1:
        raise InputError(f"{name} has no rows below its header; give a table with a header and at least two rows.")
    columns = dict(zip(header, table.slice(0, table.num_rows - 1).columns, strict=True))
    spellings: dict[str, list[str]] = {}
    for column, text in columns.items():
        columns[column], spelling = _typed_column(text)
        spellings.setdefault(spelling, []).append(column)
    notes += (f"columns of a name that is taken are numbered: {listed(repeated)}",) if repeated else ()
    notes += tuple(f"read {spelling}: {listed(those)}" for spelling, those in spellings.items() if spelling)
    return Dataset(name, pa.table(columns), first_row=2, notes=notes)


def _typed_column(text: pa.ChunkedArray) -> tuple[pa.ChunkedArray, str]:
    """Return a column as numbers if all its values are, and how they are spelled unless it is plainly."""
    found, spelled, how = _as_numbers(text), text, []
    if found is None:
        n_present = len(text) - pc.sum(pc.is_in(pc.utf8_lower(text), pa.array(tables.MISSING))).as_py()
        if unit := next((u for u in _UNITS if pc.sum(pc.match_substring(text, u)).as_py() == n_present), ""):
            spelled, how = pc.utf8_trim_whitespace(pc.replace_substring(text, unit, "")), [f"without {unit}"]
        if pc.any(pc.match_substring_regex(spelled, _GROUPED)).as_py():
            spelled, how = pc.replace_substring(spelled, ",", ""), [*how, "with commas between thousands"]
        elif pc.any(pc.match_substring_regex(spelled, _DECIMAL)).as_py():
            ungrouped = pc.replace_substring_regex(spelled, r"\.(\d{3})\b", r"\1")
            spelled, how = pc.replace_substring(ungrouped, ",", "."), [*how, "with decimal commas"]
        found = _as_numbers(spelled) if how else None
    return (text, "") if found is None else (found, " and ".join(how))


def _delimiter(content: bytes, possible: str) -> str:
    """Return what divides the first rows into equally many fields, or else the header into the most."""
    widths: dict[str, list[int]] = {delimiter: [] for delimiter in possible}
    for delimiter in possible:
        rows = csv.reader(_lines(content), delimiter=delimiter)
        with contextlib.suppress(csv.Error):  # a field is too long
            widths[delimiter].extend(len(row) for row in islice(rows, _N_ROWS) if row)
    alike = [delimiter for delimiter in possible if len(set(widths[delimiter])) == 1 and widths[delimiter][0] > 1]
    # Commas are in numbers and names as well.
    return alike[-1] if alike else max(possible, key=lambda delimiter: widths[delimiter][:1])


def _check_header(header: list[str], name: str) -> None:
    if not header:
        raise InputError(f"{name} has no rows; give a table with a header and at least two rows.")
    numbers = [cell for cell in header if tables.is_number(cell) and cell.lower() not in tables.MISSING]
    bad = [cell for cell in numbers if not cell.lstrip("-").isdigit() or header.count(cell) > 1]
    if bad:
        raise InputError(f"{name}: the first line holds numbers ({bad[0]}), not names; put a line with names above it.")


def _as_numbers(text: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return integers, floats or booleans; None if a value is none of these, or would not be written the same."""
    text = pc.utf8_trim_whitespace(text)
    text = pc.if_else(pc.is_in(pc.utf8_lower(text), value_set=pa.array(tables.MISSING)), None, text)
    if pc.any(pc.match_substring_regex(text, _HEXADECIMAL_OR_POSTCODE)).as_py():
        return None
    for kind in (pa.int64(), pa.float64(), pa.bool_()):  # integers are exact beyond 2^53
        with contextlib.suppress(pa.ArrowInvalid):
            return text.cast(kind)
    return None


def _read_matrix(path: Path) -> Dataset:
    """Read a sparse matrix: as cells x genes if 10x names of both are beside it, else with rows as samples."""
    # SciPy's reader is faster, but some malformed files crash it, and the process with it.
    with damage_reported(path, "a sparse matrix in Matrix Market format"):
        text = _lines(_content(path))
        words = next(text, "").lower().split()
        if words not in [["%%matrixmarket", "matrix", "coordinate", kind, "general"] for kind in ("real", "integer")]:
            raise ValueError("it does not begin with %%MatrixMarket matrix coordinate real general")
        entries = (line for line in text if line.strip() and not line.startswith("%"))
        sizes = [int(word) for word in next(entries, "").split()]
        if len(sizes) != 3 or min(sizes) < 1:
            raise ValueError("its header declares no entries")
        check_room(8 * sizes[0] + 2 * 8 * 3 * sizes[2])  # row pointers; entries, and the matrix made of them
        parts = np.loadtxt(entries, "i8,i8,f8", unpack=True, ndmin=1, max_rows=sizes[2] + 1)
        if len(parts[0]) != sizes[2]:
            raise ValueError(f"{sizes[2]} entries should follow, and there are {len(parts[0])}")
        matrix = scipy.sparse.csr_matrix((parts[2], (parts[0] - 1, parts[1] - 1)), sizes[:2])
    prefix = path.name.partition(_TENX)[0]  # as in GSM1_matrix.mtx.gz
    names = (path.with_name(f"{prefix}{kind}.tsv") for kind in ("barcodes", "features", "genes"))
    barcodes, features, genes = map(_plain_or_packed, names)
    if barcodes and (features or genes):
        return _tenx(path, matrix, barcodes, cast(Path, features or genes))
    note = f"rows are points: {matrix.shape[0]} points with {matrix.shape[1]} features; --transpose takes columns"
    return Dataset(str(path), X=matrix, notes=(note,))


def _plain_or_packed(path: Path) -> Path | None:
    return next((found for found in (path, path.with_name(f"{path.name}.gz")) if found.is_file()), None)


def _tenx(path: Path, matrix: Any, barcodes: Path, features: Path) -> Dataset:
    cells = [row[0] for row in _rows(barcodes)]
    genes = [[*row, "", "", ""][:3] for row in _rows(features)]
    if matrix.shape != (len(genes), len(cells)):
        raise InputError(
            f"{path} is a matrix of {matrix.shape[0]} x {matrix.shape[1]}, but there are names of {len(genes)} genes "
            f"and {len(cells)} cells beside it; use the files that belong to it."
        )
    matrix = tables.turned(matrix)
    notes = [f"10x: {len(cells)} cells x {len(genes)} genes"]
    kept = [i for i, gene in enumerate(genes) if gene[2] == "Gene Expression"]
    if 0 < len(kept) < len(genes):
        notes.append(f"left out, since they are not genes: {len(genes) - len(kept)} features")
        matrix, genes = matrix[:, kept], [genes[i] for i in kept]
    symbols = [symbol or identifier for identifier, symbol, _ in genes]
    counts = Counter(symbols)
    names = [s if counts[s] == 1 else f"{s} ({gene[0]})" for s, gene in zip(symbols, genes, strict=True)]
    check_names(names, str(features))
    return Dataset(str(path), pa.table({"barcode": cells}), matrix, tuple(names), notes=tuple(notes))


def _rows(path: Path) -> list[list[str]]:
    with damage_reported(path, "a table of names"):
        content = _content(path)
        check_room(2 * len(content) + _NAMES * content.count(b"\n"))
        return [line.split("\t") for line in content.decode("utf-8-sig").splitlines() if line]


def _read_parquet(path: Path) -> Dataset:
    with damage_reported(path, "a Parquet file"):
        metadata = pa.parquet.read_metadata(path)
        schema = metadata.schema.to_arrow_schema()
        groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
        n_values = sum(group.column(j).num_values for group in groups for j in range(metadata.num_columns))
        check_room(2 * 8 * max(n_values, metadata.num_rows * len(schema)))  # numbers, and the matrix that is embedded
        # Text as dictionaries: a string that every row repeats takes no room in the file, but any amount of memory.
        texts = [field.name for field in schema if str(field.type) in _TEXTS]
        read = partial(pa.parquet.read_table, path, read_dictionary=texts)
        return _typed_table(path, schema, lambda kept: read(columns=kept))


def _read_arrow(path: Path) -> Dataset:
    with damage_reported(path, "a Feather or Arrow file"), pa.memory_map(str(path)) as file:
        file.seek(len(_FILE) if file.read(len(_FILE)) == _FILE else 0)
        batches, size = [], 0
        with pa.ipc.open_stream(file) as stream:
            for batch in stream:
                batches.append(batch)
                size += batch.nbytes
                check_room(size)  # as much again: what is made of it
            table = pa.Table.from_batches(batches, stream.schema)
        return _typed_table(path, table.schema, table.select)


def _typed_table(path: Path, schema: pa.Schema, read: Callable[[list[str]], pa.Table]) -> Dataset:
    """Return the columns of a table that are not nested, which ``read`` reads by their names."""
    check_names(schema.names, path)
    left = [field.name for field in schema if pa.types.is_nested(field.type) and not is_list(field.type)]
    table = read([name for name in schema.names if name not in left])
    table.validate(full=True)  # a damaged file may have codes beyond its dictionaries
    if not table.num_rows:
        raise InputError(f"{path} has no rows; give a table with at least two.")
    return Dataset(str(path), table, notes=(f"left out, since they are nested: {', '.join(left)}",) if left else ())


def _read_npy(path: Path) -> Dataset:
    with damage_reported(path, "an array of numbers in NPY format"), path.open("rb") as file:
        header = read_array_header(file)
        _check_matrix(header, str(path))
        check_room(_needed(header))
        file.seek(0)
        array = np.lib.format.read_array(file, allow_pickle=False)
    return Dataset(str(path), X=array.reshape(len(array), -1))  # images, one per row


def _read_npz(path: Path) -> Dataset:
    with damage_reported(path, "an archive of arrays in NPZ format"), zipfile.ZipFile(path) as archive:
        headers = npz_headers(path)
        matrices = ["X"] if "X" in headers else [name for name, header in headers.items() if len(header.shape) >= 2]
        if len(matrices) != 1:
            shapes = ", ".join(f"{name} {header.shape}" for name, header in headers.items()) or "none"
            raise InputError(f"{path}: it is not clear which array to embed; name one X. Its arrays: {shapes}.")
        chosen = matrices[0]
        _check_matrix(headers[chosen], f"{path}: {chosen}")
        n_rows = headers[chosen].shape[0]
        names = [name for name in _LABELS if name in headers and headers[name].shape == (n_rows,)][:1]
        check_room(sum(_needed(headers[name]) for name in (chosen, *names)))
        # Not np.load: of two members "X" and "X.npy" it would read the one whose header was not checked.
        files = (archive.open(f"{name}.npy") for name in (chosen, *names))
        X, *labels = (np.lib.format.read_array(file, allow_pickle=False) for file in files)
        labels = [y.astype(y.dtype.newbyteorder("=") if y.dtype.kind in "biuf" else str) for y in labels]
        return Dataset(str(path), pa.table(labels, names), X=X.reshape(n_rows, -1))


def _needed(header: ArrayHeader) -> int:
    # Of the array and of what is made of it: floats, or text.
    if header.dtype in (np.float32, np.float64):
        return max(header.nbytes, header.n_items)
    return header.nbytes + header.n_items * (8 if header.dtype.kind in "biuf" else _TEXT)


def _check_matrix(header: ArrayHeader, name: str) -> None:
    if header.dtype.kind not in "biufO":  # objects are refused as they are read
        raise InputError(f"{name} is an array of {header.dtype}, not of numbers; save it as floats.")
    if len(header.shape) < 2 or 0 in header.shape:
        raise InputError(f"{name} has shape {header.shape}; give an array of shape (n_samples, n_features).")


def _read_h5ad(path: Path, rep: str | None, genes: Sequence[str]) -> Dataset:
    """Read an array of obsm, or the matrix X; observations are columns, and so are these genes."""
    with _opened_h5ad(path) as file:
        embeddings = sorted(file.get("obsm", ()))
        if rep not in (None, _X, *embeddings):
            raise InputError(f"{path} has no obsm[{rep!r}]; give --rep X, or one of {listed(embeddings) or 'none'}.")
        key = rep or (_PCA if _PCA in embeddings else _X)
        if key == _X and _X not in file:
            raise InputError(f"{path} has neither X nor obsm[{_PCA!r}]; write one of them.")
        obs, matrix = _part(file, "obs"), _part(file, key if key == _X else f"obsm/{key}")
        columns = {"obs_names": obs.index} | {str(name): obs[name] for name in obs}
        columns = {name: pa.array(values, from_pandas=True) for name, values in columns.items()}
        measured: dict[str, pa.Array] = {}
        wanted = [gene for gene in genes if gene not in columns]
        for group in ("raw/", "") if wanted else ():  # X prevails
            if f"{group}X" in file:
                names, X = _part(file, f"{group}var").index, _part(file, f"{group}X")
                found = {gene: X[:, [names.get_loc(gene)]].sum(axis=1) for gene in wanted if gene in names}
                measured |= {gene: pa.array(np.asarray(x, float).ravel()) for gene, x in found.items()}
        note = f"embedded: {'X' if key == _X else f'obsm[{key!r}]'}, {matrix.shape[1]} features"
        note += f", since there is no obsm[{_PCA!r}]" if rep is None and key == _X else ""
        table, features = pa.table(columns | measured), _gene_names(file) if key == _X else None
        return Dataset(str(path), table, matrix, features, notes=(note,), continuous=frozenset(measured))


def read_genes(path: Path, *, whatever_size: bool = False) -> tuple[Any, tuple[str, ...]] | None:
    """Read the matrix X of an h5ad file and the names of its genes; None if there is none, or if it is large."""
    with _opened_h5ad(path) as file:
        found = _X in file and (whatever_size or _size(file, _X, set()) <= _MAX_SHOWN)
        return (_part(file, _X), _gene_names(file)) if found else None


@contextlib.contextmanager
def _opened_h5ad(path: Path) -> Iterator[Any]:
    try:
        h5py = import_module("h5py")
        import_module("anndata")
    except ImportError as error:
        raise InputError(f'reading {path} needs anndata, which is missing; pip install "laptsne[scanpy]".') from error
    # Whatever anndata and h5py raise, the file is at fault.
    with damage_reported(path, "an h5ad file", Exception), h5py.File(path, "r") as file:
        yield file


def _gene_names(file: Any) -> tuple[str, ...]:
    return tuple(map(str, _part(file, "var").index))


def _part(file: Any, name: str) -> Any:
    """Read a part of an h5ad file as a data frame, a sparse matrix by rows, or an array."""
    check_room(_size(file, name.partition("/")[0], set()))
    anndata = import_module("anndata")
    part = getattr(anndata, "io", anndata.experimental).read_elem(file[name])  # experimental before anndata 0.11
    if scipy.sparse.issparse(part):
        part.check_format(full_check=True)  # compiled code relies on the indices
        return part.tocsr()
    return part if name.endswith(("obs", "var")) else np.asarray(part)


def _size(group: Any, name: str, seen: set[Any]) -> int:
    """Return the bytes that a part of a group takes, written to the file or not; refuse references to other files."""
    h5py = import_module("h5py")
    item = None if isinstance(group.get(name, getlink=True), h5py.ExternalLink) else group.get(name)
    if isinstance(item, h5py.Group):
        if item in seen:  # groups may contain one another
            return 0
        seen.add(item)
        return sum(_size(item, child, seen) for child in item)
    if not isinstance(item, h5py.Dataset) or item.external or item.is_virtual:
        where = f"{group.name.rstrip('/')}/{name}"
        raise InputError(f"{group.file.filename}: {where} refers to another file, or to nothing; write all into one.")
    return int(max(item.size or 0, math.prod(item.chunks or (0,))) * item.dtype.itemsize)
