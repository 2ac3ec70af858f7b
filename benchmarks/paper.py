"""How do the paper's time, mini-batches and numbers of clusters compare with ours on its data?

python benchmarks/paper.py time [coil20 coil100]       # the paper's table of times, as ratios to t-SNE: half an hour
python benchmarks/paper.py minibatch [coil20 coil100]  # LaptSNE-Mini beside the full method: half an hour
python benchmarks/paper.py eigengap [digits ...]       # the number of clusters by the eigengap: minutes

``time``: "as published" is LaptSNE.paper over all pairs: 100 iterations with the paper's k-hat and contraction 0.01,
against the same without contraction; LaptSNE-Mini moves batches of 100 points and ten neighbours of each. "now" is a
whole fit at the defaults against one with contraction 0. Affinities are computed beforehand. Methods take turns; times
are medians.

``minibatch``: perplexity 25, trace penalty, learning rate 100, 500 iterations, k-hat as in the paper; the full method
updates the eigenvectors in every iteration. Affinities are computed beforehand, and the time of the initial spectrum is
subtracted, so that ratios are those of the iterations alone. Methods alternate; times are medians and scores are means
over the seeds, followed by their difference from the full method.

``eigengap``: the number that the authors read off their plots, that of n_clusters="eigengap" with nearest neighbours
at perplexities 20 and 30, and with all pairs at perplexity 25, the paper's setting, up to 11,000 points.

Needs ``pip install ".[reproduction]"``.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from shared import command_line, load, reduced

from laptsne import LaptSNE
from laptsne.metrics import cluster_scores, knn_accuracy

# Time

ROUNDS = 3


def models(name: str) -> dict[str, dict[str, Callable[[], LaptSNE]]]:
    """Return the models by setting and by method in the paper's table."""
    from reproduction import paper

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


def print_times(names: list[str]) -> None:
    from reproduction import paper

    print(f"{'':10}{'':14}{'method':14}{'seconds':>9}{'ratio':>8}{'paper':>10}{'ratio':>8}")
    for name in names or ["coil20", "coil100"]:
        X, _ = load(name)
        # Each setting has its own affinities: all pairs at perplexity 25, and the neighbours of the default.
        affinities = {
            "as published": LaptSNE.paper(2, 0.0, max_iter=1).fit(X).affinities_,
            "now": LaptSNE(contraction=0.0, max_iter=1).fit(X).affinities_,
        }
        printed = paper.seconds(name)
        for setting, made in models(name).items():
            medians = in_turn(made, affinities[setting])
            for method, seconds in medians.items():
                ratio, theirs = seconds / medians["t-SNE"], printed[method] / printed["t-SNE"]
                line = f"{name:10}{setting:14}{method:14}{seconds:9.2f}{ratio:8.2f}"
                print(f"{line}{printed[method]:10.1f}{theirs:8.2f}", flush=True)


def in_turn(made: dict[str, Callable[[], LaptSNE]], P: Any) -> dict[str, float]:
    """Return the median time of each model, which are fitted in turn."""
    times: dict[str, list[float]] = {method: [] for method in made}
    for round_number in range(ROUNDS + 1):
        for method, model in made.items():
            start = time.perf_counter()
            model().fit(P)
            if round_number:  # the first round compiles
                times[method].append(time.perf_counter() - start)
    return {method: statistics.median(seconds) for method, seconds in times.items()}


# Mini-batches

# k-hat, contraction, batches (size, neighbours per point) and number of seeds.
SETTINGS: dict[str, tuple[int, float, list[tuple[int, int]], int]] = {
    "coil20": (19, 0.01, [(200, 0), (100, 0), (100, 10)], 3),
    "coil100": (7, 0.01, [(1000, 0), (100, 10)], 1),
}
COLUMNS = ("10-NN", "NMI", "SC", "DBI", "KL")


def print_batches(names: list[str]) -> None:
    for name in names or SETTINGS:
        n_clusters, contraction, batches, n_seeds = SETTINGS[name]
        X, y = load(name)
        P = LaptSNE.paper(n_clusters, contraction, max_iter=1, n_jobs=2).fit(X).affinities_
        options: dict[str, Any] = {"metric": "affinities", "n_neighbors": "auto", "n_jobs": 2}
        kinds: dict[str, dict[str, int]] = {"full": {}}
        kinds |= {f"batches of {m}, {k} neighbours": {"batch_size": m, "n_batch_neighbors": k} for m, k in batches}
        times: dict[str, list[float]] = {title: [] for title in kinds}
        scores: dict[str, list[tuple[float, ...]]] = {title: [] for title in kinds}
        for kind in kinds.values():
            LaptSNE.paper(n_clusters, contraction, max_iter=5, **kind, **options).fit(P)
        start = time.perf_counter()
        LaptSNE.paper(n_clusters, contraction, max_iter=1, **options).fit(P)
        before = time.perf_counter() - start
        for seed in range(n_seeds):
            for title, kind in kinds.items():
                model = LaptSNE.paper(n_clusters, contraction, random_state=seed, **kind, **options)
                start = time.perf_counter()
                Y = model.fit_transform(P)
                times[title].append(time.perf_counter() - start - before)
                scores[title].append((knn_accuracy(Y, y, 10), *cluster_scores(Y, y), model.kl_divergence_))
        print(f"{name}: {before:.1f} s before the iterations")
        print_changes(times, scores)


def print_changes(times: dict[str, list[float]], scores: dict[str, list[tuple[float, ...]]]) -> None:
    full = statistics.median(times["full"]), np.mean(scores["full"], axis=0)
    print(f"{'':30} {'seconds':>8} {'ratio':>6}" + "".join(f"{column:>15}" for column in COLUMNS))
    for title, taken in times.items():
        seconds, mean = statistics.median(taken), np.mean(scores[title], axis=0)
        changes = zip(mean, mean - full[1], strict=True)
        cells = "".join(f"{value:8.3f}{change:+7.3f}" for value, change in changes)
        print(f"{title:30} {seconds:8.1f} {seconds / full[0]:6.2f}{cells}", flush=True)


# The eigengap

MAX_ALL_PAIRS = 11_000
PAPER = {"digits": 11, "coil20": 19, "coil100": 7, "waveform": 19, "mnist": 14, "fashion_mnist": 12, "har": 10}
GRAPHS: tuple[tuple[Any, float], ...] = (("auto", 20.0), ("auto", 30.0), ("all", 25.0))  # neighbours and perplexity


def print_eigengaps(names: list[str]) -> None:
    titles = ("classes", "paper", "neighbours, 20", "neighbours, 30", "all pairs, 25")
    print(f"{'data':16}" + "".join(f"{title:>16}" for title in titles))
    for name in names or PAPER:
        try:
            X, y = reduced(name)
        except FileNotFoundError as error:
            warnings.warn(str(error), stacklevel=1)
            continue
        cells = []
        for n_neighbors, perplexity in GRAPHS:
            model = LaptSNE(n_clusters="eigengap", n_neighbors=n_neighbors, perplexity=perplexity, max_iter=1)
            too_large = n_neighbors == "all" and len(X) > MAX_ALL_PAIRS
            cells.append("" if too_large else str(model.fit(X).n_clusters_))
        title = name + (" (reconstr.)" if name == "har" else "")
        row = (len(set(y.tolist())), PAPER[name], *cells)
        print(f"{title:16}" + "".join(f"{cell:>16}" for cell in row), flush=True)


PARTS = {"time": print_times, "minibatch": print_batches, "eigengap": print_eigengaps}


def parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("names", nargs="*", metavar="SET", help="sets of the paper")
    return parser


def main() -> None:
    args = parser().parse_args()
    PARTS[args.part](args.names)


if __name__ == "__main__":
    main()
