"""Arrays in files: NPY and NPZ, and the archives of arrays and JSON that hold models and checkpoints.

Reading never executes anything from a file and never allocates more than the memory available; for archives, no more
than the size of the file.
"""

import hashlib
import io
import json
import math
import os
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from laptsne._runtime.atomic_file import atomic_write
from laptsne._runtime.typing import Array

VERSION = 1
_HEADER = "header.json"
_MAX_HEADER = 1 << 26  # bytes
_MAX_ARRAY_HEADER = 1 << 14  # bytes; NumPy refuses longer ones

# What NumPy and zipfile raise for files that are damaged, encrypted or of another format.
DAMAGE = (
    *(ValueError, EOFError, OSError, KeyError, TypeError, RuntimeError, RecursionError, NotImplementedError),
    *(zipfile.BadZipFile, zlib.error),
    *(SyntaxError, tokenize.TokenError),  # NumPy parses the header of an array as a Python literal
)


class ArrayHeader(NamedTuple):
    """Header of an NPY file."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """Size of the array in bytes; items without any, as of empty strings, count as well, since they may grow."""
        return math.prod(max(size, 1) for size in self.shape) * max(self.dtype.itemsize, 1)


def read_array_header(file: IO[bytes]) -> ArrayHeader:
    """Read the header of an NPY file from the current position."""
    head = io.BytesIO(file.read(_MAX_ARRAY_HEADER))
    version = np.lib.format.read_magic(head)
    reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = reader(head)
    return ArrayHeader(tuple(shape), dtype)


def npz_headers(file: Path | IO[bytes]) -> dict[str, ArrayHeader]:
    """Read the headers of the arrays of an NPZ file, by name."""
    headers = {}
    with zipfile.ZipFile(file) as archive:
        for member in (name for name in archive.namelist() if name.endswith(".npy")):
            with archive.open(member) as array:
                headers[member.removesuffix(".npy")] = read_array_header(array)
    return headers


def _read_array(archive: zipfile.ZipFile, name: str) -> Array:
    with archive.open(f"{name}.npy") as member:
        return np.asarray(np.lib.format.read_array(member, allow_pickle=False))


def write_archive(path: str | os.PathLike[str], content: Any, arrays: dict[str, Array]) -> int:
    """Write a JSON value and arrays atomically; return the size of the file in bytes."""
    path = Path(path)
    digests = {name: _digest(array) for name, array in arrays.items()}
    header = {"format": "laptsne", "version": VERSION, "content": content, "arrays": digests}
    # Without compression no member can be larger than the file.
    with atomic_write(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_HEADER, json.dumps(header, allow_nan=True))
        for key, array in arrays.items():
            with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
    return path.stat().st_size


def read_archive(path: str | os.PathLike[str], kind: str = "model") -> tuple[Any, dict[str, Array]]:
    """Read a file written by :func:`write_archive`; raise ValueError if it is damaged or anything else."""
    path = Path(path)
    size = path.stat().st_size
    try:
        with zipfile.ZipFile(path) as archive:
            _check_sizes(archive, npz_headers(path), size)
            header = _read_header(archive)
            version = header["version"]
            supported = isinstance(version, int) and version <= VERSION
            arrays = {name: _read_array(archive, name) for name in header["arrays"]} if supported else {}
    except DAMAGE as error:
        raise ValueError(
            f"{path} is not a {kind} saved by laptsne, or it is truncated or damaged ({error}); make the {kind} again."
        ) from error
    if not supported:
        raise ValueError(f"{path} has format version {version!r}, but the latest known is {VERSION}; update laptsne.")
    for name, array in arrays.items():
        if _digest(array) != header["arrays"][name]:
            raise ValueError(f"{path}: the array {name!r} has changed since it was saved; make the {kind} again.")
    return header["content"], arrays


def _check_sizes(archive: zipfile.ZipFile, headers: dict[str, ArrayHeader], size: int) -> None:
    """Raise ValueError if more would be allocated than the size of the file."""
    members = archive.infolist()
    if any(info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size for info in members):
        raise ValueError("its members are compressed")
    # Members of a ZIP file may overlap: each could claim the same bytes.
    if sum(info.file_size for info in members) > size:
        raise ValueError("its members are larger than the file")
    if sum(header.nbytes for header in headers.values()) > size:
        raise ValueError("its arrays are larger than the file")


def _read_header(archive: zipfile.ZipFile) -> dict[str, Any]:
    if archive.getinfo(_HEADER).file_size > _MAX_HEADER:
        raise ValueError("its header is too large")
    try:
        header = json.loads(archive.read(_HEADER))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its header is not JSON: {error}") from error
    if not isinstance(header, dict) or header.get("format") != "laptsne" or not isinstance(header.get("arrays"), dict):
        raise ValueError("its header has another format")
    return {"version": None} | header


def _digest(array: Array) -> str:
    array = np.ascontiguousarray(array)
    digest = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
