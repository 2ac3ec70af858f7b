"""Data in the blocks of a Dask array: work goes to the blocks, and they are never gathered.

Dask is loaded only where it is needed: it is an extra, and takes a while.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from laptsne._runtime.threads import Workers
from laptsne.kmeans import Parts, Rows, Sampler
from laptsne.transform import Network, Placement

Array = NDArray[Any]
T = TypeVar("T")


def is_dask(X: Any) -> bool:
    """Whether X is a Dask array or data frame, without loading Dask."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(X, "dask")


def rows_of(X: Any) -> Any:
    """A Dask array of whole rows, with blocks of known sizes."""
    import dask.array as da

    X = X.to_dask_array() if hasattr(X, "to_dask_array") else X
    if not isinstance(X, da.Array) or X.ndim != 2:
        raise ValueError(f"X must be a Dask array of two dimensions; got {X!r}.")
    if np.isnan(X.shape[0]):
        X = X.compute_chunk_sizes()
    return X.rechunk({1: -1})


@dataclass(frozen=True)
class DaskParts(Parts):
    """Rows of the blocks of a Dask array that k-means sees, held by the workers.

    Parameters
    ----------
    parts : list of Dask's delayed Rows
    n_sampled : int
        Number of rows that k-means sees.
    """

    parts: list[Any]
    n_sampled: int

    @classmethod
    def sampled(cls, X: Any, sampler: Sampler) -> Self:
        """Choose rows of every block."""
        import dask
        from dask.delayed import delayed

        n_rows = X.shape[0]
        offsets = np.append(0, np.cumsum(X.chunks[0]))
        choose = delayed(_chosen, pure=True)
        blocks = [
            choose(block, int(offset), n_rows, sampler, number)
            for number, (block, offset) in enumerate(zip(X.to_delayed().ravel(), offsets, strict=False))
        ]
        parts = list(dask.persist(*blocks))
        counts = dask.compute(*(delayed(_n_rows)(part) for part in parts))
        return cls([part for part, n in zip(parts, counts, strict=True) if n], sum(counts))

    def reduced(self, function: Callable[..., T], combine: Callable[[T, T], T], *args: Any) -> T:
        """Reduce part by part where the parts are, then two by two."""
        from dask.delayed import delayed

        shared = [delayed(arg) for arg in args]
        values = [delayed(function, pure=True)(part, *shared, 1) for part in self.parts]
        join = delayed(combine, pure=True)
        while len(values) > 1:
            values = [join(*values[i : i + 2]) if i + 1 < len(values) else values[i] for i in range(0, len(values), 2)]
        return values[0].compute()  # type: ignore[no-any-return]

    def on_one_worker(self, function: Callable[..., T], *args: Any) -> T:
        """Run a function of ``args`` and all parts in one of the workers."""
        from dask.delayed import delayed

        return delayed(function)(*args, *self.parts).compute()  # type: ignore[no-any-return]


def mapped(X: Any, mapping: Placement | Network) -> Any:
    """Places of all rows, as a Dask array that is not computed yet."""
    from dask.delayed import delayed

    X = X.to_dask_array() if hasattr(X, "to_dask_array") else X
    X = X.rechunk({1: -1})
    if isinstance(mapping, Placement):
        with Workers() as workers:
            mapping.potential(workers)  # once, here, and not in every worker
    return X.map_blocks(
        _placed,
        mapping=delayed(mapping, pure=True),
        dtype=mapping.dtype,
        chunks=(X.chunks[0], (mapping.n_components,)),
        meta=np.empty((0, mapping.n_components), mapping.dtype),
    )


def _placed(block: Any, mapping: Placement | Network, block_info: Any = None) -> Array:
    number = block_info[0]["chunk-location"][0] if block_info else "?"
    with Workers(1) as workers:
        return mapping.place(_checked(block, number), workers)


def _checked(block: Any, number: Any) -> Any:
    """The block as an array of numbers; an error says which it was."""
    try:
        return check_array(block, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=0)
    except ValueError as error:
        raise ValueError(f"Block {number} of X: {error}") from error


def _chosen(block: Array, offset: int, n_rows: int, sampler: Sampler, number: int) -> Rows:
    block = _checked(block, number)
    indices = np.arange(offset, offset + len(block))
    return Rows(indices, block).where(sampler.chosen(indices, n_rows))


def _n_rows(rows: Rows) -> int:
    return int(rows.indices.size)
