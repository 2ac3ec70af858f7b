"""Times of whole fits with exact sums, Fourier sums and those that "auto" chooses, around the break-even.

python benchmarks/crossover.py

Subsets of MNIST reduced to 50 dimensions, 300 iterations in two dimensions. The methods alternate; medians of three
runs. With "auto" and "fourier", steps use a coarse grid (benchmarks/coarse_grid.py). See benchmarks/fields.py for
single evaluations in one and three dimensions.
"""

from __future__ import annotations

import statistics

from data import enlarged_mnist
from timing import seconds

from laptsne import Descent, LaptSNE

REPEATS = 3
SIZES = (4000, 6000, 8000, 10_000)


def main() -> None:
    print(f"{'N':>6} {'contraction':>11} {'exact':>8} {'fourier':>8} {'auto':>8}  (s)")
    for n in SIZES:
        X, _ = enlarged_mnist(n)
        for contraction in (0.0, "auto"):
            times: dict[str, list[float]] = {"exact": [], "fourier": [], "auto": []}
            for _ in range(REPEATS):
                for method, found in times.items():
                    model = LaptSNE(
                        method=method, contraction=contraction, optimizer=Descent(tol=0), n_jobs=2, random_state=0
                    )
                    found.append(seconds(lambda model=model, X=X: model.fit(X)))
            cells = "".join(f"{statistics.median(found):9.1f}" for found in times.values())
            print(f"{n:6} {contraction:>11}{cells}", flush=True)


if __name__ == "__main__":
    main()
