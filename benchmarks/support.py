"""Support of new points: unseen classes and junk against held-out points of the seen classes.

python benchmarks/support.py [--data digits mnist fashion_mnist coil20]

For every class, a model is fitted to three quarters of the other classes. Printed are the AUC with which
``LaptSNE.support`` tells the points of the unseen class from the held-out quarter, the share of both below the
threshold of ``predict``, and the AUC for junk (uniform in the range of each feature). Then the same AUC for other
powers of the local spacing in its unit. The constants were chosen on the digits; the other sets were not used for it.
Larger sets are sampled to 6,000 points.
"""

from __future__ import annotations

import argparse
from unittest.mock import patch

import numpy as np
from data import reduced
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from laptsne import LaptSNE
from laptsne.transform import support
from laptsne.transform.support import MIN_SUPPORT

MAX_POINTS = 6000
SETTINGS = {"max_iter": 1, "early_exaggeration": 1.0, "random_state": 0}  # support does not depend on the positions


def auc(held_out: np.ndarray, other: np.ndarray) -> float:
    truth = np.repeat([1, 0], [len(held_out), len(other)])
    return float(roc_auc_score(truth, np.concatenate([held_out, other])))


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True) if name == "digits" else reduced(name)
    rows = np.random.default_rng(0).permutation(len(X))[:MAX_POINTS]
    return X[rows], y[rows]


def run(name: str) -> None:
    X, y = load(name)
    print(f"{name}: unseen class, AUC, share below {MIN_SUPPORT} of unseen and of held-out points, AUC of junk")
    found = []
    for unseen in np.unique(y):
        train, test = train_test_split(X[y != unseen], test_size=0.25, random_state=0)
        model = LaptSNE(**SETTINGS).fit(train)
        held_out, new = model.support(test), model.support(X[y == unseen])
        junk = model.support(np.random.default_rng(0).uniform(X.min(axis=0), X.max(axis=0), (500, X.shape[1])))
        found.append(
            [auc(held_out, new), (new < MIN_SUPPORT).mean(), (held_out < MIN_SUPPORT).mean(), auc(held_out, junk)]
        )
        for power in (0.0, 1.0):
            with patch.object(support, "_LOCAL", power):
                other = LaptSNE(**SETTINGS).fit(train)
                found[-1].append(auc(other.support(test), other.support(X[y == unseen])))
        print(unseen, *(f"{value:.3f}" for value in found[-1][:4]), flush=True)
    means, least = np.mean(found, axis=0), np.min(found, axis=0)
    print("mean", *(f"{value:.3f}" for value in means[:4]), f"least AUC {least[0]:.3f}, junk {least[3]:.4f}")
    print(f"global unit: mean {means[4]:.3f}, least {least[4]:.3f}; local: mean {means[5]:.3f}, least {least[5]:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["digits", "mnist", "fashion_mnist", "coil20"])
    for name in parser.parse_args().data:
        run(name)
