"""Redirect links to example files, which work on GitHub, to their pages in the gallery."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

_PAGES = (
    (re.compile(r"\]\(\.\./examples/(plot_\w+)\.py\)"), r"](gallery/\1.rst)"),
    (re.compile(r"\]\(\.\./examples\)"), "](gallery/index.rst)"),
    (re.compile(r"\]\(\.\./CHANGELOG\.md\)"), "](changelog.md)"),
)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("source-read", _rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _rewrite(app: Sphinx, name: str, source: list[str]) -> None:
    for pattern, page in _PAGES:
        source[0] = pattern.sub(page, source[0])
