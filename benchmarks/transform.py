"""How fast and how accurate is ``transform``, with both out-of-sample methods, beside openTSNE and umap-learn?

python benchmarks/transform.py    # five minutes

Each method is fitted to the 60,000 points of MNIST's training split, reduced to 50 dimensions, and transforms the
10,000 points of the test split: once as a warm-up, then alternating with the others. Accuracy is that of a
nearest-neighbour classifier trained on the method's own embedding. All methods use their defaults and two threads.
Needs ``pip install ".[benchmark]"``.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from shared import command_line, enlarged_mnist, seconds
from sklearn.neighbors import KNeighborsClassifier

from laptsne import LaptSNE

Transform = Callable[[np.ndarray], np.ndarray]


def laptsne(X: np.ndarray, out_of_sample: str) -> tuple[np.ndarray, Transform]:
    model = LaptSNE(out_of_sample=out_of_sample, n_jobs=2, random_state=0).fit(X)
    size = model.save(Path(tempfile.mkdtemp(), "model"))
    print(f"laptsne, {out_of_sample}: saved in {size / 2**20:.1f} MiB", flush=True)
    return model.embedding_, model.transform


def opentsne(X: np.ndarray) -> tuple[np.ndarray, Transform]:
    from openTSNE import TSNE

    model = TSNE(n_jobs=2, random_state=0).fit(X)
    return np.asarray(model), model.transform


def umap(X: np.ndarray) -> tuple[np.ndarray, Transform]:
    from umap import UMAP

    model = UMAP(n_jobs=2).fit(X)
    return model.embedding_, model.transform


METHODS: dict[str, Callable[[np.ndarray], Any]] = {
    "laptsne, placement": lambda X: laptsne(X, "placement"),
    "laptsne, network": lambda X: laptsne(X, "network"),
    "openTSNE": opentsne,
    "umap-learn": umap,
}


def parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=list(METHODS))
    return parser


def main() -> None:
    args = parser().parse_args()
    X, y = enlarged_mnist(70_000)
    train, test = slice(0, 60_000), slice(60_000, None)
    fitted = {}
    for name in args.methods:
        start = time.perf_counter()
        fitted[name] = METHODS[name](X[train])
        print(f"{name}: fitted in {time.perf_counter() - start:.1f} s", flush=True)
    placed = {name: np.asarray(transform(X[test])) for name, (_, transform) in fitted.items()}
    times: dict[str, list[float]] = {name: [] for name in fitted}
    for _ in range(args.repeats):
        for name, (_, transform) in fitted.items():
            times[name].append(seconds(lambda transform=transform: transform(X[test])))
    print(f"{'':24} {'seconds':>8} {'1-NN':>7} {'10-NN':>7} {'100-NN':>7}")
    for name, (Y, _) in fitted.items():
        accuracy = [KNeighborsClassifier(k).fit(Y, y[train]).score(placed[name], y[test]) for k in (1, 10, 100)]
        print(f"{name:24} {statistics.median(times[name]):8.2f} " + " ".join(f"{a:7.4f}" for a in accuracy))


if __name__ == "__main__":
    main()
