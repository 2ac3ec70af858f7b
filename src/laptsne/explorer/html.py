"""The page of the explorer: the shipped parts and the data, put together in one file."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import zlib
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

# In the order in which they need each other; main.js begins.
_SCRIPTS = (
    "data",
    "number",
    "colour",
    "column",
    "camera",
    "points",
    "painter",
    "grid",
    "polygon",
    "gesture",
    "tooltip",
    "legend",
    "search",
    "csv",
    "selection",
    "chart",
    "contraction",
    "main",
)


def page(title: str, header: dict[str, Any], arrays: list[NDArray[Any]], images: NDArray[np.uint8] | None) -> str:
    """Return the page. Whatever comes from the data is inside base64, so that nothing in it can end a tag."""
    script = "(() => {\n'use strict';\n" + "\n".join(_part(f"{name}.js") for name in _SCRIPTS) + "\n})();\n"
    style = _part("style.css")
    # Only this script and this style may run, and nothing at all may be requested.
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": html.escape(policy, quote=False),
        "title": html.escape(title),
        "style": style,
        "script": script,
        "data": _packed(_payload(header, arrays)),
        "images": "" if images is None else _packed(images.tobytes()),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _part("page.html"))


def _part(name: str) -> str:
    return files("laptsne.explorer").joinpath("page", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _payload(header: dict[str, Any], arrays: list[NDArray[Any]]) -> bytes:
    """Length of the header, the header as JSON, and the arrays, each at a multiple of eight bytes."""
    layout, offset = [], 0
    for array in arrays:
        layout.append({"dtype": array.dtype.name, "offset": offset, "length": array.size})
        offset += -(-array.nbytes // 8) * 8
    text = json.dumps({**header, "arrays": layout}, allow_nan=False).encode()
    text += b" " * (-(len(text) + 4) % 8)
    little = [array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes() for array in arrays]
    return len(text).to_bytes(4, "little") + text + b"".join(part + bytes(-len(part) % 8) for part in little)


def _packed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 6)).decode()
