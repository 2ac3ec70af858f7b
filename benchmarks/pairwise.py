"""Exact neighbours with defined ties: the compiled search of laptsne.metrics against SciPy.

python benchmarks/pairwise.py

``cdist`` with a partial sort gives the same neighbours; a KD-tree does so only without ties. Two threads, except for
``cdist``, which has none; medians of three runs, after a warm-up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist
from timing import median_seconds

from laptsne._runtime.threads import Workers
from laptsne.metrics.pairwise import nearest

REPEATS, K, ROWS = 3, 30, 256


def by_cdist(X: Any) -> Any:
    neighbors = np.empty((len(X), K), np.intp)
    for start in range(0, len(X), ROWS):
        D = cdist(X[start : start + ROWS], X, "sqeuclidean")
        D[np.arange(len(D)), np.arange(start, start + len(D))] = np.inf
        kth = np.partition(D, K - 1, axis=1)[:, K - 1 : K]
        row, column = np.nonzero(kth >= D)
        order = np.lexsort((column, D[row, column], row))
        rank = np.arange(row.size) - np.searchsorted(row[order], row[order])
        neighbors[start : start + ROWS] = column[order][rank < K].reshape(-1, K)
    return neighbors


def main() -> None:
    rng = np.random.default_rng(0)
    cases = rng.integers(0, 256, (5000, 784)), rng.normal(size=(20_000, 2)), rng.integers(0, 40, (20_000, 2))
    print(f"{'N':>7} {'dims':>5} {'laptsne':>8} {'cdist':>7} {'tree':>7} (s)  same as cdist")
    with Workers(2) as workers:
        nearest(cases[1][:1000], K, workers=workers)
        for X in (case.astype(np.float64) for case in cases):
            ours = median_seconds(lambda X=X: nearest(X, K, workers=workers), REPEATS)
            library = median_seconds(lambda X=X: by_cdist(X), REPEATS)
            tree = median_seconds(lambda X=X: KDTree(X).query(X, K + 1, workers=2), REPEATS)
            same = np.array_equal(nearest(X, K, workers=workers), by_cdist(X))
            print(f"{len(X):7} {X.shape[1]:5} {ours:8.2f} {library:7.2f} {tree:7.2f}      {same}", flush=True)


if __name__ == "__main__":
    main()
