"""Columns of lists, such as embeddings in a data frame, as matrices."""

from typing import Any

import numpy as np
import scipy.sparse


def stacked_rows(X: Any) -> Any:
    """Return a column of lists or arrays as a matrix, one row per list; anything else as it is.

    The column is a Series of pandas or polars, a one-dimensional array of objects, or an Arrow array. ValueError is
    raised, with the row, if the lists differ in length, and if a data frame has columns of lists beside others.

    Examples
    --------
    >>> import numpy as np
    >>> from laptsne._runtime.stacked_rows import stacked_rows
    >>> column = np.empty(2, dtype=object)
    >>> column[:] = [[1.0, 2.0], [3.0, 4.0]]
    >>> stacked_rows(column).shape
    (2, 2)
    """
    if isinstance(X, list | tuple) or scipy.sparse.issparse(X):
        return X
    if hasattr(X, "to_pylist") and hasattr(X, "type"):  # Arrow
        X = np.array([*X.to_pylist(), None], dtype=object)[:-1]
    shape = getattr(X, "shape", ())
    if not shape or not isinstance(shape[0], int):  # a Dask data frame does not know its length
        return X
    if len(shape) == 1:
        return _stacked(X) if _has_rows(X) else X
    return _only_column(X, shape[1]) if hasattr(X, "columns") else X


def _only_column(frame: Any, n_columns: int) -> Any:
    """Return the only column of a data frame as a matrix if it has lists; refuse lists beside other columns."""
    columns = [frame.iloc[:, i] if hasattr(frame, "iloc") else frame[:, i] for i in range(n_columns)]
    name = next((column.name for column in columns if _has_rows(column)), None)
    if name is None:
        return frame
    if n_columns > 1:
        raise ValueError(
            f"X: column {name!r} holds lists, so that the data frame is not a matrix of numbers; pass X[{name!r}], or "
            "numpy.column_stack of it and the other columns."
        )
    return _stacked(columns[0])


def _has_rows(column: Any) -> bool:
    """Return whether the first value that is not missing is a list or an array."""
    if getattr(column.dtype, "kind", "O") != "O":
        return False
    value = next((value for value in column if value is not None), None)
    return isinstance(value, list | tuple) or len(getattr(value, "shape", ())) == 1


def _stacked(column: Any) -> Any:
    rows = [np.asarray(value) for value in column]  # of shape () if the value is missing
    length = next(len(row) for row in rows if row.ndim)
    bad = next((i for i, row in enumerate(rows) if row.shape != (length,)), None)
    if bad is not None:
        found = f"{len(rows[bad])} values" if rows[bad].ndim else "no list"
        raise ValueError(f"X: row {bad} has {found}, but the first one has {length} values; give lists of one length.")
    return np.stack(rows)
