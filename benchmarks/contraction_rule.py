"""The constants of the contraction, one at a time, on the sets of the suite on which they were chosen.

python benchmarks/contraction_rule.py [--variants "width 0.3" ...]

Means over the sets without the continuum, one seed each: cross-validated 10-NN, NMI, silhouette, neighbours kept and
seen, ink, and the KL divergence as a multiple of that of "t-SNE". Needs the suite in LAPTSNE_DATA.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
from suite_scores import ink_scores, seen_scores
from suite_sets import GROUPS, Dataset, load

from laptsne import Descent, LaptSNE, fitting, metrics
from laptsne.contraction import similarity
from laptsne.contraction.similarity import Similarity
from laptsne.engine import problem, run

SCORES = ("10-NN", "NMI", "SC", "kept", "seen", "ink", "KL")
# Names of constants and where they are read.
WIDTH, FLOOR, TOTAL = ("_WIDTH", similarity), ("FLOOR", fitting), ("_TOTAL", problem)
SIMILARITY, LATE = ("Similarity", fitting), ("LATE_EXAGGERATION", run)
BOUNDARY = ("_BOUNDARY", run)
Constants = dict[tuple[str, Any], Any]
VARIANTS: dict[str, tuple[Constants, dict[str, Any]]] = {
    "default": ({}, {}),
    "t-SNE": ({}, {"contraction": 0}),
    "t-SNE, not annealed": ({}, {"contraction": 0, "optimizer": Descent(middle_exaggeration=1.0)}),
    "t-SNE, perplexity 20": ({}, {"contraction": 0, "perplexity": 20.0}),
    "t-SNE, perplexity 50": ({}, {"contraction": 0, "perplexity": 50.0}),
    "not annealed": ({}, {"optimizer": Descent(middle_exaggeration=1.0)}),
    "annealed from 4": ({}, {"optimizer": Descent(middle_exaggeration=4.0)}),
    "Student kernel": ({}, {"contraction_kernel": "student"}),
    "width 0.5": ({WIDTH: 0.5}, {}),
    "width 1": ({WIDTH: 1.0}, {}),
    "strength 0.1": ({TOTAL: 0.1}, {}),
    "strength 0.4": ({TOTAL: 0.4}, {}),
    "floor 0.05, strength 0.6": ({FLOOR: 0.05, TOTAL: 0.6}, {}),
    "regularisation 0.003": ({SIMILARITY: partial(Similarity, regularization=0.003)}, {}),
    "regularisation 0.2": ({SIMILARITY: partial(Similarity, regularization=0.2)}, {}),
    "exaggeration 1": ({LATE: 1.0}, {}),
    "exaggeration 1.5": ({LATE: 1.5}, {}),
    "no boundary": ({BOUNDARY: np.inf}, {}),
    "boundary 1.4": ({BOUNDARY: 1.4}, {}),
}


@contextlib.contextmanager
def changed(constants: Constants) -> Iterator[None]:
    """Change module constants for a while."""
    with contextlib.ExitStack() as stack:
        for (name, module), value in constants.items():
            stack.enter_context(mock.patch.object(module, name, value))
        yield


def scores(data: Dataset, constants: Constants, settings: dict[str, Any]) -> list[float]:
    with changed(constants):
        model = LaptSNE(random_state=0, **settings).fit(data.X)
    Y = model.embedding_
    found = metrics.cluster_scores(Y, data.y)
    kept = data.faithfulness.neighbors_kept(Y)
    seen, ink = seen_scores(data, Y)["seen"], ink_scores(data, Y)["ink"]
    return [metrics.knn_accuracy(Y, data.y), found.nmi, found.silhouette, kept, seen, ink, model.kl_divergence_]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variants", nargs="*", choices=VARIANTS, default=list(VARIANTS), metavar="VARIANT")
    chosen = parser.parse_args().variants
    sets = [load(name) for name in GROUPS["choosing"]]
    plain = np.array([scores(data, *VARIANTS["t-SNE"])[-1] for data in sets])
    print("| |" + "".join(f" {name} |" for name in SCORES) + "\n" + "|---" * (len(SCORES) + 1) + "|")
    for name in chosen:
        table = np.array([scores(data, *VARIANTS[name]) for data in sets])
        table[:, -1] /= plain
        print(f"| {name} |" + "".join(f" {value:.3f} |" for value in table.mean(axis=0)), flush=True)


if __name__ == "__main__":
    main()
