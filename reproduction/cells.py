"""The scores that the paper prints, cell by cell, next to ours by each protocol."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reproduction import paper
from reproduction.comparison import Comparison, Statistic, WinCount, score_name
from reproduction.datasets import title
from reproduction.paper import PublishedScore
from reproduction.plan import Options
from reproduction.protocols import (
    BASELINE,
    COLUMNS,
    DEFAULTS,
    MINI,
    PROTOCOLS,
    TUNED,
    baseline_runs,
    chosen,
    default_runs,
    final_runs,
)
from reproduction.runs import Run, Runner
from reproduction.tables import ReportTable, TableCell, arrow, text_row

HEADINGS = tuple(column for column in COLUMNS if column != BASELINE)
_TOLERANCE = 0.02  # within which a score is that of the paper
_NONE = "—"


@dataclass(frozen=True)
class Cell:
    """A score in the paper, and ours by the heading of the protocol; None where there is none."""

    published: PublishedScore
    ours: dict[str, Statistic | None]
    baseline: str  # the best of the paper's baselines as we measure them, empty if none was run
    baseline_score: float | None
    best_tuned: float | None  # the best of all tuned settings, each cell with its own

    @property
    def heading(self) -> str:
        """Name of the score."""
        return f"{self.published.score}{', k-hat' if self.published.khat else ''}"

    def comparison(self, heading: str) -> Comparison:
        """Return the comparison of a protocol with the method in the paper that it repeats."""
        rival = MINI.rival if heading == MINI.heading else "LaptSNE"
        return Comparison(self.published, self.ours[heading], rival)

    def is_near(self, heading: str) -> bool | None:
        """Whether a k-NN accuracy or NMI is that of the paper up to 0.02; None if it is another score or missing."""
        comparison = self.comparison(heading)
        if comparison.ours is None or self.published.score in ("SC", "DBI"):
            return None
        return abs(comparison.ours.mean - self.published.by_method[comparison.rival]) <= _TOLERANCE


def cells(runner: Runner, options: Options, name: str) -> list[Cell]:
    """Return all cells of a set."""
    n_classes = runner.n_classes.get(name)
    if n_classes is None:
        return [Cell(one, dict.fromkeys(HEADINGS), "", None, None) for one in paper.published_scores(name)]
    runs = {protocol.heading: final_runs(runner, protocol, name, options) for protocol in PROTOCOLS}
    runs[DEFAULTS] = default_runs(options, name)
    found = []
    for published in paper.published_scores(name):
        score = score_name(published, n_classes)
        pick = min if published.lower_is_better else max
        baselines = {
            run.method: values[0] for run in baseline_runs(options, name) if (values := _values(runner, [run], score))
        }
        best = pick(baselines, key=lambda method: baselines[method], default="")
        ours = {heading: Statistic.of(_values(runner, group, score)) for heading, group in runs.items()}
        tuned = pick(_values(runner, TUNED.grid(options, name, n_classes), score), default=None)
        found.append(Cell(published, ours, best, baselines.get(best), tuned))
    return found


def _values(runner: Runner, runs: Iterable[Run], score: str) -> list[float]:
    records = (runner.records.get(run) for run in runs)
    return [record.scores[score] for record in records if record and score in record.scores]


def cell_table(runner: Runner, options: Options, name: str) -> ReportTable:
    """The paper's figures of a set and ours; a figure that is at least as good as the paper's is highlighted."""
    return ReportTable(_columns(), [_cell_row(cell, spread=True) for cell in cells(runner, options, name)])


def all_cells_table(runner: Runner, options: Options) -> ReportTable:
    """The same for all sets, without the spread over the seeds."""
    rows = [
        [TableCell(title(name)), *_cell_row(cell, spread=False)]
        for name in options.sets
        for cell in cells(runner, options, name)
    ]
    return ReportTable(("set", *_columns()), rows)


def _columns() -> tuple[str, ...]:
    ours: list[str] = []
    for heading in HEADINGS:
        ours += ["Mini, paper", heading] if heading == MINI.heading else [heading]
    return "score", "paper", "best, paper", *ours, BASELINE


def _cell_row(cell: Cell, *, spread: bool) -> list[TableCell]:
    published, decimals = cell.published, cell.published.decimals
    best = published.best_method
    texts = (published.by_method["LaptSNE"], published.by_method[best], published.by_method["LaptSNE-Mini"])
    paper_text, best_text, mini_text = (f"{value:.{decimals}f}" for value in texts)
    row = text_row(f"{cell.heading} {arrow(published.lower_is_better)}", paper_text, f"{best_text} {best}")
    for heading in HEADINGS:
        if heading == MINI.heading:
            row += text_row(mini_text)
        comparison = cell.comparison(heading)
        ours = comparison.ours
        if ours is not None and not spread:
            ours = Statistic(ours.mean, 0.0, 1)
        row.append(TableCell(ours.text(decimals) if ours else _NONE, bool(comparison.beats_paper)))
    if cell.baseline_score is None:
        return [*row, TableCell(_NONE)]
    return [*row, TableCell(f"{cell.baseline_score:.{decimals}f} {cell.baseline}")]


def win_table(runner: Runner, options: Options) -> ReportTable:
    """Numbers of cells in which each protocol reaches the paper's, by set and in total."""
    by_set = {name: cells(runner, options, name) for name in options.sets}
    everything = [cell for found in by_set.values() for cell in found]
    rows = []
    for heading in HEADINGS:
        counts = [WinCount.of([cell.comparison(heading) for cell in found]) for found in (*by_set.values(), everything)]
        near = [cell.is_near(heading) for cell in everything]
        texts = (f"{count.paper} {count.best}" if count.compared else _NONE for count in counts)
        rows.append(text_row(heading, *texts, f"{near.count(True)} of {len(near) - near.count(None)}"))
    bests = [
        [_tuned_wins(cell) for cell in found if cell.best_tuned is not None] for found in (*by_set.values(), everything)
    ]
    rows.append(text_row("tuned for each cell", *(str(sum(wins)) if wins else _NONE for wins in bests), _NONE))
    return ReportTable(("protocol", *(title(name) for name in by_set), "all", "within 0.02"), rows)


def _tuned_wins(cell: Cell) -> bool:
    assert cell.best_tuned is not None
    return bool(Comparison(cell.published, Statistic.of([cell.best_tuned])).beats_paper)


def settings_table(runner: Runner, options: Options) -> ReportTable:
    """The contraction that each protocol chose on each set, and the number of clusters if it was chosen, too."""
    rows = []
    for protocol in PROTOCOLS:
        texts = []
        for name in options.sets:
            run = chosen(runner, protocol, name, options)
            settings = dict(run.changes) if run else {}
            count = "" if protocol.published else f", {settings.get('n_clusters')}"
            texts.append(f"{settings['contraction']:g}{count}" if run else _NONE)
        rows.append(text_row(protocol.heading, *texts))
    return ReportTable(("protocol", *(title(name) for name in options.sets)), rows)
