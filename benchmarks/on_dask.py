"""LandmarkLaptSNE for millions of rows on two Dask workers: time of fit and transform, and memory of all processes.

python benchmarks/on_dask.py [--rows 5000000 10000000] [--out-of-sample placement]

Rows with 50 dimensions are generated block by block on the workers, and the result is reduced block by block, as if it
were written to a file. Memory is the sum over this process and its children, sampled ten times per second; shared pages
count once (PSS). Needs ``pip install ".[distributed,benchmark]"``.
"""

from __future__ import annotations

import argparse
import threading
import time
from itertools import pairwise
from pathlib import Path

import dask.array as da
import numpy as np
import psutil
from distributed import Client, LocalCluster

from laptsne import LandmarkLaptSNE

N_FEATURES, BLOCK = 50, 100_000
N_GROUPS = 100


def make_block(block_info: dict | None = None) -> np.ndarray:
    info = block_info[None]
    rng = np.random.default_rng([0, info["chunk-location"][0]])
    n = info["chunk-shape"][0]
    centres = np.random.default_rng(1).normal(scale=4, size=(N_GROUPS, N_FEATURES)).astype(np.float32)
    return centres[rng.integers(0, N_GROUPS, n)] + rng.standard_normal((n, N_FEATURES), dtype=np.float32)


def rows(n: int) -> da.Array:
    sizes = [BLOCK] * (n // BLOCK) + ([n % BLOCK] if n % BLOCK else [])
    return da.map_blocks(make_block, chunks=(tuple(sizes), (N_FEATURES,)), dtype=np.float32)


class Memory:
    """Peak memory of this process and its children, in GiB."""

    def __enter__(self) -> Memory:
        self.peak, self._stop = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        me = psutil.Process()
        while not self._stop.wait(0.1):
            total = 0
            for process in (me, *me.children(recursive=True)):
                try:
                    lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
                except OSError:  # the process has ended
                    continue
                total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
            self.peak = max(self.peak, total / 2**20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="*", default=[5_000_000, 10_000_000])
    parser.add_argument("--n-landmarks", type=int, default=1000)
    parser.add_argument("--out-of-sample", default="placement")
    args = parser.parse_args()
    options = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
    placing = []
    with LocalCluster(**options) as cluster, Client(cluster):
        settings = {"out_of_sample": args.out_of_sample, "random_state": 0}
        # Warm up: imports and compiled kernels on the workers.
        warm = LandmarkLaptSNE(200, **settings).fit_transform(rows(4 * BLOCK))
        warm.sum().compute()
        for n in args.rows:
            with Memory() as memory:
                start = time.perf_counter()
                model = LandmarkLaptSNE(args.n_landmarks, **settings).fit(rows(n))
                fitted = time.perf_counter()
                spread = model.embedding_.std(axis=0).compute()
                end = time.perf_counter()
            placing.append(end - fitted)
            print(
                f"{n:>11,} rows: fit {fitted - start:6.1f} s, placing {end - fitted:6.1f} s, "
                f"{n / (end - fitted):10,.0f} rows per second, peak {memory.peak:.2f} GiB, spread {spread.round(2)}",
                flush=True,
            )
    for (n, first), (m, second) in pairwise(zip(args.rows, placing, strict=True)):
        print(f"slope of placing from {n:,} to {m:,} rows: {np.log(second / first) / np.log(m / n):.2f}")


if __name__ == "__main__":
    main()
