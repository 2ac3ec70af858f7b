"""Bounded max-heap of nearest neighbours, compiled into the search kernels that use it."""

from laptsne._runtime.compiled import inlined
from laptsne._runtime.typing import Array


@inlined
def _precedes(value: float, index: int, other: float, other_index: int, break_ties: bool) -> bool:  # noqa: FBT001
    return value < other or (break_ties and value == other and index < other_index)


@inlined
def replace_largest(
    values: Array,
    indices: Array,
    size: int,
    value: float,
    index: int,
    break_ties: bool,  # noqa: FBT001
) -> None:
    """Replace the root of a max-heap of ``size`` entries by a smaller one.

    With ``break_ties``, a literal, entries of equal value are ordered by their index; without, their order is
    arbitrary.
    """
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        sibling = child + 1
        if sibling < size and _precedes(values[child], indices[child], values[sibling], indices[sibling], break_ties):
            child = sibling
        if not _precedes(value, index, values[child], indices[child], break_ties):
            break
        values[at] = values[child]
        indices[at] = indices[child]
        at = child
    values[at] = value
    indices[at] = index
