"""The singularity score: how flat a point's own loss is at its position."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.compiled import compiled
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.reliability.own_loss import Field, OwnPotential, add_repulsion_hessian, attraction_at, repulsion_hessian

# Least eigenvalue that is told from zero: scores end at 1,000, which means that a point is not at a minimum.
MIN_EIGENVALUE = 1e-3
# In three dimensions a mesh of reasonable size is too coarse for second derivatives, and pairs of this many points are
# summed in about a second.
_MAX_PAIRED = 20_000


@compiled
def _hessian_rows(
    start: int,
    stop: int,
    Y: Array,
    indptr: Array,
    indices: Array,
    affinities: Array,
    field: Field,
    pair_charge: float,
    hessians: Array,
) -> None:
    """Set the Hessian of the own loss of each point at its position; rows of the affinities are in CSR format.

    The repulsion is in the grid, or, with a ``pair_charge``, summed over all points.
    """
    n, n_dims = Y.shape
    w, s = np.empty((2, 3, 4))
    scratch = np.empty((3, n_dims))
    gradient = np.empty(n_dims)
    for i in range(start, stop):
        columns = indices[indptr[i] : indptr[i + 1]]
        near = np.empty((columns.size, n_dims))
        for e in range(columns.size):
            near[e] = Y[columns[e]]
        p = n * affinities[indptr[i] : indptr[i + 1]]
        repulsion_hessian(Y[i], Y[i], field, w, s, scratch, hessians[i])
        attraction_at(Y[i], p, near, gradient, hessians[i])
        if pair_charge > 0:
            add_repulsion_hessian(i, Y, pair_charge, hessians[i])


def singularity_scores(P: Any, Y: Array, potential: OwnPotential, workers: Workers) -> NDArray[np.float64]:
    """Return the inverse of the least eigenvalue of the Hessian of each point's own loss, at most 1,000.

    Parameters
    ----------
    P : sparse matrix in CSR format of shape (n_samples, n_samples)
        Affinities.
    Y : array of shape (n_samples, n_components)
        The embedding.
    potential : OwnPotential
    workers : Workers
        Threads.
    """
    n_samples, n_dims = Y.shape
    hessians = np.zeros((n_samples, n_dims, n_dims))
    affinities = (P.indptr, P.indices, P.data.astype(np.float64))
    by_pairs = n_dims == 3 and n_samples <= _MAX_PAIRED
    fields = (potential.contraction_field, potential.charge) if by_pairs else (potential.field, 0.0)
    work = 30.0 * (n_samples**2 if by_pairs else P.nnz)
    workers.rows(_hessian_rows, n_samples, Y.astype(np.float64), *affinities, *fields, hessians, work=work)
    least = np.linalg.eigvalsh((hessians + hessians.transpose(0, 2, 1)) / 2)[:, 0]
    return np.asarray(1 / np.maximum(least, MIN_EIGENVALUE))
