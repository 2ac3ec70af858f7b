"""How far runs with exact sums and with Fourier transforms come apart.

python benchmarks/agreement.py

From the same start. After 50 iterations: distances of the points of both maps after a Procrustes fit, as shares of the
span of the exact one. At the end: KL divergence and sum of eigenvalues, Fourier against exact. Below it, what a run's
own chance amounts to: two exact runs whose starts differ in the seventh digit. Last, means over five seeds, where
that chance averages out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from data import enlarged_mnist, reduced
from numpy.typing import NDArray

from laptsne import Descent, LaptSNE
from laptsne.embedding.state import State

EARLY = 50
SEEDS = range(5)


@dataclass
class Run:
    """A fitted model and two of the maps on its way."""

    model: LaptSNE
    start: NDArray[Any]
    early: NDArray[Any]


def run(X: NDArray[Any], contraction: Any, method: str, seed: int = 0, init: Any = "spectral") -> Run:
    maps: dict[int, NDArray[Any]] = {}

    def keep(state: State) -> None:
        if state.iteration in (0, EARLY):
            maps[state.iteration] = state.embedding

    model = LaptSNE(
        contraction=contraction,
        method=method,
        init=init,
        optimizer=Descent(tol=0),
        callbacks=keep,
        n_jobs=2,
        random_state=seed,
    )
    return Run(model.fit(X), maps[0], maps[EARLY])


def apart(A: NDArray[Any], B: NDArray[Any]) -> NDArray[Any]:
    A, B = A - A.mean(axis=0), B - B.mean(axis=0)
    rotation, scale = scipy.linalg.orthogonal_procrustes(B, A)
    return np.linalg.norm(A - B @ rotation * (scale / (B**2).sum()), axis=1) / np.ptp(A, axis=0).max()


def compare(title: str, one: Run, other: Run) -> None:
    distances = apart(one.early, other.early)
    kl = other.model.kl_divergence_ / one.model.kl_divergence_ - 1
    eigenvalues = other.model.eigenvalues_.sum() / one.model.eigenvalues_.sum() - 1
    print(
        f"{title:40} {np.sqrt(np.mean(distances**2)):8.3%} {np.quantile(distances, 0.95):8.3%} {distances.max():8.3%}"
        f" {kl:+8.2%} {eigenvalues:+8.2%}",
        flush=True,
    )


def compare_means(exact: list[Run], fourier: list[Run]) -> None:
    """Print how far the means over the seeds are apart, and the deviation of one run, as shares of the means."""
    ends = np.array([[(r.model.kl_divergence_, r.model.eigenvalues_.sum()) for r in runs] for runs in (exact, fourier)])
    means = ends.mean(axis=1)
    change = means[1] / means[0] - 1
    deviation = ends.std(axis=1, ddof=1).mean(axis=0) / means[0]
    print(f"{'  means of five seeds':66} {change[0]:+8.2%} {change[1]:+8.2%}")
    print(f"{'  standard deviation of one run':66} {deviation[0]:8.2%} {deviation[1]:8.2%}", flush=True)


def main() -> None:
    print(f"{'':40} {'rms':>8} {'95 %':>8} {'furthest':>8} {'KL':>8} {'sum':>8}")
    for name, X in (("digits", reduced("digits")[0]), ("MNIST, 5000", enlarged_mnist(5000)[0])):
        for contraction in (0.0, "auto"):
            exact, fourier = ([run(X, contraction, method, seed) for seed in SEEDS] for method in ("exact", "fourier"))
            compare(f"{name}, contraction {contraction}", exact[0], fourier[0])
            noise = np.random.default_rng(0).standard_normal(exact[0].start.shape)
            start = exact[0].start * (1 + 1e-7 * noise)
            compare("  exact, the start moved by 1e-7", exact[0], run(X, contraction, "exact", init=start))
            compare_means(exact, fourier)


if __name__ == "__main__":
    main()
