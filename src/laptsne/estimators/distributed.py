"""Dask arrays: sample their blocks, and transform them block by block.

Dask is an optional dependency and slow to import, so it is imported only inside the functions that need it.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from laptsne._runtime.typing import Array
from laptsne.fitted_map import FittedMap
from laptsne.transform.sampling import checked_block, joined, sample_of


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


def sampled(X: Any, n_wanted: int, seed: int) -> tuple[Array, Array]:
    """Return a sample of X, as :func:`rows_of` returns it. Only sampled rows move from where their block is."""
    from dask.delayed import delayed

    offsets, parts = np.cumsum([0, *X.chunks[0][:-1]]), []
    for number, (block, offset) in enumerate(zip(X.to_delayed().ravel(), offsets, strict=True)):
        rows = delayed(checked_block, pure=True)(block, number)
        parts.append(delayed(sample_of, pure=True)(rows, int(offset), X.shape[0], n_wanted, seed))
    sample: tuple[Array, Array] = delayed(joined)(parts).compute()
    return sample


def mapped(X: Any, fitted: FittedMap, n_jobs: int | None = None, *, labels: bool = False) -> Any:
    """Return the coordinates of all rows, or their clusters, as a lazy Dask array with the blocks of X.

    Each block takes ``n_jobs`` threads, by default one, since Dask runs several blocks at once.
    """
    from dask.delayed import delayed

    X = X.to_dask_array() if hasattr(X, "to_dask_array") else X
    if X.ndim != 2 or X.shape[1] != fitted.n_features:
        raise ValueError(f"X has shape {X.shape}, but the model was fitted with {fitted.n_features} features.")
    X = X.rechunk({1: -1})
    # What is lazy is computed once here rather than once per worker; what only a fit needs stays here.
    sent = replace(fitted.computed(n_jobs), affinities=None, method=None)
    n_components, dtype = fitted.embedding.shape[1], np.dtype(np.int64) if labels else fitted.embedding.dtype
    shape: dict[str, Any] = {"drop_axis": 1} if labels else {"chunks": (X.chunks[0], (n_components,))}
    meta = np.empty((0,) if labels else (0, n_components), dtype)
    options = {"fitted": delayed(sent, pure=True), "n_threads": max(n_jobs or 1, 1), "labels": labels}
    return X.map_blocks(_placed, **options, dtype=dtype, meta=meta, **shape)


def _placed(block: Any, fitted: FittedMap, n_threads: int, labels: bool, block_info: Any = None) -> Any:  # noqa: FBT001
    number = block_info[0]["chunk-location"][0] if block_info else "?"
    rows = checked_block(block, number, accept_sparse="csr")
    return fitted.predict(rows, n_threads) if labels else fitted.place(rows, n_threads)
