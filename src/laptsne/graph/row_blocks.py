"""Sparse matrices that are computed in blocks of rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils import gen_batches

from laptsne._runtime.threads import Workers


def stacked(make: Callable[[slice], Any], shape: tuple[int, int], n_rows: int, dtype: Any, workers: Workers) -> Any:
    """Return the CSR matrix whose blocks of ``n_rows`` rows a function makes, as many at once as there are threads."""
    batches = list(gen_batches(shape[0], n_rows))
    indptr, indices, data = np.zeros(shape[0] + 1, np.int64), np.empty(0, np.int32), np.empty(0, dtype)
    for first in range(0, len(batches), workers.n_threads):
        chosen = batches[first : first + workers.n_threads]
        blocks: list[Any] = [None] * len(chosen)

        def run(start: int, stop: int, chosen: list[slice] = chosen, blocks: list[Any] = blocks) -> None:
            blocks[start:stop] = [make(rows) for rows in chosen[start:stop]]

        workers.rows(run, len(chosen), work=np.inf, alignment=1)
        for rows in chosen:
            block, start = blocks.pop(0), data.size
            indptr[rows.start + 1 : rows.stop + 1] = start + block.indptr[1:]
            for whole, part in ((indices, block.indices), (data, block.data)):
                whole.resize(start + part.size, refcheck=False)  # in place, where a list would double the memory
                whole[start:] = part
    return scipy.sparse.csr_matrix((data, indices, indptr), shape)
