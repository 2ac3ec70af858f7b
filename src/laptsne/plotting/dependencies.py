"""What pictures need beyond the core."""

from __future__ import annotations

from importlib.util import find_spec


def require_matplotlib() -> None:
    """Say what to install where matplotlib is missing."""
    if find_spec("matplotlib") is None:
        raise ImportError('pictures need matplotlib, which is not installed: pip install "laptsne[plot]"')
