"""The command: all runs in order, with a report at the end and from time to time before."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from reproduction.dataset import SETS
from reproduction.methods import METHODS
from reproduction.plan import QUICK_SETS, Options, all_runs
from reproduction.protocols import COLUMNS, table_batches
from reproduction.report import write_report
from reproduction.result_cache import ResultCache
from reproduction.runs import Run, Runner

_REPORT_INTERVAL = 60.0  # seconds between two reports while runs go on


def main(arguments: Sequence[str] | None = None) -> int:
    """Repeat the experiments of the LaptSNE paper next to other methods, and write a report.

    Finished results are kept: stop at any time, and the same command continues from there.
    """
    parser = argparse.ArgumentParser("python -m reproduction", description=main.__doc__)
    parser.add_argument("--quick", action="store_true", help="three small sets and one seed, in a few minutes")
    parser.add_argument(
        "--tables",
        nargs="?",
        const=",".join(COLUMNS),
        help="only the comparison with the paper's tables; of its columns, separated by commas, those that are named "
        f"are run, and the others have the results of earlier runs: {', '.join(COLUMNS)}",
    )
    parser.add_argument("--report", action="store_true", help="write the report of the finished runs, without new ones")
    parser.add_argument("--sets", help=f"only these sets, separated by commas, of {', '.join(SETS)}")
    parser.add_argument("--methods", help=f"only these methods, separated by commas, of {', '.join(METHODS)}")
    parser.add_argument("--out", type=Path, default=Path("laptsne-results"), help="folder of the report and results")
    given = parser.parse_args(arguments)
    try:
        options = select(given.sets, given.methods, quick=given.quick, tables=given.tables)
        reproduce(given.out, options, frozen=given.report)
    except (ValueError, OSError) as error:
        print(f"reproduction: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("reproduction: stopped; the same command continues from here.", file=sys.stderr)
        return 130
    print(f"report: {given.out / 'report.html'}, {given.out / 'report.md'}, {given.out / 'results.json'}")
    return 0


def select(sets: str | None, methods: str | None, *, quick: bool, tables: str | None = None) -> Options:
    """Return the options for names as typed; raise ValueError if one is unknown."""
    columns = None if tables is None else _choose(tables, COLUMNS, "tables")
    chosen = QUICK_SETS if quick and sets is None else _choose(sets, SETS, "sets")
    return Options(chosen, _choose(methods, tuple(METHODS), "methods"), quick, columns)


def _choose(names: str | None, known: Sequence[str], option: str) -> tuple[str, ...]:
    """Return the known names among those given with commas, in any case, in the order in which they are run."""
    if names is None:
        return tuple(known)
    given = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in given if name.lower() not in {one.lower() for one in known}]
    if unknown or not given:
        listed = ", ".join(unknown) or "no name"
        raise ValueError(f"--{option} got {listed}; give some of {', '.join(known)}, separated by commas.")
    return tuple(name for name in known if name.lower() in {one.lower() for one in given})


def reproduce(out: Path, options: Options, *, frozen: bool = False) -> None:
    """Make all runs, or load those made before, and write the report; if frozen, load only."""
    n_done, due, last = 0, 0.0, ""

    def say(text: str) -> None:
        nonlocal last
        if text != last:  # each score of a run says the same
            print(f"run {n_done + 1}  {text}", file=sys.stderr, flush=True)
        last = text

    runner = Runner(ResultCache(out / "cache", frozen=frozen), say)
    for column, batch in all_batches(runner, options):
        n_computed = runner.n_computed
        runner.cache.frozen = frozen or (options.columns is not None and column not in options.columns)
        for run in batch:
            if runner.has(run.data):
                runner.record(run)
            n_done += 1
        if runner.n_computed > n_computed and time.monotonic() >= due:
            write_report(out, runner, options)
            due = time.monotonic() + _REPORT_INTERVAL
    write_report(out, runner, options)


def all_batches(runner: Runner, options: Options) -> Iterator[tuple[str, list[Run]]]:
    """Yield all runs in batches, after each of which a report is worth writing: those of the paper's tables first.

    The latter come with the name of their column.
    """
    yield from table_batches(runner, options)
    if not options.tables:
        yield from (("", batch) for batch in all_runs(options))
