"""Does every fit of unusual data and parameters end with a finite embedding or an error that names the problem?

python benchmarks/properties.py --cases 2000           # half an hour
python benchmarks/properties.py --cases 300 --peers    # openTSNE and umap-learn as well: an hour

The cases are those of the tests (tests/strategies.py), drawn from ``--seed``. With ``--peers``, cases of dense and
finite features are given to openTSNE and umap-learn as well, with their defaults except for a perplexity or number of
neighbours that suits the number of points; every fit runs in a process that is killed after a minute.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from shared import command_line
from strategies import Case, cases, features, outcome, wrong_cases

_CHUNK = 50  # cases per seed: hypothesis turns further ones into variations of the first
_LIMIT = 60  # seconds


def drawn(strategy: st.SearchStrategy[Any], n_cases: int, first_seed: int) -> Iterator[Any]:
    """Draw ``n_cases`` values from a strategy."""
    for start in range(0, n_cases, _CHUNK):
        yield from chunk(strategy, min(_CHUNK, n_cases - start), first_seed + start)


def chunk(strategy: st.SearchStrategy[Any], n_cases: int, one_seed: int) -> list[Any]:
    """Draw up to ``n_cases`` values from a strategy with one seed."""
    found: list[Any] = []

    @seed(one_seed)
    @settings(
        max_examples=n_cases,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def keep(value: Any) -> None:
        found.append(value)

    keep()
    return found


def gist(reason: str) -> str:
    """Return a reason without its numbers, so that equal ones can be counted."""
    return re.sub(r"[-+]?\d[\d.e+-]*", "#", reason)[:100]


def count(name: str, n_cases: int, found: Iterator[tuple[str, str, Any]], *, fine: set[str]) -> int:
    """Print the outcomes of the cases; return the number of failures."""
    kinds, reasons, failures = Counter[str](), Counter[tuple[str, str]](), []
    for kind, reason, value in found:
        kinds[kind] += 1
        if reason:
            reasons[kind, gist(reason)] += 1
        if kind not in fine:
            failures.append((reason, value))
    print(f"{name}: {n_cases} cases, {dict(kinds)}, {len(failures)} failures")
    for (kind, reason), times in reasons.most_common():
        print(f"  {times:5} {kind:8} {reason}")
    for reason, value in failures[:5]:
        print(f"  failed: {reason}\n    {value!r}", file=sys.stderr)
    return len(failures)


def judged(strategy: st.SearchStrategy[Case], n_cases: int, first_seed: int) -> Iterator[tuple[str, str, Case]]:
    for case in drawn(strategy, n_cases, first_seed):
        result = outcome(case)
        yield result.kind, result.reason, case


def of_laptsne(X: Any) -> Any:
    from laptsne import LaptSNE

    return LaptSNE(n_jobs=1, random_state=0).fit_transform(X)


def of_opentsne(X: Any) -> Any:
    from openTSNE import TSNE

    return np.asarray(TSNE(perplexity=max(min(30, (len(X) - 1) / 3), 1), n_jobs=1, random_state=0).fit(X))


def of_umap(X: Any) -> Any:
    from umap import UMAP

    return UMAP(n_neighbors=max(min(15, len(X) - 1), 2), random_state=0, n_jobs=1).fit_transform(X)


def serve(fit: Callable[[Any], Any], pipe: Connection) -> None:
    """Fit the data received through the pipe and send the outcome."""
    warnings.simplefilter("ignore")
    while True:
        try:
            X = pipe.recv()
        except EOFError:  # the parent has closed the pipe
            return
        try:
            Y = fit(X)
        except (ValueError, TypeError) as error:
            pipe.send(("error", f"{type(error).__name__}: {error}"))
        except BaseException as error:
            pipe.send(("crash", f"{type(error).__name__}: {error}"))
        else:
            good = Y.shape == (len(X), 2) and np.isfinite(Y).all()
            pipe.send(("map", "") if good else ("no map", "not finite, or of the wrong shape"))


class Peer:
    """A library in its own process, restarted if it dies or hangs."""

    def __init__(self, fit: Callable[[Any], Any]) -> None:
        self.fit = fit
        self.process: Any = None

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(self.fit, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.ask(np.random.default_rng(0).normal(size=(60, 3)), limit=10 * _LIMIT)  # compiles

    def ask(self, X: Any, limit: float = _LIMIT) -> tuple[str, str]:
        if self.process is None:
            self.start()
        self.pipe.send(X)
        try:
            if self.pipe.poll(limit):
                return self.pipe.recv()  # type: ignore[no-any-return]
            fate = ("hang", f"no result in {limit} s")
        except EOFError:
            fate = ("crash", "the process died")
        self.process.kill()
        self.process = None
        return fate

    def answers(self, n_cases: int, first_seed: int) -> Iterator[tuple[str, str, Any]]:
        strategy = st.integers(4, 60).flatmap(features)
        for X in drawn(strategy.filter(lambda X: np.isfinite(X).all()), n_cases, first_seed):
            yield (*self.ask(X), X.dtype)


def parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--peers", action="store_true")
    return parser


def main() -> None:
    chosen = parser().parse_args()
    n, first = chosen.cases, chosen.seed
    if chosen.peers:
        for name, fit in (("laptsne", of_laptsne), ("openTSNE", of_opentsne), ("umap-learn", of_umap)):
            count(name, n, Peer(fit).answers(n, first), fine={"map", "error"})
        return
    failures = count("odd", n, judged(cases(), n, first), fine={"map", "error"})
    failures += count("wrong", n // 10, judged(wrong_cases(), n // 10, first), fine={"error"})
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
