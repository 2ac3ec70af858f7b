"""Tables of how good the maps are: tidiness and, beside it, faithfulness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from reproduction import paper
from reproduction.comparison import Comparison, Count, Stat, compare, values
from reproduction.datasets import title
from reproduction.frontier import Verdict
from reproduction.plan import Options
from reproduction.runs import Laboratory
from reproduction.scores import CLUSTER_SCORES, cluster_name, knn_name, neighbor_counts
from reproduction.table import NONE, Entry, Table

FAITHFULNESS = ("trustworthiness", "continuity", "neighbours kept")


@dataclass(frozen=True)
class Column:
    """A column of a table of methods: its heading, its score, and how that is read."""

    heading: str
    score: str
    decimals: int = 3
    lower_is_better: bool = False
    stats: dict[str, Stat | None] = field(default_factory=dict, compare=False)

    @property
    def arrow(self) -> str:
        """Which way is better."""
        return "↓" if self.lower_is_better else "↑"

    def best(self) -> float | None:
        """The best mean, as printed."""
        means = [round(stat.mean, self.decimals) for stat in self.stats.values() if stat]
        return (min if self.lower_is_better else max)(means) if means else None


def cell_table(laboratory: Laboratory, options: Options, name: str) -> Table:
    """The paper's cells of a set beside ours, and what our maps keep of the data, which the paper does not say."""
    rows = [_cell_row(one) for one in compare(laboratory, options, name)]
    for score in FAITHFULNESS:
        stat = Stat.of(values(laboratory, options, name, "LaptSNE", score))
        rows.append([Entry(f"{score} ↑"), Entry(NONE), Entry(NONE), Entry(stat.text(3) if stat else NONE), *_blank(2)])
    khat = paper.khat(name)
    return Table(
        f"{title(name)}: the paper's cells",
        ("score", "LaptSNE, paper", "best, paper", "LaptSNE, here", "as good as its LaptSNE", "as good as its best"),
        rows,
        f"k-NN accuracy on the training points, as the paper counts it. k-hat is the paper's, {khat}. The paper does "
        "not say how faithful its maps are.",
    )


def _cell_row(one: Comparison) -> list[Entry]:
    cell, digits = one.cell, one.cell.decimals
    arrow = "↓" if cell.lower_is_better else "↑"
    score = f"{cell.score}{', k-hat' if cell.khat else ''} {arrow}"
    best = f"{one.best:.{digits}f} ({cell.best})"
    ours = one.ours.text(digits) if one.ours else NONE
    return [
        Entry(score),
        Entry(f"{one.paper:.{digits}f}"),
        Entry(best, one.beats_best is False),
        Entry(ours, bool(one.beats_best)),
        Entry(_yes(one.beats_paper)),
        Entry(_yes(one.beats_best)),
    ]


def count_table(laboratory: Laboratory, options: Options) -> Table:
    """How many cells of the paper we reach, by set and in all, beside what our maps keep of the data."""
    rows, everything = [], []
    for name in options.sets:
        comparisons = compare(laboratory, options, name)
        everything += comparisons
        stat = Stat.of(values(laboratory, options, name, "LaptSNE", "neighbours kept"))
        rows.append([*_count_row(title(name), Count.of(comparisons)), Entry(stat.text(3) if stat else NONE)])
    rows.append([*_count_row("all", Count.of(everything)), Entry("")])
    headings = ("set", "as good as LaptSNE in the paper", "as good as the best in the paper", "neighbours kept")
    return Table("Cells of the paper's tables that LaptSNE reaches here", headings, rows)


def _count_row(heading: str, count: Count) -> list[Entry]:
    without = f" ({count.cells - count.compared} not run)" if count.compared < count.cells else ""
    return [
        Entry(heading),
        Entry(f"{count.paper} of {count.cells}{without}"),
        Entry(f"{count.best} of {count.cells}{without}"),
    ]


def methods_table(laboratory: Laboratory, options: Options, name: str) -> Table:
    """All methods on a set, cross-validated."""
    return _table(f"{title(name)}: all methods", _filled(laboratory, options, name, _main_columns(laboratory, name)))


def accuracy_table(laboratory: Laboratory, options: Options, name: str) -> Table:
    """Accuracies at the paper's numbers of neighbours, cross-validated and on the training points."""
    columns = [Column(knn_name(k), knn_name(k)) for k in neighbor_counts(name)]
    columns += [Column(f"{k}-nn, training", knn_name(k, "paper")) for k in neighbor_counts(name)]
    columns += [Column("neighbours kept", "neighbours kept")]
    return _table(f"{title(name)}: accuracies", _filled(laboratory, options, name, columns))


def cluster_table(laboratory: Laboratory, options: Options, name: str) -> Table:
    """k-means with the paper's k-hat, and with the number of clusters that LaptSNE finds."""
    counts: dict[int | None, str] = {paper.khat(name): "k-hat"}
    found = laboratory.n_clusters(name)
    counts[found] = "k-hat and found" if found in counts else "found"
    columns = [
        Column(f"{score}, {count} ({who})", cluster_name(score, count), 3, score == "DBI")
        for count, who in counts.items()
        if count and count > 1
        for score in CLUSTER_SCORES
    ]
    columns += [Column("neighbours kept", "neighbours kept")]
    return _table(
        f"{title(name)}: other numbers of clusters",
        _filled(laboratory, options, name, columns),
        "k-means with the paper's k-hat, and with the number of clusters that LaptSNE finds by itself.",
    )


def mean_table(laboratory: Laboratory, options: Options) -> Table:
    """Means over the sets; a method that lacks a score on one of them has no mean of it."""
    names = [name for name in options.sets if name in laboratory.n_classes]
    by_set = [_filled(laboratory, options, name, _main_columns(laboratory, name)) for name in names]
    columns = _main_columns(laboratory, names[0]) if names else []
    for position, column in enumerate(columns):
        for method in options.methods:
            stats = [found[position].stats[method] for found in by_set]
            means = [stat.mean for stat in stats if stat]
            column.stats[method] = Stat(sum(means) / len(means), 0.0, 1) if means and len(means) == len(stats) else None
    listed = ", ".join(title(name) for name in names)
    return _table("All methods: means over the sets", columns, f"Sets: {listed}. Accuracy is cross-validated.")


def frontier_table(found: dict[str, list[Verdict]]) -> Table:
    """At how many of the others' separations LaptSNE keeps more neighbours, by set and method."""
    curves = list(dict.fromkeys(verdict.point.curve for verdicts in found.values() for verdict in verdicts))
    rows = []
    for name, verdicts in found.items():
        groups = [[verdict for verdict in verdicts if verdict.point.curve == curve] for curve in curves]
        rows.append([Entry(title(name)), *(Entry(_ahead(group)) for group in (*groups, verdicts))])
    together = [verdict for verdicts in found.values() for verdict in verdicts]
    groups = [[verdict for verdict in together if verdict.point.curve == curve] for curve in curves]
    rows.append([Entry("all"), *(Entry(_ahead(group)) for group in (*groups, together))])
    return Table(
        "Maps of others at whose separation LaptSNE keeps more neighbours",
        ("set", *curves, "all"),
        rows,
        "Silhouette of k-means with as many clusters as classes; beside each map the best of LaptSNE's that are at "
        "least as separate. A map more separate than any of LaptSNE's counts for the other method.",
    )


def _ahead(verdicts: Sequence[Verdict]) -> str:
    return f"{sum(verdict.ahead for verdict in verdicts)} of {len(verdicts)}" if verdicts else NONE


def _main_columns(laboratory: Laboratory, name: str) -> list[Column]:
    count = laboratory.n_classes[name]
    scores = [Column(score, cluster_name(score, count), 3, score == "DBI") for score in CLUSTER_SCORES]
    return [Column("10-nn", knn_name(10)), *scores, *(Column(score, score) for score in FAITHFULNESS)]


def _filled(laboratory: Laboratory, options: Options, name: str, columns: list[Column]) -> list[Column]:
    for column in columns:
        for method in options.methods:
            column.stats[method] = Stat.of(values(laboratory, options, name, method, column.score))
    return columns


def _table(heading: str, columns: list[Column], note: str = "") -> Table:
    """One line a method, the best of each column marked."""
    rows = []
    for method in columns[0].stats if columns else ():
        row = [Entry(method)]
        for column in columns:
            stat = column.stats[method]
            best = stat is not None and round(stat.mean, column.decimals) == column.best()
            row.append(Entry(stat.text(column.decimals) if stat else NONE, best))
        rows.append(row)
    return Table(heading, ("method", *(f"{column.heading} {column.arrow}" for column in columns)), rows, note)


def _yes(answer: bool | None) -> str:  # noqa: FBT001
    return NONE if answer is None else "yes" if answer else "no"


def _blank(count: int) -> list[Entry]:
    return [Entry(NONE)] * count
