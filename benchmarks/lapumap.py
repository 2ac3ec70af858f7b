"""How do LapUMAP and ``contract`` change the maps of umap-learn, and how long does LapUMAP take?

python benchmarks/lapumap.py maps [--group reporting] [--contraction 0 auto ...] [--seeds 1]  # an hour per seed
python benchmarks/lapumap.py relaxed --group choosing                      # the bound on the repulsion: an hour
python benchmarks/lapumap.py contract [--variants default "width 0.5" ...] # minutes
python benchmarks/lapumap.py time [--rows 70000]                           # minutes

Prints scores per set and in the mean: cross-validated 10-NN, trustworthiness, NMI and silhouette of k-means, neighbours
kept, and the loss of LapUMAP without contraction on the graph of umap-learn. Maps of umap-learn are stored, since they
take most of the time. Sets have at most ``--max-rows`` rows. Needs the suite in LAPTSNE_DATA and umap-learn.

``maps``: umap-learn, and LapUMAP on its graph; a contraction is "auto", or a number that is divided by the number of
clusters. ``relaxed``: maps of umap-learn after a descent to a minimum of our loss, with and without its bound on the
repulsion. ``contract``: maps before and after ``laptsne.contract``, and how far points moved (RMS, in RMS radii of the
map), instead of trustworthiness and loss; its constants were chosen by eye on maps of digits, pbmc4k and 5,000 points
of MNIST. ``time``: warm fits of MNIST in 50 dimensions with two threads, which take turns: umap-learn with its threads
and without a seed, umap-learn with a seed, and LapUMAP with a seed.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import scipy.sparse
from constants import Variant, changed
from shared import THREADS, command_line, enlarged_mnist, seconds
from suite_runs import GROUPS, Dataset, load, n_rows

from laptsne import LapUMAP, contract, metrics
from laptsne.engine.cross_entropy import CrossEntropy
from laptsne.fields import ExactFields, umap_kernel

SCORES = ("10-NN", "trust", "NMI", "SC", "kept", "loss")
MOVED = ("10-NN", "NMI", "SC", "kept", "moved")
REPEATS = 3
Scores = dict[str, list[float]]  # by method


class UmapFit(NamedTuple):
    """The embedding and the graph of umap-learn."""

    embedding: Any
    graph: Any


def umap_fit(data: Dataset, seed: int) -> UmapFit:
    """Return the fit of umap-learn with its default parameters, which is stored in the temporary folder."""
    import umap

    folder = Path(tempfile.gettempdir()) / "laptsne-benchmark-umap"
    path = folder / f"{data.name}-{data.digest}-{umap.__version__}-{seed}.npz"
    if not path.exists():
        model = umap.UMAP(random_state=seed, n_jobs=1).fit(data.X)
        graph = model.graph_.tocsr()
        folder.mkdir(exist_ok=True)
        parts = {"data": graph.data, "indices": graph.indices, "indptr": graph.indptr}
        unfinished = path.with_suffix(".part.npz")
        np.savez(unfinished, embedding=model.embedding_, **parts)
        unfinished.replace(path)
    with np.load(path) as stored:
        graph = scipy.sparse.csr_matrix((stored["data"], stored["indices"], stored["indptr"]))
        return UmapFit(stored["embedding"], graph)


def loss_of(graph: Any) -> CrossEntropy:
    """Return the loss of LapUMAP on a graph."""
    P = LapUMAP(metric="affinities", contraction=0, max_iter=1).fit(graph).affinities_
    kernel = umap_kernel.UmapKernel.of(0.1, 1.0)
    return CrossEntropy(P, kernel=kernel, repulsion=5.0, exact=P.shape[0] < 3000)


def scores(data: Dataset, Y: Any, loss: CrossEntropy) -> list[float]:
    """Return the scores of a map, in the order of SCORES."""
    found = metrics.cluster_scores(Y, data.y, data.n_classes)
    trust = metrics.trustworthiness(data.X, Y, n_neighbors=15)
    value = loss.value(ExactFields(np.asarray(Y, dtype=np.float64)))
    kept = float(data.faithfulness.neighbors_kept(Y))
    return [metrics.knn_accuracy(Y, data.y), float(trust), found.nmi, found.silhouette, kept, value]


def maps(data: Dataset, seed: int, contractions: list[str]) -> Scores:
    """Return the scores of umap-learn and of LapUMAP on the graph of the former."""
    theirs = umap_fit(data, seed)
    loss = loss_of(theirs.graph)
    n_clusters = LapUMAP(metric="affinities", max_iter=1).fit(theirs.graph).n_clusters_
    found = {"umap-learn": scores(data, theirs.embedding, loss)}
    for given in contractions:
        strength: float | str = "auto" if given == "auto" else float(given) / n_clusters
        model = LapUMAP(metric="affinities", contraction=strength, random_state=seed).fit(theirs.graph)
        found[f"LapUMAP, {given}"] = scores(data, model.embedding_, loss)
    return found


def relaxed(data: Dataset, seed: int) -> Scores:
    """Return the scores of umap-learn, and of its map at a minimum of the loss with and without a bound."""
    theirs = umap_fit(data, seed)
    loss = loss_of(theirs.graph)
    found = {"umap-learn": scores(data, theirs.embedding, loss)}
    for name, bounds in (("bounded", {}), ("not bounded", {2: 1e6})):
        with mock.patch.dict(umap_kernel._BOUNDS, bounds):
            model = LapUMAP(metric="affinities", contraction=0, init=theirs.embedding, random_state=seed)
            found[name] = scores(data, model.fit(theirs.graph).embedding_, loss)
    return found


WIDTH, SMOOTHNESS = "laptsne.contraction.finished:WIDTH", "laptsne.contraction.finished:SMOOTHNESS"
VARIANTS: dict[str, Variant] = {
    "default": Variant.of(),
    "width 0.12": Variant.of({WIDTH: 0.12}),
    "width 0.5": Variant.of({WIDTH: 0.5}),
    "smoothness 2": Variant.of({SMOOTHNESS: 2.0}),
    "smoothness 8": Variant.of({SMOOTHNESS: 8.0}),
    "strength 0.3": Variant.of(strength=0.3),
    "strength 3": Variant.of(strength=3.0),
}


def contracted(data: Dataset, seed: int, variants: list[str]) -> Scores:
    """Return the scores of umap-learn, and of its map after ``contract``."""
    before = umap_fit(data, seed).embedding

    def moved(Y: Any) -> list[float]:
        radius = np.sqrt(((before - before.mean(axis=0)) ** 2).sum(axis=1).mean())
        distance = np.sqrt(((Y - before) ** 2).sum(axis=1).mean()) / radius
        found = metrics.cluster_scores(Y, data.y, data.n_classes)
        kept = float(data.faithfulness.neighbors_kept(Y))
        return [metrics.knn_accuracy(Y, data.y), found.nmi, found.silhouette, kept, float(distance)]

    found = {"umap-learn": moved(before)}
    for name in variants:
        with changed(VARIANTS[name].constants):
            found[name] = moved(contract(before, data.X, **VARIANTS[name].settings))
    return found


def compare(args: argparse.Namespace, titles: tuple[str, ...], run: Callable[[Dataset, int], Scores]) -> None:
    """Print the scores of all sets of a group, and their means."""
    rows: list[Scores] = []
    for name in GROUPS[args.group]:
        if n_rows(name) > args.max_rows:
            continue
        data = load(name)
        runs = [run(data, seed) for seed in range(args.seeds)]
        rows.append({method: list(np.mean([run[method] for run in runs], axis=0)) for method in runs[0]})
        for method, values in rows[-1].items():
            print(f"{name:28} {method:16}" + "".join(f"{value:8.3f}" for value in values), flush=True)
    print(f"\n{'mean':16}" + "".join(f"{title:>8}" for title in titles))
    for method in rows[0]:
        print(f"{method:16}" + "".join(f"{value:8.3f}" for value in np.mean([row[method] for row in rows], axis=0)))


def timings(n_samples: int) -> None:
    """Print the medians of warm fits, and their ratios to umap-learn with threads."""
    import umap

    X = np.asarray(enlarged_mnist(n_samples)[0], dtype=np.float32)
    fits: dict[str, Callable[[Any], Any]] = {
        "umap-learn": lambda X: umap.UMAP(n_jobs=THREADS).fit(X),
        "umap-learn, seed": lambda X: umap.UMAP(random_state=0, n_jobs=1).fit(X),
        "LapUMAP": lambda X: LapUMAP(contraction=0, n_jobs=THREADS, random_state=0).fit(X),
        "LapUMAP, contraction": lambda X: LapUMAP(n_jobs=THREADS, random_state=0).fit(X),
    }
    times: dict[str, list[float]] = {name: [] for name in fits}
    for fit in fits.values():
        fit(X[:12_000])  # compiles
    for _ in range(REPEATS):
        for name, fit in fits.items():
            times[name].append(seconds(partial(fit, X)))
    base = np.median(times["umap-learn"])
    for name, taken in times.items():
        print(f"{name:22}{np.median(taken):8.1f} s{np.median(taken) / base:8.2f}")


def parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__)
    parser.add_argument("part", choices=["maps", "relaxed", "contract", "time"])
    parser.add_argument("--group", default="reporting", choices=sorted(GROUPS))
    parser.add_argument("--max-rows", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--contraction", nargs="+", default=["0", "auto"], help="for maps")
    parser.add_argument("--variants", nargs="+", default=["default"], choices=VARIANTS, help="for contract")
    parser.add_argument("--rows", type=int, default=70_000, help="for time")
    return parser


def main() -> None:
    args = parser().parse_args()
    warnings.simplefilter("ignore", UserWarning)
    if args.part == "maps":
        compare(args, SCORES, partial(maps, contractions=args.contraction))
    elif args.part == "relaxed":
        compare(args, SCORES, relaxed)
    elif args.part == "contract":
        compare(args, MOVED, partial(contracted, variants=args.variants))
    else:
        timings(args.rows)


if __name__ == "__main__":
    main()
