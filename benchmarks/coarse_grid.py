"""The grid from which steps of the descent take their forces: its spacing, and when it is faster than all pairs.

python benchmarks/coarse_grid.py             # digits, COIL20 and 5,000 points of MNIST
python benchmarks/coarse_grid.py --times     # times of single evaluations only

For every spacing: KL divergence at contraction 0, mean over seeds with its standard error, 10-NN accuracy, and the RMS
error of the repulsion in the final embedding, relative to its RMS value. All steps use the grid, even where pairs would
be faster. The times are those of one evaluation of the forces of points of MNIST, on two threads, by the span of the
embedding; the best of several.
"""

from __future__ import annotations

import argparse
from unittest.mock import patch

import numpy as np
from data import enlarged_mnist, load, reduced
from timing import THREADS, seconds

from laptsne import LaptSNE
from laptsne._runtime.threads import Workers
from laptsne.fields import CoarseFields, ExactFields, fourier
from laptsne.metrics import knn_accuracy

SPACINGS = (0.3, 0.5, 0.6, 0.7, 1.0)
SEEDS = 5
REPEATS = 20
SIZES, SPANS = (2000, 5000), (1.0, 20.0, 60.0, 150.0)


def error(Y: np.ndarray) -> float:
    """RMS error of the repulsion, relative to its RMS value."""
    found, exact = CoarseFields(Y).slope, ExactFields(Y).slope
    return float(np.sqrt(np.mean((found - exact) ** 2) / np.mean(exact**2)))


def print_spacings(name: str, X: np.ndarray, y: np.ndarray) -> None:
    for spacing in SPACINGS:
        free = {"_FIXED": 0.0, "_PER_POINT": 0.0, "_PER_CELL": 0.0}  # as if a grid took no time
        with patch.multiple(fourier, _COARSE_SPACING=spacing, _SMALL_SPAN=0.0, **free):
            models = [LaptSNE(contraction=0, n_jobs=THREADS, random_state=seed).fit(X) for seed in range(SEEDS)]
            errors = [error(np.asarray(model.embedding_, dtype=np.float64)) for model in models]
        kl = np.array([model.kl_divergence_ for model in models])
        accuracy = np.mean([knn_accuracy(model.embedding_, y) for model in models])
        spread = kl.std(ddof=1) / np.sqrt(SEEDS)
        cells = f"| {name} | {spacing} | {kl.mean():.4f} ± {spread:.4f} | {accuracy:.4f} | {np.mean(errors):.1%} |"
        print(cells, flush=True)


def milliseconds(function: object) -> float:
    return 1e3 * min(seconds(function) for _ in range(REPEATS))  # type: ignore[arg-type]


def print_times() -> None:
    print("| N | span | grid, ms | pairs, ms | grid chosen |\n|---|---|---|---|---|")
    rng = np.random.default_rng(0)
    with Workers(THREADS) as workers:
        for n in SIZES:
            for span in SPANS:
                Y = rng.random((n, 2)) * span
                grid = milliseconds(lambda Y=Y: CoarseFields(Y, workers).degrees)
                pairs = milliseconds(lambda Y=Y: ExactFields(Y.astype(np.float32), workers=workers).degrees)
                print(f"| {n} | {span:g} | {grid:.2f} | {pairs:.2f} | {CoarseFields(Y).is_fast} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", action="store_true", help="times only")
    if not parser.parse_args().times:
        print("| data | spacing | KL divergence | 10-NN | error of the repulsion |\n|---|---|---|---|---|")
        for name, (X, y) in (
            ("digits", load("digits")),
            ("COIL20", reduced("coil20")),
            ("MNIST, 5,000", enlarged_mnist(5000)),
        ):
            print_spacings(name, X, y)
    print_times()


if __name__ == "__main__":
    main()
