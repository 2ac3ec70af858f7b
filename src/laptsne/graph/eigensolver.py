"""The largest eigenpairs of a symmetric operator that is known only by what it does to a block of vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Block = NDArray[Any]

# The search space is cut back to the current vectors when it has grown to this many times their number.
_MAX_GROWTH = 4


@dataclass(frozen=True)
class Eigenpairs:
    """Approximate eigenpairs, largest eigenvalue first.

    Attributes
    ----------
    values : array of shape (n_vectors,)
    vectors : array of shape (n_vectors, n_samples)
        Orthonormal rows.
    residual : float
        The largest norm of what is left of a wanted vector's equation: each of their
        eigenvalues is at most this far from a true one.
    """

    values: NDArray[np.float64]
    vectors: Block
    residual: float


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
    """Find the largest eigenpairs by Rayleigh-Ritz on a growing space of residuals (block Davidson).

    A block finds eigenvalues that are equal or nearly so (a graph that falls into components) as easily as
    others, a good start needs one or two passes, and the number of passes is bounded: this never hangs. All is done
    in the precision of ``start``.

    Parameters
    ----------
    operator : callable
        Maps a block of shape (m, n_samples), one vector a row, to its image. Called at most ``max_passes`` times.
    start : array of shape (n_vectors, n_samples)
        First guess. More rows than ``n_wanted`` speed up convergence; fewer are filled up at random.
    n_wanted : int
        Number of pairs that must reach ``tol``.
    known : array of shape (n_samples,)
        An eigenvector of unit norm that is known beforehand; the others are sought orthogonal to it.
    tol : float
        Bound on the residual of the wanted pairs.
    max_passes : int
        Bound on the number of calls of ``operator``.
    preconditioner : array of shape (n_samples,), optional
        Factors on the residuals before they enter the space: small where the operator is large and negative.

    Examples
    --------
    >>> import numpy as np
    >>> from laptsne.graph.eigensolver import largest_eigenpairs
    >>> A = np.diag([3.0, 2.0, 1.0, 0.0])
    >>> pairs = largest_eigenpairs(
    ...     lambda V: V @ A, np.ones((1, 4)), 1, known=np.eye(4)[0], tol=1e-9, max_passes=9
    ... )
    >>> pairs.values.round(6)
    array([2.])
    """
    known = known[None].astype(start.dtype)
    n_vectors = min(max(len(start), n_wanted), start.shape[1] - 1)
    first = _complete(_orthonormal(start, [known]), known, n_vectors)
    capacity = min(_MAX_GROWTH, max_passes) * n_vectors
    space, image = np.empty((2, max(capacity, len(first)), start.shape[1]), start.dtype)
    size = len(first)
    space[:size], image[:size] = first, operator(first)
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
        if len(growth) == 0:  # the space is invariant: nothing is left to find
            break
        grown = slice(size, size + len(growth))
        space[grown], image[grown] = growth, operator(growth)
        size += len(growth)
    return Eigenpairs(values.astype(np.float64), vectors, residual)


def _norms(block: Block) -> NDArray[Any]:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", block, block)))


def _orthonormal(block: Block, bases: list[Block]) -> Block:
    """Orthonormal basis of what ``block`` adds to the orthonormal ``bases``.

    By the eigenvectors of the Gram matrix, which needs matrix products alone; directions that add nothing are dropped.
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
        # What was left after the projection carries rounding errors magnified by how little it was.
        if squares.min(initial=1.0) > 1e-4:
            return block


def _complete(block: Block, known: Block, n_rows: int) -> Block:
    """Fill up ``block`` with random directions where the start had too few independent ones."""
    missing = n_rows - len(block)
    if missing > 0:
        random = np.random.default_rng(0).standard_normal((missing, block.shape[1])).astype(block.dtype)
        block = np.vstack([block, _orthonormal(random, [known, block])])
    return block
