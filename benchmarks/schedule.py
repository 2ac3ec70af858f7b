"""Schedules of the descent: KL divergence and quality of the default against the schedule of version 0.1.0.

    python benchmarks/schedule.py [--sets NAME ...] [--contraction auto]

prints, per schedule and in the mean over the sets, the KL divergence as a ratio to that of 0.1.0 after 750 iterations,
and the differences in neighbours kept, 10-NN accuracy and NMI. The defaults were chosen on these sets, which are among
those of the paper and the choosing sets of the suite.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
from data import enlarged_mnist
from numpy.typing import NDArray
from suite_sets import load

from laptsne import Descent, LaptSNE
from laptsne.engine.run import Run
from laptsne.metrics import cluster_scores, knn_accuracy
from laptsne.metrics.faithfulness import Faithfulness

SETS = ("digits", "coil20", "har", "mnist", "audio_frog_calls", "sc_cord_blood", "text_banking77_use")
_MNIST = 10_000
_OLD = Descent(
    momentum=0.8,
    exaggeration_share=1 / 3,
    middle_exaggeration=1.0,
    contraction_start=0.5,
    contraction_ramp=0.25,
    tol=0,
)
_NEW = Descent(tol=0)
# Iterations, factor on the step size (None: that of the default), parameters.
SCHEDULES: dict[str, tuple[int, float | None, Descent]] = {
    "0.1.0": (750, 1.0, _OLD),
    "0.1.0, 300 iterations": (300, 1.0, _OLD),
    "momentum 0.8": (300, 1.0, replace(_NEW, momentum=0.8)),
    "momentum 0.95 throughout": (300, None, replace(_NEW, momentum=0.95)),
    "not settled": (300, None, replace(_NEW, settling_share=0.0)),
    "250 iterations": (250, None, _NEW),
    "default": (300, None, _NEW),
}


def main() -> None:
    """Compare the schedules."""
    parser = argparse.ArgumentParser(description="Compare schedules of the descent.")
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--schedules", nargs="*", default=list(SCHEDULES), choices=list(SCHEDULES))
    parser.add_argument("--contraction", default="0", help='strength, or "auto"')
    arguments = parser.parse_args()
    contraction = "auto" if arguments.contraction == "auto" else float(arguments.contraction)
    reference = np.array([_scores(name, "0.1.0", contraction) for name in arguments.sets])
    print("| schedule | KL ratio | neighbours kept | 10-NN | NMI |\n|---|---|---|---|---|")
    for schedule in arguments.schedules:
        found = np.array([_scores(name, schedule, contraction) for name in arguments.sets])
        ratio, change = (found[:, 0] / reference[:, 0]).mean(), (found - reference)[:, 1:].mean(axis=0)
        print(f"| {schedule} | {ratio:.4f} | " + " | ".join(f"{value:+.4f}" for value in change) + " |", flush=True)


def _data(name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    if name == "mnist":
        return enlarged_mnist(_MNIST)
    dataset = load(name)
    return dataset.X, dataset.y


def _scores(name: str, schedule: str, contraction: float | str) -> tuple[float, float, float, float]:
    X, y = _data(name)
    max_iter, factor, descent = SCHEDULES[schedule]
    model = LaptSNE(contraction=contraction, max_iter=max_iter, optimizer=descent, random_state=0)
    if factor is None:
        model.fit(X)
    else:
        with mock.patch.object(Run, "_rate_factor", factor):
            model.fit(X)
    kept = Faithfulness(X).neighbors_kept(model.embedding_)
    clusters = cluster_scores(model.embedding_, y)
    return model.kl_divergence_, kept, knn_accuracy(model.embedding_, y), clusters.nmi


if __name__ == "__main__":
    main()
