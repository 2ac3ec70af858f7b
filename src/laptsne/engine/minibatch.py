"""LaptSNE-Mini: mini-batches, in which only some points and their nearest neighbours move."""

from typing import Any

import numpy as np
import scipy.sparse

from laptsne._runtime.compiled import compiled
from laptsne._runtime.typing import Array
from laptsne.contraction.eigenvector_term import EigenvectorTerm as PairContraction
from laptsne.contraction.eigenvector_term import inverse_root
from laptsne.engine.descent import STIFF_MOMENTUM, Descent
from laptsne.engine.kl import KLDivergence
from laptsne.engine.problem import Problem
from laptsne.engine.run import Run
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
# Steps are longer the fewer points move at once, up to this factor.
_MAX_STEP_SCALE = 4.0
# A point whose neighbours are fixed overshoots sooner than one that moves with them: bound on the distance that
# momentum makes of a unit gradient, in units of n_samples, if hardly any points move (benchmarks/minibatch.py).
_MAX_DISTANCE = 0.55


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

    Every point is in one batch per epoch.

    Parameters
    ----------
    P : sparse matrix in CSR format or array, of shape (n_samples, n_samples)
        Affinities.
    batch_size : int
        Number of points in a batch; the last one of an epoch may have fewer.
    n_neighbors : int
        Number of neighbours of each point that move with it.
    random_state : RandomState
        Source of the order of the points.
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

    Parameters
    ----------
    kernel : Kernel
        Kernel of the embedding.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.degrees = np.empty(0)
        self._n_moved = np.inf  # since the last time they were computed
        self._has_vectors = False

    @property
    def normaliser(self) -> float:
        """Sum of the similarities of all pairs."""
        return max(float(self.degrees.sum()), float(np.finfo(np.float64).tiny))

    def is_due(self, fields: Fields, contraction: PairContraction | None) -> bool:
        """Whether everything should be recomputed, including the eigenvectors of the contraction if it is given."""
        if self._n_moved >= _EPOCHS * self.degrees.size or (contraction is not None and not self._has_vectors):
            return True
        return bool(np.linalg.norm(fields.Y - self._computed_at) > _MAX_MOVE * self._spread)

    def recompute(self, fields: Fields, contraction: PairContraction | None) -> None:
        """Compute everything from scratch; the contraction, if given, is refreshed."""
        self.degrees = fields.degrees.copy()
        self._n_moved, self._computed_at = 0, fields.Y
        self._spread = float(np.linalg.norm(fields.Y - fields.Y.mean(axis=0)))
        self._has_vectors = contraction is not None
        if contraction is not None:
            contraction.refresh(fields)
            sigma = contraction.eigenvalues[1:]
            self._mu, self._slope = 1 - sigma, contraction.penalty.slope(sigma)
            vectors = contraction.eigenvectors[:, 1:] * inverse_root(self.degrees)[:, None]
            # In the layout of a restored checkpoint: products with another one differ in their last bits.
            self.vectors = np.ascontiguousarray(vectors)

    def state(self) -> dict[str, Any]:
        """Everything that is tracked."""
        if not self.degrees.size:
            return {"tracks": False}
        state = {
            "tracks": True,
            "degrees": self.degrees,
            "n_moved": self._n_moved,
            "computed_at": self._computed_at,
            "spread": self._spread,
            "has_vectors": self._has_vectors,
        }
        return state | ({"vectors": self.vectors, "mu": self._mu, "slope": self._slope} if self._has_vectors else {})

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state."""
        if not state["tracks"]:
            return
        self.degrees, self._n_moved, self._has_vectors = state["degrees"], state["n_moved"], state["has_vectors"]
        self._computed_at, self._spread = state["computed_at"], state["spread"]
        if self._has_vectors:
            self.vectors, self._mu, self._slope = state["vectors"], state["mu"], state["slope"]

    def contraction_gradient(self, fields: ExactFields, rows: Array) -> Array:
        """Rows of the gradient of the contraction; the eigenvectors are updated at these rows."""
        image = fields.values(self.vectors)
        updated = image * inverse_root(fields.degrees)[:, None] ** 2 / np.maximum(self._mu, _MIN_EIGENVALUE)
        self.vectors[rows] = np.where(self._mu > _MIN_EIGENVALUE, updated, self.vectors[rows])
        z = self.vectors * np.sqrt(self._slope)
        g = z**2 @ self._mu
        weights = np.column_stack([np.ones(len(rows)), -2 * z[rows]])
        weighted = fields.weighted_gradient(fields.pack(weights, np.column_stack([g, z])))
        return weighted + g[rows, None] * fields.slope

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
        self._n_moved += len(rows)


class BatchRun(Run):
    """The state of a descent in which one batch moves per iteration.

    Parameters
    ----------
    batches : Batches
        The points that move.
    problem, Y, descent, **schedule
        As in :class:`laptsne.engine.run.Run`; sums are over pairs.
    """

    def __init__(self, batches: Batches, problem: Problem, Y: Array, descent: Descent, **schedule: Any) -> None:
        super().__init__(problem, Y, descent, **schedule)
        self.batches, self.kernel = batches, problem.backend.kernel
        self.tracked = TrackedSums(self.kernel)
        self._step_scale = 1.0

    @property
    def check_every(self) -> int:
        """Iterations between convergence checks: those in which the points move as often as in a full descent."""
        return int(np.ceil(super().check_every * len(self.Y) / self.batches.batch_size))

    @property
    def momentum(self) -> float:
        """Current momentum: the same in all phases, since the longer steps of few points make the descent stiff."""
        return STIFF_MOMENTUM if self.descent.momentum is None else self.descent.momentum

    @property
    def _rate_factor(self) -> float:
        return 1.0

    @property
    def rate(self) -> float:
        """Current step size: longer steps the fewer points move at once."""
        return self._step_scale * super().rate

    @property
    def gain_increase(self) -> float:
        """Increase of a gain while its direction persists, as much per epoch as in a full descent."""
        return self._step_scale * super().gain_increase

    def _step_scale_of(self, n_moving: int) -> float:
        """Length of steps relative to those of a full descent."""
        n_samples = len(self.Y)
        share_fixed = 1 - n_moving / n_samples
        distance = super().rate * self.exaggeration / (1 - self.momentum) / n_samples
        return min(n_samples / n_moving, _MAX_STEP_SCALE, _MAX_DISTANCE / max(distance * share_fixed, 1e-9))

    def can_checkpoint(self, iteration: int) -> bool:
        """Return whether the state is complete: everything that is tracked is saved, the potential of a mesh is not."""
        return isinstance(self.problem.contraction, PairContraction) or super().can_checkpoint(iteration)

    def state(self) -> dict[str, Any]:
        """Numbers and arrays from which the run can be resumed."""
        tracked = {f"tracked_{name}": part for name, part in self.tracked.state().items()}
        return super().state() | self.batches.state() | tracked | {"step_scale": self._step_scale}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state."""
        super().restore(state)
        self.batches.restore(state)
        prefix = "tracked_"
        self.tracked.restore({name.removeprefix(prefix): state[name] for name in state if name.startswith(prefix)})
        self._step_scale = state["step_scale"]

    def step(self) -> bool:
        """Move a batch; return False, without a move, if the embedding would diverge."""
        term = self.problem.contraction
        # On a mesh, the term is cheap for all points at once.
        on_mesh = self.strength > 0 and not isinstance(term, PairContraction)
        tracked = term if self.strength > 0 and isinstance(term, PairContraction) else None
        if self.tracked.is_due(self.fields, tracked):
            self.tracked.recompute(self.fields, tracked)
        rows = self.batches.draw()
        fields = ExactFields(self.fields.Y, self.kernel, self.fields.workers, rows)
        contraction: Any = 0.0
        if on_mesh:
            contraction = self.strength * self._contraction_gradient()[rows]
        elif tracked is not None:  # before the gradient of KL: the fields of unit charges come with it
            contraction = self.strength * self.tracked.contraction_gradient(fields, rows)
        kl = self.problem.kl
        assert isinstance(kl, KLDivergence)
        gradient = kl.gradient_rows(fields, rows, self.tracked.normaliser, self.exaggeration)
        self._step_scale = self._step_scale_of(len(rows))
        gains, velocity = None if self.gains is None else self.gains[rows], self.velocity[rows]
        moved = self._moved(gradient + contraction, gains, velocity, self.Y[rows])
        if moved is None:
            return False
        self.tracked.move(fields, rows, moved)
        self.Y = self.Y.copy()
        self.Y[rows], self.velocity[rows], self.applied = moved, velocity, self.strength
        if self.gains is not None:
            self.gains[rows] = gains
        return True
