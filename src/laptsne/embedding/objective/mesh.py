"""The contraction term on a mesh: its cost no longer depends on the number of pairs, and hardly on that of points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.compiled import compiled
from laptsne._runtime.threads import Workers
from laptsne.embedding.fields import Fields
from laptsne.embedding.fields.grid import Window, bulk_box, convolved, n_cells
from laptsne.embedding.fields.stencil import read, spread
from laptsne.embedding.objective.contraction import Contraction
from laptsne.embedding.potential import Potential
from laptsne.graph.eigensolver import Eigenpairs, largest_eigenpairs

Array = NDArray[Any]

_SPLINE = Window(4)
_MARGIN = 4  # cells around the map, for the splines and for points that move
SPACING = {1: 0.2, 2: 0.5, 3: 0.7}
_MIN_SPACING = {1: 0.05, 2: 0.05, 3: 0.2}  # in space, the transforms of a finer one would take minutes
_MIN_CELLS = 16  # a side of a small map
# Nodes: so many a point where there are many points, and in any case no fewer and no more than these.
_NODES_PER_POINT = 64
_FEW_NODES, MAX_NODES = 1 << 18, 1 << 21
# Nodes with less than this share of a point belong to nobody. No degree is less than the other.
_EMPTY = 1e-6
_MIN_DEGREE = 1e-3
_LARGE = 1e30  # factors beyond it would leave single precision
# Points that lie within about this distance move as one between refreshes.
_NEIGHBOURHOOD = 2.0


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


@dataclass(frozen=True)
class _Frame:
    """A regular mesh: node m lies at origin + spacing m."""

    origin: Array
    spacing: float
    cells: tuple[int, ...]
    workers: Workers

    @classmethod
    def around(cls, y: Array, spacing: float, workers: Workers) -> _Frame:
        """A mesh over the points; a coarser one where they lie so far apart that it would be too large."""
        most = min(max(_NODES_PER_POINT * y.shape[1], _FEW_NODES), MAX_NODES)
        low, high = bulk_box(y, spacing, most)
        spacing = max(spacing, float(np.prod(high - low) / most) ** (1 / len(y)))
        # On a lattice that does not depend on the map, so that the next mesh has its nodes in the same places.
        origin = (np.floor(low / spacing) - _MARGIN) * spacing
        cells = tuple(n_cells(float(extent), spacing, _MARGIN + 1) for extent in high - origin)
        return cls(origin, spacing, cells, workers)

    def places(self, y: Array) -> Array:
        """Places of points in cells, held inside the mesh."""
        last = np.array(self.cells)[:, None] - 3.0
        return ((y - self.origin[:, None]) / self.spacing).clip(1, np.nextafter(last, 0))

    def spread(self, y: Array, charges: Array) -> Array:
        return spread(_SPLINE, self.places(y), charges, self.cells, self.workers)

    def read(self, y: Array, grids: Array) -> Array:
        return read(_SPLINE, self.places(y), grids, None, self.workers)[0]

    def gradient(self, y: Array, grid: Array) -> Array:
        ones = np.ones((1, y.shape[1]), np.float32)
        return read(_SPLINE, self.places(y), grid[None], ones, self.workers)[1] / self.spacing

    def convolved(self, grids: Array) -> Array:
        return convolved(grids, self.spacing, _SPLINE, self.workers)

    def nodes(self, active: Array) -> Array:
        """Coordinates of the nodes of these numbers, shape (n_dims, n_active)."""
        places = np.unravel_index(active, self.cells[::-1])
        return np.stack(places[::-1]) * self.spacing + self.origin[:, None]


class MeshContraction(Contraction):
    r"""The contraction term as a function of the density of the map alone.

    Points are spread by cubic splines on the nodes :math:`x_m` of a mesh. Their weights :math:`n_m` there make a
    graph of nodes, with the same kernel, in which a node stands for :math:`n_m` points; its Laplacian has nearly
    the eigenvalues of the map's. With the degrees :math:`d = K n - 1`, the eigenvectors :math:`u_k` satisfy
    :math:`K (n u_k) - u_k = (1 - \sigma_k) d \, u_k`, and the derivative of R by the weight of a node is

    .. math:: \psi = K (n g) - \sum_k c_k u_k \, K (n u_k), \quad g = \sum_k c_k (1 - \sigma_k) u_k^2,
              \quad c_k = \phi'(\sigma_k),

    one potential in which all points move: the gradient at a point is that of :math:`\psi`, read through the same
    splines, whatever K. Between refreshes the potential is kept and moves with the points: a point feels it where it
    would be had it not followed the mean motion of its neighbourhood. Kept in place instead, it would hold clusters
    back.
    """

    _tol = 1e-2
    _passes = 2
    _shapes: Array | None = None  # the eigenvectors u_k on the whole mesh, those of the guard included

    def vectors_at(self, fields: Fields) -> NDArray[np.float64]:
        """Eigenvectors at the points of a map near the last refresh, up to scale."""
        assert self._shapes is not None
        return np.sqrt(fields.degrees)[:, None] * self._frame.read(self._trailing(fields), self._shapes)

    def gradient(self, fields: Fields) -> NDArray[np.float64]:
        """Gradient of the potential of the last refresh, carried along with the points."""
        return self._frame.gradient(self._trailing(fields), self._potential)

    def potential(self, strength: float, exaggeration: float = 1.0) -> Potential:
        r"""The potential of one more point over the map of the last refresh, apart from what its neighbours do.

        It is what the point adds to the objective, times half the number N of points:
        :math:`(N / Z) \varphi_1 + (N \lambda / 2) \psi`, with :math:`\lambda` the ``strength``. Where the attraction
        is exaggerated, all is divided by the factor instead, so that neighbours pull as always.
        """
        assert self._fields is not None
        n = self._fields.n_samples
        normaliser = max(float(self._fields.degrees.sum()), float(np.finfo(np.float32).tiny))
        repulsion, pull = (np.float32(min(factor, _LARGE)) for factor in (n / normaliser, n * strength / 2))
        grid = repulsion * (self._degrees + 1) + pull * self._potential
        return Potential(self._frame.origin, self._frame.spacing, grid / np.float32(min(exaggeration, _LARGE)))

    def state(self) -> dict[str, Any]:
        """Those of the base class, and the mesh of the last refresh."""
        state = super().state()
        if self._shapes is not None:
            frame = self._frame
            state |= {"shapes": self._shapes, "y": self._y, "origin": frame.origin, "spacing": frame.spacing}
            state["cells"] = list(frame.cells)
        return state

    def restore(self, state: dict[str, Any], workers: Workers) -> None:
        """Take over a state; there is no gradient before the next refresh."""
        super().restore(state, workers)
        if "shapes" in state:
            self._shapes, self._y = state["shapes"], state["y"]
            self._frame = _Frame(state["origin"], state["spacing"], tuple(state["cells"]), workers)

    def _solve(self, fields: Fields, tol: float, max_passes: int) -> Eigenpairs:
        y = _rows(fields.Y)
        fine = np.clip(np.ptp(y, axis=1).max() / _MIN_CELLS, _MIN_SPACING[len(y)], SPACING[len(y)])
        frame = _Frame.around(y, float(fine), fields.workers)
        density = frame.spread(y, np.ones((1, y.shape[1]), np.float32))
        self._degrees = frame.convolved(density)[0] - 1
        active = np.flatnonzero(density.ravel() > _EMPTY)
        n, d = density.ravel()[active], np.maximum(self._degrees.ravel()[active], _MIN_DEGREE)
        start = self._start_at(frame, y, active, n)
        self._frame, self._y, self._active, self._n, self._root = frame, y, active, n, np.sqrt(n * d)
        ratio = np.sqrt(n / d)

        def operator(block: Array) -> Array:
            grids = frame.convolved(self._on_mesh(block, ratio)).reshape(len(block), -1)
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
            preconditioner=d / (1 + d),  # around a point alone the operator falls to -1 / d
        )

    def _start_at(self, frame: _Frame, y: Array, active: Array, n: Array) -> Array:
        """First guess of the u_k at the active nodes: those of the last refresh, moved along, or those of the data."""
        if self._shapes is None:
            start = np.ascontiguousarray(self._start.T, dtype=np.float32)
            return frame.spread(y, start).reshape(len(start), int(np.prod(frame.cells)))[:, active] / n
        moved = frame.spread(y, (y - self._y).astype(np.float32)).reshape(len(y), -1)[:, active] / n
        return np.ascontiguousarray(self._frame.read(frame.nodes(active) - moved, self._shapes).T, dtype=np.float32)

    def _on_mesh(self, block: Array, factor: Array) -> Array:
        """Grids of charges: the block at the active nodes, times a factor there."""
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
        parts = self._frame.convolved(self._on_mesh(np.vstack([u, g]), self._n))
        # Where there are no points, the equation of the eigenvectors carries them on.
        mu = pairs.values.astype(np.float32).reshape(-1, *[1] * self._degrees.ndim)
        self._shapes = parts[:-1] / np.maximum(1 + mu * np.maximum(self._degrees, _MIN_DEGREE - 1), _MIN_DEGREE)
        self._potential = parts[-1]
        for k in range(n_vectors):
            self._potential -= np.float32(slope[k]) * parts[k] * self._shapes[k]
        self._near = _Frame.around(self._y, _NEIGHBOURHOOD, fields.workers)
        self._neighbours = self._near.spread(self._y, np.ones((1, self._y.shape[1]), np.float32))

    def _trailing(self, fields: Fields) -> Array:
        """Where the points would be, had they not followed the mean motion of their neighbourhood since the refresh."""
        y = _rows(fields.Y)
        if fields is self._fields:
            return y
        motion = self._near.spread(self._y, (y - self._y).astype(np.float32))
        mean = np.divide(motion, self._neighbours, out=np.zeros_like(motion), where=self._neighbours > 0)
        return y - self._near.read(self._y, mean).T


def _rows(Y: Array) -> Array:
    return np.array(Y.T, dtype=np.float64, order="C")
