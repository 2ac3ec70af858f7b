"""Time and recall of approximate neighbours, compared with scikit-learn's exact ones.

python benchmarks/neighbors.py

MNIST reduced to 50 dimensions and Gaussian mixtures, two threads; medians of three runs after a warm-up. Recall is
measured at 1,000 random points.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from data import enlarged_mnist, mixture
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors
from timing import median_seconds

from laptsne._runtime.threads import Workers
from laptsne.graph.ivf import IVFIndex

REPEATS = 3
CASES = (*(("mnist", n, 90) for n in (5000, 10_000, 20_000, 70_000)), ("mixture", 70_000, 90))


def true_neighbors(X: NDArray[Any], n_neighbors: int, rows: NDArray[Any]) -> NDArray[Any]:
    """Return the exact neighbours of some rows, without the rows themselves."""
    return NearestNeighbors(n_neighbors=n_neighbors + 1, algorithm="brute").fit(X).kneighbors(X[rows])[1][:, 1:]


def recall(true: NDArray[Any], found: NDArray[Any]) -> float:
    """Return the fraction of the true neighbours that were found."""
    return float(np.mean([np.isin(a, b).mean() for a, b in zip(true, found, strict=True)]))


def main() -> None:
    print(f"{'data':8} {'N':>7} {'k':>4} {'IVF':>7} {'exact':>7} (s) {'recall':>7}")
    with Workers(2) as workers:
        IVFIndex(mixture(3000)[0], workers).neighbors(10, workers)
        for kind, n, k in CASES:
            X, _ = enlarged_mnist(n) if kind == "mnist" else mixture(n)
            approximate = median_seconds(lambda X=X, k=k: IVFIndex(X, workers).neighbors(k, workers), REPEATS)
            search = NearestNeighbors(n_neighbors=k, n_jobs=2)
            exact = median_seconds(lambda X=X, search=search: search.fit(X).kneighbors(), REPEATS)
            rows = np.random.default_rng(1).choice(n, 1000, replace=False)
            found = IVFIndex(X, workers).neighbors(k, workers)[0][rows]
            share = recall(true_neighbors(X, k, rows), found)
            print(f"{kind:8} {n:7} {k:4} {approximate:7.2f} {exact:7.2f}     {share:7.4f}", flush=True)


if __name__ == "__main__":
    main()
