"""Tables in Parquet files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from laptsne._runtime.memory import check_room
from laptsne.cli.errors import InputError
from laptsne.cli.tables.contents import FileContents, as_column, check_names


def read_parquet(path: Path) -> FileContents:
    """Read a Parquet file without its columns of lists and structures."""
    try:
        metadata = pa.parquet.read_metadata(path)
        schema = metadata.schema.to_arrow_schema()
        check_names(schema.names, str(path))
        # Numbers, and the matrix that is embedded. Text is read as dictionaries: a string that every row repeats takes
        # no room in the file, and would take any amount of memory.
        check_room(2 * 8 * metadata.num_rows * metadata.num_columns)
        texts = [field.name for field in schema if pa.types.is_string(field.type)]
        table = pa.parquet.read_table(path, read_dictionary=texts)
        nested = [field.name for field in table.schema if pa.types.is_nested(field.type)]
        table = table.drop_columns(nested)
        columns = pa.table({name: as_column(table[name]) for name in table.column_names})
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"{path} is not a Parquet file, or is damaged ({reason}); write or download it again."
        ) from error
    if not metadata.num_rows:
        raise InputError(f"{path} has no rows; give a table with at least two.")
    notes = (f"left out, since they hold lists: {', '.join(nested)}",) if nested else ()
    return FileContents(str(path), columns, notes=notes)
