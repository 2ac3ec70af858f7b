"""Atomic writes; arrays in NPY and NPZ files, and in the archives of arrays and JSON that hold models and checkpoints.

Reading never executes anything from a file; archives never allocate more than the size of the file.
"""

import contextlib
import glob
import io
import json
import math
import os
import shutil
import stat
import tempfile
import tokenize
import uuid
import zipfile
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from laptsne._runtime.typing import Array

VERSION = 2  # of archives; 1 is that of laptsne 0.1.0, which is read as well
_MARK = ".unfinished-"  # in the names of temporary files, by which leftovers are told from files of the user
_HEADER = "header.json"
_MAX_ARRAY_HEADER = 1 << 14  # bytes; NumPy refuses longer ones
_OBJECT = 16  # bytes of an item that has none in the file, as in arrays of type "<U0"

# What NumPy and zipfile raise for files that are damaged, encrypted or of another format.
DAMAGE = (
    *(ValueError, EOFError, OSError, KeyError, TypeError, RuntimeError, RecursionError, NotImplementedError),
    *(zipfile.BadZipFile, zlib.error),
    *(SyntaxError, tokenize.TokenError),  # NumPy parses the header of an array as a Python literal
)


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file, which becomes ``path`` on success and is removed on failure.

    Symbolic links are followed, and an existing file keeps its permissions. What is not a regular file, such as a
    device or a pipe, and a file that has several names, is written through when the temporary file is complete.
    """
    existing = path.stat() if path.exists() else None
    in_place = existing is not None and (not stat.S_ISREG(existing.st_mode) or existing.st_nlink > 1)
    target = path if in_place else Path(os.path.realpath(path))
    folder = tempfile.gettempdir() if in_place else target.parent
    # Some libraries choose the format by the suffix; remove_leftovers goes by the beginning.
    temporary = Path(folder, f".{target.name}{_MARK}{uuid.uuid4().hex}{path.suffix}")
    try:
        temporary.touch(0o666 if existing is None else 0o600, exist_ok=False)
        yield temporary
        with temporary.open("rb+") as complete:
            os.fsync(complete.fileno())
            if in_place:
                with path.open("wb") as out:
                    shutil.copyfileobj(complete, out)
                return
        if existing is not None:
            temporary.chmod(stat.S_IMODE(existing.st_mode))
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def remove_leftovers(path: Path) -> None:
    """Remove temporary files of processes that were killed while writing ``path``."""
    target = Path(os.path.realpath(path))
    for leftover in target.parent.glob(f".{glob.escape(target.name)}{_MARK}*"):
        leftover.unlink(missing_ok=True)


class ArrayHeader(NamedTuple):
    """Header of an NPY file."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """Size of the array in bytes; items without bytes count too, since each may become an object."""
        return math.prod(self.shape) * (self.dtype.itemsize or _OBJECT)

    @property
    def n_items(self) -> int:
        """Number of items; a side of length 0 counts as 1, since its rows are counted even without columns."""
        return math.prod(max(side, 1) for side in self.shape)


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


def write_archive(path: str | os.PathLike[str], content: Any, arrays: dict[str, Array]) -> int:
    """Write a JSON value and arrays atomically; return the size of the file in bytes.

    ZIP files have a checksum of each member, by which damaged ones are refused.
    """
    header = {"format": "laptsne", "version": VERSION, "content": content, "arrays": list(arrays)}
    with atomic_write(Path(path)) as temporary:
        # Without compression no member can be larger than the file.
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(_HEADER, json.dumps(header))
            for key, array in arrays.items():
                with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
        return temporary.stat().st_size


def read_archive(path: str | os.PathLike[str], kind: str = "model") -> tuple[Any, dict[str, Array]]:
    """Read a file written by :func:`write_archive`; raise ValueError if it is damaged or anything else."""
    path, arrays, size = Path(path), {}, os.stat(path).st_size
    try:
        with zipfile.ZipFile(path) as archive:
            _check_sizes(archive.infolist(), npz_headers(path).values(), size)
            header = json.loads(archive.read(_HEADER))
            if header["format"] != "laptsne":
                raise ValueError("its header has another format")
            content, version = header["content"], header["version"]
            supported = isinstance(version, int) and version <= VERSION
            for name in dict.fromkeys(header["arrays"] if supported else ()):
                with archive.open(f"{name}.npy") as member:
                    arrays[name] = np.lib.format.read_array(member, allow_pickle=False)
    except DAMAGE as error:
        raise ValueError(
            f"{path} is not a {kind} saved by laptsne, or it is truncated or damaged ({error}); make the {kind} again."
        ) from error
    if not supported:
        raise ValueError(f"{path} has format version {version!r}, but the latest known is {VERSION}; update laptsne.")
    return content, arrays


def _check_sizes(members: list[zipfile.ZipInfo], headers: Collection[ArrayHeader], size: int) -> None:
    """Raise ValueError if more would be allocated than the size of the file."""
    if any(info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size for info in members):
        raise ValueError("its members are compressed")
    # Members of a ZIP file may overlap: each could claim the same bytes.
    if sum(info.file_size for info in members) > size:
        raise ValueError("its members are larger than the file")
    # Arrays may be empty, but not have more rows than the file has bytes.
    if max(sum(header.nbytes for header in headers), sum(header.n_items for header in headers)) > size:
        raise ValueError("its arrays are larger than the file")
