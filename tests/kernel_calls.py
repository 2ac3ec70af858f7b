"""Calls of inlined functions, which only kernels can call, from tests."""

from functools import cache

import numba


@cache
def from_python(function):
    """Compile a kernel that calls an inlined function and nothing else."""

    @numba.njit
    def call(*args):
        return function(*args)

    return call
