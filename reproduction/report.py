"""The report: report.html, report.md with its figures, cells.md with the paper's scores, and results.json."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import json
import os
import platform
import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from reproduction import cells, paper, plan, protocols, tables
from reproduction.comparison import WinCount
from reproduction.datasets import title
from reproduction.figures import draw_figures
from reproduction.frontier import compare_frontiers
from reproduction.methods import METHODS
from reproduction.plan import Options
from reproduction.runs import Record, Runner

_TEMPLATES = Path(__file__).parent / "templates"
_LIBRARIES = ("laptsne", "numpy", "scipy", "scikit-learn", "numba", "openTSNE", "umap-learn", "pacmap")


def write_report(out: Path, runner: Runner, options: Options) -> None:
    """Write results.json, cells.md, report.md with its figures, and report.html; each is replaced as a whole."""
    runner.say("writing the report")
    figures = draw_figures(runner, options)
    context = report_context(runner, options, figures)
    (out / "figures").mkdir(parents=True, exist_ok=True)
    for name, png in figures.items():
        _replace_file(out / "figures" / f"{name}.png", png)
    results = json.dumps(_results(runner, options), indent=1, ensure_ascii=False)
    _replace_file(out / "results.json", results.encode())
    parts = (cells.win_table, cells.settings_table, cells.all_cells_table)
    _replace_file(out / "cells.md", "\n".join(table(runner, options).markdown() for table in parts).encode())
    _replace_file(out / "report.md", render("markdown", context).encode())
    _replace_file(out / "report.html", render("html", context).encode())


def render(markup: str, context: dict[str, Any]) -> str:
    """Render the report as "html", a single file that needs no other, or as "markdown"."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=markup == "html",
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    anchor = {"anchor": lambda text: re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")}
    environment.filters |= anchor | {"md": _escape_markdown, "title_of": title, "base64": _base64}
    # The content security policy admits only this style: no script runs, and nothing is requested.
    style = (_TEMPLATES / "style.css").read_text(encoding="utf-8")
    digest = _base64(hashlib.sha256(style.encode()).digest())
    text = environment.get_template("report.j2").render(context, format=markup, style=style, style_digest=digest)
    return text if markup == "html" else re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _escape_markdown(text: str) -> str:
    return re.sub(r"([\\`*_<>\[\]|#])", r"\\\1", " ".join(text.split())).replace("&", "&amp;")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _replace_file(path: Path, content: bytes) -> None:
    """Write a file as a whole or not at all."""
    partial = path.with_name(f".{path.name}.part")
    partial.write_bytes(content)
    partial.replace(path)


def report_context(runner: Runner, options: Options, figures: dict[str, bytes]) -> dict[str, Any]:
    """Return what the template needs."""
    return {
        "runner": runner,
        "options": options,
        "tables": tables,
        "cells": cells,
        "protocols": protocols,
        "plan": plan,
        "paper": paper,
        "figures": figures,
        "counts": {
            heading: _win_count(runner, options, heading) for heading in (protocols.TUNED.heading, protocols.DEFAULTS)
        },
        "frontiers": compare_frontiers(runner, options),
        "names": [name for name in options.sets if name in runner.n_classes],
        "missing": _missing(runner, options),
        "seeds": ", ".join(f"{title(name)} {len(options.seeds(name))}" for name in options.sets),
        "versions": ", ".join(f"{name} {version}" for name, version in _versions().items()),
        "machine": f"Python {platform.python_version()}, {platform.system()} on {platform.machine()}, "
        f"{os.cpu_count()} cores",
    }


def _missing(runner: Runner, options: Options) -> list[str]:
    """Return what was not run or did not converge, and why."""
    lines = [f"{title(name)}: {runner.missing_sets[name]}" for name in options.sets if name in runner.missing_sets]
    for record in runner.records.values():
        if record.missing:
            subject = record.run.method if "not installed" in record.missing else record.run
            lines.append(f"{subject}: {record.missing}")
    lines += [f"{record.run}: {remark}" for record in runner.records.values() for remark in record.remarks]
    left_out = [method for method in METHODS if method not in options.methods]
    if left_out:
        lines.append(f"Not requested: {', '.join(left_out)}.")
    return list(dict.fromkeys(lines))


def _win_count(runner: Runner, options: Options, heading: str) -> WinCount:
    return WinCount.of(
        [cell.comparison(heading) for name in options.sets for cell in cells.cells(runner, options, name)]
    )


def _versions() -> dict[str, str]:
    installed = {distribution.name.lower(): distribution.version for distribution in importlib.metadata.distributions()}
    return {name: installed[name.lower()] for name in _LIBRARIES if name.lower() in installed}


def _results(runner: Runner, options: Options) -> dict[str, Any]:
    """Return all numbers, for programs."""
    found = [cell for name in options.sets for cell in cells.cells(runner, options, name)]
    return {
        "sets": {name: title(name) for name in options.sets},
        "methods": options.methods,
        "quick": options.quick,
        "versions": _versions(),
        "missing_sets": runner.missing_sets,
        "counts": {heading: vars(_win_count(runner, options, heading)) for heading in cells.HEADINGS},
        "cells": [_cell_results(cell) for cell in found],
        "frontier": {
            name: [
                {
                    "curve": one.point.curve,
                    "value": one.point.value,
                    "silhouette": one.point.silhouette,
                    "kept": one.point.kept,
                    "kept_by_laptsne": one.ours,
                    "ahead": one.ahead,
                }
                for one in found
            ]
            for name, found in compare_frontiers(runner, options).items()
        },
        "runs": [_run_results(record) for record in runner.records.values()],
    }


def _cell_results(cell: cells.Cell) -> dict[str, Any]:
    return {
        "set": cell.published.data,
        "score": cell.published.score,
        "khat": cell.published.khat,
        "paper": cell.published.by_method,
        "ours": {heading: vars(ours) if ours else None for heading, ours in cell.ours.items()},
        "best_tuned": cell.best_tuned,
        "baseline": {cell.baseline: cell.baseline_score} if cell.baseline else {},
    }


def _run_results(record: Record) -> dict[str, Any]:
    run = record.run
    return {
        "set": run.data,
        "method": run.method,
        "seed": run.seed,
        "changes": dict(run.changes),
        "facts": record.fit.facts if record.fit else {},
        "scores": record.scores,
        "absent": record.missing,
        "remarks": record.remarks,
    }
