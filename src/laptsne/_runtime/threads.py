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
from functools import cache
from itertools import pairwise
from types import TracebackType
from typing import Any

import joblib
from threadpoolctl import ThreadpoolController

# Below this many elementary operations, handing work to another thread costs more than it saves.
_MIN_WORK = 1_000_000
_CHUNKS_PER_THREAD = 4
_lock = threading.Lock()
_n_narrow = 0
_before: list[int] = []  # threads of the libraries that all fits hold to one
_owners: Counter[int] = Counter()  # threads in which pools are open, and how many in each
_ALIGNMENT = 64  # kernels may take that many rows together


def effective_n_jobs(n_jobs: int | None) -> int:
    """Number of threads for ``n_jobs``: None and -1 are all cores this process may use, -2 all but one.

    What a process may use is less than the machine has in a worker of joblib or Dask, whose siblings have the rest, and
    where ``OMP_NUM_THREADS`` or ``NUMBA_NUM_THREADS`` says so. A positive number is taken as it is.

    Examples
    --------
    >>> from laptsne._runtime.threads import effective_n_jobs
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


@cache
def _libraries() -> tuple[list[Any], list[Any]]:
    """Libraries with threads of their own: those with one number of threads for all, and those with one a thread."""
    found = [lib for lib in ThreadpoolController().lib_controllers if lib.num_threads is not None]
    return [lib for lib in found if not _is_told_by_thread(lib)], [lib for lib in found if _is_told_by_thread(lib)]


def _is_told_by_thread(library: Any) -> bool:
    by_openmp = library.user_api == "openmp" or getattr(library, "threading_layer", "") == "openmp"
    return by_openmp or library.internal_api == "mkl"


def _tell(library: Any, n_threads: int) -> None:
    if library.num_threads != n_threads:
        # From version 3.8 on, threadpoolctl heeds only the first thread that ever asked; here a count guards it.
        getattr(library, "_real_set_num_threads", library.set_num_threads)(n_threads)


def _narrow(libraries: list[Any]) -> list[int]:
    """Hold libraries to one thread; return how many they had."""
    before = [library.num_threads for library in libraries]
    for library in libraries:
        _tell(library, 1)
    return before


def _widen(libraries: list[Any], before: list[int]) -> None:
    for library, n_threads in zip(libraries, before, strict=True):
        _tell(library, n_threads)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Hold BLAS and OpenMP to one thread: with more of them their results have other bits.

    Nor would their threads gain much: for narrow blocks they mostly wait, by spinning, in the way of ours. Of BLAS the
    setting mostly belongs to the process, so the first fit that runs makes it and the last that ends takes it back.
    """
    global _n_narrow, _before  # noqa: PLW0603
    shared, own = _libraries()
    with _lock:
        found = _narrow(shared)
        if _n_narrow == 0:
            _before = found
        _n_narrow += 1
    mine = _narrow(own)
    try:
        yield
    finally:
        _widen(own, mine)
        with _lock:
            _n_narrow -= 1
            if _n_narrow == 0:
                _widen(shared, _before)


def _narrow_thread() -> None:
    """Hold what has a number of threads in every thread to one, for the rest of the life of this thread."""
    _narrow(_libraries()[1])


def _forget_other_threads() -> None:
    """Begin anew in a forked process, in which no other thread goes on."""
    global _lock, _n_narrow  # noqa: PLW0603
    _lock = threading.Lock()
    _owners.clear()
    if _n_narrow:
        _n_narrow = 0
        _widen(_libraries()[0], _before)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)


class Workers:
    """A pool of threads, to be used as a context manager.

    A kernel is called as ``kernel(start, stop, *args)`` and writes the rows ``start`` to ``stop`` of its outputs.
    Since every row is computed by itself, the result does not depend on how the rows are split.

    While it is open, BLAS and OpenMP have one thread, and what they compute has the same bits everywhere.

    Where pools are open in several threads of the process, as with joblib's threads, those without a number of their
    own share its cores.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self._most = effective_n_jobs(n_jobs)
        self._shares = n_jobs is None or n_jobs < 0
        self._pool: ThreadPoolExecutor | None = None
        if self._most > 1:
            self._pool = ThreadPoolExecutor(self._most - 1, "laptsne", initializer=_narrow_thread)
        self._owner = 0

    @property
    def n_threads(self) -> int:
        """Number of threads to use now."""
        return max(1, self._most // max(1, len(_owners))) if self._shares else self._most

    def __enter__(self) -> Workers:
        self._owner = threading.get_ident()
        with _lock:
            _owners[self._owner] += 1
        self._narrow = single_threaded_blas()
        self._narrow.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._narrow.__exit__(None, None, None)
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
        if _n_narrow:
            for library in _libraries()[0]:
                _tell(library, 1)  # again: others in this process may have given BLAS its threads back
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
