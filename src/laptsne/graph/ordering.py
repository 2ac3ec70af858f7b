"""The order of the points in which neighbours lie close in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from laptsne._runtime.threads import Workers
from laptsne.graph.coarsening import MAX_AGGREGATES, NODES_PER_AGGREGATE, aggregates

Array = NDArray[Any]

# Beyond this number of points the embedding no longer fits into the L2 cache, and affinities are ordered for locality.
MAX_UNORDERED = 100_000


def locality_order(P: Any, workers: Workers) -> Array:
    """An order in which neighbours in the graph are mostly near each other, as caches like it."""
    return np.argsort(aggregates(P, min(P.shape[0] // NODES_PER_AGGREGATE, MAX_AGGREGATES), workers), kind="stable")


def ordered_for_locality(P: Any, workers: Workers) -> tuple[Any, Array | None]:
    """The affinities in an order that the cache likes, and that order; as they are and None where it makes no odds."""
    if P.shape[0] <= MAX_UNORDERED or not scipy.sparse.issparse(P):
        return P, None
    order = locality_order(P, workers)
    return reordered(P, order), order


def reordered(P: Any, order: Array) -> Any:
    """The graph with its rows and columns in another order."""
    place = np.empty(order.size, P.indices.dtype)
    place[order] = np.arange(order.size)
    rows = P[order]
    rows.indices = place[rows.indices]
    rows.has_sorted_indices = False
    return rows
