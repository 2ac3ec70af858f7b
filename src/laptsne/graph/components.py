"""Connected components of a graph by union-find."""

import numpy as np

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.typing import Array


@inlined
def root(parent: Array, i: int) -> int:
    """Return the root of node i in a forest, halving the path to it."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@compiled
def components(indptr: Array, indices: Array, data: Array) -> Array:
    """Label the connected components of a CSR graph, numbered by their first node; entries of 0 are no edges.

    SciPy's function copies the graph and its transpose in double precision, which would be the peak of a fit's memory.
    """
    n = indptr.size - 1
    parent = np.arange(n)
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            if data[e] > 0:
                a, b = root(parent, i), root(parent, indices[e])
                # The lowest node becomes the root, so that it is numbered below before the other nodes.
                parent[max(a, b)] = min(a, b)
    numbers = np.empty(n, np.int64)
    n_found = 0
    for i in range(n):
        if parent[i] == i:
            numbers[i] = n_found
            n_found += 1
        else:
            numbers[i] = numbers[parent[i]]
    return numbers
