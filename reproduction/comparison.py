"""The paper's figures beside ours, cell by cell."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reproduction import paper
from reproduction.paper import Cell
from reproduction.plan import Options, table_run
from reproduction.runs import Laboratory
from reproduction.scores import cluster_name, knn_name


@dataclass(frozen=True)
class Stat:
    """Mean and standard deviation over the seeds."""

    mean: float
    deviation: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Stat | None:
        """Statistics of some values; None of none."""
        if not values:
            return None
        return cls(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0, len(values))

    def text(self, decimals: int) -> str:
        """As it is printed."""
        spread = f" ± {self.deviation:.{decimals}f}" if self.n > 1 else ""
        return f"{self.mean:.{decimals}f}{spread}"


@dataclass(frozen=True)
class Comparison:
    """A cell of the paper's tables and ours; a win is a figure at least as good, as printed.

    Parameters
    ----------
    cell : Cell
        The paper's.
    ours : Stat or None
        None where we have none.
    """

    cell: Cell
    ours: Stat | None

    @property
    def paper(self) -> float:
        """Figure of LaptSNE in the paper."""
        return self.cell.columns["LaptSNE"]

    @property
    def best(self) -> float:
        """Best figure of all methods in the paper."""
        return self.cell.columns[self.cell.best]

    @property
    def beats_paper(self) -> bool | None:
        """Whether we are at least as good as LaptSNE in the paper."""
        return self._at_least(self.paper)

    @property
    def beats_best(self) -> bool | None:
        """Whether we are at least as good as all methods in the paper."""
        return self._at_least(self.best)

    def _at_least(self, other: float) -> bool | None:
        if self.ours is None:
            return None
        ours, other = round(self.ours.mean, self.cell.decimals), round(other, self.cell.decimals)
        return ours <= other if self.cell.lower_is_better else ours >= other


@dataclass(frozen=True)
class Count:
    """How many cells we win against LaptSNE in the paper, and against the best in the paper."""

    cells: int
    compared: int
    paper: int
    best: int

    @classmethod
    def of(cls, comparisons: Iterable[Comparison]) -> Count:
        """Count some comparisons."""
        found = list(comparisons)
        return cls(
            len(found),
            sum(one.ours is not None for one in found),
            sum(bool(one.beats_paper) for one in found),
            sum(bool(one.beats_best) for one in found),
        )


def values(laboratory: Laboratory, options: Options, name: str, method: str, score: str) -> list[float]:
    """Values of a score over the seeds, of the runs that have it."""
    runs = [table_run(name, method, seed) for seed in options.seeds(name)]
    records = [laboratory.records[run] for run in runs if run in laboratory.records]
    return [record.scores[score] for record in records if score in record.scores]


def compare(laboratory: Laboratory, options: Options, name: str) -> list[Comparison]:
    """Compare LaptSNE with the paper, in all cells of a set."""
    if name not in laboratory.n_classes:
        return [Comparison(cell, None) for cell in paper.cells(name)]
    n_classes = laboratory.n_classes[name]
    return [
        Comparison(cell, Stat.of(values(laboratory, options, name, "LaptSNE", _score_name(cell, n_classes))))
        for cell in paper.cells(name)
    ]


def _score_name(cell: Cell, n_classes: int) -> str:
    """Name that the score of a cell has among the scores of a map."""
    if cell.score.endswith("-nn"):
        return knn_name(int(cell.score.removesuffix("-nn")), "paper")
    return cluster_name(cell.score, (paper.khat(cell.data) or n_classes) if cell.khat else n_classes)
