"""How far runs with exact sums and with Fourier transforms come apart.

python benchmarks/agreement.py

From the same start. After 50 iterations: distances of the points of both maps after a Procrustes fit, as shares of the
span of the exact one. At the end: KL divergence and sum of eigenvalues, Fourier against exact. The other lines compare
exact runs from two seeds, whose starts differ by a hundredth of noise: what a run's own chance amounts to.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from data import enlarged_mnist, reduced
from numpy.typing import NDArray

from laptsne import Descent, LaptSNE
from laptsne.optimizer import State

EARLY = 50


def run(X: NDArray[Any], contraction: Any, method: str, seed: int = 0) -> tuple[NDArray[Any], LaptSNE]:
    early: list[NDArray[Any]] = []

    def keep(state: State) -> None:
        if state.iteration == EARLY:
            early.append(state.embedding)

    model = LaptSNE(
        contraction=contraction, method=method, optimizer=Descent(tol=0), callbacks=keep, n_jobs=2, random_state=seed
    )
    model.fit(X)
    return early[0], model


def apart(A: NDArray[Any], B: NDArray[Any]) -> NDArray[Any]:
    A, B = A - A.mean(axis=0), B - B.mean(axis=0)
    rotation, scale = scipy.linalg.orthogonal_procrustes(B, A)
    return np.linalg.norm(A - B @ rotation * (scale / (B**2).sum()), axis=1) / np.ptp(A, axis=0).max()


def compare(title: str, one: tuple[NDArray[Any], LaptSNE], other: tuple[NDArray[Any], LaptSNE]) -> None:
    distances = apart(one[0], other[0])
    kl = other[1].kl_divergence_ / one[1].kl_divergence_ - 1
    eigenvalues = other[1].eigenvalues_.sum() / one[1].eigenvalues_.sum() - 1
    print(
        f"{title:40} {np.sqrt(np.mean(distances**2)):8.3%} {np.quantile(distances, 0.95):8.3%} {distances.max():8.3%}"
        f" {kl:+8.2%} {eigenvalues:+8.2%}",
        flush=True,
    )


def main() -> None:
    print(f"{'':40} {'rms':>8} {'95 %':>8} {'furthest':>8} {'KL':>8} {'sum':>8}")
    for name, X in (("digits", reduced("digits")[0]), ("MNIST, 5000", enlarged_mnist(5000)[0])):
        for contraction in (0.0, "auto"):
            exact = run(X, contraction, "exact")
            compare(f"{name}, contraction {contraction}", exact, run(X, contraction, "fourier"))
            compare("  exact, another seed", exact, run(X, contraction, "exact", 1))


if __name__ == "__main__":
    main()
