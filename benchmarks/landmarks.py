"""MNIST by 10,000 landmarks, as in the paper, by both ways of placing the other points.

python benchmarks/landmarks.py [--n-landmarks 10000] [--n-features 50 100] [--seeds 3]

The pixels are reduced by PCA; the size of the network follows from the number of features that are left. The paper's
LaptSNE has a 100-NN accuracy of 0.943 (on the training points, each its own neighbour) and an NMI of 0.750.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from data import reduced

from laptsne import LandmarkLaptSNE
from laptsne.metrics import cluster_scores, knn_accuracy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-landmarks", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--n-features", type=int, nargs="*", default=[50, 100])
    args = parser.parse_args()
    columns = ("seconds", "100-NN, paper", "cross-validated", "NMI", "SC", "DBI")
    print(f"{'':24}" + "".join(f"{column:>16}" for column in columns))
    for n_features in args.n_features:
        X, y = reduced("mnist", n_features)
        for way in ("placement", "network"):
            rows = []
            for seed in range(args.seeds):
                start = time.perf_counter()
                model = LandmarkLaptSNE(args.n_landmarks, out_of_sample=way, random_state=seed, n_jobs=2)
                Y = model.fit_transform(X)
                seconds = time.perf_counter() - start
                accuracy = [knn_accuracy(Y, y, 100, protocol=protocol) for protocol in ("paper", "cross-validated")]
                rows.append((seconds, *accuracy, *cluster_scores(Y, y)))
            cells = "".join(f"{value:16.4f}" for value in np.mean(rows, axis=0))
            print(f"{f'{n_features} features, {way}':24}{cells}", flush=True)


if __name__ == "__main__":
    main()
