"""Connected components of a graph by depth-first search."""

import numpy as np

from laptsne._runtime.compiled import compiled
from laptsne._runtime.typing import Array


@compiled
def _search(indptr: Array, indices: Array, data: Array, stack: Array, numbers: Array) -> None:
    """Set the numbers of the components, which are negative at first."""
    n_found = 0
    for start in range(numbers.size):
        if numbers[start] >= 0:
            continue
        numbers[start], stack[0], size = n_found, start, 1
        while size > 0:
            size -= 1
            i = stack[size]
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                if data[e] > 0 and numbers[j] < 0:
                    numbers[j], stack[size] = n_found, j
                    size += 1
        n_found += 1


def components(indptr: Array, indices: Array, data: Array) -> Array:
    """Label the connected components of a symmetric CSR graph, numbered by their first node; 0 is no edge.

    SciPy's function copies the graph and its transpose in double precision, which would be the peak of a fit's memory.
    """
    n_nodes = indptr.size - 1
    # Arrays are made here, since numba takes long to compile what makes them.
    stack, numbers = np.empty(n_nodes, np.int64), np.full(n_nodes, -1)
    _search(indptr, indices, data, stack, numbers)
    return numbers
