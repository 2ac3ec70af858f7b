"""The loss of a point in an embedding whose other points are fixed."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from laptsne._runtime.compiled import inlined
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.fields.grid import MAX_NODES, Frame
from laptsne.fields.potential import Potential, potential_at

# Spacing of the mesh, by dimension: second derivatives need a finer one than placement. At 500 points, ranks of the
# scores correlate with the exact ones by 0.999 in two dimensions (benchmarks/reliability.py).
_SPACING = {1: 0.1, 2: 0.2, 3: 0.4}
Field = tuple[Array, float, Array, float]  # origin, spacing, grid and charge of an OwnPotential


@dataclass(frozen=True)
class OwnPotential:
    r"""The potential V of :class:`laptsne.transform.Placement` on a finer mesh, for points of the embedding itself.

    A point does not repel itself: its own loss has the potential :math:`V(y) - c / (1 + |y - y_i|^2)`.

    Parameters
    ----------
    origin, spacing, grid
        As in :class:`laptsne.fields.potential.Potential`; the grid has three axes.
    charge : float
        The factor c.
    contraction : array
        The part of the grid that is not repulsion.
    """

    origin: Array
    spacing: float
    grid: Array
    charge: float
    contraction: Array

    @classmethod
    def of(cls, potential: Potential, Y: Array, workers: Workers) -> Self:
        """Compute the potential: the repulsion from the points, and the contraction that ``potential`` contains."""
        y = np.array(Y.T, dtype=np.float64, order="C")
        ones = np.ones((1, len(Y)), np.float32)
        charge = np.float32(potential.charge)
        coarse = Frame(potential.origin, potential.spacing, potential.grid.shape[::-1], workers)
        contraction = potential.grid - charge * coarse.convolved(coarse.spread(y, ones))[0]
        fine = Frame.around(y, min(_SPACING[len(y)], potential.spacing), workers, most=MAX_NODES)
        grid = fine.convolved(fine.spread(y, ones))[0]
        nodes = fine.nodes(np.arange(grid.size))
        smooth = coarse.interpolate(nodes, contraction[None]).astype(np.float32).reshape(grid.shape)
        total, rest = (Potential(fine.origin, fine.spacing, part) for part in (charge * grid + smooth, smooth))
        return cls(total.origin, total.spacing, total.padded, potential.charge, rest.padded)

    @property
    def field(self) -> Field:
        """The potential as the kernels take it."""
        return self.origin, self.spacing, self.grid, self.charge

    @property
    def contraction_field(self) -> Field:
        """The contraction alone."""
        return self.origin, self.spacing, self.contraction, 0.0


@inlined
def repulsion_at(y: Array, home: Array, field: Field, w: Array, s: Array, gradient: Array) -> float:
    """Return the potential at y without the point whose position is ``home``, and set its gradient."""
    origin, spacing, grid, charge = field
    value = potential_at(y, origin, spacing, grid, w, s, gradient)
    r2 = 0.0
    for d in range(y.size):
        r2 += (y[d] - home[d]) ** 2
    k = 1 / (1 + r2)
    for d in range(y.size):
        gradient[d] += 2 * charge * k * k * (y[d] - home[d])
    return value - charge * k


@inlined
def repulsion_hessian(y: Array, home: Array, field: Field, w: Array, s: Array, scratch: Array, hessian: Array) -> None:
    """Set the Hessian of the potential of :func:`repulsion_at`, by central differences over one cell.

    The second derivatives of the splines are piecewise linear; their mean over a cell is more accurate.
    """
    n_dims, spacing = y.size, field[1]
    at, ahead, behind = scratch
    for d in range(n_dims):
        at[:] = y
        at[d] = y[d] + spacing / 2
        repulsion_at(at, home, field, w, s, ahead)
        at[d] = y[d] - spacing / 2
        repulsion_at(at, home, field, w, s, behind)
        for e in range(n_dims):
            hessian[d, e] = (ahead[e] - behind[e]) / spacing


@inlined
def add_repulsion_hessian(i: int, Y: Array, charge: float, hessian: Array) -> None:
    """Add the Hessian of the repulsion from all other points at the position of point i, without a mesh."""
    n, n_dims = Y.shape
    for j in range(n):
        r2 = 0.0
        for d in range(n_dims):
            r2 += (Y[i, d] - Y[j, d]) ** 2
        k = 1 / (1 + r2)
        c = charge * k * k if i != j else 0.0
        for d in range(n_dims):
            hessian[d, d] -= 2 * c
            for e in range(n_dims):
                hessian[d, e] += 8 * c * k * (Y[i, d] - Y[j, d]) * (Y[i, e] - Y[j, e])


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
