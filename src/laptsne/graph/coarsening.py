"""Coarsening of a graph by aggregation, as in algebraic multigrid, to approximate its eigenvectors."""

from typing import Any

import numpy as np
import scipy.linalg

from laptsne._runtime.compiled import compiled
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array

MAX_AGGREGATES = 1500
NODES_PER_AGGREGATE = 25
_MAX_SWEEPS = 100  # bounds the diameter of an aggregate


@compiled
def _join_rows(start: int, stop: int, indptr: Array, indices: Array, data: Array, before: Array, after: Array) -> None:
    """Give every node without a label that of its strongest labelled neighbour."""
    for i in range(start, stop):
        after[i] = before[i]
        if before[i] < 0:
            strongest = data.dtype.type(0)
            for e in range(indptr[i], indptr[i + 1]):
                if data[e] > strongest and before[indices[e]] >= 0:
                    strongest = data[e]
                    after[i] = before[indices[e]]


@compiled
def _add_weights(indptr: Array, indices: Array, data: Array, roots: Array, label: Array, coarse: Array) -> None:
    """Sum the edges between aggregates, weighted by the square roots of the degrees (Galerkin projection)."""
    for i in range(label.size):
        row = coarse[label[i]]
        for e in range(indptr[i], indptr[i + 1]):
            row[label[indices[e]]] += data[e] * roots[i] * roots[indices[e]]


def aggregates(graph: Any, n_aggregates: int, workers: Workers) -> Array:
    """Partition the nodes of a graph by growing aggregates from random seeds along the strongest edges.

    Returns the aggregate of every node; ``n_aggregates`` for nodes that no seed reaches.
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
    """Approximate the leading eigenvectors of a connected graph, except the first, by those of its aggregates.

    The graph is given as D^(-1/2) P D^(-1/2) in CSR form and the ``roots`` of the degrees, its first eigenvector.
    Returns a float32 array of shape (n_vectors, n_samples); within an aggregate, vectors are proportional to ``roots``.
    """
    n_samples = similarity.shape[0]
    wanted = min(max(n_samples // NODES_PER_AGGREGATE, 4 * n_vectors), MAX_AGGREGATES)
    n_aggregates = min(max(wanted, 2 * n_vectors), n_samples)
    label = aggregates(similarity, n_aggregates, workers)
    coarse = np.zeros((n_aggregates + 1, n_aggregates + 1))
    _add_weights(similarity.indptr, similarity.indices, similarity.data, roots, label, coarse)
    mass = np.maximum(np.bincount(label, weights=roots.astype(np.float64) ** 2, minlength=n_aggregates + 1), 1e-300)
    scale = 1 / np.sqrt(mass)
    top = n_aggregates - n_vectors
    _, vectors = scipy.linalg.eigh(coarse * scale[:, None] * scale, subset_by_index=[top, n_aggregates - 1])
    return np.asarray((vectors * scale[:, None]).T[::-1, label] * roots, dtype=np.float32)
