"""Threads for compiled kernels, and the limit of one thread on BLAS and OpenMP meanwhile."""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import count
from threading import Lock, get_ident
from typing import Any

import joblib
from threadpoolctl import ThreadpoolController

# Elementary operations below which handing work to another thread costs more than it saves. Tests set it to 0.
MIN_WORK = 1_000_000
_CHUNKS_PER_THREAD = 4
_ALIGNMENT = 64  # kernels may process up to this many rows together


def effective_n_jobs(n_jobs: int | None) -> int:
    """Return the number of threads for ``n_jobs``: None and -1 mean all usable cores, -2 all but one.

    Usable are fewer cores in workers of joblib and Dask, and if ``OMP_NUM_THREADS`` or ``NUMBA_NUM_THREADS`` is set.
    """
    n_jobs = -1 if n_jobs is None else n_jobs
    return max(1, _usable_cores() + 1 + n_jobs) if n_jobs < 0 else n_jobs


def _usable_cores() -> int:
    cores = int(joblib.cpu_count())
    # Dask comes first: it sets OMP_NUM_THREADS=1 in its workers, whatever their number of threads.
    if dask_threads := _dask_threads():
        return min(cores, dask_threads)
    variables = [os.environ.get(name, "") for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")]  # joblib sets both
    limits = [int(match[1]) for value in variables if (match := re.match(r"\s*([1-9]\d*)", value))]  # 4 for "4,2"
    if limits:
        return min(cores, *limits)
    # A multiprocessing pool does not tell its workers how many they are; most have one per core.
    return 1 if multiprocessing.current_process().daemon else cores


def _dask_threads() -> int:
    """Return the number of threads of the Dask worker that runs this task, 0 outside of Dask."""
    distributed: Any = sys.modules.get("distributed")  # imported in every Dask task
    try:
        return int(distributed.get_worker().state.nthreads)
    except (ValueError, AttributeError):  # not a task, or distributed is not imported or not completely
        return 0


@cache
def _libraries() -> tuple[list[Any], list[Any]]:
    """Return threadpoolctl's controllers: of libraries with one thread count per process, and with one per thread."""
    found: tuple[list[Any], list[Any]] = ([], [])
    for library in ThreadpoolController().lib_controllers:
        uses_openmp = "openmp" in (library.user_api, getattr(library, "threading_layer", ""))
        if library.num_threads is not None:
            found[uses_openmp or library.internal_api == "mkl"].append(library)
    return found


def _set_num_threads(libraries: list[Any], n_threads: list[int]) -> list[int]:
    """Set the thread counts of libraries; return the counts before.

    From version 3.8 on, threadpoolctl ignores requests for OpenBLAS from all threads but the first, the controlling
    one. Fits run in any thread, so each request takes control, and gives it up again for other users of threadpoolctl.
    """
    before = [library.num_threads for library in libraries]
    for library, old, new in zip(libraries, before, n_threads, strict=True):
        if old != new:
            release_control = getattr(library, "clear_controlling_thread", lambda **_: None)
            release_control(force=True)
            library.set_num_threads(new)
            release_control(force=True)
    return before


class _BlasLimit:
    """One thread for libraries whose thread count belongs to the process, as long as any thread holds the limit.

    The first holder sets the limit and the last one restores the thread counts from before.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.holders: Counter[int] = Counter()  # thread identifier: how many times it holds the limit
        self._before: list[int] = []

    def acquire(self, thread: int) -> None:
        with self.lock:
            if not self.holders:
                self._before = [library.num_threads for library in _libraries()[0]]
            self.holders[thread] += 1
        self.enforce()

    def release(self, thread: int) -> None:
        with self.lock:
            self.holders -= Counter([thread])
            self._restore_if_unused()

    def enforce(self) -> None:
        """Set the limit again if other code has raised the thread counts since."""
        libraries = _libraries()[0] if self.holders else []
        if any(library.num_threads != 1 for library in libraries):
            with self.lock:
                _set_num_threads(libraries, [1] * len(libraries))

    def after_fork_in_child(self) -> None:
        """Drop the other holders: only the thread that forked goes on in the child."""
        self.lock.release()
        if self.holders:
            thread = get_ident()
            self.holders = +Counter({thread: self.holders[thread]})
            self._restore_if_unused()

    def _restore_if_unused(self) -> None:
        if not self.holders:
            _set_num_threads(_libraries()[0], self._before)


_limit = _BlasLimit()

if hasattr(os, "register_at_fork"):
    # With the lock held, no other thread is in the middle of a change, which the child would never see completed.
    os.register_at_fork(before=_limit.lock.acquire, after_in_parent=_limit.lock.release)
    os.register_at_fork(after_in_child=_limit.after_fork_in_child)


def _limit_this_thread() -> list[int]:
    return _set_num_threads(_libraries()[1], [1] * len(_libraries()[1]))


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS and OpenMP to one thread, since the bits of their results depend on the number of threads.

    Little speed is lost: on narrow blocks their threads mostly spin and compete with those of :class:`Workers`.
    """
    thread = get_ident()
    _limit.acquire(thread)
    before = _limit_this_thread()
    try:
        yield
    finally:
        _set_num_threads(_libraries()[1], before)
        _limit.release(thread)


class Workers:
    """A pool of threads, to be used as a context manager.

    A kernel is called as ``kernel(start, stop, *args)`` and writes the rows ``start`` to ``stop`` of its outputs.
    Since every row is computed on its own, the result does not depend on how the rows are split.

    While the pool is open, BLAS and OpenMP are limited to one thread. If several threads of the process have open
    pools, as with joblib's threading backend, the pools without a positive ``n_jobs`` share the cores.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self._max_threads = effective_n_jobs(n_jobs)
        self._shares_cores = n_jobs is None or n_jobs < 0
        n_others = self._max_threads - 1
        self._pool = ThreadPoolExecutor(n_others, "laptsne", initializer=_limit_this_thread) if n_others else None

    @property
    def n_threads(self) -> int:
        """Number of threads to use now."""
        return max(1, self._max_threads // max(1, len(_limit.holders))) if self._shares_cores else self._max_threads

    def __enter__(self) -> Workers:
        self._blas = single_threaded_blas()
        self._blas.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._blas.__exit__(None, None, None)
        if self._pool is not None:
            self._pool.shutdown()

    def rows(
        self, kernel: Callable[..., None], n_rows: int, *args: Any, work: float, alignment: int = _ALIGNMENT
    ) -> None:
        """Run ``kernel`` over all rows, in this thread only if ``work``, a rough number of operations, is little.

        Chunks of rows start at multiples of ``alignment``.
        """
        _limit.enforce()
        n_threads = self.n_threads  # read once: pools of other threads may open and close meanwhile
        n_blocks = -(-n_rows // alignment)
        if self._pool is None or n_threads == 1 or n_blocks < 2 or work < MIN_WORK:
            kernel(0, n_rows, *args)
            return
        n_chunks = min(n_blocks, n_threads * _CHUNKS_PER_THREAD)
        edges = [min(n_blocks * c // n_chunks * alignment, n_rows) for c in range(n_chunks + 1)]
        # A shared iterator may skip or repeat values without the interpreter lock.
        chunks, lock = count(), Lock()

        def run_chunks() -> None:
            while True:
                with lock:
                    chunk = next(chunks)
                if chunk >= n_chunks:
                    return
                kernel(edges[chunk], edges[chunk + 1], *args)

        others = [self._pool.submit(run_chunks) for _ in range(n_threads - 1)]
        run_chunks()
        for other in others:
            other.result()
