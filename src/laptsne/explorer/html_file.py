"""Assembly of the explorer's HTML file and of its notebook front end from the shipped assets."""

import base64
import hashlib
import html
import json
import re
from importlib.resources import files

from laptsne.explorer.payload import Payload

_IMPORT = re.compile(r'^import .* from "\./(\w+)\.js";\n', re.MULTILINE)
_COMMENT = re.compile(r"^\s*//[^\n]*\n|/\*\*.*?\*/[ ]?", re.MULTILINE | re.DOTALL)
_INDENT = re.compile(r"^\s+", re.MULTILINE)


def html_document(title: str, payload: Payload) -> str:
    """Return the document. Data are encoded in base64, so that nothing in them can close a tag."""
    code = f"(() => {{\n'use strict';\n{script('page')}}})();\n"
    style = stylesheet()
    # Only this script and this style are allowed, and no request of any kind.
    policy = (
        f"default-src 'none'; script-src '{_digest(code)}'; style-src '{_digest(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    blocks = {"data": payload.data, "images": payload.images, "features": payload.features}
    parts = {
        "policy": html.escape(policy, quote=False),
        "title": html.escape(title),
        "style": style,
        "body": _asset("body.html"),
        "script": code,
        **{name: base64.b64encode(block).decode() for name, block in blocks.items()},
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _asset("page.html"))


def notebook_module() -> str:
    """Return the ECMAScript module that anywidget loads."""
    constants = f"const BODY = {json.dumps(_asset('body.html'))};\nconst STYLE = {json.dumps(stylesheet())};\n"
    return constants + script("widget")


def script(entry: str) -> str:
    """Return a module and all that it imports as one script, without comments and indentation."""
    sources: dict[str, str] = {}
    _collect(entry, sources)
    text = "".join(_IMPORT.sub("", source) for source in sources.values())
    text = re.sub(r"^export (?!default)", "", text, flags=re.MULTILINE)
    return _INDENT.sub("", _COMMENT.sub("", text))


def stylesheet() -> str:
    """Return the styles."""
    return _asset("style.css")


def _collect(name: str, sources: dict[str, str]) -> None:
    """Add a module to the sources, after those that it imports."""
    if name in sources:
        return
    text = _asset(f"{name}.js")
    for other in _IMPORT.findall(text):
        _collect(other, sources)
    sources[name] = text


def _asset(name: str) -> str:
    return files("laptsne.explorer").joinpath("assets", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
