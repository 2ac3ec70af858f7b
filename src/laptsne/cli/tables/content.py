"""What a file holds, before it is decided what of it is embedded."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne.colours.label_encoding import is_missing

Column = NDArray[Any]


class InputError(ValueError):
    """What the user can mend: one line that says what is wrong and what to do."""


@dataclass(frozen=True)
class Content:
    """The columns of a table, or a matrix with columns beside it.

    Attributes
    ----------
    name : str
        The file, as messages name it.
    columns : dict of arrays
        Columns by name: float64 where all values are numbers or missing (NaN), else strings.
    matrix : array or sparse matrix, optional
        What is embedded, in formats that keep it apart; then no column is embedded.
    features : tuple of str, optional
        Names of the columns of the matrix.
    first_row : int
        Number of the first row in messages: 2 where the header is row 1, as in a spreadsheet.
    notes : tuple of str
        What the user should know of how the file was read.
    """

    name: str
    columns: dict[str, Column] = field(default_factory=dict)
    matrix: Any = None
    features: tuple[str, ...] | None = None
    first_row: int = 1
    notes: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        """Number of points."""
        if self.matrix is not None:
            return int(self.matrix.shape[0])
        return len(next(iter(self.columns.values()), ()))


def as_column(values: Any) -> Column:
    """A column as float64 where it holds numbers or truth values, else as strings, with "" for what is missing."""
    array = np.asarray(values)
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)
    return text_column("" if is_missing(value) else str(value) for value in array.tolist())


def text_column(values: Iterable[str]) -> Column:
    """Strings as objects: one long string among short ones then takes no room in every row."""
    return np.array(list(values), dtype=object)


def is_text(values: Column) -> bool:
    """Whether a column holds strings."""
    return values.dtype.kind not in "biuf"


def repeated(names: Iterable[str]) -> list[str]:
    """Names that occurred before."""
    seen: set[str] = set()
    return [name for name in names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]


def required(module: str, purpose: str, extra: str) -> ModuleType:
    """Import an optional library; where it is missing, say what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise InputError(f'{purpose} needs {library}, which is missing; pip install "laptsne[{extra}]".') from error
