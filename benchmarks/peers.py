"""LaptSNE, with and without contraction, compared with openTSNE, umap-learn, scikit-learn's TSNE and PaCMAP.

python benchmarks/peers.py mnist                  # 70,000 points, including the quality of the embeddings
python benchmarks/peers.py scaling                # 1,000 to 1,000,000 points, with a plot of time against N
python benchmarks/peers.py small                  # 500, 2,000 and 5,000 points
python benchmarks/peers.py report                 # only print the stored results

Each fit runs in its own process, one at a time; methods alternate. The process first fits a subset of the data, so that
loading and compilation are not timed. The other libraries run with their defaults and n_jobs=2; openTSNE and LaptSNE
run 250 + 500 iterations at perplexity 30, openTSNE's defaults. Results are appended to benchmarks/results/peers.json.
Ratios are ratios of medians, relative to openTSNE if it ran, otherwise to scikit-learn.

Needs ``pip install ".[benchmark]"``.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from data import enlarged_mnist, mixture

RESULTS = Path(__file__).parent / "results"
METHODS = ("laptsne", "laptsne, contraction 0", "openTSNE", "umap-learn", "PaCMAP", "scikit-learn")
SMALL_METHODS = ("laptsne", "laptsne, contraction 0", "scikit-learn")
# Largest size at which a method takes less than about a quarter of an hour on two cores.
LIMITS = {"openTSNE": 70_000, "umap-learn": 300_000, "PaCMAP": 300_000, "scikit-learn": 10_000}


def make(method: str, n_iter: int) -> Any:
    """Return the estimator; libraries are imported here, so that each process loads only the one it uses."""
    from laptsne import LaptSNE

    if method.startswith("laptsne"):
        contraction = 0.0 if method.endswith("0") else "auto"
        return LaptSNE(perplexity=30, contraction=contraction, max_iter=n_iter, n_jobs=2, random_state=0)
    if method == "openTSNE":
        from openTSNE import TSNE

        return TSNE(n_jobs=2, random_state=0)
    if method == "umap-learn":
        from umap import UMAP

        return UMAP(n_jobs=2)
    if method == "PaCMAP":
        from pacmap import PaCMAP

        return PaCMAP(random_state=0)
    from sklearn.manifold import TSNE as SklearnTSNE

    return SklearnTSNE(n_jobs=2, random_state=0, max_iter=n_iter)


def fit(model: Any, X: np.ndarray) -> np.ndarray:
    return np.asarray(model.fit(X) if type(model).__module__.startswith("openTSNE") else model.fit_transform(X))


def run_one(kind: str, n: int, method: str, n_iter: int) -> dict[str, Any]:
    """Fit once in this process; return time, peak memory and, on the whole of MNIST, quality."""
    X, y = enlarged_mnist(n) if kind == "mnist" else mixture(n)
    warm = make(method, n_iter)
    # Above the sizes at which the algorithms change, so that all code that will run is compiled.
    fit(warm, X[: min(12_000, n)])
    model = make(method, n_iter)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    Y = fit(model, X)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found: dict[str, Any] = {"seconds": seconds, "peak_gib": peak / 2**20, "before_gib": before / 2**20}
    if kind == "mnist" and n == 70_000:
        from laptsne.metrics import knn_accuracy

        found["accuracy"] = knn_accuracy(Y, y, 10)
        kl = {"openTSNE": "kl_divergence", "laptsne": "kl_divergence_", "scikit-learn": "kl_divergence_"}
        name = kl.get(method.split(",", maxsplit=1)[0])
        if name:
            found["kl"] = float(getattr(Y if method == "openTSNE" else model, name, np.nan))
        if method == "openTSNE":
            found["kl"] = own_divergence(X, Y)
    return found


def own_divergence(X: np.ndarray, Y: np.ndarray) -> float:
    """Return the KL divergence of another method's embedding from our affinities, to compare with ours."""
    from laptsne._runtime.threads import Workers
    from laptsne.embedding.fields import FourierFields
    from laptsne.embedding.objective import KLDivergence
    from laptsne.graph.affinity import joint_affinities

    with Workers(2) as workers:
        P = joint_affinities(X, perplexity=30, workers=workers)
        return KLDivergence(P).value(FourierFields(Y.astype(np.float64), workers))


def in_process(kind: str, n: int, method: str, n_iter: int, limit: float) -> dict[str, Any] | None:
    """Return the results of ``run_one`` in a new process, or None if it failed or exceeded the time limit."""
    command = [sys.executable, __file__, "--one", kind, str(n), method, str(n_iter)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        print(f"  {method}: stopped after {limit:.0f} s", flush=True)
        return None
    if done.returncode != 0:
        print(f"  {method}: failed\n{done.stderr[-500:]}", flush=True)
        return None
    return dict(json.loads(done.stdout.splitlines()[-1]))


def table(rows: list[dict[str, Any]]) -> None:
    """Print medians and ratios, one line per data set, size and method."""
    keys = sorted({(row["kind"], row["n"]) for row in rows})
    for kind, n in keys:
        here = [row for row in rows if (row["kind"], row["n"]) == (kind, n)]
        medians = {
            m: statistics.median(r["seconds"] for r in here if r["method"] == m)
            for m in METHODS
            if any(r["method"] == m for r in here)
        }
        base = next((m for m in ("openTSNE", "scikit-learn") if m in medians), None)
        print(f"\n{kind}, {n} points (ratios relative to {base})")
        for method, seconds in medians.items():
            mine = [row for row in here if row["method"] == method]
            ratio = f"{seconds / medians[base]:6.2f}" if base else "      "
            peak = statistics.median(row["peak_gib"] for row in mine)
            quality = "".join(
                f"  {name} {statistics.median(row[name] for row in mine):.4f}"
                for name in ("kl", "accuracy")
                if name in mine[0]
            )
            print(f"  {method:24} {seconds:8.1f} s {ratio}  {peak:5.2f} GiB  {len(mine)} runs{quality}")
        if "laptsne" in medians and "laptsne, contraction 0" in medians:
            print(f"  with / without contraction: {medians['laptsne'] / medians['laptsne, contraction 0']:.2f}")


def slopes(rows: list[dict[str, Any]]) -> None:
    """Print the slope of log time against log N, between the smallest size from 10,000 on and the largest."""
    for kind in sorted({row["kind"] for row in rows}):
        for method in METHODS:
            points = sorted({row["n"] for row in rows if (row["kind"], row["method"]) == (kind, method)})
            points = [n for n in points if n >= 10_000]
            if len(points) > 1:
                ends = [
                    statistics.median(
                        row["seconds"] for row in rows if (row["kind"], row["method"], row["n"]) == (kind, method, n)
                    )
                    for n in (points[0], points[-1])
                ]
                slope = np.log(ends[1] / ends[0]) / np.log(points[-1] / points[0])
                print(f"{kind:8} {method:24} slope {slope:.2f} from {points[0]} to {points[-1]}")


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    import matplotlib.pyplot as plt

    kinds = sorted({row["kind"] for row in rows})
    figure, axes = plt.subplots(1, len(kinds), figsize=(5 * len(kinds), 4), squeeze=False, sharey=True)
    for axis, kind in zip(axes[0], kinds, strict=True):
        for method in METHODS:
            mine = [row for row in rows if (row["kind"], row["method"]) == (kind, method)]
            sizes = sorted({row["n"] for row in mine})
            times = [statistics.median(row["seconds"] for row in mine if row["n"] == n) for n in sizes]
            own = method.startswith("laptsne")
            axis.loglog(sizes, times, marker="o", ms=4, lw=2 if own else 1, ls="-" if own else "--", label=method)
        axis.set(xlabel="points", title="MNIST, subsampled or enlarged" if kind == "mnist" else "Gaussian mixture")
        axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel("seconds on two cores")
    axes[0, 0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    print(f"wrote {path}")


PLANS: dict[str, list[tuple[str, int]]] = {
    "mnist": [("mnist", 70_000)],
    "small": [("mnist", 500), ("mnist", 2000), ("mnist", 5000)],
    "scaling": [
        (kind, n) for n in (1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000) for kind in ("mnist", "mixture")
    ],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plan", nargs="?", choices=[*PLANS, "report"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--max-n", type=int, default=1_000_000)
    parser.add_argument("--min-n", type=int, default=0)
    parser.add_argument("--limit", type=float, default=1500.0, help="time limit of a fit, in seconds")
    parser.add_argument("--methods", nargs="*", default=METHODS)
    parser.add_argument("--kinds", nargs="*", default=("mnist", "mixture"))
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        kind, n, method, n_iter = args.one
        print(json.dumps(run_one(kind, int(n), method, int(n_iter))))
        return
    path = RESULTS / "peers.json"
    rows = json.loads(path.read_text()) if path.exists() else []
    n_iter = 1000 if args.plan == "small" else 750  # scikit-learn's default is 1,000
    for kind, n in PLANS.get(args.plan, []):
        if kind not in args.kinds or not args.min_n <= n <= args.max_n:
            continue
        for repeat in range(args.repeats if n <= 70_000 else 1):
            for method in args.methods:
                skipped = args.plan == "small" and method not in SMALL_METHODS
                if n > LIMITS.get(method, n) or skipped:
                    continue
                found = in_process(kind, n, method, n_iter, args.limit)
                if found:
                    print(f"{kind} {n} {method} run {repeat}: {found['seconds']:.1f} s", flush=True)
                    rows.append({"plan": args.plan, "kind": kind, "n": n, "method": method, **found})
                    RESULTS.mkdir(exist_ok=True)
                    path.write_text(json.dumps(rows, indent=1))
    for plan in PLANS:
        mine = [row for row in rows if row["plan"] == plan]
        if mine:
            print(f"\n== {plan}")
            table(mine)
    scaling = [row for row in rows if row["plan"] == "scaling"]
    if scaling:
        print()
        slopes(scaling)
        plot(scaling, RESULTS / "scaling.png")


if __name__ == "__main__":
    main()
