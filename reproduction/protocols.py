"""Protocols by which LaptSNE is compared with the paper's tables.

The paper tunes lambda and k-hat for each set and reports the best. Each protocol with a grid does so, too: one setting
per set, the one that reaches most of the ten scores that the paper prints, and of several the one with the best mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reproduction import paper
from reproduction.comparison import Comparison, Statistic, score_name
from reproduction.dataset import LARGE
from reproduction.plan import Options
from reproduction.runs import Run, Runner

LAMBDAS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)  # the paper's grid
CODED_LAMBDAS = (1e-1, 5e-2, 2e-2, 1e-2)  # those that the scripts of its authors contain
TUNED_LAMBDAS = (1e-1, 1e-2, 1e-3)  # below that, the present method gives the map of t-SNE
_THROUGH_LANDMARKS = ("mnist", "fashion_mnist", "har")
_FIVE_SEEDS = ("digits", "coil20", "waveform")
BASELINES = ("t-SNE", "UMAP", "Eigenmaps", "PCA")  # those of the paper
DEFAULTS, BASELINE = "defaults", "best baseline"  # columns beside those of the protocols


@dataclass(frozen=True)
class Protocol:
    """A method whose parameters are chosen for each set.

    Parameters
    ----------
    heading : str
        Heading of its column.
    method : str
        The method that is run.
    lambdas : tuple of float
        Contractions of the grid.
    published : bool
        Whether k-hat is the paper's; otherwise it is part of the grid.
    rival : str
        The method in the paper with which it is compared.
    """

    heading: str
    method: str
    lambdas: tuple[float, ...] = LAMBDAS
    published: bool = True
    rival: str = "LaptSNE"

    def grid(self, options: Options, name: str, n_classes: int) -> list[Run]:
        """Return the runs of the grid on a set; fewer in a quick run, and on MNIST and Fashion-MNIST if tuned."""
        khat = paper.khat(name)
        landmarks = self.published and name in _THROUGH_LANDMARKS
        extra: tuple[tuple[str, Any], ...] = (("through", "landmarks"),) if landmarks else ()
        counts = dict.fromkeys((khat,) if self.published or options.quick else (khat, "auto", n_classes))
        n_lambdas, n_counts = len(self.lambdas), len(counts)
        if options.quick or (name in LARGE and not self.published):
            n_lambdas, n_counts = 2, 2
        return [
            Run(name, self.method, 0, (("contraction", strength), ("n_clusters", n), *extra), "cells")
            for n in list(counts)[:n_counts]
            for strength in self.lambdas[:n_lambdas]
        ]

    def final(self, run: Run, options: Options) -> list[Run]:
        """Return the runs that are reported for a setting: with several seeds on small sets, and with all points."""
        changes = tuple((key, "rows" if key == "through" else value) for key, value in run.changes)
        n_seeds = 5 if run.data in _FIVE_SEEDS and not options.quick else 1
        return [replace(run, seed=seed, changes=changes) for seed in range(n_seeds)]


PUBLISHED = Protocol("as published", "LaptSNE as published")
MINI = Protocol("Mini as published", "LaptSNE-Mini as published", rival="LaptSNE-Mini")
CODED = Protocol("as coded", "LaptSNE as coded", CODED_LAMBDAS)
TUNED = Protocol("tuned", "LaptSNE", TUNED_LAMBDAS, published=False)
PROTOCOLS = (PUBLISHED, CODED, MINI, TUNED)
COLUMNS = (*(protocol.heading for protocol in PROTOCOLS), DEFAULTS, BASELINE)


def choose(runner: Runner, runs: Sequence[Run], rival: str = "LaptSNE") -> Run | None:
    """Return the run that reaches most scores of a method in the paper; None if no run has scores.

    Of several, it is the one with the best mean over the scores, Davies-Bouldin indices subtracted.
    """

    def merit(run: Run) -> tuple[int, float]:
        n_reached, total = 0, 0.0
        for published in paper.published_scores(run.data):
            value = runner.records[run].scores.get(score_name(published, runner.n_classes[run.data]))
            if value is not None:
                n_reached += bool(Comparison(published, Statistic.of([value]), rival).beats_paper)
                total += -value if published.lower_is_better else value
        return n_reached, total

    scored = [run for run in runs if run in runner.records and runner.records[run].scores]
    return max(scored, key=merit, default=None)


def chosen(runner: Runner, protocol: Protocol, name: str, options: Options) -> Run | None:
    """Return the run of the grid that is best; None if the grid was not run."""
    if name not in runner.n_classes:
        return None
    return choose(runner, protocol.grid(options, name, runner.n_classes[name]), protocol.rival)


def final_runs(runner: Runner, protocol: Protocol, name: str, options: Options) -> list[Run]:
    """Return the runs that are reported for a protocol on a set."""
    best = chosen(runner, protocol, name, options)
    return protocol.final(best, options) if best else []


def default_runs(options: Options, name: str) -> list[Run]:
    """Return the runs of LaptSNE at its defaults."""
    return [Run(name, "LaptSNE", seed, (), "cells") for seed in options.seeds(name) if "LaptSNE" in options.methods]


def baseline_runs(options: Options, name: str) -> list[Run]:
    """Return the runs of the methods with which the paper compares."""
    return [Run(name, method, 0, (), "cells") for method in BASELINES if method in options.methods]


def table_batches(runner: Runner, options: Options) -> Iterator[tuple[str, list[Run]]]:
    """Yield the runs of the comparison with the paper's tables, set by set, with the names of their columns."""
    for name in options.sets:
        if not runner.has(name):
            continue
        yield DEFAULTS, default_runs(options, name)
        for protocol in PROTOCOLS if "LaptSNE" in options.methods else ():
            yield protocol.heading, protocol.grid(options, name, runner.n_classes[name])
            yield protocol.heading, final_runs(runner, protocol, name, options)
        yield BASELINE, baseline_runs(options, name)
