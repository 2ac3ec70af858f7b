"""Do maps of LaptSNE, openTSNE and UMAP show clusters where there are none, and all of them where there are?

python benchmarks/null.py null 2000            # data without clusters: an hour
python benchmarks/null.py null 20000           # hours
python benchmarks/null.py mixtures             # 3 to 50 Gaussians of unequal size and spread: an hour
python benchmarks/null.py show                 # the tables of the results so far: a second

What counts is the number of clusters that HDBSCAN finds in the map; clusters.py has those found in the data.

All methods run with their defaults. On data without clusters, the smallest cluster of HDBSCAN has 2 % of the points,
and it has found none if it labels more than half of them as noise. In the mixtures the smallest component has 0.5 % of
the points, and the smallest cluster of HDBSCAN half of that. Results are added to benchmarks/results/null.json.

Needs ``pip install ".[benchmark]"``.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from shared import command_line
from sklearn.cluster import HDBSCAN
from sklearn.datasets import make_swiss_roll

RESULTS = Path(__file__).parent / "results" / "null.json"
METHODS = ("LaptSNE", "openTSNE", "UMAP")
SEEDS = range(5)
MIXTURES = (3, 5, 10, 20, 35, 50)
MIXTURE_POINTS = 5000
Rng = np.random.Generator


def gaussian(n_features: int) -> Callable[[int, Rng], np.ndarray]:
    return lambda n, rng: rng.normal(size=(n, n_features))


def cube(n: int, rng: Rng) -> np.ndarray:
    return rng.random((n, 8))


def swiss_roll(n: int, rng: Rng) -> np.ndarray:
    return np.asarray(make_swiss_roll(n, random_state=int(rng.integers(2**31)))[0])


def line(n: int, rng: Rng) -> np.ndarray:
    """A line in ten dimensions, 80 times as long as the standard deviation of its noise."""
    X = rng.normal(scale=0.05, size=(n, 10))
    X[:, 0] += 4 * rng.random(n)
    return X


def tree(n: int, rng: Rng) -> np.ndarray:
    """Seven branches in ten dimensions; all but the first two start where another one ends."""
    ends = [np.zeros(10)]
    starts = []
    for branch in range(7):
        starts.append(ends[(branch + 1) // 2])
        direction = rng.normal(size=10)
        ends.append(starts[-1] + direction / np.linalg.norm(direction))
    branch = rng.integers(0, 7, n)
    start, end = np.array(starts)[branch], np.array(ends[1:])[branch]
    return start + rng.random((n, 1)) * (end - start) + rng.normal(scale=0.05, size=(n, 10))


def student(n: int, rng: Rng) -> np.ndarray:
    """Student's t with 3 degrees of freedom in ten dimensions."""
    return rng.standard_t(3, size=(n, 10))


def duplicates(n: int, rng: Rng) -> np.ndarray:
    """A Gaussian in ten dimensions; half of the rows are copies of other rows."""
    X = rng.normal(size=(n, 10))
    X[n // 2 :] = X[rng.integers(0, n // 2, n - n // 2)]
    return X


def ring(n: int, rng: Rng) -> np.ndarray:
    angle = rng.uniform(0, 2 * np.pi, n)
    circle = np.column_stack([np.cos(angle), np.sin(angle), np.zeros((n, 3))])
    return circle + rng.normal(scale=0.05, size=(n, 5))


def torus(n: int, rng: Rng) -> np.ndarray:
    a, b = rng.uniform(0, 2 * np.pi, (2, n))
    radius = 1 + 0.35 * np.cos(b)
    return np.column_stack([radius * np.cos(a), radius * np.sin(a), 0.35 * np.sin(b)])


def blocks(n: int, rng: Rng) -> np.ndarray:
    """Two uniform cubes that share a face."""
    X = rng.random((n, 3))
    X[: n // 2, 0] += 1
    return X


NULL: dict[str, Callable[[int, Rng], np.ndarray]] = {
    "Gaussian, 5 dimensions": gaussian(5),
    "Gaussian, 20 dimensions": gaussian(20),
    "Gaussian, 100 dimensions": gaussian(100),
    "uniform cube, 8 dimensions": cube,
    "swiss roll": swiss_roll,
    "line with noise": line,
    "tree of branches": tree,
    "Student's t": student,
    "Gaussian with duplicates": duplicates,
    "ring": ring,
    "torus": torus,
    "two touching blocks": blocks,
}


def mixture(n: int, n_groups: int, rng: Rng) -> np.ndarray:
    """Gaussians in 20 dimensions with sizes from 1 to 10, at least 0.5 % of the points, and spreads from 1 to 3.

    The centres are so close that the widest components overlap: further apart, every method finds all of them.
    """
    weights = np.exp(rng.uniform(0, np.log(10), n_groups))
    weights = np.maximum(weights / weights.sum(), 0.005)
    group = rng.choice(n_groups, n, p=weights / weights.sum())
    centres = rng.normal(scale=1.25, size=(n_groups, 20))
    return centres[group] + rng.normal(size=(n, 20)) * rng.uniform(0.5, 1.5, n_groups)[group, None]


def embed(method: str, X: np.ndarray, seed: int) -> tuple[np.ndarray, int | None]:
    """Return the embedding, and the number of clusters that the method itself reports."""
    if method == "LaptSNE":
        from laptsne import LaptSNE

        model = LaptSNE(random_state=seed).fit(X)
        return model.embedding_, model.n_clusters_
    if method == "openTSNE":
        from openTSNE import TSNE

        return np.asarray(TSNE(random_state=seed, n_jobs=-1).fit(X)), None
    from umap import UMAP

    return np.asarray(UMAP(random_state=seed).fit_transform(X)), None


def n_found(Y: np.ndarray, smallest: float) -> int:
    """Count the clusters that HDBSCAN finds in an embedding."""
    size = max(5, int(smallest * len(Y)))
    labels = HDBSCAN(min_cluster_size=size, copy=True, n_jobs=-1).fit_predict(Y.astype(np.float64))
    return 0 if (labels < 0).mean() > 0.5 else int(labels.max() + 1)


def run(jobs: list[tuple[str, str, int, Callable[[Rng], np.ndarray], float]]) -> None:
    results = load()
    for method, name, seed, make, smallest in jobs:
        key = f"{name} | {method} | {seed}"
        if key in results:
            continue
        Y, own = embed(method, make(np.random.default_rng(seed)), seed)
        results = load() | {key: {"found": n_found(Y, smallest), "own": own}}
        partial = RESULTS.with_suffix(f".{os.getpid()}.part")
        partial.write_text(json.dumps(results, indent=0, sort_keys=True) + "\n")
        partial.replace(RESULTS)
        print(key, results[key], flush=True)


def load() -> dict[str, Any]:
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def counts(results: dict[str, Any], name: str, method: str, what: str = "found") -> list[int]:
    rows = (results.get(f"{name} | {method} | {seed}") for seed in SEEDS)
    return [row[what] for row in rows if row]


def show() -> None:
    results = load()
    print("Clusters found in data without clusters: mean over the seeds (number of seeds)\n")
    print("| data | points |" + "".join(f" {method} |" for method in METHODS) + "\n" + "|---" * 5 + "|")
    for n in (2000, 20_000):
        for title in NULL:
            found = [counts(results, f"{title}, {n}", method) for method in METHODS]
            cells = (f" {np.mean(c):.1f} ({len(c)}) |" if c else " |" for c in found)
            print(f"| {title} | {n} |" + "".join(cells))
    print("\nMixtures: seeds with the right number of clusters, and the mean number found\n")
    titles = [*METHODS, "LaptSNE's own n_clusters_"]
    print("| clusters |" + "".join(f" {title} |" for title in titles) + "\n" + "|---" * 5 + "|")
    for k in MIXTURES:
        found = [counts(results, f"mixture of {k}", method) for method in METHODS]
        found.append(counts(results, f"mixture of {k}", "LaptSNE", "own"))
        cells = (f" {sum(n == k for n in c)} of {len(c)}, {np.mean(c):.1f} |" if c else " |" for c in found)
        print(f"| {k} |" + "".join(cells))


def parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__)
    parser.add_argument("what", choices=["null", "mixtures", "show"])
    parser.add_argument("n", type=int, nargs="?", default=2000, help="number of points of data without clusters")
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=METHODS)
    return parser


def main() -> None:
    warnings.filterwarnings("ignore", message="n_jobs value 1 overridden")
    args = parser().parse_args()
    data: dict[str, Callable[[Rng], np.ndarray]] = {}
    if args.what == "null":
        data = {f"{title}, {args.n}": lambda rng, f=f: f(args.n, rng) for title, f in NULL.items()}
    elif args.what == "mixtures":
        data = {f"mixture of {k}": lambda rng, k=k: mixture(MIXTURE_POINTS, k, rng) for k in MIXTURES}
    smallest = 0.02 if args.what == "null" else 0.0025
    run([(method, name, seed, data[name], smallest) for seed in SEEDS for name in data for method in args.methods])
    show()


if __name__ == "__main__":
    main()
