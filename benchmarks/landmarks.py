"""LandmarkLaptSNE on MNIST with 10,000 landmarks, as in the paper; and variants of k-means for finding landmarks.

python benchmarks/landmarks.py [--n-landmarks 10000] [--n-features 50 100] [--seeds 3]
python benchmarks/landmarks.py --k-means [--n-landmarks 1000]

MNIST is reduced by PCA, and both values of ``out_of_sample`` are scored; the size of the network depends on the number
of features. The paper reports a 100-NN accuracy of 0.943 (on the training points, each its own neighbour) and an NMI of
0.750. ``--k-means`` prints CPU time and inertia on a Gaussian mixture of 100,000 points, on one thread.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from data import mixture, reduced
from sklearn.cluster import KMeans, MiniBatchKMeans
from threadpoolctl import threadpool_limits

from laptsne import LandmarkLaptSNE
from laptsne.metrics import cluster_scores, knn_accuracy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-landmarks", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--n-features", type=int, nargs="*", default=[50, 100])
    parser.add_argument("--k-means", action="store_true")
    args = parser.parse_args()
    if args.k_means:
        compare_k_means(args.n_landmarks)
    else:
        score_mnist(args)


def score_mnist(args: argparse.Namespace) -> None:
    columns = ("seconds", "100-NN, paper", "cross-validated", "NMI", "SC", "DBI")
    print(f"{'':24}" + "".join(f"{column:>16}" for column in columns))
    for n_features in args.n_features:
        X, y = reduced("mnist", n_features)
        for out_of_sample in ("placement", "network"):
            rows = []
            for seed in range(args.seeds):
                start = time.perf_counter()
                model = LandmarkLaptSNE(args.n_landmarks, out_of_sample=out_of_sample, random_state=seed, n_jobs=2)
                Y = model.fit_transform(X)
                seconds = time.perf_counter() - start
                accuracy = [knn_accuracy(Y, y, 100, protocol=protocol) for protocol in ("paper", "cross-validated")]
                rows.append((seconds, *accuracy, *cluster_scores(Y, y)))
            cells = "".join(f"{value:16.4f}" for value in np.mean(rows, axis=0))
            print(f"{f'{n_features} features, {out_of_sample}':24}{cells}", flush=True)


def compare_k_means(n_centres: int) -> None:
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


if __name__ == "__main__":
    main()
