"""Tables in Parquet files, by pyarrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from laptsne._runtime.memory import check_room
from laptsne.cli.tables.content import Column, Content, InputError, repeated, required, text_column


def read_parquet(path: Path) -> Content:
    """Read a Parquet file; columns of lists and structures are left out."""
    parquet = required("pyarrow.parquet", f"reading {path}", "cli")
    arrow = required("pyarrow", f"reading {path}", "cli")
    try:
        facts = parquet.read_metadata(path)
        schema = facts.schema.to_arrow_schema()
        names = schema.names
        twice = repeated(names)
        if twice:
            raise InputError(f"{path}: there are two columns {twice[0]!r}; give each a name of its own.")
        # Numbers, and columns made of them. Text that repeats is held once, as in the file: there, one long string in
        # every row takes no room.
        check_room(2 * 8 * facts.num_rows * facts.num_columns)
        texts = [field.name for field in schema if arrow.types.is_string(field.type)]
        table = parquet.read_table(path, read_dictionary=texts)
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
    if types.is_dictionary(kind):
        return _repeated(values)
    if types.is_null(kind):
        return np.full(len(values), np.nan)
    return text_column("" if value is None else str(value) for value in values.to_pylist())


def _repeated(values: Any) -> Column:
    """Text of which every string is held once."""
    parts = []
    for chunk in values.chunks:
        strings = text_column([*("" if value is None else str(value) for value in chunk.dictionary.to_pylist()), ""])
        codes = chunk.indices.cast("int64").fill_null(len(strings) - 1).to_numpy()
        parts.append(strings[codes])
    return np.concatenate(parts) if parts else text_column([])
