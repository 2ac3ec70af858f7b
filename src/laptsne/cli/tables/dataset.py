"""The data that are embedded, and the columns that are kept beside the map."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse
from numpy.typing import NDArray

from laptsne.cli.errors import InputError
from laptsne.cli.tables.contents import as_numpy

_MAX_LISTED = 12  # names in a message


@dataclass(frozen=True)
class Dataset:
    """The matrix that is embedded, and the columns that are kept beside it."""

    name: str  # the file, as messages name it
    X: Any  # array or sparse matrix of shape (n_rows, n_features), NaN where values are missing
    features: tuple[str, ...] | None  # names of the columns of X
    label: str | None  # name of the label column
    columns: pa.Table  # the columns that are not embedded, as they came, the label first
    numbers: Mapping[str, pa.ChunkedArray] = field(default_factory=dict)  # those of them that are numbers
    inputs: Mapping[str, int] | None = None  # columns of the table that are embedded, and the features of each
    first_row: int = 1  # its number in messages
    notes: tuple[str, ...] = ()  # what the user should know about how the file was read
    continuous: frozenset[str] = frozenset()  # columns that are measurements, such as genes, even if whole numbers

    def values(self, name: str, purpose: str = "to colour by") -> NDArray[Any]:
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
        columns, numbers, continuous = self.columns, dict(self.numbers), self.continuous
        for name in names:
            values = self.values(name)
            if name not in columns.column_names:
                numbers[name] = pa.chunked_array([values])
                columns = columns.append_column(name, numbers[name])
                if self.inputs is None:  # of a matrix, whose columns are all of a kind
                    continuous |= {name}
        return replace(self, columns=columns, numbers=numbers, continuous=continuous)

    def rows(self, kept: NDArray[np.bool_]) -> Dataset:
        """Return the dataset with some of its rows."""
        mask = pa.array(kept)
        numbers = {name: values.filter(mask) for name, values in self.numbers.items()}
        return replace(self, X=self.X[kept], columns=self.columns.filter(mask), numbers=numbers)


def listed(names: Sequence[str]) -> str:
    """Return names separated by commas, the first of them if they are many."""
    more = len(names) - _MAX_LISTED
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:_MAX_LISTED])} and {more} more"
