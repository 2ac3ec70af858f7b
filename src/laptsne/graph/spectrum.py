"""Spectrum of the normalised graph Laplacian: components, eigensolvers, the eigengap, coordinates, and an order."""

import inspect
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches

from laptsne._runtime.compiled import compiled
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array, Floats
from laptsne._runtime.warn import warn

MAX_CLUSTERS = 30
MAX_ARPACK = 20_000  # nodes beyond which a block method started from a coarse graph is faster than ARPACK
_BULK, _NEARLY = 0.1, 0.75  # eigenvalues well above it are no clusters; share of the largest gap that is as good
_MAX_DENSE = 300  # nodes up to which a dense solver is as fast
_NEGLIGIBLE = 1e-7  # smaller similarities change no eigenvalue by more than 1e-5
_BLOCK, _SPARSE_BLOCK = 1024, 1 << 14  # rows of a dense matrix, and of a sparse one
_ARPACK_TOL, _MAX_RESTARTS = 1e-4, 300
_BLOCK_TOL, _MAX_PASSES, _GUARD = 3e-3, 30, 4  # the last are vectors beyond the wanted ones for faster convergence
_MAX_AGGREGATES, _NODES_PER_AGGREGATE = 1500, 25
MAX_UNORDERED = 100_000  # nodes beyond which an embedding does not fit into the L2 cache
_MAX_SWEEPS = 100  # bounds the diameter of an aggregate
_MAX_BLOCKS = 4  # size of the search space, in blocks, at which it is restarted from the current Ritz vectors
_GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))  # between successive components, which fills a disc evenly
# ARPACK continues with a random vector when it has exhausted its start; older versions of SciPy do not seed it.
_SEEDED = {"rng": 0} if "rng" in inspect.signature(scipy.sparse.linalg.eigsh).parameters else {}


class Spectrum(NamedTuple):
    """Smallest eigenpairs of a normalised graph Laplacian."""

    eigenvalues: Floats  # ascending, from 0
    eigenvectors: Floats  # orthonormal columns, of shape (n_samples, n_values)


@compiled
def _block_product_rows(start: int, stop: int, graph: Any, rows: Array, product: Array) -> None:
    """Multiply a CSR matrix and a block of column vectors."""
    indptr, indices, data = graph
    for i in range(start, stop):
        line = product[i]
        line[:] = 0
        for e in range(indptr[i], indptr[i + 1]):
            value, other = data[e], rows[indices[e]]
            for k in range(line.size):
                line[k] += value * other[k]


def laplacian_spectrum(P: Any, n_values: int, workers: Workers | None = None) -> Spectrum:
    """Compute the smallest eigenpairs of :math:`I - D^{-1/2} P D^{-1/2}` for a symmetric array or sparse matrix P."""
    n_values, workers, similarity = min(n_values, P.shape[0]), workers or Workers(1), normalised_similarity(P)
    component = components(similarity.indptr, similarity.indices, similarity.data)
    # The spectrum of a graph is the union of those of its components. Solved one by one, they spare the solver multiple
    # zeros. With n_values components or more, one zero of each is all that is wanted.
    largest = np.argsort(-np.bincount(component), kind="stable")[:n_values]
    per_part = 1 if largest.size == n_values else n_values
    roots = np.sqrt(np.asarray(P.sum(axis=1, dtype=np.float64)).ravel())
    found = []
    for members in (np.flatnonzero(component == part) for part in largest):
        part = _connected_spectrum(_subgraph(similarity, members), roots[members], per_part, workers)
        found += [(value, members, vector) for value, vector in zip(part[0], part[1].T, strict=True)]
    found = sorted(found, key=itemgetter(0))[:n_values]
    # Only the selected vectors are expanded to all nodes: those of all components would be many times as large.
    vectors = np.zeros((P.shape[0], len(found)))
    for column, (_, members, vector) in enumerate(found):
        vectors[members, column] = vector
    return Spectrum(np.array([value for value, _, _ in found]), vectors)


def normalised_similarity(P: Any) -> Any:
    """Return D^(-1/2) P D^(-1/2) as a CSR matrix; entries too small to affect an eigenvalue are 0."""
    degree = np.asarray(P.sum(axis=1, dtype=np.float64)).ravel()
    inverse_root = np.divide(1, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0).astype(P.dtype)
    if scipy.sparse.issparse(P):
        data = np.empty_like(P.data)
        for rows in gen_batches(P.shape[0], _SPARSE_BLOCK):
            entries = slice(P.indptr[rows.start], P.indptr[rows.stop])
            block = P.data[entries] * inverse_root[P.indices[entries]]
            block *= np.repeat(inverse_root[rows], np.diff(P.indptr[rows.start : rows.stop + 1]))
            block[block <= _NEGLIGIBLE] = 0  # kept as explicit zeros, since P shares the indices
            data[entries] = block
        return scipy.sparse.csr_matrix((data, P.indices, P.indptr), P.shape)
    dense = (P[rows] * inverse_root[rows, None] * inverse_root for rows in gen_batches(P.shape[0], _BLOCK))
    blocks = [scipy.sparse.csr_matrix(np.where(block > _NEGLIGIBLE, block, 0)) for block in dense]
    return scipy.sparse.vstack(blocks, format="csr")


def _subgraph(graph: Any, members: Array) -> Any:
    return graph if members.size == graph.shape[0] else graph[members][:, members]


def _product(graph: Any, columns: Array, workers: Workers) -> Array:
    """Return the product of a CSR matrix and columns in its precision."""
    arrays, product = (graph.indptr, graph.indices, graph.data), np.empty_like(columns)
    workers.rows(_block_product_rows, len(columns), arrays, columns, product, work=2.0 * graph.nnz * columns.shape[1])
    return product


def _connected_spectrum(similarity: Any, roots: Array, n_values: int, workers: Workers) -> tuple[Array, Array]:
    """Compute the smallest eigenpairs of the Laplacian of a connected graph."""
    n_samples = similarity.shape[0]
    if n_samples == 1:
        return np.zeros(1), np.ones((1, 1))
    if n_samples <= max(_MAX_DENSE, 2 * n_values):
        mu, vectors = scipy.linalg.eigh(similarity.toarray().astype(np.float64))
    elif n_samples > MAX_ARPACK:
        mu, vectors = _block_spectrum(similarity, roots, n_values, workers)
    else:
        mu, vectors = _arpack_spectrum(similarity, n_values)
    order = np.argsort(-mu)[:n_values]
    return (1 - mu[order]).clip(0, 2), vectors[:, order]


def _arpack_spectrum(similarity: Any, n_values: int) -> tuple[Array, Array]:
    """Compute the largest eigenpairs by ARPACK, with products in the precision of the affinities to save a copy."""

    def product(vector: Array) -> Array:
        return np.asarray(similarity @ vector.astype(similarity.dtype))

    operator = scipy.sparse.linalg.LinearOperator(similarity.shape, matvec=product, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(similarity.shape[0])
    options = {"which": "LA", "tol": _ARPACK_TOL, "v0": start, "maxiter": _MAX_RESTARTS, **_SEEDED}
    try:
        mu, vectors = scipy.sparse.linalg.eigsh(operator, n_values, **options)
    except scipy.sparse.linalg.ArpackNoConvergence as error:
        mu, vectors = error.eigenvalues, error.eigenvectors
        _warn_inaccurate(f"Only {mu.size} of {n_values} eigenvalues of the data's graph converged")
    return mu, vectors


def _block_spectrum(similarity: Any, roots: Array, n_values: int, workers: Workers) -> tuple[Array, Array]:
    """Compute the largest eigenpairs of a large graph by a block method started from its aggregates."""
    roots = (roots / np.linalg.norm(roots)).astype(np.float32)

    def product(block: Array) -> Array:
        return np.ascontiguousarray(_product(similarity, np.ascontiguousarray(block.T), workers).T)

    start = coarse_eigenvectors(similarity, roots, n_values - 1 + _GUARD, workers)
    options: Any = {"known": roots, "tol": _BLOCK_TOL, "max_passes": _MAX_PASSES}
    pairs = largest_eigenpairs(product, start, n_values - 1, **options)
    if pairs.residual > 10 * _BLOCK_TOL:
        _warn_inaccurate(f"The eigenvalues of the data's graph are accurate to {pairs.residual:.2g} only")
    mu = np.append(1.0, pairs.values[: n_values - 1])
    return mu, np.column_stack([roots, pairs.vectors[: n_values - 1].T]).astype(np.float64)


def _warn_inaccurate(what: str) -> None:
    warn(
        f"{what}; n_clusters='eigengap' and init='spectral' may be inaccurate. Set n_clusters and init='pca' to avoid "
        "them.",
        ConvergenceWarning,
    )


class Eigenpairs(NamedTuple):
    """Approximate eigenpairs, largest eigenvalue first; ``residual`` bounds the error of the wanted eigenvalues."""

    values: Floats
    vectors: Array  # orthonormal rows
    residual: float  # largest residual norm of the wanted pairs


def largest_eigenpairs(
    operator: Any, start: Array, n_wanted: int, *, known: Array, tol: float, max_passes: int
) -> Eigenpairs:
    """Compute the largest eigenpairs by the block Davidson method: Rayleigh-Ritz on a space grown by residuals.

    A block resolves multiple and clustered eigenvalues (Davidson, Journal of Computational Physics 17, 1975).
    ``operator`` maps a block of shape (m, n_samples), one vector per row, to its image, at most ``max_passes`` times.
    ``start`` has the shape (n_vectors, n_samples); rows beyond ``n_wanted`` speed up convergence, missing ones are
    random. All are orthogonal to the ``known`` eigenvector of unit norm. ``tol`` bounds the residual norms of the
    wanted pairs.
    """
    known = known[None].astype(start.dtype)
    n_vectors = min(max(len(start), n_wanted), start.shape[1] - 1)
    first = _orthonormal(start, [known])
    if (missing := n_vectors - len(first)) > 0:
        random = np.random.default_rng(0).standard_normal((missing, start.shape[1])).astype(start.dtype)
        first = np.vstack([first, _orthonormal(random, [known, first])])
    capacity = min(_MAX_BLOCKS, max_passes) * n_vectors
    space, image = np.empty((2, max(capacity, len(first)), start.shape[1]), start.dtype)
    size = len(first)
    space[:size], image[:size] = first, operator(first)
    del first, start
    for n_passes in range(1, max_passes + 1):
        values, mixing = np.linalg.eigh(space[:size] @ image[:size].T)
        values, mixing = values[::-1][:n_vectors], mixing.T[::-1][:n_vectors]
        vectors, residuals = mixing @ space[:size], mixing @ image[:size]
        if n_passes < max_passes and size + n_vectors > capacity:
            size = n_vectors
            space[:size], image[:size] = vectors, residuals
        residuals -= values[:, None] * vectors
        norms = _norms(residuals)
        residual = float(norms[:n_wanted].max(initial=0.0))
        if residual <= tol or n_passes == max_passes:
            break
        growth = _orthonormal(residuals[norms > tol], [known, space[:size]])
        if len(growth) == 0:  # the space is invariant under the operator
            break
        before, size = size, size + len(growth)
        space[before:size], image[before:size] = growth, operator(growth)
        del residuals, growth  # or they would be in memory beside the next ones
    return Eigenpairs(values.astype(np.float64), vectors, residual)


def _norms(block: Array) -> Array:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", block, block)))


def _orthonormal(block: Array, bases: list[Array]) -> Array:
    """Return an orthonormal basis of the part of ``block`` orthogonal to the ``bases``, by its Gram matrix."""
    while True:
        norms = _norms(block)
        block = block[norms > 0] / norms[norms > 0, None]
        for basis in bases:
            block -= (block @ basis.T) @ basis
        squares, mixing = np.linalg.eigh(block @ block.T)
        kept = squares > max(1e-12, float(np.finfo(block.dtype).eps) * 100)
        block = (mixing[:, kept] / np.sqrt(squares[kept])).T @ block
        # Small remainders of the projection magnify its rounding errors: project again.
        if squares.min(initial=1.0) > 1e-4:
            return block


@compiled
def _join_rows(start: int, stop: int, graph: Any, before: Array, after: Array) -> None:
    """Give every node without a label that of its strongest labelled neighbour."""
    indptr, indices, data = graph
    for i in range(start, stop):
        after[i] = before[i]
        if before[i] < 0:
            strongest = data.dtype.type(0)
            for e in range(indptr[i], indptr[i + 1]):
                if data[e] > strongest and before[indices[e]] >= 0:
                    strongest = data[e]
                    after[i] = before[indices[e]]


@compiled
def _add_weights(indptr: Array, indices: Array, data: Array, roots: Array, label: Array, coarse: Array) -> None:
    """Sum the edges between aggregates, weighted by the square roots of the degrees (Galerkin projection)."""
    for i in range(label.size):
        row = coarse[label[i]]
        for e in range(indptr[i], indptr[i + 1]):
            row[label[indices[e]]] += data[e] * roots[i] * roots[indices[e]]


def aggregates(graph: Any, n_aggregates: int, workers: Workers) -> Array:
    """Return the aggregate of every node, grown from random seeds along strong edges; the last if not reached."""
    n_samples = graph.shape[0]
    label = np.full(n_samples, -1, np.int32)
    label[np.random.default_rng(0).choice(n_samples, n_aggregates, replace=False)] = np.arange(n_aggregates)
    for _ in range(_MAX_SWEEPS):
        before, label = label, np.empty_like(label)
        arrays = (graph.indptr, graph.indices, graph.data)
        workers.rows(_join_rows, n_samples, arrays, before, label, work=2.0 * graph.nnz)
        if before.min() >= 0 or (label == before).all():
            break
    label[label < 0] = n_aggregates
    return label


def coarse_eigenvectors(similarity: Any, roots: Array, n_vectors: int, workers: Workers) -> Array:
    """Approximate eigenvectors of D^(-1/2) P D^(-1/2) after the first, ``roots``, by those of its aggregates."""
    n_samples = similarity.shape[0]
    wanted = min(max(n_samples // _NODES_PER_AGGREGATE, 4 * n_vectors), _MAX_AGGREGATES)
    n_aggregates = min(max(wanted, 2 * n_vectors), n_samples)
    label = aggregates(similarity, n_aggregates, workers)
    coarse = np.zeros((n_aggregates + 1, n_aggregates + 1))
    _add_weights(similarity.indptr, similarity.indices, similarity.data, roots, label, coarse)
    mass = np.maximum(np.bincount(label, weights=roots.astype(np.float64) ** 2, minlength=n_aggregates + 1), 1e-300)
    scale = 1 / np.sqrt(mass)
    top = n_aggregates - n_vectors
    _, vectors = scipy.linalg.eigh(coarse * scale[:, None] * scale, subset_by_index=[top, n_aggregates - 1])
    return np.asarray((vectors * scale[:, None]).T[::-1, label] * roots, dtype=np.float32)


@compiled
def _search(indptr: Array, indices: Array, data: Array, stack: Array, numbers: Array) -> None:
    """Set the numbers of the components, which are negative at first."""
    n_found = size = 0
    for start in range(numbers.size):
        if numbers[start] < 0:
            numbers[start], stack[0], size = n_found, start, 1
            n_found += 1
        while size > 0:
            size -= 1
            i = stack[size]
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                if data[e] > 0 and numbers[j] < 0:
                    numbers[j], stack[size] = n_found - 1, j
                    size += 1


def components(indptr: Array, indices: Array, data: Array) -> Array:
    """Label the connected components of a symmetric CSR graph, numbered by their first node; 0 is no edge."""
    # SciPy's function copies the graph and its transpose in double precision, which would be the peak of memory.
    # Arrays are made here, since numba takes long to compile what makes them.
    stack, numbers = np.empty(indptr.size - 1, np.int64), np.full(indptr.size - 1, -1)
    _search(indptr, indices, data, stack, numbers)
    return numbers


def eigengaps(eigenvalues: ArrayLike) -> Floats:
    r"""Return the gaps of eigenvalues in ascending order, in :math:`\log(1 + \sigma / 0.1)`.

    It compares differences of small eigenvalues, those of clusters, but ratios of large ones, so that steps within the
    bulk of the spectrum do not count.
    """
    return np.diff(np.log1p(np.asarray(eigenvalues, dtype=np.float64) / _BULK))


def eigengap_clusters(eigenvalues: ArrayLike) -> int:
    r"""Estimate the number of clusters by the eigengap heuristic.

    The estimate is the largest k from 2 to 30 whose gap (:func:`eigengaps`) between :math:`\sigma_k` and
    :math:`\sigma_{k+1}` is at least three quarters of the largest gap, since one cluster too many does less harm than
    one too few.
    """
    gaps = eigengaps(eigenvalues)[1:MAX_CLUSTERS]
    if gaps.size == 0:
        return 1
    return int(np.flatnonzero(gaps >= _NEARLY * gaps.max())[-1] + 2)


def component_layout(P: Any, n_dims: int, workers: Workers) -> Floats | None:
    """Return coordinates of shape (n_samples, n_dims), or None if the graph is connected.

    Its first eigenvectors would tell components apart, and all points of one would coincide. Here, each component has
    its own eigenvectors, within a disc whose area is proportional to its size: the largest in the centre, the others
    around it on a spiral.
    """
    graph = scipy.sparse.csr_matrix(P)
    component = components(graph.indptr, graph.indices, graph.data)
    sizes = np.bincount(component)
    if sizes.size == 1:
        return None
    order = np.argsort(-sizes, kind="stable")
    shares, number = sizes[order] / component.size, np.arange(sizes.size)
    centres = np.zeros((sizes.size, n_dims))
    if n_dims == 1:  # intervals on alternate sides of the first
        radii = shares / 2
        distances = 2 * (np.cumsum(radii) - radii) - radii[0] + radii
        centres[1:, 0] = (distances * (-1.0) ** number)[1:]
    else:
        radii, angles = np.sqrt(shares), _GOLDEN_ANGLE * number
        distances = np.sqrt(np.cumsum(shares) - shares) + radii
        centres[1:, :2] = (distances[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1))[1:]
    Y = centres[np.argsort(order)[component]]
    for place in np.flatnonzero(sizes[order] > n_dims + 1):
        members = np.flatnonzero(component == order[place])
        vectors = laplacian_spectrum(_subgraph(graph, members), n_dims + 1, workers).eigenvectors[:, 1:]
        largest = np.abs(vectors).max(axis=0)
        Y[members] += radii[place] * vectors / np.where(largest > 0, largest, 1)
    return Y


def ordered_for_locality(P: Any, workers: Workers, *, copy: bool = False) -> tuple[Any, Array | None]:
    """Return P with neighbours side by side, in place unless ``copy``, and the order; P and None if small or dense."""
    if P.shape[0] <= MAX_UNORDERED or not scipy.sparse.issparse(P):
        return P, None
    n_aggregates = min(P.shape[0] // _NODES_PER_AGGREGATE, _MAX_AGGREGATES)
    order = np.argsort(aggregates(P, n_aggregates, workers), kind="stable")
    return reordered(P.copy() if copy else P, order), order


def in_order(values: Array, order: Array | None) -> Array:
    """Return rows, one per point, in the order of a reordered graph; None is that of the points."""
    return values if order is None else values[order]


def of_points(values: Array, order: Array | None) -> Array:
    """Return rows in the order of the points again."""
    return values if order is None else values[np.argsort(order)]


@compiled
def _permute_rows(values: Array, indptr: Array, order: Array, permuted: Array) -> None:
    """Copy the entries of the rows of a CSR matrix in a new order of the rows."""
    at = 0
    for i in order:
        row = values[indptr[i] : indptr[i + 1]]
        permuted[at : at + row.size] = row
        at += row.size


def reordered(P: Any, order: Array) -> Any:
    """Permute rows and columns of a CSR graph in place, array by array: only half of it is in memory twice."""
    for name in ("data", "indices"):
        permuted = np.empty_like(getattr(P, name))
        _permute_rows(getattr(P, name), P.indptr, order, permuted)
        setattr(P, name, permuted)
    del permuted
    P.indices = np.argsort(order).astype(P.indices.dtype)[P.indices]
    P.indptr = np.append(0, np.cumsum(np.diff(P.indptr)[order])).astype(P.indptr.dtype)
    P.has_sorted_indices = False
    return P
