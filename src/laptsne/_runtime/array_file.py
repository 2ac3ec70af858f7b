"""Arrays in files: NPY, NPZ, and the archives of arrays and JSON that hold models and checkpoints.

Reading never runs anything from a file, and never allocates more than the file really holds or the memory allows.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tokenize
import zipfile
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.atomic_file import atomic_write
from laptsne._runtime.memory import check_room

Array = NDArray[Any]

VERSION = 1
_HEADER = "header.json"
_MAX_HEADER = 1 << 26  # bytes
_ARRAY_HEADER = 1 << 14  # bytes; no array that NumPy reads has a longer header

# What NumPy and zipfile raise for files that are damaged, encrypted, or of another format.
DAMAGE = (
    *(ValueError, EOFError, OSError, KeyError, TypeError, RuntimeError, RecursionError, NotImplementedError),
    *(zipfile.BadZipFile, zlib.error),
    *(SyntaxError, tokenize.TokenError),  # NumPy parses the header of an array as a Python literal
)


class ArrayHeader(NamedTuple):
    """What an NPY file says of its array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran_order: bool
    length: int  # of the header, in bytes

    @property
    def nbytes(self) -> int:
        """Size of the array."""
        return int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize


def read_array_header(file: IO[bytes]) -> ArrayHeader:
    """Read the header of the NPY file that starts here."""
    head = io.BytesIO(file.read(_ARRAY_HEADER))
    version = np.lib.format.read_magic(head)
    reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran_order, dtype = reader(head)
    return ArrayHeader(tuple(shape), dtype, fortran_order, head.tell())


def npz_headers(file: Path | IO[bytes]) -> dict[str, ArrayHeader]:
    """Headers of the arrays of an NPZ file, by name."""
    headers = {}
    with zipfile.ZipFile(file) as archive:
        for member in (name for name in archive.namelist() if name.endswith(".npy")):
            with archive.open(member) as array:
                headers[member.removesuffix(".npy")] = read_array_header(array)
    return headers


def load_npz(file: Path | IO[bytes], names: Collection[str] | None = None) -> dict[str, Array]:
    """Read arrays of an NPZ file, all of them by default.

    Raises MemoryError if they do not fit into memory, and one of ``DAMAGE`` if the file is not an NPZ file.
    """
    headers = npz_headers(file)
    names = headers if names is None else names
    check_room(sum(headers[name].nbytes for name in names))
    if not isinstance(file, Path):
        file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in names}


def write_archive(path: str | os.PathLike[str], content: Any, arrays: dict[str, Array]) -> int:
    """Write a JSON value and arrays; return the size of the file in bytes.

    The file appears whole or not at all: it is written beside its place and then moved there.
    """
    path = Path(path)
    header = {
        "format": "laptsne",
        "version": VERSION,
        "content": content,
        "arrays": {name: _digest(array) for name, array in arrays.items()},
    }
    # Stored, not deflated: a member then cannot be larger than the file.
    with atomic_write(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_HEADER, json.dumps(header, allow_nan=True))
        for key, array in arrays.items():
            with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
    return path.stat().st_size


def read_archive(path: str | os.PathLike[str], kind: str = "model") -> tuple[Any, dict[str, Array]]:
    """Read what :func:`write_archive` wrote; raise ValueError if the file is anything else or damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            _check_size(archive, Path(path).stat().st_size)
            header = _read_header(archive, path)
            arrays = {name: _read_array(archive, f"{name}.npy") for name in header["arrays"]}
    except FileNotFoundError:
        raise
    except (zipfile.BadZipFile, EOFError, OSError, KeyError, TypeError, UnicodeDecodeError, _Damaged) as error:
        raise ValueError(
            f"{path} is not a {kind} saved by laptsne, or it was cut short or changed ({error}); make the {kind} again."
        ) from error
    for name, array in arrays.items():
        if _digest(array) != header["arrays"][name]:
            raise ValueError(f"{path}: the array {name!r} is not the one that was saved; make the {kind} again.")
    return header["content"], arrays


class _Damaged(Exception):
    """What is in the file does not fit together."""


def _check_size(archive: zipfile.ZipFile, size: int) -> None:
    """Refuse members that overlap: a small file could say that it holds the same bytes any number of times."""
    if sum(info.file_size for info in archive.infolist()) > size:
        raise _Damaged("its members are larger than itself")


def _read_header(archive: zipfile.ZipFile, path: str | os.PathLike[str]) -> dict[str, Any]:
    if _stored(archive, _HEADER).file_size > _MAX_HEADER:
        raise _Damaged("its header is too large")
    try:
        header = json.loads(archive.read(_HEADER))
    except (ValueError, RecursionError) as error:
        raise _Damaged(f"its header is not JSON: {error}") from error
    if not isinstance(header, dict) or header.get("format") != "laptsne":
        raise _Damaged("its header is of another format")
    if not isinstance(header.get("version"), int) or header["version"] > VERSION:
        raise ValueError(
            f"{path} has version {header.get('version')!r} of the format, and this laptsne reads up to {VERSION}; "
            "update laptsne."
        )
    if not isinstance(header.get("arrays"), dict):
        raise _Damaged("its header lists no arrays")
    return header


def _read_array(archive: zipfile.ZipFile, name: str) -> Array:
    info = _stored(archive, name)
    with archive.open(info) as member:
        try:
            header = read_array_header(member)
        except ValueError as error:
            raise _Damaged(str(error)) from error
        # The size is checked before anything of that size is allocated.
        if header.dtype.hasobject or header.fortran_order or header.nbytes != info.file_size - header.length:
            raise _Damaged(f"the array {name} is of another kind or size than it says")
        member.seek(header.length)
        data = bytearray(member.read())
    if len(data) != header.nbytes:
        raise _Damaged(f"the array {name} is cut short")
    return np.frombuffer(data, header.dtype).reshape(header.shape)


def _stored(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    info = archive.getinfo(name)
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
        raise _Damaged(f"{name} is compressed")
    return info


def _digest(array: Array) -> str:
    array = np.ascontiguousarray(array)
    digest = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
