"""LaptSNE-Mini: mini-batches, in which only some points and their nearest neighbours move."""

from typing import Any

import numpy as np
import scipy.sparse

from laptsne._runtime.typing import Array
from laptsne.engine.kl import total_similarity
from laptsne.fields import ExactFields, Fields
from laptsne.graph.neighbors import nearest_of_graph
from laptsne.kernels import Kernel


class Batches:
    """Draw the points that move together: a batch, and the nearest neighbours of its points under P.

    Every point is in one batch per epoch; the last one of an epoch may have fewer points. ``normaliser`` is the sum of
    the similarities of all pairs. It follows each move, and is computed afresh in each epoch, against rounding.
    """

    def __init__(
        self, P: Any, kernel: Kernel, batch_size: int, n_neighbors: int, random_state: np.random.RandomState
    ) -> None:
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
