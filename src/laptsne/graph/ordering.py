"""Reordering of points so that neighbours are close in memory."""

from typing import Any

import numpy as np
import scipy.sparse

from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.graph.coarsening import MAX_AGGREGATES, NODES_PER_AGGREGATE, aggregates

MAX_UNORDERED = 100_000  # embeddings of more points do not fit into the L2 cache


def locality_order(P: Any, workers: Workers) -> Array:
    """Return a permutation that puts most neighbours in the graph close to each other."""
    return np.argsort(aggregates(P, min(P.shape[0] // NODES_PER_AGGREGATE, MAX_AGGREGATES), workers), kind="stable")


def ordered_for_locality(P: Any, workers: Workers) -> tuple[Any, Array | None]:
    """Return P reordered for cache locality and the permutation; P itself and None if it is small or dense."""
    if P.shape[0] <= MAX_UNORDERED or not scipy.sparse.issparse(P):
        return P, None
    order = locality_order(P, workers)
    return reordered(P, order), order


def reordered(P: Any, order: Array) -> Any:
    """Return a CSR graph with its rows and columns permuted."""
    position = np.empty(order.size, P.indices.dtype)
    position[order] = np.arange(order.size)
    rows = P[order]
    rows.indices = position[rows.indices]
    rows.has_sorted_indices = False
    return rows
