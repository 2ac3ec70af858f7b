"""What is written by hand against the library that could replace it: IVF index, spreader, block eigensolver.

python benchmarks/by_hand.py                     # all three
python benchmarks/by_hand.py ivf spreader eigen  # some of them
python benchmarks/by_hand.py --small             # small sizes, to see that it runs; no conclusions

Needs ``pip install ".[benchmark]"`` (faiss-cpu, finufft). Both sides get the same input and two threads (the library
one, where that is faster for it), take turns, and are tuned to the same accuracy. Times are medians of five runs after
a warm-up; "same bits" compares the results at one and at two threads. Data: MNIST reduced to 50 dimensions if
``LAPTSNE_DATA`` names the folder that has it, else a Gaussian mixture of the same shape.

- ivf: ``IVFIndex`` against faiss' ``IndexIVFFlat`` with as many lists and the same amount of k-means, k = 90; build and
  search together. ``nprobe`` is the smallest at which faiss reaches the recall of ``IVFIndex``, which calibrates itself
  within the time shown; the search for ``nprobe`` is not counted.
- spreader: ``spread`` and ``interpolate`` against finufft on the grid of ``FourierFields``, with finufft's kernel of the same
  width (``spreadinterponly``); then the whole field of unit charges with its gradient, FFTs included, against type 1
  and type 2 transforms at the largest ``eps`` that is as accurate, judged by direct sums at some points. Plans of
  finufft are kept; points are set each time, since they move in every iteration.
- eigen: ``largest_eigenpairs`` against ``scipy.sparse.linalg.lobpcg`` on the normalised affinities, from the same
  coarse start and with the same product, until the wanted pairs have the same residual; and on copies of one graph
  side by side, each eigenvalue of which is repeated exactly.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft
import scipy.linalg
import scipy.sparse
from data import enlarged_mnist, mixture
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, lobpcg
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from laptsne._runtime.threads import Workers
from laptsne.embedding.fields import FourierFields
from laptsne.embedding.fields.grid import n_cells, period
from laptsne.embedding.fields.stencil import interpolate, spread
from laptsne.embedding.fields.window import ExponentialSemicircle
from laptsne.graph.affinity import joint_affinities
from laptsne.graph.coarsening import coarse_eigenvectors
from laptsne.graph.eigensolver import largest_eigenpairs
from laptsne.graph.ivf import IVFIndex
from laptsne.graph.spectrum import normalised_similarity

Array = NDArray[Any]

THREADS = 2
REPEATS = 5

# As IVFIndex has it.
N_NEIGHBORS = 90
LLOYD_ITERATIONS = 6
SAMPLES_PER_LIST = 32

# As FourierFields has it.
SPACING, WIDTH = 0.35, 8
WINDOW = ExponentialSemicircle(WIDTH, 1.9 * WIDTH)
AS_ACCURATE = 1.25  # ratio of errors
STENCIL = {"spreadinterponly": 1, "upsampfac": 2.0}  # of finufft; the second decides the width for a tolerance

# As laptsne.graph.spectrum has it: eigenvalues, guard vectors, residual, bound on the products.
N_WANTED, GUARD, TOL, MAX_PASSES = 30, 4, 3e-3, 30

Side = Callable[[int], Any]  # called with the number of threads


def data(n: int) -> tuple[str, Array]:
    """MNIST where it is at hand, else a mixture of the same shape."""
    if os.environ.get("LAPTSNE_DATA"):
        return "MNIST", np.ascontiguousarray(enlarged_mnist(n)[0], dtype=np.float32)
    return "mixture", mixture(n)[0]


def alternating(ours: Callable[[Workers], Any], library: Side) -> tuple[float, float]:
    """Median seconds of both sides, which take turns after a warm-up.

    The library is timed at one and at two threads, and the faster counts: threads that wait by spinning cost it more
    than they bring where the blocks are narrow.
    """
    mine: list[float] = []
    others: dict[int, list[float]] = {1: [], THREADS: []}
    for _ in range(REPEATS + 1):
        # Our threads hold BLAS and OpenMP to one thread while they are open, so the library runs outside.
        with Workers(THREADS) as workers:
            mine.append(_seconds(lambda workers=workers: ours(workers)))
        for n_threads, taken in others.items():
            with threadpool_limits(n_threads):
                taken.append(_seconds(lambda n_threads=n_threads: library(n_threads)))
    return statistics.median(mine[1:]), min(statistics.median(taken[1:]) for taken in others.values())


def _seconds(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def same_bits(ours: Callable[[Workers], Any], library: Side) -> tuple[str, str]:
    """Whether each side returns the same bits at one and at two threads."""
    results: list[list[Any]] = [[], []]
    for n_threads in (1, THREADS, 1, THREADS):
        with Workers(n_threads) as workers:
            results[0].append(ours(workers))
        with threadpool_limits(n_threads):
            results[1].append(library(n_threads))
    equal = [all(_equal(found[0], other) for other in found[1:]) for found in results]
    return ("yes" if equal[0] else "no"), ("yes" if equal[1] else "no")


def _equal(a: Any, b: Any) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


# IVF index


def recall(true: Array, found: Array) -> float:
    """Share of the true neighbours that were found."""
    return float(np.mean([np.isin(a, b).mean() for a, b in zip(true, found, strict=True)]))


class Faiss:
    """IndexIVFFlat with as many lists as ours and the same amount of k-means."""

    def __init__(self, X: Array) -> None:
        self.X, self.n_lists, self.n_probes = X, int(2 * len(X) ** 0.5), 1

    def build(self, n_threads: int) -> Any:
        import faiss

        faiss.omp_set_num_threads(n_threads)
        index = faiss.IndexIVFFlat(faiss.IndexFlatL2(self.X.shape[1]), self.X.shape[1], self.n_lists)
        index.cp.niter, index.cp.max_points_per_centroid = LLOYD_ITERATIONS, SAMPLES_PER_LIST
        index.cp.min_points_per_centroid = 1  # only a warning depends on it
        index.train(self.X)
        index.add(self.X)
        return index

    def search(self, index: Any, rows: Array) -> Array:
        """Neighbours of some rows, which are not their own neighbours."""
        index.nprobe = self.n_probes
        found = index.search(self.X[rows], N_NEIGHBORS + 1)[1]
        own = found == rows[:, None]
        own[~own.any(axis=1), -1] = True  # crowded out by duplicates
        return found[~own].reshape(len(rows), -1)

    def __call__(self, n_threads: int) -> tuple[Array]:
        return (self.search(self.build(n_threads), np.arange(len(self.X))),)

    def reach(self, true: Array, rows: Array, wanted: float) -> float:
        """Raise nprobe until the recall is the wanted one; return the recall."""
        index = self.build(THREADS)
        reached = recall(true, self.search(index, rows))
        while reached < wanted and self.n_probes < self.n_lists:
            self.n_probes += 1
            reached = recall(true, self.search(index, rows))
        return reached


def compare_ivf(*, small: bool) -> None:
    name, X = data(5000 if small else 70_000)
    rows = np.random.default_rng(1).choice(len(X), 1000, replace=False)
    true = NearestNeighbors(n_neighbors=N_NEIGHBORS + 1, algorithm="brute").fit(X).kneighbors(X[rows])[1][:, 1:]

    def ours(workers: Workers) -> tuple[Array, Array]:
        return IVFIndex(X, workers).neighbors(N_NEIGHBORS, workers)

    with Workers(THREADS) as workers:
        our_recall = recall(true, ours(workers)[0][rows])
    library = Faiss(X)
    their_recall = library.reach(true, rows, our_recall)
    seconds = alternating(ours, library)
    bits = same_bits(ours, library)
    print(f"\nIVF, {name} {len(X):,} x {X.shape[1]}, k = {N_NEIGHBORS}, {library.n_lists} lists")
    print(f"{'':22} {'seconds':>9} {'recall':>8}  same bits")
    print(f"{'IVFIndex':22} {seconds[0]:9.3f} {our_recall:8.4f}  {bits[0]}")
    print(f"{f'faiss, nprobe {library.n_probes}':22} {seconds[1]:9.3f} {their_recall:8.4f}  {bits[1]}")
    print(f"ours / faiss: {seconds[0] / seconds[1]:.2f}", flush=True)


# Spreader


def cloud(n: int) -> Array:
    """A Gaussian cloud of the span that maps of n points have."""
    Y = np.random.default_rng(0).normal(size=(n, 2))
    return Y * (1.2 * n**0.5 / np.ptp(Y, axis=0).max())


class Grid:
    """The grid of FourierFields around a cloud, and the points on it: in cells for us, in radians for finufft."""

    def __init__(self, Y: Array) -> None:
        low, extent = Y.min(axis=0), np.ptp(Y, axis=0)
        self.cells = tuple(n_cells(float(side), SPACING, WIDTH) for side in extent)
        self.u = np.ascontiguousarray(((Y - low) / SPACING + (WIDTH // 2 - 1)).T)
        # Axes of finufft's grids are in the order of its coordinates.
        self.x = [((u / n - 0.5) * 2 * np.pi).astype(np.float32) for u, n in zip(self.u, self.cells, strict=True)]


class Transform:
    """A transform of finufft. Its plans are kept from call to call, as our grids are; its points are new each time."""

    def __init__(self, kind: int, shape: tuple[int, ...], eps: float, **options: Any) -> None:
        self.arguments = {"nufft_type": kind, "n_modes_or_dim": shape, "eps": eps, "dtype": "complex64"}
        self.arguments |= {"showwarn": 0} | options
        self.plans: dict[int, Any] = {}

    def __call__(self, points: list[Array], values: Array, n_threads: int) -> Array:
        import finufft

        if n_threads not in self.plans:
            self.plans[n_threads] = finufft.Plan(**self.arguments, nthreads=n_threads)
        plan = self.plans[n_threads]
        plan.setpts(*points)
        return np.asarray(plan.execute(values))


def eps_of_width(width: int) -> float:
    """The largest tolerance for which finufft's kernel is as wide."""
    point, charge = [np.full(1, 0.013, np.float32)] * 2, np.ones(1, np.complex64)
    for eps in 10.0 ** -np.arange(1, 8, 0.25):
        found = Transform(1, (64, 64), float(eps), **STENCIL)(point, charge, 1)
        if np.count_nonzero(np.abs(found).sum(axis=1)) >= width:
            return float(eps)
    raise RuntimeError(f"finufft has no kernel of {width} cells in single precision")


def compare_stencil(n: int, grid: Grid) -> None:
    """Spread one field; read one field with its gradient."""
    eps = eps_of_width(WIDTH)
    ones, charges = np.ones((1, n), np.float32), np.ones(n, np.complex64)
    with Workers(THREADS) as workers:
        grids = spread(WINDOW, grid.u, ones, grid.cells, workers)
    # finufft reads complex grids, without gradients: the value and one slope share a grid, the other has its own.
    two = np.ascontiguousarray(np.stack([grids[0].T] * 2), dtype=np.complex64)
    spreading = Transform(1, grid.cells, eps, **STENCIL)
    reading = Transform(2, grid.cells, eps, **STENCIL, n_trans=2)

    def our_spread(workers: Workers) -> tuple[Array]:
        return (spread(WINDOW, grid.u, ones, grid.cells, workers),)

    def our_read(workers: Workers) -> tuple[Array, Array]:
        return interpolate(WINDOW, grid.u, grids, ones, workers)

    def their_spread(n_threads: int) -> tuple[Array]:
        return (spreading(grid.x, charges, n_threads),)

    def their_read(n_threads: int) -> tuple[Array]:
        return (reading(grid.x, two, n_threads),)

    for title, ours, library in (("spread", our_spread, their_spread), ("read with gradient", our_read, their_read)):
        report(title, alternating(ours, library), same_bits(ours, library))


def report(title: str, seconds: tuple[float, float], bits: tuple[str, str], note: str = "") -> None:
    ratio = f"{seconds[0] / seconds[1]:7.2f}"
    print(
        f"{title:22} {1e3 * seconds[0]:9.2f} {1e3 * seconds[1]:9.2f} {ratio}  {bits[0]:4} {bits[1]:4} {note}",
        flush=True,
    )


class NUFFTField:
    """Field of unit charges and its gradient by transforms of type 1 and 2, on the periodic box of FourierFields."""

    def __init__(self, Y: Array, cells: tuple[int, ...]) -> None:
        self.modes = tuple(period(side, SPACING) for side in cells)
        box = np.array(self.modes) * SPACING
        centred = Y - (Y.max(axis=0) + Y.min(axis=0)) / 2
        self.points = [
            (2 * np.pi / side * column).astype(np.float32) for side, column in zip(box, centred.T, strict=True)
        ]
        self.charges = np.ones(len(Y), np.complex64)
        # Modes from -n / 2 on, the order of finufft.
        offset = [(np.arange(n) - n // 2) * SPACING for n in self.modes]
        kernel = 1 / (1 + offset[0][:, None] ** 2 + offset[1] ** 2)
        spectrum = scipy.fft.fftshift(scipy.fft.fftn(scipy.fft.ifftshift(kernel))).real / np.prod(self.modes)
        omega = [2 * np.pi / side * (np.arange(n) - n // 2) for side, n in zip(box, self.modes, strict=True)]
        # Real fields a and b are read as a + ib: the value with the slope along x, and the slope along y.
        self.factors = np.stack([spectrum * (1 - omega[0][:, None]), spectrum * (1j * omega[1])]).astype(np.complex64)

    def plan(self, eps: float) -> None:
        self.forward = Transform(1, self.modes, eps, isign=-1)
        self.back = Transform(2, self.modes, eps, isign=1, n_trans=2)

    def __call__(self, n_threads: int) -> tuple[Array, Array]:
        modes = self.forward(self.points, self.charges, n_threads)
        found = self.back(self.points, self.factors * modes, n_threads)
        return found[0].real - 1, np.column_stack([found[0].imag, found[1].real])


def direct(Y: Array, rows: Array) -> tuple[Array, Array]:
    """Degrees and their gradients at some points, by sums over all pairs in double precision."""
    degrees, slopes = np.empty(rows.size), np.empty((rows.size, 2))
    for at, i in enumerate(rows):
        difference = Y[i] - Y
        k = 1 / (1 + (difference**2).sum(axis=1))
        degrees[at] = k.sum() - 1
        slopes[at] = -2 * (k**2) @ difference
    return degrees, slopes


def errors(found: tuple[Array, Array], true: tuple[Array, Array], rows: Array) -> tuple[float, float]:
    """Relative errors of the degrees and of their gradients."""
    return tuple(float(np.linalg.norm(a[rows] - b) / np.linalg.norm(b)) for a, b in zip(found, true, strict=True))  # type: ignore[return-value]


def compare_field(Y: Array, grid: Grid) -> None:
    """The whole field of unit charges: degrees and their gradient."""
    rows = np.random.default_rng(1).choice(len(Y), 300, replace=False)
    true = direct(Y, rows)

    def ours(workers: Workers) -> tuple[Array, Array]:
        fields = FourierFields(Y, workers)
        return fields.degrees, fields.slope

    with Workers(THREADS) as workers:
        our_error = errors(ours(workers), true, rows)
    library = NUFFTField(Y, grid.cells)
    for eps in 10.0 ** -np.arange(3, 7, 0.5):
        library.plan(float(eps))
        their_error = errors(library(THREADS), true, rows)
        if all(theirs <= AS_ACCURATE * mine for theirs, mine in zip(their_error, our_error, strict=True)):
            break
    note = f" errors {our_error[0]:.0e} {our_error[1]:.0e} | {their_error[0]:.0e} {their_error[1]:.0e} (eps {eps:.0e})"
    report("whole field", alternating(ours, library), same_bits(ours, library), note)


def compare_spreader(*, small: bool) -> None:
    for n in (5000,) if small else (70_000, 1_000_000):
        Y = cloud(n)
        grid = Grid(Y)
        print(f"\nSpreader, {n:,} points on {grid.cells[0]} x {grid.cells[1]} cells, windows of {WIDTH}")
        print(f"{'':22} {'ours (ms)':>9} {'finufft':>9} {'ratio':>7}  same bits")
        compare_stencil(n, grid)
        compare_field(Y, grid)


# Block eigensolver


class Operator:
    """Products of a graph with blocks of vectors, counted."""

    def __init__(self, graph: Any) -> None:
        self.graph, self.n_products, self.n_vectors = graph, 0, 0

    def columns(self, block: Array) -> Array:
        block = block.reshape(len(block), -1)
        self.n_products += 1
        self.n_vectors += block.shape[1]
        return np.asarray(self.graph @ np.ascontiguousarray(block))

    def rows(self, block: Array) -> Array:
        return np.ascontiguousarray(self.columns(block.T).T)


class Eigenproblem:
    """The largest eigenpairs of a graph but the first, which is known."""

    def __init__(self, graph: Any, roots: Array) -> None:
        self.graph = graph
        self.known = (roots / np.linalg.norm(roots)).astype(np.float32)
        with Workers(THREADS) as workers:
            self.start = coarse_eigenvectors(graph, self.known, N_WANTED + GUARD, workers)
        self.n_iterations = MAX_PASSES

    def ours(self, workers: Workers, operator: Operator | None = None) -> tuple[Array, Array]:
        operator = operator or Operator(self.graph)
        options = {"known": self.known, "tol": TOL, "max_passes": MAX_PASSES}
        pairs = largest_eigenpairs(operator.rows, self.start, N_WANTED, **options)
        return pairs.values[:N_WANTED], pairs.vectors[:N_WANTED].T

    def library(self, n_threads: int, operator: Operator | None = None, **options: Any) -> tuple[Array, ...]:
        operator = operator or Operator(self.graph)
        matrix = LinearOperator(self.graph.shape, matvec=operator.columns, matmat=operator.columns, dtype=np.float32)
        options = {"tol": TOL, "maxiter": self.n_iterations} | options
        start, known = self.start.T.copy(), self.known[:, None].copy()  # lobpcg works in place
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the guard vectors have not converged
            found = lobpcg(matrix, start, Y=known, largest=True, **options)
        return (found[0][:N_WANTED], found[1][:, :N_WANTED], *found[2:])

    def stop_at_the_wanted(self) -> None:
        """Let LOBPCG run no longer than it needs for the wanted pairs; its own rule waits for all of the block."""
        _, _, values, norms = self.library(THREADS, retLambdaHistory=True, retResidualNormsHistory=True)
        wanted = [norm[np.argsort(-value)[:N_WANTED]] for value, norm in zip(values, norms, strict=False)]
        done = [i for i, norm in enumerate(wanted) if norm.max() <= TOL]
        self.n_iterations = max(done[0], 1) if done else MAX_PASSES

    def residual(self, values: Array, vectors: Array) -> float:
        vectors = np.asarray(vectors, np.float64)
        image = self.graph.astype(np.float64) @ vectors
        return float(np.linalg.norm(image - vectors * values, axis=0).max())


def compare_pairs(title: str, problem: Eigenproblem, true: Array | None = None) -> None:
    problem.stop_at_the_wanted()
    counted = Operator(problem.graph), Operator(problem.graph)
    with Workers(THREADS) as workers:
        ours = problem.ours(workers, counted[0])
    theirs = problem.library(THREADS, counted[1])
    seconds = alternating(problem.ours, problem.library)
    bits = same_bits(problem.ours, problem.library)
    print(f"\nEigensolver, {title}, {N_WANTED} pairs, residual {TOL}")
    print(f"{'':22} {'seconds':>9} {'products':>9} {'vectors':>8} {'residual':>9} {'error':>9}  same bits")
    for name, found, count, time_taken, same in zip(
        ("largest_eigenpairs", "lobpcg"), (ours, theirs), counted, seconds, bits, strict=True
    ):
        wrong = "" if true is None else f"{np.abs(np.sort(found[0])[::-1] - true).max():.1e}"
        work = f"{count.n_products:9} {count.n_vectors:8}"
        print(f"{name:22} {time_taken:9.3f} {work} {problem.residual(*found[:2]):9.1e} {wrong:>9}  {same}")
    print(f"ours / lobpcg: {seconds[0] / seconds[1]:.2f}", flush=True)


def graph_of(X: Array, perplexity: float) -> tuple[Any, Array]:
    """Normalised affinities, and the square roots of the degrees."""
    P = joint_affinities(X, perplexity=perplexity)
    return normalised_similarity(P).astype(np.float32), np.sqrt(np.asarray(P.sum(axis=1), dtype=np.float64).ravel())


def compare_eigen(*, small: bool) -> None:
    name, X = data(3000 if small else 70_000)
    compare_pairs(f"{name} {len(X):,}", Eigenproblem(*graph_of(X, 30.0)))
    n_copies, n_nodes = 12, 200 if small else 1000
    one, roots = graph_of(np.random.default_rng(0).normal(size=(n_nodes, 5)), 10.0)
    repeated = np.repeat(scipy.linalg.eigvalsh(one.toarray().astype(np.float64))[::-1], n_copies)
    copies = scipy.sparse.block_diag([one] * n_copies, format="csr")
    problem = Eigenproblem(copies, np.tile(roots, n_copies))
    compare_pairs(f"{n_copies} copies of a graph of {n_nodes:,}", problem, repeated[1 : N_WANTED + 1])


PARTS = {"ivf": compare_ivf, "spreader": compare_spreader, "eigen": compare_eigen}


def main() -> None:
    parser = argparse.ArgumentParser(description="What is written by hand against the library that could replace it.")
    parser.add_argument("parts", nargs="*", help=", ".join(PARTS), default=list(PARTS))
    parser.add_argument("--small", action="store_true", help="small sizes")
    given = parser.parse_args()
    for part in given.parts:
        if part not in PARTS:
            parser.error(f"{part} is none of {', '.join(PARTS)}")
        PARTS[part](small=given.small)


if __name__ == "__main__":
    main()
