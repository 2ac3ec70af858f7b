"""Exact and Fourier sums: time as a function of the number of points, error as a function of the span.

python benchmarks/fields.py

Points are Gaussian clouds with the span of an embedding of their size, about 1.2 sqrt(N) in two dimensions. "0" is the
field of unit charges and its gradient, which is all that plain t-SNE needs; "15" adds the weighted gradient of 15
further fields.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from timing import median_seconds

from laptsne._runtime.threads import Workers
from laptsne.fields import ExactFields, FourierFields

REPEATS = 5
SIZES = {1: (1000, 2000, 5000), 2: (2000, 5000, 7000, 10_000, 14_000, 20_000, 70_000), 3: (10_000, 40_000)}
SPANS = (1e-4, 0.1, 1.0, 2.5, 8.0, 40.0, 150.0, 500.0)


def cloud(n: int, n_dims: int, span: float) -> np.ndarray:
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
    exact, fourier = ExactFields(single, workers=workers), FourierFields(Y, workers)
    packed, packed_fourier = exact.pack(charges, charges), fourier.pack(charges, charges)
    return [
        milliseconds(lambda: ExactFields(single, workers=workers).degrees),
        milliseconds(lambda: FourierFields(Y, workers).degrees),
        milliseconds(lambda: ExactFields(single, workers=workers).weighted_gradient(packed)),
        milliseconds(lambda: FourierFields(Y, workers).weighted_gradient(packed_fourier)),
    ]


def errors(span: float, workers: Workers) -> list[float]:
    Y = cloud(3000, 2, span)
    charges = np.random.default_rng(1).normal(size=(len(Y), 5))
    exact, fourier = ExactFields(Y, workers=workers), FourierFields(Y, workers)
    pairs = [
        (fourier.degrees, exact.degrees),
        (fourier.slope, exact.slope),
        (fourier.values(charges), exact.values(charges)),
        (fourier.weighted_gradient((charges, charges)), exact.weighted_gradient(exact.pack(charges, charges))),
    ]
    return [float(np.linalg.norm(a - b) / np.linalg.norm(b)) for a, b in pairs]


def main() -> None:
    with Workers() as workers:
        print(f"{'dims':>4} {'N':>6} {'exact 0':>10} {'fourier 0':>10} {'exact 15':>10} {'fourier 15':>10}   (ms)")
        for n_dims, sizes in SIZES.items():
            for n in sizes:
                cells = "".join(f"{cost:11.2f}" for cost in costs(n, n_dims, workers))
                print(f"{n_dims:4} {n:6}{cells}", flush=True)
        print(f"\n{'span':>8} {'degrees':>10} {'slope':>10} {'values':>10} {'gradients':>10}   (relative error)")
        for span in SPANS:
            print(f"{span:8g}" + "".join(f"{error:11.1e}" for error in errors(span, workers)))


if __name__ == "__main__":
    main()
