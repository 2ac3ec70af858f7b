"""Dask arrays: sample their blocks, fit on one worker, and transform them block by block.

Fitting moves the sample of rows to one worker, and the fitted state from there to the caller. Transforming sends the
fitted state to the workers and leaves the rows in their blocks. Dask is an optional dependency and slow to import, so
it is imported only inside the functions that need it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from laptsne._runtime.threads import Workers
from laptsne.sampling import Sample, Sampler, checked_block
from laptsne.transform import Network, Placement


def is_dask(X: Any) -> bool:
    """Return whether X is a Dask array or data frame, without importing Dask."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(X, "dask")


def rows_of(X: Any) -> Any:
    """Return X as a Dask array whose blocks are whole rows of known number."""
    import dask.array as da

    X = X.to_dask_array() if hasattr(X, "to_dask_array") else X
    if not isinstance(X, da.Array) or X.ndim != 2:
        raise ValueError(f"X must be a Dask array with two dimensions, got {X!r}.")
    if np.isnan(X.shape[0]):
        X = X.compute_chunk_sizes()
    return X.rechunk({1: -1})


def on_one_worker(function: Callable[..., Any], X: Any, sampler: Sampler, *args: Any) -> Any:
    """Return ``function(sample, *args)``, called on one worker.

    Each block of X, as :func:`rows_of` returns it, is sampled on the worker that computes it; only sampled rows move.
    """
    from dask.delayed import delayed

    offsets = np.cumsum([0, *X.chunks[0][:-1]])
    sample_block = delayed(_block_sample, pure=True)
    parts = [
        sample_block(block, int(offset), X.shape[0], sampler, number)
        for number, (block, offset) in enumerate(zip(X.to_delayed().ravel(), offsets, strict=True))
    ]
    return delayed(function)(delayed(Sample.concatenated)(parts), *args).compute()


def mapped(X: Any, mapping: Placement | Network) -> Any:
    """Return the coordinates of all rows as a lazy Dask array with the blocks of X."""
    from dask.delayed import delayed

    X = X.to_dask_array() if hasattr(X, "to_dask_array") else X
    X = X.rechunk({1: -1})
    if isinstance(mapping, Placement):
        with Workers() as workers:
            mapping.potential(workers)  # once here rather than once per worker
    return X.map_blocks(
        _placed,
        mapping=delayed(mapping, pure=True),
        dtype=mapping.dtype,
        chunks=(X.chunks[0], (mapping.n_components,)),
        meta=np.empty((0, mapping.n_components), mapping.dtype),
    )


def _placed(block: Any, mapping: Placement | Network, block_info: Any = None) -> Any:
    number = block_info[0]["chunk-location"][0] if block_info else "?"
    with Workers(1) as workers:
        return mapping.place(checked_block(block, number, accept_sparse="csr"), workers)


def _block_sample(block: Any, offset: int, n_rows: int, sampler: Sampler, number: int) -> Sample:
    return sampler.block_sample(checked_block(block, number), offset, n_rows)
