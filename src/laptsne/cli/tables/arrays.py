"""Matrices in NPY and NPZ files; nothing in them is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from laptsne._runtime.array_file import DAMAGE, load_npz, npz_headers, read_array_header
from laptsne._runtime.memory import check_room
from laptsne.cli.tables.content import Content, InputError, as_column

_MATRICES = ("X", "data", "x", "features", "arr_0")
_LABELS = ("y", "labels", "label", "target")


def read_npy(path: Path) -> Content:
    """Read one array."""
    try:
        with path.open("rb") as file:
            check_room(read_array_header(file).nbytes)
        array = np.load(path, allow_pickle=False)
    except DAMAGE as error:
        raise InputError(
            f"{path} is not an array of numbers in NPY format ({error}); save it by numpy.save."
        ) from error
    return Content(str(path), matrix=_matrix(array, str(path)))


def read_npz(path: Path) -> Content:
    """Read the matrix of an archive, and labels where there are any of its length."""
    try:
        shapes = {name: header.shape for name, header in npz_headers(path).items()}
        chosen = _chosen(shapes, path)
        names = [n for n in _LABELS if n != chosen and shapes.get(n) == shapes[chosen][:1]][:1]
        arrays = load_npz(path, [chosen, *names])
    except InputError:
        raise
    except DAMAGE as error:
        raise InputError(
            f"{path} is not an archive of arrays in NPZ format ({error}); save it by numpy.savez."
        ) from error
    matrix = _matrix(arrays[chosen], f"{path}: {chosen}")
    columns = {"label": as_column(arrays[names[0]])} if names else {}
    return Content(str(path), columns, matrix=matrix)


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
