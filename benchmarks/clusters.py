"""Clusters of the data: ``labels_`` against other clusterings, data without clusters, and mixtures.

python benchmarks/clusters.py sets [SET ...]   # ARI and NMI with the classes, of labels_ and of other methods
python benchmarks/clusters.py agreement        # ARI of labels_ and HDBSCAN on our map
python benchmarks/clusters.py null             # twelve kinds of data without clusters, 2,000 and 20,000 points
python benchmarks/clusters.py mixtures         # 3 to 50 Gaussians of unequal size, and 200 clusters of 50 points

Other methods: Leiden (modularity, resolution 1) on UMAP's graph of 15 neighbours; HDBSCAN (smallest cluster 0.5 %, at
least 10 points) and PLSCAN on a UMAP in five dimensions (15 neighbours, min_dist 0); EVoC. Means are over all sets,
with the means of the sets for choosing constants and of the others beside them. The sets are those of suite.py.

Needs ``pip install ".[benchmark]"``.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse
from null import MIXTURE_POINTS, MIXTURES, NULL, SEEDS, mixture
from sklearn.cluster import HDBSCAN
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from suite_sets import GROUPS, SETS, load, n_rows

from laptsne import LaptSNE
from laptsne._runtime.threads import Workers
from laptsne.clusters.counting import find_clusters
from laptsne.graph.affinity import joint_affinities

Labels = np.ndarray[Any, Any]


def impostors(n: int, rng: np.random.Generator) -> np.ndarray:
    """Squared distances of three Gaussians plus a constant: nearly the affinities of clusters (arXiv 2510.07746)."""
    X = rng.normal(size=(n, 5)) + 8 * np.eye(3, 5)[rng.integers(0, 3, n)]
    squares = ((X[:, None] - X) ** 2).sum(axis=2) + 50 * squares_mean(X)
    np.fill_diagonal(squares, 0)
    return np.sqrt(squares)


def squares_mean(X: np.ndarray) -> float:
    """Return the mean squared distance of two points."""
    return float(2 * X.var(axis=0).sum())


def found(X: np.ndarray, metric: str = "euclidean") -> Labels:
    """Return the labels of our clusters, without a map."""
    with Workers(None) as workers:
        P = joint_affinities(X, perplexity=min(30.0, (len(X) - 1) / 3), metric=metric, workers=workers)
        return np.asarray(find_clusters(P, workers=workers))


def leiden(X: np.ndarray) -> Labels:
    import igraph
    import leidenalg
    from umap.umap_ import fuzzy_simplicial_set

    graph = fuzzy_simplicial_set(X, 15, np.random.RandomState(0), "euclidean")[0]
    graph = scipy.sparse.triu(graph).tocoo()
    network = igraph.Graph(n=len(X), edges=list(zip(graph.row.tolist(), graph.col.tolist(), strict=True)))
    options = {"weights": graph.data.tolist(), "seed": 0}
    partition = leidenalg.find_partition(network, leidenalg.RBConfigurationVertexPartition, **options)
    return np.array(partition.membership)


def on_umap(X: np.ndarray) -> Iterator[tuple[str, Labels]]:
    from fast_plscan import PLSCAN
    from umap import UMAP

    Z = UMAP(n_components=5, n_neighbors=15, min_dist=0.0, random_state=0).fit_transform(X)
    yield "HDBSCAN on UMAP", hdbscan(Z)
    yield "PLSCAN on UMAP", np.asarray(PLSCAN().fit_predict(Z))


def evoc(X: np.ndarray) -> Labels:
    from evoc import EVoC

    return np.asarray(EVoC(random_state=0).fit_predict(X.astype(np.float32)))


def hdbscan(Z: np.ndarray) -> Labels:
    return np.asarray(HDBSCAN(min_cluster_size=max(10, len(Z) // 200), copy=True).fit_predict(Z.astype(np.float64)))


def compare_sets(names: list[str]) -> None:
    rows: dict[str, dict[str, tuple[float, float]]] = {}
    for name in sorted(names, key=n_rows):
        data = load(name)
        X = np.ascontiguousarray(data.X, dtype=np.float32)
        labels = {"labels_": found(X), "Leiden": leiden(X), **dict(on_umap(X)), "EVoC": evoc(X)}
        rows[name] = {
            method: (adjusted_rand_score(data.y, each), normalized_mutual_info_score(data.y, each))
            for method, each in labels.items()
        }
        scores = "  ".join(f"{method} {ari:.3f} {nmi:.3f}" for method, (ari, nmi) in rows[name].items())
        print(f"{name}: {int(labels['labels_'].max()) + 1} of {data.n_classes}; ARI, NMI: {scores}", flush=True)
    groups = {"all": tuple(rows), **GROUPS}
    for group, members in groups.items():
        chosen = [rows[name] for name in members if name in rows]
        if chosen:
            means = {method: np.mean([row[method] for row in chosen], axis=0) for method in chosen[0]}
            print(f"{group} ({len(chosen)}):", {method: mean.round(3).tolist() for method, mean in means.items()})


def agreement(names: list[str]) -> None:
    values = []
    for name in sorted(names, key=n_rows):
        model = LaptSNE(random_state=0).fit(load(name).X)
        value = adjusted_rand_score(model.labels_, hdbscan(model.embedding_))
        values += [value] if model.n_clusters_ > 1 else []
        print(f"{name}: {model.n_clusters_} clusters, ARI {value:.3f}", flush=True)
    print(f"mean over the {len(values)} sets with clusters: {np.mean(values):.3f}")


def run_null() -> None:
    n_sets = n_wrong = 0
    for n in (2000, 20_000):
        for title, make in NULL.items():
            counts = [int(found(make(n, np.random.default_rng(seed))).max()) + 1 for seed in SEEDS]
            n_sets, n_wrong = n_sets + len(counts), n_wrong + sum(count > 1 for count in counts)
            print(f"{title}, {n}: {counts}", flush=True)
    print(f"clusters found in {n_wrong} of {n_sets} data sets")
    counts = [int(found(impostors(1500, np.random.default_rng(seed)), "precomputed").max()) + 1 for seed in SEEDS]
    print(f"impostors of three clusters, 1500: {counts}")


def run_mixtures() -> None:
    right = total = 0
    for k in MIXTURES:
        counts = [int(found(mixture(MIXTURE_POINTS, k, np.random.default_rng(seed))).max()) + 1 for seed in SEEDS]
        right, total = right + sum(count == k for count in counts), total + len(counts)
        print(f"mixture of {k}: {counts}", flush=True)
    print(f"right in {right} of {total}")
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        centres = rng.normal(scale=1.25, size=(200, 20))
        X = np.repeat(centres, 50, axis=0) + 0.6 * rng.normal(size=(10_000, 20))
        print(f"200 clusters of 50 points, seed {seed}: {int(found(X).max()) + 1}", flush=True)


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["sets", "agreement", "null", "mixtures"])
    parser.add_argument("names", nargs="*", default=SETS, metavar="SET")
    args = parser.parse_args()
    actions: dict[str, Callable[[], None]] = {
        "sets": lambda: compare_sets(list(args.names)),
        "agreement": lambda: agreement(list(args.names)),
        "null": run_null,
        "mixtures": run_mixtures,
    }
    actions[args.what]()


if __name__ == "__main__":
    main()
