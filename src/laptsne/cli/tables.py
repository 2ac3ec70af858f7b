"""Tables: what a file contains, the kinds of its columns, held by pyarrow, and which of them are embedded."""

from __future__ import annotations

import contextlib
import csv
import difflib
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse

from laptsne._runtime.files import DAMAGE
from laptsne._runtime.typing import Array
from laptsne.cli.terminal import InputError

MISSING = ("", "na", "n/a", "nan", "null", "none", "#n/a", "?")  # spellings of a missing value, in lower case
_EXACT = 2**53  # whole numbers of this size or more are not exact as floats
_DAMAGE = (*DAMAGE, pa.ArrowException, csv.Error, IndexError, OverflowError)
_MAX_LISTED = 12  # names in a message
_EMBEDDED = ("numbers", "mixed", "list")  # kinds of columns that are embedded unless the user says otherwise
_MAX_DATE, _FIRST_YEAR = 40, 1000  # characters of a date, and the first year that is taken for one
_MIN_COUNTED = 10  # rows from which on equidistant whole numbers are row numbers or times rather than measurements
# Names of whole numbers that are identifiers: the last word, or what pandas calls an index.
_IDENTIFIER = re.compile(
    r"(^|[^a-zA-Z])(?i:id|ids|uid|uuid|guid|barcode|isbn|ean|sku|ssn|zip|zipcode|postcode)$|[a-z]I[dD]s?$"
    r"|[^a-zA-Z](?i:number|nr\.?|no\.)$|[a-z]Number$|(?i:nummer)$"
    r"|^(?i:no|nr|#|index|row|unnamed: 0|__index_level_0__)\.?$"
)
# Names of numbers that are dates, by their last word, unless it is a unit, as in "visits per year".
_DATE = re.compile(
    r"(?<!(?i:per)[\W_])(?<![a-zA-Z/])(?i:year|yr|month|weekday|date|datetime|timestamp|epoch)$"
    r"|(?<=[a-z])(Year|Month|Date|Timestamp)$|^(?i:day|hour)$"
)
# Dates as text, and times of the day behind them.
_DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%d-%b-%Y", "%d %b %Y", "%b %d, %Y", "%b %d %Y")
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_DAYLESS, _FRACTION = r"^(\d{4}-\d\d)$", r"(\d)[T ]+(\d+:\d\d(:\d\d)?)([.,]\d+)?"
_ZONE = r"(:\d\d|[APap][Mm])\s*(Z|(UTC|GMT)([+-]\d+(:\d+)?)?|[+-]\d\d:?\d\d)$"
# Names of label columns, without punctuation. The first that is found is taken.
_LABELS = (
    *("label", "labels", "class", "classes", "target", "targets", "celltype", "celltypes", "annotation", "annotations"),
    *("category", "categories", "species", "variety", "kind", "cluster", "clusters", "leiden", "louvain"),
    *("group", "groups", "type", "y", "digit"),
)
_TO_NUMBERS = "Write categories as numbers, such as one column of 0 and 1 for each."
_ROLES = ("date", "identifier")  # kinds of columns that may hold numbers
_REASONS = {
    "text": "not embedded, since they hold text",
    "date": "not embedded, since they hold dates or times",
    "identifier": "not embedded, since they count or identify the rows",
    "list": "left out, since they hold lists",
    "empty": "left out, since they are empty",
}


@dataclass(frozen=True)
class Dataset:
    """What a file contains: the columns of a table, or a matrix with columns beside it.

    Once columns are chosen, X is what is embedded, and the columns are those that are kept beside it, the label first.
    """

    name: str  # the file, as messages name it
    columns: pa.Table = field(default_factory=lambda: pa.table({}))
    X: Any = None  # array or sparse matrix of shape (n_rows, n_features), NaN where values are missing
    features: tuple[str, ...] | None = None  # names of the columns of X
    first_row: int = 1  # its number in messages: 2 if the header is row 1, as in a spreadsheet
    notes: tuple[str, ...] = ()  # what the user should know about how the file was read
    colours: tuple[str, ...] = ()  # names of the columns to colour by
    continuous: frozenset[str] = frozenset()  # columns that are measurements, such as genes, even if whole numbers
    categories: frozenset[str] = frozenset()  # columns that are categories, even if numbers
    label: str | None = None  # name of the label column
    inputs: tuple[str, ...] | None = None  # columns of the table that are embedded: numbers, or one of lists

    def values(self, name: str, purpose: str = "to colour by") -> Array:
        """Return a column beside the map, or a feature."""
        if name in self.columns.column_names:
            return as_numpy(self.columns[name], as_text=name in self.categories)
        known = [*self.columns.column_names, *(self.features or ())]
        if name not in known:
            similar = difflib.get_close_matches(name, known) or known
            raise InputError(f"{self.name} has no column {name} {purpose}; there is {listed(similar)}.")
        column = self.X[:, (self.features or ()).index(name)]
        return np.asarray(column.toarray().ravel() if scipy.sparse.issparse(column) else column)

    def coloured_by(self, wanted: Sequence[str]) -> Dataset:
        """Return the dataset with these features or columns beside the map; each may end in :number or :category."""
        columns, continuous, categories, names = self.columns, set(self.continuous), set[str](), []
        for name in wanted:
            plain, _, kind = name.rpartition(":")
            if kind not in ("number", "category") or name in (*columns.column_names, *(self.features or ())):
                plain, kind = name, ""
            values = self.values(plain)
            if kind == "number" and values.dtype.kind not in "iufM":
                raise InputError(f"--color {name}: column {plain} does not hold numbers; omit :number.")
            is_scale = kind == "number" and values.dtype.kind != "M"
            if plain not in columns.column_names:
                columns = columns.append_column(plain, pa.chunked_array([values]))
                # What is embedded is measured; columns of a matrix are all of a kind.
                is_scale |= self.inputs is None or np.unique(values).size > 2
            names.append(plain)
            if kind == "category" or is_scale:
                (categories if kind == "category" else continuous).add(plain)
        shown = replace(self, continuous=frozenset(continuous - categories), categories=frozenset(categories))
        return replace(shown, columns=columns, colours=tuple(names))


def listed(names: Sequence[str]) -> str:
    """Return names separated by commas, the first of them if they are many."""
    more = len(names) - _MAX_LISTED
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:_MAX_LISTED])} and {more} more"


def check_names(names: Sequence[str], file: object) -> None:
    """Raise InputError if two columns have the same name."""
    for name, count in Counter(names).items():
        if count > 1:
            raise InputError(f"{file}: there are two columns {name!r}; give each a name of its own.")


@contextlib.contextmanager
def damage_reported(file: object, kind: str, errors: Any = _DAMAGE) -> Iterator[None]:
    """Turn what readers raise for files that are damaged, or of another format, into an InputError."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except errors as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"{file} is not {kind}, or is damaged ({reason}); write or download it again.") from error


def as_numpy(values: pa.ChunkedArray, *, as_text: bool = False) -> Array:
    """Return a column for figures: booleans, or numbers, times or strings with NaN, NaT or None for missing values."""
    kind = values.type
    if _is_numeric(kind) and not pa.types.is_boolean(kind) and not as_text:
        floats = values.null_count or pa.types.is_decimal(kind)
        return np.asarray(values, dtype=float) if floats else values.to_numpy()
    if pa.types.is_boolean(kind) and not values.null_count:
        return np.asarray(values)
    if pa.types.is_floating(kind):  # whole numbers as such
        values = pc.if_else(pc.is_nan(values), None, values).cast(pa.string())
    codes = _as_text(values)
    texts, rows = codes.dictionary, codes.indices.cast(pa.int64()).fill_null(len(codes.dictionary))
    if not as_text and (times := _as_times(texts)) is not None:
        return np.asarray(np.append(times.to_numpy(zero_copy_only=False), np.datetime64("NaT"))[rows])
    # Equal strings are one object.
    strings = np.array([*(text or None for text in texts.to_pylist()), None], dtype=object)
    return np.asarray(strings[rows])


def _as_text(values: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return values as dictionary-encoded text: a string that every row repeats is held once, as in a Parquet file."""
    if pa.types.is_temporal(values.type):
        values = spelled_times(values)
    codes = (values if pa.types.is_dictionary(values.type) else values.dictionary_encode()).combine_chunks()
    if pa.types.is_string(codes.dictionary.type):
        return codes
    texts = [None if value is None else str(value) for value in codes.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(codes.indices, pa.array(texts, pa.string()))


def _as_times(texts: pa.StringArray) -> pa.TimestampArray | None:
    """Return strings as times, null for missing values; None unless all others are dates of one format."""
    present = next((text for text in texts.to_pylist() if not _is_missing(text)), "")
    if not any(character.isdigit() for character in present[:8]) or len(present) > _MAX_DATE:
        return None
    spelled = pc.utf8_trim_whitespace(pc.if_else(pc.is_in(pc.utf8_lower(texts), pa.array(MISSING)), None, texts))
    for pattern, replacement in ((_DAYLESS, r"\1-01"), (_FRACTION, r"\1 \2"), (_ZONE, r"\1")):
        spelled = pc.replace_substring_regex(spelled, pattern, replacement)
    first = spelled.drop_null()[:1]
    for form in (day + clock for day in _DAYS for clock in _CLOCKS):
        if not pc.strptime(first, form, "ms", error_is_null=True).null_count:
            times = pc.strptime(spelled, form, "ms", error_is_null=True)
            if times.null_count == spelled.null_count and pc.min(pc.year(times)).as_py() >= _FIRST_YEAR:
                return times
    return None


def spelled_times(values: Any) -> Any:
    """Return dates and times as text, without fractions of a second that are zero."""
    return pc.replace_substring_regex(values.cast(pa.string()), r"\.0+$", "")


def is_list(kind: pa.DataType) -> bool:
    """Return whether a type is that of lists of numbers, such as embeddings."""
    checks = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(check(kind) for check in checks) and _is_numeric(kind.value_type)


def _is_numeric(kind: pa.DataType) -> bool:
    checks = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean, pa.types.is_null)
    return any(check(kind) for check in checks)


def is_number(text: str) -> bool:
    """Return whether a string can be read as a number, infinity and NaN included."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_missing(text: str | None) -> bool:
    return text is None or text.strip().lower() in MISSING


def _kind_of(name: str, values: pa.ChunkedArray) -> str:  # noqa: PLR0911  one return per kind
    """Return the kind of a column: "numbers", or a key of ``_REASONS``, or "mixed" if at least half are numbers."""
    if is_list(values.type):
        return "list"
    if pa.types.is_temporal(values.type):
        return "date"
    if not _is_numeric(values.type):
        counts = {row["values"]: row["counts"] for row in pc.value_counts(_as_text(values)).to_pylist()}
        counts = {text: n for text, n in counts.items() if not _is_missing(text)}
        if counts and _as_times(pa.array([*counts])) is not None:
            return "date"
        n_present, n_numbers = sum(counts.values()), sum(n for text, n in counts.items() if is_number(text))
        return "empty" if not counts else "mixed" if n_numbers < n_present <= 2 * n_numbers else "text"
    floats = np.asarray(values, dtype=float)
    present = floats[~np.isnan(floats)]
    if not present.size:
        return "empty"
    is_whole, is_binary = bool((present == np.floor(present)).all()), np.isin(present, (0, 1)).all()
    if _DATE.search(name) and not is_binary and (is_whole or present.min() >= _FIRST_YEAR):
        return "date"
    if not is_whole:
        return "numbers"
    # 64-bit identifiers, as floats of that size are whole in any case; and equidistant numbers, as of rows or seconds.
    large = pa.types.is_integer(values.type) and np.median(np.abs(present)) >= _EXACT
    are_many = len(floats) >= _MIN_COUNTED and np.isfinite(floats).all()
    equidistant = are_many and floats[0] != floats[1] and np.ptp(np.diff(floats)) == 0
    named = _IDENTIFIER.search(name) and not is_binary
    return "identifier" if large or equidistant or named else "numbers"


def _guess_label(kinds: Mapping[str, str], embedded: set[str]) -> str | None:
    possible = [name for name, kind in kinds.items() if kind not in ("list", "empty") and name not in embedded]
    plain = {re.sub(r"[\W_]", "", name.lower()): name for name in reversed(possible)}
    if "x" in plain:  # x and y are coordinates
        plain.pop("y", None)
    return next((plain[known] for known in _LABELS if known in plain), None)


def choose_columns(
    contents: Dataset,
    *,
    label: str | None = None,
    guess: bool = True,
    column: Sequence[str] = (),
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
) -> Dataset:
    """Choose the columns to embed: those of a model, or a column of lists, or all numbers but identifiers.

    ``column`` and ``drop`` are names or patterns, ``features`` the columns that a model was fitted to.
    """
    notes, named, inputs = list(contents.notes), {*column, *(features or ())}, None
    kinds = {name: _kind_of(name, contents.columns[name]) for name in contents.columns.column_names}
    if label is None and guess:
        label = _guess_label(kinds, named)
        if label is not None and len(kinds) > 1:
            notes.append(f"label column: {label} (guessed; --label names another, --no-label none)")
    elif label is not None and label not in kinds:
        raise InputError(f"{contents.name} has no column {label}; {_described(contents)}.")
    if label in named:
        raise InputError(f"--label {label} is a column to embed; name another.")
    kinds.pop(label, None)
    X, embedded, kept = contents.X, contents.features, list(kinds)
    if X is None:
        inputs = _chosen(contents, kinds, column, drop, features)
        X, embedded = _matrix(contents, inputs)
        if embedded is None:
            notes.append(f"embedded: {inputs[0]} ({X.shape[1]} values per row)")
        elif features is None:
            notes.append(f"embedded: {listed(inputs)}")
        notes += _left_out(contents, {name: kind for name, kind in kinds.items() if name not in inputs}, features)
        kept = [name for name, kind in kinds.items() if name not in inputs and kind not in ("empty", "list")]
    elif column or drop or (embedded is not None and features is not None):
        index = {name: i for i, name in enumerate(embedded or ())}
        embedded = _chosen(contents, dict.fromkeys(index, "numbers"), column, drop, features)
        X = X[:, [index[name] for name in embedded]]
        notes.append(f"embedded: {len(embedded)} of {len(index)} features")
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    _check_finite(contents, X, embedded)
    columns = contents.columns.select(kept if label is None else [label, *kept])
    parts = {"X": X, "features": embedded, "columns": columns, "inputs": inputs}
    return replace(contents, label=label, notes=tuple(notes), **parts)


def _left_out(contents: Dataset, kinds: Mapping[str, str], features: Sequence[str] | None = None) -> list[str]:
    """Return lines that say which columns are not embedded, and why, and how to embed them unless a model says what."""
    left: dict[str, list[str]] = {}
    for name, kind in kinds.items():
        left.setdefault(_REASONS.get(kind, "not embedded"), []).append(name)
    numbers = [name for name, kind in kinds.items() if kind in _ROLES and _is_numeric(contents.columns[name].type)]
    options = " ".join(f"--column {shlex.quote(name)}" for name in ["*", *numbers[:_MAX_LISTED]])
    hint = [f"to embed these numbers as well: {options}"] if numbers and features is None else []
    return [f"{why}: {listed(those)}" for why, those in left.items()] + hint


def transposed(contents: Dataset, column: Sequence[str], drop: Sequence[str]) -> Dataset:
    """Return the columns as rows, named by a column ``name``; the first column that is not embedded names features."""
    dataset = choose_columns(contents, guess=False, column=column, drop=drop)
    columns = {} if dataset.features is None else {"name": pa.array(dataset.features, pa.string())}
    names = tuple(map(str, as_numpy(dataset.columns[0]).tolist())) if dataset.columns.num_columns else ()
    X = turned(dataset.X)
    note = f"transposed: {X.shape[0]} points with {X.shape[1]} features"
    features = names if names and len(set(names)) == len(names) else None
    return Dataset(contents.name, pa.table(columns), X=X, features=features, notes=(note,))


def turned(X: Any) -> Any:
    """Return the transpose of a matrix."""
    return np.ascontiguousarray(X.T) if isinstance(X, np.ndarray) else X.T.tocsr()


def _chosen(
    contents: Dataset, kinds: dict[str, str], column: Sequence[str], drop: Sequence[str], features: Sequence[str] | None
) -> tuple[str, ...]:
    """Return the columns of a model, or those that are named or match a pattern, or else all that can be embedded."""
    if features is not None:
        if missing := [name for name in features if name not in kinds]:
            raise InputError(f"{contents.name} lacks the features {listed(missing)}; add them, as the model has them.")
        return tuple(features)
    dropped = {name for pattern in drop for name in _matching(kinds, pattern)}
    possible = [name for name, kind in kinds.items() if kind in _EMBEDDED and name not in dropped]
    found = [] if column else [name for name in possible if kinds[name] == "list"] or possible
    for pattern in column:
        matches = [pattern] if pattern in kinds else _matching(possible, pattern)
        if not matches:
            raise InputError(f"{contents.name} has no column of numbers {pattern}; {_described(contents)}.")
        found += matches
    if not found:
        why = "; ".join(_left_out(contents, kinds, ())) or _described(contents)
        raise InputError(f"{contents.name} has no column of numbers to embed: {why}. {_TO_NUMBERS}")
    return tuple(dict.fromkeys(found))


def _matching(names: Iterable[str], pattern: str) -> list[str]:
    return [name for name in names if name == pattern or fnmatchcase(name, pattern)]


def _described(contents: Dataset) -> str:
    names = contents.columns.column_names or contents.features
    return f"its columns are {listed(names)}" if names else "it is an array without names"


def _matrix(contents: Dataset, names: tuple[str, ...]) -> tuple[Array, tuple[str, ...] | None]:
    """Return columns as a matrix, with NaN for missing values, and the names of its features, None for lists."""
    if not any(is_list(contents.columns[name].type) for name in names):
        return np.column_stack([_numbers(contents, name) for name in names]), names
    if len(names) > 1:
        raise InputError(f"{contents.name}: of {listed(names)}, one column of lists can be embedded; use --column.")
    return _list_matrix(contents, names[0]), None


def _numbers(contents: Dataset, name: str) -> Array:
    values = contents.columns[name]
    if not _is_numeric(values.type):
        texts = enumerate(_as_text(values).to_pylist(), start=contents.first_row)
        bad = [f"row {row} has {text!r}" for row, text in texts if not (_is_missing(text) or is_number(text))]
        raise InputError(
            f"{contents.name}: column {name} is not all numbers: {[*bad, 'its type is text'][0]}; correct it, name the "
            "column with --label if it holds labels, or leave it out with --drop."
        )
    return np.asarray(values, dtype=float)


def _list_matrix(contents: Dataset, name: str) -> Array:
    """Return a column of lists of equal length as a matrix; rows without a list are NaN."""
    values, where = contents.columns[name], f"{contents.name}: column {name}"
    lengths = pc.list_value_length(values)
    shortest, width = pc.min_max(lengths).as_py().values()
    if not width:
        raise InputError(f"{where} has empty lists; give one with a list of numbers in every row.")
    if shortest < width:
        raise InputError(f"{where} has lists of {shortest} to {width} values; give lists of one length.")
    numbers = pc.list_flatten(values).to_numpy()  # null lists have none
    X: Array = np.full((len(values), width), np.nan, np.float32 if numbers.dtype.itemsize <= 4 else np.float64)
    X[lengths.is_valid().to_numpy()] = numbers.reshape(-1, width)
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
