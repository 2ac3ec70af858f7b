"""Which runs the tables and figures are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reproduction import paper
from reproduction.dataset import LARGE
from reproduction.runs import Run

Changes = tuple[tuple[str, Any], ...]
Axes = tuple[tuple[float, ...], tuple[int, ...]]
Curves = dict[str, list[tuple[str, Run]]]

QUICK_SETS = ("digits", "coil20", "waveform")
_QUICK_FRONTIER = ("digits", "coil20")
_FIVE_SEEDS = ("digits", "coil20", "waveform", "coil100", "har")  # the sets that are cheap enough
_TIMED_SETS = ("coil20", "coil100")
GRID_SET = "digits"
HEAT_SET = "coil20"
# Contractions and numbers of clusters, by whether the run is a quick one.
GRID_AXES: dict[bool, Axes] = {
    True: ((0.0, 0.01, 0.04), (5, 11)),
    False: ((0.0, 0.005, 0.02, 0.08), (3, 5, 11, 15, 20)),
}
HEAT_AXES: dict[bool, Axes] = {
    True: ((0.0, 0.005, 0.02), (10, 19, 25)),
    False: ((0.0, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08), (5, 8, 10, 15, 19, 20, 25, 30)),
}
# LaptSNE finds no evidence of clusters here and would not contract: its frontier uses the number from the eigengap.
_WITHOUT_EVIDENCE = ("waveform",)
# LaptSNE on the frontier: with the late exaggeration that contraction brings by default, and without.
OURS = COMBINED, ALONE = "LaptSNE, contraction", "LaptSNE, contraction alone"
# The strongest contraction that is of use: with more, the embedding of this many clusters does not settle.
_MAX_CONTRACTION = {"coil100": 0.08}
SNAPSHOT_SET = "digits"
SNAPSHOT_CLUSTERS = 11
SNAPSHOT_CONTRACTION = 0.1
EARLY_ITERATIONS = (0, 10, 30, 50)


@dataclass(frozen=True)
class Options:
    """The sets and methods to run, and whether to run less.

    ``quick`` is fewer seeds and parameter values, ``tables`` the comparison with the paper's tables alone.
    """

    sets: tuple[str, ...]
    methods: tuple[str, ...]
    quick: bool = False
    tables: bool = False

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
        list(timing_runs(options).values()),
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


def contracted_run(name: str, contraction: float, n_clusters: int) -> Run:
    """Return a run of a sweep over both parameters; without contraction the number of clusters has no effect."""
    if contraction == 0:
        return plain_run(name, purpose="sweep")
    return Run(name, "LaptSNE", 0, (("contraction", contraction), ("n_clusters", n_clusters)), "sweep")


def sweep_runs(options: Options) -> list[Run]:
    """Return the runs of the heat maps, the grid of embeddings and the snapshots."""
    if "LaptSNE" not in options.methods:
        return []
    axes = {HEAT_SET: HEAT_AXES[options.quick], GRID_SET: GRID_AXES[options.quick]}
    runs = [
        contracted_run(name, contraction, n_clusters)
        for name, (contractions, counts) in axes.items()
        if name in options.sets
        for contraction in contractions
        for n_clusters in counts
    ]
    if SNAPSHOT_SET in options.sets:
        runs += snapshot_runs(options)
    return list(dict.fromkeys(runs))


def snapshot_runs(options: Options) -> list[Run]:
    """Return runs of t-SNE and LaptSNE with the paper's settings that keep embeddings during optimisation."""
    steps = tuple(sorted({*EARLY_ITERATIONS, *range(0, 501, 25 if options.quick else 10)}))
    settings = [_paper_settings(SNAPSHOT_CLUSTERS, contraction, 500) for contraction in (0.0, SNAPSHOT_CONTRACTION)]
    return [Run(SNAPSHOT_SET, "LaptSNE", 0, (*changes, ("keep", steps)), "none") for changes in settings]


def timing_runs(options: Options) -> dict[tuple[str, str], Run]:
    """Return runs of 100 iterations with the paper's settings, by set and method in its table of times."""
    runs = {}
    for name in _TIMED_SETS:
        khat = paper.khat(name)
        if name in options.sets and khat is not None:
            settings = _paper_settings(khat, 0.01, 100)
            if "LaptSNE" in options.methods:
                runs[name, "LaptSNE"] = Run(name, "LaptSNE", 0, settings, "none")
                runs[name, "t-SNE"] = Run(name, "LaptSNE", 0, _paper_settings(khat, 0.0, 100), "none")
            if "LaptSNE-Mini" in options.methods:
                settings += (("batch_size", 100), ("n_batch_neighbors", 10))
                runs[name, "LaptSNE-Mini"] = Run(name, "LaptSNE-Mini", 0, settings, "none")
    return runs


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


def _paper_settings(n_clusters: int, contraction: float, max_iter: int) -> Changes:
    return (("paper", True), ("n_clusters", n_clusters), ("contraction", contraction), ("max_iter", max_iter))
