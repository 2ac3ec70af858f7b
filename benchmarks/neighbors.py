"""Time and recall of approximate neighbours, compared with scikit-learn's exact ones.

python benchmarks/neighbors.py

MNIST reduced to 50 dimensions and Gaussian mixtures, two threads; medians of three runs after a warm-up. Recall is
measured at 1,000 random points.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from data import enlarged_mnist, mixture
from sklearn.neighbors import NearestNeighbors

from laptsne._runtime.threads import Workers
from laptsne.graph.ivf import IVFIndex

REPEATS = 3
CASES = (*(("mnist", n, 90) for n in (5000, 10_000, 20_000, 70_000)), ("mixture", 70_000, 90))


def median_time(function: Callable[[], Any]) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    print(f"{'data':8} {'N':>7} {'k':>4} {'IVF':>7} {'exact':>7} (s) {'recall':>7}")
    with Workers(2) as workers:
        IVFIndex(mixture(3000)[0], workers).neighbors(10, workers)
        for kind, n, k in CASES:
            X, _ = enlarged_mnist(n) if kind == "mnist" else mixture(n)
            approximate = median_time(lambda X=X, k=k: IVFIndex(X, workers).neighbors(k, workers))
            exact = median_time(lambda X=X, k=k: NearestNeighbors(n_neighbors=k, n_jobs=2).fit(X).kneighbors())
            some = np.random.default_rng(1).choice(n, 1000, replace=False)
            true = NearestNeighbors(n_neighbors=k + 1, algorithm="brute").fit(X).kneighbors(X[some])[1][:, 1:]
            found = IVFIndex(X, workers).neighbors(k, workers)[0][some]
            recall = np.mean([np.isin(a, b).mean() for a, b in zip(true, found, strict=True)])
            print(f"{kind:8} {n:7} {k:4} {approximate:7.2f} {exact:7.2f}     {recall:7.4f}", flush=True)


if __name__ == "__main__":
    main()
