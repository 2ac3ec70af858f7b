"""The largest eigenpairs of a symmetric operator that is known only by what it does to a block of vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Block = NDArray[np.float64]

# The search space is cut back to the current vectors when it has grown to this many times their number.
_MAX_GROWTH = 4


@dataclass(frozen=True)
class Eigenpairs:
    """Approximate eigenpairs, largest eigenvalue first.

    Attributes
    ----------
    values : array of shape (n_vectors,)
    vectors : array of shape (n_samples, n_vectors)
        Orthonormal columns.
    images : array of shape (n_samples, n_vectors)
        The operator applied to ``vectors``.
    residual : float
        The largest norm of ``images - vectors * values`` among the wanted pairs: each of their
        eigenvalues is at most this far from a true one.
    """

    values: NDArray[np.float64]
    vectors: Block
    images: Block
    residual: float


def largest_eigenpairs(
    operator: Callable[[Block], Block],
    start: Block,
    n_wanted: int,
    *,
    known: NDArray[np.float64],
    tol: float,
    max_passes: int,
) -> Eigenpairs:
    """Find the largest eigenpairs by Rayleigh-Ritz on a growing space of residuals (block Davidson).

    A block finds eigenvalues that are equal or nearly so (a graph that falls into components) as easily as
    others, a good start needs one or two passes, and the number of passes is bounded: this never hangs.

    Parameters
    ----------
    operator : callable
        Maps a block of shape (n_samples, m) to its image. Called at most ``max_passes`` times.
    start : array of shape (n_samples, n_vectors)
        First guess. More columns than ``n_wanted`` speed up convergence.
    n_wanted : int
        Number of pairs that must reach ``tol``.
    known : array of shape (n_samples,)
        An eigenvector of unit norm that is known beforehand; the others are sought orthogonal to it.
    tol : float
        Bound on the residual of the wanted pairs.
    max_passes : int
        Bound on the number of calls of ``operator``.

    Examples
    --------
    >>> import numpy as np
    >>> from laptsne.eigensolver import largest_eigenpairs
    >>> A = np.diag([3.0, 2.0, 1.0, 0.0])
    >>> pairs = largest_eigenpairs(
    ...     lambda V: A @ V, np.ones((4, 1)), 1, known=np.eye(4)[0], tol=1e-9, max_passes=9
    ... )
    >>> pairs.values.round(6)
    array([2.])
    """
    known = known[:, None]
    n_vectors = min(start.shape[1], start.shape[0] - 1)
    space = _complete(_orthonormal(start, known), known, n_vectors)
    image = operator(space)
    for n_passes in range(1, max_passes + 1):
        values, mixing = np.linalg.eigh(space.T @ image)
        values, mixing = values[::-1][:n_vectors], mixing[:, ::-1][:, :n_vectors]
        vectors, images = space @ mixing, image @ mixing
        residuals = images - vectors * values
        norms = np.sqrt(np.einsum("ij,ij->j", residuals, residuals))
        residual = float(norms[:n_wanted].max(initial=0.0))
        if residual <= tol or n_passes == max_passes:
            break
        if space.shape[1] + n_vectors > _MAX_GROWTH * n_vectors:
            space, image = vectors, images
        growth = _orthonormal(residuals[:, norms > tol], np.hstack([known, space]))
        if growth.shape[1] == 0:  # the space is invariant: nothing is left to find
            break
        space, image = np.hstack([space, growth]), np.hstack([image, operator(growth)])
    return Eigenpairs(values, vectors, images, residual)


def _orthonormal(block: Block, basis: Block) -> Block:
    """Orthonormal basis of what ``block`` adds to the orthonormal ``basis``.

    By the eigenvectors of the Gram matrix, which needs matrix products alone; directions that add nothing are dropped.
    """
    while True:
        norms = np.sqrt(np.einsum("ij,ij->j", block, block))
        block = block[:, norms > 0] / norms[norms > 0]
        block = block - basis @ (basis.T @ block)
        squares, mixing = np.linalg.eigh(block.T @ block)
        kept = squares > 1e-12
        block = block @ (mixing[:, kept] / np.sqrt(squares[kept]))
        # What was left after the projection carries rounding errors magnified by how little it was.
        if squares.min(initial=1.0) > 1e-4:
            return block


def _complete(block: Block, known: Block, n_columns: int) -> Block:
    """Fill up ``block`` with random directions where the start had too few independent ones."""
    missing = n_columns - block.shape[1]
    if missing > 0:
        random = np.random.default_rng(0).standard_normal((block.shape[0], missing))
        block = np.hstack([block, _orthonormal(random, np.hstack([known, block]))])
    return block
