"""The perturbation score: how far a point moves when its data are nudged."""

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.graph.affinity import moments, precision
from laptsne.reliability.nudged import NudgedNeighbors, nudged_distance
from laptsne.reliability.own_loss import Field, OwnPotential, attraction_at, repulsion_at, repulsion_hessian

_MAX_STEPS = 50
_MIN_STEP = 1e-3  # in units of the embedding
_MAX_STEP = 2.0
_MIN_CURVATURE = 1e-6  # least pivot of a Hessian that counts as positive
_SAME = 1.0  # distance from a minimum within which a start leads to the same one, as a rule
_NEGLIGIBLE = 1e-3  # affinity, relative to the highest, below which neighbours are left out


@inlined
def _affinities(squared: Array, old: Array, rows: Array, columns: Array, perplexity: float, p: Array) -> None:
    """Set p to N times the affinities of a point whose squared distances to its neighbours change from old ones."""
    nearest, furthest = squared.min(), squared.max()
    unit = 1.0 / (furthest - nearest) if furthest > nearest else 1.0
    beta = precision(squared, nearest, unit, perplexity)
    total = moments(squared, nearest, unit, beta)[0]
    for e in range(squared.size):
        p[e] = np.exp(-beta * (squared[e] - nearest) * unit) / total / 2
        row = rows[columns[e]]
        if squared[e] <= row[2]:  # still among the neighbours of the other point, whose precision is kept
            weight = np.exp(-row[0] * (squared[e] - row[1]))
            before = np.exp(-row[0] * (old[e] - row[1])) if old[e] <= row[2] else 0.0
            p[e] += weight / max(row[3] - before + weight, weight) / 2


@inlined
def _cholesky(hessian: Array, factor: Array) -> bool:
    """Set the Cholesky factor of a matrix; return whether it is positive definite."""
    for a in range(len(hessian)):
        for b in range(a + 1):
            value = (hessian[a, b] + hessian[b, a]) / 2
            for c in range(b):
                value -= factor[a, c] * factor[b, c]
            if a > b:
                factor[a, b] = value / factor[b, b]
            elif value > _MIN_CURVATURE:
                factor[a, a] = np.sqrt(value)
            else:
                return False
    return True


@inlined
def _descent_step(gradient: Array, hessian: Array, step: Array, factor: Array) -> None:
    """Set the Newton step, or a long one along the negative gradient if the Hessian is not positive definite."""
    n_dims = gradient.size
    step[:] = -gradient
    if not _cholesky(hessian, factor):
        step /= max(np.sqrt((step * step).sum()), _MIN_CURVATURE)
    else:
        for a in range(n_dims):
            for c in range(a):
                step[a] -= factor[a, c] * step[c]
            step[a] /= factor[a, a]
        for a in range(n_dims - 1, -1, -1):
            for c in range(a + 1, n_dims):
                step[a] -= factor[c, a] * step[c]
            step[a] /= factor[a, a]
    length = np.sqrt((step * step).sum())
    if length > _MAX_STEP:
        step *= _MAX_STEP / length


@inlined
def _two_largest(p: Array) -> tuple[int, int]:
    """Return the indices of the two largest values, the same one twice if there is one."""
    first = int(np.argmax(p))
    second = first
    for e in range(p.size):
        if e != first and (second == first or p[e] > p[second]):
            second = e
    return first, second


@inlined
def _descend(
    y: Array,
    home: Array,
    p: Array,
    near: Array,
    field: Field,
    w: Array,
    s: Array,
    scratch: Array,
    square: Array,
) -> float:
    """Move y to a minimum of the own loss of the point at ``home``, and return its value."""
    gradient, step, moved = scratch[0], scratch[1], scratch[2]
    hessian = square[0]
    loss = np.inf
    step[:] = 0
    moved[:] = y
    for _ in range(_MAX_STEPS):
        value = repulsion_at(moved, home, field, w, s, gradient)
        hessian[:] = 0
        value += attraction_at(moved, p, near, gradient, hessian)
        if value <= loss:
            loss = value
            y[:] = moved
            square[1] = hessian
            repulsion_hessian(y, home, field, w, s, scratch[3:], hessian)
            square[1] += hessian
            _descent_step(gradient, square[1], step, square[2])
        else:
            step /= 4
        if (step * step).sum() < _MIN_STEP * _MIN_STEP:
            break
        moved[:] = y + step
    return loss


@compiled
def _jump_rows(
    start: int,
    stop: int,
    length: float,
    perplexity: float,
    Y: Array,
    indptr: Array,
    indices: Array,
    distances: Array,
    rows: Array,
    projections: Array,
    lengths: Array,
    norms: Array,
    form: int,
    field: Field,
    jumps: Array,
) -> None:
    """Set the largest displacement of each point over all directions and both signs."""
    n_dims = Y.shape[1]
    w, s = np.empty((2, 3, 4))
    scratch, square = np.empty((6, n_dims)), np.empty((3, n_dims, n_dims))
    y, best = np.empty((2, n_dims))
    for i in range(start, stop):
        columns = indices[indptr[i] : indptr[i + 1]]
        d = distances[indptr[i] : indptr[i + 1]]
        k = columns.size
        near, old, squared, p = np.empty((k, n_dims)), np.empty(k), np.empty(k), np.empty(k)
        for e in range(k):
            old[e] = nudged_distance(d[e], form, 0.0, 0.0, 0.0, 0.0, norms[i], norms[columns[e]])
        jumps[i] = 0
        for a in range(2 * lengths.size):
            step, direction = (length if a % 2 else -length), a // 2
            zi = projections[i, direction]
            for e in range(k):
                j = columns[e]
                zj = projections[j, direction]
                squared[e] = nudged_distance(d[e], form, step, zi, zj, lengths[direction], norms[i], norms[j])
            _affinities(squared, old, rows, columns, perplexity, p)
            kept, least = 0, _NEGLIGIBLE * p.max()
            for e in range(k):
                if p[e] >= least:
                    p[kept] = p[e]
                    near[kept] = Y[columns[e]]
                    kept += 1
            q, around = p[:kept], near[:kept]
            first, second = _two_largest(q)
            lowest = np.inf
            best[:] = Y[i]
            for n in range(3):
                y[:] = Y[i] if n == 0 else around[first if n == 1 else second]
                if n > 0 and ((y - best) ** 2).sum() < _SAME * _SAME:
                    continue
                loss = _descend(y, Y[i], q, around, field, w, s, scratch, square)
                if loss < lowest:
                    lowest = loss
                    best[:] = y
            jumps[i] = max(jumps[i], np.sqrt(((best - Y[i]) ** 2).sum()))


def perturbation_scores(
    neighbors: NudgedNeighbors,
    Y: Array,
    potential: OwnPotential,
    *,
    length: float,
    perplexity: float,
    workers: Workers,
) -> NDArray[np.float64]:
    """Return how far the minimum of each point's own loss is, at most, from its position when its data are nudged.

    Parameters
    ----------
    neighbors : NudgedNeighbors
    Y : array of shape (n_samples, n_components)
        The embedding.
    potential : OwnPotential
    length : float
        By how much the data are moved, in their units.
    perplexity : float
    workers : Workers
        Threads.
    """
    jumps = np.empty(len(Y))
    args = (length / neighbors.unit, perplexity, Y.astype(np.float64), *neighbors.arrays, potential.field, jumps)
    workers.rows(_jump_rows, len(Y), *args, work=1e3 * len(neighbors.indices))
    return jumps
