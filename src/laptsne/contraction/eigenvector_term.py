"""The contraction of the paper: eigenvectors of the graph of the embedding itself."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from laptsne._runtime.typing import Array, Floats
from laptsne.contraction.term import Contraction, Penalty
from laptsne.fields import Fields, FourierFields
from laptsne.fields.grid import Mesh
from laptsne.graph.spectrum import largest_eigenpairs

_GUARD = 2  # vectors in the block beyond the wanted ones, which speed up the convergence of the last of these
# Points of a lower degree count as isolated: the squared inverse of such degrees overflows in single precision.
_MIN_DEGREE = 1e-30
_MIN_NODE = 1e-3  # the same for nodes of a mesh, which has single precision
_TOL, _PASSES, _FIRST_PASSES = 1e-2, 2, 10  # a refresh follows an embedding that moves slowly
_MAX_AGE = 3  # iterations for which points keep their gradients if fields take transforms


class EigenvectorTerm(Contraction):
    r"""The contraction term of the eigenvalues of :math:`L_Y = I - D^{-1/2} W D^{-1/2}`.

    With the eigenvectors :math:`v_k`, :math:`c_k = \phi'(\sigma_k)`, :math:`z_k = \sqrt{c_k} D^{-1/2} v_k` and
    :math:`g_i = \sum_k (1 - \sigma_k) z_{ik}^2`, the derivative of R with respect to :math:`w_{ij}` is
    :math:`G_{ij} = \tfrac12 (g_i + g_j) - \sum_k z_{ik} z_{jk}`. Until the next refresh, the gradient is that of the
    tangent

    .. math:: R + \sum_{ij} G_{ij} \, w_{ij}(Y),

    whose second term vanishes at the last refresh. Its gradient,
    :math:`g_i \nabla\varphi_1(y_i) + \nabla\varphi_g(y_i) - 2 \sum_k z_{ik} \nabla\varphi_{z_k}(y_i)`, takes one pass
    over the pairs, which yields the degrees as well. With fields in linear time, points keep their gradient for up to
    three iterations instead.

    ``start``, of shape (n_samples, n_vectors), is the first guess of the eigenvectors, for instance those of the data's
    graph. The similarities are those of the fields.
    """

    stored = ("start", "is_followed")

    def __init__(self, n_clusters: int, penalty: Penalty, start: Array) -> None:
        super().__init__(n_clusters, penalty)
        self.start = start[:, : n_clusters - 1 + _GUARD]
        self.is_followed = False  # whether start has the eigenvectors of an earlier embedding

    def gradient(self, fields: Fields, rows: Any = slice(None)) -> Floats:
        if self._gradient is not None:
            return self._gradient
        keeps = self.max_age == _MAX_AGE
        at, g, z = self._fields if keeps else fields, self._g[rows], self._z[rows]
        # Before the slope, which is a by-product of the weighted gradient.
        weights = np.column_stack([np.ones_like(g), -2 * z])
        gradient = at.weighted_gradient(weights, np.column_stack([self._g, self._z]))
        gradient = np.asarray(gradient + g[:, None] * at.slope)
        self._gradient = gradient if keeps else None
        return gradient

    def potential_grid(self, mesh: Mesh) -> Array:
        # It is phi_g(y) - sum_k z_k(y) phi_z_k(y), with z_k(y) from the equation of the eigenvectors,
        # phi_z_k = (1 - sigma_k) d z_k.
        y, n_fields = self.points, self.n_clusters - 1
        charges = np.column_stack([self._z, self._g, np.ones(len(self._g))]).T.astype(np.float32)
        fields = mesh.field(y, charges)
        shape = (-1, *[1] * len(y))
        degrees = np.maximum(fields[-1] - 1, _MIN_NODE - 1)
        mu = (1 - self.eigenvalues[1:]).astype(np.float32).reshape(shape)
        # At a point, its own charge is part of the field on the mesh: z_k + (1 - sigma_k) d z_k.
        z = fields[:n_fields] / np.maximum(1 + mu * degrees, _MIN_NODE)
        return np.asarray(fields[n_fields] - (z * fields[:n_fields]).sum(axis=0))

    def released(self) -> Self:
        term = type(self)(self.n_clusters, self.penalty, self.start)
        term.restore(self.state())
        return term

    def _solve(self, fields: Fields, tol: float | None, max_passes: int | None) -> None:
        self.max_age = _MAX_AGE if isinstance(fields, FourierFields) else float("inf")
        degrees = fields.degrees
        root = np.divide(1, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > _MIN_DEGREE)[:, None]
        first = np.sqrt(degrees)  # the eigenvector of the eigenvalue 0
        pairs = largest_eigenpairs(
            lambda block: np.asarray(root * fields.values(root * block.T)).T,
            np.ascontiguousarray(self.start.T),
            self.n_clusters - 1,
            known=first / max(float(np.linalg.norm(first)), np.finfo(np.float64).tiny),
            tol=tol or _TOL,
            max_passes=max_passes or (_PASSES if self.is_followed else _FIRST_PASSES),
        )
        self.start, self.is_followed, self.residual = pairs.vectors.T, True, pairs.residual
        mu = pairs.values[: self.n_clusters - 1]
        sigma = np.ones(self.n_clusters)  # also for those that a graph of fewer points lacks
        sigma[0], sigma[1 : mu.size + 1] = 0, 1 - mu
        self.eigenvalues = sigma.clip(0, 2)
        self._z = root * pairs.vectors[: self.n_clusters - 1].T * np.sqrt(self.penalty.slope(self.eigenvalues[1:]))
        self._g = self._z**2 @ (1 - self.eigenvalues[1:])
