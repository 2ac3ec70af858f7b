"""The contraction term by sums over all pairs: exact, for any kernel."""

import numpy as np
from numpy.typing import NDArray

from laptsne.embedding.fields import Fields
from laptsne.embedding.objective.contraction import Contraction
from laptsne.graph.eigensolver import Eigenpairs, largest_eigenpairs

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

    def _solve(self, fields: Fields, tol: float, max_passes: int) -> Eigenpairs:
        pairs = largest_eigenpairs(
            lambda block: _normalised_similarity(fields, block.T).T,
            np.ascontiguousarray(self._start.T),
            self.n_clusters - 1,
            known=_first_eigenvector(fields.degrees),
            tol=tol,
            max_passes=max_passes,
        )
        self._start = pairs.vectors.T
        return pairs

    def _prepare(self, fields: Fields) -> None:
        sigma = self.eigenvalues[1:]
        self._z = inverse_root(fields.degrees)[:, None] * self._vectors * np.sqrt(self.penalty.slope(sigma))
        self._g = self._z**2 @ (1 - sigma)
        self._pack(fields)

    @property
    def eigenvectors(self) -> NDArray[np.float64]:
        """Eigenvectors of the K smallest eigenvalues, shape (n_samples, n_clusters)."""
        assert self._fields is not None
        return np.column_stack([_first_eigenvector(self._fields.degrees), self._vectors])

    @property
    def block(self) -> NDArray[np.float64]:
        """All vectors of the last refresh but the first, including the guard vectors."""
        return self._start

    def value(self, fields: Fields) -> float:
        """Return the value of the tangent."""
        value = float(self.penalty.value(self.eigenvalues).sum())
        if fields is self._fields:
            return value
        change = self._g @ fields.degrees - np.sum(self._z * fields.values(self._z))
        return value + float(change)

    def gradient(self, fields: Fields) -> NDArray[np.float64]:
        r"""Return the gradient of the tangent with respect to the embedding.

        It is
        :math:`g_i \nabla\varphi_1(y_i) + \nabla\varphi_g(y_i) - 2 \sum_k z_{ik} \nabla\varphi_{z_k}(y_i)`.
        The first eigenvector drops out, since its eigenvalue is 0 for every embedding.
        """
        if type(fields) is not self._packed_for:  # the embedding has grown beyond the grid, or fits on it again
            self._pack(fields)
        # Before the slope, which is a by-product of the weighted gradient.
        gradient = fields.weighted_gradient(self._packed)
        return gradient + self._g[:, None] * fields.slope

    def _pack(self, fields: Fields) -> None:
        weights = np.column_stack([np.ones_like(self._g), -2 * self._z])
        self._packed = fields.pack(weights, np.column_stack([self._g, self._z]))
        self._packed_for = type(fields)

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


def _normalised_similarity(fields: Fields, block: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return D^(-1/2) W D^(-1/2) times the block."""
    root = inverse_root(fields.degrees)[:, None]
    return root * fields.values(root * block)
