"""Our scores next to the paper's."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from reproduction import paper
from reproduction.paper import PublishedScore
from reproduction.plan import Options
from reproduction.runs import Run, Runner
from reproduction.scores import cluster_name, knn_name


@dataclass(frozen=True)
class Statistic:
    """Mean and standard deviation over the seeds."""

    mean: float
    deviation: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Statistic | None:
        """Summarise values; None if there are none."""
        if not values:
            return None
        return cls(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0, len(values))

    def text(self, decimals: int) -> str:
        """Format as in the report."""
        spread = f" ± {self.deviation:.{decimals}f}" if self.n > 1 else ""
        return f"{self.mean:.{decimals}f}{spread}"


@dataclass(frozen=True)
class Comparison:
    """A published score and ours, None if we have none; the better figure wins, ties as printed included.

    ``rival`` is the method in the paper with which ours is compared.
    """

    published: PublishedScore
    ours: Statistic | None
    rival: str = "LaptSNE"

    @property
    def beats_paper(self) -> bool | None:
        """Whether ours is at least as good as its rival in the paper."""
        return self._beats(self.rival)

    @property
    def beats_best(self) -> bool | None:
        """Whether ours is at least as good as every method in the paper."""
        return self._beats(self.published.best_method)

    def _beats(self, method: str) -> bool | None:
        if self.ours is None:
            return None
        decimals = self.published.decimals
        ours, other = round(self.ours.mean, decimals), round(self.published.by_method[method], decimals)
        return ours <= other if self.published.lower_is_better else ours >= other


@dataclass(frozen=True)
class WinCount:
    """Number of published scores that ours match or exceed: those of the paper's LaptSNE, and its best ones."""

    cells: int
    compared: int
    paper: int
    best: int

    @classmethod
    def of(cls, comparisons: Sequence[Comparison]) -> WinCount:
        """Count wins."""
        return cls(
            len(comparisons),
            sum(one.ours is not None for one in comparisons),
            sum(bool(one.beats_paper) for one in comparisons),
            sum(bool(one.beats_best) for one in comparisons),
        )


def summarise(runner: Runner, options: Options, name: str, method: str, score: str) -> Statistic | None:
    """Summarise a score over the seeds of a method's runs; None if no run has it."""
    records = (runner.records.get(Run(name, method, seed)) for seed in options.seeds(name))
    return Statistic.of([record.scores[score] for record in records if record and score in record.scores])


def score_name(published: PublishedScore, n_classes: int) -> str:
    """Return the name of a published score among the scores of an embedding."""
    if published.score.endswith("-nn"):
        return knn_name(int(published.score.removesuffix("-nn")), "paper")
    return cluster_name(published.score, (paper.khat(published.data) or n_classes) if published.khat else n_classes)
