"""LaptSNE-Mini: in every iteration only a batch of points and their nearest neighbours move."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from laptsne._runtime.compiled import compiled
from laptsne.embedding.fields import ExactFields, Fields
from laptsne.embedding.fields.exact import similarity
from laptsne.embedding.kernels import Kernel
from laptsne.embedding.objective import PairContraction
from laptsne.embedding.objective.pairs import inverse_root
from laptsne.embedding.optimizer import Descent, Problem, Run
from laptsne.graph.neighbors import nearest_of_graph

Array = NDArray[Any]

# The changes of degrees are summed in this many parts of the points, whatever the number of threads.
_PARTS = 8
# What is kept up from batch to batch is computed anew after so many points have moved as this many maps have, or as
# soon as they have moved by this share of the spread of the map.
_EPOCHS = 5
_MAX_MOVE = 0.2
# Below this share an image under the graph is not that of an eigenvector any more, but of a map without clusters.
_MIN_IMAGE = 0.3
# The fewer points move at once, the longer their steps, up to this factor.
_MAX_PACE = 4.0
# A point whose neighbours rest overshoots sooner than one that moves with them: the longest way that momentum makes of
# a unit of gradient, in units of the number of points, where hardly any of them move (benchmarks/minibatch.py).
_MAX_WAY = 0.55


@compiled
def _change_parts(
    start: int,
    stop: int,
    edges: Array,
    y0: Array,
    y1: Array | None,
    y2: Array | None,
    precision: Array | None,
    resting: Array,
    b0: Array,
    b1: Array | None,
    b2: Array | None,
    moving: Array | None,
    a0: Array,
    a1: Array | None,
    a2: Array | None,
    change: Array,
    moved: Array,
) -> None:
    """What the move of some points, from places b to places a, changes in the degrees.

    Sets change[j] for each resting point j of some parts, and adds to moved[part, i] the change of the moving point i
    by these. ``moving`` are the precisions of the moving points.
    """
    zero = y0.dtype.type(0)
    for part in range(start, stop):
        own = moved[part]
        for e in range(edges[part], edges[part + 1]):
            j = resting[e]
            x0 = y0[j]
            x1 = zero if y1 is None else y1[j]
            x2 = zero if y2 is None else y2[j]
            width = None if precision is None else precision[j]
            total = zero
            for i in range(b0.size):
                d0, c0 = b0[i] - x0, a0[i] - x0
                d1 = zero if b1 is None else b1[i] - x1
                c1 = zero if a1 is None else a1[i] - x1
                d2 = zero if b2 is None else b2[i] - x2
                c2 = zero if a2 is None else a2[i] - x2
                other = None if moving is None else moving[i]
                before, _ = similarity(d0 * d0 + d1 * d1 + d2 * d2, width, other)
                after, _ = similarity(c0 * c0 + c1 * c1 + c2 * c2, width, other)
                own[i] += after - before
                total += after - before
            change[e] = total


_CARRIED = ("degrees", "_n_moved", "_corrected_at", "_spread", "_with_vectors")
_CARRIED_VECTORS = ("vectors", "_mu", "_slope")


class Batches:
    """The points that move together: a batch, and the nearest neighbours of its points under P.

    All points have their turn in a batch before any has its second.

    Parameters
    ----------
    P : sparse matrix in CSR form or array, of shape (n_samples, n_samples)
        Affinities.
    batch_size : int
        Points in a batch; the last of a round of all points may have fewer.
    n_neighbors : int
        Neighbours of each that move with it.
    random_state : RandomState
        Of the order.
    """

    def __init__(self, P: Any, batch_size: int, n_neighbors: int, random_state: np.random.RandomState) -> None:
        self.n_samples = P.shape[0]
        self.batch_size = min(batch_size, self.n_samples)
        self.random_state = random_state
        if n_neighbors == 0:  # to sort the affinities would need many times their memory
            self._neighbors = np.empty((self.n_samples, 0), np.int64)
        elif scipy.sparse.issparse(P):
            far = P.copy()
            far.data = -far.data  # the nearest have the largest affinity
            graph = nearest_of_graph(far, n_neighbors)
            row = np.repeat(np.arange(self.n_samples), np.diff(graph.indptr))
            # A point with fewer neighbours is its own.
            self._neighbors = np.tile(np.arange(self.n_samples)[:, None], n_neighbors)
            self._neighbors[row, np.arange(row.size) - graph.indptr[row]] = graph.indices
        else:
            self._neighbors = np.argsort(-P, axis=1, kind="stable")[:, :n_neighbors]
        self._waiting = np.empty(0, np.int64)

    def draw(self) -> Array:
        """The points that move next, in order."""
        if not self._waiting.size:
            self._waiting = self.random_state.permutation(self.n_samples)
        batch, self._waiting = self._waiting[: self.batch_size], self._waiting[self.batch_size :]
        moves = np.zeros(self.n_samples, bool)
        moves[batch] = moves[self._neighbors[batch].ravel()] = True
        return np.flatnonzero(moves)

    def state(self) -> dict[str, Any]:
        """Who waits, and where the random numbers are."""
        kind, key, *rest = self.random_state.get_state()
        return {"waiting": self._waiting, "random_key": key, "random_rest": [kind, *rest]}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        kind, *rest = state["random_rest"]
        self.random_state.set_state((kind, state["random_key"], *rest))
        self._waiting = state["waiting"]


class Carried:
    """What the gradient needs of the whole map, kept up while parts of it move.

    Degrees follow every move exactly, up to rounding. The eigenvectors follow by one step of the power
    iteration at the points that are about to move. :meth:`correct` computes all of it anew.

    Parameters
    ----------
    contraction : PairContraction
        The term; refreshed at every correction.
    kernel : Kernel
        Of the map.
    """

    def __init__(self, contraction: PairContraction, kernel: Kernel) -> None:
        self.contraction, self.kernel = contraction, kernel
        self.degrees = np.empty(0)
        self._n_moved = np.inf  # since the last correction
        self._with_vectors = False

    @property
    def normaliser(self) -> float:
        """Sum of the similarities of all pairs."""
        return max(float(self.degrees.sum()), float(np.finfo(np.float64).tiny))

    def is_due(self, fields: Fields, *, with_vectors: bool) -> bool:
        """Whether all should be computed anew; ``with_vectors`` where the eigenvectors are needed."""
        if self._n_moved >= _EPOCHS * self.degrees.size or (with_vectors and not self._with_vectors):
            return True
        return bool(np.linalg.norm(fields.Y - self._corrected_at) > _MAX_MOVE * self._spread)

    def correct(self, fields: Fields, *, with_vectors: bool) -> None:
        """Compute all of it anew."""
        self.degrees = fields.degrees.copy()
        self._n_moved, self._corrected_at = 0, fields.Y
        self._spread = float(np.linalg.norm(fields.Y - fields.Y.mean(axis=0)))
        self._with_vectors = with_vectors
        if with_vectors:
            self.contraction.refresh(fields)
            sigma = self.contraction.eigenvalues[1:]
            self._mu, self._slope = 1 - sigma, self.contraction.penalty.slope(sigma)
            self.vectors = self.contraction.eigenvectors[:, 1:] * inverse_root(self.degrees)[:, None]

    def state(self) -> dict[str, Any]:
        """All that is carried."""
        if not self.degrees.size:
            return {}
        carried = {name: getattr(self, name) for name in (*_CARRIED, *(_CARRIED_VECTORS if self._with_vectors else ()))}
        return {f"carried_{name}": part for name, part in carried.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        for name, part in state.items():
            if name.startswith("carried_"):
                setattr(self, name.removeprefix("carried_"), part)

    def contraction_gradient(self, fields: ExactFields, rows: Array) -> Array:
        """Rows of the gradient of the contraction, the eigenvectors brought up to date there."""
        image = fields.values(self.vectors)
        up_to_date = image * inverse_root(fields.degrees)[:, None] ** 2 / np.maximum(self._mu, _MIN_IMAGE)
        self.vectors[rows] = np.where(self._mu > _MIN_IMAGE, up_to_date, self.vectors[rows])
        z = self.vectors * np.sqrt(self._slope)
        g = z**2 @ self._mu
        weights = np.column_stack([np.ones(len(rows)), -2 * z[rows]])
        weighted = fields.weighted_gradient(fields.pack(weights, np.column_stack([g, z])))
        return weighted + g[rows, None] * fields.slope

    def move(self, fields: ExactFields, rows: Array, after: Array) -> None:
        """Follow the move of some points to places ``after``; the fields are those at these points before it."""
        rests = np.ones(fields.n_samples, bool)
        rests[rows] = False
        resting = np.flatnonzero(rests)
        edges = np.linspace(0, resting.size, _PARTS + 1).astype(np.int64)
        before = [None if part is None else part[rows] for part in fields.geometry]
        places = np.ascontiguousarray((after - fields.centre).T, dtype=fields.dtype)
        later = (*places, *[None] * (3 - fields.n_components))
        change, moved = np.empty(resting.size), np.zeros((_PARTS, len(rows)), fields.dtype)
        args = (edges, *fields.geometry, resting, *before, *later, change, moved)
        fields.workers.rows(_change_parts, _PARTS, *args, work=2.0 * len(rows) * resting.size, alignment=1)
        # The fields have the degrees of the moving points before the move, all others included.
        among = [ExactFields(Y, self.kernel.of(rows), fields.workers) for Y in (fields.Y[rows], places.T)]
        self.degrees[resting] += change
        self.degrees[rows] = fields.degrees + moved.sum(axis=0) + among[1].degrees - among[0].degrees
        self._n_moved += len(rows)


class BatchRun(Run):
    """The moving parts of one descent, in which a batch moves in every iteration.

    Parameters
    ----------
    batches : Batches
        Which points move.
    kernel : Kernel
        Of the map.
    problem, Y, descent, **schedule
        As in :class:`laptsne.embedding.optimizer.Run`; the contraction of the problem is one by pairs.
    """

    def __init__(
        self, batches: Batches, kernel: Kernel, problem: Problem, Y: Array, descent: Descent, **schedule: Any
    ) -> None:
        super().__init__(problem, Y, descent, **schedule)
        self.batches, self.kernel = batches, kernel
        assert isinstance(problem.contraction, PairContraction)
        self.carried = Carried(problem.contraction, kernel)
        self._pace = 1.0

    @property
    def rate(self) -> float:
        """Step size in force: the fewer points move at once, the longer their steps."""
        return self._pace * super().rate

    @property
    def growth(self) -> float:
        """What a gain grows by while its direction lasts: as much in as many iterations as if all points moved."""
        return self._pace * super().growth

    def _pace_of(self, n_moving: int) -> float:
        """Length of steps in units of those of a map that moves as a whole."""
        n_samples = len(self.Y)
        resting = 1 - n_moving / n_samples
        way = super().rate * self.exaggeration / (1 - self.descent.momentum) / n_samples
        return min(n_samples / n_moving, _MAX_PACE, _MAX_WAY / max(way * resting, 1e-9))

    def can_rest(self, iteration: int) -> bool:
        """Always: all that is carried is written."""
        return True

    def state(self) -> dict[str, Any]:
        """Numbers and arrays from which the run can go on."""
        return super().state() | self.batches.state() | self.carried.state() | {"pace": self._pace}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        super().restore(state)
        self.batches.restore(state)
        self.carried.restore(state)
        self._pace = state["pace"]

    def step(self) -> bool:
        """Move a batch; False, and no move, where that would take it out of all bounds."""
        contracts = self.strength > 0
        assert isinstance(self.problem.contraction, PairContraction)
        self.carried.contraction = self.problem.contraction  # another one since it was decided upon
        if self.carried.is_due(self.fields, with_vectors=contracts):
            self.carried.correct(self.fields, with_vectors=contracts)
        rows = self.batches.draw()
        fields = ExactFields(self.fields.Y, self.kernel, self.fields.workers, rows)
        # First the contraction: the fields of unit charges come with it.
        contraction = self.strength * self.carried.contraction_gradient(fields, rows) if contracts else 0.0
        gradient = self.problem.kl.gradient_rows(fields, rows, self.carried.normaliser, self.exaggeration)
        self._pace = self._pace_of(len(rows))
        gains, velocity = None if self.gains is None else self.gains[rows], self.velocity[rows]
        moved = self._moved(gradient + contraction, gains, velocity, self.Y[rows])
        if moved is None:
            return False
        self.carried.move(fields, rows, moved)
        self.Y = self.Y.copy()
        self.Y[rows], self.velocity[rows] = moved, velocity
        if self.gains is not None:
            self.gains[rows] = gains
        return True
