"""Quality of the maps of LaptSNE compared with those of an earlier version, on the paper's sets and five of the suite.

python benchmarks/quality.py ../laptsne-0.1.0                    # a checkout or virtual environment, as for peers.py
python benchmarks/quality.py ../laptsne-0.1.0 --sets digits coil20

Both versions fit the same data, with their defaults, and at contraction 0 with perplexity 30. The KL divergence at
contraction 0 is computed with our affinities for both.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import suite_scores
from peers import Bench, checked_baseline, divergence
from suite_sets import GROUPS, PAPER, Dataset, load

from laptsne.graph.affinity import joint_affinities

METHODS = ("laptsne, contraction 0", "baseline, contraction 0", "laptsne", "baseline")
_SCORES = ("KL", "10-NN", "NMI", "kept")
Row = dict[str, float]


def fitted(bench: Bench, X: np.ndarray, method: str) -> np.ndarray:
    """Return the embedding of a fit in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/X.npy", X)
        bench.run(method, Path(folder), check=True)
        return np.asarray(np.load(f"{folder}/Y.npy"))


def scores(data: Dataset, Y: np.ndarray, method: str) -> Row:
    groups = suite_scores.table_groups(data)[:3]  # 10-NN, k-means, neighbours
    found = {name: value for group in groups for name, value in suite_scores.compute(group, data, Y).items()}
    kl = divergence(joint_affinities(data.X, perplexity=30), Y) if method.endswith("contraction 0") else np.nan
    return {"KL": kl} | {name: found[name] for name in _SCORES[1:]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("baseline", type=Path, help="checkout or virtual environment of an earlier version")
    parser.add_argument("--sets", nargs="+", default=(*PAPER, *GROUPS["reporting"][:5]), metavar="SET")
    args = parser.parse_args()
    bench = Bench("mnist", 2, 3600.0, checked_baseline(args.baseline))
    rows: dict[str, list[Row]] = {method: [] for method in METHODS}
    print(f"{'set':24} {'method':24} " + " ".join(f"{name:>7}" for name in _SCORES))
    for name in args.sets:
        data = load(name)
        for method in METHODS:
            row = scores(data, fitted(bench, data.X, method), method)
            rows[method].append(row)
            print(f"{name:24} {method:24} " + " ".join(f"{value:7.3f}" for value in row.values()), flush=True)
    for method in METHODS:
        means = [np.mean([row[name] for row in rows[method]]) for name in _SCORES]
        print(f"{'mean':24} {method:24} " + " ".join(f"{value:7.3f}" for value in means))
    ours, earlier = ([row["KL"] for row in rows[method]] for method in METHODS[:2])
    print("KL, ratio: " + " ".join(f"{a / b:.3f}" for a, b in zip(ours, earlier, strict=True)))


if __name__ == "__main__":
    main()
