"""The state of a descent on disk, so that a run that was killed can be gone on with."""

from __future__ import annotations

import hashlib
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from laptsne._runtime.array_file import read_archive, write_archive
from laptsne._runtime.atomic_file import remove_leftovers

Array = NDArray[Any]

EVERY = 30.0  # seconds between two writes


class Resumable(Protocol):
    """A run whose state can be taken and given back."""

    def can_rest(self, iteration: int) -> bool:
        """Whether the state before an iteration is small enough to be kept."""

    def state(self) -> dict[str, Any]:
        """Numbers and arrays from which the run can go on."""

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""


class Checkpoint:
    """A file that holds the last state of a run.

    It is written to one side and then moved into its place, and holds no code. It has a digest of all that the run
    depends on: another run does not take it up.

    Parameters
    ----------
    path : path
        The file.
    digest : str
        Of what the run depends on; see :func:`digest_of`.
    """

    def __init__(self, path: str | os.PathLike[str], digest: str) -> None:
        self.path = Path(path)
        self.digest = digest
        self.kept = False  # beyond the end of the run
        self._written = time.monotonic()

    def resume(self, run: Resumable) -> int:
        """Give a run the state of the file, where there is one; return the iteration that comes next."""
        remove_leftovers(self.path)
        if not self.path.exists():
            return 0
        content, arrays = read_archive(self.path, "checkpoint")
        if content.get("digest") != self.digest:
            raise ValueError(
                f"checkpoint={str(self.path)!r} is of a run with other data or parameters; "
                "remove that file, or give another one."
            )
        try:
            run.restore({**content["numbers"], **arrays})
            return int(content["iteration"])
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise ValueError(
                f"checkpoint={str(self.path)!r} does not hold the state of a run ({error}); remove that file."
            ) from error

    def offer(self, run: Resumable, iteration: int) -> None:
        """Write the state before an iteration, where it is time to. What cannot be written is warned of."""
        if time.monotonic() - self._written < EVERY or not run.can_rest(iteration):
            return
        state = run.state()
        arrays = {name: part for name, part in state.items() if isinstance(part, np.ndarray)}
        numbers = {name: part for name, part in state.items() if name not in arrays}
        content = {"digest": self.digest, "iteration": iteration, "numbers": numbers}
        try:
            write_archive(self.path, content, arrays)
        except OSError as error:
            warnings.warn(
                f"checkpoint={str(self.path)!r} could not be written ({error}); the last one that could is kept. "
                "Make room on the disk, or give a path that can be written.",
                UserWarning,
                stacklevel=2,
            )
        self._written = time.monotonic()

    def close(self) -> None:
        """Remove the file, unless it is kept: the run is over."""
        if not self.kept:
            self.path.unlink(missing_ok=True)
            remove_leftovers(self.path)


def digest_of(parameters: dict[str, Any], P: Any, Y: Array) -> str:
    """Digest of the parameters, the affinities and the first map of a run."""
    # Arrays among the parameters, such as the widths of a kernel, count to the last digit of the last value.
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        digest = hashlib.sha256(repr(sorted(parameters.items())).encode())
    parts = (P.indptr, P.indices, P.data) if scipy.sparse.issparse(P) else (P,)
    for part in (*parts, Y):
        digest.update(f"{part.dtype.str}{part.shape}".encode())
        digest.update(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
