"""What becomes of every column: embedded, a label, or only kept beside the map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse

from laptsne.cli.tables.content import Column, Content, InputError, is_text
from laptsne.cli.tables.text import MISSING

# Names that hold labels whatever their values,
_SURE = ("label", "labels", "class", "classes", "target", "targets")
# and names that hold them where the values are text or whole numbers. The first that is there is taken.
_LIKELY = (
    *("celltype", "celltypes", "annotation", "annotations", "category", "categories", "species", "variety", "kind"),
    *("cluster", "clusters", "leiden", "louvain", "group", "groups", "type", "y", "digit"),
)
_IDENTIFIERS = frozenset({"id", "ids", "uid", "uuid", "index", "rowid", "row", "unnamed0", "indexlevel0"})
_MIN_COUNTED = 10  # rows from which 0, 1, 2, ... is a count of rows and no measurement
_LISTED = 12  # names in a message
_REASONS = {
    "not embedded, since they hold text": ("text",),
    "not embedded, since they count or name the rows": ("identifier",),
    "not embedded, since the model does not know them": ("numbers", "mixed"),
    "left out, since they are empty": ("empty",),
}


@dataclass(frozen=True)
class Table:
    """What is embedded, and what is kept beside it.

    Attributes
    ----------
    name : str
        The file, as messages name it.
    X : array or sparse matrix of shape (n_rows, n_features)
        What is embedded.
    features : tuple of str, optional
        Names of the columns of X.
    label : str, optional
        Name of the column of labels.
    columns : dict of arrays
        The columns that are not embedded, the labels first.
    notes : tuple of str
        What the user should know of how the file was read.
    """

    name: str
    X: Any
    features: tuple[str, ...] | None
    label: str | None
    columns: dict[str, Column]
    notes: tuple[str, ...]


def assigned(
    content: Content, *, label: str | None = None, guess: bool = True, features: Sequence[str] | None = None
) -> Table:
    """Decide what is embedded.

    Parameters
    ----------
    content : Content
        What was read.
    label : str, optional
        The column of labels.
    guess : bool, default=True
        Whether a column of labels is looked for where none is named.
    features : sequence of str, optional
        The columns to embed, in this order; by default all that hold numbers and are neither labels nor identifiers.

    Returns
    -------
    table : Table

    Examples
    --------
    >>> import numpy as np
    >>> from laptsne.cli.tables import Content, assigned
    >>> columns = {"width": np.array([1.5, 2.0]), "height": np.array([0.5, 3.0]), "species": np.array(["a", "b"])}
    >>> table = assigned(Content("flowers", columns))
    >>> table.features, table.label
    (('width', 'height'), 'species')
    """
    if label is not None and label not in content.columns:
        raise InputError(f"{content.name} has no column {label}; {_has(content)}.")
    notes = list(content.notes)
    if label is None and guess:
        label = _guessed(content, set(features or ()))
        if label is not None and content.columns.keys() != {"label"}:
            notes.append(f"label column: {label} (guessed; --label names another, --no-label none)")
    table = _split(content, label, features) if content.matrix is None else _matched(content, label, features)
    return replace(table, notes=(*notes, *table.notes))


def _split(content: Content, label: str | None, wanted: Sequence[str] | None) -> Table:
    """A table of which some columns are embedded."""
    kinds = {name: _kind_of(content, name) for name in content.columns if name != label}
    if wanted is None:
        names = [name for name, kind in kinds.items() if kind in ("numbers", "mixed")]
    else:
        names = list(wanted)
        _check_present(content, names, label)
    if not names:
        raise InputError(f"{content.name} has no column of numbers to embed; {_has(content)}.")
    X = np.column_stack([_checked(content, name) for name in names])
    rest = {name: kinds[name] for name in kinds.keys() - set(names)}
    kept = [name for name in kinds if name in rest and rest[name] != "empty"]
    notes = []
    for reason, which in _REASONS.items():
        if found := [name for name in kinds if name in rest and rest[name] in which]:
            notes.append(f"{reason}: {_listed(found)}")
    return Table(content.name, X, tuple(names), label, _columns(content, label, kept), tuple(notes))


def _matched(content: Content, label: str | None, wanted: Sequence[str] | None) -> Table:
    """A matrix that is embedded as it is, or by the names of its columns where both sides have names."""
    X, features = content.matrix, content.features
    if wanted is not None and features is not None:
        missing = [name for name in wanted if name not in set(features)]
        if missing:
            raise InputError(f"{content.name} lacks the features {_listed(missing)}; add them, as the model has them.")
        place = {name: i for i, name in enumerate(features)}
        X, features = X[:, [place[name] for name in wanted]], tuple(wanted)
    _check_finite(content, X)
    kept = [name for name in content.columns if name != label]
    return Table(content.name, X, features, label, _columns(content, label, kept), ())


def _guessed(content: Content, features: set[str]) -> str | None:
    """The column that looks like labels, if there is one."""
    plain = {_plain(name): name for name in reversed(content.columns) if name not in features}
    for known in (*_SURE, *_LIKELY):
        name = plain.get(known)
        if name is None or (known == "y" and "x" in plain):  # x and y are coordinates
            continue
        if known in _SURE or _kind(content.columns[name]) == "text" or _is_whole(content.columns[name]):
            return name
    texts = [name for name, values in content.columns.items() if _kind(values) == "text" and name not in features]
    if content.matrix is None and len(texts) == 1:
        n_values = np.unique(content.columns[texts[0]]).size
        return texts[0] if 2 <= n_values <= content.n_rows / 2 else None
    return None


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _kind_of(content: Content, name: str) -> str:
    kind = _kind(content.columns[name])
    return "identifier" if kind == "numbers" and _is_identifier(content, name) else kind


def _kind(values: Column) -> str:
    """Numbers, text, empty, or mixed: mostly numbers, with text among them."""
    if not is_text(values):
        return "empty" if values.dtype.kind == "f" and np.isnan(values).all() else "numbers"
    there = [value for value in values.tolist() if value.lower() not in MISSING]
    if not there:
        return "empty"
    return "mixed" if 2 * sum(map(_is_number, there)) >= len(there) else "text"


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _is_whole(values: Column) -> bool:
    if is_text(values):
        return False
    there = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    return bool((there == np.floor(there)).all())


def _is_identifier(content: Content, name: str) -> bool:
    values = content.columns[name]
    if not _is_whole(values):
        return False
    if _plain(name) in _IDENTIFIERS or name.lower().endswith("_id"):
        return True
    steps = np.arange(len(values))
    return len(values) >= _MIN_COUNTED and values[0] in (0, 1) and bool((values - values[0] == steps).all())


def _checked(content: Content, name: str) -> Column:
    """The numbers of a column that is to be embedded."""
    values = content.columns[name]
    if is_text(values):
        row, value = next(
            (i, v) for i, v in enumerate(values.tolist()) if v.lower() not in MISSING and not _is_number(v)
        )
        remedy = "mend it, name the column with --label if it holds labels, or remove it"
        raise InputError(
            f"{content.name}: column {name} is not all numbers: row {row + content.first_row} has {value!r}; {remedy}."
        )
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        row, found = bad[0] + content.first_row, "missing (NaN)" if np.isnan(values[bad[0]]) else str(values[bad[0]])
        raise InputError(
            f"{content.name}: column {name} is {found} in row {row} and {bad.size} of {len(values)} rows in all; "
            "fill it in, or remove the rows or the column."
        )
    return values.astype(np.float64)


def _check_finite(content: Content, X: Any) -> None:
    values = X.data if scipy.sparse.issparse(X) else X
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return
    bad = X.tocoo() if scipy.sparse.issparse(X) else None
    row, column = (
        np.argwhere(~np.isfinite(X))[0]
        if bad is None
        else next((r, c) for r, c, v in zip(bad.row, bad.col, bad.data, strict=True) if not np.isfinite(v))
    )
    value = "missing (NaN)" if np.isnan(X[row, column]) else str(X[row, column])
    raise InputError(
        f"{content.name}: the value in row {row + 1}, column {column + 1} is {value}; "
        "fill it in, or remove the rows or the columns that have such values."
    )


def _check_present(content: Content, names: list[str], label: str | None) -> None:
    missing = [name for name in names if name not in content.columns]
    if missing:
        raise InputError(f"{content.name} lacks the features {_listed(missing)}; add them, as the model has them.")
    if label in names:
        raise InputError(f"--label {label} is a feature of the model; name another column.")


def _columns(content: Content, label: str | None, kept: list[str]) -> dict[str, Column]:
    names = [*([] if label is None else [label]), *kept]
    return {name: _shown(content.columns[name]) for name in names}


def _shown(values: Column) -> Column:
    """Whole numbers as such."""
    whole = values.dtype.kind == "f" and np.isfinite(values).all() and _is_whole(values)
    return values.astype(np.int64) if whole and np.abs(values).max(initial=0) < 2**53 else values


def _has(content: Content) -> str:
    if not content.columns:
        return "it is an array without names"
    return f"its columns are {_listed(list(content.columns))}"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:_LISTED])} and {more} more"
