"""The command: all runs in order, the report after each part of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from reproduction.data import SETS
from reproduction.methods import METHODS
from reproduction.plan import QUICK_SETS, Options, frontier_runs, sweep_runs, table_runs, timing_runs
from reproduction.report import write_report
from reproduction.runs import Laboratory, Run
from reproduction.status import Status
from reproduction.store import Store

_PAUSE = 60.0  # seconds between two reports of a run that goes on


def choose(names: str | None, known: Sequence[str], kind: str) -> tuple[str, ...]:
    """Names given with commas between them, in the order in which they are known; ValueError names the unknown."""
    if names is None:
        return tuple(known)
    given = [name.strip() for name in names.split(",") if name.strip()]
    exact = {name.lower(): name for name in known}
    unknown = [name for name in given if name.lower() not in exact]
    if unknown or not given:
        wrong = ", ".join(unknown) or "nothing"
        raise ValueError(f"{wrong} is no {kind} here; give some of {', '.join(known)}, with commas between them.")
    return tuple(name for name in known if name in {exact[given_name.lower()] for given_name in given})


def make_options(sets: str | None, methods: str | None, *, quick: bool) -> Options:
    """Options from what was typed; ValueError where a name is unknown."""
    chosen = choose(sets, SETS, "set")
    if quick and sets is None:
        chosen = QUICK_SETS
    return Options(chosen, choose(methods, tuple(METHODS), "method"), quick)


def reproduce(out: Path, options: Options, console: Console) -> None:
    """Make all runs, or find those made before; write the report after parts that took a while, and at the end."""
    with Status(console) as status:
        laboratory = Laboratory(Store(out / "cache"), status.say)
        parts = [part for part in _parts(options) if part]
        status.expect(sum(len(part) for part in parts))
        due = 0.0
        for part in parts:
            made = laboratory.made
            for run in part:
                if laboratory.has(run.data):
                    laboratory.record(run)
                status.advance()
            if laboratory.made > made and time.monotonic() >= due:
                write_report(out, laboratory, options)
                due = time.monotonic() + _PAUSE
        write_report(out, laboratory, options)


def _parts(options: Options) -> list[list[Run]]:
    """Runs in order, in parts after which a report is worth writing: cheap ones first, tables before the frontier."""
    return [
        *(table_runs(options, name) for name in options.small),
        list(timing_runs(options).values()),
        sweep_runs(options),
        *(table_runs(options, name) for name in options.large),
        *([run for curve in frontier_runs(options, name).values() for _, run in curve] for name in options.frontier),
    ]
