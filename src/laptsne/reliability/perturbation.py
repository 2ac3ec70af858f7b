"""The perturbation score: how far the minimum of a point's own loss moves when its data are nudged."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.fields.grid import MAX_NODES, Mesh
from laptsne.fields.potential import Potential, potential_at
from laptsne.graph.affinity import moments, precision
from laptsne.reliability.nudged import NudgedNeighbors, nudged_distance

# Spacing of the mesh, by dimension: second derivatives need a finer one than placement.
_SPACING = {1: 0.1, 2: 0.2, 3: 0.4}
_MAX_STEPS = 50
_MIN_STEP = 1e-3  # in units of the embedding
_MAX_STEP = 2.0
_MIN_CURVATURE = 1e-6  # least pivot of a Hessian that counts as positive
_SAME = 1.0  # distance from a minimum within which a start leads to the same one, as a rule
_NEGLIGIBLE = 1e-3  # affinity, relative to the highest, below which neighbours are left out


class OwnPotential(NamedTuple):
    r"""The potential V in which new points are placed on a finer mesh, for points of the embedding itself.

    A point does not repel itself: its own loss has the potential :math:`V(y) - c / (1 + |y - y_i|^2)`.
    """

    origin: Array
    spacing: float
    grid: Array  # with three axes
    charge: float  # the factor c


def own_potential(potential: Potential, Y: Array, workers: Workers) -> OwnPotential:
    """Compute the repulsion from the points, and the contraction that ``potential`` contains, on the finer mesh."""
    y = np.array(Y.T, dtype=np.float64, order="C")
    ones = np.ones((1, len(Y)), np.float32)
    charge = np.float32(potential.charge)
    coarse = Mesh(potential.origin, potential.spacing, potential.grid.shape[::-1], workers)
    contraction = potential.grid - charge * coarse.field(y, ones)[0]
    fine = Mesh.around(y, min(_SPACING[len(y)], potential.spacing), workers, most=MAX_NODES)
    grid = charge * fine.field(y, ones)[0] + coarse.resampled(contraction, fine)
    total = Potential(fine.origin, fine.spacing, grid)
    return OwnPotential(total.origin, total.spacing, total.padded, potential.charge)


@inlined
def repulsion_at(y: Array, home: Array, potential: OwnPotential, w: Array, s: Array, gradient: Array) -> float:
    """Return the potential at y without the point whose position is ``home``, and set its gradient."""
    charge = potential.charge
    value = potential_at(y, potential.origin, potential.spacing, potential.grid, w, s, gradient)
    r2 = 0.0
    for d in range(y.size):
        r2 += (y[d] - home[d]) ** 2
    k = 1 / (1 + r2)
    for d in range(y.size):
        gradient[d] += 2 * charge * k * k * (y[d] - home[d])
    return value - charge * k


@inlined
def repulsion_hessian(
    y: Array, home: Array, potential: OwnPotential, w: Array, s: Array, scratch: Array, hessian: Array
) -> None:
    """Set the Hessian of the potential of :func:`repulsion_at`, by central differences over one cell.

    The second derivatives of the splines are piecewise linear; their mean over a cell is more accurate.
    """
    n_dims, spacing = y.size, potential.spacing
    at, ahead, behind = scratch
    for d in range(n_dims):
        at[:] = y
        at[d] = y[d] + spacing / 2
        repulsion_at(at, home, potential, w, s, ahead)
        at[d] = y[d] - spacing / 2
        repulsion_at(at, home, potential, w, s, behind)
        for e in range(n_dims):
            hessian[d, e] = (ahead[e] - behind[e]) / spacing


@inlined
def attraction_at(y: Array, p: Array, near: Array, gradient: Array, hessian: Array) -> float:
    """Return the sum of p log(1 + r^2) over the points ``near``, and add its derivatives to those given."""
    n_dims = y.size
    loss = 0.0
    for e in range(p.size):
        r2 = 0.0
        for d in range(n_dims):
            r2 += (y[d] - near[e, d]) ** 2
        k = 1 / (1 + r2)
        loss += p[e] * np.log(1 + r2)
        pull = 2 * p[e] * k
        bend = 2 * pull * k
        for d in range(n_dims):
            x = y[d] - near[e, d]
            gradient[d] += pull * x
            hessian[d, d] += pull
            for f in range(n_dims):
                hessian[d, f] -= bend * x * (y[f] - near[e, f])
    return loss


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
def _descend(
    y: Array,
    home: Array,
    p: Array,
    near: Array,
    potential: OwnPotential,
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
        value = repulsion_at(moved, home, potential, w, s, gradient)
        hessian[:] = 0
        value += attraction_at(moved, p, near, gradient, hessian)
        if value <= loss:
            loss = value
            y[:] = moved
            square[1] = hessian
            repulsion_hessian(y, home, potential, w, s, scratch[3:], hessian)
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
    neighbors: NudgedNeighbors,
    potential: OwnPotential,
    jumps: Array,
) -> None:
    """Set the largest displacement of each point over all directions and both signs."""
    n_dims = Y.shape[1]
    w, s = np.empty((2, 3, 4))
    scratch, square = np.empty((6, n_dims)), np.empty((3, n_dims, n_dims))
    y, best = np.empty((2, n_dims))
    indptr, form, norms = neighbors.indptr, neighbors.form, neighbors.norms
    for i in range(start, stop):
        columns = neighbors.indices[indptr[i] : indptr[i + 1]]
        d = neighbors.distances[indptr[i] : indptr[i + 1]]
        k = columns.size
        near, old, squared, p = np.empty((k, n_dims)), np.empty(k), np.empty(k), np.empty(k)
        for e in range(k):
            old[e] = nudged_distance(d[e], form, 0.0, 0.0, 0.0, 0.0, norms[i], norms[columns[e]])
        jumps[i] = 0
        for a in range(2 * neighbors.lengths.size):
            step, direction = (length if a % 2 else -length), a // 2
            z, along = neighbors.projections[:, direction], neighbors.lengths[direction]
            for e in range(k):
                j = columns[e]
                squared[e] = nudged_distance(d[e], form, step, z[i], z[j], along, norms[i], norms[j])
            _affinities(squared, old, neighbors.rows, columns, perplexity, p)
            kept, least = 0, _NEGLIGIBLE * p.max()
            for e in range(k):
                if p[e] >= least:
                    p[kept] = p[e]
                    near[kept] = Y[columns[e]]
                    kept += 1
            q, around = p[:kept], near[:kept]
            strongest = np.argsort(-q, kind="mergesort")[:2]
            lowest = np.inf
            best[:] = Y[i]
            for n in range(1 + strongest.size):
                y[:] = Y[i] if n == 0 else around[strongest[n - 1]]
                if n > 0 and ((y - best) ** 2).sum() < _SAME * _SAME:
                    continue
                loss = _descend(y, Y[i], q, around, potential, w, s, scratch, square)
                if loss < lowest:
                    lowest = loss
                    best[:] = y
            jumps[i] = max(jumps[i], np.sqrt(((best - Y[i]) ** 2).sum()))


def perturbation_scores(
    neighbors: NudgedNeighbors, Y: Array, potential: OwnPotential, *, length: float, perplexity: float, workers: Workers
) -> NDArray[np.float64]:
    """Return how far the minimum of each point's own loss is, at most, from its position when its data are nudged."""
    jumps = np.empty(len(Y))
    args = (length / neighbors.unit, perplexity, Y.astype(np.float64), neighbors, potential, jumps)
    workers.rows(_jump_rows, len(Y), *args, work=1e3 * len(neighbors.indices))
    return jumps
