"""The command on text embeddings in a Parquet file, compared with the estimator on the same array.

python benchmarks/embed_table.py           # 100,000 x 768, cosine: minutes
python benchmarks/embed_table.py --small   # 3,000 x 64, to try it

Both run in fresh processes and take turns. The time of the command is that of the whole process: imports, reading, the
fit, and writing the map. The time of the estimator is that of ``fit`` alone, on an array in memory. The maps must be
equal.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

LIMIT = 1.3  # times the estimator
N_CLUSTERS = 50
N_LATENT = 16  # dimensions in which clusters vary
FIT = """
import sys, time
import numpy as np
from laptsne import LaptSNE
X = np.load(sys.argv[1])
start = time.perf_counter()
Y = LaptSNE(metric="cosine", random_state=0).fit_transform(X)
print(time.perf_counter() - start)
np.save(sys.argv[2], Y)
"""


def embeddings(n_points: int, n_features: int) -> np.ndarray:
    """Return unit vectors around centres, of single precision, as models of text and images give them."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(N_CLUSTERS, N_LATENT)) * 2
    latent = centres[rng.integers(N_CLUSTERS, size=n_points)] + rng.normal(size=(n_points, N_LATENT))
    X = (latent @ rng.normal(size=(N_LATENT, n_features))).astype(np.float32)
    X += rng.normal(scale=0.5, size=X.shape).astype(np.float32)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def write_table(X: np.ndarray, path: Path) -> None:
    lists = pa.ListArray.from_arrays(np.arange(0, X.size + 1, X.shape[1], dtype=np.int32), X.ravel())
    pa.parquet.write_table(pa.table({"id": np.arange(len(X)), "embedding": lists}), path)


def command_seconds(folder: Path) -> float:
    options = ["--metric", "cosine", "--out", "command.npy", "--force", "--quiet"]
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "laptsne", "embed", "table.parquet", *options], cwd=folder, check=True)
    return time.perf_counter() - start


def fit_seconds(folder: Path) -> float:
    command = [sys.executable, "-c", FIT, "array.npy", "python.npy"]
    return float(subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="3,000 x 64 instead of 100,000 x 768")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    n_points, n_features = (3000, 64) if arguments.small else (100_000, 768)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        X = embeddings(n_points, n_features)
        write_table(X, folder / "table.parquet")
        np.save(folder / "array.npy", X)
        del X
        times = [(command_seconds(folder), fit_seconds(folder)) for _ in range(arguments.repeats)]
        equal = np.array_equal(np.load(folder / "command.npy"), np.load(folder / "python.npy"))
    command, fit = (statistics.median(column) for column in zip(*times, strict=True))
    print(f"{n_points} x {n_features}: command {command:.1f} s, estimator {fit:.1f} s, same map: {equal}")
    print(f"ratio {command / fit:.2f} (limit {LIMIT})")


if __name__ == "__main__":
    main()
