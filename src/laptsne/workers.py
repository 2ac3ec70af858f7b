"""Threads that share the rows of a kernel among them."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections import Counter
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
_owners: Counter[int] = Counter()  # threads in which pools are open, and how many in each
_ALIGNMENT = 64  # kernels may take that many rows together


def effective_n_jobs(n_jobs: int | None) -> int:
    """Number of threads for ``n_jobs``: None and -1 are all cores this process may use, -2 all but one.

    What a process may use is less than the machine has in a worker of joblib or Dask, whose siblings have the rest, and
    where ``OMP_NUM_THREADS`` or ``NUMBA_NUM_THREADS`` says so. A positive number is taken as it is.

    Examples
    --------
    >>> from laptsne.workers import effective_n_jobs
    >>> effective_n_jobs(3)
    3
    """
    if n_jobs is None:
        n_jobs = -1
    if n_jobs < 0:
        return max(1, _usable_cores() + 1 + n_jobs)
    return n_jobs


def _usable_cores() -> int:
    """Cores for this process, or for this worker of Dask."""
    cores = int(joblib.cpu_count())
    of_dask = _dask_threads()
    if of_dask:  # asked first: Dask holds OpenMP to one thread, however many its workers have
        return min(cores, of_dask)
    said = [_number_in(name) for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")]  # joblib sets both in its workers
    if any(said):
        return min(cores, *filter(None, said))
    # A pool of multiprocessing does not say how many processes it has; most have one a core.
    return 1 if multiprocessing.current_process().daemon else cores


def _dask_threads() -> int:
    """Threads of the worker of Dask that runs the present task; 0 where there is none."""
    distributed = sys.modules.get("distributed")  # a task of Dask has loaded it
    if distributed is None:
        return 0
    try:
        return int(distributed.get_worker().state.nthreads)
    except (ValueError, AttributeError):  # not a task; or half loaded, in another thread
        return 0


def _number_in(variable: str) -> int:
    """The first number in a variable of the environment, such as 4 of "4,2"; 0 where there is none."""
    first = os.environ.get(variable, "").partition(",")[0].strip()
    return int(first) if first.isdecimal() else 0


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

    Where pools are open in several threads of the process, as with joblib's threads, those without a number of their
    own share its cores.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self._most = effective_n_jobs(n_jobs)
        self._shares = n_jobs is None or n_jobs < 0
        self._pool = ThreadPoolExecutor(self._most - 1, "laptsne") if self._most > 1 else None
        self._owner = 0

    @property
    def n_threads(self) -> int:
        """Number of threads to use now."""
        return max(1, self._most // max(1, len(_owners))) if self._shares else self._most

    def __enter__(self) -> Workers:
        self._owner = threading.get_ident()
        with _lock:
            _owners[self._owner] += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _lock:
            _owners[self._owner] -= 1
            if not _owners[self._owner]:
                del _owners[self._owner]
        if self._pool is not None:
            self._pool.shutdown()

    def rows(
        self, kernel: Callable[..., None], n_rows: int, *args: Any, work: float, alignment: int = _ALIGNMENT
    ) -> None:
        """Run ``kernel`` over all rows; ``work`` is the rough number of its elementary operations.

        Chunks of rows begin at multiples of ``alignment``.
        """
        n_threads = self.n_threads  # others may begin or end meanwhile
        if self._pool is None or n_threads == 1 or work < _MIN_WORK:
            kernel(0, n_rows, *args)
            return
        n_blocks = -(-n_rows // alignment)
        n_chunks = min(n_blocks, n_threads * _CHUNKS_PER_THREAD)
        edges = [min(n_blocks * c // n_chunks * alignment, n_rows) for c in range(n_chunks + 1)]
        chunks = iter(list(pairwise(edges)))

        def take_chunks() -> None:
            for start, stop in chunks:
                kernel(start, stop, *args)

        others = [self._pool.submit(take_chunks) for _ in range(n_threads - 1)]
        take_chunks()
        for other in others:
            other.result()
