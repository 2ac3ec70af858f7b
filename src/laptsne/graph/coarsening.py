"""A small graph in place of a large one: nodes are gathered into aggregates, which have nearly its eigenvectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from laptsne._runtime.compiled import compiled
from laptsne._runtime.threads import Workers

Array = NDArray[Any]

MAX_AGGREGATES = 1500
NODES_PER_AGGREGATE = 25
_MAX_SWEEPS = 100


@compiled
def _join_rows(start: int, stop: int, indptr: Array, indices: Array, data: Array, before: Array, after: Array) -> None:
    """Give every node without a label that of its strongest neighbour with one."""
    for i in range(start, stop):
        after[i] = before[i]
        if before[i] < 0:
            strongest = data.dtype.type(0)
            for e in range(indptr[i], indptr[i + 1]):
                if data[e] > strongest and before[indices[e]] >= 0:
                    strongest = data[e]
                    after[i] = before[indices[e]]


@compiled
def _add_up(indptr: Array, indices: Array, data: Array, roots: Array, label: Array, coarse: Array) -> None:
    """Add up the graph, weighted by the roots of the degrees, over the aggregates."""
    for i in range(label.size):
        row = coarse[label[i]]
        for e in range(indptr[i], indptr[i + 1]):
            row[label[indices[e]]] += data[e] * roots[i] * roots[indices[e]]


def aggregates(graph: Any, n_aggregates: int, workers: Workers) -> Array:
    """Gather the nodes of a graph around random ones, each with its strongest neighbour that has been gathered.

    Returns
    -------
    label : array of shape (n_samples,)
        Numbers from 0 on; ``n_aggregates`` for nodes far from all others.
    """
    n_samples = graph.shape[0]
    label = np.full(n_samples, -1, np.int32)
    label[np.random.default_rng(0).choice(n_samples, n_aggregates, replace=False)] = np.arange(n_aggregates)
    for _ in range(_MAX_SWEEPS):
        joined = np.empty_like(label)
        args = (graph.indptr, graph.indices, graph.data, label, joined)
        workers.rows(_join_rows, n_samples, *args, work=2.0 * graph.nnz)
        settled = label.min() >= 0 or (joined == label).all()
        label = joined
        if settled:
            break
    label[label < 0] = n_aggregates
    return label


def coarse_eigenvectors(similarity: Any, roots: Array, n_vectors: int, workers: Workers) -> Array:
    """Guess the largest eigenvectors of a graph from aggregates of its nodes.

    Parameters
    ----------
    similarity : sparse matrix in CSR form
        A connected graph, normalised to D^(-1/2) P D^(-1/2).
    roots : array of shape (n_samples,)
        Square roots of the degrees of P.
    n_vectors : int
        Number of vectors, the first of which is known and left out.
    workers : Workers
        Threads.

    Returns
    -------
    vectors : array of shape (n_vectors, n_samples)
        In single precision; constant times the roots over each aggregate.
    """
    n_samples = similarity.shape[0]
    wanted = min(max(n_samples // NODES_PER_AGGREGATE, 4 * n_vectors), MAX_AGGREGATES)
    n_aggregates = min(max(wanted, 2 * n_vectors), n_samples)
    label = aggregates(similarity, n_aggregates, workers)
    coarse = np.zeros((n_aggregates + 1, n_aggregates + 1))
    _add_up(similarity.indptr, similarity.indices, similarity.data, roots, label, coarse)
    mass = np.maximum(np.bincount(label, weights=roots.astype(np.float64) ** 2, minlength=n_aggregates + 1), 1e-300)
    scale = 1 / np.sqrt(mass)
    top = n_aggregates - n_vectors
    _, vectors = scipy.linalg.eigh(coarse * scale[:, None] * scale, subset_by_index=[top, n_aggregates - 1])
    return np.asarray((vectors * scale[:, None]).T[::-1, label] * roots, dtype=np.float32)
