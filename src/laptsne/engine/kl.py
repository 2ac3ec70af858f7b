"""The loss of t-SNE: the Kullback-Leibler divergence between affinities and similarities of the embedding."""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.random import RandomState

from laptsne._runtime.compiled import compiled, inlined, window
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array, Floats
from laptsne.contraction.eigenvector_term import EigenvectorTerm
from laptsne.contraction.term import Contraction, LazyPotential
from laptsne.fields import CoarseFields, ExactFields, Fields, FourierFields, grid_fits, is_feasible
from laptsne.fields.potential import Potential
from laptsne.graph.neighbors import nearest_of_graph
from laptsne.kernels import Kernel, Student, attraction


@compiled
def _attraction_rows(
    start: int,
    stop: int,
    y0: Array,
    y1: Array | None,
    y2: Array | None,
    precision: float | None,
    rows: Array | None,
    indptr: Array,
    indices: Array | None,
    affinities: Array,
    force: Array,
    log_likelihood: Array | None,
) -> None:
    """Set force to the attraction on all points or on ``rows``, and log_likelihood, if given, to sum_j p_ij log w_ij.

    The affinities are in CSR format, or dense if ``indices`` is None.
    """
    zero = y0.dtype.type(0)
    for r in range(start, stop):
        i = r if rows is None else rows[r]
        x0 = y0[i]
        x1 = zero if y1 is None else y1[i]
        x2 = zero if y2 is None else y2[i]
        p = affinities[indptr[i] : indptr[i + 1]]
        columns = window(indices, indptr[i], indptr[i + 1])
        s0 = s1 = s2 = total = zero
        for e in range(p.size):
            j = e if indices is None else columns[e]
            d0 = x0 - y0[j]
            d1 = zero if y1 is None else x1 - y1[j]
            d2 = zero if y2 is None else x2 - y2[j]
            ratio, log_w = attraction(d0 * d0 + d1 * d1 + d2 * d2, precision)
            strength = p[e] * ratio
            s0 += strength * d0
            s1 += strength * d1
            s2 += strength * d2
            if log_likelihood is not None:
                total += p[e] * log_w
        force[r, 0], force[r, 1], force[r, 2] = s0, s1, s2
        if log_likelihood is not None:
            log_likelihood[r] = total


@inlined
def _coordinates(bits: int) -> tuple[np.float32, np.float32]:
    """Return the two single-precision coordinates in 64 bits."""
    return np.uint32(bits).view(np.float32), np.uint32(bits >> np.uint64(32)).view(np.float32)


@compiled
def _planar_gradient_rows(
    start: int, stop: int, points: Array, graph: Any, factors: Any, slope: Array, gradient: Array
) -> None:
    """Set the gradient in two dimensions, with the Student kernel, given the factors of attraction and repulsion.

    Both coordinates of a point are loaded at once: loads from scattered addresses take most of the time. The indices
    are unsigned, for which there is no check for negative ones.
    """
    (indptr, indices, affinities), (attraction, repulsion) = graph, factors
    one = np.float32(1)
    for i in range(start, stop):
        x0, x1 = _coordinates(points[i])
        p, columns = affinities[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        s0 = s1 = np.float32(0)
        for e in range(p.size):
            z0, z1 = _coordinates(points[columns[e]])
            d0, d1 = x0 - z0, x1 - z1
            strength = p[e] / (one + d0 * d0 + d1 * d1)
            s0 += strength * d0
            s1 += strength * d1
        gradient[i, 0] = attraction * s0 + repulsion * slope[i, 0]
        gradient[i, 1] = attraction * s1 + repulsion * slope[i, 1]


class KLDivergence:
    r"""The term :math:`\mathrm{KL}(P \| Q) = \sum_{ij} p_{ij} \log (p_{ij} / q_{ij})` of an embedding.

    Its gradient is :math:`2 \sum_j p_{ij} (h_{ij} / w_{ij}) (y_i - y_j) + (2 / Z) \nabla\varphi_1(y_i)`, where
    :math:`\nabla_i w_{ij} = -h_{ij} (y_i - y_j)`, and :math:`Z = \sum_i d_i` normalises :math:`q_{ij} = w_{ij} / Z`.

    P is a sparse matrix in CSR format or an array, symmetric with sum 1. With ``fourier``, sums over the embedding are
    computed on a grid, in linear time, and with ``coarse``, steps in two dimensions may take them from a coarse grid.
    """

    stiffness: Array | None = None

    def __init__(
        self,
        P: Any,
        kernel: Kernel | None = None,
        *,
        fourier: bool = False,
        coarse: bool = False,
        workers: Workers | None = None,
    ) -> None:
        self.P, self.kernel, self.workers = P, kernel or Student(), workers or Workers(1)
        self.fourier, self.coarse = fourier, coarse
        self._negative_entropy = _sum_p_log_p(P.data if scipy.sparse.issparse(P) else P)

    @property
    def trivial(self) -> float:
        """KL divergence of the trivial embedding, in which all points coincide."""
        n = self.P.shape[0]
        return float(self._negative_entropy + np.log(n * (n - 1)))

    def fields(self, Y: Floats, step: int | None = None) -> Fields:
        """Return the fields of an embedding; with the number of a step, only as accurate as this step needs them."""
        if step is not None and self.coarse and Y.shape[1] == 2:
            fields = CoarseFields(Y, self.workers, step)
            if fields.is_fast:
                return fields
        if self.fourier and grid_fits(Y):
            return FourierFields(Y, self.workers)
        # Only differences of coordinates matter: single precision is enough for any spread.
        return ExactFields(Y.astype(np.float32), self.kernel, self.workers)

    def is_feasible(self, Y: Floats, largest: float) -> bool:
        """Whether the fields of an embedding, with this largest coordinate, can be computed in reasonable time."""
        return not self.fourier or is_feasible(Y, largest)

    def potential(
        self, term: Contraction, fields: Fields, strength: float, exaggeration: float
    ) -> Potential | LazyPotential | None:
        """Return the potential of new points in the final embedding; None for kernels other than Student's."""
        if not isinstance(self.kernel, Student):
            return None
        if isinstance(term, EigenvectorTerm) and self.fourier:  # its eigenvectors would take long once more
            return term.potential(strength, exaggeration)
        return LazyPotential(term.released(), strength, exaggeration, normaliser=total_similarity(fields))

    def value(self, fields: Fields, exaggeration: float = 1.0) -> float:
        """Return the KL divergence, with the attractive part multiplied by ``exaggeration``."""
        log_likelihood = np.empty(fields.n_samples)
        self._attraction(fields, log_likelihood)
        normaliser = total_similarity(fields)
        return float(self._negative_entropy - exaggeration * log_likelihood.sum() + np.log(normaliser))

    def gradient(
        self, fields: Fields, exaggeration: float = 1.0, rows: Array | None = None, normaliser: float | None = None
    ) -> Floats:
        """Return the gradient with respect to the embedding, with the attraction multiplied by ``exaggeration``.

        With ``rows``, only these, given the fields there and the normaliser.
        """
        normaliser = normaliser or total_similarity(fields)
        _, y1, y2, precision = fields.geometry
        is_planar = y1 is not None and y2 is None and precision is None and y1.dtype == np.float32
        if rows is None and is_planar and scipy.sparse.issparse(self.P):
            return self._planar_gradient(fields, 4 * exaggeration, 2 / normaliser)
        return 2 * exaggeration * self._attraction(fields, rows=rows) + (2 / normaliser) * fields.slope

    def _planar_gradient(self, fields: Fields, attraction: float, repulsion: float) -> Floats:
        points = np.column_stack(fields.geometry[:2]).view(np.uint64).ravel()
        indices = self.P.indices.view(f"u{self.P.indices.itemsize}")
        gradient = np.empty((fields.n_samples, 2))
        args = (points, (self.P.indptr, indices, self.P.data), (attraction, repulsion), fields.slope, gradient)
        fields.workers.rows(_planar_gradient_rows, fields.n_samples, *args, work=4.0 * indices.size)
        return gradient

    def _attraction(self, fields: Fields, log_likelihood: Floats | None = None, rows: Array | None = None) -> Floats:
        n = fields.n_samples
        n_rows = n if rows is None else len(rows)
        force = np.empty((n_rows, 3))
        if scipy.sparse.issparse(self.P):
            affinities = (self.P.indptr, self.P.indices, self.P.data)
        else:
            affinities = (n * np.arange(n + 1), None, self.P.reshape(-1))
        work = 4.0 * affinities[2].size * n_rows / n
        args = (*fields.geometry, rows, *affinities, force, log_likelihood)
        fields.workers.rows(_attraction_rows, n_rows, *args, work=work)
        return force[:, : fields.n_components]


class Batches:
    """The mini-batches of LaptSNE-Mini: a batch and the nearest neighbours of its points under P move together.

    Every point is in one batch per epoch; the last one of an epoch may have fewer points. ``normaliser`` is the sum of
    the similarities of all pairs. It follows each move, and is computed afresh in each epoch, against rounding.
    """

    def __init__(self, P: Any, kernel: Kernel, batch_size: int, n_neighbors: int, random_state: RandomState) -> None:
        self.kernel, self.random_state, self.normaliser = kernel, random_state, 0.0
        self.n_samples = P.shape[0]
        self.batch_size = min(batch_size, self.n_samples)
        if n_neighbors == 0:  # sorting the affinities would take many times their memory
            self._neighbors = np.empty((self.n_samples, 0), np.int64)
        elif scipy.sparse.issparse(P):
            far = P.copy()
            far.data = -far.data  # the nearest have the largest affinity
            graph = nearest_of_graph(far, n_neighbors)
            row = np.repeat(np.arange(self.n_samples), np.diff(graph.indptr))
            # Points with fewer neighbours are filled up with themselves.
            self._neighbors = np.tile(np.arange(self.n_samples)[:, None], n_neighbors)
            self._neighbors[row, np.arange(row.size) - graph.indptr[row]] = graph.indices
        else:
            self._neighbors = np.argsort(-P, axis=1, kind="stable")[:, :n_neighbors]
        self._waiting = np.empty(0, np.int64)

    def draw(self, fields: Fields) -> tuple[Array, ExactFields]:
        """Return the points that move next, in ascending order, and the fields at these."""
        if not self._waiting.size:
            self._waiting = self.random_state.permutation(self.n_samples)
            self.normaliser = total_similarity(fields)
        batch, self._waiting = self._waiting[: self.batch_size], self._waiting[self.batch_size :]
        moves = np.zeros(self.n_samples, bool)
        moves[batch] = moves[self._neighbors[batch].ravel()] = True
        rows = np.flatnonzero(moves)
        return rows, ExactFields(fields.Y, self.kernel, fields.workers, rows)

    def follow(self, rows: Array, before: ExactFields, moved: Array) -> None:
        """Update the normaliser after a move of some points from their fields to other positions."""
        Y = before.Y.copy()
        Y[rows] = moved
        after = ExactFields(Y, self.kernel, before.workers, rows)
        self.normaliser += self._similarity_with(rows, after) - self._similarity_with(rows, before)

    def _similarity_with(self, rows: Array, fields: ExactFields) -> float:
        """Return the sum of the similarities of all pairs with a point in ``rows``, at which the fields are."""
        among = ExactFields(fields.Y[rows], self.kernel, fields.workers)
        return float(2 * fields.degrees.sum() - among.degrees.sum())

    def state(self) -> dict[str, Any]:
        """Return the rest of the epoch, the state of the random numbers and the normaliser."""
        kind, key, *rest = self.random_state.get_state()
        random = {"random_key": key, "random_rest": [kind, *rest]}
        return {"waiting": self._waiting, "normaliser": self.normaliser, **random}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state."""
        kind, *rest = state["random_rest"]
        self.random_state.set_state((kind, state["random_key"], *rest))
        self._waiting, self.normaliser = state["waiting"], state["normaliser"]


def total_similarity(fields: Fields) -> float:
    """Return the sum of the similarities of all pairs."""
    return max(float(fields.degrees.sum()), float(np.finfo(np.float64).tiny))


def _sum_p_log_p(p: Array) -> float:
    """Return the sum of p log p, computed in blocks, so that a dense P needs no second matrix."""
    blocks = p.reshape(-1)
    total = 0.0
    for start in range(0, blocks.size, 1 << 20):
        block = blocks[start : start + (1 << 20)].astype(np.float64)
        block = block[block > 0]
        total += float(block @ np.log(block))
    return total
