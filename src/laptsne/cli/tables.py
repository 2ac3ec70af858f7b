"""Tables: what a file contains, the kinds of its columns, and which of them are embedded.

Columns are held in a ``pyarrow.Table`` from the reader to the writer, as they came. Numbers in text are held beside it.
"""

from __future__ import annotations

import contextlib
import difflib
import re
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse

from laptsne._runtime.colours import Categories, encode_labels
from laptsne._runtime.files import DAMAGE
from laptsne._runtime.typing import Array
from laptsne.cli.terminal import InputError

MISSING = ("", "na", "n/a", "nan", "null", "none", "#n/a", "?")  # spellings of a missing value, in lower case
GROUPED = r"^\s*[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?\s*$"  # numbers with thousands separators, such as 1,234
_ZEROS, _BOOLEAN = r"^\s*[+-]?0\d+\s*$", r"^\s*((?i)true|false)\s*$"  # postcodes, among others
_EXACT = 2**53  # whole numbers of this size or more are not exact as floats
_DAMAGE = (*DAMAGE, pa.ArrowException, struct.error, IndexError, OverflowError)
_MAX_LISTED = 12  # names in a message
_EMBEDDED = ("numbers", "mixed")  # kinds of columns that are embedded unless the user says otherwise
_MIN_COUNTED = 10  # rows from which on 0, 1, 2, ... is a row number rather than a measurement
_FAR = 10_000  # consecutive numbers from here on are identifiers; years are less
_EXACT_NAMES = ("index", "row", "rowid", "unnamed0", "indexlevel0")
_LAST_WORDS = "id|ids|uid|uuid|guid|barcode|isbn|ean|sku|ssn|zip|zipcode|postcode"
# Names of label columns whatever their values, and names of columns that are labels unless their values are quantities.
# The first name that is found is taken.
_SURE = ("label", "labels", "class", "classes", "target", "targets")
_LIKELY = (
    *("celltype", "celltypes", "annotation", "annotations", "category", "categories", "species", "variety", "kind"),
    *("cluster", "clusters", "leiden", "louvain", "group", "groups", "type", "y", "digit"),
)
_REASONS = {
    "text": "not embedded, since they hold text",
    "date": "not embedded, since they hold dates or times",
    "identifier": "not embedded, since they count or identify the rows",
    "grouped": "not embedded, since their commas may be decimal or group thousands (write them without)",
    "list": "left out, since they hold lists",
    "empty": "left out, since they are empty",
}


@dataclass(frozen=True)
class Choice:
    """What the user, or a model, says about the columns."""

    label: str | None = None  # label column; None guesses one
    guess: bool = True  # whether a label column is guessed
    column: Sequence[str] = ()  # names or patterns of the columns to embed; empty for the default
    drop: Sequence[str] = ()  # names or patterns of columns not to embed
    features: Mapping[str, int] | None = None  # columns that a model was fitted to, and the features of each

    def drops(self, name: str) -> bool:
        """Return whether a column is among those to drop."""
        return any(name == pattern or fnmatchcase(name, pattern) for pattern in self.drop)


@dataclass(frozen=True)
class Dataset:
    """What a file contains: the columns of a table, or a matrix with columns beside it.

    Once columns are chosen, X is what is embedded, and the columns are those that are kept beside it, the label first.
    """

    name: str  # the file, as messages name it
    columns: pa.Table = field(default_factory=lambda: pa.table({}))  # values as they came, to be written back
    numbers: Mapping[str, pa.ChunkedArray] = field(default_factory=dict)  # those of the columns that are numbers
    X: Any = None  # array or sparse matrix of shape (n_rows, n_features), NaN where values are missing
    features: tuple[str, ...] | None = None  # names of the columns of X
    first_row: int = 1  # its number in messages: 2 if the header is row 1, as in a spreadsheet
    notes: tuple[str, ...] = ()  # what the user should know about how the file was read
    continuous: frozenset[str] = frozenset()  # columns that are measurements, such as genes, even if whole numbers
    label: str | None = None  # name of the label column
    inputs: Mapping[str, int] | None = None  # columns of the table that are embedded, and the features of each

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.columns.num_rows if self.X is None else self.X.shape[0])

    def values(self, name: str, purpose: str = "to colour by") -> Array:
        """Return a column beside the map, or a feature."""
        if name in self.columns.column_names:
            return as_numpy(self.columns[name], self.numbers.get(name))
        known = [*self.columns.column_names, *(self.features or ())]
        if name not in known:
            similar = difflib.get_close_matches(name, known) or known
            raise InputError(f"{self.name} has no column {name} {purpose}; there is {listed(similar)}.")
        column = self.X[:, (self.features or ()).index(name)]
        return np.asarray(column.toarray().ravel() if scipy.sparse.issparse(column) else column)

    def with_columns(self, names: Sequence[str]) -> Dataset:
        """Return the dataset with these features, or columns, beside the map."""
        columns, values = self.columns, {name: self.values(name) for name in names}
        added = {n: pa.chunked_array([v]) for n, v in values.items() if n not in columns.column_names}
        for name, column in added.items():
            columns = columns.append_column(name, column)
        # Columns of a matrix are all of a kind.
        continuous = self.continuous | (added.keys() if self.inputs is None else set())
        return replace(self, columns=columns, numbers={**self.numbers, **added}, continuous=continuous)

    def rows(self, kept: Array) -> Dataset:
        """Return the dataset with some of its rows."""
        mask = pa.array(kept)
        numbers = {name: values.filter(mask) for name, values in self.numbers.items()}
        return replace(self, X=self.X[kept], columns=self.columns.filter(mask), numbers=numbers)


def listed(names: Sequence[str]) -> str:
    """Return names separated by commas, the first of them if they are many."""
    more = len(names) - _MAX_LISTED
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:_MAX_LISTED])} and {more} more"


def check_names(names: Sequence[str], file: str) -> None:
    """Raise InputError if two columns have the same name."""
    for name, count in Counter(names).items():
        if count > 1:
            raise InputError(f"{file}: there are two columns {name!r}; give each a name of its own.")


@contextlib.contextmanager
def damage_reported(path: Path, kind: str, errors: Any = _DAMAGE) -> Iterator[None]:
    """Turn what readers raise for files that are damaged, or of another format, into an InputError."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except errors as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"{path} is not {kind}, or is damaged ({reason}); write or download it again.") from error


def typed_contents(name: str, columns: pa.Table, **parts: Any) -> Dataset:
    """Return columns that have types; text is text even if it could be read as numbers."""
    numbers = {}
    for column, values in zip(columns.column_names, columns.columns, strict=True):
        if _is_numeric(values.type):
            numbers[column] = values
        elif pa.types.is_boolean(values.type):
            numbers[column] = values.cast(pa.int8())
        elif pa.types.is_decimal(values.type) or pa.types.is_null(values.type):
            numbers[column] = values.cast(pa.float64())
    return Dataset(name, columns, numbers, **parts)


def as_numpy(values: pa.ChunkedArray, numbers: pa.ChunkedArray | None = None) -> Array:
    """Return a column for figures: booleans, numbers with NaN or strings with None for missing values.

    Numbers in text are strings if they would not be written the same: 007, True. Equal strings are one object.
    """
    if numbers is not None and not _are_words(values, numbers):
        return np.asarray(numbers, dtype=float) if numbers.null_count else numbers.to_numpy()
    if pa.types.is_boolean(values.type) and not values.null_count:
        return np.asarray(values)
    codes = _as_text(values)
    strings = np.array([*(text or None for text in codes.dictionary.to_pylist()), None], dtype=object)
    return np.asarray(strings[codes.indices.cast(pa.int64()).fill_null(len(strings) - 1)])


def _are_words(values: pa.ChunkedArray, numbers: pa.ChunkedArray) -> bool:
    if pa.types.is_boolean(values.type) or (_is_text(values) and _any_match(values, f"{_ZEROS}|{_BOOLEAN}")):
        return True
    if (pa.types.is_integer(numbers.type) and not numbers.null_count) or not _are_integers(values, numbers):
        return False
    return bool(np.nanmax(abs(np.asarray(numbers, dtype=float)), initial=0) >= _EXACT)


def _are_integers(values: pa.ChunkedArray, numbers: pa.ChunkedArray) -> bool:  # by type or, in text, by spelling
    return bool(pa.types.is_integer(numbers.type)) or (_is_text(values) and not _any_match(values, r"\d[.eE]|[.,]\d"))


def _any_match(values: pa.ChunkedArray, pattern: str) -> bool:
    texts = _as_text(values).dictionary if pa.types.is_dictionary(values.type) else values
    return bool(pc.any(pc.match_substring_regex(texts, pattern)).as_py())


def _as_text(values: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return values as dictionary-encoded text: a string that every row repeats is held once, as in a Parquet file."""
    if pa.types.is_temporal(values.type):
        values = spelled_times(values)
    codes = (values if pa.types.is_dictionary(values.type) else values.dictionary_encode()).combine_chunks()
    if pa.types.is_string(codes.dictionary.type):
        return codes
    texts = [None if value is None else str(value) for value in codes.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(codes.indices, pa.array(texts, pa.string()))


def spelled_times(values: Any) -> Any:
    """Return dates and times as text, without fractions of a second that are zero."""
    return pc.replace_substring_regex(values.cast(pa.string()), r"\.0+$", "")


def _is_text(values: pa.ChunkedArray) -> bool:  # or categories
    return any(check(values.type) for check in (pa.types.is_string, pa.types.is_large_string, pa.types.is_dictionary))


def is_list(kind: pa.DataType) -> bool:
    """Return whether a type is that of lists of numbers, such as embeddings."""
    checks = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(check(kind) for check in checks) and _is_numeric(kind.value_type)


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def is_number(text: str) -> bool:
    """Return whether a string can be read as a number, infinity and NaN included."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_missing(text: str | None) -> bool:
    return text is None or text.strip().lower() in MISSING


def _kind_of(contents: Dataset, name: str) -> str:
    """Return the kind of a column: "numbers", or a key of ``_REASONS``, or "mixed" if at least half are numbers."""
    values, numbers = contents.columns[name], contents.numbers.get(name)
    if is_list(values.type):
        return "list"
    if numbers is None:
        return _kind_of_text(values) if _is_text(values) else "date" if pa.types.is_temporal(values.type) else "text"
    floats = np.asarray(numbers, dtype=float)
    present = floats[~np.isnan(floats)]
    if not present.size:
        return "empty"
    if (present != np.floor(present)).any():
        return "numbers"
    if _names_rows(name, values, numbers, floats):
        return "identifier"
    # Dates such as 20240131.
    month, day = present // 100 % 100, present % 100
    are_days = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    return "date" if (are_days & (present >= 1900_01_01) & (present <= 2100_12_31)).all() else "numbers"


def _kind_of_text(values: pa.ChunkedArray) -> str:
    counts = pc.value_counts(_as_text(values)).to_pylist()
    present = Counter({row["values"]: row["counts"] for row in counts if not _is_missing(row["values"])})
    n_present, n_numbers = present.total(), sum(n for text, n in present.items() if is_number(text))
    if n_numbers < n_present <= 2 * n_numbers:
        return "mixed"
    n_grouped = sum(n for text, n in present.items() if re.match(GROUPED, text))
    return "empty" if not present else "grouped" if 0 < n_grouped == n_present - n_numbers else "text"


def _names_rows(name: str, values: pa.ChunkedArray, numbers: pa.ChunkedArray, floats: Array) -> bool:
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)
    if _plain(name) in _EXACT_NAMES or (words and re.fullmatch(_LAST_WORDS, words[-1], re.I)):
        return True
    # Postcodes and others; 64-bit identifiers: floats of this size are whole in any case.
    if _is_text(values) and _any_match(values, _ZEROS):
        return True
    if _are_integers(values, numbers) and np.nanmedian(np.abs(floats)) >= _EXACT:
        return True
    counts = len(floats) >= _MIN_COUNTED and (floats[0] in (0, 1) or floats[0] >= _FAR)
    return counts and bool((floats - floats[0] == np.arange(len(floats))).all())


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _guess_label(contents: Dataset, kinds: Mapping[str, str], embedded: set[str]) -> str | None:
    names = [name for name, kind in kinds.items() if name not in embedded and kind not in ("list", "empty")]
    plain = {_plain(name): name for name in reversed(names)}
    if "x" in plain:  # x and y are coordinates
        plain.pop("y", None)
    for known, name in ((known, plain[known]) for known in (*_SURE, *_LIKELY) if known in plain):
        if known in _SURE or (known == "y" and contents.X is not None):
            return name
        values = as_numpy(contents.columns[name], contents.numbers.get(name))
        can_be_label = kinds[name] in ("text", "numbers", "identifier")
        if can_be_label and isinstance(encode_labels(values, len(values)), Categories):
            return name
    texts = [name for name in names if kinds[name] == "text"]
    if contents.X is not None or len(texts) != 1:
        return None
    return texts[0] if 2 <= len(contents.columns[texts[0]].unique()) <= contents.n_rows / 2 else None


def choose_columns(contents: Dataset, choice: Choice = Choice()) -> Dataset:
    """Choose the columns to embed: those of the choice, or a column of lists, or all numbers but identifiers."""
    names, label = contents.columns.column_names, choice.label
    if label is not None and label not in names:
        raise InputError(f"{contents.name} has no column {label}; {_described(contents)}.")
    notes = list(contents.notes)
    kinds = {name: _kind_of(contents, name) for name in names}
    if label is None and choice.guess:
        label = _guess_label(contents, kinds, {*choice.column, *(choice.features or ())})
        if label is not None and names != ["label"]:
            notes.append(f"label column: {label} (guessed; --label names another, --no-label none)")
    kinds.pop(label, None)
    if label in (*choice.column, *(choice.features or ())):
        raise InputError(f"--label {label} is a column to embed; name another.")
    kept, X, features, inputs = list(kinds), contents.X, contents.features, None
    if X is None:
        X, inputs = _feature_matrix(contents, _chosen(contents, choice, kinds), choice.features or {})
        features = tuple(name if n == 1 else f"{name}[{i}]" for name, n in inputs.items() for i in range(n))
        notes += _notes(choice, inputs, kinds)
        kept = [name for name, kind in kinds.items() if name not in inputs and kind not in ("empty", "list")]
    elif choice.column or choice.drop or (features is not None and choice.features is not None):
        if features is None:
            option = f"--column {choice.column[0]}" if choice.column else f"--drop {choice.drop[0]}"
            raise InputError(
                f"{option} names a column, but {contents.name} is an array without names; remove the option."
            )
        chosen = _chosen(contents, choice, dict.fromkeys(features, "numbers"))
        notes += [] if choice.features else [f"embedded: {len(chosen)} of {len(features)} features"]
        index = {name: i for i, name in enumerate(features)}
        X, features = X[:, [index[name] for name in chosen]], tuple(chosen)
    X = as_floats(X)
    _check_finite(contents, X, features)
    columns = contents.columns.select(kept if label is None else [label, *kept])
    numbers = {name: values for name, values in contents.numbers.items() if name in columns.column_names}
    parts = {"X": X, "features": features, "columns": columns, "numbers": numbers, "inputs": inputs}
    return replace(contents, label=label, notes=tuple(notes), **parts)


def transposed(contents: Dataset, choice: Choice) -> Dataset:
    """Return the columns as rows, named by a column ``name``; the first column that is not embedded names features."""
    dataset = choose_columns(contents, replace(choice, label=None, guess=False, features=None))
    columns = {} if dataset.features is None else {"name": pa.array(dataset.features, pa.string())}
    names = tuple(map(str, as_numpy(dataset.columns[0]).tolist())) if dataset.columns.num_columns else ()
    X = turned(dataset.X)
    note = f"transposed: {X.shape[0]} points with {X.shape[1]} features"
    features = names if names and len(set(names)) == len(names) else None
    return Dataset(contents.name, pa.table(columns), X=X, features=features, notes=(note,))


def turned(X: Any) -> Any:
    """Return the transpose of a matrix."""
    return np.ascontiguousarray(X.T) if isinstance(X, np.ndarray) else X.T.tocsr()


def _chosen(contents: Dataset, choice: Choice, kinds: Mapping[str, str]) -> list[str]:
    """Return the columns of a model, or those that are named or match a pattern, or else all that can be embedded."""
    if choice.features is not None:
        if missing := [name for name in choice.features if name not in kinds]:
            raise InputError(f"{contents.name} lacks the features {listed(missing)}; add them, as the model has them.")
        return list(choice.features)
    possible = [name for name, kind in kinds.items() if kind in (*_EMBEDDED, "list") and not choice.drops(name)]
    found = [name for name in possible if kinds[name] == "list" and not choice.column]
    if len(found) > 1:
        raise InputError(f"{contents.name} has several columns of lists, {listed(found)}; give one by --column.")
    for pattern in choice.column:
        matches = [pattern] if pattern in kinds else [name for name in possible if fnmatchcase(name, pattern)]
        if not matches:
            raise InputError(f"{contents.name} has no column of numbers {pattern}; {_described(contents)}.")
        found += matches
    if not (found or possible):
        raise InputError(f"{contents.name} has no column of numbers to embed; {_described(contents)}.")
    return list(dict.fromkeys(found or possible))


def _described(contents: Dataset) -> str:
    names = contents.columns.column_names or contents.features
    return f"its columns are {listed(names)}" if names else "it is an array without names"


def _notes(choice: Choice, widths: Mapping[str, int], kinds: Mapping[str, str]) -> list[str]:
    """Say which columns are not embedded, and why."""
    notes = []
    if any(kinds[name] == "list" for name in widths):
        shapes = [name if width == 1 else f"{name} ({width} values per row)" for name, width in widths.items()]
        notes.append(f"embedded: {listed(shapes)}")
    reason = ", as requested" if choice.column or choice.drop else " beside lists"
    reason = reason if choice.features is None else ", since the model does not know them"
    reasons = dict.fromkeys(_EMBEDDED, f"not embedded{reason}") | _REASONS
    for reason in dict.fromkeys(reasons.values()):
        names = [name for name, kind in kinds.items() if name not in widths and reasons[kind] == reason]
        notes += [f"{reason}: {listed(names)}"] if names else []
    return notes


def as_floats(X: Any) -> Any:
    """Return numbers in single precision as they are, and others in double precision."""
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _feature_matrix(contents: Dataset, names: list[str], expected: Mapping[str, int]) -> tuple[Any, dict[str, int]]:
    """Return columns as a matrix, with NaN for missing values, and their numbers of features, which may be expected."""
    kinds = {name: _list_matrix if is_list(contents.columns[name].type) else _number_column for name in names}
    blocks = {name: block_of(contents, name) for name, block_of in kinds.items()}
    widths = {name: block.shape[1] for name, block in blocks.items()}
    for name, width in expected.items():
        if widths[name] != width:
            raise InputError(
                f"{contents.name}: column {name} has {widths[name]} values per row, but the model was fitted to "
                f"{width}; give the column that it was fitted to."
            )
    return next(iter(blocks.values())) if len(blocks) == 1 else np.hstack(list(blocks.values())), widths


def _number_column(contents: Dataset, name: str) -> Array:
    numbers = contents.numbers.get(name)
    if numbers is None:
        texts = enumerate(_as_text(contents.columns[name]).to_pylist(), start=contents.first_row)
        bad = [f"row {row} has {text!r}" for row, text in texts if not (_is_missing(text) or is_number(text))]
        raise InputError(
            f"{contents.name}: column {name} is not all numbers: {[*bad, 'its type is text'][0]}; correct it, name the "
            "column with --label if it holds labels, or leave it out with --drop."
        )
    return np.asarray(numbers, dtype=float)[:, None]


def _list_matrix(contents: Dataset, name: str) -> Array:
    """Return a column of lists of equal length as a matrix; rows without a list are NaN."""
    values, where = contents.columns[name], f"{contents.name}: column {name}"
    lengths = pc.list_value_length(values).to_numpy()
    present = np.flatnonzero(~np.isnan(lengths))
    width = int(lengths[present[0]]) if present.size else 0
    if not width:
        raise InputError(f"{where} has empty lists; give one with a list of numbers in every row.")
    if (other := present[lengths[present] != width]).size:
        sizes = (f"row {i + contents.first_row} has {int(lengths[i])} values" for i in (present[0], other[0]))
        raise InputError(f"{where} has lists of different lengths: {', '.join(sizes)}; give lists of one length.")
    single = values.type.value_type in (pa.float16(), pa.float32())
    X: Array = np.full((len(values), width), np.nan, np.float32 if single else np.float64)
    start = 0
    for chunk in values.chunks:  # together they may have more numbers than the offsets of lists can count
        numbers = chunk.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)  # without null lists
        X[present[start : start + len(numbers)]] = numbers
        start += len(numbers)
    return X


def _check_finite(contents: Dataset, X: Any, names: Sequence[str] | None) -> None:
    """Raise InputError if a matrix has infinite values, or a sparse one missing values."""
    entries = X.tocoo() if scipy.sparse.issparse(X) else None
    bad = np.argwhere(np.isinf(X) if entries is None else ~np.isfinite(entries.data))
    if not len(bad):
        return
    row, column = bad[0] if entries is None else (entries.row[bad[0, 0]], entries.col[bad[0, 0]])
    value = "missing (NaN)" if np.isnan(X[row, column]) else X[row, column]
    raise InputError(
        f"{contents.name}: column {column + 1 if names is None else names[column]} is {value} in row "
        f"{row + contents.first_row} ({len(bad)} such values); correct them, remove their rows, or leave the column "
        "out with --drop."
    )
