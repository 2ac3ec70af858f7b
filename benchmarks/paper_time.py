"""Time of LaptSNE in ratio to t-SNE on the same engine, as published and now, next to the paper's table of times.

python benchmarks/paper_time.py [coil20 coil100]

"as published" is LaptSNE.paper over all pairs: 100 iterations with the paper's k-hat and contraction 0.01, against the
same without contraction; LaptSNE-Mini moves batches of 100 points and ten neighbours of each. "now" is a whole fit at
the defaults against one with contraction 0. Affinities are computed beforehand. Methods take turns; times are medians.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from data import load

from laptsne import LaptSNE
from reproduction import paper

ROUNDS = 3
SETS = ("coil20", "coil100")


def models(name: str) -> dict[str, dict[str, Callable[[], LaptSNE]]]:
    """Return the models by setting and by method in the paper's table."""
    khat: Any = paper.khat(name)
    options: dict[str, Any] = {"metric": "affinities", "n_neighbors": "auto", "random_state": 0}

    def published(contraction: float, **changes: int) -> Callable[[], LaptSNE]:
        return lambda: LaptSNE.paper(khat, contraction, max_iter=100, **options, **changes)

    def now(**changes: Any) -> Callable[[], LaptSNE]:
        return lambda: LaptSNE(**options, **changes)

    batches = {"batch_size": 100, "n_batch_neighbors": 10}
    return {
        "as published": {
            "t-SNE": published(0.0),
            "LaptSNE": published(0.01),
            "LaptSNE-Mini": published(0.01, **batches),
        },
        "now": {"t-SNE": now(contraction=0.0), "LaptSNE": now()},
    }


def main() -> None:
    print(f"{'':10}{'':14}{'method':14}{'seconds':>9}{'ratio':>8}{'paper':>10}{'ratio':>8}")
    for name in sys.argv[1:] or SETS:
        X, _ = load(name)
        # Each setting has its own affinities: all pairs at perplexity 25, and the neighbours of the default.
        affinities = {
            "as published": LaptSNE.paper(2, 0.0, max_iter=1).fit(X).affinities_,
            "now": LaptSNE(contraction=0.0, max_iter=1).fit(X).affinities_,
        }
        printed = paper.seconds(name)
        for setting, made in models(name).items():
            times: dict[str, list[float]] = {method: [] for method in made}
            for round_number in range(ROUNDS + 1):
                for method, model in made.items():
                    start = time.perf_counter()
                    model().fit(affinities[setting])
                    if round_number:  # the first round compiles
                        times[method].append(time.perf_counter() - start)
            medians = {method: statistics.median(seconds) for method, seconds in times.items()}
            for method, seconds in medians.items():
                ratio, theirs = seconds / medians["t-SNE"], printed[method] / printed["t-SNE"]
                line = f"{name:10}{setting:14}{method:14}{seconds:9.2f}{ratio:8.2f}"
                print(f"{line}{printed[method]:10.1f}{theirs:8.2f}", flush=True)


if __name__ == "__main__":
    main()
