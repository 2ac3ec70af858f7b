"""How long does one fit of a method take? For peers.py: loads the data, warms up, fits, and prints JSON.

python benchmarks/peers_fit.py METHOD N_THREADS data.npy embedding.npy   # seconds to minutes, by method and data

Uses nothing of laptsne but ``LaptSNE`` and its parameters that 0.1.0 has, so that earlier versions can be timed too.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import resource
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from shared import command_line

# Rows of the warm-up. Several libraries change their algorithm with the number of rows, and compile when they first use
# it: umap-learn's neighbour search at 4,096, our grid and neighbour search at 6,000 and 10,000.
_WARM_UP_ROWS = 20_000


@dataclass(frozen=True)
class Method:
    """A library's estimator, at its defaults but for the number of threads and ``settings``.

    There are no seeds for other libraries: with one, umap-learn and PaCMAP use a single thread. ``threads`` is the
    parameter for their number; libraries without one are limited by environment variables. ``short`` has the settings
    of the warm-up. ``limit`` is the largest number of rows that takes less than about a quarter of an hour.
    """

    module: str
    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    threads: str | None = None
    short: dict[str, Any] = field(default_factory=dict)
    limit: int = 1_000_000

    def fit(self, X: NDArray[Any], n_threads: int, *, short: bool = False) -> NDArray[Any]:
        """Return the embedding of X; ``short`` for a warm-up."""
        estimator = getattr(importlib.import_module(self.module), self.name)
        threads = {self.threads: n_threads} if self.threads else {}
        model = estimator(**self.settings, **threads, **(self.short if short else {}))
        return np.asarray(model.fit(X) if self.module == "openTSNE" else model.fit_transform(X))


_OURS: dict[str, Any] = {"threads": "n_jobs", "short": {"max_iter": 20}}
_PAIRS: dict[str, Any] = {"short": {"num_iters": (5, 5, 5)}}
_SEED = {"random_state": 0}
_PLAIN = _SEED | {"contraction": 0.0, "perplexity": 30.0}  # the default of this version, which is not that of 0.1.0
METHODS = {
    "laptsne": Method("laptsne", "LaptSNE", _SEED, **_OURS),
    "laptsne, contraction 0": Method("laptsne", "LaptSNE", _PLAIN, **_OURS),
    "baseline": Method("laptsne", "LaptSNE", _SEED, **_OURS),
    "baseline, contraction 0": Method("laptsne", "LaptSNE", _PLAIN, **_OURS),
    "PaCMAP": Method("pacmap", "PaCMAP", **_PAIRS),
    "PaCMAP, seeded": Method("pacmap", "PaCMAP", _SEED, **_PAIRS),
    "LocalMAP": Method("pacmap", "LocalMAP", limit=250_000, **_PAIRS),
    "manifolds-rs UMAP": Method("manifolds_rs", "UMAP", short={"n_epochs": 10}),
    "manifolds-rs t-SNE": Method("manifolds_rs", "TSNE", {"approx": "fft"}, short={"n_epochs": 10}, limit=250_000),
    "umap-learn": Method("umap", "UMAP", threads="n_jobs", short={"n_epochs": 11}, limit=250_000),
    "openTSNE": Method(
        "openTSNE", "TSNE", _SEED, "n_jobs", {"early_exaggeration_iter": 10, "n_iter": 10}, limit=250_000
    ),
    "scikit-learn": Method("sklearn.manifold", "TSNE", _SEED, "n_jobs", {"max_iter": 250}, limit=5000),
}


def peak_memory() -> float:
    """Return the peak of the resident memory of this process in GiB."""
    status = Path("/proc/self/status")
    if status.exists():  # the resource module would report that of the parent process if it was larger
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**30  # macOS counts in bytes


def parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__)
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("n_threads", type=int)
    parser.add_argument("data", type=Path)
    parser.add_argument("embedding", type=Path)
    return parser


def main() -> None:
    args = parser().parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    method, X = METHODS[args.method], np.load(args.data)
    method.fit(X[:_WARM_UP_ROWS], args.n_threads, short=True)
    start = time.perf_counter()
    Y = method.fit(X, args.n_threads)
    seconds = time.perf_counter() - start
    np.save(args.embedding, Y)
    print(json.dumps({"seconds": seconds, "peak_gib": peak_memory()}))


if __name__ == "__main__":
    main()
