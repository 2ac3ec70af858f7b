"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import glob
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

_MARK = ".unfinished-"  # no other file is taken for one


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A temporary file beside a path, moved there when all went well and removed otherwise.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from laptsne._runtime.atomic_file import atomic_write
    >>> path = Path(tempfile.mkdtemp(), "notes.txt")
    >>> with atomic_write(path) as temporary:
    ...     size = temporary.write_text("whole")
    >>> path.read_text()
    'whole'
    """
    # The ending is kept: some libraries go by it. Whoever clears up after a kill goes by the beginning.
    handle, name = tempfile.mkstemp(prefix=f".{path.name}{_MARK}", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # It can only be read by setting it: to the strictest, for another thread may make a file at this moment.
        umask = os.umask(0o077)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def remove_leftovers(path: Path) -> None:
    """Remove what a process left beside a path that was killed while it wrote."""
    for left in path.parent.glob(f".{glob.escape(path.name)}{_MARK}*"):
        left.unlink(missing_ok=True)
