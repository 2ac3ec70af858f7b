"""Have fits become slower? CPU time of small fits relative to a calibration loop on the same machine.

python benchmarks/regression.py    # 20 s; the exit code is 1 if a ratio is more than twice the one stored here

Seconds differ between machines, and wall time on a busy machine; ratios of CPU times, minima over alternating repeats
on one thread, hardly do. The calibration does what fits do: matrix products, Fourier transforms and exponentials in
single precision. After a change that is meant to change the speed, store the printed ratios.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft
from shared import command_line
from threadpoolctl import threadpool_limits

from laptsne import LaptSNE

REPEATS = 3
MAX_SLOWDOWN = 2.0
# Points, settings, and the CPU time of a fit relative to that of the calibration.
Workloads = dict[str, tuple[int, dict[str, Any], float]]
WORKLOADS: Workloads = {
    "2,000 points, all pairs": (2000, {"max_iter": 100}, 2.0),
    "7,000 points, Fourier": (7000, {"max_iter": 50}, 5.9),
    "12,000 points, neighbours and clusters": (12_000, {"max_iter": 2}, 6.2),
}


def points(n: int) -> np.ndarray:
    """Return points of ten clusters in 20 dimensions."""
    rng = np.random.default_rng(0)
    return (rng.normal(scale=2, size=(10, 20))[rng.integers(0, 10, n)] + rng.normal(size=(n, 20))).astype(np.float32)


def calibration() -> None:
    """Do a fixed amount of work of the kinds that fits consist of."""
    rng = np.random.default_rng(0)
    block = rng.standard_normal((1024, 1024), dtype=np.float32)
    for _ in range(6):
        np.exp(-np.abs(block @ block.T) / 1024)
        scipy.fft.irfft2(scipy.fft.rfft2(block))
        np.sort(block, axis=1)


def cpu_seconds(function: Callable[[], Any]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def main(workloads: Workloads = WORKLOADS, seconds_of: Callable[[Callable[[], Any]], float] = cpu_seconds) -> int:
    slow = []
    with threadpool_limits(1):
        for name, (n, settings, stored) in workloads.items():
            X = points(n)
            model = LaptSNE(n_jobs=1, random_state=0, **settings)
            model.fit(X)  # compiles
            pairs = [(seconds_of(lambda: model.fit(X)), seconds_of(calibration)) for _ in range(REPEATS)]  # noqa: B023
            seconds, unit = (min(times) for times in zip(*pairs, strict=True))
            ratio = seconds / unit
            print(f"{name}: {seconds:.2f} s / {unit:.2f} s = {ratio:.2f}, stored {stored:.2f}", flush=True)
            if ratio > MAX_SLOWDOWN * stored:
                slow.append(name)
    if slow:
        print(f"More than {MAX_SLOWDOWN:g} times slower than stored: {'; '.join(slow)}")
    return int(bool(slow))


def parser() -> argparse.ArgumentParser:
    return command_line(__doc__)


if __name__ == "__main__":
    parser().parse_args()
    sys.exit(main())
