"""Columns of lists, such as embeddings in a data frame, as matrices."""

from typing import Any

import numpy as np


def stacked_rows(X: Any) -> Any:
    """Return a column of lists or arrays as a matrix, one row per list; anything else as it is.

    The column is a Series of pandas or polars, a one-dimensional array of objects, or an Arrow array. For annotated
    data, TypeError names what takes them.
    """
    if hasattr(X, "obsm"):
        tools = "laptsne.scanpy.tl.laptsne(adata) or tl.lapumap(adata)"
        raise TypeError(f"X is {type(X).__name__}; use {tools}, or pass an array, such as adata.obsm['X_pca'].")
    if hasattr(X, "to_pylist") and hasattr(X, "type"):  # Arrow
        X = np.array([*X.to_pylist(), None], dtype=object)[:-1]
    shape: tuple[Any, ...] = getattr(X, "shape", ())
    knows_length = bool(shape) and isinstance(shape[0], int)  # a Dask data frame does not
    if not knows_length or (len(shape) > 1 and not hasattr(X, "columns")):
        return X
    columns = [X] if len(shape) == 1 else [X.iloc[:, i] if hasattr(X, "iloc") else X[:, i] for i in range(shape[1])]
    found = next((column for column in columns if _has_rows(column)), None)
    if found is None:
        return X
    if len(columns) > 1:
        raise ValueError(
            f"X: column {found.name!r} holds lists, so that the data frame is not a matrix of numbers; pass "
            f"X[{found.name!r}], or numpy.column_stack of it and the other columns."
        )
    rows = [np.asarray(value) for value in found]  # of shape () if the value is missing
    length = next(len(row) for row in rows if row.ndim)
    bad = next((i for i, row in enumerate(rows) if row.shape != (length,)), None)
    if bad is not None:
        given = f"{len(rows[bad])} values" if rows[bad].ndim else "no list"
        raise ValueError(f"X: row {bad} has {given}, but the first one has {length} values; give lists of one length.")
    return np.stack(rows)


def _has_rows(column: Any) -> bool:
    """Return whether the first value that is not missing is a list or an array."""
    value = next((value for value in column if value is not None), None)
    return isinstance(value, list | tuple) or len(getattr(value, "shape", ())) == 1
