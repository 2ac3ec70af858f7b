"""LaptSNE-Mini: mini-batches, in which only some points and their nearest neighbours move."""

from typing import Any

import numpy as np
import scipy.sparse

from laptsne._runtime.compiled import compiled
from laptsne._runtime.typing import Array
from laptsne.contraction.eigenvector_term import EigenvectorTerm, inverse_root
from laptsne.engine.kl import KLDivergence
from laptsne.engine.minimise import AllPoints, Descending
from laptsne.fields import ExactFields, Fields
from laptsne.graph.neighbors import nearest_of_graph
from laptsne.kernels import Kernel, similarity

# Changes of the degrees are summed in this number of parts, so that bits do not depend on the number of threads.
_PARTS = 8
# Tracked sums are recomputed once each point has moved this often on average, or once the points have moved by this
# fraction of the spread of the embedding.
_EPOCHS = 5
_MAX_MOVE = 0.2
# Eigenvectors with a smaller eigenvalue of D^-1 W are not updated by the power iteration: there are no clusters yet.
_MIN_EIGENVALUE = 0.3


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
    """Change of the degrees when some points move from positions b to positions a.

    Set change[j] for each fixed point j of some parts, and add to moved[part, i] the change of the moving point i due
    to these. ``moving`` are the precisions of the moving points.
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


class Batches:
    """Draw the points that move together: a batch, and the nearest neighbours of its points under P.

    Every point is in one batch per epoch; the last one of an epoch may have fewer points.
    """

    def __init__(self, P: Any, batch_size: int, n_neighbors: int, random_state: np.random.RandomState) -> None:
        self.n_samples = P.shape[0]
        self.batch_size = min(batch_size, self.n_samples)
        self.random_state = random_state
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

    def draw(self) -> Array:
        """The points that move next, in ascending order."""
        if not self._waiting.size:
            self._waiting = self.random_state.permutation(self.n_samples)
        batch, self._waiting = self._waiting[: self.batch_size], self._waiting[self.batch_size :]
        moves = np.zeros(self.n_samples, bool)
        moves[batch] = moves[self._neighbors[batch].ravel()] = True
        return np.flatnonzero(moves)

    def state(self) -> dict[str, Any]:
        """The rest of the epoch and the state of the random numbers."""
        kind, key, *rest = self.random_state.get_state()
        return {"waiting": self._waiting, "random_key": key, "random_rest": [kind, *rest]}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state."""
        kind, *rest = state["random_rest"]
        self.random_state.set_state((kind, state["random_key"], *rest))
        self._waiting = state["waiting"]


class TrackedSums:
    """Sums over the whole embedding that the gradient needs, updated while batches move.

    Degrees follow each move exactly, up to rounding. The eigenvectors follow by one step of power iteration at the
    points about to move. :meth:`recompute` computes everything from scratch.
    """

    _TRACKED = ("degrees", "computed_at", "spread", "n_moved", "vectors", "mu", "slope")

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.degrees, self.n_moved = np.empty(0), 0  # number of moves since everything was computed
        self.vectors: Any = None  # those of the contraction, if there is one, and their eigenvalues and slopes
        self.mu: Any = None
        self.slope: Any = None

    @property
    def normaliser(self) -> float:
        """Sum of the similarities of all pairs."""
        return max(float(self.degrees.sum()), float(np.finfo(np.float64).tiny))

    def is_due(self, fields: Fields, contraction: EigenvectorTerm | None) -> bool:
        """Whether everything should be recomputed, including the eigenvectors of the contraction if it is given."""
        if self.n_moved >= _EPOCHS * self.degrees.size or (contraction is not None and self.vectors is None):
            return True
        return bool(np.linalg.norm(fields.Y - self.computed_at) > _MAX_MOVE * self.spread)

    def recompute(self, fields: Fields, contraction: EigenvectorTerm | None) -> None:
        """Compute everything from scratch; the contraction, if given, is refreshed."""
        self.degrees = fields.degrees.copy()
        self.n_moved, self.computed_at = 0, fields.Y
        self.spread = float(np.linalg.norm(fields.Y - fields.Y.mean(axis=0)))
        self.vectors = None
        if contraction is not None:
            contraction.refresh(fields)
            sigma = contraction.eigenvalues[1:]
            self.mu, self.slope = 1 - sigma, contraction.penalty.slope(sigma)
            vectors = contraction.eigenvectors[:, 1:] * inverse_root(self.degrees)[:, None]
            # In the layout of a restored checkpoint: products with another one differ in their last bits.
            self.vectors = np.ascontiguousarray(vectors)

    def state(self) -> dict[str, Any]:
        """Return everything that is tracked, once it has been computed."""
        names = self._TRACKED if self.degrees.size else ()
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state."""
        for name in self._TRACKED:
            if name in state:
                setattr(self, name, state[name])

    def contraction_gradient(self, fields: ExactFields, rows: Array) -> Array:
        """Rows of the gradient of the contraction; the eigenvectors are updated at these rows."""
        image = fields.values(self.vectors)
        updated = image * inverse_root(fields.degrees)[:, None] ** 2 / np.maximum(self.mu, _MIN_EIGENVALUE)
        self.vectors[rows] = np.where(self.mu > _MIN_EIGENVALUE, updated, self.vectors[rows])
        z = self.vectors * np.sqrt(self.slope)
        g = z**2 @ self.mu
        weights = np.column_stack([np.ones(len(rows)), -2 * z[rows]])
        weighted = fields.weighted_gradient(weights, np.column_stack([g, z]))
        return np.asarray(weighted + g[rows, None] * fields.slope)

    def move(self, fields: ExactFields, rows: Array, after: Array) -> None:
        """Follow the move of some points to the positions ``after``; the fields are those before the move."""
        is_fixed = np.ones(fields.n_samples, bool)
        is_fixed[rows] = False
        fixed = np.flatnonzero(is_fixed)
        edges = np.linspace(0, fixed.size, _PARTS + 1).astype(np.int64)
        before = [None if part is None else part[rows] for part in fields.geometry]
        positions = np.ascontiguousarray((after - fields.centre).T, dtype=fields.dtype)
        later = (*positions, *[None] * (3 - fields.n_components))
        change, moved = np.empty(fixed.size), np.zeros((_PARTS, len(rows)), fields.dtype)
        args = (edges, *fields.geometry, fixed, *before, *later, change, moved)
        fields.workers.rows(_change_parts, _PARTS, *args, work=2.0 * len(rows) * fixed.size, alignment=1)
        # The fields have the degrees of the moving points before the move, with respect to all others.
        among = [ExactFields(Y, self.kernel.of(rows), fields.workers) for Y in (fields.Y[rows], positions.T)]
        self.degrees[fixed] += change
        self.degrees[rows] = fields.degrees + moved.sum(axis=0) + among[1].degrees - among[0].degrees
        self.n_moved += len(rows)


class BatchOfPoints(AllPoints):
    """The rule by which one batch moves per iteration; sums are over pairs."""

    def __init__(self, batches: Batches, kernel: Kernel) -> None:
        self.batches, self.kernel = batches, kernel
        self.tracked = TrackedSums(kernel)

    def __call__(self, descent: Descending, fields: Fields) -> bool:
        """Move a batch; return False, without a move, if the embedding would diverge."""
        position, term, loss, strength = descent.position, descent.term, descent.loss, descent.strength
        tracked = term if strength > 0 and isinstance(term, EigenvectorTerm) else None
        if self.tracked.is_due(fields, tracked):
            self.tracked.recompute(fields, tracked)
        rows = self.batches.draw()
        near = ExactFields(fields.Y, self.kernel, fields.workers, rows)
        contraction: Any = 0.0
        if tracked is not None:  # before the gradient of the loss: the fields of unit charges come with it
            contraction = strength * self.tracked.contraction_gradient(near, rows)
        elif strength > 0:  # on a mesh, the term is cheap for all points at once
            contraction = strength * descent.contraction_gradient(fields)[rows]
        assert isinstance(loss, KLDivergence)
        exaggeration = descent.schedule.exaggeration(position.iteration)
        gradient = loss.gradient_rows(near, rows, self.tracked.normaliser, exaggeration) + contraction
        scale = descent.schedule.batch_scale(position.iteration, len(rows), len(position.Y))
        gains, velocity = None if position.gains is None else position.gains[rows], position.velocity[rows]
        moved = descent.moved(gradient, gains, velocity, position.Y[rows], scale)
        if moved is None:
            return False
        self.tracked.move(near, rows, moved)
        position.Y = position.Y.copy()
        position.Y[rows], position.velocity[rows], position.applied = moved, velocity, strength
        if position.gains is not None:
            position.gains[rows] = gains
        return True

    def is_resumable(self, descent: Descending) -> bool:
        """Return whether everything that is tracked is stored; the gradient of a mesh is not."""
        return isinstance(descent.term, EigenvectorTerm)

    def state(self) -> dict[str, Any]:
        """Return the rest of the epoch, the state of the random numbers and the tracked sums."""
        return self.batches.state() | {f"tracked_{name}": part for name, part in self.tracked.state().items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state."""
        self.batches.restore(state)
        prefix = "tracked_"
        self.tracked.restore({name.removeprefix(prefix): state[name] for name in state if name.startswith(prefix)})
