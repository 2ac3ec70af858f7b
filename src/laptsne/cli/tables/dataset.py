"""The choice of columns: embedded, the label, or only kept beside the embedding."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse
from numpy.typing import NDArray

from laptsne.cli.errors import InputError
from laptsne.cli.tables.contents import MISSING, FileContents, as_numpy, is_number, is_text

# Names of label columns, whatever their values,
_SURE = ("label", "labels", "class", "classes", "target", "targets")
# and names of label columns if the values are text or whole numbers. The first name that is found is taken.
_LIKELY = (
    *("celltype", "celltypes", "annotation", "annotations", "category", "categories", "species", "variety", "kind"),
    *("cluster", "clusters", "leiden", "louvain", "group", "groups", "type", "y", "digit"),
)
_IDENTIFIERS = frozenset({"id", "ids", "uid", "uuid", "index", "rowid", "row", "unnamed0", "indexlevel0"})
_MIN_COUNTED = 10  # rows from which on 0, 1, 2, ... is a row number rather than a measurement
_MAX_LISTED = 12  # names in a message
_REASONS = {
    "not embedded, since they hold text": ("text",),
    "not embedded, since they count or identify the rows": ("identifier",),
    "not embedded, since the model does not know them": ("numbers", "mixed"),
    "left out, since they are empty": ("empty",),
}


@dataclass(frozen=True)
class Dataset:
    """The matrix that is embedded, and the columns that are kept beside it."""

    name: str  # the file, as messages name it
    X: Any  # array or sparse matrix of shape (n_rows, n_features)
    features: tuple[str, ...] | None  # names of the columns of X
    label: str | None  # name of the label column
    columns: pa.Table  # the columns that are not embedded, the label first
    notes: tuple[str, ...]  # what the user should know about how the file was read


def choose_columns(
    contents: FileContents, *, label: str | None = None, guess: bool = True, features: Sequence[str] | None = None
) -> Dataset:
    """Choose the columns to embed: ``features`` in their order, or all numbers but the label and identifiers.

    Without a ``label``, the label column is guessed by its name and values if ``guess`` is True.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from laptsne.cli.tables.contents import FileContents, as_column
    >>> species = as_column(pa.chunked_array([["a", "b"]]))
    >>> columns = pa.table({"width": [1.5, 2.0], "height": [0.5, 3.0], "species": species})
    >>> dataset = choose_columns(FileContents("flowers", columns))
    >>> dataset.features, dataset.label
    (('width', 'height'), 'species')
    """
    names = contents.columns.column_names
    if label is not None and label not in names:
        raise InputError(f"{contents.name} has no column {label}; {_describe(contents)}.")
    notes = list(contents.notes)
    if label is None and guess:
        label = _guess_label(contents, set(features or ()))
        if label is not None and names != ["label"]:
            notes.append(f"label column: {label} (guessed; --label names another, --no-label none)")
    chosen = _from_columns if contents.matrix is None else _from_matrix
    dataset = chosen(contents, label, features)
    return replace(dataset, notes=(*notes, *dataset.notes))


def _from_columns(contents: FileContents, label: str | None, features: Sequence[str] | None) -> Dataset:
    """Return a dataset of which some columns are embedded."""
    kinds = {name: _kind(contents.columns[name], name) for name in contents.columns.column_names if name != label}
    if features is None:
        features = [name for name, kind in kinds.items() if kind in ("numbers", "mixed")]
    else:
        _check_present(contents, features, contents.columns.column_names)
        if label in features:
            raise InputError(f"--label {label} is a feature of the model; name another column.")
    if not features:
        raise InputError(f"{contents.name} has no column of numbers to embed; {_describe(contents)}.")
    X = np.empty((contents.n_rows, len(features)))
    for i, name in enumerate(features):
        X[:, i] = _finite_numbers(contents, name)
    rest = {name: kind for name, kind in kinds.items() if name not in set(features)}
    found = {reason: [name for name, kind in rest.items() if kind in which] for reason, which in _REASONS.items()}
    notes = tuple(f"{reason}: {_listed(names)}" for reason, names in found.items() if names)
    kept = [name for name, kind in rest.items() if kind != "empty"]
    return Dataset(contents.name, X, tuple(features), label, _beside(contents, label, kept), notes)


def _from_matrix(contents: FileContents, label: str | None, features: Sequence[str] | None) -> Dataset:
    """Return a dataset whose matrix is embedded, with columns matched by name if both sides have names."""
    X, names = contents.matrix, contents.features
    if features is not None and names is not None:
        _check_present(contents, features, names)
        index = {name: i for i, name in enumerate(names)}
        X, names = X[:, [index[name] for name in features]], tuple(features)
    _check_finite(contents, X)
    kept = [name for name in contents.columns.column_names if name != label]
    return Dataset(contents.name, X, names, label, _beside(contents, label, kept), ())


def _guess_label(contents: FileContents, features: set[str]) -> str | None:
    names: list[str] = [name for name in contents.columns.column_names if name not in features]
    columns = {name: contents.columns[name] for name in names}
    plain = {_plain(name): name for name in reversed(columns)}
    for known in (*_SURE, *_LIKELY):
        name = plain.get(known)
        if name is None or (known == "y" and "x" in plain):  # x and y are coordinates
            continue
        if known in _SURE or _kind(columns[name], name) == "text" or _is_whole(columns[name]):
            return name
    texts = [name for name, column in columns.items() if _kind(column, name) == "text"]
    if contents.matrix is None and len(texts) == 1:
        n_values = len(set(as_numpy(columns[texts[0]]).tolist()))
        return texts[0] if 2 <= n_values <= contents.n_rows / 2 else None
    return None


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _kind(column: pa.ChunkedArray, name: str) -> str:
    """Return "numbers", "identifier", "text", "empty", or "mixed": half of the values or more, not all, are numbers."""
    if not is_text(column):
        if np.isnan(_floats(column)).all():
            return "empty"
        return "identifier" if _is_identifier(column, name) else "numbers"
    are_numbers = [is_number(text) for text in as_numpy(column).tolist() if not _is_missing(text)]
    if not are_numbers:
        return "empty"
    return "mixed" if len(are_numbers) <= 2 * sum(are_numbers) < 2 * len(are_numbers) else "text"


def _is_missing(text: str | None) -> bool:
    return text is None or text.lower() in MISSING


def _floats(column: pa.ChunkedArray) -> NDArray[np.float64]:
    return as_numpy(column).astype(np.float64)


def _is_whole(column: pa.ChunkedArray) -> bool:
    if is_text(column):
        return False
    values = _floats(column)
    values = values[~np.isnan(values)]
    return bool((values == np.floor(values)).all())


def _is_identifier(column: pa.ChunkedArray, name: str) -> bool:
    if not _is_whole(column):
        return False
    if _plain(name) in _IDENTIFIERS or name.lower().endswith("_id"):
        return True
    values = _floats(column)
    counted = np.arange(len(values))
    return len(values) >= _MIN_COUNTED and values[0] in (0, 1) and bool((values - values[0] == counted).all())


def _finite_numbers(contents: FileContents, name: str) -> NDArray[np.float64]:
    """Return a column that is to be embedded; raise InputError if it is not all finite numbers."""
    column, where = contents.columns[name], f"{contents.name}: column {name}"
    if is_text(column):
        texts = enumerate(as_numpy(column).tolist(), start=contents.first_row)
        bad = next((f"row {row} has {text!r}" for row, text in texts if not (_is_missing(text) or is_number(text))), "")
        remedy = "correct it, name the column with --label if it holds labels, or remove it"
        raise InputError(f"{where} is not all numbers: {bad or 'its type is text'}; {remedy}.")
    values = _floats(column)
    bad_rows = np.flatnonzero(~np.isfinite(values))
    if bad_rows.size:
        row, value = bad_rows[0] + contents.first_row, _shown(values[bad_rows[0]])
        raise InputError(
            f"{where} is {value} in row {row} and {bad_rows.size} of {len(values)} rows in all; "
            "fill it in, or remove the rows or the column."
        )
    return values


def _check_finite(contents: FileContents, X: Any) -> None:
    entries = scipy.sparse.coo_matrix(X) if scipy.sparse.issparse(X) else None
    values = X if entries is None else entries.data
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return
    bad = np.argwhere(~np.isfinite(values))[0]
    row, column = bad if entries is None else (entries.row[bad[0]], entries.col[bad[0]])
    raise InputError(
        f"{contents.name}: the value in row {row + 1}, column {column + 1} is {_shown(values[tuple(bad)])}; "
        "fill it in, or remove the rows or the columns with such values."
    )


def _shown(value: float) -> str:
    return "missing (NaN)" if np.isnan(value) else str(value)


def _check_present(contents: FileContents, features: Sequence[str], names: Sequence[str]) -> None:
    known = set(names)
    missing = [name for name in features if name not in known]
    if missing:
        raise InputError(f"{contents.name} lacks the features {_listed(missing)}; add them, as the model has them.")


def _beside(contents: FileContents, label: str | None, kept: list[str]) -> pa.Table:
    names = kept if label is None else [label, *kept]
    return pa.table({name: _tidy(contents.columns[name]) for name in names})


def _tidy(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return whole numbers as integers, and missing numbers as NaN."""
    if is_text(column) or (pa.types.is_integer(column.type) and not column.null_count):
        return column
    values = as_numpy(column)
    whole = np.isfinite(values).all() and _is_whole(column) and np.abs(values).max(initial=0) < 2**53
    return pa.chunked_array([values.astype(np.int64) if whole else values])


def _describe(contents: FileContents) -> str:
    names = contents.columns.column_names
    return f"its columns are {_listed(names)}" if names else "it is an array without names"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MAX_LISTED
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:_MAX_LISTED])} and {more} more"
