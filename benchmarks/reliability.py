"""Do ``LaptSNE.diagnose`` and ``LaptSNE.support`` find the points that a map misplaces, and new points unlike the data?

python benchmarks/reliability.py exact     # 500 points: rank correlation with the exact definition; minutes
python benchmarks/reliability.py torn      # AUC of the score of diagnose for points at a torn edge: minutes
python benchmarks/reliability.py time      # 70,000 points of MNIST: seconds of fit and of diagnose
python benchmarks/reliability.py support [--data digits mnist fashion_mnist coil20]  # unseen classes and junk: minutes

The exact definition is that of tests/reference_reliability.py: all sums over all points, the normaliser included, and
affinities computed anew for every nudged row. It has no contraction, so it is compared for plain maps; for the maps
at the defaults, what is missing in it shows as well.

A point is at a torn edge if at least three of its ten nearest neighbours in the data are further from it in the map
than half the RMS radius of the map. Maps of swiss rolls are torn by themselves; a ring is torn in one dimension, and a
sphere in two.

``support``: for every class, a model is fitted to three quarters of the other classes. Printed are the AUC with which
the support tells the points of the unseen class from the held-out quarter, the share of both that ``predict`` puts in
no cluster, and the AUC for junk (uniform in the range of each feature). The constants were chosen on the digits; the
other sets were not used for it. The last line has the AUC for unseen classes at other powers of the local spacing in
the unit of the spacing: with 0, the unit is global. Larger sets are sampled to 6,000 points.
"""

from __future__ import annotations

import argparse
import time
from unittest.mock import patch

import numpy as np
from scipy.stats import spearmanr
from shared import command_line, enlarged_mnist, reduced
from sklearn.datasets import load_digits, make_swiss_roll
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestNeighbors

from laptsne import LaptSNE


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
    import reference_reliability as reference

    data = {
        "digits": load_digits().data[:500],
        "two Gaussians": mixture(),
        "swiss roll": make_swiss_roll(500, random_state=0)[0],
    }
    print("data, contraction: rank correlation of the score with the exact one")
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
    print("data, seed: points at the tear; AUC of the score")
    for name, n_components, make in cases:
        for seed in range(3):
            X = make(s=seed)
            model = LaptSNE(n_components, random_state=0).fit(X)
            scores, edge = model.diagnose(), torn(X, model.embedding_)
            if not edge.any():
                print(f"{name}, {seed}: not torn", flush=True)
                continue
            found = roc_auc_score(edge, scores.perturbation)
            print(f"{name}, {seed}: {edge.sum()} points; {found:.3f}", flush=True)


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


MAX_POINTS = 6000
QUICK = {"max_iter": 1, "early_exaggeration": 1.0, "random_state": 0}  # support does not depend on the positions


def unseen(name: str) -> None:
    """Print the scores of the support for every class of a set, and their means."""
    X, y = load_digits(return_X_y=True) if name == "digits" else reduced(name)
    rows = np.random.default_rng(0).permutation(len(X))[:MAX_POINTS]
    X, y = X[rows], y[rows]
    print(f"{name}: unseen class, AUC, share of unseen and of held-out points in no cluster, AUC of junk")
    found = []
    for label in np.unique(y):
        train, test = train_test_split(X[y != label], test_size=0.25, random_state=0)
        new, junk = X[y == label], np.random.default_rng(0).uniform(X.min(axis=0), X.max(axis=0), (500, X.shape[1]))
        model = LaptSNE(**QUICK).fit(train)
        held_out = model.support(test)
        rejected = [(model.predict(other) == -1).mean() for other in (new, test)]
        found.append([auc(held_out, model.support(new)), *rejected, auc(held_out, model.support(junk))])
        print(label, *(f"{value:.3f}" for value in found[-1]), flush=True)
        for power in (0.0, 1.0):
            with patch("laptsne.transform.support._LOCAL", power):
                model = LaptSNE(**QUICK).fit(train)
                found[-1].append(auc(model.support(test), model.support(new)))
    means, least = np.mean(found, axis=0), np.min(found, axis=0)
    print("mean", *(f"{value:.3f}" for value in means[:4]), f"least AUC {least[0]:.3f}, junk {least[3]:.4f}")
    print(f"global unit: mean {means[4]:.3f}, least {least[4]:.3f}; local: mean {means[5]:.3f}, least {least[5]:.3f}")


def auc(held_out: np.ndarray, other: np.ndarray) -> float:
    truth = np.repeat([1, 0], [len(held_out), len(other)])
    return float(roc_auc_score(truth, np.concatenate([held_out, other])))


def parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__)
    parser.add_argument("part", choices=["exact", "torn", "time", "support"])
    parser.add_argument("--data", nargs="+", default=["digits", "mnist", "fashion_mnist", "coil20"], help="for support")
    return parser


def main() -> None:
    args = parser().parse_args()
    if args.part == "support":
        for name in args.data:
            unseen(name)
    else:
        {"exact": exact, "torn": at_tears, "time": timed}[args.part]()


if __name__ == "__main__":
    main()
