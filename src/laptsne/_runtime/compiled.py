"""The decorators for compiled kernels, which fix caching, threading and floating-point rules.

Kernels are single-threaded; :class:`laptsne._runtime.threads.Workers` runs them in threads over ranges of rows. Unlike
numba's parallel loops, they compile soon, clash with no library, and give the same bits for any number of threads.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import FunctionCache

F = TypeVar("F", bound=Callable[..., Any])

# Sums may be reordered and fused so that loops vectorise. "nnan" and "ninf" stay off: they would optimise away
# comparisons with infinity and guards against NaN.
_FASTMATH = {"reassoc", "contract", "arcp", "nsz"}
_OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": _FASTMATH, "error_model": "numpy", "no_cfunc_wrapper": True}
_INLINED = _OPTIONS | {"forceinline": True, "no_cpython_wrapper": True}


class _Cache(FunctionCache):
    """A cache whose errors are not fatal: on a full disk, kernels are compiled in every process."""

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]


def compiled(function: F) -> F:
    """Compile ``function`` at its first call; cache the machine code on disk if a directory is writable."""
    dispatcher = numba.njit(**_OPTIONS)(function)
    with suppress(RuntimeError):  # no writable cache directory, as in a read-only container
        dispatcher._cache = _Cache(function)  # type: ignore[no-untyped-call]
    return cast(F, dispatcher)


def inlined(function: F) -> F:
    """Compile ``function`` into every kernel that calls it.

    Otherwise the process that compiles the caller would run the function's own machine code, and later processes the
    copy in the caller's cache. The two may sum in different orders. Only kernels can call it: without an entry from
    Python and without a cache of its own, it compiles sooner.
    """
    return cast(F, numba.njit(**_INLINED)(function))


@inlined
def window(values: Any, lo: int, hi: int) -> Any:
    """Return ``values[lo:hi]``, or None for None. Loops over a slice vectorise; those over an offset do not."""
    return None if values is None else values[lo:hi]
