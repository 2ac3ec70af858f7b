"""What contraction costs: 100 iterations with it and without it, on COIL20 and COIL100.

python benchmarks/contraction_cost.py

Both run in this process with exact sums, alternating; the ratio is that of the medians. "from the start": contraction
is in force in all iterations; "default": as the defaults have it, in the second half. "fit" is the whole of fit, as the
paper's table has it; "iterations" is the descent alone, from the first iteration to the last.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from data import reduced

from laptsne import Descent, LaptSNE

REPEATS = 5
SCHEDULES = {
    "from the start": {"early_exaggeration": 1, "optimizer": Descent(contraction_start=0, contraction_ramp=0)},
    "default": {},
}
BARS = {"coil20": 1.5, "coil100": 2.0}
PAPER = {"coil20": (19, 60.4 / 8.4), "coil100": (7, 14876.7 / 147.9)}


def run(X: Any, schedule: str, n_clusters: int | str, contraction: float) -> tuple[float, float]:
    moments: list[float] = []
    model = LaptSNE(
        n_clusters=n_clusters,
        contraction=contraction,
        max_iter=100,
        method="exact",
        callbacks=lambda state: moments.append(time.perf_counter()),
        random_state=0,
        **SCHEDULES[schedule],
    )
    start = time.perf_counter()
    model.fit(X)
    return time.perf_counter() - start, moments[-1] - moments[0]


def main() -> None:
    print(
        f"{'data':8} {'contraction':>15} {'k':>5} {'fit on/off (s)':>16} {'ratio':>6} {'bar':>5}"
        f" {'iterations':>16} {'ratio':>6} {'paper':>6}"
    )
    for name, bar in BARS.items():
        X, _ = reduced(name)
        k_hat, paper = PAPER[name]
        for schedule in SCHEDULES:
            for n_clusters in (k_hat, "auto"):
                run(X, schedule, n_clusters, 0.01)
                pairs = [
                    (run(X, schedule, n_clusters, 0.0), run(X, schedule, n_clusters, 0.01)) for _ in range(REPEATS)
                ]
                off, on = ([statistics.median(pair[i][part] for pair in pairs) for part in (0, 1)] for i in (0, 1))
                print(
                    f"{name:8} {schedule:>15} {n_clusters:>5} {on[0]:8.2f}/{off[0]:<7.2f} {on[0] / off[0]:6.2f} "
                    f"{bar:5.1f} {on[1]:8.2f}/{off[1]:<7.2f} {on[1] / off[1]:6.2f} {paper:6.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
