"""Arrays in NPY and NPZ files of unknown origin: nothing in them is run, and none is made that does not fit."""

from __future__ import annotations

import io
import tokenize
import zipfile
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from laptsne.room import check_room

_HEAD = 1 << 14  # bytes that hold the header of any array that NumPy reads; a longer one would be unpacked whole

# What NumPy and the archive say of files that are something else, damaged, encrypted or oddly packed.
DAMAGE = (
    *(ValueError, EOFError, OSError, KeyError, TypeError, RuntimeError, RecursionError, NotImplementedError),
    *(zipfile.BadZipFile, zlib.error),
    *(SyntaxError, tokenize.TokenError),  # from the header of an array, which NumPy reads as Python's literals
)


def declared(file: IO[bytes]) -> tuple[tuple[int, ...], int]:
    """Shape of the array that begins here, and its size in bytes, as it says."""
    head = io.BytesIO(file.read(_HEAD))
    version = np.lib.format.read_magic(head)
    reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = reader(head)
    return tuple(shape), int(np.prod(shape, dtype=object)) * dtype.itemsize


def contents(file: Path | IO[bytes]) -> dict[str, tuple[tuple[int, ...], int]]:
    """Shapes and sizes of the arrays of an archive by name."""
    found = {}
    with zipfile.ZipFile(file) as archive:
        for member in (name for name in archive.namelist() if name.endswith(".npy")):
            with archive.open(member) as array:
                found[member.removesuffix(".npy")] = declared(array)
    return found


def load(file: Path | IO[bytes], names: Collection[str] | None = None) -> dict[str, NDArray[Any]]:
    """Read arrays of an archive, all of them where no names are given.

    MemoryError where they take more than there is room for; one of ``DAMAGE`` where it is no such archive.
    """
    sizes = {name: size for name, (_, size) in contents(file).items()}
    wanted = sizes if names is None else names
    check_room(sum(sizes[name] for name in wanted))
    if not isinstance(file, Path):
        file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in wanted}
