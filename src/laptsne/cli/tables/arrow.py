"""Tables in Parquet, Feather and Arrow files."""

import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from laptsne._runtime.available_memory import check_room
from laptsne.cli.errors import InputError
from laptsne.cli.tables.contents import FileContents, check_names, is_list, typed_contents

_FILE = b"ARROW1\x00\x00"  # begins an Arrow file; what follows is an Arrow stream, and a footer
_FEATHER_1 = b"FEA1"


def read_parquet(path: Path) -> FileContents:
    """Read a Parquet file without its columns of structures."""
    return _read(path, "a Parquet file", _parquet_table)


def read_arrow(path: Path) -> FileContents:
    """Read a Feather or Arrow file, or an Arrow stream, without its columns of structures."""
    return _read(path, "a Feather or Arrow file", _arrow_table)


def _read(path: Path, kind: str, table_of: Callable[[Path], pa.Table]) -> FileContents:
    try:
        table = table_of(path)
        table.validate(full=True)  # a damaged file may have codes beyond its dictionaries
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, struct.error, IndexError) as error:
        if isinstance(error, MemoryError):
            raise
        reason = str(error).partition("\n")[0]
        raise InputError(f"{path} is not {kind}, or is damaged ({reason}); write or download it again.") from error
    if not table.num_rows:
        raise InputError(f"{path} has no rows; give a table with at least two.")
    left = [field.name for field in table.schema if pa.types.is_nested(field.type) and not is_list(field.type)]
    notes = (f"left out, since they are nested: {', '.join(left)}",) if left else ()
    return typed_contents(str(path), table.drop_columns(left), notes=notes)


def _parquet_table(path: Path) -> pa.Table:
    metadata = pa.parquet.read_metadata(path)
    schema = metadata.schema.to_arrow_schema()
    check_names(schema.names, str(path))
    # Numbers, and the matrix that is embedded. Text is read as dictionaries: a string that every row repeats takes
    # no room in the file, and would take any amount of memory.
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    n_values = sum(group.column(j).num_values for group in groups for j in range(metadata.num_columns))
    check_room(2 * 8 * max(n_values, metadata.num_rows * len(schema)))
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    return pa.parquet.read_table(path, read_dictionary=texts)


def _arrow_table(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as file:
        head = file.read(len(_FILE))
        if head.startswith(_FEATHER_1):
            raise InputError(f"{path} is in version 1 of Feather; write it again with a recent pandas or pyarrow.")
        # By the stream and not by the footer of a file, so that what is read is what was checked.
        start = len(_FILE) if head == _FILE else 0
        file.seek(start)
        check_room(sum(_decompressed_sizes(file)))
        file.seek(start)
        with pa.ipc.open_stream(file) as stream:
            check_names(stream.schema.names, str(path))
            return stream.read_all()


def _decompressed_sizes(file: pa.NativeFile) -> Iterator[int]:
    """Yield the size of each message of an Arrow stream, with its buffers decompressed."""
    messages = pa.ipc.MessageReader.open_stream(file)
    while True:
        try:
            message = messages.read_next_message()
        except StopIteration:
            return
        if message.type != "schema" and message.body is not None:
            yield 2 * _decompressed_size(bytes(message.metadata), message)


def _decompressed_size(metadata: bytes, message: pa.Message) -> int:
    """Return the size of the buffers of a message, which each begin with their size if they are compressed.

    The metadata are FlatBuffers: a message has its header as third field, which is a record batch, or a dictionary
    batch with a record batch as second field; a record batch has buffers as third field and compression as fourth.
    """
    batch = _table_field(metadata, struct.unpack_from("<I", metadata)[0], 2)
    if message.type == "dictionary":
        batch = _table_field(metadata, batch, 1)
    if not batch or not _table_field(metadata, batch, 3):
        return int(message.body.size)
    vector = _table_field(metadata, batch, 2)
    n_buffers: int = struct.unpack_from("<I", metadata, vector)[0] if vector else 0
    buffers = np.frombuffer(metadata, "<i8", 2 * n_buffers, vector + 4).reshape(-1, 2)
    body = memoryview(message.body)
    sizes = [int(struct.unpack_from("<q", body, offset)[0]) for offset, length in buffers.tolist() if length]
    return max(int(message.body.size), sum(size for size in sizes if size > 0))


def _table_field(data: bytes, table: int, index: int) -> int:
    """Return the position of what a field of a FlatBuffers table refers to, 0 if the field is not there."""
    if not table:
        return 0
    vtable = table - int(struct.unpack_from("<i", data, table)[0])
    if 4 + 2 * index >= struct.unpack_from("<H", data, vtable)[0]:
        return 0
    position = table + int(struct.unpack_from("<H", data, vtable + 4 + 2 * index)[0])
    return position + int(struct.unpack_from("<I", data, position)[0]) if position > table else 0
