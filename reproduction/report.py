"""The report: what was run, how it compares, what is absent."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reproduction import costs, figures, frontier, plan, tables
from reproduction.comparison import Comparison, Count, compare
from reproduction.datasets import title
from reproduction.figures import Picture
from reproduction.methods import METHODS
from reproduction.pages import Block, Bullets, Document, Section, as_html, as_markdown
from reproduction.plan import Options
from reproduction.runs import Laboratory, Record
from reproduction.store import write

_LIBRARIES = ("laptsne", "numpy", "scipy", "scikit-learn", "numba", "openTSNE", "umap-learn", "pacmap")
_FOLDER = "figures"
_TRIO = ("LaptSNE", "LaptSNE-Mini", "t-SNE")


def write_report(out: Path, laboratory: Laboratory, options: Options) -> None:
    """Write results.json, report.md with its figures, and report.html."""
    laboratory.say("writing the report")
    pictures = list(_pictures(laboratory, options))
    document = _document(laboratory, options, pictures)
    (out / _FOLDER).mkdir(parents=True, exist_ok=True)
    for picture in pictures:
        write(out / _FOLDER / f"{picture.name}.png", picture.png)
    results = json.dumps(_results(laboratory, options), indent=1, ensure_ascii=False)
    write(out / "results.json", results.encode())
    write(out / "report.md", as_markdown(document, _FOLDER).encode())
    write(out / "report.html", as_html(document).encode())


def _document(laboratory: Laboratory, options: Options, pictures: list[Picture]) -> Document:
    found = _verdicts(laboratory, options)
    summary: list[Block] = [tables.mean_table(laboratory, options), tables.count_table(laboratory, options)]
    summary += [costs.cost_table(laboratory, options), *([tables.frontier_table(found)] if found else [])]
    sections = [Section("Summary", summary)]
    for name in options.sets:
        if name in laboratory.n_classes:
            makers = (tables.methods_table, tables.cell_table, tables.accuracy_table, tables.cluster_table)
            sections.append(Section(title(name), [make(laboratory, options, name) for make in makers]))
    times = [costs.time_table(laboratory, options), costs.iteration_table(laboratory, options)]
    sections.append(Section("Time", [table for table in times if table.rows]))
    sections.append(Section("Figures", pictures))
    sections.append(Section("What is absent", _absent(laboratory, options)))
    sections.append(Section("How it was run", _settings(options)))
    return Document("The LaptSNE paper's experiments, run again", _lead(laboratory, options, found), sections)


def _lead(laboratory: Laboratory, options: Options, found: dict[str, list[frontier.Verdict]]) -> list[Block]:
    count = Count.of(_comparisons(laboratory, options))
    lines = [
        f"{count.paper} of {count.cells} against the LaptSNE column: in so many cells of the paper's tables the figure "
        "here is at least as good as that of the paper's LaptSNE.",
        f"{count.best} of {count.cells} against the best column: in so many it is at least as good as that of every "
        "method in the paper.",
    ]
    if count.compared < count.cells:
        lines.append(f"{count.cells - count.compared} of these {count.cells} cells were not run and count as lost.")
    together = [verdict for verdicts in found.values() for verdict in verdicts]
    if together:
        ahead = sum(verdict.ahead for verdict in together)
        others = ", ".join(dict.fromkeys(verdict.point.curve.split(",")[0] for verdict in together))
        lines.append(
            f"{ahead} of {len(together)} maps of other methods ({others}, each over its parameter) keep fewer "
            "neighbours than LaptSNE does at the same separation."
        )
    lines.append(f"Sets: {', '.join(title(name) for name in options.sets)}. Methods: {', '.join(options.methods)}.")
    if options.quick:
        lines.append("A quick run: one seed, and fewer values, on fewer sets, where parameters are varied.")
    if any("rebuilt" in title(name) for name in options.sets):
        lines.append(
            "HAR (rebuilt) is not the published file: most of its features were computed again from the recordings. "
            "Its figures do not compare with the paper's as the others do."
        )
    return [Bullets(lines)]


def _pictures(laboratory: Laboratory, options: Options) -> Iterator[Picture]:
    trio = figures.maps(laboratory, options, _TRIO, 2.6)
    everything = figures.maps(laboratory, options, options.methods, 1.9)
    heat_set, grid_set, moving = title(plan.HEAT_SET), title(plan.GRID_SET), title(plan.TRAJECTORY_SET)
    drawn = (
        (
            "frontier",
            "Separation against neighbours kept",
            "Up and to the right is better. Each curve is a method whose parameter is varied; the star is LaptSNE "
            "as it comes.",
            figures.frontiers(laboratory, options),
        ),
        (
            "maps",
            "LaptSNE, LaptSNE-Mini and t-SNE",
            "The first seed of each, coloured by class; t-SNE as the paper ran it.",
            trio,
        ),
        ("all-maps", "All methods", "The first seed of each method on every set, coloured by class.", everything),
        (
            "eigenvalues",
            "Eigenvalues of the data's graphs",
            "Smallest eigenvalues of each set's Laplacian; the line is the gap from which k-hat is read.",
            figures.eigenvalues(laboratory, options),
        ),
        (
            "heat",
            f"Scores over contraction and number of clusters, {heat_set}",
            "LaptSNE with both parameters given; the line at contraction 0 is t-SNE.",
            figures.heat(laboratory, options),
        ),
        (
            "grid",
            f"Maps over contraction and number of clusters, {grid_set}",
            "Groups tighten to the right, and more of them do further down.",
            figures.grid(laboratory, options),
        ),
        (
            "early",
            f"The first iterations, {moving}",
            f"With the paper's settings, contraction {plan.TRAJECTORY_CONTRACTION:g}, from the same start.",
            figures.early(laboratory, options),
        ),
        (
            "gap",
            f"The gap of the map's own eigenvalues, {moving}",
            "The same two runs to their end. The band is the gap after the last eigenvalue that is pressed down.",
            figures.gap(laboratory, options),
        ),
    )
    for name, heading, text, figure in drawn:
        if figure is not None:
            yield Picture(name, heading, text, figures.png(figure))


def _absent(laboratory: Laboratory, options: Options) -> list[Block]:
    lines = [
        f"{title(name)}: {laboratory.missing_sets[name]}" for name in options.sets if name in laboratory.missing_sets
    ]
    lines += dict.fromkeys(
        f"{record.run.method}: {record.absent}"
        if "not installed" in record.absent
        else f"{record.run}: {record.absent}"
        for record in laboratory.records.values()
        if record.absent
    )
    lines += [f"{record.run}: {remark}" for record in laboratory.records.values() for remark in record.remarks]
    left_out = [method for method in METHODS if method not in options.methods]
    if left_out:
        lines.append(f"Not asked for: {', '.join(left_out)}.")
    return [Bullets(lines) if lines else "Nothing: all that was asked for has been run."]


def _settings(options: Options) -> list[Block]:
    seeds = ", ".join(f"{title(name)} {len(options.seeds(name))}" for name in options.sets)
    return [
        "Sets of more than 64 features are reduced to 50 dimensions by PCA, for all methods alike. LaptSNE, openTSNE, "
        "UMAP and PaCMAP run with their defaults; t-SNE is scikit-learn's without exaggeration, 500 iterations, "
        "perplexity 25 and beyond 10,000 points 30, as in the paper; Eigenmaps has a tenth of the points as "
        "neighbours, at most 500. LaptSNE-Mini moves a seventh of the points at once, from 200 to 5,000. UMAP runs "
        "on all cores, so that its seed does not fix its map.",
        "Trustworthiness, continuity and neighbours kept are at 30 neighbours; the first two are those of 20,000 "
        "points, chosen at random, where there are more. On the frontier LaptSNE has a perplexity of 30, as t-SNE, "
        "contraction with the late exaggeration that is its default and alone, without any, "
        "and on Waveform, where it finds no evidence of clusters, their number from the eigengap. "
        "On MNIST and Fashion-MNIST late exaggeration is by our own engine.",
        f"Figures are means over seeds, ± their standard deviation; seeds from 0 on, by set: {seeds}.",
        "Libraries: " + ", ".join(f"{name} {version}" for name, version in _versions().items()) + ".",
        f"Python {platform.python_version()}, {platform.system()} on {platform.machine()}, {os.cpu_count()} cores.",
    ]


def _versions() -> dict[str, str]:
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _comparisons(laboratory: Laboratory, options: Options) -> list[Comparison]:
    return [one for name in options.sets for one in compare(laboratory, options, name)]


def _verdicts(laboratory: Laboratory, options: Options) -> dict[str, list[frontier.Verdict]]:
    found = {name: frontier.verdicts(frontier.points(laboratory, options, name)) for name in options.frontier}
    return {name: verdicts for name, verdicts in found.items() if verdicts}


def _results(laboratory: Laboratory, options: Options) -> dict[str, Any]:
    """All numbers, for programs."""
    comparisons = _comparisons(laboratory, options)
    return {
        "sets": {name: title(name) for name in options.sets},
        "methods": options.methods,
        "quick": options.quick,
        "versions": _versions(),
        "missing_sets": laboratory.missing_sets,
        "counts": vars(Count.of(comparisons)),
        "cells": [
            {
                "set": one.cell.data,
                "score": one.cell.score,
                "khat": one.cell.khat,
                "paper": one.cell.columns,
                "ours": vars(one.ours) if one.ours else None,
                "beats_paper": one.beats_paper,
                "beats_best": one.beats_best,
            }
            for one in comparisons
        ],
        "frontier": {
            name: [
                {
                    "curve": verdict.point.curve,
                    "value": verdict.point.value,
                    "silhouette": verdict.point.silhouette,
                    "kept": verdict.point.kept,
                    "kept_by_laptsne": verdict.ours,
                    "ahead": verdict.ahead,
                }
                for verdict in verdicts
            ]
            for name, verdicts in _verdicts(laboratory, options).items()
        },
        "runs": [_as_json(record) for record in laboratory.records.values()],
    }


def _as_json(record: Record) -> dict[str, Any]:
    run = record.run
    return {
        "set": run.data,
        "method": run.method,
        "seed": run.seed,
        "changes": dict(run.changes),
        "facts": record.facts,
        "scores": record.scores,
        "absent": record.absent,
        "remarks": record.remarks,
    }
