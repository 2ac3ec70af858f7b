"""Tables in Parquet files, by pyarrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from laptsne.tables.content import Column, Content, InputError, repeated, required, text_column


def read_parquet(path: Path) -> Content:
    """Read a Parquet file; columns of lists and structures are left out."""
    parquet = required("pyarrow.parquet", f"reading {path}", "cli")
    arrow = required("pyarrow", f"reading {path}", "cli")
    try:
        names = parquet.read_schema(path).names
        twice = repeated(names)
        if twice:
            raise InputError(f"{path}: there are two columns {twice[0]!r}; give each a name of its own.")
        table = parquet.read_table(path)
        nested = [name for name in names if arrow.types.is_nested(table.schema.field(name).type)]
        columns = {name: _column(table[name], arrow.types) for name in names if name not in nested}
    except InputError:
        raise
    except (arrow.ArrowException, OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"{path} is not a Parquet file, or is damaged ({reason}); write or download it again."
        ) from error
    if not table.num_rows:
        raise InputError(f"{path} has no rows; give a table with at least two.")
    notes = (f"left out, since they hold lists: {', '.join(nested)}",) if nested else ()
    return Content(str(path), columns, notes=notes)


def _column(values: Any, types: Any) -> Column:
    kind = values.type
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        numbers: Column = values.cast("float64").to_numpy()
        return numbers
    if types.is_null(kind):
        return np.full(len(values), np.nan)
    return text_column("" if value is None else str(value) for value in values.to_pylist())
