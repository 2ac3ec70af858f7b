"""Tables and the figure of a run of peers.py."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["RESULTS", "report"]

RESULTS = Path(__file__).parent / "results" / "peers.json"
_OURS = ("laptsne", "baseline")  # first parts of the names of methods that are not peers
# Ratios that are printed below each table, numerator and denominator.
_RATIOS = (
    ("laptsne", "PaCMAP"),
    ("laptsne", "openTSNE"),
    ("laptsne", "baseline"),
    ("laptsne", "laptsne, contraction 0"),
)
_MIN_SLOPE = 10_000  # points from which on the slope of log time against log N is computed
Row = dict[str, Any]


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
    peers = {method: time for method, time in seconds.items() if not method.startswith(_OURS)}
    fastest = min(peers, key=peers.__getitem__, default=None)
    unit = f"{fastest} = 1" if fastest else "no peer"
    print(f"\n{data}, {n:,} points\n")
    print(
        f"| method | time, {unit} | seconds | peak, GiB | KL | 10-NN accuracy | runs |\n|---|---|---|---|---|---|---|"
    )
    for method, time in sorted(seconds.items(), key=lambda item: item[1]):
        ratio = f"{time / peers[fastest]:.2f}" if fastest else ""
        peak, kl, accuracy = (
            _cell(values.get(method), digits) for values, digits in zip(measures, (2, 3, 4), strict=True)
        )
        n_runs = sum(row["method"] == method for row in rows)
        print(f"| {method} | {ratio} | {time:.2f} | {peak} | {kl} | {accuracy} | {n_runs} |")
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
