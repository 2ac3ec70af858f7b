"""The state of a descent on disk, from which a fit that was killed is resumed."""

import hashlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from laptsne import __version__
from laptsne._runtime.files import read_archive, remove_leftovers, write_archive
from laptsne._runtime.typing import Array
from laptsne._runtime.warn import warn

EVERY = 30.0  # seconds between writes
_FORMAT = 1  # raised by any change of the code after which a descent continues differently


class Checkpoint:
    """A file that holds the last state of a descent: numbers and arrays by name.

    It contains a digest of everything that the descent depends on, so that it is never resumed by another one.
    """

    def __init__(self, path: str | os.PathLike[str], digest: str) -> None:
        self.path = Path(path)
        self.digest = digest
        self._written = time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether the last write is long enough ago."""
        return time.monotonic() - self._written >= EVERY

    def resume(self, restore: Callable[[dict[str, Any]], None]) -> None:
        """Call ``restore`` with the state in the file, if there is one."""
        remove_leftovers(self.path)
        if not self.path.exists():
            return
        content, arrays = read_archive(self.path, "checkpoint")
        if content.get("digest") != self.digest:
            run = "a run with other data, other parameters or another version of laptsne"
            raise ValueError(f"checkpoint={str(self.path)!r} belongs to {run}; remove that file, or give another one.")
        try:
            _check(arrays, content["arrays"])
            restore({**content["numbers"], **arrays})
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            bad = f"checkpoint={str(self.path)!r} does not hold the state of a run ({error})"
            raise ValueError(f"{bad}; remove that file.") from error

    def write(self, state: dict[str, Any]) -> None:
        """Write a state; warn if that fails."""
        arrays = {name: part for name, part in state.items() if isinstance(part, np.ndarray)}
        numbers = {name: part for name, part in state.items() if name not in arrays}
        content = {"digest": self.digest, "numbers": numbers, "arrays": {name: _form(a) for name, a in arrays.items()}}
        try:
            write_archive(self.path, content, arrays)
        except OSError as error:
            failed = f"checkpoint={str(self.path)!r} could not be written ({error}); the previous one is kept"
            warn(f"{failed}. Free space on the disk, or give a path that can be written.")
        self._written = time.monotonic()

    def remove(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)
        remove_leftovers(self.path)


def _form(array: Array) -> list[Any]:
    return [array.dtype.str, *array.shape]


def _check(arrays: dict[str, Array], forms: dict[str, list[Any]]) -> None:
    """Raise ValueError, naming the array, if one is missing, has another form or is not finite."""
    for name in arrays.keys() | forms.keys():
        if name not in arrays or name not in forms or _form(arrays[name]) != forms[name]:
            raise ValueError(f"{name} is missing or has another shape or type than it was saved with")
        if arrays[name].dtype.kind == "f" and not np.isfinite(arrays[name]).all():
            raise ValueError(f"{name} is not finite")


def digest_of(settings: Any, P: Any, Y: Array) -> str:
    """Return a digest of the code's version, the settings, the affinities and the initial embedding of a descent."""
    # Arrays among the settings, such as the widths of a kernel, are printed in full.
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        digest = hashlib.sha256(f"{__version__} {_FORMAT} {settings!r}".encode())
    parts = (P.indptr, P.indices, P.data) if scipy.sparse.issparse(P) else (P,)
    for part in (*parts, Y):
        digest.update(f"{part.dtype.str}{part.shape}".encode())
        digest.update(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
