"""The sum of a sparse matrix and its transpose, in little memory."""

from typing import Any

import numpy as np
import scipy.sparse

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array

MAX_BY_SCIPY = 100_000  # rows up to which SciPy's sum is used, which needs no compilation and three times the memory
BLOCKS = 32  # blocks of rows; the transpose of only one per thread is in memory


@compiled
def sort_rows(start: int, stop: int, indptr: Array, indices: Array, data: Array) -> None:
    """Sort the entries of every row of a CSR matrix by column."""
    for i in range(start, stop):
        columns, values = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        order = np.argsort(columns, kind="mergesort")
        columns[:], values[:] = columns[order], values[order]


@inlined
def _transpose_block(low: int, high: int, indptr: Array, indices: Array, data: Array) -> tuple[Array, Array, Array]:
    """Return the columns ``low`` to ``high`` of a CSR matrix in CSC format, with sorted rows."""
    starts = np.zeros(high - low + 1, np.int64)
    for column in indices:
        if low <= column < high:
            starts[column - low + 1] += 1
    starts = np.cumsum(starts)
    ends = starts[:-1].copy()
    rows, values = np.empty(starts[-1], indices.dtype), np.empty(starts[-1], data.dtype)
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            column = indices[e]
            if low <= column < high:
                at = ends[column - low]
                rows[at], values[at] = i, data[e]
                ends[column - low] += 1
    return starts, rows, values


@inlined
def _merged(first: Array, first_values: Array, second: Array, second_values: Array, out: Array, sums: Array) -> int:
    """Set ``out`` and ``sums`` to the sum of two rows with sorted columns, without zeros; return its length."""
    a = b = n = 0
    while a < first.size or b < second.size:
        from_first = b == second.size or (a < first.size and first[a] <= second[b])
        column = first[a] if from_first else second[b]
        total = sums.dtype.type(0)
        while a < first.size and first[a] == column:
            total += first_values[a]
            a += 1
        while b < second.size and second[b] == column:
            total += second_values[b]
            b += 1
        if total != 0:
            out[n], sums[n] = column, total
            n += 1
    return n


@compiled
def _sum_blocks(
    start: int,
    stop: int,
    edges: Array,
    indptr: Array,
    indices: Array,
    data: Array,
    starts: Array,
    out: Array,
    sums: Array,
) -> None:
    """Write the rows of the blocks of the sum to ``out`` and ``sums`` at ``starts``.

    If ``out`` is empty, set starts[i + 1] to the number of entries of row i instead.
    """
    for b in range(start, stop):
        low, high = edges[b], edges[b + 1]
        ends, rows, values = _transpose_block(low, high, indptr, indices, data)
        longest = 0
        for i in range(low, high):
            longest = max(longest, indptr[i + 1] - indptr[i] + ends[i - low + 1] - ends[i - low])
        columns, line = np.empty(longest, indices.dtype), np.empty(longest, data.dtype)
        for i in range(low, high):
            own, other = slice(indptr[i], indptr[i + 1]), slice(ends[i - low], ends[i - low + 1])
            n = _merged(indices[own], data[own], rows[other], values[other], columns, line)
            if out.size == 0:
                starts[i + 1] = n
            else:
                out[starts[i] : starts[i] + n] = columns[:n]
                sums[starts[i] : starts[i] + n] = line[:n]


def plus_transpose(matrix: Any, workers: Workers) -> Any:
    """Return the sum of a CSR matrix and its transpose, with sorted rows and without zeros.

    The entries of the given matrix may be sorted in place. Beyond 100,000 rows, the transpose is never stored as a
    whole: the peak of memory is that of the matrix and the sum.
    """
    n_rows = matrix.shape[0]
    if n_rows <= MAX_BY_SCIPY:
        total = matrix + matrix.T.tocsr()
        total.sort_indices()
        total.eliminate_zeros()
        return total
    parts = (matrix.indptr, matrix.indices, matrix.data)
    workers.rows(sort_rows, n_rows, *parts, work=100.0 * matrix.nnz)
    edges = np.linspace(0, n_rows, BLOCKS + 1).astype(np.int64)
    starts = np.zeros(n_rows + 1, np.int64)
    options = {"work": 100.0 * matrix.nnz, "alignment": 1}
    nothing = (np.empty(0, matrix.indices.dtype), np.empty(0, matrix.dtype))
    workers.rows(_sum_blocks, BLOCKS, edges, *parts, starts, *nothing, **options)
    np.cumsum(starts, out=starts)
    indices, data = np.empty(starts[-1], matrix.indices.dtype), np.empty(starts[-1], matrix.dtype)
    if starts[-1]:
        workers.rows(_sum_blocks, BLOCKS, edges, *parts, starts, indices, data, **options)
    return scipy.sparse.csr_matrix((data, indices, starts), matrix.shape)
