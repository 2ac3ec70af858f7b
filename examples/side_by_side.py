"""The figure at the top of the README: 10,000 handwritten digits of MNIST by t-SNE and by LaptSNE.

python examples/side_by_side.py [file]

MNIST is read from the folder LAPTSNE_DATA if it is there, otherwise downloaded from openml.org.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import fetch_openml
from sklearn.decomposition import PCA

from laptsne import LaptSNE, plotting
from laptsne.metrics import Faithfulness

N_SAMPLES = 10_000


def load() -> tuple[np.ndarray, np.ndarray]:
    """Return a random sample of the digits, reduced to 50 dimensions, and what they show."""
    file = Path(os.environ.get("LAPTSNE_DATA", ""), "mnist.npz")
    if file.exists():
        with np.load(file) as arrays:
            X, y = arrays["X"], arrays["y"]
    else:
        X, y = fetch_openml("mnist_784", return_X_y=True, as_frame=False)
    rows = np.random.default_rng(0).permutation(len(X))[:N_SAMPLES]
    return PCA(50, random_state=0).fit_transform(X[rows].astype(np.float32)), y[rows].astype(int)


def main() -> None:
    X, y = load()
    models = {
        "t-SNE": LaptSNE(contraction=0, refine_affinities=False, random_state=0),
        "LaptSNE": LaptSNE(random_state=0),
    }
    figure = Figure(figsize=(11, 5.4), layout="constrained")
    for ax, (name, model) in zip(figure.subplots(1, 2), models.items(), strict=True):
        Y = model.fit_transform(X)
        title = f"{name}: {Faithfulness(X).neighbors_kept(Y):.0%} of the neighbours kept"
        plotting.scatter(Y, y, ax=ax, title=title)
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "docs/images/mnist.png", dpi=110)


if __name__ == "__main__":
    main()
