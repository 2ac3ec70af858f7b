"""Which runs the tables and figures are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reproduction import paper
from reproduction.data import LARGE
from reproduction.runs import Run

QUICK_SETS = ("digits", "coil20", "waveform")
_QUICK_FRONTIER = ("digits", "coil20")
# Sets that are cheap enough for five seeds.
_SEEDED = ("digits", "coil20", "waveform", "coil100", "har")
TIMED_SETS = ("coil20", "coil100")
GRID_SET = "digits"
HEAT_SET = "coil20"
# Where LaptSNE finds no evidence of clusters and would not contract, it is told a number on its curve.
_WITHOUT_EVIDENCE = ("waveform",)
# Our curves: with the late exaggeration that comes with contraction by default, and without.
OURS = COMBINED, ALONE = "LaptSNE, contraction", "LaptSNE, contraction alone"
# Many clusters share the pull: with more than this their map is adrift, and of no use to anybody.
_STRONGEST = {"coil100": 0.08}
TRAJECTORY_SET = "digits"
TRAJECTORY_CLUSTERS = 11
TRAJECTORY_CONTRACTION = 0.1
EARLY_ITERATIONS = (0, 10, 30, 50)


@dataclass(frozen=True)
class Options:
    """What was asked for."""

    sets: tuple[str, ...]
    methods: tuple[str, ...]
    quick: bool = False

    @property
    def small(self) -> tuple[str, ...]:
        """The sets of up to about ten thousand points."""
        return tuple(name for name in self.sets if name not in LARGE)

    @property
    def large(self) -> tuple[str, ...]:
        """The others."""
        return tuple(name for name in self.sets if name in LARGE)

    @property
    def frontier(self) -> tuple[str, ...]:
        """The sets on which parameters are varied to see what separation costs; the smallest in a quick run."""
        return tuple(name for name in self.sets if name in _QUICK_FRONTIER) if self.quick else self.sets

    def seeds(self, name: str) -> range:
        """Seeds of the runs on a set."""
        return range(5 if name in _SEEDED and not self.quick else 1)


def table_run(name: str, method: str, seed: int = 0) -> Run:
    """A method with its own settings."""
    return Run(name, method, seed)


def plain_run(name: str, seed: int = 0, *, purpose: str = "none") -> Run:
    """Our t-SNE: LaptSNE without contraction."""
    return Run(name, "LaptSNE", seed, (("contraction", 0.0),), purpose)


def table_runs(options: Options, name: str) -> list[Run]:
    """All methods on a set; beside LaptSNE the same without contraction, for what contraction costs."""
    runs = [table_run(name, method, seed) for method in options.methods for seed in options.seeds(name)]
    if "LaptSNE" in options.methods:
        runs += [plain_run(name, seed, purpose="frontier") for seed in options.seeds(name)]
    return runs


def contracted(name: str, contraction: float, n_clusters: int) -> Run:
    """A run of a sweep over the two parameters; without contraction the number of clusters has no part in it."""
    if contraction == 0:
        return plain_run(name, purpose="sweep")
    return Run(name, "LaptSNE", 0, (("contraction", contraction), ("n_clusters", n_clusters)), "sweep")


def heat_axes(options: Options) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Contractions and numbers of clusters of the heat maps."""
    if options.quick:
        return (0.0, 0.005, 0.02), (10, 19, 25)
    return (0.0, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08), (5, 8, 10, 15, 19, 20, 25, 30)


def grid_axes(options: Options) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Contractions and numbers of clusters of the grid of maps."""
    if options.quick:
        return (0.0, 0.01, 0.04), (5, 11)
    return (0.0, 0.005, 0.02, 0.08), (3, 5, 11, 15, 20)


def sweep_runs(options: Options) -> list[Run]:
    """Runs of the heat maps, the grid of maps and the trajectories."""
    if "LaptSNE" not in options.methods:
        return []
    runs: list[Run] = []
    for name, axes in ((HEAT_SET, heat_axes(options)), (GRID_SET, grid_axes(options))):
        if name in options.sets:
            runs += [contracted(name, contraction, count) for contraction in axes[0] for count in axes[1]]
    if TRAJECTORY_SET in options.sets:
        runs += trajectory_runs(options)
    return list(dict.fromkeys(runs))


def trajectory_runs(options: Options) -> list[Run]:
    """Both methods as the paper states them, with the maps on their way: t-SNE, then LaptSNE."""
    steps = tuple(sorted({*EARLY_ITERATIONS, *range(0, 501, 25 if options.quick else 10)}))
    settings = [_paper_settings(TRAJECTORY_CLUSTERS, strength, 500) for strength in (0.0, TRAJECTORY_CONTRACTION)]
    return [Run(TRAJECTORY_SET, "LaptSNE", 0, (*changes, ("keep", steps)), "none") for changes in settings]


def timing_runs(options: Options) -> dict[tuple[str, str], Run]:
    """Runs of 100 iterations with the paper's settings, by set and method of its table of times."""
    runs = {}
    for name in TIMED_SETS:
        khat = paper.khat(name)
        if name in options.sets and khat is not None:
            if "LaptSNE" in options.methods:
                runs[name, "LaptSNE"] = Run(name, "LaptSNE", 0, _paper_settings(khat, 0.01, 100), "none")
                runs[name, "t-SNE"] = Run(name, "LaptSNE", 0, _paper_settings(khat, 0.0, 100), "none")
            if "LaptSNE-Mini" in options.methods:
                batches = (("batch_size", 100), ("n_batch_neighbors", 10))
                runs[name, "LaptSNE-Mini"] = Run(
                    name, "LaptSNE-Mini", 0, (*_paper_settings(khat, 0.01, 100), *batches), "none"
                )
    return runs


def _paper_settings(n_clusters: int, contraction: float, max_iter: int) -> tuple[tuple[str, Any], ...]:
    changes = {"paper": True, "n_clusters": n_clusters, "contraction": contraction, "max_iter": max_iter}
    return tuple(changes.items())


def _swept(name: str, strengths: tuple[float, ...], *, alone: bool = False) -> list[tuple[str, Run]]:
    """LaptSNE with these contractions, and the perplexity that t-SNE has on the other curve."""
    runs = []
    for contraction in strengths:
        changes: tuple[tuple[str, Any], ...] = (("contraction", contraction),)
        if alone:
            changes += (_late(1.0),)
        if name not in LARGE:  # there it is the default
            changes += (("perplexity", 30.0),)
        if name in _WITHOUT_EVIDENCE and contraction:
            changes += (("n_clusters", "eigengap"),)
        if contraction <= _STRONGEST.get(name, contraction):
            runs.append((f"{contraction:g}", Run(name, "LaptSNE", 0, changes, "frontier")))
    return runs


def frontier_runs(options: Options, name: str) -> dict[str, list[tuple[str, Run]]]:
    """Runs from tight to loose by curve, each with the value of what is varied."""
    quick, large, curves = options.quick, name in LARGE, {}
    if "LaptSNE" in options.methods:
        many = (0.16,) if large else (0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16)
        curves[COMBINED] = [
            *_swept(name, (0.0, *((0.005, 0.02, 0.08) if quick else many))),
            ("auto", Run(name, "LaptSNE", 0, (), "frontier")),
        ]
        curves[ALONE] = _swept(name, (0.02,) if quick else (0.01, 0.04, 0.16), alone=True)
    if "openTSNE" in options.methods:
        factors = (1.0, 4.0) if quick else (1.0, 2.0, 8.0) if large else (1.0, 1.5, 2.0, 4.0, 8.0)
        curves["t-SNE, late exaggeration"] = [(f"{e:g}", _exaggerated(name, e)) for e in factors]
    if "UMAP" in options.methods:
        gaps = (0.0, 0.1) if quick or large else (0.0, 0.05, 0.1, 0.25, 0.5)
        curves["UMAP, min_dist"] = [(f"{g:g}", _changed(name, "UMAP", "min_dist", g, 0.1)) for g in gaps]
    if "PaCMAP" in options.methods:
        ratios = (2.0,) if quick or large else (1.0, 2.0, 4.0)
        curves["PaCMAP, FP_ratio"] = [(f"{r:g}", _changed(name, "PaCMAP", "FP_ratio", r, 2.0)) for r in ratios]
    return curves


def _exaggerated(name: str, factor: float) -> Run:
    """t-SNE whose attraction stays exaggerated: by openTSNE, on large sets by our own engine, which is faster."""
    if name not in LARGE:
        return _changed(name, "openTSNE", "exaggeration", factor, 1.0)
    changes: tuple[tuple[str, Any], ...] = (("contraction", 0.0),)
    if factor != 1:
        changes += (_late(factor),)
    return Run(name, "LaptSNE", 0, changes, "frontier")


def _late(factor: float) -> tuple[str, Any]:
    """A late exaggeration."""
    return "descent", (("exaggeration", factor),)


def _changed(name: str, method: str, parameter: str, value: float, default: float) -> Run:
    """A run with one setting changed, or none where the value is the default: that is the run of the tables."""
    return Run(name, method, 0, () if value == default else ((parameter, value),), "frontier")
