"""What contraction does to a map: digits and COIL20 at the defaults against contraction 0, over seeds.

python benchmarks/quality.py [data set ...]

All scores are of the map alone or cross-validated; k-means has as many clusters as there are classes.
"""

from __future__ import annotations

import sys

import numpy as np
from data import reduced

from laptsne import LaptSNE
from laptsne.metrics import cluster_scores, knn_accuracy, trustworthiness

SEEDS = range(8)
COLUMNS = ("silhouette", "Davies-Bouldin", "NMI", "10-NN", "trustworthiness", "KL")


def scores(X: np.ndarray, y: np.ndarray, contraction: float | str) -> np.ndarray:
    rows = []
    for seed in SEEDS:
        model = LaptSNE(contraction=contraction, random_state=seed).fit(X)
        Y = model.embedding_
        nmi, silhouette, davies_bouldin = cluster_scores(Y, y)
        row = (silhouette, davies_bouldin, nmi, knn_accuracy(Y, y, 10), trustworthiness(X, Y), model.kl_divergence_)
        rows.append(row)
    return np.array(rows)


def main() -> None:
    print(f"{'data':10} {'contraction':12}" + "".join(f"{name:>17}" for name in COLUMNS))
    for name in sys.argv[1:] or ["digits", "coil20"]:
        X, y = reduced(name)
        plain, contracted = (scores(X, y, contraction) for contraction in (0.0, "auto"))
        for title, rows in (("0", plain), ("auto", contracted)):
            cells = (f"{m:.3f} +- {s:.3f}" for m, s in zip(rows.mean(0), rows.std(0), strict=True))
            print(f"{name:10} {title:12}" + "".join(f"{cell:>17}" for cell in cells))
        print(f"{name:10} {'change':12}" + "".join(f"{d:>+17.3f}" for d in contracted.mean(0) - plain.mean(0)))


if __name__ == "__main__":
    main()
