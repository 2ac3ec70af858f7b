"""The scores of ``LaptSNE.diagnose`` compared with their exact definition, at tears, and timed.

python benchmarks/reliability.py exact     # 500 points: rank correlation with the exact definition; minutes
python benchmarks/reliability.py torn      # AUC of the score for points at a torn edge
python benchmarks/reliability.py time      # 70,000 points of MNIST: seconds of fit and of diagnose

The exact definition is that of tests/reference_reliability.py: all sums over all points, the normaliser included, and
affinities computed anew for every nudged row. It has no contraction, so it is compared for plain maps; for the maps
at the defaults, what is missing in it shows as well.

A point is at a torn edge if at least three of its ten nearest neighbours in the data are further from it in the map
than half the RMS radius of the map. Maps of swiss rolls are torn by themselves; a ring is torn in one dimension, and a
sphere in two.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from data import enlarged_mnist
from scipy.stats import spearmanr
from sklearn.datasets import load_digits, make_swiss_roll
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

from laptsne import LaptSNE

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import reference_reliability as reference


def mixture(seed: int = 0) -> np.ndarray:
    """Two Gaussians in five dimensions, three standard deviations apart."""
    X = np.random.default_rng(seed).normal(size=(500, 5))
    X[:250, 0] += 3
    return X


def ring(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, n)
    return np.column_stack([np.cos(angle), np.sin(angle), np.zeros(n)]) + rng.normal(scale=0.1, size=(n, 3))


def sphere(n: int, seed: int) -> np.ndarray:
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def exact() -> None:
    data = {
        "digits": load_digits().data[:500],
        "two Gaussians": mixture(),
        "swiss roll": make_swiss_roll(500, random_state=0)[0],
    }
    print("data, contraction: rank correlation of the perturbation")
    for name, X in data.items():
        for contraction in (0, "auto"):
            model = LaptSNE(contraction=contraction, random_state=0).fit(X)
            scores = model.diagnose()
            exaggeration = 1.05 if model.contraction_ > 0 else 1.0
            options = {"length": scores.length, "perplexity": model.perplexity_, "exaggeration": exaggeration}
            jumps = reference.jumps(X, model.embedding_, range(len(X)), **options)
            found = spearmanr(scores.perturbation, jumps).statistic
            print(f"{name}, {model.contraction_:.3f}: {found:.3f}", flush=True)


def torn(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    near = NearestNeighbors(n_neighbors=11).fit(X).kneighbors(X, return_distance=False)[:, 1:]
    distances = np.linalg.norm(Y[near] - Y[:, None], axis=2)
    return np.asarray((distances > np.sqrt(Y.var(axis=0).sum()) / 2).mean(axis=1) >= 0.3)


def at_tears() -> None:
    cases = [(f"swiss roll, {n}", 2, lambda n=n, s=0: make_swiss_roll(n, random_state=s)[0]) for n in (1000, 3000)]
    cases += [("ring, 1000", 1, lambda s=0: ring(1000, s)), ("ring, 3000", 1, lambda s=0: ring(3000, s))]
    cases += [("sphere, 1000", 2, lambda s=0: sphere(1000, s)), ("sphere, 3000", 2, lambda s=0: sphere(3000, s))]
    print("data, seed: points at the tear; AUC of the perturbation")
    for name, n_components, make in cases:
        for seed in range(3):
            X = make(s=seed)
            model = LaptSNE(n_components, random_state=0).fit(X)
            scores, edge = model.diagnose(), torn(X, model.embedding_)
            if not edge.any():
                print(f"{name}, {seed}: not torn", flush=True)
                continue
            print(f"{name}, {seed}: {edge.sum()} points; {roc_auc_score(edge, scores.perturbation):.3f}", flush=True)


def timed() -> None:
    LaptSNE(max_iter=20, random_state=0).fit(mixture()).diagnose()  # compiles
    X, _ = enlarged_mnist(70_000)
    start = time.perf_counter()
    model = LaptSNE(random_state=0).fit(X)
    fitted = time.perf_counter()
    model.diagnose()
    seconds = fitted - start, time.perf_counter() - fitted
    print(f"fit {seconds[0]:.1f} s, diagnose {seconds[1]:.1f} s, ratio {seconds[1] / seconds[0]:.2f}")
    print(model.reliability_)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["exact", "torn", "time"])
    {"exact": exact, "torn": at_tears, "time": timed}[parser.parse_args().part]()
