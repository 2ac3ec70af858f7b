"""Tables of the suite's scores: of each set, and means and ratios over groups of sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from suite_runs import VARIANTS
from suite_sets import CONTINUUM, GROUPS, group

Maps = dict[str, dict[str, dict[str, Any]]]  # by set, then method: lists of scores, one value per seed
SCORES = (
    *("10-NN", "NMI", "SC", "DBI", "kept", "seen", "ink", "trustworthiness", "steadiness", "cohesiveness"),
    *("KL", "n_clusters"),
)
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
    """Print the mean of each score over the sets that have it."""
    scores = [score for score in SCORES if score != "n_clusters"]
    print(f"\n{title}\n\n| method | sets |" + "".join(f" {score} |" for score in scores))
    print("|---" * (len(scores) + 2) + "|")
    for method in VARIANTS:
        found = [methods[method] for methods in maps.values() if method in methods]
        if found:
            cells = (_cell(_mean_of([mean(entry, score) for entry in found]), score) for score in scores)
            print(f"| {method} | {len(found)} |" + "".join(cells))


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


def _mean_of(values: Sequence[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return float(np.mean(present)) if present else None


def _cell(value: float | None, score: str) -> str:
    return " |" if value is None else f" {value:.1f} |" if score == "n_clusters" else f" {value:.3f} |"
