"""The loss of UMAP: cross entropy between the graph of the data and the similarities of the embedding."""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from laptsne._runtime.compiled import compiled
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array, Floats
from laptsne.contraction.term import Contraction
from laptsne.fields import ExactFields, Fields
from laptsne.fields.grid import Mesh
from laptsne.fields.potential import Potential
from laptsne.fields.repulsion import Repulsion, grid_repulsion, pair_repulsion
from laptsne.fields.umap_kernel import SOFTENING, FarRepulsion, UmapKernel, tabulated_slope, umap_attraction

_SPACING = {1: 0.03, 2: 0.08, 3: 0.25}  # of the mesh of the potential of new points
_CUTOFF = 3.0  # distance below which its repulsion is smooth, in nodes
# Least degree, relative to the mean, that steps are divided by. Graphs of UMAP have none below it, given ones may.
_MIN_DEGREE = 0.1


@compiled
def _force_rows(
    start: int, stop: int, y: Array, indptr: Array, indices: Array, weights: Array, table: Array, force: Array
) -> None:
    """Set force to the gradient of the attraction of each point by its neighbours, in single precision."""
    n_dims = y.shape[0]
    zero = y.dtype.type(0)
    for i in range(start, stop):
        s0 = s1 = s2 = d1 = d2 = zero
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            d0 = y[0, i] - y[0, j]
            if n_dims > 1:
                d1 = y[1, i] - y[1, j]
            if n_dims > 2:
                d2 = y[2, i] - y[2, j]
            pull = weights[e] * tabulated_slope(d0 * d0 + d1 * d1 + d2 * d2, table)
            s0 += pull * d0
            s1 += pull * d1
            s2 += pull * d2
        force[i, 0] = 2 * s0
        if n_dims > 1:
            force[i, 1] = 2 * s1
        if n_dims > 2:
            force[i, 2] = 2 * s2


@compiled
def _attraction_rows(
    start: int, stop: int, y: Array, indptr: Array, indices: Array, weights: Array, a: float, b: float, value: Array
) -> None:
    """Set value to the attraction of each point by its neighbours."""
    for i in range(start, stop):
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            r2 = 0.0
            for d in range(y.shape[0]):
                r2 += (y[d, i] - y[d, indices[e]]) ** 2
            total += weights[e] * umap_attraction(r2, a, b)[0]
        value[i] = total


class CrossEntropy:
    r"""The loss that umap-learn effectively minimises, in full.

    .. math:: -\sum_{ij} p_{ij} \log \varphi_{ij} - \frac{\gamma m}{4 n} \sum_{i \ne j} (p_i + p_j)
              \log(1 - \varphi_{ij}), \quad p_i = \sum_j p_{ij},

    with the weights of the graph :math:`p_{ij}`, divided by their sum, m negative samples per edge and the repulsion
    strength :math:`\gamma`. In an epoch, umap-learn samples every edge in both directions in proportion to its weight,
    moves both ends, and pushes the first end away from m random points, which do not move. The expected motion of point
    i is thus :math:`2 \sum_j p_{ij} \nabla \log\varphi_{ij} + \frac{m}{n} p_i \sum_j \nabla \log(1 - \varphi_{ij})`
    (Damrich and Hamprecht 2021, "On UMAP's true loss function"). The loss has the symmetric weights
    :math:`(p_i + p_j) / 2` instead of :math:`p_i`, without which it would have no gradient.

    ``P`` are symmetric weights that sum to 1, ``repulsion`` is :math:`\gamma m`, and with ``exact`` the repulsion is
    summed over all pairs, rather than on a grid. Steps are divided by the degrees: the attraction of a point is as
    stiff as its degree is high, so that a common step size would be that of the hubs.
    """

    def __init__(
        self, P: Any, *, kernel: UmapKernel, repulsion: float, exact: bool, workers: Workers | None = None
    ) -> None:
        self.P, self.kernel, self.repulsion, self.exact = P, kernel, repulsion, exact
        self.workers = workers or Workers(1)
        graph = scipy.sparse.csr_matrix(P)
        self._graph = (graph.indptr, graph.indices, graph.data)
        n = P.shape[0]
        self.degrees = np.asarray(graph.sum(axis=1, dtype=np.float64)).ravel() * n  # in units of their mean
        self.stiffness = np.maximum(self.degrees, _MIN_DEGREE)[:, None]
        self._factor = repulsion / (4 * n**2)

    @property
    def trivial(self) -> float:
        """Loss of the trivial embedding, in which all points coincide."""
        zero, n = np.zeros(1), self.P.shape[0]
        attraction = np.log1p(self.kernel.a * SOFTENING**self.kernel.b)
        return float(self.repulsion / 2 * (n - 1) / n * self.kernel.repulsion(zero)[0] + attraction)

    def fields(self, Y: Floats, step: int | None = None) -> Fields:
        """Return the fields of an embedding, of which only the positions are used."""
        return ExactFields(Y, workers=self.workers)

    def is_feasible(self, Y: Floats, largest: float) -> bool:
        """Whether the loss can be computed in reasonable time, which it can: the grid leaves out stray points."""
        return True

    def potential(self, term: Contraction, fields: Fields, strength: float, exaggeration: float) -> Potential:
        r"""Return the potential of a new point over the embedding of the last refresh, without the attraction.

        It is the change of the objective by a point of mean degree, times n / 2:
        :math:`\frac{\gamma m}{4 n} \sum_j (1 + n p_j) V(|y - y_j|) + \frac{n \lambda}{2} \psi(y)`, divided by the
        exaggeration.
        """
        y = term.points
        mesh = Mesh.around(y, _SPACING[len(y)], self.workers)
        mesh = replace(mesh, kernel=FarRepulsion(self.kernel, _CUTOFF * mesh.spacing))
        charges = (1 + self.degrees).astype(np.float32)[None]
        grid = self.repulsion / (4 * y.shape[1]) * mesh.field(y, charges)[0]
        if strength:
            grid += y.shape[1] * strength / 2 * term.potential_grid(mesh)
        return Potential(mesh.origin, mesh.spacing, (grid / exaggeration).astype(np.float32))

    def value(self, fields: Fields, exaggeration: float = 1.0) -> float:
        """Return the loss, with the attractive part multiplied by ``exaggeration``."""
        y = np.ascontiguousarray(fields.Y.T, dtype=np.float64)
        attraction = np.empty(fields.n_samples)
        args = (y, *self._graph, self.kernel.a, self.kernel.b, attraction)
        fields.workers.rows(_attraction_rows, attraction.size, *args, work=50.0 * self._graph[2].size)
        repulsion = self._repulsion(y, fields, with_value=True).value
        assert repulsion is not None
        return float(exaggeration * attraction.sum() + self._factor * repulsion.sum())

    def gradient(self, fields: Fields, exaggeration: float = 1.0) -> Floats:
        """Return the gradient with respect to the embedding, with the attraction multiplied by ``exaggeration``."""
        y = np.ascontiguousarray(fields.Y.T, dtype=np.float64)
        force = np.empty(y.T.shape, np.float32)  # half the gradient of the attraction
        args = (np.asarray(y, dtype=np.float32), *self._graph, self.kernel.attraction_table, force)
        fields.workers.rows(_force_rows, len(force), *args, work=10.0 * self._graph[2].size)
        gradient = self._repulsion(y, fields).gradient
        gradient *= 2 * self._factor
        gradient += 2 * exaggeration * force
        return gradient

    def _repulsion(self, y: Array, fields: Fields, *, with_value: bool = False) -> Repulsion:
        compute = pair_repulsion if self.exact else grid_repulsion
        return compute(y, self.degrees, self.kernel, fields.workers, with_value=with_value)
