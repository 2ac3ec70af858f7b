"""Where downloaded data are kept."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """Return the user's folder of data that can be downloaded again; it need not exist yet.

    It is ``~/.cache/laptsne``, or in the folder that XDG_CACHE_HOME names, ``~/Library/Caches/laptsne`` on macOS and
    ``%LOCALAPPDATA%\\laptsne`` on Windows.

    Examples
    --------
    >>> from reproduction.datasets import cache_folder
    >>> cache_folder().name
    'laptsne'
    """
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", "")), Path("~/AppData/Local")
    elif sys.platform == "darwin":
        base = Path("~/Library/Caches"), Path("~/Library/Caches")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME", "")), Path("~/.cache")
    given, usual = base
    # A relative path would be another folder for every place a program is started from.
    return (given if given.is_absolute() else usual.expanduser()) / "laptsne"
