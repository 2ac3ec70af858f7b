"""The choice of columns: embedded, the label, or only kept beside the map."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pyarrow as pa

from laptsne.cli.errors import InputError
from laptsne.cli.tables.columns import EMBEDDED, is_whole, kind_of, plain_name
from laptsne.cli.tables.contents import FileContents, as_floats, as_numpy
from laptsne.cli.tables.dataset import Dataset, listed
from laptsne.cli.tables.features import check_finite, feature_matrix, feature_names

# Names of label columns, whatever their values,
_SURE = ("label", "labels", "class", "classes", "target", "targets")
# and names of label columns if the values are text or whole numbers. The first name that is found is taken.
_LIKELY = (
    *("celltype", "celltypes", "annotation", "annotations", "category", "categories", "species", "variety", "kind"),
    *("cluster", "clusters", "leiden", "louvain", "group", "groups", "type", "y", "digit"),
)
_REASONS = {
    "not embedded, since they hold text": ("text",),
    "not embedded, since they hold dates or times": ("date",),
    "not embedded, since they count or identify the rows": ("identifier",),
    "not embedded, since their commas may be decimal or group thousands (write them without)": ("grouped",),
    "left out, since they hold lists": ("list",),
    "left out, since they are empty": ("empty",),
}


@dataclass(frozen=True)
class Choice:
    """What the user, or a model, says about the columns."""

    label: str | None = None  # label column; None guesses one
    guess: bool = True  # whether a label column is guessed
    column: Sequence[str] = ()  # names or patterns of the columns to embed; empty for the default
    drop: Sequence[str] = ()  # names or patterns of columns not to embed
    features: Mapping[str, int] | None = None  # columns that a model was fitted to, and the features of each

    def keeps(self, name: str) -> bool:
        """Return whether a column is not among those to drop."""
        return not any(name == pattern or fnmatchcase(name, pattern) for pattern in self.drop)


def choose_columns(contents: FileContents, choice: Choice | None = None) -> Dataset:
    """Choose the columns to embed: those of the choice, or a column of lists, or all numbers but identifiers.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from laptsne.cli.tables.contents import typed_contents
    >>> columns = pa.table({"width": [1.5, 2.0], "height": [0.5, 3.0], "species": ["a", "b"]})
    >>> dataset = choose_columns(typed_contents("flowers", columns))
    >>> dataset.features, dataset.label
    (('width', 'height'), 'species')
    """
    choice = choice or Choice()
    names, label = contents.columns.column_names, choice.label
    if label is not None and label not in names:
        raise InputError(f"{contents.name} has no column {label}; {_describe(contents)}.")
    notes = list(contents.notes)
    kinds = {name: kind_of(contents, name) for name in names}
    if label is None and choice.guess:
        label = _guess_label(contents, kinds, {*choice.column, *(choice.features or ())})
        if label is not None and names != ["label"]:
            notes.append(f"label column: {label} (guessed; --label names another, --no-label none)")
    choice = replace(choice, label=label)
    if contents.matrix is None:
        dataset = _from_columns(contents, choice, {name: kind for name, kind in kinds.items() if name != label})
    else:
        dataset = _from_matrix(contents, choice)
    return replace(dataset, notes=(*notes, *dataset.notes))


def transposed(contents: FileContents, choice: Choice) -> FileContents:
    """Return the columns as rows, named by a column ``name``; the first column that is not embedded names features."""
    dataset = choose_columns(contents, replace(choice, label=None, guess=False, features=None))
    columns = {} if dataset.features is None else {"name": pa.array(dataset.features, pa.string())}
    names = dataset.columns.column_names
    features = None
    if names:
        features = tuple(map(str, as_numpy(dataset.columns[names[0]]).tolist()))
        features = None if len(set(features)) < len(features) else features
    matrix = np.ascontiguousarray(dataset.X.T) if isinstance(dataset.X, np.ndarray) else dataset.X.T.tocsr()
    note = f"transposed: {matrix.shape[0]} points with {matrix.shape[1]} features"
    return FileContents(contents.name, pa.table(columns), matrix=matrix, features=features, notes=(note,))


def _from_columns(contents: FileContents, choice: Choice, kinds: Mapping[str, str]) -> Dataset:
    """Return a dataset of which some columns are embedded."""
    label = choice.label
    inputs = _inputs(contents, choice, kinds)
    if label in inputs:
        raise InputError(f"--label {label} is a column to embed; name another.")
    if not inputs:
        raise InputError(f"{contents.name} has no column of numbers to embed; {_describe(contents)}.")
    X, widths = feature_matrix(contents, inputs, choice.features or {})
    rest = {name: kind for name, kind in kinds.items() if name not in widths}
    kept = [name for name, kind in rest.items() if kind not in ("empty", "list")]
    columns = contents.columns.select(kept if label is None else [label, *kept])
    numbers = {name: contents.numbers[name] for name in columns.column_names if name in contents.numbers}
    return Dataset(
        contents.name,
        X,
        feature_names(widths),
        label,
        columns,
        numbers,
        widths,
        contents.first_row,
        tuple(_notes(choice, widths, rest, kinds)),
    )


def _inputs(contents: FileContents, choice: Choice, kinds: Mapping[str, str]) -> list[str]:
    """Return the names of the columns to embed."""
    if choice.features is not None:
        _check_present(contents, choice.features, contents.columns.column_names)
        return list(choice.features)
    if choice.column:
        possible = [name for name, kind in kinds.items() if kind in (*EMBEDDED, "list") and choice.keeps(name)]
        return _matched(contents, choice.column, contents.columns.column_names, possible)
    lists = [name for name, kind in kinds.items() if kind == "list" and choice.keeps(name)]
    if len(lists) > 1:
        raise InputError(f"{contents.name} has several columns of lists, {listed(lists)}; give one by --column.")
    return lists or [name for name, kind in kinds.items() if kind in EMBEDDED and choice.keeps(name)]


def _matched(
    contents: FileContents, patterns: Sequence[str], names: Iterable[str], possible: Sequence[str]
) -> list[str]:
    """Return the columns that are named, and those of ``possible`` that match a pattern, each once."""
    known, found = set(names), dict[str, None]()
    for pattern in patterns:
        matches = [pattern] if pattern in known else [name for name in possible if fnmatchcase(name, pattern)]
        if not matches:
            raise InputError(f"{contents.name} has no column of numbers {pattern}; {_describe(contents)}.")
        found |= dict.fromkeys(matches)
    return list(found)


def _notes(choice: Choice, widths: Mapping[str, int], rest: Mapping[str, str], kinds: Mapping[str, str]) -> list[str]:
    """Say which columns are not embedded, and why."""
    notes = []
    if any(kinds.get(name) == "list" for name in widths):
        shapes = [name if width == 1 else f"{name} ({width} values per row)" for name, width in widths.items()]
        notes.append(f"embedded: {listed(shapes)}")
    if choice.features is not None:
        reason = "not embedded, since the model does not know them"
    else:
        reason = "not embedded, as requested" if choice.column or choice.drop else "not embedded beside lists"
    reasons = {reason: EMBEDDED} | _REASONS
    found = {reason: [name for name, kind in rest.items() if kind in which] for reason, which in reasons.items()}
    return notes + [f"{reason}: {listed(names)}" for reason, names in found.items() if names]


def _from_matrix(contents: FileContents, choice: Choice) -> Dataset:
    """Return a dataset whose matrix is embedded, with columns matched by name if both sides have names."""
    X, names, notes = contents.matrix, contents.features, []
    if (choice.column or choice.drop) and names is None:
        option = f"--column {choice.column[0]}" if choice.column else f"--drop {choice.drop[0]}"
        raise InputError(f"{option} names a column, but {contents.name} is an array without names; remove the option.")
    if names is not None and (choice.features is not None or choice.column or choice.drop):
        if choice.features is not None:
            _check_present(contents, choice.features, names)
            chosen = list(choice.features)
        else:
            possible = [name for name in names if choice.keeps(name)]
            chosen = _matched(contents, choice.column, names, possible) if choice.column else possible
        index = {name: i for i, name in enumerate(names)}
        X, names = X[:, [index[name] for name in chosen]], tuple(chosen)
        if not names:
            raise InputError(f"{contents.name} has no feature left to embed; give fewer names by --drop.")
        if choice.features is None:
            notes.append(f"embedded: {len(names)} of {len(index)} features")
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    check_finite(contents, X)
    kept = [name for name in contents.columns.column_names if name != choice.label]
    columns = contents.columns.select(kept if choice.label is None else [choice.label, *kept])
    parts: dict[str, Any] = {"notes": tuple(notes), "continuous": contents.continuous}
    return Dataset(contents.name, X, names, choice.label, columns, contents.numbers, **parts)


def _guess_label(contents: FileContents, kinds: Mapping[str, str], embedded: set[str]) -> str | None:
    names = [name for name, kind in kinds.items() if name not in embedded and kind not in ("list", "empty")]
    plain = {plain_name(name): name for name in reversed(names)}
    for known in (*_SURE, *_LIKELY):
        name = plain.get(known)
        if name is None or (known == "y" and "x" in plain):  # x and y are coordinates
            continue
        numbers = contents.numbers.get(name)
        is_sure = known in _SURE or (known == "y" and contents.matrix is not None)
        if is_sure or kinds[name] == "text" or (numbers is not None and is_whole(as_floats(numbers))):
            return name
    texts = [name for name in names if kinds[name] == "text"]
    if contents.matrix is None and len(texts) == 1:
        n_values = len(contents.columns[texts[0]].unique())
        return texts[0] if 2 <= n_values <= contents.n_rows / 2 else None
    return None


def _check_present(contents: FileContents, features: Iterable[str], names: Sequence[str]) -> None:
    known = set(names)
    missing = [name for name in features if name not in known]
    if missing:
        raise InputError(f"{contents.name} lacks the features {listed(missing)}; add them, as the model has them.")


def _describe(contents: FileContents) -> str:
    names: Sequence[Any] = contents.columns.column_names or contents.features or ()
    return f"its columns are {listed(names)}" if names else "it is an array without names"
