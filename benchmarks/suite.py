"""How separate are the clusters, and how faithful the maps, of LaptSNE and its peers on 31 labelled data sets?

python benchmarks/suite.py                                        # all sets and methods: a day, resumable
python benchmarks/suite.py --sets digits sc_pbmc4k --methods LaptSNE openTSNE
python benchmarks/suite.py --frontier                             # separation against neighbours kept and seen
python benchmarks/suite.py --stored [--frontier]                  # only print the stored results: a second
python benchmarks/suite.py --figure                               # the stored frontier, in docs/images

The 24 sets of the suite are NPZ files with X and y in the folder suite/ of LAPTSNE_DATA; the others are those of the
paper. More than 64 features are reduced to 50 by PCA. All methods run with their defaults, one map after another, with
five seeds on sets below 3,000 rows and otherwise one. Scores: cross-validated 10-NN; NMI, silhouette (SC) and
Davies-Bouldin index (DBI) of k-means with as many clusters as classes; NMI of Leiden, as openproblems defines it: that
of the best of 20 resolutions (0.1 to 2) on the graph of 15 neighbours in the map; the share of the 30 nearest
neighbours kept in the map, and seen in its image of 400 x 400 pixels; the share of ink that markers of radius 2 pixels
use in that image; trustworthiness of 30 neighbours; steadiness and cohesiveness by zadu. Leiden and trustworthiness use
20,000 random rows of larger sets.

Means over sets are those of the means over seeds, with the standard error that is due to the seeds. Sets with one seed
are given the mean variance of the sets with several. The best method is bold, and so are those that differ from it by
at most the standard error of the difference. That other sets would give other means is not part of the error.

Embeddings and scores are kept in ~/.cache/laptsne-suite by what they depend on, and scores also in
benchmarks/results/suite.json: of our methods with the commit, of the others with the version of the library. Scores
that this file has for the same commit or version, number of rows and seeds are not computed again; delete its lines to
renew them.

Needs ``pip install ".[benchmark]"``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from shared import command_line
from suite_runs import (
    CACHE,
    CONTINUUM,
    GROUPS,
    LARGE,
    SCORES_OF,
    SETS,
    VARIANTS,
    Dataset,
    SuiteRunner,
    frontier_groups,
    group,
    load,
    make_run,
    n_rows,
    n_seeds,
    table_groups,
)

from reproduction.frontier import FrontierPoint, compare_points
from reproduction.methods import Settings
from reproduction.plan import OURS as OUR_CURVES
from reproduction.runs import Run

RESULTS = Path(__file__).parent / "results" / "suite.json"
Results = dict[str, Any]


def run_set(
    runner: SuiteRunner, data: Dataset, methods: list[str], seeds: int, stored: dict[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return the scores of each method on a set: lists with one value per seed, and what computed them.

    Only scores that are not among those stored, by method, are computed.
    """
    found: dict[str, dict[str, Any]] = {}
    for title in methods:
        method, settings = VARIANTS[title]
        runs = [make_run(data.name, method, settings, seed) for seed in range(n_seeds(len(data.y), seeds))]
        origin = runner.origin(method)
        known = valid_scores(stored.get(title, {}), origin, len(runs))
        groups = [group for group in table_groups(data) if not known.keys() >= set(SCORES_OF[group.compute])]
        scores = [row for row in (runner.scores(data, run, groups) for run in runs if groups) if row]
        if scores:
            known |= {key: [round(row[key], 4) for row in scores] for key in scores[0]}
            found[title] = origin | {key: known[key] for key in SCORES if key in known}
    return found


def valid_scores(entry: dict[str, Any], origin: dict[str, str], n_seeds: int) -> dict[str, list[float]]:
    """Return the stored scores of a method that have the same origin and number of seeds."""
    if not entry.items() >= origin.items():
        return {}
    return {score: entry[score] for score in SCORES if len(entry.get(score, ())) == n_seeds}


def size(data: Dataset) -> dict[str, int]:
    """Return what is stored about a set."""
    return {"rows": len(data.y), "classes": data.n_classes}


def read(path: Path) -> Results:
    """Return the stored results."""
    stored = json.loads(path.read_text()) if path.exists() else {}
    return {"sets": {}, "maps": {}, "frontier": {}} | stored


def add(path: Path, part: str, data: Dataset, found: dict[str, Any]) -> Results:
    """Add results of a set, by method, to those stored, and return all."""
    results = read(path)
    results["sets"][data.name] = size(data)
    results[part][data.name] = results[part].get(data.name, {}) | found
    partial = path.with_suffix(f".{os.getpid()}.part")
    partial.write_text(_dumps(results))
    partial.replace(path)
    return results


def _dumps(results: Results) -> str:
    """Return the results as JSON with one line per set and method."""
    parts = []
    for part, sets in results.items():
        lines = []
        for name, entries in sorted(sets.items()):
            rows = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in entries.items())
            lines.append(f"{json.dumps(name)}: {{\n{rows}\n}}")
        parts.append(f"{json.dumps(part)}: {{\n" + ",\n".join(lines) + "\n}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _print_one(results: Results, name: str, *, frontier: bool) -> None:
    if frontier:
        print_curves(name, results["frontier"].get(name, {}))
    else:
        print_set(name, results["sets"][name], results["maps"].get(name, {}))


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


# Tables

Maps = dict[str, dict[str, dict[str, Any]]]  # by set, then method: lists of scores, one value per seed
SCORES = (*chain.from_iterable(SCORES_OF.values()), "KL", "n_clusters")
LOWER_IS_BETTER = ("DBI", "KL")
# Scores that are compared with those of another method, and whether the largest ratio is the worst.
RATIOS = {"kept": ("openTSNE", False), "seen": ("openTSNE", False), "ink": ("openTSNE", False)}
RATIOS |= {"KL": ("t-SNE (ours)", True)}
_TITLES = {
    "choosing": "Sets for choosing constants",
    "reporting": "Sets for reporting",
    "paper": "Sets of the paper",
    "continuum": "Continuum sets, judged apart",
}


def print_set(name: str, size: dict[str, int], methods: dict[str, dict[str, Any]]) -> None:
    """Print the mean scores of each method over the seeds."""
    print(f"\n{name}: {size['rows']} rows, {size['classes']} classes ({group(name)})\n")
    print("| method | seeds |" + "".join(f" {score} |" for score in SCORES) + "\n" + "|---" * (len(SCORES) + 2) + "|")
    for method in VARIANTS:
        if method in methods:
            cells = (_cell(mean(methods[method], score), score) for score in SCORES)
            print(f"| {method} | {len(methods[method]['SC'])} |" + "".join(cells))
    print(end="", flush=True)


def print_groups(maps: Maps) -> None:
    """Print means and ratios over the sets for choosing, for reporting, of the paper, and the continuum sets."""
    print(
        "\nThe suite is split by the alphabet: of its 24 sets sorted by name the first, third, ... are for choosing "
        "constants,\nthe second, fourth, ... for reporting. The continuum sets "
        f"({', '.join(CONTINUUM)})\nare in neither mean."
    )
    for title, names in GROUPS.items():
        chosen = {name: maps[name] for name in names if name in maps}
        if chosen:
            print_means(f"{_TITLES[title]} ({len(chosen)} of {len(names)} sets): means over the sets", chosen)
            print_ratios(chosen)
    print(end="", flush=True)


def print_means(title: str, maps: Maps) -> None:
    """Print the mean of each score over the sets, with its standard error; the best are bold."""
    scores = [score for score in SCORES if score != "n_clusters"]
    print(f"\n{title}\n\n| method | sets |" + "".join(f" {score} |" for score in scores))
    print("|---" * (len(scores) + 2) + "|")
    entries = {method: [methods[method] for methods in maps.values() if method in methods] for method in VARIANTS}
    means = {score: {method: Mean.over(entries[method], score) for method in VARIANTS} for score in scores}
    best = {score: best_methods(means[score], len(maps), score) for score in scores}
    for method, found in entries.items():
        if found:
            cells = (_mean_cell(means[score][method], bold=method in best[score]) for score in scores)
            print(f"| {method} | {len(found)} |" + "".join(cells))


@dataclass(frozen=True)
class Mean:
    """A mean over sets, and its standard error over seeds, which is NaN if no set has several seeds."""

    value: float
    error: float
    n_sets: int

    @classmethod
    def over(cls, entries: Collection[dict[str, Any]], score: str) -> Mean | None:
        """Return the mean of a score over the sets; None unless all of them have it."""
        seeds = [entry[score] for entry in entries if score in entry]
        if not seeds or len(seeds) < len(entries):
            return None
        variances = [np.var(values, ddof=1) for values in seeds if len(values) > 1]
        typical = np.mean(variances) if variances else np.nan
        squares = [(np.var(values, ddof=1) if len(values) > 1 else typical) / len(values) for values in seeds]
        value = np.mean([np.mean(values) for values in seeds])
        return cls(float(value), float(np.sqrt(np.sum(squares))) / len(seeds), len(seeds))


def best_methods(means: dict[str, Mean | None], n_sets: int, score: str) -> set[str]:
    """Return the best method that has all sets, and those within a standard error of the difference from it."""
    compared = {method: mean for method, mean in means.items() if mean and mean.n_sets == n_sets}
    if not compared:
        return set()
    sign = -1 if score in LOWER_IS_BETTER else 1
    best = max(compared.values(), key=lambda candidate: sign * candidate.value)
    errors = {method: np.nan_to_num(np.hypot(best.error, mean.error)) for method, mean in compared.items()}
    return {method for method, mean in compared.items() if abs(best.value - mean.value) <= errors[method]}


def print_ratios(maps: Maps) -> None:
    """Print the ratio of each score to that of the method it is compared with, in the mean and on the worst set."""
    print("\n| method |" + "".join(f" {score} / {other} | worst set |" for score, (other, _) in RATIOS.items()))
    print("|---" * (2 * len(RATIOS) + 1) + "|")
    for method in VARIANTS:
        rows = [_ratio_cells(maps, method, score) for score in RATIOS]
        if any(row.strip(" |") for row in rows):
            print(f"| {method} |" + "".join(rows))


def _ratio_cells(maps: Maps, method: str, score: str) -> str:
    other, largest_is_worst = RATIOS[score]
    ratios = {}
    for name, methods in maps.items():
        pair = mean(methods.get(method, {}), score), mean(methods.get(other, {}), score)
        if method != other and pair[0] is not None and pair[1]:
            ratios[name] = pair[0] / pair[1]
    if not ratios:
        return " | |"
    worst = (max if largest_is_worst else min)(ratios, key=lambda name: ratios[name])
    return f" {np.mean(list(ratios.values())):.3f} | {ratios[worst]:.3f} {worst} |"


def mean(entry: dict[str, Any], score: str) -> float | None:
    """Return the mean of a score over the seeds; None if the method does not have it."""
    return float(np.mean(entry[score])) if score in entry else None


def _mean_cell(mean: Mean | None, *, bold: bool) -> str:
    if mean is None:
        return " |"
    value = f"**{mean.value:.3f}**" if bold else f"{mean.value:.3f}"
    return f" {value} |" if np.isnan(mean.error) else f" {value} ± {mean.error:.3f} |"


def _cell(value: float | None, score: str) -> str:
    return " |" if value is None else f" {value:.1f} |" if score == "n_clusters" else f" {value:.3f} |"


# Separation against faithfulness: each method as its parameter varies

# The settings of LaptSNE on its curve: contraction and final exaggeration.
_PAIRS = (
    *(("auto", factor) for factor in (1.0, 1.5, 2.0, 4.0)),
    *((0, factor) for factor in (1.5, 2.0, 4.0)),
    (0.05, 1.3),
    (0.15, 1.5),
    (0.5, 2.0),
)
OURS: list[Settings] = [
    {},
    {"contraction": 0},
    *({"contraction": strength, "descent": {"exaggeration": factor}} for strength, factor in _PAIRS),
]
LARGE_OURS: list[Settings] = [*OURS[:2], *OURS[3:5], OURS[10]]
OTHERS: dict[str, list[Settings]] = {
    "openTSNE": [{}, {"exaggeration": 1.5}, {"exaggeration": 2}, {"exaggeration": 4}],
    "UMAP": [{"min_dist": 0.0}, {}, {"min_dist": 0.5}],
    "PaCMAP": [{"FP_ratio": 1.0}, {}, {"FP_ratio": 4.0}],
    "LocalMAP": [{}],
}
# On the sets of 70,000 points, where a map takes minutes.
LARGE_OTHERS: dict[str, list[Settings]] = {
    "openTSNE": [{}, {"exaggeration": 2}],
    "UMAP": [{}],
    "PaCMAP": [{}],
    "LocalMAP": [{}],
}
FRONTIER_SCORES = ("kept", "seen")
Curves = dict[str, dict[str, dict[str, float]]]  # scores by method and settings


def curves(name: str, methods: list[str]) -> dict[str, list[Settings]]:
    """Return the settings of each method on its curve."""
    found = {"LaptSNE": LARGE_OURS} | LARGE_OTHERS if name in LARGE else {"LaptSNE": OURS} | OTHERS
    return {method: settings for method, settings in found.items() if method in methods}


def run_curves(runner: SuiteRunner, data: Dataset, methods: list[str]) -> Curves:
    """Return the scores of all points of the curves of a set."""
    found: Curves = {}
    for method, variants in curves(data.name, methods).items():
        found[method] = {}
        for settings in variants:
            run = make_run(data.name, method, settings)
            scores = runner.scores(data, run, frontier_groups(data))
            if scores:
                found[method][label(settings)] = {key: round(scores[key], 4) for key in ("SC", *FRONTIER_SCORES)}
    return found


def label(settings: Settings) -> str:
    """Return the settings as text."""
    return ", ".join(f"{name} {value}" for name, value in settings.items()) or "default"


def ahead(name: str, found: Curves, what: str) -> tuple[int, int]:
    """Count the maps of other methods that one of ours, at least as separated, exceeds in a score; and all of them."""
    points = []
    for method, variants in found.items():
        curve = OUR_CURVES[0] if method == "LaptSNE" else method
        for text, scores in variants.items():
            run = Run(name, method, 0, (("settings", text),))
            points.append(FrontierPoint(curve, text, run, scores["SC"], scores[what]))
    comparisons = compare_points(points)
    return sum(comparison.ahead for comparison in comparisons), len(comparisons)


def print_curves(name: str, found: Curves) -> None:
    """Print the points of a set, and how many of the other methods' are behind ours."""
    print(f"\n{name}\n\n| method | settings | SC | kept | seen |\n|---|---|---|---|---|")
    for method, variants in found.items():
        for text, scores in variants.items():
            print(f"| {method} | {text} |" + "".join(f" {scores[key]:.3f} |" for key in ("SC", *FRONTIER_SCORES)))
    counts = (f"{what}: {n} of {total}" for what in FRONTIER_SCORES for n, total in [ahead(name, found, what)])
    print("\nothers behind one of ours that is at least as separated: " + "; ".join(counts), flush=True)


def print_summary(frontier: dict[str, Any]) -> None:
    """Print for each set how many maps of other methods are behind ours, and the totals."""
    print("\nMaps of other methods that keep fewer neighbours than one of ours that is at least as separated\n")
    print("| set | kept | all | seen | all |\n|---|---|---|---|---|")
    counts = {name: [ahead(name, found, what) for what in FRONTIER_SCORES] for name, found in frontier.items()}
    counts = {name: pair for name, pair in counts.items() if pair[0][1]}
    for name, pair in counts.items():
        print(f"| {name} |" + "".join(f" {n} of {total} | {'yes' if n == total else 'no'} |" for n, total in pair))
    cells = []
    for column in zip(*counts.values(), strict=True):
        n_ahead, n_maps = (sum(part) for part in zip(*column, strict=True))
        cells.append(f" {n_ahead} of {n_maps} | {sum(n == total for n, total in column)} of {len(column)} sets |")
    print("| total |" + "".join(cells), flush=True)


# The figure

IMAGES = Path(__file__).parent.parent / "docs" / "images"
FILES = (IMAGES / "frontier.png", IMAGES / "frontier-seen.png")
N_COLUMNS = 6
STYLES = {
    "LaptSNE": {"color": "#0b5fa5", "marker": "o", "zorder": 3},
    "openTSNE": {"color": "#d1495b", "marker": "s"},
    "UMAP": {"color": "#66a182", "marker": "^"},
    "PaCMAP": {"color": "#edae49", "marker": "D"},
    "LocalMAP": {"color": "#8d6a9f", "marker": "v"},
}
NAMES = {"kept": "neighbours kept", "seen": "neighbours seen"}


def draw(ax: Any, name: str, curves: dict[str, Any], what: str) -> None:
    """Draw the maps of all methods of one set."""
    for method, style in STYLES.items():
        points = sorted((scores["SC"], scores[what]) for scores in curves.get(method, {}).values())
        if points:
            ax.plot(*zip(*points, strict=True), linestyle="none", markersize=4, label=method, **style)
    ax.set_title(name, fontsize=8)
    ax.tick_params(labelsize=7)


def draw_frontier(results: Results, files: Sequence[Path]) -> None:
    """Write the figures: separation against neighbours kept and seen, one panel per set."""
    from matplotlib.figure import Figure

    frontier = results["frontier"]
    sets = [name for names in GROUPS.values() for name in names if name in frontier]
    for what, out in zip(NAMES, files, strict=False):
        n_rows = -(-len(sets) // N_COLUMNS)
        figure = Figure(figsize=(2.3 * N_COLUMNS, 1.9 * n_rows), layout="constrained")
        panels = figure.subplots(n_rows, N_COLUMNS, squeeze=False).ravel()
        for ax, name in zip(panels, sets, strict=False):
            draw(ax, name, frontier[name], what)
        for ax in panels[len(sets) :]:
            ax.set_axis_off()
        figure.supxlabel("silhouette of k-means", fontsize=10)
        figure.supylabel(NAMES[what], fontsize=10)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="lower right", fontsize=9, ncols=2)
        figure.savefig(out, dpi=80)


def parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS, metavar="SET")
    parser.add_argument("--methods", nargs="+", choices=[*VARIANTS], default=[*VARIANTS], metavar="METHOD")
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds on sets below 3,000 rows")
    parser.add_argument("--frontier", action="store_true", help="vary a parameter of each method instead")
    parser.add_argument("--stored", action="store_true", help="print the stored results without running anything")
    parser.add_argument("--figure", nargs="*", type=Path, metavar="FILE", help="write the figures of the frontier")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of embeddings and scores")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of the scores")
    return parser


def main() -> None:
    given = parser().parse_args()
    results = read(given.results)
    if given.figure is not None:
        draw_frontier(results, given.figure or FILES)
        return
    if not given.stored:
        runner = SuiteRunner(given.cache, _say)
        for name in sorted(given.sets, key=n_rows):
            data = load(name)
            if given.frontier:
                found = run_curves(runner, data, given.methods)
                results = add(given.results, "frontier", data, found)
            else:
                stored = results["maps"].get(name, {}) if results["sets"].get(name) == size(data) else {}
                found = run_set(runner, data, given.methods, given.seeds, stored)
                results = add(given.results, "maps", data, found)
            _print_one(results, name, frontier=given.frontier)
    chosen = {name: results["sets"][name] for name in given.sets if name in results["sets"]}
    if given.stored:
        for name in chosen:
            _print_one(results, name, frontier=given.frontier)
    if given.frontier:
        print_summary({name: results["frontier"].get(name, {}) for name in chosen})
    else:
        print_groups({name: results["maps"].get(name, {}) for name in chosen})


if __name__ == "__main__":
    main()
