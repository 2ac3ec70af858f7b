"""Where do the time and the memory of a fit go, part by part?

python benchmarks/phases.py                            # 5,000, 70,000 and 1,000,000 points of MNIST: ten minutes
python benchmarks/phases.py 70000 --contraction 0      # without contraction
python benchmarks/phases.py 500000 --data mixture      # Gaussian mixture
python benchmarks/phases.py --rows 1000000 10000000    # so many rows in a file: 35 minutes, 16 GiB

MNIST reduced to 50 dimensions, or enlarged by noisy copies; settings are the defaults. Each fit runs in its own process
after a small one that compiles. The time of a part excludes that of the parts within it; with ``--cpu`` it is the CPU
time of all threads, for busy machines. The peak is that of the resident memory while the part runs, minus the memory
before the fit (Linux only). Medians of ``--repeats`` fits up to 100,000 points, one fit beyond.

With ``--rows``, a mixture is written block by block to a .npy file in a temporary folder (200 bytes per row) and mapped
to memory; pages of the file that are in memory count in the peaks. For 1,000 rows it also prints the recall of the 15
nearest neighbours, and the share of the 30 nearest that are among the 30 nearest in the map, compared with all rows.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import importlib
import inspect
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from operator import attrgetter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
from scipy.spatial import cKDTree
from shared import command_line, mixture_file, points, strength

from laptsne import LaptSNE

SIZES = (5000, 70_000, 1_000_000)
WARM_UP = 12_000  # points: above the sizes at which the algorithms change
MAX_REPEATED = 100_000  # points up to which fits are repeated
# The functions whose time is that of a part. The FFTs of the contraction's mesh are those of "convolution" too.
PARTS = {
    "nearest neighbours": ["laptsne.graph.neighbors:neighbor_distances"],
    "affinities": ["laptsne.graph.affinity:graph_affinities"],
    "reordering": ["laptsne.graph.spectrum:ordered_for_locality", "laptsne.graph.spectrum:reordered"],
    "spectrum of the data": ["laptsne.graph.spectrum:laplacian_spectrum"],
    "clusters": ["laptsne.clusters.counting:find_clusters", "laptsne.clusters.counting:main_clusters"],
    "attraction": [
        "laptsne.engine.kl:KLDivergence._attraction",
        "laptsne.engine.kl:KLDivergence._planar_gradient",
    ],
    "repulsion of all pairs": ["laptsne.fields.exact:ExactFields._compute_unit"],
    "repulsion on the grid": [
        "laptsne.fields.fourier:FourierFields._compute_unit",
        "laptsne.fields.fourier:CoarseFields._compute_unit",
    ],
    "convolution by FFT": ["laptsne.fields.grid:Mesh.convolved"],
    "contraction": ["laptsne.engine.minimise:Descending.contraction_gradient"],
    "descent, other": ["laptsne.methods:minimise"],
    "end": ["laptsne.engine.kl:KLDivergence.value", "laptsne.engine.kl:KLDivergence.potential"],
}
REST = "other"
SAMPLED, RECALLED, KEPT = 1000, 15, 30  # rows of a file, neighbours that are searched, and those sought in the map


class Phases:
    """Seconds and peak of the resident memory of each part.

    Functions are recognised by their code, not wrapped, which would keep their arguments in memory.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self.seconds = dict.fromkeys([*PARTS, REST], 0.0)
        self.peaks = dict.fromkeys([*PARTS, REST], 0)
        self._part_of = {code_of(name): part for part, names in PARTS.items() for name in names}
        self._running = [REST]
        self._since = 0.0
        self.neighbors = np.empty((0, 0), np.int64)  # of the sampled rows

    def run(self, function: Callable[[], Any]) -> None:
        """Call a function and charge its time to the parts."""
        reset_peak()
        self._since = self._clock()
        sys.setprofile(self._on_event)
        try:
            function()
        finally:
            sys.setprofile(None)
        self._charge()

    def _on_event(self, frame: FrameType, event: str, answer: Any) -> None:
        if event not in ("call", "return"):  # those of functions written in C
            return
        part = self._part_of.get(frame.f_code)
        if part is None:
            return
        self._charge()
        if event == "call":
            self._running.append(part)
        else:
            self._running.pop()
            if part == "nearest neighbours":
                self.neighbors = nearest_of(answer, sampled(answer.shape[0]))

    def _charge(self) -> None:
        """Charge what has happened since the last change of part to the current one."""
        part, now = self._running[-1], self._clock()
        self.seconds[part] += now - self._since
        self.peaks[part] = max(self.peaks[part], memory("VmHWM"))
        reset_peak()
        self._since = self._clock()


def code_of(name: str) -> CodeType:
    """Return the code of the function "module:name" or method "module:Class.name"."""
    module, _, path = name.partition(":")
    return inspect.unwrap(attrgetter(path)(importlib.import_module(module))).__code__  # type: ignore[no-any-return]


def memory(name: str) -> int:
    """Return VmRSS or VmHWM, the resident memory and its peak since the last reset, in bytes; 0 if unknown."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    return next(int(line.split()[1]) << 10 for line in status.read_text().splitlines() if line.startswith(name))


def release() -> None:
    """Return memory that the small fit left behind to the system."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def reset_peak() -> None:
    clear = Path("/proc/self/clear_refs")
    if clear.exists():
        clear.write_text("5")


def sampled(n: int) -> Any:
    """Return the rows for which neighbours are compared."""
    return np.linspace(0, n - 1, min(SAMPLED, n)).astype(np.int64)


def nearest_of(graph: Any, rows: Any) -> Any:
    """Return the RECALLED nearest neighbours of rows in a graph of distances."""
    parts = [slice(graph.indptr[row], graph.indptr[row + 1]) for row in rows]
    return np.array([graph.indices[part][np.argsort(graph.data[part], kind="stable")[:RECALLED]] for part in parts])


def true_neighbors(X: Any, rows: Any, k: int) -> Any:
    """Return the k nearest neighbours of rows among all rows of X, which is read in blocks."""
    queries = X[rows].astype(np.float64)
    found, far = np.empty((len(rows), 0), np.int64), np.empty((len(rows), 0))
    for start in range(0, len(X), 1 << 16):
        block = X[start : start + (1 << 16)].astype(np.float64)
        squared = (block**2).sum(axis=1) - 2 * queries @ block.T  # without |q|^2
        nearest = np.argpartition(squared, min(k, len(block) - 1), axis=1)[:, : k + 1]
        found = np.column_stack([found, nearest + start])
        far = np.column_stack([far, np.take_along_axis(squared, nearest, axis=1)])
        best = np.argsort(far, axis=1, kind="stable")[:, : k + 1]
        found, far = np.take_along_axis(found, best, axis=1), np.take_along_axis(far, best, axis=1)
    return np.array([[j for j in line if j != row][:k] for row, line in zip(rows, found, strict=True)])


def shared_fraction(found: Any, expected: Any) -> float:
    """Return the share of the expected neighbours that were found."""
    return float(np.mean([np.isin(b, a).mean() for a, b in zip(found, expected, strict=True)]))


def judged(X: Any, Y: Any, found: Any) -> dict[str, float]:
    """Return the recall of the neighbours found for the sampled rows, and how many are kept in the map."""
    rows = sampled(len(X))
    true = true_neighbors(X, rows, KEPT)
    near = cKDTree(Y).query(Y[rows], KEPT + 1)[1]
    near = np.array([[j for j in line if j != row][:KEPT] for row, line in zip(rows, near, strict=True)])
    return {"recall": shared_fraction(found, true[:, :RECALLED]), "kept": shared_fraction(near, true)}


def measured(data: str, n: int, contraction: float | str, clock: Callable[[], float]) -> dict[str, Any]:
    """Fit once in this process; return the seconds and peaks of the parts and of the whole."""
    if data != "file":
        return measured_fit(points(data, n)[0], contraction, clock)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        mixture_file(path, n)
        return measured_fit(np.load(path, mmap_mode="r"), contraction, clock, verbose=True)


def measured_fit(X: Any, contraction: float | str, clock: Callable[[], float], *, verbose: bool = False) -> Any:
    """Fit X, and judge the result if it is a file."""
    n = len(X)
    model = LaptSNE(contraction=contraction, n_jobs=2, random_state=0)
    model.fit(X[: min(n, WARM_UP)])
    del model
    release()
    before, phases = memory("VmRSS"), Phases(clock)
    model = LaptSNE(contraction=contraction, n_jobs=2, random_state=0, verbose=verbose)
    phases.run(lambda: model.fit(X))
    peaks = {part: max(peak - before, 0) for part, peak in phases.peaks.items() if peak}
    facts = {
        "n_iter": model.n_iter_,
        "nnz": int(model.affinities_.nnz),
        "before": before,
        "n_clusters": model.n_clusters_,
    }
    if isinstance(X, np.memmap):
        facts |= {"file": X.nbytes, **judged(X, model.embedding_, phases.neighbors)}
    return {"seconds": phases.seconds, "peaks": peaks, **facts}


def bandwidth(n_threads: int = 2) -> float:
    """Return the speed at which threads copy memory, reads and writes counted, in bytes per second; best of five."""
    source = np.ones((n_threads, 1 << 25), np.float32)
    target = np.empty_like(source)
    seconds = []
    with ThreadPoolExecutor(n_threads) as pool:
        for _ in range(6):
            start = time.perf_counter()
            list(pool.map(np.copyto, target, source))
            seconds.append(time.perf_counter() - start)
    return 2 * source.nbytes / min(seconds[1:])


def in_process(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--one", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def table(n: int, runs: list[dict[str, Any]]) -> None:
    """Print the parts of fits of n points, medians over the runs."""
    total = statistics.median(sum(run["seconds"].values()) for run in runs)
    facts = f"{runs[0]['n_iter']} iterations, {runs[0]['nnz'] / n:.0f} affinities per point, {len(runs)} fits"
    print(f"\n{n:,} points: {total:.2f} s, {facts}")
    print("| part | seconds | share | peak memory, MiB |\n|---|---|---|---|")
    for part in runs[0]["seconds"]:
        seconds = statistics.median(run["seconds"][part] for run in runs)
        peak = max(run["peaks"].get(part, 0) for run in runs)
        if seconds:
            print(f"| {part} | {seconds:.3g} | {seconds / total:.0%} | {peak / 2**20:.0f} |", flush=True)


def print_judged(run: dict[str, Any]) -> None:
    """Print what is known of a fit of rows in a file."""
    peak, pages = (size / 2**30 for size in (max(run["peaks"].values()) + run["before"], run["file"]))
    print(f"\npeak of the process {peak:.2f} GiB, of which up to {pages:.2f} GiB are pages of the file")
    print(f"{run['n_clusters']} clusters; recall {run['recall']:.4f}, neighbours kept {run['kept']:.4f}", flush=True)


def print_bound(run: dict[str, Any]) -> None:
    """Print the time that reading the affinities takes at the measured bandwidth."""
    rate = bandwidth()
    least = 8 * run["nnz"] * run["n_iter"] / rate
    print(f"\nattraction: at least {least:.3g} s, 8 bytes per affinity and iteration at {rate / 1e9:.0f} GB/s")


def parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__)
    parser.add_argument("sizes", nargs="*", type=int)
    parser.add_argument("--rows", nargs="*", type=int, default=[], help="numbers of rows of a file")
    parser.add_argument("--data", choices=["mnist", "mixture"], default="mnist")
    parser.add_argument("--contraction", default="auto")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cpu", action="store_true", help="CPU time instead of wall time")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    return parser


def main() -> None:
    args = parser().parse_args()
    if args.one:
        data, n, contraction, clock = args.one
        print(json.dumps(measured(data, int(n), strength(contraction), getattr(time, clock))))
        return
    for n in args.rows:
        run = in_process("file", str(n), args.contraction, "process_time" if args.cpu else "perf_counter")
        table(n, [run])
        print_judged(run)
    for n in args.sizes or ([] if args.rows else SIZES):
        repeats = args.repeats if n <= MAX_REPEATED else 1
        clock = "process_time" if args.cpu else "perf_counter"
        runs = [in_process(args.data, str(n), args.contraction, clock) for _ in range(repeats)]
        table(n, runs)
        if not args.cpu:
            print_bound(runs[0])


if __name__ == "__main__":
    main()
