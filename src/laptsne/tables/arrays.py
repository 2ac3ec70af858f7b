"""Matrices in NPY and NPZ files; nothing in them is run."""

from __future__ import annotations

import os
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np

from laptsne.tables.content import Content, InputError, as_column

_MATRICES = ("X", "data", "x", "features", "arr_0")
_LABELS = ("y", "labels", "label", "target")
_DAMAGE = (
    *(ValueError, EOFError, OSError, KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError),
    *(SyntaxError, tokenize.TokenError),  # from the header of an array, which NumPy reads as Python's literals
)


def read_npy(path: Path) -> Content:
    """Read one array."""
    try:
        with path.open("rb") as file:
            _declared(file, path)
        array = np.load(path, allow_pickle=False)
    except InputError:
        raise
    except _DAMAGE as error:
        raise InputError(
            f"{path} is not an array of numbers in NPY format ({error}); save it by numpy.save."
        ) from error
    return Content(str(path), matrix=_matrix(array, str(path)))


def read_npz(path: Path) -> Content:
    """Read the matrix of an archive, and labels where there are any of its length."""
    try:
        with zipfile.ZipFile(path) as archive:
            shapes = {}
            for member in archive.namelist():
                with archive.open(member) as file:
                    shapes[member.removesuffix(".npy")] = _declared(file, path)
        chosen = _chosen(shapes, path)
        with np.load(path, allow_pickle=False) as arrays:
            matrix = _matrix(arrays[chosen], f"{path}: {chosen}")
            names = [n for n in _LABELS if n != chosen and shapes.get(n) == matrix.shape[:1]]
            columns = {"label": as_column(arrays[names[0]])} if names else {}
    except InputError:
        raise
    except _DAMAGE as error:
        raise InputError(
            f"{path} is not an archive of arrays in NPZ format ({error}); save it by numpy.savez."
        ) from error
    return Content(str(path), columns, matrix=matrix)


def _declared(file: IO[bytes], path: Path) -> tuple[int, ...]:
    """Shape that an array says it has; refused before it is made where it could not fit."""
    version = np.lib.format.read_magic(file)
    reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = reader(file)
    size = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if size > _memory():
        raise InputError(f"{path} holds an array of {size / 2**30:.0f} GiB, more than the memory there is; give less.")
    return tuple(shape)


def _memory() -> float:
    """Bytes of memory of the machine, where that can be asked for."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


def _chosen(shapes: dict[str, tuple[int, ...]], path: Path) -> str:
    flat = [name for name, shape in shapes.items() if len(shape) >= 2]
    known = [name for name in _MATRICES if name in flat]
    if known:
        return known[0]
    if len(flat) == 1:
        return flat[0]
    listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items()) or "none"
    raise InputError(f"{path}: it is not clear which array to embed; name one X. Its arrays: {listed}.")


def _matrix(array: Any, name: str) -> Any:
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} is an array of {array.dtype}, not of numbers; save it as floats.")
    if array.ndim > 2:  # images and the like: one row a point
        array = array.reshape(len(array), -1)
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(f"{name} has shape {array.shape}; give an array with one row a point and at least a column.")
    return array.astype(np.float64) if array.dtype not in (np.float32, np.float64) else array
