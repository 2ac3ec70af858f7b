"""Block Davidson method for the largest eigenpairs of a symmetric operator."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Block = NDArray[Any]

_MAX_BLOCKS = 4  # size of the search space, in blocks, at which it is restarted from the current Ritz vectors


@dataclass(frozen=True)
class Eigenpairs:
    """Approximate eigenpairs, largest eigenvalue first; ``residual`` bounds the error of the wanted eigenvalues."""

    values: NDArray[np.float64]
    vectors: Block  # orthonormal rows
    residual: float  # largest residual norm of the wanted pairs


def largest_eigenpairs(
    operator: Callable[[Block], Block],
    start: Block,
    n_wanted: int,
    *,
    known: NDArray[Any],
    tol: float,
    max_passes: int,
    preconditioner: NDArray[Any] | None = None,
) -> Eigenpairs:
    """Compute the largest eigenpairs by the block Davidson method: Rayleigh-Ritz on a space grown by residuals.

    A block resolves multiple and clustered eigenvalues, such as those of a graph with several components; a good start
    takes one or two passes; and the number of passes is bounded. Computed in the precision of ``start``.

    Parameters
    ----------
    operator : callable
        Maps a block of shape (m, n_samples), one vector per row, to its image. Called at most ``max_passes`` times.
    start : array of shape (n_vectors, n_samples)
        Initial guess. Extra rows beyond ``n_wanted`` speed up convergence; missing ones are drawn at random.
    n_wanted : int
        Number of pairs that must converge.
    known : array of shape (n_samples,)
        Known eigenvector of unit norm; the others are orthogonal to it.
    tol : float
        Tolerance on the residual norms of the wanted pairs.
    max_passes : int
        Maximum number of calls of ``operator``.
    preconditioner : array of shape (n_samples,), optional
        Diagonal preconditioner of the residuals: small where the operator is large and negative.

    References
    ----------
    E. R. Davidson, The iterative calculation of a few of the lowest eigenvalues and corresponding eigenvectors of large
    real-symmetric matrices, Journal of Computational Physics 17 (1975).
    """
    known = known[None].astype(start.dtype)
    n_vectors = min(max(len(start), n_wanted), start.shape[1] - 1)
    first = _complete(_orthonormal(start, [known]), known, n_vectors)
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
        residuals = residuals[norms > tol]
        if preconditioner is not None:
            residuals *= preconditioner
        growth = _orthonormal(residuals, [known, space[:size]])
        if len(growth) == 0:  # the space is invariant under the operator
            break
        grown = slice(size, size + len(growth))
        space[grown], image[grown] = growth, operator(growth)
        size += len(growth)
        del residuals, growth  # or they would be in memory beside the next ones
    return Eigenpairs(values.astype(np.float64), vectors, residual)


def _norms(block: Block) -> NDArray[Any]:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", block, block)))


def _orthonormal(block: Block, bases: list[Block]) -> Block:
    """Return an orthonormal basis of the part of ``block`` orthogonal to the orthonormal ``bases``.

    By the eigenvectors of the Gram matrix, which takes matrix products only; dependent directions are dropped.
    """
    negligible = max(1e-12, float(np.finfo(block.dtype).eps) * 100)
    while True:
        norms = _norms(block)
        block = block[norms > 0] / norms[norms > 0, None]
        for basis in bases:
            block -= (block @ basis.T) @ basis
        squares, mixing = np.linalg.eigh(block @ block.T)
        kept = squares > negligible
        block = (mixing[:, kept] / np.sqrt(squares[kept])).T @ block
        # Small remainders of the projection magnify its rounding errors: project again.
        if squares.min(initial=1.0) > 1e-4:
            return block


def _complete(block: Block, known: Block, n_rows: int) -> Block:
    """Extend ``block`` to ``n_rows`` orthonormal rows by random directions."""
    missing = n_rows - len(block)
    if missing > 0:
        random = np.random.default_rng(0).standard_normal((missing, block.shape[1])).astype(block.dtype)
        block = np.vstack([block, _orthonormal(random, [known, block])])
    return block
