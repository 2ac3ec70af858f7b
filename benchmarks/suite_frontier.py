"""Separation against faithfulness on the sets of the suite: each method as its parameter varies."""

from __future__ import annotations

from typing import Any

import suite_scores
from suite_runs import SuiteRunner, make_run
from suite_sets import LARGE, Dataset

from reproduction.frontier import FrontierPoint, compare_points
from reproduction.methods import Settings
from reproduction.plan import OURS as OUR_CURVES
from reproduction.runs import Run

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
SCORES = ("kept", "seen")
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
            scores = runner.scores(data, run, suite_scores.frontier_groups(data))
            if scores:
                found[method][label(settings)] = {key: round(scores[key], 4) for key in ("SC", *SCORES)}
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
            print(f"| {method} | {text} |" + "".join(f" {scores[key]:.3f} |" for key in ("SC", *SCORES)))
    counts = (f"{what}: {n} of {total}" for what in SCORES for n, total in [ahead(name, found, what)])
    print("\nothers behind one of ours that is at least as separated: " + "; ".join(counts), flush=True)


def print_summary(frontier: dict[str, Any]) -> None:
    """Print for each set how many maps of other methods are behind ours, and the totals."""
    print("\nMaps of other methods that keep fewer neighbours than one of ours that is at least as separated\n")
    print("| set | kept | all | seen | all |\n|---|---|---|---|---|")
    counts = {name: [ahead(name, found, what) for what in SCORES] for name, found in frontier.items()}
    counts = {name: pair for name, pair in counts.items() if pair[0][1]}
    for name, pair in counts.items():
        print(f"| {name} |" + "".join(f" {n} of {total} | {'yes' if n == total else 'no'} |" for n, total in pair))
    cells = []
    for column in zip(*counts.values(), strict=True):
        n_ahead, n_maps = (sum(part) for part in zip(*column, strict=True))
        cells.append(f" {n_ahead} of {n_maps} | {sum(n == total for n, total in column)} of {len(column)} sets |")
    print("| total |" + "".join(cells), flush=True)
