"""The state of a descent on disk, from which a run that was killed is resumed."""

import hashlib
import os
import sys
import time
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy.sparse

from laptsne._runtime.files import read_archive, remove_leftovers, write_archive
from laptsne._runtime.typing import Array
from laptsne._runtime.version import __version__
from laptsne._runtime.warn import warn

EVERY = 30.0  # seconds between writes


class Resumable(Protocol):
    """A run whose state can be saved and restored."""

    max_iter: int

    def can_checkpoint(self, iteration: int) -> bool:
        """Whether the state before an iteration is small enough to be saved."""

    def state(self) -> dict[str, Any]:
        """Numbers and arrays from which the run can be resumed."""

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state."""


class Checkpoint:
    """A file that holds the last state of a run.

    It is replaced atomically and holds no code. It contains a digest of everything that the run depends on, so that it
    is never resumed by another run.

    Parameters
    ----------
    path : path
        The file.
    digest : str
        Digest of what the run depends on; see :func:`digest_of`.
    """

    def __init__(self, path: str | os.PathLike[str], digest: str) -> None:
        self.path = Path(path)
        self.digest = digest
        self._written = time.monotonic()

    def resume(self, run: Resumable) -> int:
        """Restore the state in the file, if there is one; return the number of the next iteration."""
        remove_leftovers(self.path)
        if not self.path.exists():
            return 0
        content, arrays = read_archive(self.path, "checkpoint")
        if content.get("digest") != self.digest:
            raise ValueError(
                f"checkpoint={str(self.path)!r} belongs to a run with other data, other parameters or another version "
                "of laptsne; remove that file, or give another one."
            )
        try:
            iteration = content["iteration"]
            if not isinstance(iteration, int) or not 0 <= iteration <= run.max_iter:
                raise ValueError(f"iteration {iteration!r} is not between 0 and {run.max_iter}")
            run.restore({**content["numbers"], **arrays})
            return iteration
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise ValueError(
                f"checkpoint={str(self.path)!r} does not hold the state of a run ({error}); remove that file."
            ) from error

    def write_if_due(self, run: Resumable, iteration: int) -> None:
        """Write the state before an iteration if the last write is long enough ago; warn if that fails."""
        if time.monotonic() - self._written < EVERY or not run.can_checkpoint(iteration):
            return
        state = run.state()
        arrays = {name: part for name, part in state.items() if isinstance(part, np.ndarray)}
        numbers = {name: part for name, part in state.items() if name not in arrays}
        content = {"digest": self.digest, "iteration": iteration, "numbers": numbers}
        try:
            write_archive(self.path, content, arrays)
        except OSError as error:
            warn(
                f"checkpoint={str(self.path)!r} could not be written ({error}); the previous one is kept. "
                "Free space on the disk, or give a path that can be written.",
            )
        self._written = time.monotonic()

    def remove(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)
        remove_leftovers(self.path)


def digest_of(parameters: dict[str, Any], P: Any, Y: Array) -> str:
    """Digest of the version, the parameters, the affinities and the initial embedding of a run."""
    # Arrays among the parameters, such as the widths of a kernel, are printed in full.
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        digest = hashlib.sha256(repr([__version__, *sorted(parameters.items())]).encode())
    parts = (P.indptr, P.indices, P.data) if scipy.sparse.issparse(P) else (P,)
    for part in (*parts, Y):
        digest.update(f"{part.dtype.str}{part.shape}".encode())
        digest.update(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
