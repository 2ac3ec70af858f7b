"""Spectrum of the normalised graph Laplacian, and the eigengap heuristic for the number of clusters."""

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches

from laptsne._runtime.compiled import compiled
from laptsne._runtime.threads import Workers
from laptsne._runtime.warn import warn
from laptsne.graph.coarsening import coarse_eigenvectors
from laptsne.graph.components import components
from laptsne.graph.eigensolver import largest_eigenpairs

MAX_CLUSTERS = 30
MAX_ARPACK = 20_000  # nodes beyond which a block method started from a coarse graph is faster than ARPACK
_BULK = 0.1  # eigenvalues well above it belong to the bulk of the spectrum, not to clusters
_NEARLY = 0.75  # gaps of at least this share of the largest are taken for equal to it
_MAX_DENSE = 300  # nodes up to which a dense solver is as fast
_NEGLIGIBLE = 1e-7  # smaller similarities change no eigenvalue by more than 1e-5
_BLOCK = 1024  # rows of a dense matrix, and of a sparse one
_SPARSE_BLOCK = 1 << 14
_ARPACK_TOL = 1e-4
_MAX_RESTARTS = 300
_BLOCK_TOL = 3e-3
_MAX_PASSES = 30
_GUARD = 4  # vectors beyond the wanted ones, which speed up convergence
# ARPACK continues with a random vector when it has exhausted its start; older versions of SciPy do not seed it.
_SEEDED = {"rng": 0} if "rng" in inspect.signature(scipy.sparse.linalg.eigsh).parameters else {}


@dataclass(frozen=True)
class Spectrum:
    """Smallest eigenpairs of a normalised graph Laplacian."""

    eigenvalues: NDArray[np.float64]  # ascending, from 0
    eigenvectors: NDArray[np.float64]  # orthonormal columns, of shape (n_samples, n_values)


@compiled
def _product_rows(start: int, stop: int, indptr: Any, indices: Any, data: Any, vector: Any, product: Any) -> None:
    """Multiply a CSR matrix and a vector."""
    for i in range(start, stop):
        total = data.dtype.type(0)
        columns = indices[indptr[i] : indptr[i + 1]]
        values = data[indptr[i] : indptr[i + 1]]
        for e in range(values.size):
            total += values[e] * vector[columns[e]]
        product[i] = total


@compiled
def _block_product_rows(start: int, stop: int, indptr: Any, indices: Any, data: Any, rows: Any, product: Any) -> None:
    """Multiply a CSR matrix and a block of column vectors."""
    for i in range(start, stop):
        line = product[i]
        line[:] = 0
        for e in range(indptr[i], indptr[i + 1]):
            value, other = data[e], rows[indices[e]]
            for k in range(line.size):
                line[k] += value * other[k]


def laplacian_spectrum(P: Any, n_values: int, workers: Workers | None = None) -> Spectrum:
    r"""Compute the smallest eigenpairs of :math:`L = I - D^{-1/2} P D^{-1/2}`.

    P is a symmetric array or sparse matrix; its graph may be disconnected and have isolated points.

    Examples
    --------
    Two components give two eigenvalues of zero:

    >>> import numpy as np
    >>> from laptsne.graph.spectrum import laplacian_spectrum
    >>> P = np.kron(np.eye(2), 1 - np.eye(3))
    >>> laplacian_spectrum(P, 3).eigenvalues.round(6)
    array([0. , 0. , 1.5])
    """
    n_values = min(n_values, P.shape[0])
    similarity = normalised_similarity(P)
    component = components(similarity.indptr, similarity.indices, similarity.data)
    sizes = np.bincount(component)
    # The spectrum of a graph is the union of those of its components. Solved one by one, they spare the solver multiple
    # zeros. With n_values components or more, one zero of each is all that is wanted.
    largest = np.argsort(-sizes, kind="stable")[:n_values]
    per_part = 1 if largest.size == n_values else n_values
    found = [np.flatnonzero(component == part) for part in largest]
    roots = np.sqrt(np.asarray(P.sum(axis=1, dtype=np.float64)).ravel())
    parts = [
        _connected_spectrum(_part(similarity, members), roots[members], per_part, workers or Workers(1))
        for members in found
    ]
    values = np.concatenate([part_values for part_values, _ in parts])
    order = np.argsort(values, kind="stable")[:n_values]
    # Only the selected vectors are expanded to all nodes: those of all components would be many times as large.
    source = [(members, vector) for members, part in zip(found, parts, strict=True) for vector in part[1].T]
    vectors = np.zeros((P.shape[0], order.size))
    for column, chosen in enumerate(order):
        members, vector = source[chosen]
        vectors[members, column] = vector
    return Spectrum(values[order], vectors)


def normalised_similarity(P: Any) -> Any:
    """Return D^(-1/2) P D^(-1/2) as a CSR matrix; entries too small to affect an eigenvalue are 0."""
    inverse_root = np.asarray(P.sum(axis=1, dtype=np.float64)).ravel()
    inverse_root = np.divide(1, np.sqrt(inverse_root), out=np.zeros_like(inverse_root), where=inverse_root > 0)
    inverse_root = inverse_root.astype(P.dtype)
    if scipy.sparse.issparse(P):
        data = np.empty_like(P.data)
        for rows in gen_batches(P.shape[0], _SPARSE_BLOCK):
            entries = slice(P.indptr[rows.start], P.indptr[rows.stop])
            block = P.data[entries] * inverse_root[P.indices[entries]]
            block *= np.repeat(inverse_root[rows], np.diff(P.indptr[rows.start : rows.stop + 1]))
            block[block <= _NEGLIGIBLE] = 0  # kept as explicit zeros, since P shares the indices
            data[entries] = block
        return scipy.sparse.csr_matrix((data, P.indices, P.indptr), P.shape)
    blocks = []
    for start in range(0, P.shape[0], _BLOCK):
        rows = slice(start, start + _BLOCK)
        block = P[rows] * inverse_root[rows, None] * inverse_root
        blocks.append(scipy.sparse.csr_matrix(np.where(block > _NEGLIGIBLE, block, 0)))
    return scipy.sparse.vstack(blocks, format="csr")


def _part(similarity: Any, members: NDArray[Any]) -> Any:
    return similarity if members.size == similarity.shape[0] else similarity[members][:, members]


def _connected_spectrum(
    similarity: Any, roots: NDArray[Any], n_values: int, workers: Workers
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute the smallest eigenpairs of the Laplacian of a connected graph."""
    n_samples = similarity.shape[0]
    if n_samples == 1:
        return np.zeros(1), np.ones((1, 1))
    if n_samples <= max(_MAX_DENSE, 2 * n_values):
        mu, vectors = scipy.linalg.eigh(similarity.toarray().astype(np.float64))
    elif n_samples > MAX_ARPACK:
        mu, vectors = _block_spectrum(similarity, roots, n_values, workers)
    else:
        mu, vectors = _arpack_spectrum(similarity, n_values, workers)
    order = np.argsort(-mu)[:n_values]
    return (1 - mu[order]).clip(0, 2), vectors[:, order]


def _arpack_spectrum(
    similarity: Any, n_values: int, workers: Workers
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute the largest eigenpairs by ARPACK, with products in the precision of the affinities to save a copy."""
    n_samples = similarity.shape[0]
    matrix = (similarity.indptr, similarity.indices, similarity.data)

    def product(vector: NDArray[np.float64]) -> NDArray[np.float64]:
        image = np.empty(n_samples)
        args = (*matrix, vector.astype(similarity.dtype).ravel(), image)
        workers.rows(_product_rows, n_samples, *args, work=2.0 * similarity.nnz)
        return image

    operator = scipy.sparse.linalg.LinearOperator(similarity.shape, matvec=product, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(n_samples)
    options = {"which": "LA", "tol": _ARPACK_TOL, "v0": start, "maxiter": _MAX_RESTARTS, **_SEEDED}
    try:
        mu, vectors = scipy.sparse.linalg.eigsh(operator, n_values, **options)
    except scipy.sparse.linalg.ArpackNoConvergence as error:
        mu, vectors = error.eigenvalues, error.eigenvectors
        _warn_inaccurate(f"Only {mu.size} of {n_values} eigenvalues of the data's graph converged")
    return mu, vectors


def _block_spectrum(
    similarity: Any, roots: NDArray[Any], n_values: int, workers: Workers
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute the largest eigenpairs of a large graph by a block method started from its aggregates."""
    n_samples = similarity.shape[0]
    roots = (roots / np.linalg.norm(roots)).astype(np.float32)
    graph = (similarity.indptr, similarity.indices, similarity.data)

    def product(block: NDArray[Any]) -> NDArray[Any]:
        rows, image = np.ascontiguousarray(block.T), np.empty((n_samples, len(block)), block.dtype)
        workers.rows(_block_product_rows, n_samples, *graph, rows, image, work=2.0 * similarity.nnz * len(block))
        return np.ascontiguousarray(image.T)

    pairs = largest_eigenpairs(
        product,
        coarse_eigenvectors(similarity, roots, n_values - 1 + _GUARD, workers),
        n_values - 1,
        known=roots,
        tol=_BLOCK_TOL,
        max_passes=_MAX_PASSES,
    )
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


def eigengap_clusters(eigenvalues: ArrayLike) -> int:
    r"""Estimate the number of clusters by the eigengap heuristic.

    Gaps are measured in :math:`\log(1 + \sigma / 0.1)`, which compares differences of small eigenvalues, those of
    clusters, but ratios of large ones, so that steps within the bulk of the spectrum do not count. The estimate is the
    largest k from 2 to 30 whose gap between :math:`\sigma_k` and :math:`\sigma_{k+1}` is at least three quarters of the
    largest gap, since one cluster too many does less harm than one too few.

    ``eigenvalues`` are the smallest ones of the normalised Laplacian in ascending order.

    Examples
    --------
    >>> from laptsne.graph.spectrum import eigengap_clusters
    >>> eigengap_clusters([0.0, 0.01, 0.02, 0.3, 0.35])
    3
    """
    sigma = np.asarray(eigenvalues, dtype=np.float64)[: MAX_CLUSTERS + 1]
    gaps = np.diff(np.log1p(sigma / _BULK))[1:]
    if gaps.size == 0:
        return 1
    return int(np.flatnonzero(gaps >= _NEARLY * gaps.max())[-1] + 2)
