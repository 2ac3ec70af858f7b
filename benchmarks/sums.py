"""Which sums are taken when (all pairs, fine grid, coarse grid), how accurate are they, and do the maps agree?

python benchmarks/sums.py times      # times of single evaluations, by the number of points: minutes
python benchmarks/sums.py errors     # relative errors of the fine grid, by the span of the embedding: seconds
python benchmarks/sums.py spacings   # spacings of the coarse grid: KL divergence, 10-NN, errors: half an hour
python benchmarks/sums.py maps       # maps of exact and Fourier sums from the same initialisation: half an hour

``times``: points are Gaussian clouds with the span of an embedding of their size, about 1.2 sqrt(N) in two dimensions.
"0" is the field of unit charges and its gradient, which is all that plain t-SNE needs; "15" adds the weighted gradient
of 15 further fields. The second table has the coarse grid, which steps of the descent use, and whether it is chosen.

``spacings``, for digits, COIL20 and 5,000 points of MNIST: KL divergence at contraction 0, mean over seeds with its
standard error, 10-NN accuracy, and the RMS error of the repulsion in the final embedding, relative to its RMS value.
All steps use the grid, even where pairs would be faster.

``maps``: after 50 iterations, the distances between corresponding points of both embeddings after a Procrustes fit,
relative to the span of the exact one. After the last iteration, KL divergence and sum of eigenvalues, Fourier relative
to exact. The next row shows the effect of rounding, by two exact runs whose initialisations differ by a relative 1e-7;
the last two compare means over five seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from shared import THREADS, command_line, enlarged_mnist, median_seconds, reduced, seconds

from laptsne import Descent, LaptSNE
from laptsne._runtime.threads import Workers
from laptsne.fields import CoarseFields, ExactFields, FourierFields, fourier
from laptsne.metrics import knn_accuracy

Array = NDArray[Any]
SEEDS = range(5)

# Times and errors of single evaluations

REPEATS = 5
SIZES = {1: (1000, 2000, 5000), 2: (2000, 5000, 7000, 10_000, 14_000, 20_000, 70_000), 3: (10_000, 40_000)}
SPANS = (1e-4, 0.1, 1.0, 2.5, 8.0, 40.0, 150.0, 500.0)
COARSE_REPEATS = 20
COARSE_SIZES, COARSE_SPANS = (2000, 5000), (1.0, 20.0, 60.0, 150.0)


def cloud(n: int, n_dims: int, span: float) -> Array:
    """Return Gaussian points with the given span."""
    Y = np.random.default_rng(0).normal(size=(n, n_dims))
    return Y * (span / np.ptp(Y, axis=0).max())


def milliseconds(function: Callable[[], Any]) -> float:
    function()  # compile
    return 1000 * median_seconds(function, REPEATS)


def costs(n: int, n_dims: int, workers: Workers) -> list[float]:
    Y = cloud(n, n_dims, {1: 2.0 * n**0.75, 2: 1.2 * n**0.5, 3: 1.5 * n ** (1 / 3)}[n_dims])
    single = Y.astype(np.float32)
    charges = np.random.default_rng(1).normal(size=(n, 15))
    return [
        milliseconds(lambda: ExactFields(single, workers=workers).degrees),
        milliseconds(lambda: FourierFields(Y, workers).degrees),
        milliseconds(lambda: ExactFields(single, workers=workers).weighted_gradient(charges, charges)),
        milliseconds(lambda: FourierFields(Y, workers).weighted_gradient(charges, charges)),
    ]


def print_times() -> None:
    with Workers(THREADS) as workers:
        print(f"{'dims':>4} {'N':>6} {'exact 0':>10} {'fourier 0':>10} {'exact 15':>10} {'fourier 15':>10}   (ms)")
        for n_dims, sizes in SIZES.items():
            for n in sizes:
                cells = "".join(f"{cost:11.2f}" for cost in costs(n, n_dims, workers))
                print(f"{n_dims:4} {n:6}{cells}", flush=True)
        print("\n| N | span | coarse grid, ms | pairs, ms | grid chosen |\n|---|---|---|---|---|")
        for n in COARSE_SIZES:
            for span in COARSE_SPANS:
                Y = np.random.default_rng(0).random((n, 2)) * span
                grid = fastest(lambda Y=Y: CoarseFields(Y, workers).degrees)
                pairs = fastest(lambda Y=Y: ExactFields(Y.astype(np.float32), workers=workers).degrees)
                print(f"| {n} | {span:g} | {grid:.2f} | {pairs:.2f} | {CoarseFields(Y).is_fast} |", flush=True)


def fastest(function: Callable[[], Any]) -> float:
    """Return the shortest of several times, in milliseconds."""
    return 1e3 * min(seconds(function) for _ in range(COARSE_REPEATS))


def errors(span: float, workers: Workers) -> list[float]:
    Y = cloud(3000, 2, span)
    charges = np.random.default_rng(1).normal(size=(len(Y), 5))
    exact, fourier = ExactFields(Y, workers=workers), FourierFields(Y, workers)
    pairs = [
        (fourier.degrees, exact.degrees),
        (fourier.slope, exact.slope),
        (fourier.values(charges), exact.values(charges)),
        (fourier.weighted_gradient(charges, charges), exact.weighted_gradient(charges, charges)),
    ]
    return [float(np.linalg.norm(a - b) / np.linalg.norm(b)) for a, b in pairs]


def print_errors() -> None:
    print(f"{'span':>8} {'degrees':>10} {'slope':>10} {'values':>10} {'gradients':>10}   (relative error)")
    with Workers(THREADS) as workers:
        for span in SPANS:
            print(f"{span:8g}" + "".join(f"{error:11.1e}" for error in errors(span, workers)), flush=True)


# Spacings of the coarse grid

SPACINGS = (0.3, 0.5, 0.6, 0.7, 1.0)


def repulsion_error(Y: Array) -> float:
    """Return the RMS error of the repulsion on the coarse grid, relative to its RMS value."""
    found, exact = CoarseFields(Y).slope, ExactFields(Y).slope
    return float(np.sqrt(np.mean((found - exact) ** 2) / np.mean(exact**2)))


def print_spacings() -> None:
    print("| data | spacing | KL divergence | 10-NN | error of the repulsion |\n|---|---|---|---|---|")
    free = {"_FIXED": 0.0, "_PER_POINT": 0.0, "_PER_CELL": 0.0}  # as if a grid took no time
    for name, (X, y) in data().items():
        for spacing in SPACINGS:
            with patch.multiple(fourier, _COARSE_SPACING=spacing, _SMALL_SPAN=0.0, **free):
                models = [LaptSNE(contraction=0, n_jobs=THREADS, random_state=seed).fit(X) for seed in SEEDS]
                error = np.mean([repulsion_error(np.asarray(model.embedding_, np.float64)) for model in models])
            kl = np.array([model.kl_divergence_ for model in models])
            accuracy = np.mean([knn_accuracy(model.embedding_, y) for model in models])
            mean = f"{kl.mean():.4f} ± {kl.std(ddof=1) / len(kl) ** 0.5:.4f}"
            print(f"| {name} | {spacing} | {mean} | {accuracy:.4f} | {error:.1%} |", flush=True)


def data() -> dict[str, tuple[Array, Array]]:
    return {"digits": reduced("digits"), "COIL20": reduced("coil20"), "MNIST, 5,000": enlarged_mnist(5000)}


# Maps of exact and Fourier sums

EARLY = 50  # iterations


@dataclass
class Run:
    """A fitted model, its initial embedding and that after 50 iterations."""

    model: LaptSNE
    start: Array
    early: Array


def run(X: Array, contraction: Any, method: str, seed: int = 0, init: Any = "spectral") -> Run:
    embeddings: dict[int, Array] = {}

    def record(state: Any) -> None:
        if state.iteration in (0, EARLY):
            embeddings[state.iteration] = state.embedding

    options = {"optimizer": Descent(tol=0), "callbacks": record, "n_jobs": THREADS, "random_state": seed}
    model = LaptSNE(contraction=contraction, method=method, init=init, **options)
    return Run(model.fit(X), embeddings[0], embeddings[EARLY])


def procrustes_distances(A: Array, B: Array) -> Array:
    """Return the distances between corresponding points after a Procrustes fit, relative to the span of A."""
    A, B = A - A.mean(axis=0), B - B.mean(axis=0)
    rotation, scale = scipy.linalg.orthogonal_procrustes(B, A)
    return np.linalg.norm(A - B @ rotation * (scale / (B**2).sum()), axis=1) / np.ptp(A, axis=0).max()


def compare(title: str, one: Run, other: Run) -> None:
    distances = procrustes_distances(one.early, other.early)
    kl = other.model.kl_divergence_ / one.model.kl_divergence_ - 1
    eigenvalues = other.model.eigenvalues_.sum() / one.model.eigenvalues_.sum() - 1
    print(
        f"{title:40} {np.sqrt(np.mean(distances**2)):8.3%} {np.quantile(distances, 0.95):8.3%} {distances.max():8.3%}"
        f" {kl:+8.2%} {eigenvalues:+8.2%}",
        flush=True,
    )


def compare_means(exact: list[Run], fourier: list[Run]) -> None:
    """Print the relative difference of the means over the seeds, and the relative standard deviation of one run."""
    ends = np.array([[(r.model.kl_divergence_, r.model.eigenvalues_.sum()) for r in runs] for runs in (exact, fourier)])
    means = ends.mean(axis=1)
    change = means[1] / means[0] - 1
    deviation = ends.std(axis=1, ddof=1).mean(axis=0) / means[0]
    print(f"{'  means over five seeds':66} {change[0]:+8.2%} {change[1]:+8.2%}")
    print(f"{'  standard deviation of one run':66} {deviation[0]:8.2%} {deviation[1]:8.2%}", flush=True)


def print_maps() -> None:
    print(f"{'':40} {'RMS':>8} {'95 %':>8} {'maximum':>8} {'KL':>8} {'sum':>8}")
    for name, (X, _) in data().items():
        if name == "COIL20":
            continue
        for contraction in (0.0, "auto"):
            exact, fourier = ([run(X, contraction, method, seed) for seed in SEEDS] for method in ("exact", "fourier"))
            compare(f"{name}, contraction {contraction}", exact[0], fourier[0])
            noise = np.random.default_rng(0).standard_normal(exact[0].start.shape)
            start = exact[0].start * (1 + 1e-7 * noise)
            compare("  exact, init perturbed by 1e-7", exact[0], run(X, contraction, "exact", init=start))
            compare_means(exact, fourier)


PARTS = {"times": print_times, "errors": print_errors, "spacings": print_spacings, "maps": print_maps}


def parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__)
    parser.add_argument("part", choices=PARTS)
    return parser


def main() -> None:
    PARTS[parser().parse_args().part]()


if __name__ == "__main__":
    main()
