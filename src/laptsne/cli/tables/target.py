"""Files to be written, refused before the work."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from laptsne.cli.tables.content import InputError


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
