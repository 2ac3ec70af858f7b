"""Files to be written: refused before the work, and there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from laptsne.tables.content import InputError


def check_targets(paths: Sequence[Path], *, source: str | None = None, force: bool = False) -> None:
    """Refuse before the work what could not be written after it.

    Parameters
    ----------
    paths : sequence of Path
        The files.
    source : str, optional
        The file that is read, which is never overwritten.
    force : bool, default=False
        Whether other files may be overwritten.
    """
    for i, path in enumerate(paths):
        if not path.parent.is_dir():
            raise InputError(f"there is no folder {path.parent}; make it first.")
        if path.is_dir():
            raise InputError(f"{path} is a folder; give the name of a file.")
        if source is not None and path.exists() and Path(source).exists() and path.samefile(source):
            raise InputError(f"{path} is the file that is read; give another name to write to.")
        if path.resolve() in [other.resolve() for other in paths[:i]]:
            raise InputError(f"{path} is named twice; give each file a name of its own.")
        if path.exists() and not force:
            raise InputError(f"{path} exists already; give --force to overwrite it, or another name.")
        if not os.access(path.parent, os.W_OK):
            raise InputError(f"nothing can be written to the folder {path.parent}; choose another.")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside a path, moved there when all went well and removed otherwise."""
    handle, name = tempfile.mkstemp(prefix=f".{path.stem}.", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        umask = os.umask(0o022)  # it can only be read by setting it
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
