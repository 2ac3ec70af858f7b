"""Threads that share the rows of a kernel among them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from types import TracebackType
from typing import Any

import joblib
from threadpoolctl import threadpool_limits

# Below this many elementary operations, handing work to another thread costs more than it saves.
_MIN_WORK = 1_000_000
_CHUNKS_PER_THREAD = 4
_lock = threading.Lock()
_n_narrow = 0
_limits: Any = None
_ALIGNMENT = 64  # kernels may take that many rows together


def effective_n_jobs(n_jobs: int | None) -> int:
    """Number of threads for ``n_jobs``: None and -1 are all cores this process may use, -2 all but one.

    Examples
    --------
    >>> from laptsne.workers import effective_n_jobs
    >>> effective_n_jobs(3)
    3
    """
    if n_jobs is None:
        n_jobs = -1
    if n_jobs < 0:
        return max(1, int(joblib.cpu_count()) + 1 + n_jobs)
    return n_jobs


@contextmanager
def narrow_blas() -> Iterator[None]:
    """Hold BLAS to one thread: for narrow blocks its threads gain nothing, and they wait by spinning, in our way.

    The setting belongs to the process, so the first fit that runs makes it and the last that ends takes it back.
    """
    global _n_narrow, _limits  # noqa: PLW0603
    with _lock:
        if _n_narrow == 0:
            _limits = threadpool_limits(1, user_api="blas")
        _n_narrow += 1
    try:
        yield
    finally:
        with _lock:
            _n_narrow -= 1
            if _n_narrow == 0:
                _limits.restore_original_limits()


class Workers:
    """A pool of threads, to be used as a context manager.

    A kernel is called as ``kernel(start, stop, *args)`` and writes the rows ``start`` to ``stop`` of its outputs.
    Since every row is computed by itself, the result does not depend on how the rows are split.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_threads = effective_n_jobs(n_jobs)
        self._pool = ThreadPoolExecutor(self.n_threads - 1) if self.n_threads > 1 else None

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def rows(
        self, kernel: Callable[..., None], n_rows: int, *args: Any, work: float, alignment: int = _ALIGNMENT
    ) -> None:
        """Run ``kernel`` over all rows; ``work`` is the rough number of its elementary operations.

        Chunks of rows begin at multiples of ``alignment``.
        """
        if self._pool is None or work < _MIN_WORK:
            kernel(0, n_rows, *args)
            return
        n_blocks = -(-n_rows // alignment)
        n_chunks = min(n_blocks, self.n_threads * _CHUNKS_PER_THREAD)
        edges = [min(n_blocks * c // n_chunks * alignment, n_rows) for c in range(n_chunks + 1)]
        chunks = iter(list(pairwise(edges)))

        def take_chunks() -> None:
            for start, stop in chunks:
                kernel(start, stop, *args)

        others = [self._pool.submit(take_chunks) for _ in range(self.n_threads - 1)]
        take_chunks()
        for other in others:
            other.result()
