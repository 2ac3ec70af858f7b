"""MNIST by 10,000 landmarks, as in the paper, by both ways of placing the other points.

python benchmarks/landmarks.py [--n-landmarks 10000] [--seeds 3]

The paper's LaptSNE has a 100-NN accuracy of 0.943 (on the training points, each its own neighbour) and an NMI of 0.750.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from data import enlarged_mnist

from laptsne import LandmarkLaptSNE
from laptsne.metrics import cluster_scores, knn_accuracy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-landmarks", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    X, y = enlarged_mnist(70_000)
    print(f"{'':12} {'seconds':>8} {'100-NN, paper':>14} {'cross-validated':>16} {'NMI':>6} {'SC':>6} {'DBI':>6}")
    for way in ("placement", "network"):
        rows = []
        for seed in range(args.seeds):
            start = time.perf_counter()
            model = LandmarkLaptSNE(args.n_landmarks, out_of_sample=way, random_state=seed, n_jobs=2)
            Y = model.fit_transform(X)
            seconds = time.perf_counter() - start
            accuracy = [knn_accuracy(Y, y, 100, protocol=protocol) for protocol in ("paper", "cross-validated")]
            rows.append((seconds, *accuracy, *cluster_scores(Y, y)))
        mean = np.mean(rows, axis=0)
        print(
            f"{way:12} {mean[0]:8.1f} {mean[1]:14.4f} {mean[2]:16.4f}"
            + "".join(f" {value:6.3f}" for value in mean[3:]),
            flush=True,
        )


if __name__ == "__main__":
    main()
