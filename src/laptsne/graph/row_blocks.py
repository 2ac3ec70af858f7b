"""Sparse matrices that are computed in blocks of rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils import gen_batches

from laptsne._runtime.threads import Workers

_GROWN = 0.95  # of the size to be expected from the rows so far


def stacked(make: Callable[[slice], Any], shape: tuple[int, int], n_rows: int, dtype: Any, workers: Workers) -> Any:
    """Return the CSR matrix whose blocks of ``n_rows`` rows a function makes, as many at once as there are threads."""
    batches = list(gen_batches(shape[0], n_rows))
    indptr, indices, data = np.zeros(shape[0] + 1, np.int64), np.empty(0, np.int32), np.empty(0, dtype)
    for first in range(0, len(batches), workers.n_threads):
        chosen = batches[first : first + workers.n_threads]
        workers.report(done=first / len(batches))
        blocks: list[Any] = [None] * len(chosen)

        def run(start: int, stop: int, chosen: list[slice] = chosen, blocks: list[Any] = blocks) -> None:
            blocks[start:stop] = [make(rows) for rows in chosen[start:stop]]

        workers.rows(run, len(chosen), work=np.inf, alignment=1)
        for rows in chosen:
            block, start = blocks.pop(0), int(indptr[rows.start])
            indptr[rows.start + 1 : rows.stop + 1] = start + block.indptr[1:]
            stop = start + block.nnz
            for whole, part in ((indices, block.indices), (data, block.data)):
                if stop > whole.size:  # in place, where a list would double the memory; to nearly the final size
                    whole.resize(max(int(_GROWN * stop * shape[0] / rows.stop), stop), refcheck=False)
                whole[start:stop] = part
    for whole in (indices, data):
        whole.resize(indptr[-1], refcheck=False)
    return scipy.sparse.csr_matrix((data, indices, indptr), shape)
