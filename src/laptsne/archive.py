"""One file of arrays and JSON, without pickle: reading it runs nothing that is in it."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne.replacement import replacing

Array = NDArray[Any]

VERSION = 1
_HEADER = "header.json"
_MAX_HEADER = 1 << 26  # bytes


def write(path: str | os.PathLike[str], content: Any, arrays: dict[str, Array]) -> int:
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
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_HEADER, json.dumps(header, allow_nan=True))
        for key, array in arrays.items():
            with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
    return path.stat().st_size


def read(path: str | os.PathLike[str], kind: str = "model") -> tuple[Any, dict[str, Array]]:
    """Read what :func:`write` wrote; ValueError where the file is something else, newer, cut short or changed."""
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
            version = np.lib.format.read_magic(member)
            reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran_order, dtype = reader(member)
        except ValueError as error:
            raise _Damaged(str(error)) from error
        size = int(np.prod(shape, dtype=object)) * dtype.itemsize
        # The size is compared before anything of that size is made.
        if dtype.hasobject or fortran_order or size != info.file_size - member.tell():
            raise _Damaged(f"the array {name} is of another kind or size than it says")
        data = bytearray(member.read())
    if len(data) != size:
        raise _Damaged(f"the array {name} is cut short")
    return np.frombuffer(data, dtype).reshape(shape)


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
