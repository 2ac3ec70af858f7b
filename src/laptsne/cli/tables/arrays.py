"""Matrices in NPY and NPZ files, read without pickle."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from laptsne._runtime.available_memory import check_room
from laptsne._runtime.files import DAMAGE, load_npz, npz_headers, read_array_header
from laptsne.cli.errors import InputError
from laptsne.cli.tables.contents import FileContents, typed_contents

_MATRICES = ("X", "data", "x", "features", "arr_0")
_LABELS = ("y", "labels", "label", "target")


def read_npy(path: Path) -> FileContents:
    """Read one array."""
    try:
        with path.open("rb") as file:
            check_room(read_array_header(file).nbytes)
        array = np.load(path, allow_pickle=False)
    except DAMAGE as error:
        raise InputError(
            f"{path} is not an array of numbers in NPY format ({error}); save it by numpy.save."
        ) from error
    return FileContents(str(path), matrix=_matrix(array, str(path)))


def read_npz(path: Path) -> FileContents:
    """Read the matrix of an archive, and labels of the same length if there are any."""
    try:
        shapes = {name: header.shape for name, header in npz_headers(path).items()}
        chosen = _choose_matrix(shapes, path)
        names = [n for n in _LABELS if n != chosen and shapes.get(n) == shapes[chosen][:1]][:1]
        arrays = load_npz(path, [chosen, *names])
    except InputError:
        raise
    except DAMAGE as error:
        raise InputError(
            f"{path} is not an archive of arrays in NPZ format ({error}); save it by numpy.savez."
        ) from error
    columns = pa.table({name: _labels(arrays[name]) for name in names})
    return typed_contents(str(path), columns, matrix=_matrix(arrays[chosen], f"{path}: {chosen}"))


def _choose_matrix(shapes: dict[str, tuple[int, ...]], path: Path) -> str:
    matrices = [name for name, shape in shapes.items() if len(shape) >= 2]
    known = [name for name in _MATRICES if name in matrices]
    if known or len(matrices) == 1:
        return (known or matrices)[0]
    listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items()) or "none"
    raise InputError(f"{path}: it is not clear which array to embed; name one X. Its arrays: {listed}.")


def _labels(array: np.ndarray[Any, Any]) -> pa.ChunkedArray:
    if array.dtype.kind in "biuf":
        return pa.chunked_array([array.astype(array.dtype.newbyteorder("="))])
    return pa.chunked_array([[str(value) for value in array.tolist()]], pa.string())


def _matrix(array: Any, name: str) -> Any:
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} is an array of {array.dtype}, not of numbers; save it as floats.")
    if array.ndim > 2:  # such as images
        array = array.reshape(len(array), -1)
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(f"{name} has shape {array.shape}; give an array of shape (n_samples, n_features).")
    return array.astype(np.float64) if array.dtype not in (np.float32, np.float64) else array
