"""The tables of the report; its template gives them titles and notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reproduction import paper
from reproduction.comparison import Statistic, summarise
from reproduction.datasets import title
from reproduction.frontier import FrontierComparison
from reproduction.plan import Options, plain_run
from reproduction.runs import Run, Runner
from reproduction.scores import CLUSTER_SCORES, FAITHFULNESS, cluster_name, knn_name, neighbor_counts

_NONE = "—"


@dataclass(frozen=True)
class TableCell:
    """The text of a cell, and whether it is highlighted as the best."""

    text: str
    best: bool = False


@dataclass(frozen=True)
class ReportTable:
    """A table: headings, and one row of cells per line."""

    columns: Sequence[str]
    rows: Sequence[Sequence[TableCell]]

    def markdown(self) -> str:
        """Return the table in Markdown, for pages of the documentation."""
        lines = [self.columns, ["---"] * len(self.columns)]
        lines += [[f"**{cell.text}**" if cell.best else cell.text for cell in row] for row in self.rows]
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)


@dataclass(frozen=True)
class ScoreColumn:
    """A column of a table of methods: its heading, and the name of its score."""

    heading: str
    score: str
    lower_is_better: bool = False

    def best(self, statistics: Sequence[Statistic | None]) -> float | None:
        """Return the best mean as printed."""
        means = [round(statistic.mean, 3) for statistic in statistics if statistic]
        return (min if self.lower_is_better else max)(means, default=None)


def methods_table(runner: Runner, options: Options, name: str) -> ReportTable:
    """All methods on a set, with k-NN cross-validated."""
    return _method_table(runner, options, {name: _main_columns(runner, name)})


def accuracy_table(runner: Runner, options: Options, name: str) -> ReportTable:
    """k-NN accuracies at the paper's numbers of neighbours, cross-validated and on the training points."""
    ks = neighbor_counts(name)
    columns = [
        *(ScoreColumn(knn_name(k), knn_name(k)) for k in ks),
        *(ScoreColumn(f"{k}-nn, training", knn_name(k, "paper")) for k in ks),
        ScoreColumn("neighbours kept", "neighbours kept"),
    ]
    return _method_table(runner, options, {name: columns})


def cluster_table(runner: Runner, options: Options, name: str) -> ReportTable:
    """k-means with the paper's k-hat, and with the number of clusters that LaptSNE finds."""
    sources: dict[int | None, str] = {paper.khat(name): "k-hat"}
    found = runner.n_clusters(name)
    sources[found] = "k-hat and found" if found in sources else "found"
    columns = [
        ScoreColumn(f"{score}, {count} ({source})", cluster_name(score, count), score == "DBI")
        for count, source in sources.items()
        if count and count > 1
        for score in CLUSTER_SCORES
    ]
    columns.append(ScoreColumn("neighbours kept", "neighbours kept"))
    return _method_table(runner, options, {name: columns})


def mean_table(runner: Runner, options: Options) -> ReportTable:
    """Means over the sets; a method that lacks a score on one of them has no mean of it."""
    columns = {name: _main_columns(runner, name) for name in options.sets if name in runner.n_classes}
    return _method_table(runner, options, columns)


def frontier_table(found: dict[str, list[FrontierComparison]]) -> ReportTable:
    """Numbers of embeddings of other methods at whose separation LaptSNE keeps more neighbours, by set and curve."""
    everything = [one for comparisons in found.values() for one in comparisons]
    curves = list(dict.fromkeys(one.point.curve for one in everything))
    rows = []
    for heading, comparisons in [*((title(name), ones) for name, ones in found.items()), ("all", everything)]:
        groups = [[one for one in comparisons if one.point.curve == curve] for curve in curves]
        ahead = (f"{sum(one.ahead for one in group)} of {len(group)}" for group in (*groups, comparisons))
        rows.append(text_row(heading, *(_NONE if text == "0 of 0" else text for text in ahead)))
    return ReportTable(("set", *curves, "all"), rows)


def contraction_table(runner: Runner, options: Options) -> ReportTable:
    """What contraction gains and costs: embeddings with and without it from the same initialisation."""
    rows = []
    for name in options.sets:
        runs = ((plain_run(name, seed), Run(name, "LaptSNE", seed)) for seed in options.seeds(name))
        pairs = [(plain, ours) for plain, ours in runs if runner.fit(plain) and runner.fit(ours)]
        if not pairs:
            continue
        facts = [[fit.facts for run in pair if (fit := runner.fit(run))] for pair in pairs]
        row = [title(name), f"{facts[0][1]['n_clusters']}", f"{facts[0][1]['contraction']:.3g}"]
        for score in (cluster_name("SC", runner.n_classes[name]), "neighbours kept"):
            for side in (0, 1):
                scores = [runner.records[pair[side]].scores for pair in pairs]
                row.append(_text(Statistic.of([found[score] for found in scores if score in found])))
        row += [_text(Statistic.of([pair[side]["kl"] for pair in facts])) for side in (0, 1)]
        rows.append(text_row(*row, _text(Statistic.of([ours["kl"] - plain["kl"] for plain, ours in facts]))))
    columns = ("SC without", "SC with", "kept without", "kept with", "KL without", "KL with", "KL difference")
    return ReportTable(("set", "clusters", "contraction", *columns), rows)


def time_table(runner: Runner, options: Options) -> ReportTable:
    """Seconds of whole fits."""
    columns = []
    for name in options.sets:
        fits = [[runner.fit(Run(name, method, seed)) for seed in options.seeds(name)] for method in options.methods]
        times = [Statistic.of([fit.facts["seconds"] for fit in group if fit]) for group in fits]
        fastest = min((time.mean for time in times if time), default=None)
        columns.append([TableCell(_text(time, 1), bool(time and time.mean == fastest)) for time in times])
    rows = [[TableCell(method), *cells] for method, *cells in zip(options.methods, *columns, strict=True)]
    return ReportTable(("method", *(title(name) for name in options.sets)), rows)


def _main_columns(runner: Runner, name: str) -> list[ScoreColumn]:
    count = runner.n_classes[name]
    kmeans = (ScoreColumn(score, cluster_name(score, count), score == "DBI") for score in CLUSTER_SCORES)
    return [ScoreColumn("10-nn", knn_name(10)), *kmeans, *(ScoreColumn(score, score) for score in FAITHFULNESS)]


def _method_table(runner: Runner, options: Options, columns: dict[str, list[ScoreColumn]]) -> ReportTable:
    """One row per method, the best of each column highlighted; with several sets, the means over them.

    ``columns`` holds the columns by set, in the same order for each.
    """
    headings, cells = ["method"], []
    for column in zip(*columns.values(), strict=True):
        scores = [(name, by_set.score) for name, by_set in zip(columns, column, strict=True)]
        found = [
            _mean_over_sets([summarise(runner, options, name, method, score) for name, score in scores])
            for method in options.methods
        ]
        best = column[0].best(found)
        cells.append([TableCell(_text(one), one is not None and round(one.mean, 3) == best) for one in found])
        headings.append(f"{column[0].heading}\N{NO-BREAK SPACE}{arrow(column[0].lower_is_better)}")
    return ReportTable(headings, [[TableCell(name), *row] for name, *row in zip(options.methods, *cells, strict=True)])


def _mean_over_sets(statistics: list[Statistic | None]) -> Statistic | None:
    """Average the means of several sets, of one its statistic; None if a set has none."""
    means = [statistic.mean for statistic in statistics if statistic]
    if len(means) < len(statistics):
        return None
    return statistics[0] if len(statistics) == 1 else Statistic(sum(means) / len(means), 0.0, 1)


def text_row(*texts: str) -> list[TableCell]:
    """Return cells with texts, none of them highlighted."""
    return [TableCell(text) for text in texts]


def _text(statistic: Statistic | None, decimals: int = 3) -> str:
    return statistic.text(decimals) if statistic else _NONE


def arrow(lower_is_better: bool) -> str:  # noqa: FBT001
    """Return the sign that says which figures are better."""
    return "↓" if lower_is_better else "↑"
