"""The contraction term by sums over all pairs: exact, for any kernel."""

import numpy as np
from numpy.typing import NDArray

from laptsne.contraction.term import Contraction, indicators
from laptsne.fields import ExactFields, Fields
from laptsne.graph.spectrum import Eigenpairs, largest_eigenpairs

# Points of a lower degree count as isolated: the squared inverse of such degrees overflows in single precision.
_MIN_DEGREE = 1e-30


class PairContraction(Contraction):
    r"""The contraction term, linearised in the similarities between refreshes.

    With the eigenvectors :math:`v_k`, :math:`c_k = \phi'(\sigma_k)`, :math:`z_k = \sqrt{c_k} D^{-1/2} v_k` and
    :math:`g_i = \sum_k (1 - \sigma_k) z_{ik}^2`, the derivative of R with respect to :math:`w_{ij}` is
    :math:`G_{ij} = \tfrac12 (g_i + g_j) - \sum_k z_{ik} z_{jk}`. Until the next refresh, :meth:`value` and
    :meth:`gradient` are those of the tangent

    .. math:: R + \sum_{ij} G_{ij} \, w_{ij}(Y),

    whose second term vanishes at the last refresh. It follows R more closely than the majorant with fixed :math:`v_k`,
    and takes one pass over the pairs, which yields the degrees as well.
    """

    _tol = 1e-2
    _passes = 2

    _own: tuple[Fields, Fields] | None = None  # the last fields given, and those of the kernel of this term

    def _solve(self, fields: Fields, tol: float, max_passes: int) -> Eigenpairs:
        graph = self._graph(fields)
        self._regularize(float(graph.degrees.mean()))
        self._degrees = graph.degrees + self.regularization
        start = self.start
        if self.labels is not None:
            start = np.sqrt(self._degrees)[:, None] * indicators(self.labels, self.n_clusters)
        pairs = largest_eigenpairs(
            lambda block: self._normalised_similarity(graph, block.T).T,
            np.ascontiguousarray(start.T),
            self.n_clusters - 1,
            known=_first_eigenvector(self._degrees),
            tol=tol,
            max_passes=max_passes,
        )
        self.start = self.start if self.labels is not None else pairs.vectors.T
        return pairs

    def _prepare(self, fields: Fields) -> None:
        sigma = self.eigenvalues[1:]
        self._z = inverse_root(self._degrees)[:, None] * self._vectors * np.sqrt(self.penalty.slope(sigma))
        self._g = self._z**2 @ (1 - sigma)
        graph = self._graph(fields)
        self._pack(graph)
        self._at_refresh = self._linear(graph) if self.regularization else 0.0

    @property
    def eigenvectors(self) -> NDArray[np.float64]:
        """Eigenvectors of the K smallest eigenvalues at the last refresh, shape (n_samples, n_clusters)."""
        return np.column_stack([_first_eigenvector(self._degrees), self._vectors])

    def value(self, fields: Fields) -> float:
        """Return the value of the tangent."""
        value = float(self.penalty.value(self.eigenvalues).sum())
        return value if fields is self._fields else value + self._linear(self._graph(fields)) - self._at_refresh

    def _linear(self, graph: Fields) -> float:
        """Return the sum of G_ij w_ij, which vanishes at the last refresh without regularisation."""
        return float(self._g @ graph.degrees - np.sum(self._z * graph.values(self._z)))

    def _graph(self, fields: Fields) -> Fields:
        """Return the fields of the kernel of this term."""
        if self.kernel is None:
            return fields
        if self._own is None or self._own[0] is not fields:
            self._own = fields, ExactFields(fields.Y, self.kernel, fields.workers)
        return self._own[1]

    def gradient(self, fields: Fields) -> NDArray[np.float64]:
        r"""Return the gradient of the tangent with respect to the embedding.

        It is
        :math:`g_i \nabla\varphi_1(y_i) + \nabla\varphi_g(y_i) - 2 \sum_k z_{ik} \nabla\varphi_{z_k}(y_i)`.
        The first eigenvector drops out, since its eigenvalue is 0 for every embedding.
        """
        graph = self._graph(fields)
        if type(graph) is not self._packed_for:  # the embedding has grown beyond the grid, or fits on it again
            self._pack(graph)
        # Before the slope, which is a by-product of the weighted gradient.
        gradient = graph.weighted_gradient(self._packed)
        return gradient + self._g[:, None] * graph.slope

    def _pack(self, graph: Fields) -> None:
        weights = np.column_stack([np.ones_like(self._g), -2 * self._z])
        self._packed = graph.pack(weights, np.column_stack([self._g, self._z]))
        self._packed_for = type(graph)

    def _normalised_similarity(self, fields: Fields, block: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return D^(-1/2) W D^(-1/2) times the block, with the regularised similarities and degrees."""
        root = inverse_root(self._degrees)[:, None]
        charges = root * block
        return np.asarray(root * (fields.values(charges) + self.regularization * charges.mean(axis=0)))

    @property
    def _vectors(self) -> NDArray[np.float64]:
        return self._refreshed.vectors[: self.n_clusters - 1].T


def _first_eigenvector(degrees: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the eigenvector of the eigenvalue 0."""
    root = np.sqrt(degrees)
    return root / max(float(np.linalg.norm(root)), np.finfo(np.float64).tiny)


def inverse_root(degrees: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return d^(-1/2), and 0 for isolated points."""
    return np.divide(1, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > _MIN_DEGREE)
