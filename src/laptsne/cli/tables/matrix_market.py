"""Sparse and dense matrices in Matrix Market files, plain or compressed by gzip.

SciPy's reader (fast_matrix_market) is faster, but some malformed files crash it, and the process with it.
"""

import gzip
import itertools
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from laptsne._runtime.available_memory import check_room
from laptsne.cli.errors import InputError
from laptsne.cli.tables.contents import FileContents
from laptsne.cli.tables.delimited import lines, open_binary

_FIELDS = ("real", "integer", "pattern")
_MIRROR_SIGN = {"general": 0, "symmetric": 1, "skew-symmetric": -1}
_DAMAGE = (ValueError, EOFError, OSError, OverflowError, zlib.error, gzip.BadGzipFile)


def read_matrix_market(path: Path) -> FileContents:
    """Read a matrix whose rows are samples."""
    try:
        with open_binary(path) as file:
            matrix = _parse(lines(file, str(path)))
    except _DAMAGE as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"{path} is not in Matrix Market format, or is damaged ({reason}); write it again.") from error
    n_rows, n_columns = matrix.shape
    note = f"rows are points: {n_rows} points with {n_columns} features; transpose the matrix if it is the other way"
    return FileContents(str(path), matrix=matrix, notes=(note,))


def _parse(text: Iterator[str]) -> Any:
    """Return the matrix; raise ValueError if the text is malformed."""
    words = next(text, "").lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise ValueError("it does not begin with %%MatrixMarket matrix")
    layout, field, symmetry = words[2:]
    if field not in _FIELDS or symmetry not in _MIRROR_SIGN:
        raise ValueError(f"{field} {symmetry} matrices are not supported, only real ones")
    entries = (line for line in text if line.strip() and not line.startswith("%"))
    sizes = [int(word) for word in next(entries, "").split()]
    if min(sizes, default=0) < 1:
        raise ValueError("its header declares no entries")
    if layout == "array" and len(sizes) == 2 and symmetry == "general" and field != "pattern":
        numbers = _numbers(entries, sizes[0] * sizes[1], 1)
        return np.ascontiguousarray(numbers.reshape(sizes[1], sizes[0]).T)  # the format is column-major
    if layout != "coordinate" or len(sizes) != 3:
        raise ValueError(f"{layout} {symmetry} matrices with {len(sizes)} sizes are not supported")
    check_room(8 * sizes[0])  # row pointers, however few entries there are
    return _sparse(_numbers(entries, sizes[2], 2 if field == "pattern" else 3), sizes, _MIRROR_SIGN[symmetry])


def _numbers(entries: Iterator[str], n_lines: int, n_columns: int) -> NDArray[np.float64]:
    check_room(2 * 8 * n_lines * n_columns)  # the numbers, and the matrix made of them
    numbers = np.loadtxt(itertools.islice(entries, n_lines + 1), comments="%", ndmin=2)
    if numbers.shape != (n_lines, n_columns):
        raise ValueError(f"{n_lines} lines of {n_columns} numbers should follow, and there are {numbers.shape}")
    return numbers


def _sparse(numbers: NDArray[np.float64], sizes: list[int], mirror_sign: int) -> Any:
    indices = numbers[:, :2].T - 1
    if (indices != np.floor(indices)).any() or (indices < 0).any() or (sizes[:2] <= indices.T).any():
        raise ValueError("there is an entry outside the matrix")
    row, column = indices.astype(np.int64)
    values = numbers[:, 2] if numbers.shape[1] == 3 else np.ones(len(numbers))
    if mirror_sign:
        off = row != column
        row, column = np.append(row, column[off]), np.append(column, row[off])
        values = np.append(values, mirror_sign * values[off])
    return scipy.sparse.csr_matrix((values, (row, column)), shape=sizes[:2])
