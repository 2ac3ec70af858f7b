"""The one decorator for compiled kernels: it fixes cache, threads and floating-point rules.

Kernels release the interpreter lock and are single-threaded; :mod:`laptsne._runtime.threads` runs them side by side
over ranges of rows. That compiles several times faster than numba's own parallel loops, has no threading
layer to clash with other libraries, and gives the same bits for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])

# Backend may be reordered and fused so that loops vectorise. "nnan" and "ninf" stay off: with them a comparison
# against infinity or a guard against NaN is optimised away.
_FASTMATH = {"reassoc", "contract", "arcp", "nsz"}


def compiled(function: F) -> F:
    """Compile ``function`` at its first call; keep the machine code on disk where a folder is writable."""
    return _compile(function)


def inlined(function: F) -> F:
    """Compile ``function`` into every kernel that calls it.

    A call of a function on its own would run its own machine code in the process that compiles it, and the copy that
    is kept beside the machine code of its caller in later processes. Both are right, and sum in another order.
    """
    return _compile(function, forceinline=True)


def _compile(function: F, **options: Any) -> F:
    options |= {"nogil": True, "fastmath": _FASTMATH, "error_model": "numpy"}
    try:
        return cast(F, numba.njit(cache=True, **options)(function))
    except RuntimeError:  # no writable cache folder, as in a read-only container
        return cast(F, numba.njit(**options)(function))


@inlined
def window(values: Any, lo: int, hi: int) -> Any:
    """The part of an array from lo to hi, or None of None.

    Loops over such a part vectorise; loops over the whole array with an added offset do not.
    """
    return None if values is None else values[lo:hi]
