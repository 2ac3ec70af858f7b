"""What does code of our own buy, where a library could replace it?

python benchmarks/by_hand.py                     # all parts: half an hour
python benchmarks/by_hand.py ivf spreader eigen  # a selection
python benchmarks/by_hand.py --small             # small sizes, as a smoke test: a minute; times are meaningless

Needs ``pip install ".[benchmark]"`` (faiss-cpu, finufft). Both sides use the same input and two threads (one for the
library if that is faster for it), alternate, and are tuned to the same accuracy. Times are medians of five runs after a
warm-up; "same bits" tells whether one and two threads return identical results. The data are MNIST reduced to 50
dimensions if ``LAPTSNE_DATA`` names its directory, otherwise a Gaussian mixture of the same shape.

- neighbors: ``IVFIndex`` compared with scikit-learn's exact search, by the number of points; its recall at 1,000 random
  points.
- ivf: ``IVFIndex`` compared with faiss' ``IndexIVFFlat`` with the same number of lists and the same k-means effort,
  k = 90; build and search together. ``nprobe`` is the smallest value at which faiss reaches the recall of ``IVFIndex``.
  The time includes the calibration of ``IVFIndex``, but not the search for ``nprobe``.
- spreader: ``Mesh`` compared with finufft on the grid of ``FourierFields``, with a kernel of the
  same width (``spreadinterponly``); then the whole field of unit charges and its gradient, including FFTs, compared
  with transforms of type 1 and 2 at the largest ``eps`` with the same accuracy, measured against direct sums at some
  points. Plans of finufft are reused; points are set in each call, since they move in each iteration.
- eigen: ``largest_eigenpairs`` compared with ``scipy.sparse.linalg.lobpcg`` on the normalised affinities, with the same
  coarse starting block and operator, until the wanted pairs have the same residual; and on a graph that consists of
  copies of another one, so that each eigenvalue is repeated exactly.
"""

from __future__ import annotations

import argparse
import os
import statistics
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.fft
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, lobpcg
from shared import THREADS, command_line, median_seconds, mixture, points, seconds
from sklearn.neighbors import NearestNeighbors
from sums import cloud
from threadpoolctl import threadpool_limits

from laptsne import LaptSNE
from laptsne._runtime.threads import Workers
from laptsne.fields import FourierFields
from laptsne.fields.grid import STUDENT, Mesh, period
from laptsne.fields.spreading import ExponentialSemicircle
from laptsne.graph.ivf import IVFIndex
from laptsne.graph.spectrum import coarse_eigenvectors, largest_eigenpairs, normalised_similarity

Array = NDArray[Any]

REPEATS = 5


# As in IVFIndex.
N_NEIGHBORS = 90
LLOYD_ITERATIONS = 6
SAMPLES_PER_LIST = 32

# As in FourierFields.
SPACING, WIDTH = 0.35, 8
WINDOW = ExponentialSemicircle(WIDTH, 1.9 * WIDTH)
MAX_ERROR_RATIO = 1.25  # of finufft to ours
STENCIL = {"spreadinterponly": 1, "upsampfac": 2.0}  # finufft; upsampfac determines the width for a tolerance

# As in laptsne.graph.spectrum: eigenvalues, guard vectors, residual, maximum number of products.
N_WANTED, GUARD, TOL, MAX_PASSES = 30, 4, 3e-3, 30


def data(n: int) -> tuple[str, Array]:
    """Return the name and the features of the data: MNIST if available, otherwise a mixture of the same shape."""
    if os.environ.get("LAPTSNE_DATA"):
        return "MNIST", np.ascontiguousarray(points("mnist", n)[0], dtype=np.float32)
    return "mixture", mixture(n)[0]


@dataclass
class Comparison:
    """Our implementation and a library's: median seconds, and whether one and two threads give the same bits."""

    seconds: tuple[float, float]
    same_bits: tuple[str, str]

    @classmethod
    def of(cls, ours: Callable[[Workers], Any], library: Callable[[int], Any], repeats: int) -> Comparison:
        """Compare functions that return sequences of arrays; the library's is called with the number of threads."""
        return cls(_alternating(ours, library, repeats), _same_bits(ours, library))

    @property
    def ratio(self) -> float:
        """Our time relative to the library's."""
        return self.seconds[0] / self.seconds[1]


def _alternating(ours: Callable[[Workers], Any], library: Callable[[int], Any], repeats: int) -> tuple[float, float]:
    """Time both in turn, after a warm-up.

    The library is timed with one and with two threads, and the faster counts: threads that spin while they wait cost
    more than they gain if blocks are narrow.
    """
    mine: list[float] = []
    others: dict[int, list[float]] = {1: [], THREADS: []}
    for _ in range(repeats + 1):
        # Open workers limit BLAS and OpenMP to one thread, so the library runs outside.
        with Workers(THREADS) as workers:
            mine.append(seconds(lambda workers=workers: ours(workers)))
        for n_threads, taken in others.items():
            with threadpool_limits(n_threads):
                taken.append(seconds(lambda n_threads=n_threads: library(n_threads)))
    return statistics.median(mine[1:]), min(statistics.median(taken[1:]) for taken in others.values())


def _same_bits(ours: Callable[[Workers], Any], library: Callable[[int], Any]) -> tuple[str, str]:
    results: tuple[list[Any], list[Any]] = [], []
    for n_threads in (1, THREADS, 1, THREADS):
        with Workers(n_threads) as workers:
            results[0].append(ours(workers))
        with threadpool_limits(n_threads):
            results[1].append(library(n_threads))
    return _identical(results[0]), _identical(results[1])


def _identical(results: list[Any]) -> str:
    same = all(np.array_equal(a, b) for other in results[1:] for a, b in zip(results[0], other, strict=True))
    return "yes" if same else "no"


# Nearest neighbours


def true_neighbors(X: NDArray[Any], n_neighbors: int, rows: NDArray[Any]) -> NDArray[Any]:
    """Return the exact neighbours of some rows, without the rows themselves."""
    return NearestNeighbors(n_neighbors=n_neighbors + 1, algorithm="brute").fit(X).kneighbors(X[rows])[1][:, 1:]


def recall(true: NDArray[Any], found: NDArray[Any]) -> float:
    """Return the fraction of the true neighbours that were found."""
    return float(np.mean([np.isin(a, b).mean() for a, b in zip(true, found, strict=True)]))


def compare_neighbors(*, small: bool) -> None:
    """Print time and recall of approximate neighbours, and the time of exact ones."""
    cases = (
        [("mixture", 5000)] if small else [*(("mnist", n) for n in (5000, 10_000, 20_000, 70_000)), ("mixture", 70_000)]
    )
    print(f"{'data':8} {'N':>7} {'k':>4} {'IVF':>7} {'exact':>7} (s) {'recall':>7}")
    with Workers(THREADS) as workers:
        IVFIndex(mixture(3000)[0], workers).neighbors(10, workers)
        for kind, n in cases:
            X, _ = points(kind, n)
            ours = median_seconds(lambda X=X: IVFIndex(X, workers).neighbors(N_NEIGHBORS, workers), REPEATS)
            search = NearestNeighbors(n_neighbors=N_NEIGHBORS, n_jobs=THREADS)
            exact = median_seconds(lambda X=X, search=search: search.fit(X).kneighbors(), REPEATS)
            rows = np.random.default_rng(1).choice(n, 1000, replace=False)
            found = IVFIndex(X, workers).neighbors(N_NEIGHBORS, workers)[0][rows]
            share = recall(true_neighbors(X, N_NEIGHBORS, rows), found)
            print(f"{kind:8} {n:7} {N_NEIGHBORS:4} {ours:7.2f} {exact:7.2f}     {share:7.4f}", flush=True)


# IVF index


class Faiss:
    """IndexIVFFlat with as many lists as ours and the same k-means effort."""

    def __init__(self, X: Array) -> None:
        self.X, self.n_lists, self.n_probes = X, int(2 * len(X) ** 0.5), 1

    def build(self, n_threads: int) -> Any:
        import faiss

        faiss.omp_set_num_threads(n_threads)
        index = faiss.IndexIVFFlat(faiss.IndexFlatL2(self.X.shape[1]), self.X.shape[1], self.n_lists)
        index.cp.niter, index.cp.max_points_per_centroid = LLOYD_ITERATIONS, SAMPLES_PER_LIST
        index.cp.min_points_per_centroid = 1  # no warning
        index.train(self.X)
        index.add(self.X)
        return index

    def search(self, index: Any, rows: Array) -> Array:
        """Return the neighbours of some rows, without the rows themselves."""
        index.nprobe = self.n_probes
        found = index.search(self.X[rows], N_NEIGHBORS + 1)[1]
        own = found == rows[:, None]
        own[~own.any(axis=1), -1] = True  # crowded out by duplicates
        return found[~own].reshape(len(rows), -1)

    def __call__(self, n_threads: int) -> tuple[Array]:
        return (self.search(self.build(n_threads), np.arange(len(self.X))),)

    def reach(self, true: Array, rows: Array, wanted: float) -> float:
        """Increase nprobe until the wanted recall is reached; return the recall."""
        index = self.build(THREADS)
        reached = recall(true, self.search(index, rows))
        while reached < wanted and self.n_probes < self.n_lists:
            self.n_probes += 1
            reached = recall(true, self.search(index, rows))
        return reached


def compare_ivf(*, small: bool) -> None:
    name, X = data(5000 if small else 70_000)
    rows = np.random.default_rng(1).choice(len(X), 1000, replace=False)
    true = true_neighbors(X, N_NEIGHBORS, rows)

    def ours(workers: Workers) -> tuple[Array, Array]:
        return IVFIndex(X, workers).neighbors(N_NEIGHBORS, workers)

    with Workers(THREADS) as workers:
        our_recall = recall(true, ours(workers)[0][rows])
    library = Faiss(X)
    their_recall = library.reach(true, rows, our_recall)
    found = Comparison.of(ours, library, REPEATS)
    print(f"\nIVF, {name} {len(X):,} x {X.shape[1]}, k = {N_NEIGHBORS}, {library.n_lists} lists")
    print(f"{'':22} {'seconds':>9} {'recall':>8}  same bits")
    print(f"{'IVFIndex':22} {found.seconds[0]:9.3f} {our_recall:8.4f}  {found.same_bits[0]}")
    title = f"faiss, nprobe {library.n_probes}"
    print(f"{title:22} {found.seconds[1]:9.3f} {their_recall:8.4f}  {found.same_bits[1]}")
    print(f"ours / faiss: {found.ratio:.2f}", flush=True)


# Spreader


class Grid:
    """The mesh of FourierFields, and the coordinates of the points: ``y``, and ``x`` in radians for finufft."""

    def __init__(self, Y: Array) -> None:
        self.y = np.ascontiguousarray(Y.T)
        mesh = self.mesh(Workers(1))
        # finufft orders the axes of its grids as the coordinates.
        positions = zip(mesh.positions(self.y), mesh.cells, strict=True)
        self.x, self.cells = [((u / n - 0.5) * 2 * np.pi).astype(np.float32) for u, n in positions], mesh.cells

    def mesh(self, workers: Workers) -> Mesh:
        return Mesh.bounding(self.y, SPACING, workers, STUDENT, WINDOW, 1 << 28)


class Transform:
    """A transform of finufft that reuses its plans, as FourierFields reuses grids, and sets the points in each call."""

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
    """Return the largest tolerance for which finufft's kernel is at least this wide."""
    point, charge = [np.full(1, 0.013, np.float32)] * 2, np.ones(1, np.complex64)
    for eps in 10.0 ** -np.arange(1, 8, 0.25):
        found = Transform(1, (64, 64), float(eps), **STENCIL)(point, charge, 1)
        if np.count_nonzero(np.abs(found).sum(axis=1)) >= width:
            return float(eps)
    raise RuntimeError(f"finufft has no kernel with a width of {width} cells in single precision")


def compare_stencil(n: int, grid: Grid) -> None:
    """Compare spreading of one field, and interpolation of one field with its gradient."""
    eps = eps_of_width(WIDTH)
    ones, charges = np.ones((1, n), np.float32), np.ones(n, np.complex64)
    with Workers(THREADS) as workers:
        grids = grid.mesh(workers).spread(grid.y, ones)
    # finufft interpolates complex grids, without gradients: value and one derivative share a grid, the other has one.
    two = np.ascontiguousarray(np.stack([grids[0].T] * 2), dtype=np.complex64)
    spreading = Transform(1, grid.cells, eps, **STENCIL)
    interpolating = Transform(2, grid.cells, eps, **STENCIL, n_trans=2)
    spreaders = Comparison.of(
        lambda workers: (grid.mesh(workers).spread(grid.y, ones),),
        lambda n_threads: (spreading(grid.x, charges, n_threads),),
        REPEATS,
    )
    report("spread", spreaders)
    interpolators = Comparison.of(
        lambda workers: grid.mesh(workers).with_gradient(grid.y, grids, ones),
        lambda n_threads: (interpolating(grid.x, two, n_threads),),
        REPEATS,
    )
    report("interpolate, gradient", interpolators)


def report(title: str, found: Comparison, note: str = "") -> None:
    times = "".join(f" {1e3 * taken:9.2f}" for taken in found.seconds)
    bits = " ".join(f"{same:4}" for same in found.same_bits)
    print(f"{title:22}{times} {found.ratio:7.2f}  {bits} {note}", flush=True)


class NUFFTField:
    """Field of unit charges and its gradient by transforms of type 1 and 2, in the periodic box of FourierFields."""

    def __init__(self, Y: Array, cells: tuple[int, ...]) -> None:
        self.modes = tuple(period(side, SPACING) for side in cells)
        box = np.array(self.modes) * SPACING
        centred = Y - (Y.max(axis=0) + Y.min(axis=0)) / 2
        self.points = [
            (2 * np.pi / side * column).astype(np.float32) for side, column in zip(box, centred.T, strict=True)
        ]
        self.charges = np.ones(len(Y), np.complex64)
        # Modes from -n / 2 on, as in finufft.
        offset = [(np.arange(n) - n // 2) * SPACING for n in self.modes]
        kernel = 1 / (1 + offset[0][:, None] ** 2 + offset[1] ** 2)
        spectrum = scipy.fft.fftshift(scipy.fft.fftn(scipy.fft.ifftshift(kernel))).real / np.prod(self.modes)
        omega = [2 * np.pi / side * (np.arange(n) - n // 2) for side, n in zip(box, self.modes, strict=True)]
        # Real fields a and b are interpolated as a + ib: value and derivative along x; then the derivative along y.
        self.factors = np.stack([spectrum * (1 - omega[0][:, None]), spectrum * (1j * omega[1])]).astype(np.complex64)

    def plan(self, eps: float) -> None:
        self.forward = Transform(1, self.modes, eps, isign=-1)
        self.back = Transform(2, self.modes, eps, isign=1, n_trans=2)

    def __call__(self, n_threads: int) -> tuple[Array, Array]:
        modes = self.forward(self.points, self.charges, n_threads)
        found = self.back(self.points, self.factors * modes, n_threads)
        return found[0].real - 1, np.column_stack([found[0].imag, found[1].real])


def direct(Y: Array, rows: Array) -> tuple[Array, Array]:
    """Return degrees and their gradients at some points, summed over all pairs in double precision."""
    degrees, slopes = np.empty(rows.size), np.empty((rows.size, 2))
    for at, i in enumerate(rows):
        difference = Y[i] - Y
        k = 1 / (1 + (difference**2).sum(axis=1))
        degrees[at] = k.sum() - 1
        slopes[at] = -2 * (k**2) @ difference
    return degrees, slopes


def errors(found: tuple[Array, Array], true: tuple[Array, Array], rows: Array) -> tuple[float, float]:
    """Return the relative errors of the degrees and of their gradients."""
    return tuple(float(np.linalg.norm(a[rows] - b) / np.linalg.norm(b)) for a, b in zip(found, true, strict=True))  # type: ignore[return-value]


def compare_field(Y: Array, grid: Grid) -> None:
    """Compare the whole field of unit charges: degrees and their gradient."""
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
        if all(theirs <= MAX_ERROR_RATIO * mine for theirs, mine in zip(their_error, our_error, strict=True)):
            break
    note = f" errors {our_error[0]:.0e} {our_error[1]:.0e} | {their_error[0]:.0e} {their_error[1]:.0e} (eps {eps:.0e})"
    report("whole field", Comparison.of(ours, library, REPEATS), note)


def compare_spreader(*, small: bool) -> None:
    for n in (5000,) if small else (70_000, 1_000_000):
        Y = cloud(n, 2, 1.2 * n**0.5)  # the span of an embedding of n points
        grid = Grid(Y)
        print(f"\nSpreader, {n:,} points on {grid.cells[0]} x {grid.cells[1]} cells, windows of {WIDTH}")
        print(f"{'':22} {'ours (ms)':>9} {'finufft':>9} {'ratio':>7}  same bits")
        compare_stencil(n, grid)
        compare_field(Y, grid)


# Block eigensolver


class Operator:
    """Products of a graph with blocks of vectors, and their number."""

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
    """The largest eigenpairs of a graph, except the first, which is known."""

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

    def limit_iterations(self) -> None:
        """Stop LOBPCG once the wanted pairs have converged; by itself it waits for the whole block."""
        _, _, values, norms = self.library(THREADS, retLambdaHistory=True, retResidualNormsHistory=True)
        wanted = [norm[np.argsort(-value)[:N_WANTED]] for value, norm in zip(values, norms, strict=False)]
        done = [i for i, norm in enumerate(wanted) if norm.max() <= TOL]
        self.n_iterations = max(done[0], 1) if done else MAX_PASSES

    def residual(self, values: Array, vectors: Array) -> float:
        vectors = np.asarray(vectors, np.float64)
        image = self.graph.astype(np.float64) @ vectors
        return float(np.linalg.norm(image - vectors * values, axis=0).max())


def compare_pairs(title: str, problem: Eigenproblem, true: Array | None = None) -> None:
    problem.limit_iterations()
    counted = Operator(problem.graph), Operator(problem.graph)
    with Workers(THREADS) as workers:
        ours = problem.ours(workers, counted[0])
    theirs = problem.library(THREADS, counted[1])
    compared = Comparison.of(problem.ours, problem.library, REPEATS)
    print(f"\nEigensolver, {title}, {N_WANTED} pairs, residual {TOL}")
    print(f"{'':22} {'seconds':>9} {'products':>9} {'vectors':>8} {'residual':>9} {'error':>9}  same bits")
    names = "largest_eigenpairs", "lobpcg"
    rows = zip(names, (ours, theirs), counted, compared.seconds, compared.same_bits, strict=True)
    for name, found, count, taken, same in rows:
        error = "" if true is None else f"{np.abs(np.sort(found[0])[::-1] - true).max():.1e}"
        work = f"{count.n_products:9} {count.n_vectors:8}"
        print(f"{name:22} {taken:9.3f} {work} {problem.residual(*found[:2]):9.1e} {error:>9}  {same}")
    print(f"ours / lobpcg: {compared.ratio:.2f}", flush=True)


def graph_of(X: Array, perplexity: float) -> tuple[Any, Array]:
    """Return the normalised affinities and the square roots of the degrees."""
    P = LaptSNE(contraction=0, perplexity=perplexity, max_iter=1).fit(X).affinities_
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


PARTS = {
    "neighbors": compare_neighbors,
    "ivf": compare_ivf,
    "spreader": compare_spreader,
    "eigen": compare_eigen,
}


def parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__)
    parser.add_argument("parts", nargs="*", help=f"{', '.join(PARTS)}; all by default")
    parser.add_argument("--small", action="store_true", help="small sizes, as a smoke test")
    return parser


def main() -> None:
    given = parser().parse_args()
    unknown = set(given.parts) - set(PARTS)
    if unknown:
        raise SystemExit(f"unknown parts {sorted(unknown)}; choose from {', '.join(PARTS)}")
    for part in given.parts or PARTS:
        PARTS[part](small=given.small)


if __name__ == "__main__":
    main()
