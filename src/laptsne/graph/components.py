"""Connected components of a graph by union-find."""

import numpy as np

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.typing import Array


@inlined
def root(parent: Array, i: np.int64) -> np.int64:
    """Return the root of node i in a forest, halving the path to it."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@compiled
def _join(indptr: Array, indices: Array, data: Array, parent: Array, numbers: Array) -> None:
    """Set the numbers of the components, given a forest in which every node is its own parent."""
    for i in range(parent.size):
        for e in range(indptr[i], indptr[i + 1]):
            if data[e] > 0:
                a, b = root(parent, np.int64(i)), root(parent, np.int64(indices[e]))
                # The lowest node becomes the root, so that it is numbered below before the other nodes.
                if a < b:
                    parent[b] = a
                else:
                    parent[a] = b
    n_found = 0
    for i in range(parent.size):
        if parent[i] == i:
            numbers[i] = n_found
            n_found += 1
        else:
            numbers[i] = numbers[parent[i]]


def components(indptr: Array, indices: Array, data: Array) -> Array:
    """Label the connected components of a CSR graph, numbered by their first node; entries of 0 are no edges.

    SciPy's function copies the graph and its transpose in double precision, which would be the peak of a fit's memory.
    """
    numbers = np.empty(indptr.size - 1, np.int64)
    # Arrays are made here, since numba takes long to compile what makes them.
    _join(indptr, indices, data, np.arange(numbers.size), numbers)
    return numbers
