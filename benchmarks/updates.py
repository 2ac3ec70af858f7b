"""How far do points move in maps that follow their data, and are these as good as independent ones?

python benchmarks/updates.py             # five sets of the suite: half an hour
python benchmarks/updates.py SET ...     # others, at most 2,000 rows each

"update": a model of some rows is updated to all; the others are a random fifth or half, or two classes. "align": six
slices, each with half of the rows, of which it shares four fifths with the one before, and whose features are measured
anew, with noise of 0.3 standard deviations. Distances between the positions of common rows, in RMS radii of the earlier
map; those of independent maps after the best rotation. AlignedUMAP has its defaults.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import orthogonal_procrustes
from shared import command_line
from sklearn.decomposition import PCA
from suite_runs import load

import laptsne
from laptsne import LaptSNE, LapUMAP
from laptsne.metrics import Faithfulness, knn_accuracy

SETS = ["image_kannada_digits", "sc_human_kidney", "sensor_gas_drift", "series_fifty_words", "tab_image_segmentation"]
MAX_ROWS = 2000
N_SLICES = 6


def data(name: str) -> tuple[Any, Any]:
    """Return at most 2,000 rows, in at most 50 dimensions, and numbers of their classes."""
    found = load(name)
    rows = np.random.default_rng(0).permutation(len(found.y))[:MAX_ROWS]
    X, y = np.asarray(found.X[rows], np.float32), np.unique(np.asarray(found.y)[rows], return_inverse=True)[1]
    return (PCA(50, random_state=0).fit_transform(X) if X.shape[1] > 50 else X), y


def moved(Y: Any, other: Any, *, turned: bool = False) -> Any:
    """Return distances between positions, in RMS radii of the first map."""
    centred = Y - Y.mean(axis=0)
    if turned:
        other = other - other.mean(axis=0)
        Y, other = centred, other @ orthogonal_procrustes(other, centred)[0]
    return np.linalg.norm(Y - other, axis=1) / np.sqrt((centred**2).sum(axis=1).mean())


def updates(X: Any, y: Any, estimator: type[LaptSNE | LapUMAP]) -> dict[str, list[Any]]:
    """Return scores of updated and of independent maps: median and 90th percentile moved, neighbours kept, 10-NN."""
    rng, faithful = np.random.default_rng(1), Faithfulness(X)
    parts = [np.sort(rng.permutation(len(X))[: int(share * len(X))]) for share in (0.8, 0.5)]
    parts.append(np.flatnonzero(~np.isin(y, [y.max(), y.max() // 2])))
    free = estimator(random_state=1).fit_transform(X)
    scores: dict[str, list[Any]] = {"fit": [], "update": []}
    for rows in parts:
        model = estimator(random_state=0).fit(X[rows])
        before = model.embedding_
        after = model.update(X).embedding_
        for kind, Y in (("fit", free), ("update", after)):
            distances = moved(before, Y[rows], turned=kind == "fit")
            kept, accuracy = faithful.neighbors_kept(Y), knn_accuracy(Y, y)
            scores[kind].append([np.median(distances), np.quantile(distances, 0.9), kept, accuracy])
    return scores


def series(X: Any, y: Any) -> dict[str, list[Any]]:
    """Return scores of slices, for independent and aligned maps, and for AlignedUMAP."""
    import umap

    rng, width = np.random.default_rng(1), len(X) // 2
    order = rng.permutation(len(X))
    rows = [order[i * width // 5 : i * width // 5 + width] for i in range(N_SLICES)]
    noise = 0.3 * X.std(axis=0).mean()
    slices = [X[r] + noise * rng.normal(size=(width, X.shape[1])) for r in rows]
    position = [{int(row): i for i, row in enumerate(r)} for r in rows]
    relations = [{i: b[row] for row, i in a.items() if row in b} for a, b in pairwise(position)]
    maps = {
        f"fit, {cls.__name__}": [cls(random_state=0).fit_transform(X) for X in slices] for cls in (LaptSNE, LapUMAP)
    }
    for cls in (LaptSNE, LapUMAP):
        models = laptsne.align(slices, rows, cls(random_state=0))
        maps[f"align, {cls.__name__}"] = [model.embedding_ for model in models]
    maps["AlignedUMAP"] = umap.AlignedUMAP(random_state=0).fit(slices, relations=relations).embeddings_
    faithful = [Faithfulness(part) for part in slices]
    scores = defaultdict(list)
    for kind, found in maps.items():
        for t in range(1, N_SLICES):
            known = np.array(list(relations[t - 1].items()))
            distances = moved(found[t - 1][known[:, 0]], found[t][known[:, 1]], turned=kind.startswith("fit"))
            kept, accuracy = faithful[t].neighbors_kept(found[t]), knn_accuracy(found[t], y[rows[t]])
            scores[kind].append([np.median(distances), np.quantile(distances, 0.9), kept, accuracy])
    return scores


def parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__)
    parser.add_argument("names", nargs="*", metavar="SET", help="sets of the suite")
    return parser


def main() -> None:
    warnings.filterwarnings("ignore")
    scores = defaultdict(list)
    for name in parser().parse_args().names or SETS:
        X, y = data(name)
        for estimator in (LaptSNE, LapUMAP):
            for kind, found in updates(X, y, estimator).items():
                scores[f"update: {kind}, {estimator.__name__}"] += found
        for kind, found in series(X, y).items():
            scores[f"align: {kind}"] += found
        print(f"{name}: " + "; ".join(f"{kind} {np.max(found, axis=0)[0]:.3f}" for kind, found in scores.items()))
    print("| | moved, median | moved, 90 % | largest median | 30 kept | 10-NN |\n|---|---|---|---|---|---|")
    for kind, found in sorted(scores.items()):
        half, most, kept, accuracy = np.mean(found, axis=0)
        largest = np.max(found, axis=0)[0]
        print(f"| {kind} | {half:.3f} | {most:.3f} | {largest:.3f} | {kept:.3f} | {accuracy:.3f} |")


if __name__ == "__main__":
    main()
