"""How many neighbours a perplexity needs: quality of maps with affinities to fewer than three times as many.

python benchmarks/perplexity.py [--sets NAME ...] [--contraction 0] [--seeds 2]

Prints the entries of P per point, and the differences in neighbours kept, 10-NN accuracy and NMI from the default,
perplexity 30 on 90 neighbours, in the mean over sets and seeds, with the standard error over the sets. Perplexity k on
k neighbours is uniform weights. KL divergences from different P do not compare.
"""

from __future__ import annotations

import argparse
import warnings
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from suite_sets import load

from laptsne import LaptSNE
from laptsne.metrics import Faithfulness, cluster_scores, knn_accuracy

SETS = ("digits", "coil20", "audio_frog_calls", "sc_cell_lines_celseq2", "sc_pbmc4k", "tab_image_segmentation")
DEFAULT = (30, 90)
VARIANTS = (DEFAULT, (30, 60), (30, 45), (20, 60), (15, 45), (15, 15))  # perplexity and neighbours


def scores(name: str, variant: tuple[int, int], contraction: float | str, seed: int) -> tuple[float, ...]:
    """Return the entries of P per point, neighbours kept, 10-NN accuracy and NMI of a map."""
    data = load(name)
    perplexity, n_neighbors = variant
    settings = {"perplexity": perplexity, "n_neighbors": n_neighbors, "contraction": contraction}
    model = LaptSNE(**settings, random_state=seed)
    # Otherwise the perplexity is lowered to a third of the neighbours.
    with mock.patch("laptsne.graph.affinity._lowered", lambda perplexity, _: perplexity), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Y = model.fit_transform(data.X)
        accuracy = knn_accuracy(Y, data.y, 10)
    kept = Faithfulness(data.X, n_neighbors=30).neighbors_kept(Y)
    return model.affinities_.nnz / len(Y), kept, accuracy, cluster_scores(Y, data.y).nmi


def table(sets: list[str], variant: tuple[int, int], contraction: float | str, seeds: int) -> NDArray[np.float64]:
    """Return the mean scores over the seeds, one row per set."""
    return np.array([np.mean([scores(name, variant, contraction, s) for s in range(seeds)], axis=0) for name in sets])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--contraction", default="auto", help='strength, or "auto"')
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()
    contraction = "auto" if given.contraction == "auto" else float(given.contraction)
    print("| perplexity | neighbours | entries per point | neighbours kept | 10-NN | NMI |\n|---|---|---|---|---|---|")
    reference = None
    for variant in VARIANTS:
        found = table(given.sets, variant, contraction, given.seeds)
        reference = found if reference is None else reference
        change = (found - reference)[:, 1:]
        error = change.std(axis=0) / np.sqrt(len(given.sets))
        cells = [f"{mean:+.4f} ± {e:.4f}" for mean, e in zip(change.mean(axis=0), error, strict=True)]
        print(f"| {variant[0]} | {variant[1]} | {found[:, 0].mean():.0f} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
