"""Many fits in one process, beside openTSNE and umap-learn: memory, deadlocks, wrong answers.

python benchmarks/load.py

Each row runs in a process of its own. Memory is that resident after each fit, its growth the slope of a line through
the second half of them. A fit at once with others, or in a forked process, that has not ended after two minutes
counts as hung.
"""

from __future__ import annotations

import gc
import hashlib
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import elsewhere

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

    return UMAP(n_epochs=100, n_jobs=2).fit_transform(points())  # without a seed, which would take its threads


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
    return (
        f"{n_fits} fits; {slope * 1e3:+.1f} kB a fit (from {used[0]:.0f} to {used[-1]:.0f} MB); {wrong} with other bits"
    )


def at_once(name: str) -> str:
    expected = bits(name)
    found = elsewhere.in_threads(bits, name, n=8)
    return f"8 threads; {sum(other != expected for other in found)} with other bits"


def in_fork(name: str) -> str:
    """After fits in the parent, and after scikit-learn has used the threads of OpenMP there."""
    expected = bits(name)
    NearestNeighbors(n_neighbors=5, algorithm="brute").fit(np.tile(points(), (6, 1))).kneighbors()
    return "works" if elsewhere.in_child(bits, name, method="fork") == expected else "works; other bits"


def in_places(name: str) -> str:
    expected = bits(name)
    found = [
        elsewhere.in_thread(bits, name),
        elsewhere.in_executor(bits, name),
        elsewhere.in_child(bits, name, method="spawn"),
    ]
    return f"{sum(other == expected for other in found)} of 3 with the same bits"


def tried(test: Callable[[str], str], name: str) -> str:
    """What the test says in a process of its own, or how it went wrong."""
    code = f"import load; print(load.{test.__name__}({name!r}))"
    elsewhere.TIMEOUT = TIMEOUT * 6
    try:
        return elsewhere.in_program(code, Path(__file__).parent, LOAD_TIMEOUT=TIMEOUT).splitlines()[-1]
    except Exception as error:
        told = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        return f"failed: {told[-1] if told else type(error).__name__}, {getattr(error, 'returncode', '')}"


if "LOAD_TIMEOUT" in os.environ:
    warnings.simplefilter("ignore")
    elsewhere.TIMEOUT = int(os.environ["LOAD_TIMEOUT"])


def main() -> None:
    for test in (one_after_another, at_once, in_fork, in_places):
        for name in FITS:
            start = time.perf_counter()
            print(f"{test.__name__:18} {name:9} {tried(test, name)} ({time.perf_counter() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
