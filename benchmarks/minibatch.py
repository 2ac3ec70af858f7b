"""LaptSNE-Mini compared with the full method, both with the paper's settings and the same number of iterations.

python benchmarks/minibatch.py [coil20 coil100]

Perplexity 25, trace penalty, learning rate 100, 500 iterations, k-hat as in the paper; the full method updates the
eigenvectors in every iteration. Affinities are computed beforehand, and the time of the initial spectrum is subtracted,
so that ratios are those of the iterations alone. Methods alternate; times are medians and scores are means over the
seeds, followed by their difference from the full method.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

import numpy as np
from data import load

from laptsne import LaptSNE
from laptsne.metrics import cluster_scores, knn_accuracy

# k-hat, contraction, batches (size, neighbours per point) and number of seeds.
SETTINGS = {
    "coil20": (19, 0.01, [(200, 0), (100, 0), (100, 10)], 3),
    "coil100": (7, 0.01, [(1000, 0), (100, 10)], 1),
}
COLUMNS = ("10-NN", "NMI", "SC", "DBI", "KL")


def main() -> None:
    for name in sys.argv[1:] or list(SETTINGS):
        n_clusters, contraction, batches, n_seeds = SETTINGS[name]
        X, y = load(name)
        P = LaptSNE.paper(n_clusters, contraction, max_iter=1, n_jobs=2).fit(X).affinities_
        options: dict[str, Any] = {"metric": "affinities", "n_neighbors": "auto", "n_jobs": 2}
        kinds: dict[str, dict[str, int]] = {"full": {}}
        kinds |= {f"batches of {m}, {k} neighbours": {"batch_size": m, "n_batch_neighbors": k} for m, k in batches}
        times: dict[str, list[float]] = {title: [] for title in kinds}
        scores: dict[str, list[tuple[float, ...]]] = {title: [] for title in kinds}
        for kind in kinds.values():
            LaptSNE.paper(n_clusters, contraction, max_iter=5, **kind, **options).fit(P)
        start = time.perf_counter()
        LaptSNE.paper(n_clusters, contraction, max_iter=1, **options).fit(P)
        before = time.perf_counter() - start
        for seed in range(n_seeds):
            for title, kind in kinds.items():
                model = LaptSNE.paper(n_clusters, contraction, random_state=seed, **kind, **options)
                start = time.perf_counter()
                Y = model.fit_transform(P)
                times[title].append(time.perf_counter() - start - before)
                scores[title].append((knn_accuracy(Y, y, 10), *cluster_scores(Y, y), model.kl_divergence_))
        full = statistics.median(times["full"]), np.mean(scores["full"], axis=0)
        print(f"{name}: {before:.1f} s before the iterations")
        print(f"{'':30} {'seconds':>8} {'ratio':>6}" + "".join(f"{column:>15}" for column in COLUMNS))
        for title in kinds:
            seconds, mean = statistics.median(times[title]), np.mean(scores[title], axis=0)
            changes = zip(mean, mean - full[1], strict=True)
            cells = "".join(f"{value:8.3f}{change:+7.3f}" for value, change in changes)
            print(f"{title:30} {seconds:8.1f} {seconds / full[0]:6.2f}{cells}", flush=True)


if __name__ == "__main__":
    main()
