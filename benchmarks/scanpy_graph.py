"""How good are maps from scanpy's neighbour graph, by the way in which it is extended to more neighbours?

python benchmarks/scanpy_graph.py                # pbmc68k_reduced, which scanpy includes: a minute
python benchmarks/scanpy_graph.py sc_pbmc4k ...  # sets of the suite as well, at most 3,000 cells each: minutes

"features" is the map of the principal components, which the maps of the graph of 15 neighbours should equal. "paths" is
what laptsne.scanpy.tl.laptsne does: neighbours by shortest path. "edges" has the distances of the graph alone, which
lowers the perplexity to 5, and "weights" its connectivities as affinities. Means over seeds 0 to 2.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from shared import command_line
from sklearn.decomposition import PCA
from suite_runs import load

from laptsne import LaptSNE
from laptsne.metrics import Faithfulness, knn_accuracy

SEEDS = range(3)
MAX_CELLS = 3000


def cells(name: str) -> tuple[Any, Any]:
    """Return principal components and labels."""
    import scanpy as sc

    if name == "pbmc68k_reduced":
        adata = sc.datasets.pbmc68k_reduced()
        return adata.obsm["X_pca"], adata.obs["bulk_labels"].to_numpy().astype(str)
    data = load(name)
    chosen = np.random.default_rng(0).permutation(len(data.X))[:MAX_CELLS]
    X, y = np.asarray(data.X[chosen], np.float32), np.asarray(data.y)[chosen]
    return (PCA(50, random_state=0).fit_transform(X) if X.shape[1] > 50 else X), y


def from_graph(adata: Any, seed: int) -> Any:
    """Return the map from the graph, which is extended by paths."""
    from laptsne import scanpy as lsc

    lsc.tl.laptsne(adata, neighbors_key="neighbors", random_state=seed)
    return adata.obsm["X_laptsne"]


def directly(given: Any, **settings: Any) -> Callable[[int], Any]:
    """Return a function of the seed that computes the map."""
    return lambda seed: LaptSNE(random_state=seed, **settings).fit_transform(given)


def parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__)
    parser.add_argument("names", nargs="*", metavar="SET", help="single-cell sets of the suite")
    return parser


def main() -> None:
    import scanpy as sc

    names = ["pbmc68k_reduced", *parser().parse_args().names]
    warnings.filterwarnings("ignore")
    print("| data | map of | 10 kept | 30 kept | 100 kept | 10-NN |\n|---|---|---|---|---|---|")
    for name in names:
        X, y = cells(name)
        adata = sc.AnnData(X)
        sc.pp.neighbors(adata, n_neighbors=15, use_rep="X")
        sources: dict[str, Callable[[int], Any]] = {
            "features": directly(X),
            "paths": partial(from_graph, adata),
            "weights": directly(adata.obsp["connectivities"], metric="affinities"),
            "edges": directly(adata.obsp["distances"], metric="precomputed"),
        }
        scores = Faithfulness(X, n_neighbors=100)
        for source, fit in sources.items():
            maps = [fit(seed) for seed in SEEDS]
            kept = [np.mean([scores.neighbors_kept(Y, n_neighbors=k) for Y in maps]) for k in (10, 30, 100)]
            accuracy = np.mean([knn_accuracy(Y, y) for Y in maps])
            print(f"| {name} | {source} | " + " | ".join(f"{value:.3f}" for value in (*kept, accuracy)) + " |")


if __name__ == "__main__":
    main()
