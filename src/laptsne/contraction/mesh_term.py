"""The contraction term on a mesh: its cost hardly depends on the number of points."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.compiled import compiled
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.contraction.term import Contraction
from laptsne.fields import Fields
from laptsne.fields.frame import Frame
from laptsne.fields.grid import STUDENT
from laptsne.fields.potential import Potential
from laptsne.graph.spectrum import Eigenpairs, largest_eigenpairs
from laptsne.kernels import Gaussian

SPACING = {1: 0.2, 2: 0.5, 3: 0.7}
_MIN_SPACING = {1: 0.05, 2: 0.05, 3: 0.2}  # transforms of a finer mesh in 3-D would take minutes
SPACING_PER_WIDTH = 0.35  # of a Gaussian kernel; errors are quadratic in it, up to 6 % of the gradient here
_MIN_CELLS = 16  # per side, for small embeddings
EMPTY = 1e-6  # density, in points per node, below which nodes are ignored
MIN_DEGREE = 1e-3
_LARGE = 1e30  # limit of factors in single precision
_MAX_FOLLOWED = 16_384  # points of which the motion of their neighbourhood is averaged
_NEIGHBOURHOOD = 2.0  # distance within which the motion of points between refreshes is averaged


@compiled
def _put_rows(start: int, stop: int, block: Array, nodes: Array, factor: Array, grids: Array) -> None:
    """Set grids[k, nodes] to block[k] * factor."""
    for k in range(start, stop):
        for j in range(nodes.size):
            grids[k, nodes[j]] = block[k, j] * factor[j]


@compiled
def _take_rows(
    start: int, stop: int, grids: Array, nodes: Array, ratio: Array, block: Array, degrees: Array, image: Array
) -> None:
    """Set image[k] to ratio * grids[k, nodes] - block[k] / degrees."""
    for k in range(start, stop):
        for j in range(nodes.size):
            image[k, j] = ratio[j] * grids[k, nodes[j]] - block[k, j] / degrees[j]


class MeshContraction(Contraction):
    r"""The contraction term as a function of the density of the embedding.

    Points are spread by cubic splines on the nodes of a mesh, with a density of :math:`n_m` points at node m. The graph
    of the nodes, with the similarities :math:`W` of their positions and :math:`n_m` points per node, has nearly the
    eigenvalues of the graph of the points. With the degrees :math:`d = W n - 1`, the eigenvectors :math:`u_k` satisfy
    :math:`W (n u_k) - u_k = (1 - \sigma_k) d \, u_k`, and the derivative of R with respect to the density is

    .. math:: \psi = W (n g) - \sum_k c_k u_k \, W (n u_k), \quad g = \sum_k c_k (1 - \sigma_k) u_k^2,
              \quad c_k = \phi'(\sigma_k).

    The gradient at a point is that of the potential :math:`\psi`, interpolated by the same splines, for any number of
    clusters. Between refreshes the potential moves with the points: it is evaluated at the position of a point minus
    the mean displacement of its neighbourhood. A fixed potential would keep clusters from moving.
    """

    _tol = 1e-2
    _passes = 2
    _shapes: Array | None = None  # the eigenvectors u_k on the mesh, guard vectors included

    def vectors_at(self, fields: Fields) -> NDArray[np.float64]:
        """Return the eigenvectors at the points of an embedding close to that of the last refresh, up to scale."""
        assert self._shapes is not None
        return np.sqrt(fields.degrees)[:, None] * self._frame.interpolate(self._trailing(fields), self._shapes)

    @property
    def eigenvectors(self) -> NDArray[np.float64]:
        """Eigenvectors of the K smallest eigenvalues at the last refresh, shape (n_samples, n_clusters)."""
        assert self._shapes is not None
        grids = np.concatenate([self._degrees[None], self._shapes[: self.n_clusters - 1]])
        at_points = self._frame.interpolate(self._y, grids)
        root = np.sqrt(np.maximum(at_points[:, :1], MIN_DEGREE))
        vectors = np.column_stack([root, root * at_points[:, 1:]])
        return np.asarray(vectors / np.linalg.norm(vectors, axis=0))

    def gradient(self, fields: Fields) -> NDArray[np.float64]:
        """Return the gradient of the potential of the last refresh, which moves with the points."""
        return self._frame.gradient(self._trailing(fields), self._potential)

    @property
    def points(self) -> Array:
        """Embedding of the last refresh, of shape (n_components, n_samples)."""
        return np.asarray(self._y)

    def potential_at(self, y: Array) -> Array:
        """Return the potential of the last refresh at positions of shape (n_components, n_points)."""
        return np.asarray(self._frame.interpolate(y, self._potential[None])[:, 0])

    def potential(self, strength: float, exaggeration: float = 1.0) -> Potential:
        r"""Return the potential of a new point over the embedding of the last refresh, without the attraction.

        It is the change of the objective by the point, times N / 2:
        :math:`(N / Z) \varphi_1 + (N \lambda / 2) \psi`, with :math:`\lambda` the ``strength``. It is divided by the
        exaggeration, so that the attraction of the new point needs no factor.
        """
        assert self._fields is not None
        return full_potential(self._fields, self._frame, self._potential, strength, exaggeration)

    def state(self) -> dict[str, Any]:
        """Return the state of the base class and the mesh of the last refresh."""
        state = super().state()
        if self._shapes is not None:
            frame = self._frame
            state |= {"shapes": self._shapes, "y": self._y, "origin": frame.origin, "spacing": frame.spacing}
            state["cells"] = list(frame.cells)
        return state

    def restore(self, state: dict[str, Any], workers: Workers) -> None:
        """Restore a state; there is no gradient before the next refresh."""
        super().restore(state, workers)
        if "shapes" in state:
            self._shapes, self._y = state["shapes"], state["y"]
            self._frame = Frame(
                state["origin"], state["spacing"], tuple(state["cells"]), workers, self.kernel or STUDENT
            )

    def _solve(self, fields: Fields, tol: float, max_passes: int) -> Eigenpairs:
        y = rows_of(fields.Y)
        frame = Frame.around(y, self._spacing(y), fields.workers, self.kernel or STUDENT)
        density = frame.spread(y, np.ones((1, y.shape[1]), np.float32))
        degrees = frame.convolved(density)[0] - 1
        self._regularize(float(np.vdot(density, degrees)) / y.shape[1])
        self._degrees = degrees + np.float32(self.regularization)
        active = np.flatnonzero(density.ravel() > EMPTY)
        n, d = density.ravel()[active], np.maximum(self._degrees.ravel()[active], MIN_DEGREE)
        start = self._start_at(frame, y, active, n)
        self._frame, self._y, self._active, self._n, self._root = frame, y, active, n, np.sqrt(n * d)
        ratio = np.sqrt(n / d)
        offset = np.float32(self.regularization / y.shape[1])

        def operator(block: Array) -> Array:
            grids = frame.convolved(self._on_mesh(block, ratio)).reshape(len(block), -1)
            grids += offset * (block @ ratio)[:, None]
            image = np.empty_like(block)
            work = 4.0 * block.size
            frame.workers.rows(_take_rows, len(block), grids, active, ratio, block, d, image, work=work, alignment=1)
            return image

        known = self._root / np.linalg.norm(self._root.astype(np.float64))
        return largest_eigenpairs(
            operator,
            start * self._root,
            self.n_clusters - 1,
            known=known,
            tol=tol,
            max_passes=max_passes,
            preconditioner=d / (1 + d),  # at isolated points the operator falls to -1 / d
        )

    def _spacing(self, y: Array) -> float:
        """Return the spacing of the mesh, before it is limited by the number of nodes."""
        return _fine_spacing(y) if self.kernel is None else SPACING_PER_WIDTH * self.kernel.width

    def _start_at(self, frame: Frame, y: Array, active: Array, n: Array) -> Array:
        """Return a first guess of the u_k: those of the last refresh, moved with the points, or those of the data."""
        if self._shapes is None:
            start = np.ascontiguousarray(self.start.T, dtype=np.float32)
            return frame.spread(y, start).reshape(len(start), int(np.prod(frame.cells)))[:, active] / n
        moved = frame.spread(y, (y - self._y).astype(np.float32)).reshape(len(y), -1)[:, active] / n
        nodes = frame.nodes(active) - moved
        return np.ascontiguousarray(self._frame.interpolate(nodes, self._shapes).T, dtype=np.float32)

    def _on_mesh(self, block: Array, factor: Array) -> Array:
        """Return grids with the block at the active nodes, multiplied by a factor per node."""
        grids = np.zeros((len(block), *self._degrees.shape), np.float32)
        args = (block, self._active, factor, grids.reshape(len(block), -1))
        self._frame.workers.rows(_put_rows, len(block), *args, work=4.0 * block.size, alignment=1)
        return grids

    def _prepare(self, fields: Fields) -> None:
        pairs = self._refreshed
        n_vectors = min(self.n_clusters - 1, pairs.values.size)
        sigma = self.eigenvalues[1 : n_vectors + 1]
        slope = self.penalty.slope(sigma)
        u = pairs.vectors / self._root
        g = (slope * (1 - sigma)).astype(np.float32) @ u[:n_vectors] ** 2
        charges = np.vstack([u, g])
        parts = self._frame.convolved(self._on_mesh(charges, self._n))
        offset = self.regularization / self._y.shape[1] * (charges @ self._n)
        parts += offset.astype(np.float32).reshape(-1, *[1] * self._degrees.ndim)
        # The equation of the eigenvectors extends them to nodes without points.
        mu = pairs.values.astype(np.float32).reshape(-1, *[1] * self._degrees.ndim)
        self._shapes = parts[:-1] / np.maximum(1 + mu * np.maximum(self._degrees, MIN_DEGREE - 1), MIN_DEGREE)
        self._potential = parts[-1]
        for k in range(n_vectors):
            self._potential -= np.float32(slope[k]) * parts[k] * self._shapes[k]
        reach = _NEIGHBOURHOOD if self.kernel is None else self._frame.spacing
        self._near = Frame.around(self._y, reach, fields.workers)
        self._sample = slice(None, None, max(1, self._y.shape[1] // _MAX_FOLLOWED))
        followed = self._y[:, self._sample]
        self._neighbours = self._near.spread(followed, np.ones((1, followed.shape[1]), np.float32))

    def _trailing(self, fields: Fields) -> Array:
        """Return the positions minus the mean displacement of the neighbourhood since the refresh."""
        y = rows_of(fields.Y)
        if fields is self._fields:
            return y
        followed = self._y[:, self._sample]
        motion = self._near.spread(followed, (y[:, self._sample] - followed).astype(np.float32))
        mean = np.divide(motion, self._neighbours, out=np.zeros_like(motion), where=self._neighbours > 0)
        return y - self._near.interpolate(self._y, mean).T


def full_potential(fields: Fields, frame: Frame, grid: Array, strength: float, exaggeration: float) -> Potential:
    """Return the potential of a new point, given that of the contraction on the nodes of a mesh."""
    n, y = fields.n_samples, rows_of(fields.Y)
    normaliser = max(float(fields.degrees.sum()), float(np.finfo(np.float32).tiny))
    repulsion, contraction = (np.float32(min(factor, _LARGE)) for factor in (n / normaliser, n * strength / 2))
    if isinstance(frame.kernel, Gaussian):  # the repulsion has another kernel, which needs a finer mesh
        coarse, frame = frame, Frame.around(y, _fine_spacing(y), fields.workers)
        nodes = frame.nodes(np.arange(np.prod(frame.cells)))
        grid = coarse.interpolate(nodes, grid[None]).astype(np.float32).reshape(frame.cells[::-1])
    field = frame.convolved(frame.spread(y, np.ones((1, n), np.float32)))[0]
    divisor = np.float32(min(exaggeration, _LARGE))
    grid = (repulsion * field + contraction * grid) / divisor
    return Potential(frame.origin, frame.spacing, grid, charge=float(repulsion / divisor))


def rows_of(Y: Array) -> Array:
    """Return the coordinates, one row per dimension."""
    return np.array(Y.T, dtype=np.float64, order="C")


def _fine_spacing(y: Array) -> float:
    """Return the spacing at which a mesh over the points resolves the Student kernel."""
    return float(np.clip(np.ptp(y, axis=1).max() / _MIN_CELLS, _MIN_SPACING[len(y)], SPACING[len(y)]))
