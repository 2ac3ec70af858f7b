"""What both contraction terms have in common: width, penalty, refreshes, and the potential of new points."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from laptsne._runtime.threads import Workers, single_threaded_blas
from laptsne._runtime.typing import Array, Floats
from laptsne.fields import ExactFields, Fields
from laptsne.fields.grid import Mesh
from laptsne.fields.potential import Potential

_SPACING = {1: 0.2, 2: 0.5, 3: 0.7}  # of the mesh of a potential with the Student kernel, by dimension
_MIN_SPACING = {1: 0.05, 2: 0.05, 3: 0.2}  # transforms of a finer mesh in 3-D would take minutes
_MIN_CELLS = 16  # per side, for small embeddings
_LARGE = 1e30  # limit of factors in single precision
_TOL = 1e-3  # residual of the eigenvectors behind a potential
_WIDTH = 1.0  # in radii of the clusters (docs/notes/method-what-was-tried.md has others)
# Floor of the penalty: an eigenvalue well below it counts as zero, and its cluster is not contracted any further.
FLOOR = 0.1
MAX_CONTRACTED = 60  # clusters that are contracted if their number is not given
_MIN_WIDTH = 0.6  # in RMS radii / sqrt(n_samples): a quarter of the distance between neighbours in a disc


def kernel_width(Y: Array, labels: Array, members: Array, wanted: float | None = None) -> float:
    """Return the width of the Gaussian kernel of the contraction, given the points of each cluster, one by one.

    By default, it is proportional to the radius of the clusters, but at least 1, the width of the kernel of the KL
    divergence. It is at least a quarter of the spacing of the points and at most the radius of the embedding.
    """
    n_samples, n_dims = Y.shape
    radius = max(rms_radius(Y), 1.0)  # less in the first iterations only, where gradients would be too large
    width = max(_WIDTH * cluster_radius(Y, labels, members), 1.0) if wanted is None else wanted
    return float(np.clip(width, _MIN_WIDTH * radius / n_samples ** (1 / n_dims), radius))


def cluster_radius(Y: Array, labels: Array, members: Array) -> float:
    """Return the radius of a ball with the mean volume of the clusters; that of a cluster has half of its points."""
    n_dims = Y.shape[1]
    ends = np.flatnonzero(np.diff(labels[members])) + 1
    squared = [_median_square(Y[rows]) for rows in np.split(members, ends)]
    return float(np.mean(np.array(squared) ** (n_dims / 2)) ** (1 / n_dims))


def _median_square(Y: Array) -> float:
    """Return the median of the squared distances from the median position."""
    squared: Any = sum((column - _median(column)) ** 2 for column in Y.T)
    return _median(squared)


def _median(values: Array) -> float:
    """Return the upper median, in a tenth of the time that NumPy takes for a few values."""
    return float(np.partition(values, values.size // 2)[values.size // 2])


def rms_radius(Y: Array) -> float:
    """Return the RMS distance of the points from their mean."""
    # Column by column: reductions over short rows are slow.
    return float(np.sqrt(sum(np.var(column, dtype=np.float64) for column in Y.T)))


@dataclass(frozen=True)
class Penalty:
    r"""A concave function :math:`\phi(\sigma)` of an eigenvalue, and its slope.

    It is :math:`\log(\sigma + \varepsilon)` if ``kind`` is "log", :math:`\sigma` if it is "trace", and
    :math:`(\sigma + \varepsilon)^p - \varepsilon^p` if it is a power p. The floor :math:`\varepsilon` keeps the slope
    finite at 0: an eigenvalue well below it counts as zero.
    """

    kind: str | float
    floor: float = 1e-3

    def value(self, sigma: Floats) -> Floats:
        """Return the penalty of each eigenvalue."""
        if self.kind == "log":
            return np.log(sigma + self.floor)
        p = self._power
        return np.asarray((sigma + self.floor) ** p - self.floor**p)

    def slope(self, sigma: Floats) -> Floats:
        """Return the derivative of the penalty at each eigenvalue."""
        if self.kind == "log":
            return 1 / (sigma + self.floor)
        return np.asarray(self._power * (sigma + self.floor) ** (self._power - 1))

    @property
    def _power(self) -> float:
        return 1.0 if self.kind == "trace" else float(self.kind)


class Contraction(ABC):
    r"""The term :math:`R(Y) = \sum_{k=1}^{K} \phi(\sigma_k)` of the smallest eigenvalues of a graph of an embedding."""

    max_age = float("inf")  # iterations after which a refresh is due at the latest
    wanted_width: float | None = None  # of Gaussian similarities, None for one that follows the embedding
    width: float | None = None  # at the last refresh; None for the similarities of the loss
    fixed = True  # whether the width stays as it is, rather than following the embedding at each refresh
    eigenvalues: Floats  # the K smallest at the last refresh
    n_levels = 1  # of the clusters
    residual = 0.0  # largest residual norm of the eigenpairs: a bound on the error of each eigenvalue
    stored: tuple[str, ...]  # names of the attributes from which the next refresh can start

    def __init__(self, n_clusters: int, penalty: Penalty) -> None:
        self.n_clusters, self.penalty = n_clusters, penalty
        self._fields: Any = None  # of the embedding at the last refresh
        self._gradient: Floats | None = None  # if points keep it until the next one

    def refresh(self, fields: Fields, *, tol: float | None = None, max_passes: int | None = None) -> None:
        """Compute the eigenvalues of an embedding; iterative methods take a tolerance and a number of passes."""
        self._fields, self._gradient = fields, None
        self._solve(fields, tol, max_passes)

    @abstractmethod
    def _solve(self, fields: Fields, tol: float | None, max_passes: int | None) -> None:
        """Compute the eigenvalues and what the gradient needs."""

    def value(self) -> float:
        """Return R at the last refresh."""
        return float(self.penalty.value(self.eigenvalues).sum())

    @abstractmethod
    def gradient(self, fields: Fields, rows: Any = slice(None)) -> Floats:
        """Return rows of the gradient, with the eigenpairs of the last refresh, given the fields at these rows."""

    @abstractmethod
    def potential_grid(self, mesh: Mesh) -> Array:
        """Return the derivative of R by the density of further points, at the nodes of a mesh, in their shape."""

    def state(self) -> dict[str, Any]:
        """Return numbers and arrays from which the next refresh can start."""
        return {name: getattr(self, name) for name in self.stored}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state; there is no gradient before the next refresh."""
        for name in self.stored:
            setattr(self, name, state[name])

    @abstractmethod
    def released(self) -> Self:
        """Return a copy of this term that keeps its similarities but not its embedding, to be refreshed again."""

    @property
    def points(self) -> Array:
        """Embedding of the last refresh, of shape (n_components, n_samples)."""
        return rows_of(self._fields.Y)

    def potential(
        self, strength: float, exaggeration: float = 1.0, *, fields: Fields | None = None, normaliser: float = 0.0
    ) -> Potential:
        r"""Return the potential of a new point, without the attraction, over the embedding of the last refresh.

        It is the change of the objective by the point, times N / 2: :math:`(N / Z) \varphi_1 + (N \lambda / 2) \psi`,
        with the ``strength`` :math:`\lambda` and the derivative :math:`\psi` of R by the density. It is divided by the
        exaggeration, so that the attraction of the new point needs no factor. Without contraction, ``fields`` may be
        those of another embedding; the ``normaliser`` Z is computed from them if it is not given.
        """
        fields = fields or self._fields
        n, y = fields.n_samples, rows_of(fields.Y)
        normaliser = normaliser or max(float(fields.degrees.sum()), float(np.finfo(np.float32).tiny))
        repulsion, contraction = (np.float32(min(factor, _LARGE)) for factor in (n / normaliser, n * strength / 2))
        fine = float(np.clip(np.ptp(y, axis=1).max() / _MIN_CELLS, _MIN_SPACING[len(y)], _SPACING[len(y)]))
        mesh = Mesh.around(y, fine, fields.workers)
        grid = repulsion * mesh.field(y, np.ones((1, n), np.float32))[0]
        if strength:
            grid += contraction * self.potential_grid(mesh)
        divisor = np.float32(min(exaggeration, _LARGE))
        return Potential(mesh.origin, mesh.spacing, grid / divisor, charge=float(repulsion / divisor))

    def observed_at(self, fields: Fields) -> Self:
        """Return the term refreshed at another embedding; this object is unchanged."""
        if fields is self._fields:
            return self
        observer = copy.copy(self)
        observer.refresh(fields)
        return observer

    def moved(self, fields: Fields) -> float:
        """Return the RMS displacement of the points since the last refresh; infinite before the first."""
        if self._fields is None:
            return float("inf")
        return float(np.linalg.norm(fields.Y - self._fields.Y) / np.sqrt(fields.n_samples))


@dataclass(frozen=True)
class LazyPotential:
    """A potential that is computed when the first new point is placed, by a term that is not refreshed yet."""

    term: Contraction
    strength: float
    exaggeration: float
    normaliser: float = 0.0  # sum of the similarities of all pairs; 0 if it is to be computed

    def compute(self, Y: Array, workers: Workers) -> Potential:
        """Compute the potential of an embedding."""
        fields, term = ExactFields(Y.astype(np.float32), workers=workers), copy.copy(self.term)
        with single_threaded_blas():
            if self.strength:
                term.refresh(fields, tol=_TOL)
            return term.potential(self.strength, self.exaggeration, fields=fields, normaliser=self.normaliser)


def rows_of(Y: Array) -> Array:
    """Return the coordinates, one row per dimension."""
    return np.array(Y.T, dtype=np.float64, order="C")
