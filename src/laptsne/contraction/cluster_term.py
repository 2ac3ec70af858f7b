"""The contraction of the clusters of the data: an eigenproblem with one row per cluster."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from laptsne._runtime.typing import Array
from laptsne.contraction.term import Contraction, Penalty, kernel_width, rows_of
from laptsne.fields import Fields
from laptsne.fields.grid import MAX_NODES, SPACING_PER_WIDTH, Mesh
from laptsne.kernels import Gaussian

_MAX_NUMBERS = 4 * MAX_NODES  # on all nodes, over all clusters
_TINY = 1e-12
_MIN_FIELD = 1e-3  # of all clusters, below which a point is astray wherever it is
# Total similarity added to each degree, as a share of the mean degree: points and small groups of a lower degree do not
# count as clusters, however isolated they are.
_REGULARIZATION = 0.03
_STRAYS_EVERY = 5  # refreshes after which stray points are sought again: it takes as long as the refresh itself
_SHARPNESS = 4  # power of the fields of the clusters in the share that a new point has in each


class ClusterTerm(Contraction):
    r"""The contraction term :math:`R = \sum_k \phi(\sigma_k)` of the clusters of the data.

    With the similarities :math:`w_{ij}` of the points, the :math:`\sigma_k` are the eigenvalues of the normalised
    Laplacian of the graph whose nodes are the clusters,

    .. math:: (D - S) c_k = \sigma_k D c_k, \quad
              S_{ab} = \sum_{i \in a, j \in b, j \ne i} w_{ij} + \frac{\rho}{n} n_a n_b, \quad D = \mathrm{diag}(S 1),

    with the numbers of points :math:`n_a` and the regularisation :math:`\rho`. These are Ritz values of the Laplacian
    of all points, among the functions that are constant on each cluster. By first-order perturbation, the gradient at a
    point of cluster a is that of the potential

    .. math:: \psi_a = 2 \sum_b M_{ab} \varphi_b, \quad
              M_{ab} = \sum_k \phi'(\sigma_k) [(1 - \sigma_k) (c_{ka}^2 + c_{kb}^2) / 2 - c_{ka} c_{kb}],

    where :math:`\varphi_b(y) = \sum_{j \in b} w(y, y_j)`. The width of the kernel and :math:`\rho` are constants in
    this: they follow the embedding from refresh to refresh until they are fixed. Points keep their gradients between
    refreshes. Points with the label -1 are in no cluster: they exert no force and feel none. So do stray points, for a
    few refreshes: those in whose position the share of their cluster in the field of all is below ``min_share``.

    Sums are computed on a mesh, at a cost that hardly depends on the number of points.
    """

    max_age = 3.0  # with 1, maps are the same within the spread of seeds, and the term costs three times as much

    stored = ("width", "fixed", "regularization", "members", "age")

    def __init__(
        self, labels: Array, penalty: Penalty, wanted_width: float | None = None, *, min_share: float = 0.2
    ) -> None:
        sizes = np.bincount(labels[labels >= 0], minlength=1)
        if not sizes.all():
            raise ValueError(f"labels: cluster {sizes.argmin()} has no points; number the clusters from 0 on.")
        super().__init__(sizes.size, penalty)
        self.labels, self.wanted_width, self.min_share = labels, wanted_width, min_share
        self.regularization, self.fixed = 0.0, False
        self._ordered = np.argsort(labels, kind="stable")[np.count_nonzero(labels < 0) :]
        self.members = self._ordered  # points by cluster, without stray points
        self.age = 0  # refreshes so far
        self._volumes: Array | None = None  # if they are constant

    def gradient(self, fields: Fields, rows: Any = slice(None)) -> NDArray[np.float64]:
        if self._gradient is None:
            self._gradient = np.zeros(self._fields.Y.shape)
            if self.n_clusters > 1:
                self._gradient[self.members] = self._sums.gradient(self._slopes)
        return np.asarray(self._gradient[rows])

    def fix_volumes(self) -> None:
        """Keep D, with its regularisation, as it is at the last refresh, so that only S follows the embedding.

        Lowering R then separates clusters and does not shrink them.
        """
        self._volumes, self.fixed, self.regularization = self._degrees, True, 0.0

    def shares(self) -> Array:
        """Return the share of each cluster in the field at every point, shape (n_clusters, n_samples)."""
        fields = np.maximum(self._sums.mesh.interpolate(self.points, self._sums.fields).T, 0)
        return np.asarray(fields / np.maximum(fields.sum(axis=0), np.finfo(np.float32).tiny))

    def potential_grid(self, mesh: Mesh) -> Array:
        # The cluster of a new point is not known: at each node, it belongs to the clusters in proportion to a power of
        # their fields, so that in a cluster the potential is nearly that of a point of this cluster.
        sums, sizes = self._sums, self._sums.sizes
        fields = np.maximum(sums.fields.reshape(self.n_clusters, -1), 0)
        constant = (self.regularization / sizes.sum() * sizes).astype(np.float32)
        potentials = (2 * self._slopes).astype(np.float32) @ (fields + constant[:, None])
        share = (fields / np.maximum(fields.max(axis=0), np.float32(_TINY))) ** _SHARPNESS
        share /= np.maximum(share.sum(axis=0), np.float32(_TINY))
        grid = np.einsum("an,an->n", share, potentials).reshape(sums.fields.shape[1:])
        return sums.mesh.resampled(grid, mesh)

    def released(self) -> Self:
        term = type(self)(self.labels, self.penalty, self.wanted_width, min_share=self.min_share)
        # Stray points are sought at its refresh.
        term.restore(self.state() | {"age": 0, "fixed": self.width is not None})
        return term

    def _solve(self, fields: Fields, tol: float | None, max_passes: int | None) -> None:
        if not self.fixed or self.width is None:
            self.width = kernel_width(fields.Y, self.n_clusters, self.wanted_width)
        seeks_strays = bool(self.min_share) and self.age % _STRAYS_EVERY == 0
        self.members = self._ordered if seeks_strays else self.members
        self._sums = _Sums(fields, self.width, self.members, self.labels)
        if seeks_strays and self._leave_out_strays():
            self._sums = _Sums(fields, self.width, self.members, self.labels)
        self.age += 1
        similarity, sizes = self._sums.similarity, self._sums.sizes
        n = int(sizes.sum())
        if not self.fixed:
            self.regularization = _REGULARIZATION * float(similarity.sum()) / n
        similarity = similarity + self.regularization / n * np.outer(sizes, sizes)
        degrees = np.maximum(similarity.sum(axis=1), _TINY)
        self._degrees = degrees if self._volumes is None else self._volumes
        sigma, vectors = _smallest(similarity, self._degrees)
        self.eigenvalues = np.concatenate([[0.0], sigma])
        slope = self.penalty.slope(sigma)
        products = (vectors * slope) @ vectors.T
        # Where D follows the embedding, it takes back a part of what the row sums of S do.
        own = vectors**2 @ (slope if self._volumes is not None else slope * (1 - sigma))
        self._slopes = (own[:, None] + own) / 2 - products

    def _leave_out_strays(self) -> bool:
        """Leave stray points out of their clusters, but never all points of one; return whether there are any."""
        is_kept, part = self._sums.own_shares() >= self.min_share, self.labels[self.members]
        is_kept |= (np.bincount(part[is_kept], minlength=self.n_clusters) == 0)[part]
        self.members = self.members[is_kept]
        return not is_kept.all()


class _Sums:
    """Sums over the members of clusters, on a mesh. The slopes of the similarities are exact up to rounding."""

    def __init__(self, fields: Fields, width: float, members: Array, labels: Array) -> None:
        self._own = labels[members]
        self.sizes = sizes = np.bincount(self._own)
        y, most = rows_of(fields.Y), min(MAX_NODES, _MAX_NUMBERS // len(sizes))
        self.mesh = Mesh.around(y, SPACING_PER_WIDTH * width, fields.workers, Gaussian(width), most)
        self._y = y.take(members, axis=1)
        densities = self.mesh.spread(self._y, np.ones((1, len(members)), np.float32), sizes)
        self.fields = self.mesh.convolved(densities)  # of each cluster, self-interaction included
        parts = densities.reshape(len(sizes), -1), self.fields.reshape(len(sizes), -1)
        similarity = (parts[0] @ parts[1].T).astype(np.float64)
        similarity[np.diag_indices(len(sizes))] -= sizes
        self.similarity = np.maximum((similarity + similarity.T) / 2, 0)

    def own_shares(self) -> Array:
        """Return the share of the own cluster in the field at each point."""
        total = self.mesh.interpolate(self._y, self.fields.sum(axis=0)[None])[:, 0] - 1
        own = self._in_own(self.fields)[0][:, 0] - 1
        return np.asarray(own / np.maximum(total, _MIN_FIELD))

    def gradient(self, slopes: Array) -> Array:
        """Return the gradient of the sum of slopes times similarities, shape (n_samples, n_dims)."""
        potentials = np.tensordot(2 * slopes.astype(np.float32), self.fields, 1)
        return np.asarray(self._in_own(potentials)[1] / self.mesh.spacing)

    def _in_own(self, grids: Array) -> tuple[Array, Array]:
        """Return the field of the grid of its own cluster at each point, and its gradient."""
        return self.mesh.with_gradient(self._y, grids, np.ones((1, len(self._own)), np.float32), self._own)


def _smallest(similarity: Array, volumes: Array) -> tuple[Array, Array]:
    """Return the eigenvalues of the Laplacian of a graph with given volumes, without the first, and their vectors.

    The vectors are columns, orthonormal with respect to the volumes. The first one is constant.
    """
    root = 1 / np.sqrt(volumes)
    laplacian = -similarity * np.outer(root, root)
    # From the other entries: differences of large numbers would drown the small eigenvalues.
    np.fill_diagonal(laplacian, 0)
    np.fill_diagonal(laplacian, -(laplacian @ (1 / root)) * root)
    first = 1 / root / np.sqrt(volumes.sum())
    above = 1 + np.trace(laplacian)  # larger than all eigenvalues
    sigma, vectors = scipy.linalg.eigh(laplacian + above * np.outer(first, first), check_finite=False)
    return np.maximum(sigma[:-1], 0), vectors[:, :-1] * root[:, None]
