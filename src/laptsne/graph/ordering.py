"""Reordering of points so that neighbours are close in memory."""

from typing import Any

import numpy as np
import scipy.sparse

from laptsne._runtime.compiled import compiled
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.graph.spectrum import MAX_AGGREGATES, NODES_PER_AGGREGATE, aggregates

MAX_UNORDERED = 100_000  # embeddings of more points do not fit into the L2 cache


def locality_order(P: Any, workers: Workers) -> Array:
    """Return a permutation that puts most neighbours in the graph close to each other."""
    return np.argsort(aggregates(P, min(P.shape[0] // NODES_PER_AGGREGATE, MAX_AGGREGATES), workers), kind="stable")


def ordered_for_locality(P: Any, workers: Workers, *, copy: bool = False) -> tuple[Any, Array | None]:
    """Return P reordered, in place unless ``copy``, and the permutation; P itself and None if it is small or dense."""
    if P.shape[0] <= MAX_UNORDERED or not scipy.sparse.issparse(P):
        return P, None
    order = locality_order(P, workers)
    return reordered(P.copy() if copy else P, order), order


def in_order(values: Array, order: Array | None) -> Array:
    """Return rows, one per point, in the order of a reordered graph; None is that of the points."""
    return values if order is None else values[order]


def of_points(values: Array, order: Array | None) -> Array:
    """Return rows in the order of the points again."""
    if order is None:
        return values
    unordered = np.empty_like(values)
    unordered[order] = values
    return unordered


@compiled
def _permute_rows(values: Array, indptr: Array, order: Array, permuted: Array) -> None:
    """Copy the entries of the rows of a CSR matrix in a new order of the rows."""
    at = 0
    for i in order:
        row = values[indptr[i] : indptr[i + 1]]
        permuted[at : at + row.size] = row
        at += row.size


def reordered(P: Any, order: Array) -> Any:
    """Permute rows and columns of a CSR graph in place, array by array: only half of it is in memory twice."""
    for name in ("data", "indices"):
        permuted = np.empty_like(getattr(P, name))
        _permute_rows(getattr(P, name), P.indptr, order, permuted)
        setattr(P, name, permuted)
    del permuted
    P.indices = of_points(np.arange(order.size, dtype=P.indices.dtype), order)[P.indices]
    P.indptr = np.append(0, np.cumsum(np.diff(P.indptr)[order])).astype(P.indptr.dtype)
    P.has_sorted_indices = False
    return P
