"""Do many fits in one process leak memory, hang, or return other results, beside openTSNE and umap-learn?

python benchmarks/load.py                      # ten minutes
python benchmarks/load.py --methods laptsne    # minutes

Each row runs in its own process. Memory is the resident size after each fit, and its growth the slope of a linear fit
to the second half. A concurrent fit, or one in a forked process, that takes more than two minutes counts as hung.
Needs ``pip install ".[benchmark]"`` for the other libraries.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from shared import command_line
from sklearn.neighbors import NearestNeighbors

# isort: split
import elsewhere  # of tests/, which shared.py puts on the path

TIMEOUT = 120
N = 500


def points() -> Any:
    rng = np.random.default_rng(0)
    return rng.normal(scale=3, size=(5, 30))[rng.integers(0, 5, N)] + rng.normal(size=(N, 30))


def laptsne(n_jobs: int = 2) -> Any:
    from laptsne import LaptSNE

    return LaptSNE(max_iter=100, n_jobs=n_jobs, random_state=0).fit_transform(points())


def opentsne() -> Any:
    import openTSNE

    return openTSNE.TSNE(early_exaggeration_iter=30, n_iter=70, n_jobs=2, random_state=0).fit(points())


def umap() -> Any:
    from umap import UMAP

    return UMAP(n_epochs=100, n_jobs=2).fit_transform(points())  # without a seed, which would disable its threads


FITS: dict[str, tuple[Callable[[], Any], int]] = {
    "laptsne": (laptsne, 200),
    "opentsne": (opentsne, 20),
    "umap": (umap, 20),
}


def bits(name: str) -> str:
    return hashlib.sha256(np.ascontiguousarray(FITS[name][0]()).tobytes()).hexdigest()


def resident() -> float:
    """Resident memory in MB."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def one_after_another(name: str) -> str:
    n_fits = FITS[name][1]
    expected = bits(name)
    used, wrong = [], 0
    for _ in range(n_fits):
        wrong += bits(name) != expected
        used.append(resident())
    late = used[n_fits // 2 :]
    slope = np.polyfit(np.arange(len(late)), late, 1)[0]
    growth = f"{slope * 1e3:+.1f} kB per fit (from {used[0]:.0f} to {used[-1]:.0f} MB)"
    return f"{n_fits} fits; {growth}; {wrong} with different bits"


def at_once(name: str) -> str:
    expected = bits(name)
    found = elsewhere.in_threads(bits, name, n=8)
    return f"8 threads; {sum(other != expected for other in found)} with different bits"


def in_fork(name: str) -> str:
    """Fit in a child after fits in the parent, and after scikit-learn used OpenMP there."""
    expected = bits(name)
    NearestNeighbors(n_neighbors=5, algorithm="brute").fit(np.tile(points(), (6, 1))).kneighbors()
    return "works" if elsewhere.in_child(bits, name, method="fork") == expected else "works; different bits"


def in_environments(name: str) -> str:
    expected = bits(name)
    found = [
        elsewhere.in_thread(bits, name),
        elsewhere.in_executor(bits, name),
        elsewhere.in_child(bits, name, method="spawn"),
    ]
    return f"{sum(other == expected for other in found)} of 3 with the same bits"


def attempt(test: Callable[[str], str], name: str) -> str:
    """Return what the test reports in its own process, or how it failed."""
    code = f"import load; print(load.{test.__name__}({name!r}))"
    elsewhere.TIMEOUT = TIMEOUT * 6
    try:
        return elsewhere.in_program(code, Path(__file__).parent, LOAD_TIMEOUT=TIMEOUT).splitlines()[-1]
    except Exception as error:
        lines = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        return f"failed: {lines[-1] if lines else type(error).__name__}, {getattr(error, 'returncode', '')}"


if "LOAD_TIMEOUT" in os.environ:
    warnings.simplefilter("ignore")
    elsewhere.TIMEOUT = int(os.environ["LOAD_TIMEOUT"])


def parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__)
    parser.add_argument("--methods", nargs="+", choices=FITS, default=list(FITS))
    return parser


def main() -> None:
    args = parser().parse_args()
    for test in (one_after_another, at_once, in_fork, in_environments):
        for name in args.methods:
            start = time.perf_counter()
            print(
                f"{test.__name__:18} {name:9} {attempt(test, name)} ({time.perf_counter() - start:.0f} s)", flush=True
            )


if __name__ == "__main__":
    main()
