"""LapUMAP beside umap-learn: the same maps, and what contraction adds.

python benchmarks/lapumap.py [--group reporting] [--max-rows 20000] [--contraction 0 auto ...] [--seeds 1]
python benchmarks/lapumap.py --relaxed [--group choosing]
python benchmarks/lapumap.py --time 70000

The first form prints, per set and in the mean: cross-validated 10-NN, trustworthiness, NMI and silhouette of k-means,
neighbours kept, and the loss without contraction (laptsne.engine.cross_entropy.CrossEntropy) on the same graph. A
contraction is "auto", or a number that is divided by the number of clusters. Maps of umap-learn are stored, so that a
second run takes minutes. Needs the suite in LAPTSNE_DATA.

The second form prints the scores of maps of umap-learn after a descent to a minimum of our loss, with and without its
bound on the repulsion.

The third form prints the times of warm fits of MNIST in 50 dimensions with two threads, which take turns: umap-learn
with its threads and without a seed, umap-learn with a seed, and LapUMAP with a seed.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import umap
from data import enlarged_mnist
from suite_sets import GROUPS, Dataset, load, n_rows
from umap_maps import umap_fit

from laptsne import LapUMAP, metrics
from laptsne.clusters.counting import find_clusters, main_clusters
from laptsne.engine.cross_entropy import CrossEntropy
from laptsne.fields import ExactFields, umap_kernel
from laptsne.fields.umap_kernel import UmapKernel
from laptsne.graph.affinity import joint_affinities

SCORES = ("10-NN", "trust", "NMI", "SC", "kept", "loss")
N_THREADS = 2


def scores(data: Dataset, Y: Any, loss: CrossEntropy) -> list[float]:
    """Return the scores of a map."""
    found = metrics.cluster_scores(Y, data.y, len(np.unique(data.y)))
    trust = metrics.trustworthiness(data.X, Y, n_neighbors=15)
    value = loss.value(ExactFields(np.asarray(Y, dtype=np.float64)))
    kept = float(data.faithfulness.neighbors_kept(Y))
    return [metrics.knn_accuracy(Y, data.y), float(trust), found.nmi, found.silhouette, kept, value]


def maps(data: Dataset, seed: int, contractions: list[str]) -> dict[str, list[float]]:
    """Return the scores of umap-learn and of LapUMAP on the graph of the former."""
    theirs = umap_fit(data, seed)
    P = joint_affinities(theirs.graph, perplexity=1.0, metric="affinities")
    loss = CrossEntropy(P, kernel=UmapKernel.of(0.1, 1.0), repulsion=5.0, exact=len(data.y) < 3000)
    n_clusters = int(main_clusters(find_clusters(P), P, 60).max()) + 1
    found = {"umap-learn": scores(data, theirs.embedding, loss)}
    for given in contractions:
        strength: float | str = "auto" if given == "auto" else float(given) / n_clusters
        model = LapUMAP(metric="affinities", contraction=strength, random_state=seed).fit(P)
        found[f"LapUMAP, {given}"] = scores(data, model.embedding_, loss)
    return found


def relaxed(data: Dataset, seed: int) -> dict[str, list[float]]:
    """Return the scores of umap-learn, and of its map at a minimum of the loss with and without a bound."""
    theirs = umap_fit(data, seed)
    P = joint_affinities(theirs.graph, perplexity=1.0, metric="affinities")
    loss = CrossEntropy(P, kernel=UmapKernel.of(0.1, 1.0), repulsion=5.0, exact=len(data.y) < 3000)
    found = {"umap-learn": scores(data, theirs.embedding, loss)}
    for name, bounds in (("bounded", {}), ("not bounded", {2: 1e6})):
        with mock.patch.dict(umap_kernel._BOUNDS, bounds):
            model = LapUMAP(metric="affinities", contraction=0, init=theirs.embedding, random_state=seed).fit(P)
        found[name] = scores(data, model.embedding_, loss)
    return found


def compare(group: str, max_rows: int, seeds: int, run: Callable[[Dataset, int], dict[str, list[float]]]) -> None:
    """Print the scores of all sets of a group, and their means."""
    rows: list[dict[str, list[float]]] = []
    for name in GROUPS[group]:
        if n_rows(name) > max_rows:
            continue
        data = load(name)
        runs = [run(data, seed) for seed in range(seeds)]
        rows.append({method: list(np.mean([run[method] for run in runs], axis=0)) for method in runs[0]})
        for method, values in rows[-1].items():
            print(f"{name:28} {method:16}" + "".join(f"{value:8.3f}" for value in values), flush=True)
    print(f"\n{'mean':16}" + "".join(f"{score:>8}" for score in SCORES))
    for method in rows[0]:
        print(f"{method:16}" + "".join(f"{value:8.3f}" for value in np.mean([row[method] for row in rows], axis=0)))


def timings(n_samples: int, repeats: int = 3) -> None:
    """Print the medians of warm fits, and their ratios to umap-learn with threads."""
    X = np.asarray(enlarged_mnist(n_samples)[0], dtype=np.float32)
    fits: dict[str, Callable[[Any], Any]] = {
        "umap-learn": lambda X: umap.UMAP(n_jobs=N_THREADS).fit(X),
        "umap-learn, seed": lambda X: umap.UMAP(random_state=0, n_jobs=1).fit(X),
        "LapUMAP": lambda X: LapUMAP(contraction=0, n_jobs=N_THREADS, random_state=0).fit(X),
        "LapUMAP, contraction": lambda X: LapUMAP(n_jobs=N_THREADS, random_state=0).fit(X),
    }
    seconds: dict[str, list[float]] = {name: [] for name in fits}
    for fit in fits.values():
        fit(X[:12_000])  # compiles
    for _ in range(repeats):
        for name, fit in fits.items():
            start = time.perf_counter()
            fit(X)
            seconds[name].append(time.perf_counter() - start)
    base = np.median(seconds["umap-learn"])
    for name, taken in seconds.items():
        print(f"{name:22}{np.median(taken):8.1f} s{np.median(taken) / base:8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group", default="reporting", choices=sorted(GROUPS))
    parser.add_argument("--max-rows", type=int, default=20_000)
    parser.add_argument("--contraction", nargs="+", default=["0", "auto"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--relaxed", action="store_true")
    parser.add_argument("--time", type=int, metavar="N")
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    if options.time:
        timings(options.time)
    else:
        run = relaxed if options.relaxed else partial(maps, contractions=options.contraction)
        compare(options.group, options.max_rows, options.seeds, run)


if __name__ == "__main__":
    main()
