"""Threads for compiled kernels, and the limit of one thread on BLAS and OpenMP meanwhile."""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache, partial
from itertools import pairwise
from threading import Lock, get_ident
from typing import Any

import joblib
from threadpoolctl import ThreadpoolController

# Elementary operations below which handing work to another thread costs more than it saves. Tests set it to 0.
MIN_WORK = 1_000_000
_CHUNKS_PER_THREAD = 4
_ALIGNMENT = 64  # kernels may process up to this many rows together
_QUIET = 10.0  # seconds between reports


def effective_n_jobs(n_jobs: int | None) -> int:
    """Return the number of threads for ``n_jobs``: None and -1 mean all usable cores, -2 all but one.

    Usable are fewer cores in workers of joblib and Dask, and if ``OMP_NUM_THREADS`` or ``NUMBA_NUM_THREADS`` is set.
    """
    n_jobs = -1 if n_jobs is None else n_jobs
    return max(1, _usable_cores() + 1 + n_jobs) if n_jobs < 0 else n_jobs


def _usable_cores() -> int:
    cores = int(joblib.cpu_count())
    # Dask comes first: it sets OMP_NUM_THREADS=1 in its workers, whatever their number of threads.
    distributed: Any = sys.modules.get("distributed")  # imported in every Dask task
    with suppress(ValueError, AttributeError):  # not a task, or distributed is not imported or not completely
        return min(cores, int(distributed.get_worker().state.nthreads))
    variables = [os.environ.get(name, "") for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")]  # joblib sets both
    limits = [int(match[1]) for value in variables if (match := re.match(r"\s*([1-9]\d*)", value))]  # 4 for "4,2"
    if limits:
        return min(cores, *limits)
    # A multiprocessing pool does not tell its workers how many they are; most have one per core.
    return 1 if multiprocessing.current_process().daemon else cores


@cache
def _libraries() -> tuple[list[Any], list[Any]]:
    """Return threadpoolctl's controllers: of libraries with one thread count per process, and with one per thread."""
    found: tuple[list[Any], list[Any]] = ([], [])
    for library in ThreadpoolController().lib_controllers:
        uses_openmp = "openmp" in (library.user_api, getattr(library, "threading_layer", ""))
        if library.num_threads is not None:
            found[uses_openmp or library.internal_api == "mkl"].append(library)
    return found


def _set_num_threads(libraries: list[Any], n_threads: list[int] | None = None) -> list[int]:
    """Set the thread counts of libraries, by default to one; return the counts before.

    From version 3.8 on, threadpoolctl ignores requests for OpenBLAS from all threads but the first, the controlling
    one. Fits run in any thread, so each request takes control, and gives it up again for other users of threadpoolctl.
    """
    before = [library.num_threads for library in libraries]
    for library, old, new in zip(libraries, before, n_threads or [1] * len(before), strict=True):
        if old != new:
            release_control = getattr(library, "clear_controlling_thread", lambda **_: None)
            release_control(force=True)
            library.set_num_threads(new)
            release_control(force=True)
    return before


_lock = Lock()  # of the two lists
_holders: list[int] = []  # threads that need one thread per library of the process, each as often as it entered
_before: list[int] = []  # thread counts when the first one entered, which the last one restores


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS and OpenMP to one thread, since the bits of their results depend on the number of threads.

    Little speed is lost: on narrow blocks their threads mostly spin and compete with those of :class:`Workers`.
    """
    of_process, of_thread = _libraries()
    holder = get_ident()
    with _lock:
        if not _holders:
            _before[:] = [library.num_threads for library in of_process]
        _holders.append(holder)
        _set_num_threads(of_process)
    before = _set_num_threads(of_thread)
    try:
        yield
    finally:
        _set_num_threads(of_thread, before)
        with _lock:
            _holders.remove(holder)
            if not _holders:
                _set_num_threads(of_process, _before)


def _after_fork_in_child() -> None:
    _lock.release()
    if _holders:  # only the thread that forked goes on in the child
        _holders[:] = [holder for holder in _holders if holder == get_ident()]
        if not _holders:
            _set_num_threads(_libraries()[0], _before)


if hasattr(os, "register_at_fork"):
    # With the lock held, no other thread is in the middle of a change, which the child would never see completed.
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_after_fork_in_child)


class Workers:
    """A pool of threads, to be used as a context manager.

    A kernel is called as ``kernel(start, stop, *args)`` and writes the rows ``start`` to ``stop`` of its outputs.
    Since every row is computed on its own, the result does not depend on how the rows are split.

    While the pool is open, BLAS and OpenMP are limited to one thread. If several threads of the process have open
    pools, as with joblib's threading backend, the pools without a positive ``n_jobs`` share the cores.
    """

    def __init__(self, n_jobs: int | None = None, *, verbose: bool = False) -> None:
        self._verbose, self._step, self._reported, self._began = verbose, "", time.perf_counter(), 0.0
        self._max_threads = effective_n_jobs(n_jobs)
        self._shares_cores = n_jobs is None or n_jobs < 0
        n_others = self._max_threads - 1
        initializer = partial(_set_num_threads, _libraries()[1])
        self._pool = ThreadPoolExecutor(n_others, "laptsne", initializer) if n_others else None

    @property
    def n_threads(self) -> int:
        """Number of threads to use now."""
        n_pools = len(set(_holders)) if self._shares_cores else 1
        return max(1, self._max_threads // max(1, n_pools))

    def __enter__(self) -> Workers:
        self._blas = single_threaded_blas()
        self._blas.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._blas.__exit__(None, None, None)
        if self._pool is not None:
            self._pool.shutdown()

    def report(self, step: str = "", done: float = 0.0) -> None:
        """Print the current step on standard error if verbose, every ten seconds, and the time that it still takes.

        The rest is assumed to take as long as what is ``done``, in proportion; the clock starts at 0.
        """
        now, self._step = time.perf_counter(), step or self._step
        self._began = self._began if done else now
        if self._verbose and now - self._reported > _QUIET and done < 1:
            left = f": {done:.0%} done, about {(now - self._began) * (1 / done - 1):.0f} s left" if done else ""
            print(f"[laptsne] {self._step}{left}", file=sys.stderr)
            self._reported = now

    def rows(
        self, kernel: Callable[..., None], n_rows: int, *args: Any, work: float, alignment: int = _ALIGNMENT
    ) -> None:
        """Run ``kernel`` over all rows, in this thread only if ``work``, a rough number of operations, is little.

        Chunks of rows start at multiples of ``alignment``.
        """
        with _lock:
            _set_num_threads(_libraries()[0])  # again, if other code has raised the thread counts since
        n_threads = self.n_threads  # read once: pools of other threads may open and close meanwhile
        n_blocks = -(-n_rows // alignment)
        if self._pool is None or n_threads == 1 or n_blocks < 2 or work < MIN_WORK:
            kernel(0, n_rows, *args)
            return
        n_chunks = min(n_blocks, n_threads * _CHUNKS_PER_THREAD)
        edges = [min(n_blocks * c // n_chunks * alignment, n_rows) for c in range(n_chunks + 1)]
        chunks = deque([*pairwise(edges), *[None] * n_threads])  # of which each thread finds one None

        def run_chunks() -> None:
            for chunk in iter(chunks.popleft, None):  # of threads without the interpreter lock as well
                kernel(*chunk, *args)

        others = [self._pool.submit(run_chunks) for _ in range(n_threads - 1)]
        run_chunks()
        for other in others:
            other.result()
