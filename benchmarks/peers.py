"""How long does a fit take, with and without contraction, how much memory, and how good is the map, beside the peers'?

python benchmarks/peers.py                                  # MNIST, 1,000 to 1,000,000 points: hours
python benchmarks/peers.py mixture --sizes 5000 20000       # Gaussian mixture: minutes
python benchmarks/peers.py --methods laptsne PaCMAP --sizes 70000
python benchmarks/peers.py --sizes 2000 10000 --methods laptsne "laptsne, contraction 0"  # the cost of contraction
python benchmarks/peers.py --baseline ../laptsne-before     # also an earlier version
python benchmarks/peers.py --resume                         # go on with the last run after an interruption
python benchmarks/peers.py report                           # print the last run again

MNIST is reduced to 50 dimensions, and enlarged by noisy copies beyond 70,000 points. Each fit runs in its own process,
one at a time, after a warm-up that compiles (peers_fit.py); methods alternate. Libraries run at their defaults with two
threads. Results are stored after each fit, in benchmarks/results/peers.json. Ratios are ratios of medians within a run.
The KL divergence is computed with our affinities for all methods that minimise it, up to 100,000 points.

The baseline is a checkout, such as ``git worktree add --detach ../laptsne-before v0.1.0``, or a virtual environment.
Needs ``pip install ".[benchmark]"``.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from peers_fit import METHODS
from shared import command_line
from shared import points as points_of

RESULTS = Path(__file__).parent / "results" / "peers.json"
SIZES = (1000, 5000, 20_000, 70_000, 250_000, 1_000_000)
DEFAULT = tuple(name for name in METHODS if name != "PaCMAP, seeded")
MAX_REPEATED = 100_000  # points; larger fits are timed once
MAX_SCORED = 250_000  # points up to which 10-NN accuracy is computed
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS")
_DIVERGENCES = ("laptsne", "baseline", "openTSNE", "manifolds-rs t-SNE", "scikit-learn")  # first parts of names
_LIBRARIES = ("pacmap", "manifolds-rs", "umap-learn", "openTSNE", "scikit-learn", "numba", "numpy")
_OURS = ("laptsne", "baseline")  # first parts of the names of methods that are not peers
# Ratios that are printed below each table, numerator and denominator.
_RATIOS = (
    ("laptsne", "PaCMAP"),
    ("laptsne", "openTSNE"),
    ("laptsne", "baseline"),
    ("laptsne", "laptsne, contraction 0"),
)
_MIN_SLOPE = 10_000  # points from which on the slope of log time against log N is computed
_HERE = Path(__file__).parent
Row = dict[str, Any]


@lru_cache(maxsize=1)
def points(data: str, n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    return points_of(data, n)


@lru_cache(maxsize=1)
def affinities(data: str, n: int) -> Any:
    from laptsne import LaptSNE

    return LaptSNE(contraction=0, perplexity=30.0, max_iter=1).fit(points(data, n)[0]).affinities_


def divergence(P: Any, Y: NDArray[Any]) -> float:
    """Return the KL divergence of an embedding from our affinities."""
    from laptsne._runtime.threads import Workers
    from laptsne.fields import FourierFields

    Y, P = np.asarray(Y, dtype=np.float64), P.tocoo()
    with Workers() as workers:
        total = FourierFields(Y, workers).degrees.sum()
    p, r2 = P.data.astype(np.float64), ((Y[P.row] - Y[P.col]) ** 2).sum(axis=1)
    return float(p @ (np.log(p) + np.log1p(r2)) + p.sum() * np.log(total))


def quality(data: str, method: str, Y: NDArray[Any]) -> Row:
    """Return the 10-NN accuracy of an embedding and, for t-SNE, its KL divergence, unless there are too many points."""
    from laptsne.metrics import knn_accuracy

    scores = {}
    if len(Y) <= MAX_SCORED:
        scores["accuracy"] = knn_accuracy(Y, points(data, len(Y))[1], 10)
    if len(Y) <= MAX_REPEATED and method.startswith(_DIVERGENCES):
        scores["kl"] = divergence(affinities(data, len(Y)), Y)
    return scores


class Bench:
    """Times fits in processes of their own, which are stopped after ``limit`` seconds, warm-up included."""

    def __init__(self, data: str, n_threads: int, limit: float, baseline: Path | None) -> None:
        self.data, self.n_threads, self.limit, self.baseline = data, n_threads, limit, baseline

    def timed(self, n: int, method: str) -> Row:
        """Return what one fit measured, or how it failed."""
        with tempfile.TemporaryDirectory() as folder:
            np.save(Path(folder, "X.npy"), points(self.data, n)[0])
            try:
                done = self.run(method, Path(folder))
            except subprocess.TimeoutExpired:
                return {"failure": f"stopped after {self.limit:.0f} s"}
            if done.returncode != 0:
                return {"failure": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]}
            found = json.loads(done.stdout.splitlines()[-1])
            return dict(found) | quality(self.data, method, np.load(Path(folder, "Y.npy")))

    def run(self, method: str, folder: Path, *, check: bool = False) -> subprocess.CompletedProcess[str]:
        """Fit X.npy of a folder, and write Y.npy, in a process of its own."""
        python, environment = self._interpreter(method)
        files = [str(folder / "X.npy"), str(folder / "Y.npy")]
        command = [python, str(_HERE / "peers_fit.py"), method, str(self.n_threads), *files]
        return subprocess.run(command, check=check, env=environment, timeout=self.limit, capture_output=True, text=True)

    def _interpreter(self, method: str) -> tuple[str, dict[str, str]]:
        """Return the Python and the environment variables for a method."""
        environment = dict(os.environ) | {name: str(self.n_threads) for name in _THREAD_VARIABLES}
        if not method.startswith("baseline") or self.baseline is None:
            return sys.executable, environment
        own = next((path for path in _pythons(self.baseline) if path.exists()), None)
        if own is not None:
            environment.pop("PYTHONPATH", None)
            return str(own), environment
        return sys.executable, environment | {"PYTHONPATH": str(self.baseline / "src")}


def _pythons(environment: Path) -> tuple[Path, Path]:
    return environment / "bin" / "python", environment / "Scripts" / "python.exe"


def checked_baseline(path: Path) -> Path:
    path = path.resolve()
    if not (path / "src" / "laptsne").is_dir() and not any(python.exists() for python in _pythons(path)):
        raise SystemExit(f"--baseline {path}: neither src/laptsne nor a virtual environment; give one of the two.")
    return path


def machine() -> Row:
    """Return what the times of a run depend on."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=10"]
    commit = subprocess.run(command, cwd=_HERE, capture_output=True, text=True, check=False).stdout.strip()
    models = [line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    cpu = models[0] if models else platform.processor()
    return {
        "started": time.strftime("%Y-%m-%d %H:%M"),
        "commit": commit,
        "cpu": cpu,
        "cores": os.cpu_count(),
        "versions": {name: version for name in _LIBRARIES if (version := _version(name))},
    }


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def store(runs: list[Row], path: Path) -> None:
    """Write all runs at once, so that an interruption leaves the former file."""
    path.parent.mkdir(exist_ok=True)
    draft = path.with_suffix(".tmp")
    draft.write_text(json.dumps(runs, indent=1) + "\n")
    draft.replace(path)


def report(run: Row, methods: Iterable[str], folder: Path) -> None:
    """Print the tables of a run, and write a figure to a folder if there are several sizes."""
    rows = [row for row in run["rows"] if "failure" not in row]
    for row in run["rows"]:
        if "failure" in row:
            print(f"failed: {row['method']}, {row['n']:,} points: {row['failure']}")
    if not rows:
        print("no results")
        return
    print(f"\n{run['started']}, commit {run['commit']}, {run['cpu']}, {run['threads']} threads")
    print(", ".join(f"{name} {version}" for name, version in run["versions"].items()))
    order = list(methods)
    for data, n in sorted({(row["data"], row["n"]) for row in rows}):
        _table(data, n, [row for row in rows if (row["data"], row["n"]) == (data, n)], order)
    _slopes(rows, order)
    if len({row["n"] for row in rows}) > 1:
        _figure(rows, order, folder / "scaling.png")


def medians(rows: list[Row], methods: Iterable[str], name: str = "seconds") -> dict[str, float]:
    """Return the median of a measure for every method that has it."""
    found = {method: [row[name] for row in rows if row["method"] == method and name in row] for method in methods}
    return {method: statistics.median(values) for method, values in found.items() if values}


def _table(data: str, n: int, rows: list[Row], methods: list[str]) -> None:
    """Print a Markdown table, with times relative to the fastest peer, and ratios of single methods."""
    seconds = medians(rows, methods)
    measures = [medians(rows, methods, name) for name in ("peak_gib", "kl", "accuracy")]
    peers = {method: value for method, value in seconds.items() if not method.startswith(_OURS)}
    fastest = min(peers, key=peers.__getitem__, default=None)
    unit = f"{fastest} = 1" if fastest else "no peer"
    print(f"\n{data}, {n:,} points\n")
    print(
        f"| method | time, {unit} | seconds | peak, GiB | KL | 10-NN accuracy | runs |\n|---|---|---|---|---|---|---|"
    )
    for method, taken in sorted(seconds.items(), key=lambda item: item[1]):
        ratio = f"{taken / peers[fastest]:.2f}" if fastest else ""
        peak, kl, accuracy = (
            _cell(values.get(method), digits) for values, digits in zip(measures, (2, 3, 4), strict=True)
        )
        n_runs = sum(row["method"] == method for row in rows)
        print(f"| {method} | {ratio} | {taken:.2f} | {peak} | {kl} | {accuracy} | {n_runs} |")
    present = [(a, b) for a, b in _RATIOS if a in seconds and b in seconds]
    if present:
        print("\n" + "; ".join(f"{a} / {b}: {seconds[a] / seconds[b]:.3f}" for a, b in present), flush=True)


def _cell(value: float | None, n_digits: int) -> str:
    return "" if value is None else f"{value:.{n_digits}f}"


def _slopes(rows: list[Row], methods: list[str]) -> None:
    """Print the slope of log time against log N between the smallest size from 10,000 on and the largest."""
    for data in sorted({row["data"] for row in rows}):
        for method in methods:
            times = _by_size(rows, data, method)
            sizes = [n for n in times if n >= _MIN_SLOPE]
            if len(sizes) > 1:
                low, high = sizes[0], sizes[-1]
                slope = np.log(times[high] / times[low]) / np.log(high / low)
                print(f"{data}, {method}: slope {slope:.2f} from {low:,} to {high:,} points")


def _by_size(rows: list[Row], data: str, method: str) -> dict[int, float]:
    """Return the median time by size, ascending."""
    mine = [row for row in rows if row["data"] == data and row["method"] == method]
    return {
        n: medians([row for row in mine if row["n"] == n], [method])[method] for n in sorted({r["n"] for r in mine})
    }


def _figure(rows: list[Row], methods: list[str], path: Path) -> None:
    import matplotlib.pyplot as plt

    names = sorted({row["data"] for row in rows})
    figure, axes = plt.subplots(1, len(names), figsize=(6 * len(names), 4.5), squeeze=False, sharey=True)
    for axis, data in zip(axes[0], names, strict=True):
        for method in methods:
            times = _by_size(rows, data, method)
            own = method.startswith(_OURS)
            style = {"lw": 2 if own else 1, "ls": "-" if own else "--"}
            if times:
                axis.loglog(list(times), list(times.values()), marker="o", ms=4, label=method, **style)
        axis.set(xlabel="points", title="MNIST, subsampled or enlarged" if data == "mnist" else "Gaussian mixture")
        axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel("seconds on two cores")
    axes[0, 0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    print(f"wrote {path}")


def plan(args: argparse.Namespace) -> list[tuple[int, str, int]]:
    """Return the fits in the order in which they are made: size, method and repeat."""
    methods = [name for name in args.methods if args.baseline or not name.startswith("baseline")]
    return [
        (n, method, repeat)
        for n in args.sizes
        for repeat in range(args.repeats if n <= MAX_REPEATED else args.large_repeats)
        for method in methods
        if n <= METHODS[method].limit
    ]


def parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__)
    parser.add_argument("data", nargs="?", choices=["mnist", "mixture", "report"], default="mnist")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="N")
    parser.add_argument("--methods", nargs="+", default=DEFAULT, choices=METHODS, metavar="METHOD")
    parser.add_argument("--repeats", type=int, default=3, help="up to 100,000 points")
    parser.add_argument("--large-repeats", type=int, default=1, help="beyond 100,000 points")
    parser.add_argument("--baseline", type=Path, help="checkout or virtual environment of an earlier version")
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds that a fit may take")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--resume", action="store_true", help="go on with the last run")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser


def main() -> None:
    args = parser().parse_args()
    runs = json.loads(args.results.read_text()) if args.results.exists() else []
    if args.data == "report":
        report(runs[-1] if runs else {"rows": []}, METHODS, args.results.parent)
        return
    baseline = checked_baseline(args.baseline) if args.baseline else None
    if not (args.resume and runs):
        runs.append({**machine(), "threads": args.threads, "rows": []})
    run = runs[-1]
    done = {(row["data"], row["n"], row["method"], row["repeat"]) for row in run["rows"]}
    bench = Bench(args.data, args.threads, args.limit, baseline)
    try:
        for n, method, repeat in plan(args):
            if (args.data, n, method, repeat) in done:
                continue
            row = {"data": args.data, "n": n, "method": method, "repeat": repeat, **bench.timed(n, method)}
            print(f"{n:9,} {method:24} {row.get('failure') or format(row['seconds'], '.2f') + ' s'}", flush=True)
            run["rows"].append(row)
            store(runs, args.results)
    except KeyboardInterrupt:
        print("interrupted; --resume goes on", flush=True)
    report(run, METHODS, args.results.parent)


if __name__ == "__main__":
    main()
