"""Timings shared by several benchmarks."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from laptsne._runtime.threads import Workers

__all__ = ["THREADS", "Comparison", "median_seconds", "seconds"]

THREADS = 2


def seconds(function: Callable[[], Any]) -> float:
    """Return the time of one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def median_seconds(function: Callable[[], Any], repeats: int) -> float:
    """Return the median time of a call; there is no warm-up."""
    return statistics.median(seconds(function) for _ in range(repeats))


@dataclass
class Comparison:
    """Our implementation compared with that of a library: median seconds, and whether results depend on threads.

    Attributes
    ----------
    seconds : pair of float
        Ours and the library's.
    same_bits : pair of str
        "yes" if one and two threads return identical results, else "no"; ours and the library's.
    """

    seconds: tuple[float, float]
    same_bits: tuple[str, str]

    @classmethod
    def of(cls, ours: Callable[[Workers], Any], library: Callable[[int], Any], repeats: int) -> Comparison:
        """Compare functions that return sequences of arrays; the library's is called with the number of threads."""
        return cls(_alternating(ours, library, repeats), _same_bits(ours, library))

    @property
    def ratio(self) -> float:
        """Our time relative to the library's."""
        return self.seconds[0] / self.seconds[1]


def _alternating(ours: Callable[[Workers], Any], library: Callable[[int], Any], repeats: int) -> tuple[float, float]:
    """Time both in turn, after a warm-up.

    The library is timed with one and with two threads, and the faster counts: threads that spin while they wait cost
    more than they gain if blocks are narrow.
    """
    mine: list[float] = []
    others: dict[int, list[float]] = {1: [], THREADS: []}
    for _ in range(repeats + 1):
        # Open workers limit BLAS and OpenMP to one thread, so the library runs outside.
        with Workers(THREADS) as workers:
            mine.append(seconds(lambda workers=workers: ours(workers)))
        for n_threads, taken in others.items():
            with threadpool_limits(n_threads):
                taken.append(seconds(lambda n_threads=n_threads: library(n_threads)))
    return statistics.median(mine[1:]), min(statistics.median(taken[1:]) for taken in others.values())


def _same_bits(ours: Callable[[Workers], Any], library: Callable[[int], Any]) -> tuple[str, str]:
    results: tuple[list[Any], list[Any]] = [], []
    for n_threads in (1, THREADS, 1, THREADS):
        with Workers(n_threads) as workers:
            results[0].append(ours(workers))
        with threadpool_limits(n_threads):
            results[1].append(library(n_threads))
    return _identical(results[0]), _identical(results[1])


def _identical(results: list[Any]) -> str:
    same = all(np.array_equal(a, b) for other in results[1:] for a, b in zip(results[0], other, strict=True))
    return "yes" if same else "no"
