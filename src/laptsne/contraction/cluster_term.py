"""The contraction of the clusters of the data: an eigenproblem of clusters on each level of their tree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from laptsne._runtime.typing import Array, Floats
from laptsne.clusters.linkage import linked
from laptsne.contraction.term import Contraction, Penalty, kernel_width, rows_of
from laptsne.fields import Fields
from laptsne.fields.grid import MAX_NODES, SPACING_PER_WIDTH, Mesh
from laptsne.kernels import Gaussian

MAX_NUMBERS = 4 * MAX_NODES  # on all nodes, over all clusters
_TINY = 1e-12
_MIN_FIELD = 1e-3  # of all clusters, below which a point is astray wherever it is
# The tail of the kernel: its width, in widths of the kernel, and its sum over a map of even density, as a share of that
# of the kernel. It draws a cluster together while others are within its range, and keeps points and small groups with
# few neighbours from counting as clusters (docs/notes/method-what-was-tried.md has others).
TAIL_WIDTH, TAIL_SHARE = 3.0, 0.2
_STRAYS_EVERY = 5  # refreshes after which stray points are sought again: it takes as long as the refresh itself
_SHARPNESS = 4  # power of the fields of the clusters in the share that a new point has in each


class ClusterTerm(Contraction):
    r"""The contraction term of the clusters of the data, on all levels of their tree.

    On each level, the similarities :math:`w_{ij}` of the points make a graph whose nodes are the clusters of this
    level. The :math:`\sigma_k` are the eigenvalues of its normalised Laplacian,

    .. math:: (D - S) c_k = \sigma_k D c_k, \quad
              S_{ab} = \sum_{i \in a, j \in b, j \ne i} w_{ij}, \quad D = \mathrm{diag}(S 1).

    These are Ritz values of the Laplacian of all points, among the functions that are constant on each cluster. By
    first-order perturbation, the gradient of :math:`\sum_k \phi(\sigma_k)` at a point of cluster a is that of the
    potential

    .. math:: \psi_a = 2 \sum_b M_{ab} \varphi_b, \quad
              M_{ab} = \sum_k \phi'(\sigma_k) [(1 - \sigma_k) (c_{ka}^2 + c_{kb}^2) / 2 - c_{ka} c_{kb}],

    where :math:`\varphi_b(y) = \sum_{j \in b} w(y, y_j)`. The kernel is a Gaussian with a weak tail, which is another
    Gaussian. Once all clusters are further apart than its range, the term has no effect. The width is
    that of the finest level; on a level with :math:`K_l` of K clusters in d dimensions it is :math:`(K / K_l)^{1/d}`
    times as much. It is a constant in the gradient, and follows the embedding from refresh to refresh until it is
    fixed.

    The value is the sum over the levels with weights :math:`K / K_l`, so that all levels count alike.

    Points keep their gradients between refreshes. Points with the label -1 are in no cluster: they exert no force and
    feel none. So do stray points, for a few refreshes: those in whose position the share of their cluster in the field
    of all is below ``min_share``. ``groups``, of shape (n_levels, n_clusters), has the cluster of each level that each
    of the finest is part of; without it, there is one level. Sums are computed on a mesh, at a cost that hardly depends
    on the number of points: all levels share one, and the densities on it.
    """

    max_age = 5.0  # with 1 or 3, maps are the same within the spread of seeds, and the term costs more

    stored = ("width", "fixed", "members", "age")

    def __init__(
        self,
        labels: Array,
        penalty: Penalty,
        wanted_width: float | None = None,
        *,
        groups: Array | None = None,
        min_share: float = 0.2,
    ) -> None:
        sizes = np.bincount(labels[labels >= 0], minlength=1)
        if not sizes.all():
            raise ValueError(f"labels: cluster {sizes.argmin()} has no points; number the clusters from 0 on.")
        super().__init__(sizes.size, penalty)
        self.labels, self.wanted_width, self.min_share = labels, wanted_width, min_share
        self.groups = np.arange(sizes.size)[None] if groups is None else groups
        self.n_levels = len(self.groups)
        self._weights = sizes.size / (self.groups.max(axis=1) + 1)
        self.fixed = False
        self._ordered = np.argsort(labels, kind="stable")[np.count_nonzero(labels < 0) :]
        self.members = self._ordered  # points by cluster, without stray points
        self.age = 0  # refreshes so far
        self._tail = TAIL_SHARE
        self._volumes: list[Array | None] = [None] * len(self.groups)  # D on each level, if it is constant

    def value(self) -> float:
        values = [self.penalty.value(level.eigenvalues).sum() for level in self._levels]
        return float(np.dot(self._weights, values))

    def gradient(self, fields: Fields, rows: Any = slice(None)) -> Floats:
        if self._gradient is None:
            self._gradient = np.zeros(self._fields.Y.shape)
            if self.n_clusters > 1:
                self._gradient[self.members] = self._sums.gradient(self._potentials)
        return np.asarray(self._gradient[rows])

    def fix_volumes(self) -> None:
        """Keep D as it is, and leave out the tail: lowering R then separates clusters and does not shrink them."""
        self._volumes, self.fixed, self._tail = [level.volumes for level in self._levels], True, 0.0

    def shares(self) -> Array:
        """Return the share of each cluster in the field at every point, shape (n_clusters, n_samples)."""
        fields = np.maximum(self._sums.mesh.interpolate(self.points, self._sums.fields).T, 0)
        return np.asarray(fields / np.maximum(fields.sum(axis=0), np.finfo(np.float32).tiny))

    def potential_grid(self, mesh: Mesh) -> Array:
        # The cluster of a new point is not known: at each node, it belongs to the clusters in proportion to a power of
        # their fields, so that in a cluster the potential is nearly that of a point of this cluster.
        fields = np.maximum(self._sums.fields, 0)
        share = (fields / np.maximum(fields.max(axis=0), np.float32(_TINY))) ** _SHARPNESS
        share /= np.maximum(share.sum(axis=0), np.float32(_TINY))
        return self._sums.mesh.resampled((share * self._potentials).sum(axis=0), mesh)

    def released(self) -> Self:
        options: dict[str, Any] = {"groups": self.groups, "min_share": self.min_share}
        term = type(self)(self.labels, self.penalty, self.wanted_width, **options)
        # Stray points are sought at its refresh.
        term.restore(self.state() | {"age": 0, "fixed": self.width is not None})
        return term

    def _solve(self, fields: Fields, tol: float | None, max_passes: int | None) -> None:
        seeks_strays = bool(self.min_share) and self.age % _STRAYS_EVERY == 0
        self.members = self._ordered if seeks_strays else self.members
        if not self.fixed or self.width is None:
            self.width = kernel_width(fields.Y, self.labels, self.members, self.wanted_width)
        self._sums = _Sums(fields, self.width, self.members, self.labels)
        if seeks_strays and self._leave_out_strays():
            self._sums = _Sums(fields, self.width, self.members, self.labels)
        self.age += 1
        self._levels, self._potentials = [], np.zeros_like(self._sums.fields)
        for group, weight, volumes in zip(self.groups, self._weights, self._volumes, strict=True):
            similarity, of_groups = self._sums.between(group, self._tail)
            level = _Level(similarity, self.penalty, volumes)
            self._levels.append(level)
            self._potentials += np.tensordot((2 * weight * level.slopes[group]).astype(np.float32), of_groups, 1)
        self.eigenvalues = self._levels[0].eigenvalues

    def _leave_out_strays(self) -> bool:
        """Leave stray points out of their clusters, but never all points of one; return whether there are any."""
        is_kept, part = self._sums.own_shares() >= self.min_share, self.labels[self.members]
        is_kept |= (np.bincount(part[is_kept], minlength=self.n_clusters) == 0)[part]
        self.members = self.members[is_kept]
        return not is_kept.all()


class _Level:
    """The eigenvalues of the graph of the clusters of one level, and the derivatives by its similarities, M."""

    def __init__(self, similarity: Array, penalty: Penalty, volumes: Array | None) -> None:
        self.volumes = np.maximum(similarity.sum(axis=1), _TINY) if volumes is None else volumes
        sigma, vectors = _smallest(similarity, self.volumes)
        self.eigenvalues = np.concatenate([[0.0], sigma])
        slope = penalty.slope(sigma)
        # Where D follows the embedding, it takes back a part of what the row sums of S do.
        own = vectors**2 @ (slope * (1 - sigma) if volumes is None else slope)
        self.slopes = (own[:, None] + own) / 2 - (vectors * slope) @ vectors.T


class _Sums:
    """Sums over the members of clusters, on a mesh. The slopes of the similarities are exact up to rounding."""

    def __init__(self, fields: Fields, width: float, members: Array, labels: Array) -> None:
        self._own = labels[members]
        self._sizes = np.bincount(self._own)
        y, most = rows_of(fields.Y), min(MAX_NODES, MAX_NUMBERS // len(self._sizes))
        self.mesh = Mesh.around(y, SPACING_PER_WIDTH * width, fields.workers, Gaussian(width), most)
        self._width, self._y = width, y.take(members, axis=1)
        self._densities = self.mesh.spread(self._y, np.ones((1, len(members)), np.float32), self._sizes)
        self.fields = self.mesh.convolved(self._densities)  # of each cluster, without the tail, with self-interaction

    def between(self, group: Array, tail: float) -> tuple[Array, Array]:
        """Return the similarities between groups of clusters, with a kernel of their level, and their fields."""
        sizes = np.bincount(group, self._sizes)
        indicator = (group == np.arange(len(sizes))[:, None]).astype(np.float32)
        densities = np.tensordot(indicator, self._densities, 1)
        n_dims = len(self._y)
        width, height = self._width * (len(group) / len(sizes)) ** (1 / n_dims), tail / TAIL_WIDTH**n_dims
        is_finest = len(sizes) == len(group)
        fields = self.fields[np.argsort(group)] if is_finest else self._convolved(densities, width)
        if tail:
            fields += np.float32(height) * self._convolved(densities, TAIL_WIDTH * width)
        parts = densities.reshape(len(sizes), -1), fields.reshape(len(sizes), -1)
        similarity = (parts[0] @ parts[1].T).astype(np.float64)
        similarity[np.diag_indices(len(sizes))] -= (1 + height) * sizes
        return np.maximum((similarity + similarity.T) / 2, 0), fields

    def own_shares(self) -> Array:
        """Return the share of the own cluster in the field at each point."""
        total = self.mesh.interpolate(self._y, self.fields.sum(axis=0)[None])[:, 0] - 1
        own = self._in_own(self.fields)[0][:, 0] - 1
        return np.asarray(own / np.maximum(total, _MIN_FIELD))

    def gradient(self, potentials: Array) -> Array:
        """Return the gradient of the potential of its own cluster at each point, shape (n_samples, n_dims)."""
        return np.asarray(self._in_own(potentials)[1] / self.mesh.spacing)

    def _convolved(self, densities: Array, width: float) -> Array:
        return replace(self.mesh, kernel=Gaussian(width)).convolved(densities)

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
    sigma, vectors = np.linalg.eigh(laplacian + above * np.outer(first, first))
    return np.maximum(sigma[:-1], 0), vectors[:, :-1] * root[:, None]


def nested_groups(labels: Array, P: Any) -> Array:
    """Return the cluster of each level that each of the finest is part of, shape (n_levels, n_clusters)."""
    return linked(labels, P).layers(np.arange(int(labels.max()) + 1))
