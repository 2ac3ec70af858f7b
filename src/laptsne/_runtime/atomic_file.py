"""Atomic writes: a file is complete, or it is not there."""

import contextlib
import glob
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

_MARK = ".unfinished-"  # distinguishes leftovers from files of the user


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary file in the same directory; move it to ``path`` on success and remove it on failure."""
    # Some libraries choose the format by the suffix; remove_leftovers goes by the prefix.
    handle, name = tempfile.mkstemp(prefix=f".{path.name}{_MARK}", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # The umask can be read only by setting it: to the strictest, since other threads may create files meanwhile.
        umask = os.umask(0o077)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def remove_leftovers(path: Path) -> None:
    """Remove temporary files of processes that were killed while writing ``path``."""
    for leftover in path.parent.glob(f".{glob.escape(path.name)}{_MARK}*"):
        leftover.unlink(missing_ok=True)
