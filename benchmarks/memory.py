"""How much memory does a fit take, beside its estimate and the peaks of openTSNE and umap-learn?

python benchmarks/memory.py                       # all of this at 5,000 to 70,000 points: half an hour
python benchmarks/memory.py 200000 500000         # other sizes; 500,000 points take minutes and 2 GiB
python benchmarks/memory.py landmarks             # LandmarkLaptSNE
python benchmarks/memory.py umap                  # LapUMAP
python benchmarks/memory.py dimensions            # embeddings in one and three dimensions; 8 GiB
python benchmarks/memory.py pairs                 # 7,200 points, in units of an N x N matrix in single precision

The peak is the growth of the resident memory of a fresh process during the fit, after small fits have loaded and
compiled everything. Data are ten clusters with 50 features, overlapping or separate: if they overlap, the neighbour
graph is connected, and its eigenvectors are computed for all points at once. Runs are short, which does not change the
peak: it occurs in the affinities, the spectrum or after the last iteration. In three dimensions, it is that of the
largest grid, so that runs last until the embedding has grown. openTSNE and umap-learn have no estimate.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from typing import Any

from shared import command_line

import laptsne
from laptsne import LapUMAP, estimate_memory

PAIRS = 7200
SIZES = (5000, 20_000, 70_000)
PEERS = (20_000, 70_000)
CODE = """
import ctypes, gc, warnings
from pathlib import Path
import numpy as np
warnings.simplefilter("ignore")
{imports}

def status(name):
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024

rng = np.random.default_rng(0)
centres = rng.normal(scale={scale}, size=(10, 50)).astype({dtype!r})
X = centres[rng.integers(0, 10, {n})]
X += rng.standard_normal(X.shape, dtype=X.dtype)
make = lambda: {make}
for size in (600, 11_000):  # on both sides of the sizes at which the algorithms change
    if {least} <= size <= {n}:
        make().fit(X[:size])
gc.collect()
ctypes.CDLL("libc.so.6").malloc_trim(0)  # free what the small fits left behind
before = status("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # reset the peak
model = make()
model.fit(X)
print(status("VmHWM") - before)
"""
OURS = "LaptSNE({settings}random_state=0, n_jobs=2)"
THEIRS = {
    "openTSNE": (
        "from openTSNE import TSNE",
        "TSNE(early_exaggeration_iter=30, n_iter=30, n_jobs=2, random_state=0)",
    ),
    "umap-learn": ("from umap import UMAP", "UMAP(n_epochs=30, n_jobs=2)"),
}


LANDMARKS = ((20_000, 2000), (100_000, 1000), (100_000, 10_000), (300_000, 10_000), (1_000_000, 1000))


def measured(n: int, make: str, imports: str, *, scale: float = 0.7, dtype: str = "float32", least: int = 2) -> float:
    """Return the peak in MiB; warm-up fits use at least ``least`` points."""
    code = CODE.format(n=n, make=make, imports=imports, scale=scale, dtype=dtype, least=least)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1]) / 2**20


def measured_ours(n: int, settings: str, **data: float | str) -> float:
    make = OURS.format(settings=settings)
    return measured(n, make, "from laptsne import LaptSNE", **data)  # type: ignore[arg-type]


def estimates(sizes: list[int]) -> None:
    print("In MiB; the ratio should be between 0.65 and 1.35.")
    print(f"{'points':>8} {'':9} {'clusters':9} {'estimate':>9} {'measured':>9} {'ratio':>6}")
    for n in sizes:
        for dtype, scale, name in (("float32", 0.7, "overlap"), ("float64", 5.0, "separate")):
            estimate = estimate_memory(n, 50, dtype=dtype, n_jobs=2) / 2**20
            peak = measured_ours(n, "max_iter=60, ", scale=scale, dtype=dtype)
            print(f"{n:8} {dtype:9} {name:9} {estimate:9.0f} {peak:9.0f} {estimate / peak:6.2f}", flush=True)


def peers() -> None:
    for n in PEERS:
        for name, (imports, make) in THEIRS.items():
            print(f"{n:8} {name:19} {'none':>9} {measured(n, make, imports):9.0f}", flush=True)


def landmarks() -> None:
    print(f"{'points':>8} {'landmarks':>9} {'estimate':>9} {'measured':>9} {'ratio':>6}")
    for n, n_landmarks in LANDMARKS:
        estimate = estimate_memory(n, 50, dtype="float32", n_jobs=2, n_landmarks=n_landmarks) / 2**20
        make = f"LandmarkLaptSNE(n_landmarks={n_landmarks}, max_iter=60, random_state=0, n_jobs=2)"
        peak = measured(n, make, "from laptsne import LandmarkLaptSNE", least=n_landmarks)
        print(f"{n:8} {n_landmarks:9} {estimate:9.0f} {peak:9.0f} {estimate / peak:6.2f}", flush=True)


def umap_estimates() -> None:
    print(f"{'points':>8} {'neighbours':>10} {'estimate':>9} {'measured':>9} {'ratio':>6}")
    for n, n_neighbors in ((20_000, 15), (70_000, 15), (70_000, 50), (200_000, 15)):
        settings: dict[str, Any] = {"estimator": LapUMAP, "n_neighbors": n_neighbors}
        estimate = estimate_memory(n, 50, dtype="float32", n_jobs=2, **settings) / 2**20
        make = f"LapUMAP(n_neighbors={n_neighbors}, max_iter=60, random_state=0, n_jobs=2)"
        peak = measured(n, make, "from laptsne import LapUMAP")
        print(f"{n:8} {n_neighbors:10} {estimate:9.0f} {peak:9.0f} {estimate / peak:6.2f}", flush=True)


def dimensions() -> None:
    print(f"{'':10} {'points':>8} {'dimension':>9} {'estimate':>9} {'measured':>9} {'ratio':>6}")
    runs = (("LaptSNE", 20_000, 1, 300), ("LaptSNE", 10_000, 3, 300), ("LapUMAP", 10_000, 3, 100))
    for name, n, n_components, n_iter in (*runs, ("LapUMAP", 30_000, 3, 100), ("LaptSNE", 45_000, 3, 400)):
        settings: dict[str, Any] = {"n_components": n_components, "contraction": 0, "n_jobs": 2}
        estimate = estimate_memory(n, 50, dtype="float32", estimator=getattr(laptsne, name), **settings) / 2**20
        make = f"{name}(max_iter={n_iter}, random_state=0, **{settings})"
        peak = measured(n, make, f"from laptsne import {name}")
        print(f"{name:10} {n:8} {n_components:9} {estimate:9.0f} {peak:9.0f} {estimate / peak:6.2f}", flush=True)


def pairs() -> None:
    runs = {
        "defaults": ("max_iter=60, ", {}),
        "all pairs (the paper's settings)": (
            "n_neighbors='all', method='exact', n_clusters=20, max_iter=20, ",
            {"n_neighbors": "all", "method": "exact", "n_clusters": 20},
        ),
    }
    for name, (settings, given) in runs.items():
        unit = 4 * PAIRS**2
        estimate = estimate_memory(PAIRS, 50, dtype="float32", n_jobs=2, **given) / unit
        peak = measured_ours(PAIRS, settings) * 2**20 / unit
        print(f"{name:34} {peak:5.2f} matrices (limit 3), estimated {estimate:5.2f}", flush=True)


PARTS = {"landmarks": landmarks, "umap": umap_estimates, "dimensions": dimensions, "peers": peers, "pairs": pairs}


def part(text: str) -> Any:
    """Return a number of points, or one of the functions above."""
    return PARTS[text] if text in PARTS else int(text)


def parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__)
    parser.add_argument("parts", nargs="*", type=part, metavar="PART", help=f"numbers of points, or {', '.join(PARTS)}")
    return parser


def main() -> None:
    chosen = parser().parse_args().parts or [*SIZES, *PARTS.values()]
    sizes = [each for each in chosen if isinstance(each, int)]
    if sizes:
        estimates(sizes)
    for each in chosen:
        if not isinstance(each, int):
            each()


if __name__ == "__main__":
    main()
