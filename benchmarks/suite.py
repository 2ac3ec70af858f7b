"""LaptSNE and its peers on 31 labelled data sets: how separate the clusters are, and how faithful the maps.

python benchmarks/suite.py                                        # all sets and methods
python benchmarks/suite.py --sets digits sc_pbmc4k --methods LaptSNE openTSNE
python benchmarks/suite.py --frontier                             # separation against neighbours kept and seen
python benchmarks/suite.py --stored [--frontier]                  # only print the stored results

The 24 sets of the suite are NPZ files with X and y in the folder suite/ of LAPTSNE_DATA; the others are those of the
paper. More than 64 features are reduced to 50 by PCA. All methods run with their defaults, one map after another, with
five seeds on sets below 3,000 rows and otherwise one. Scores: cross-validated 10-NN; NMI, silhouette (SC) and
Davies-Bouldin index (DBI) of k-means with as many clusters as classes; the share of the 30 nearest neighbours kept in
the map, and seen in its image of 400 x 400 pixels; the share of ink that markers of radius 2 pixels use in that image;
trustworthiness of 30 neighbours; steadiness and cohesiveness by zadu.

Embeddings and scores are kept in ~/.cache/laptsne-suite by what they depend on, and scores also in
benchmarks/results/suite.json: of our methods with the commit, of the others with the version of the library.

Needs ``pip install ".[benchmark]"``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import suite_frontier
import suite_scores
import suite_tables
from suite_runs import CACHE, VARIANTS, SuiteRunner, make_run
from suite_sets import SETS, Dataset, load, n_rows, n_seeds

RESULTS = Path(__file__).parent / "results" / "suite.json"
Results = dict[str, Any]


def main() -> None:
    given = _parse()
    results = read(given.results)
    if not given.stored:
        runner = SuiteRunner(given.cache, _say)
        for name in sorted(given.sets, key=n_rows):
            data = load(name)
            if given.frontier:
                found = suite_frontier.run_curves(runner, data, given.methods)
                results = add(given.results, "frontier", data, found)
            else:
                results = add(given.results, "maps", data, run_set(runner, data, given.methods, given.seeds))
            _print_one(results, name, frontier=given.frontier)
    chosen = {name: results["sets"][name] for name in given.sets if name in results["sets"]}
    if given.stored:
        for name in chosen:
            _print_one(results, name, frontier=given.frontier)
    if given.frontier:
        suite_frontier.print_summary({name: results["frontier"].get(name, {}) for name in chosen})
    else:
        suite_tables.print_groups({name: results["maps"].get(name, {}) for name in chosen})


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS, metavar="SET")
    parser.add_argument("--methods", nargs="+", choices=[*VARIANTS], default=[*VARIANTS], metavar="METHOD")
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds on sets below 3,000 rows")
    parser.add_argument("--frontier", action="store_true", help="vary a parameter of each method instead")
    parser.add_argument("--stored", action="store_true", help="print the stored results without running anything")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of embeddings and scores")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of the scores")
    return parser.parse_args()


def run_set(runner: SuiteRunner, data: Dataset, methods: list[str], seeds: int) -> dict[str, dict[str, Any]]:
    """Return the scores of each method on a set: lists with one value per seed, and what computed them."""
    groups = suite_scores.table_groups(data)
    found: dict[str, dict[str, Any]] = {}
    for title in methods:
        method, settings = VARIANTS[title]
        runs = [make_run(data.name, method, settings, seed) for seed in range(n_seeds(len(data.y), seeds))]
        scores = [row for row in (runner.scores(data, run, groups) for run in runs) if row]
        if scores:
            by_score = {key: [round(row[key], 4) for row in scores] for key in suite_tables.SCORES if key in scores[0]}
            found[title] = runner.origin(method) | by_score
    return found


def read(path: Path) -> Results:
    """Return the stored results."""
    stored = json.loads(path.read_text()) if path.exists() else {}
    return {"sets": {}, "maps": {}, "frontier": {}} | stored


def add(path: Path, part: str, data: Dataset, found: dict[str, Any]) -> Results:
    """Add results of a set, by method, to those stored, and return all."""
    results = read(path)
    results["sets"][data.name] = {"rows": len(data.y), "classes": data.n_classes}
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
        suite_frontier.print_curves(name, results["frontier"].get(name, {}))
    else:
        suite_tables.print_set(name, results["sets"][name], results["maps"].get(name, {}))


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
