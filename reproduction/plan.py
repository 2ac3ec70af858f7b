"""Which runs the tables and figures are made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from reproduction.dataset import LARGE
from reproduction.runs import Run

Changes = tuple[tuple[str, Any], ...]
Axes = tuple[tuple[float, ...], tuple[int, ...]]
Curves = dict[str, list[tuple[str, Run]]]

QUICK_SETS = ("digits", "coil20", "waveform")
_QUICK_FRONTIER = ("digits", "coil20")
_FIVE_SEEDS = ("digits", "coil20", "waveform", "coil100", "har")  # the sets that are cheap enough
GRID_SET = "digits"
HEAT_SET = "coil20"
# LaptSNE finds no evidence of clusters here and would not contract: its frontier uses the number from the eigengap.
_WITHOUT_EVIDENCE = ("waveform",)
# LaptSNE on the frontier: with the late exaggeration that contraction brings by default, and without.
OURS = COMBINED, ALONE = "LaptSNE, contraction", "LaptSNE, contraction alone"
# The strongest contraction that is of use: with more, the embedding of this many clusters does not settle.
_MAX_CONTRACTION = {"coil100": 0.08}
SNAPSHOT_SET = "digits"
SNAPSHOT_CLUSTERS = 11


@dataclass(frozen=True)
class Sweep:
    """A method whose figures show the effect of both parameters, and of the iterations.

    Parameters
    ----------
    method : str
        The method.
    heading : str
        What the figures say of it.
    heat, grid : tuple
        Contractions and numbers of clusters of the heat maps and of the grid of embeddings.
    snapshots : tuple of int
        Iterations of which the embedding is shown; the last one is that of the figure of the gap.
    contraction : tuple
        Settings of the contraction while embeddings are kept.
    n_iter : int
        Number of iterations of a fit.
    """

    method: str
    heading: str
    heat: Axes
    grid: Axes
    snapshots: tuple[int, ...]
    contraction: Changes
    n_iter: int

    def run(self, name: str, contraction: float, n_clusters: int) -> Run:
        """Return a run with both parameters given; without contraction the number of clusters has no effect."""
        changes: Changes = (("contraction", contraction),)
        if contraction:
            changes += (("n_clusters", n_clusters),)
        return Run(name, self.method, 0, changes, "sweep")

    def snapshot_runs(self, *, quick: bool) -> list[Run]:
        """Return runs without and with contraction that keep embeddings during optimisation."""
        steps = tuple(sorted({*self.snapshots, *range(0, self.n_iter + 1, 25 if quick else 10)}))
        settings: tuple[Changes, ...] = ((("contraction", 0.0),), self.contraction)
        return [Run(SNAPSHOT_SET, self.method, 0, (*changes, ("keep", steps)), "none") for changes in settings]


_COUNTS = (5, 8, 10, 15, 19, 20, 25, 30)
PRESENT = Sweep(
    "LaptSNE",
    "present method",
    heat=((0.0, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08), _COUNTS),
    grid=((0.0, 0.005, 0.02, 0.08), (3, 5, 11, 15, 20)),
    snapshots=(0, 50, 150, 300),
    contraction=(),
    n_iter=300,
)
PUBLISHED = Sweep(
    "LaptSNE as published",
    "as published",
    heat=((0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1), _COUNTS),
    grid=((0.0, 0.001, 0.01, 0.1), (3, 5, 11, 15, 20)),
    snapshots=(0, 10, 30, 50),
    contraction=(("contraction", 0.1), ("n_clusters", SNAPSHOT_CLUSTERS)),
    n_iter=500,
)
CODED = replace(
    PUBLISHED,
    method="LaptSNE as coded",
    heading="as coded",
    heat=((0.0, 1e-4, 1e-3, 1e-2, 2e-2, 5e-2, 1e-1), _COUNTS),
    grid=((0.0, 0.01, 0.02, 0.05), (3, 5, 11, 15, 20)),
    contraction=(("contraction", 0.02), ("n_clusters", SNAPSHOT_CLUSTERS)),
)


def sweeps(*, quick: bool) -> dict[str, Sweep]:
    """Return the sweeps, by the ending of the names of their figures."""
    found = {"": PRESENT, "-published": PUBLISHED, "-coded": CODED}
    if quick:
        short: Axes = (0.0, 0.02), (11, 19)
        found = {ending: replace(sweep, heat=short, grid=short) for ending, sweep in found.items()}
    return found


@dataclass(frozen=True)
class Options:
    """The sets and methods to run, and whether to run less.

    ``quick`` is fewer seeds and parameter values. ``columns`` are those of the comparison with the paper's tables to
    run; the others have the results that are stored. None runs them all, and everything else.
    """

    sets: tuple[str, ...]
    methods: tuple[str, ...]
    quick: bool = False
    columns: tuple[str, ...] | None = None

    @property
    def tables(self) -> bool:
        """Whether the comparison with the paper's tables is all that is wanted."""
        return self.columns is not None

    @property
    def frontier_sets(self) -> tuple[str, ...]:
        """The sets on which separation is compared with faithfulness; the smallest ones in a quick run."""
        return tuple(name for name in self.sets if name in _QUICK_FRONTIER) if self.quick else self.sets

    def seeds(self, name: str) -> range:
        """Return the seeds of the runs on a set."""
        return range(5 if name in _FIVE_SEEDS and not self.quick else 1)


def all_runs(options: Options) -> list[list[Run]]:
    """Return all runs in batches, after each of which a report is worth writing: cheap ones first."""
    return [
        *(table_runs(options, name) for name in options.sets if name not in LARGE),
        sweep_runs(options),
        *(table_runs(options, name) for name in options.sets if name in LARGE),
        *(
            [run for curve in frontier_runs(options, name).values() for _, run in curve]
            for name in options.frontier_sets
        ),
    ]


def plain_run(name: str, seed: int = 0, *, purpose: str = "none") -> Run:
    """Return a run of our t-SNE: LaptSNE without contraction."""
    return Run(name, "LaptSNE", seed, (("contraction", 0.0),), purpose)


def table_runs(options: Options, name: str) -> list[Run]:
    """Return the runs of all methods on a set, and of LaptSNE without contraction to see what contraction costs."""
    runs = [Run(name, method, seed) for method in options.methods for seed in options.seeds(name)]
    if "LaptSNE" in options.methods:
        runs += [plain_run(name, seed, purpose="frontier") for seed in options.seeds(name)]
    return runs


def sweep_runs(options: Options) -> list[Run]:
    """Return the runs of the heat maps, the grids of embeddings and the snapshots."""
    if "LaptSNE" not in options.methods:
        return []
    runs: list[Run] = []
    for sweep in sweeps(quick=options.quick).values():
        for name, (contractions, counts) in ((HEAT_SET, sweep.heat), (GRID_SET, sweep.grid)):
            if name in options.sets:
                runs += [sweep.run(name, strength, count) for strength in contractions for count in counts]
        if SNAPSHOT_SET in options.sets:
            runs += sweep.snapshot_runs(quick=options.quick)
    return list(dict.fromkeys(runs))


def frontier_runs(options: Options, name: str) -> Curves:
    """Return, by curve, the values of the varied parameter and their runs."""
    quick, large = options.quick, name in LARGE
    curves: Curves = {}
    if "LaptSNE" in options.methods:
        contractions = (0.16,) if large else (0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16)
        curves[COMBINED] = _contraction_curve(name, (0.0, *((0.005, 0.02, 0.08) if quick else contractions)))
        curves[COMBINED].append(("auto", Run(name, "LaptSNE", 0, (), "frontier")))
        curves[ALONE] = _contraction_curve(name, (0.02,) if quick else (0.01, 0.04, 0.16), _exaggeration(1.0))
    if "openTSNE" in options.methods:
        factors = (1.0, 4.0) if quick else (1.0, 2.0, 8.0) if large else (1.0, 1.5, 2.0, 4.0, 8.0)
        curves["t-SNE, late exaggeration"] = [(f"{factor:g}", _exaggerated_run(name, factor)) for factor in factors]
    if "UMAP" in options.methods:
        distances = (0.0, 0.1) if quick or large else (0.0, 0.05, 0.1, 0.25, 0.5)
        curves["UMAP, min_dist"] = [(f"{d:g}", _changed_run(name, "UMAP", "min_dist", d, 0.1)) for d in distances]
    if "PaCMAP" in options.methods:
        ratios = (2.0,) if quick or large else (1.0, 2.0, 4.0)
        curves["PaCMAP, FP_ratio"] = [(f"{r:g}", _changed_run(name, "PaCMAP", "FP_ratio", r, 2.0)) for r in ratios]
    return curves


def _contraction_curve(name: str, contractions: tuple[float, ...], extra: Changes = ()) -> list[tuple[str, Run]]:
    """Return runs of LaptSNE over the contraction, at the perplexity that t-SNE has on its curve."""
    runs = []
    for contraction in contractions:
        changes: Changes = (("contraction", contraction), *extra)
        if name not in LARGE:  # there it is the default
            changes += (("perplexity", 30.0),)
        if name in _WITHOUT_EVIDENCE and contraction:
            changes += (("n_clusters", "eigengap"),)
        if contraction <= _MAX_CONTRACTION.get(name, contraction):
            runs.append((f"{contraction:g}", Run(name, "LaptSNE", 0, changes, "frontier")))
    return runs


def _exaggerated_run(name: str, factor: float) -> Run:
    """Return a run of t-SNE with late exaggeration: openTSNE, or on large sets our own engine, which is faster."""
    if name not in LARGE:
        return _changed_run(name, "openTSNE", "exaggeration", factor, 1.0)
    return Run(name, "LaptSNE", 0, (("contraction", 0.0), *(_exaggeration(factor) if factor != 1 else ())), "frontier")


def _exaggeration(factor: float) -> Changes:
    return (("descent", (("exaggeration", factor),)),)


def _changed_run(name: str, method: str, parameter: str, value: float, default: float) -> Run:
    """Return a run with one setting changed; at its default that is the run of the tables."""
    return Run(name, method, 0, () if value == default else ((parameter, value),), "frontier")
