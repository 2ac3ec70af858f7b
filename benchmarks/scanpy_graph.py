"""Quality of maps from scanpy's neighbour graph: how it is extended to the neighbours that the perplexity takes.

python benchmarks/scanpy_graph.py                # pbmc68k_reduced, which scanpy includes
python benchmarks/scanpy_graph.py sc_pbmc4k ...  # sets of the suite as well, at most 3,000 cells each

"features" is the map of the principal components, which the maps of the graph of 15 neighbours should equal. "paths" is
what laptsne.scanpy does: neighbours by shortest path. "edges" has the distances of the graph alone, which lowers the
perplexity to 5, and "weights" its connectivities as affinities. Means over seeds 0 to 2.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import scanpy as sc
from sklearn.decomposition import PCA
from suite_sets import load

from laptsne import LaptSNE
from laptsne.metrics import Faithfulness, knn_accuracy
from laptsne.scanpy.representation import path_distances

SEEDS = range(3)
MAX_CELLS = 3000


def cells(name: str) -> tuple[Any, Any]:
    """Return principal components and labels."""
    if name == "pbmc68k_reduced":
        adata = sc.datasets.pbmc68k_reduced()
        return adata.obsm["X_pca"], adata.obs["bulk_labels"].to_numpy().astype(str)
    data = load(name)
    chosen = np.random.default_rng(0).permutation(len(data.X))[:MAX_CELLS]
    X, y = np.asarray(data.X[chosen], np.float32), np.asarray(data.y)[chosen]
    return (PCA(50, random_state=0).fit_transform(X) if X.shape[1] > 50 else X), y


def main(names: list[str]) -> None:
    print("| data | map of | 10 kept | 30 kept | 100 kept | 10-NN |\n|---|---|---|---|---|---|")
    for name in names:
        X, y = cells(name)
        adata = sc.AnnData(X)
        sc.pp.neighbors(adata, n_neighbors=15, use_rep="X")
        sources: dict[str, tuple[Any, dict[str, Any]]] = {
            "features": (X, {}),
            "paths": (path_distances(adata, "neighbors", None, {}), {"metric": "precomputed"}),
            "weights": (adata.obsp["connectivities"], {"metric": "affinities"}),
            "edges": (adata.obsp["distances"], {"metric": "precomputed"}),
        }
        scores = Faithfulness(X, n_neighbors=100)
        for source, (given, settings) in sources.items():
            maps = [LaptSNE(random_state=seed, **settings).fit_transform(given) for seed in SEEDS]
            kept = [np.mean([scores.neighbors_kept(Y, n_neighbors=k) for Y in maps]) for k in (10, 30, 100)]
            accuracy = np.mean([knn_accuracy(Y, y) for Y in maps])
            print(f"| {name} | {source} | " + " | ".join(f"{value:.3f}" for value in (*kept, accuracy)) + " |")


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    main(["pbmc68k_reduced", *sys.argv[1:]])
