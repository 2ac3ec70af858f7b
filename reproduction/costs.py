"""Tables of what maps cost: divergence and time."""

from __future__ import annotations

from reproduction import paper
from reproduction.comparison import Stat
from reproduction.datasets import title
from reproduction.plan import Options, plain_run, table_run, timing_runs
from reproduction.runs import Laboratory
from reproduction.scores import cluster_name
from reproduction.table import NONE, Entry, Table


def cost_table(laboratory: Laboratory, options: Options) -> Table:
    """What contraction gives and what it costs: maps with it and without it, from the same start."""
    rows = []
    for name in options.sets:
        if name not in laboratory.n_classes:
            continue
        silhouette = cluster_name("SC", laboratory.n_classes[name])
        with_it = [laboratory.records.get(table_run(name, "LaptSNE", seed)) for seed in options.seeds(name)]
        without = [laboratory.records.get(plain_run(name, seed)) for seed in options.seeds(name)]
        pairs = [(a, b) for a, b in zip(with_it, without, strict=True) if a and b and not a.absent and not b.absent]
        if not pairs:
            continue
        first = pairs[0][0].facts
        row = [Entry(title(name)), Entry(f"{first['n_clusters']}"), Entry(f"{first['contraction']:.3g}")]
        for score, digits in ((silhouette, 3), ("neighbours kept", 3)):
            for side in (1, 0):
                stat = Stat.of([pair[side].scores[score] for pair in pairs if score in pair[side].scores])
                row.append(Entry(stat.text(digits) if stat else NONE))
        for side in (1, 0):
            stat = Stat.of([pair[side].facts["kl"] for pair in pairs])
            row.append(Entry(stat.text(3) if stat else NONE))
        paid = Stat.of([a.facts["kl"] - b.facts["kl"] for a, b in pairs])
        rows.append([*row, Entry(paid.text(3) if paid else NONE)])
    columns = (
        *("set", "clusters", "contraction", "SC without", "SC with", "neighbours kept without"),
        *("neighbours kept with", "KL without", "KL with", "KL paid"),
    )
    note = "The same seeds and settings but for the contraction; without it, this is t-SNE by our own engine."
    return Table("What contraction gives and costs", columns, rows, note)


def iteration_table(laboratory: Laboratory, options: Options) -> Table:
    """Seconds of 100 iterations with the paper's settings."""
    runs, rows = timing_runs(options), []
    for name, method in runs:
        record = laboratory.records.get(runs[name, method])
        printed = paper.seconds(name)[method]
        here = record.facts["seconds"] if record and not record.absent else None
        factor = f"{printed / here:.0f}" if here else NONE
        ours = f"{here:.2f}" if here else NONE
        rows.append([Entry(title(name)), Entry(method), Entry(f"{printed:.1f}"), Entry(ours), Entry(factor)])
    return Table(
        "Seconds of 100 iterations with the paper's settings",
        ("set", "method", "paper", "here", "paper / here"),
        rows,
        "Whole fits with LaptSNE.paper, affinities included; t-SNE is the same without contraction, LaptSNE-Mini moves "
        "100 points and 10 neighbours of each. The authors' machine is another: only ratios within a column compare.",
    )


def time_table(laboratory: Laboratory, options: Options) -> Table:
    """Seconds of whole fits."""
    stats: dict[tuple[str, str], Stat | None] = {}
    for name in options.sets:
        for method in options.methods:
            records = [laboratory.records.get(table_run(name, method, seed)) for seed in options.seeds(name)]
            stats[name, method] = Stat.of([r.facts["seconds"] for r in records if r and not r.absent])
    fastest = {
        name: min((stat.mean for method in options.methods if (stat := stats[name, method])), default=None)
        for name in options.sets
    }
    rows = []
    for method in options.methods:
        found = [(name, stats[name, method]) for name in options.sets]
        cells = [Entry(stat.text(1), stat.mean == fastest[name]) if stat else Entry(NONE) for name, stat in found]
        rows.append([Entry(method), *cells])
    note = "What is compiled is compiled before. Times depend on what else the machine had to do."
    return Table("Seconds of whole fits", ("method", *(title(name) for name in options.sets)), rows, note)
