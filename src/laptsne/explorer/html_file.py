"""Assembly of the explorer's HTML file from the shipped assets and the data."""

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

# In order of dependency; main.js starts the explorer.
_SCRIPTS = """
data number colour column camera points painter grid polygon gesture tooltip legend search csv selection chart
contraction main
"""


def html_document(
    title: str, header: dict[str, Any], arrays: list[NDArray[Any]], images: NDArray[np.uint8] | None
) -> str:
    """Return the document. Data are encoded in base64, so that nothing in them can close a tag."""
    script = "(() => {\n'use strict';\n" + "\n".join(_asset(f"{name}.js") for name in _SCRIPTS.split()) + "\n})();\n"
    style = _asset("style.css")
    # Only this script and this style are allowed, and no request of any kind.
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": html.escape(policy, quote=False),
        "title": html.escape(title),
        "style": style,
        "script": script,
        "data": _compressed(_payload(header, arrays)),
        "images": "" if images is None else _compressed(images.tobytes()),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _asset("index.html"))


def _asset(name: str) -> str:
    return files("laptsne.explorer").joinpath("assets", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _payload(header: dict[str, Any], arrays: list[NDArray[Any]]) -> bytes:
    """Return the length of the header, the header as JSON, and the arrays, each aligned to eight bytes."""
    layout, offset = [], 0
    for array in arrays:
        layout.append({"dtype": array.dtype.name, "offset": offset, "length": array.size})
        offset += -(-array.nbytes // 8) * 8
    text = json.dumps({**header, "arrays": layout}, allow_nan=False).encode()
    text += b" " * (-(len(text) + 4) % 8)
    contents = [array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes() for array in arrays]
    return len(text).to_bytes(4, "little") + text + b"".join(content + bytes(-len(content) % 8) for content in contents)


def _compressed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 6)).decode()
