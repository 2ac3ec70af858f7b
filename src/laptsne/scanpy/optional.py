"""Scanpy itself, which is an extra and slow to import."""

from __future__ import annotations

import importlib
from typing import Any


def scanpy() -> Any:
    """Return the module scanpy; where it is missing, the error says what to install."""
    try:
        return importlib.import_module("scanpy")
    except ModuleNotFoundError as error:
        if error.name != "scanpy":
            raise
        raise ModuleNotFoundError(
            'laptsne.scanpy needs scanpy, which is not installed: pip install "laptsne[scanpy]".', name="scanpy"
        ) from error
