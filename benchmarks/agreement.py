"""Agreement of exact and Fourier sums.

python benchmarks/agreement.py

Both runs use the same initialisation. After 50 iterations: distances between corresponding points of the two embeddings
after a Procrustes fit, relative to the span of the exact one. After the last iteration: KL divergence and sum of
eigenvalues, Fourier relative to exact. The next row shows the effect of rounding, by two exact runs whose
initialisations differ by a relative 1e-7; the last two compare means over five seeds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from data import enlarged_mnist, reduced
from numpy.typing import NDArray

from laptsne import Descent, LaptSNE
from laptsne.engine.state import State

EARLY = 50
SEEDS = range(5)


@dataclass
class Run:
    """A fitted model, its initial embedding and that after 50 iterations."""

    model: LaptSNE
    start: NDArray[Any]
    early: NDArray[Any]


def run(X: NDArray[Any], contraction: Any, method: str, seed: int = 0, init: Any = "spectral") -> Run:
    embeddings: dict[int, NDArray[Any]] = {}

    def record(state: State) -> None:
        if state.iteration in (0, EARLY):
            embeddings[state.iteration] = state.embedding

    model = LaptSNE(
        contraction=contraction,
        method=method,
        init=init,
        optimizer=Descent(tol=0),
        callbacks=record,
        n_jobs=2,
        random_state=seed,
    )
    return Run(model.fit(X), embeddings[0], embeddings[EARLY])


def procrustes_distances(A: NDArray[Any], B: NDArray[Any]) -> NDArray[Any]:
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


def main() -> None:
    print(f"{'':40} {'RMS':>8} {'95 %':>8} {'maximum':>8} {'KL':>8} {'sum':>8}")
    for name, X in (("digits", reduced("digits")[0]), ("MNIST, 5000", enlarged_mnist(5000)[0])):
        for contraction in (0.0, "auto"):
            exact, fourier = ([run(X, contraction, method, seed) for seed in SEEDS] for method in ("exact", "fourier"))
            compare(f"{name}, contraction {contraction}", exact[0], fourier[0])
            noise = np.random.default_rng(0).standard_normal(exact[0].start.shape)
            start = exact[0].start * (1 + 1e-7 * noise)
            compare("  exact, init perturbed by 1e-7", exact[0], run(X, contraction, "exact", init=start))
            compare_means(exact, fourier)


if __name__ == "__main__":
    main()
