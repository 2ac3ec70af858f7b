"""Cost of contraction: fits with and without it, which alternate in one process; ratios are ratios of medians.

python benchmarks/contraction_cost.py 2000 10000 70000 1000000  # numbers of points of MNIST; defaults
python benchmarks/contraction_cost.py                           # the paper's kernel, on COIL20 and COIL100

On a machine that others use, the ratio of the processor times is the more reliable one.

With the paper's kernel, sums are exact, and contraction is active in all of 100 iterations ("from the start") or in the
second half ("default"). "fit" is the time of the whole fit, as in the paper's table; "iterations" is that of the
descent alone.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

from data import enlarged_mnist, reduced
from timing import seconds

from laptsne import Descent, LaptSNE

REPEATS = 5
SCHEDULES = {
    "from the start": {"early_exaggeration": 1, "optimizer": Descent(contraction_start=0, contraction_ramp=0)},
    "default": {},
}
MAX_RATIOS = {"coil20": 1.5, "coil100": 2.0}
# k-hat, and the ratio of the times with and without contraction.
PAPER = {"coil20": (19, 60.4 / 8.4), "coil100": (7, 14876.7 / 147.9)}


def run(X: Any, schedule: str, n_clusters: int | str, contraction: float) -> tuple[float, float]:
    """Return the seconds of the fit and of its iterations."""
    moments: list[float] = []
    model = LaptSNE(
        n_clusters=n_clusters,
        contraction=contraction,
        max_iter=100,
        method="exact",
        contraction_kernel="student",
        callbacks=lambda state: moments.append(time.perf_counter()),
        random_state=0,
        **SCHEDULES[schedule],
    )
    start = time.perf_counter()
    model.fit(X)
    return time.perf_counter() - start, moments[-1] - moments[0]


def by_size(n: int) -> None:
    """Print the time of whole fits at the defaults, with and without contraction."""
    X, _ = enlarged_mnist(n)
    models = [LaptSNE(contraction=contraction, random_state=0) for contraction in ("auto", 0)]
    models[0].set_params(max_iter=20).fit(X[:20_000])  # compiles what needs compiling
    models[0].set_params(max_iter=300)
    times: dict[str, list[list[float]]] = {"time": [[], []], "processor time": [[], []]}
    for _ in range(REPEATS if n < 1e5 else 1):
        for which, model in enumerate(models):
            busy = time.process_time()
            times["time"][which].append(seconds(lambda model=model: model.fit(X)))
            times["processor time"][which].append(time.process_time() - busy)
    for title, found in times.items():
        on, off = map(statistics.median, found)
        clusters = f"{n:9,} points, {models[0].n_clusters_} clusters, {title:14}"
        print(f"{clusters}: {on:7.2f} s / {off:7.2f} s = {on / off:.3f}", flush=True)


def main() -> None:
    if len(sys.argv) > 1:
        for n in sys.argv[1:]:
            by_size(int(n))
        return
    print(
        f"{'data':8} {'contraction':>15} {'k':>5} {'fit on/off (s)':>16} {'ratio':>6} {'limit':>5}"
        f" {'iterations':>16} {'ratio':>6} {'paper':>6}"
    )
    for name, max_ratio in MAX_RATIOS.items():
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
                    f"{max_ratio:5.1f} {on[1]:8.2f}/{off[1]:<7.2f} {on[1] / off[1]:6.2f} {paper:6.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
