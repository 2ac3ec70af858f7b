"""Escape fitted attributes such as ``n_clusters_`` in docstring types: reStructuredText reads them as links."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

_TYPED = re.compile(r"^\w+ : ")
_FITTED = re.compile(r"\b(\w+)_(?=[,)])")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx, to run before numpydoc."""
    app.connect("autodoc-process-docstring", _escape, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _escape(app: Sphinx, kind: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = [_FITTED.sub(r"\1\\_", line) if _TYPED.match(line) else line for line in lines]
