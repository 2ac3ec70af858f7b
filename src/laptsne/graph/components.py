"""Connected components of a graph, without a copy of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.compiled import compiled, inlined

Array = NDArray[Any]


@inlined
def root(parent: Array, i: int) -> int:
    """The root of a node in a forest; ways to it are made shorter on the way."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@compiled
def components(indptr: Array, indices: Array, data: Array) -> Array:
    """Number the components of a graph in CSR form that its positive entries connect, by their first nodes.

    SciPy's would make a copy of the graph and one of its transpose in double precision, and no part of a fit
    needs as much memory.
    """
    n = indptr.size - 1
    parent = np.arange(n)
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            if data[e] > 0:
                a, b = root(parent, i), root(parent, indices[e])
                # The first node of a component is its root: it has its number before the others below ask for it.
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
