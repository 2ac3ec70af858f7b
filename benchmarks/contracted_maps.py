"""Maps of UMAP before and after `laptsne.contract`, on sets of the suite.

python benchmarks/contracted_maps.py [--group reporting] [--max-rows 10000] [--variants default "width 0.5" ...]

Means over the sets, one seed each: cross-validated 10-NN, NMI and silhouette of k-means, neighbours kept, and how far
points moved (RMS, in RMS radii of the map). The constants were chosen by eye on maps of digits, pbmc4k
and 5,000 points of MNIST. Needs the suite in LAPTSNE_DATA.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from contraction_rule import changed
from suite_sets import GROUPS, Dataset, load, n_rows
from umap_maps import umap_fit

from laptsne import contract, metrics
from laptsne.contraction import finished as map_contraction
from laptsne.contraction.similarity import rms_radius

SCORES = ("10-NN", "NMI", "SC", "kept", "moved")
VARIANTS: dict[str, tuple[dict[str, float], float]] = {
    "default": ({}, 1.0),
    "width 0.12": ({"WIDTH": 0.12}, 1.0),
    "width 0.5": ({"WIDTH": 0.5}, 1.0),
    "smoothness 2": ({"SMOOTHNESS": 2.0}, 1.0),
    "smoothness 8": ({"SMOOTHNESS": 8.0}, 1.0),
    "strength 0.3": ({}, 0.3),
    "strength 3": ({}, 3.0),
}


def scores(data: Dataset, Y: Any, before: Any) -> list[float]:
    """Return the scores of a map."""
    moved = np.sqrt(((Y - before) ** 2).sum(axis=1).mean()) / rms_radius(before)
    nmi, sc, _ = metrics.cluster_scores(Y, data.y, len(np.unique(data.y)))
    return [metrics.knn_accuracy(Y, data.y), nmi, sc, float(data.faithfulness.neighbors_kept(Y)), float(moved)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group", default="reporting", choices=sorted(GROUPS))
    parser.add_argument("--max-rows", type=int, default=10_000)
    parser.add_argument("--variants", nargs="+", default=["default"], choices=sorted(VARIANTS))
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    found: dict[str, list[list[float]]] = {name: [] for name in ("UMAP", *options.variants)}
    for name in GROUPS[options.group]:
        if n_rows(name) > options.max_rows:
            continue
        data = load(name)
        before = umap_fit(data, seed=0).embedding
        found["UMAP"].append(scores(data, before, before))
        for variant in options.variants:
            constants, strength = VARIANTS[variant]
            with changed({(key, map_contraction): value for key, value in constants.items()}):
                found[variant].append(scores(data, contract(before, data.X, strength=strength), before))
        print(name, *(" ".join(f"{s:.3f}" for s in rows[-1]) for rows in found.values()), sep=" | ", flush=True)
    print(f"\n{'mean':14}" + "".join(f"{score:>8}" for score in SCORES))
    for variant, rows in found.items():
        print(f"{variant:14}" + "".join(f"{score:8.3f}" for score in np.mean(rows, axis=0)))


if __name__ == "__main__":
    main()
