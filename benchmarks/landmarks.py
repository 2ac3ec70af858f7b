"""How good are maps of landmarks, how are landmarks found, and how long do millions of rows take?

python benchmarks/landmarks.py mnist [--n-landmarks 10000] [--n-features 50 100] [--seeds 3]  # minutes per seed
python benchmarks/landmarks.py k-means [--n-landmarks 1000]                                   # variants: a minute
python benchmarks/landmarks.py dask [--rows 5000000 10000000]                                 # ten minutes

``mnist``: LandmarkLaptSNE on MNIST, reduced by PCA, with both values of ``out_of_sample``; the size of the network
depends on the number of features. The paper reports a 100-NN accuracy of 0.943 (on the training points, each its own
neighbour) and an NMI of 0.750. ``k-means``: CPU time and inertia on a Gaussian mixture of 100,000 points, one thread.

``dask``: time of fit and transform on two Dask workers, and memory of all processes. Rows with 50 dimensions are
generated block by block on the workers, and the result is reduced block by block, as if it were written to a file.
Memory is the sum over this process and its children, sampled ten times per second; shared pages count once (PSS).
Needs ``pip install ".[distributed,benchmark]"``.
"""

from __future__ import annotations

import argparse
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from shared import command_line, mixture, reduced
from sklearn.cluster import KMeans, MiniBatchKMeans
from threadpoolctl import threadpool_limits

from laptsne import LandmarkLaptSNE
from laptsne.metrics import cluster_scores, knn_accuracy


def score_mnist(args: argparse.Namespace) -> None:
    columns = ("seconds", "100-NN, paper", "cross-validated", "NMI", "SC", "DBI")
    print(f"{'':24}" + "".join(f"{column:>16}" for column in columns))
    for n_features in args.n_features:
        X, y = reduced("mnist", n_features)
        for out_of_sample in ("placement", "network"):
            rows = []
            for seed in range(args.seeds):
                start = time.perf_counter()
                model = LandmarkLaptSNE(
                    args.n_landmarks or 10_000, out_of_sample=out_of_sample, random_state=seed, n_jobs=2
                )
                Y = model.fit_transform(X)
                seconds = time.perf_counter() - start
                accuracy = [knn_accuracy(Y, y, 100, protocol=protocol) for protocol in ("paper", "cross-validated")]
                rows.append((seconds, *accuracy, *cluster_scores(Y, y)))
            cells = "".join(f"{value:16.4f}" for value in np.mean(rows, axis=0))
            print(f"{f'{n_features} features, {out_of_sample}':24}{cells}", flush=True)


def compare_k_means(args: argparse.Namespace) -> None:
    n_centres = args.n_landmarks or 1000
    X = mixture(100_000)[0]
    initial = X[np.random.default_rng(0).permutation(len(X))[:n_centres]]
    lloyd = {"init": initial, "n_init": 1, "tol": 0}
    variants = {
        "k-means++, converged": KMeans(n_centres, n_init=1, random_state=0),
        **{f"Lloyd, {n} iterations": KMeans(n_centres, max_iter=n, **lloyd) for n in (1, 3, 5, 10, 20)},
        "mini-batches": MiniBatchKMeans(n_centres, init=initial, n_init=1, random_state=0, batch_size=4096),
    }
    lowest = None
    for name, variant in variants.items():
        with threadpool_limits(1):
            start = time.process_time()
            inertia = variant.fit(X).inertia_
            seconds = time.process_time() - start
        lowest = lowest or inertia
        print(f"{name:22} {seconds:8.1f} s CPU   inertia {inertia / lowest:.4f}", flush=True)


# Millions of rows

N_FEATURES, BLOCK = 50, 100_000
N_GROUPS = 100


def make_block(block_info: dict | None = None) -> np.ndarray:
    info = block_info[None]
    rng = np.random.default_rng([0, info["chunk-location"][0]])
    n = info["chunk-shape"][0]
    centres = np.random.default_rng(1).normal(scale=4, size=(N_GROUPS, N_FEATURES)).astype(np.float32)
    return centres[rng.integers(0, N_GROUPS, n)] + rng.standard_normal((n, N_FEATURES), dtype=np.float32)


def rows(n: int) -> Any:
    import dask.array as da

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
        import psutil

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


def place_rows(args: argparse.Namespace) -> None:
    from distributed import Client, LocalCluster

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
                model = LandmarkLaptSNE(args.n_landmarks or 1000, **settings).fit(rows(n))
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


PARTS = {"mnist": score_mnist, "k-means": compare_k_means, "dask": place_rows}


def parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--n-landmarks", type=int, help="10,000 of MNIST and 1,000 of other data by default")
    parser.add_argument("--n-features", type=int, nargs="*", default=[50, 100], help="of MNIST")
    parser.add_argument("--seeds", type=int, default=3, help="of maps of MNIST")
    parser.add_argument("--rows", type=int, nargs="*", default=[5_000_000, 10_000_000], help="of Dask arrays")
    parser.add_argument("--out-of-sample", default="placement", help="of Dask arrays")
    return parser


def main() -> None:
    args = parser().parse_args()
    PARTS[args.part](args)


if __name__ == "__main__":
    main()
