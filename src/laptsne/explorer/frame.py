"""The explorer as an HTML document, in a file or in a frame of a notebook, assembled from the shipped assets."""

import base64
import hashlib
import html
import json
import os
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from laptsne._runtime.files import atomic_write
from laptsne.explorer.payload import Payload

_HEIGHT = 620  # pixels, in a notebook
_IMPORT = re.compile(r'^import .* from "\./(\w+)\.js";\n', re.MULTILINE)
_COMMENT = re.compile(r"^\s*//[^\n]*\n|/\*\*.*?\*/[ ]?", re.MULTILINE | re.DOTALL)
_INDENT = re.compile(r"^\s+", re.MULTILINE)


class ExplorerFrame:
    """An explorer that notebooks display in a frame, if anywidget is not installed."""

    def __init__(self, payload: Payload) -> None:
        self._payload = payload

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the explorer to an HTML file, replacing an existing one, and return its path."""
        return save_document(self._payload, path)

    @property
    def selection(self) -> Any:
        """The selected rows, which need a widget."""
        raise AttributeError('selection needs anywidget: pip install "laptsne[notebook]", and restart the kernel.')

    def _repr_html_(self) -> str:
        document = html.escape(_html_document(self._payload))
        # Scripts may run and files may be saved, but the frame has no access to the notebook.
        sandbox = "allow-scripts allow-downloads allow-popups allow-popups-to-escape-sandbox"
        style = f"width: 100%; height: {_HEIGHT}px; border: 0"
        title = html.escape(self._payload.title)
        return f'<iframe srcdoc="{document}" sandbox="{sandbox}" style="{style}" title="{title}"></iframe>'

    def __repr__(self) -> str:
        return f"ExplorerFrame({self._payload.title!r}, {self._payload.n_samples:,} points)"


def save_document(payload: Payload, out: str | os.PathLike[str]) -> Path:
    """Write an HTML file and return its path."""
    path = Path(out)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"out={str(path)!r}: the folder {str(path.parent)!r} does not exist; create it first.")
    text = _html_document(payload)
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
    return path


def notebook_module() -> str:
    """Return the ECMAScript module that anywidget loads."""
    body, style = json.dumps(_asset("body.html")), json.dumps(_asset("style.css"))
    return f"const BODY = {body};\nconst STYLE = {style};\n{_script('widget')}"


def _html_document(payload: Payload) -> str:
    """Return the document. Data are encoded in base64, so that nothing in them can close a tag."""
    code = f"(() => {{\n'use strict';\n{_script('page')}}})();\n"
    style = _asset("style.css")
    # Only this script and this style are allowed, and no request of any kind.
    policy = (
        f"default-src 'none'; script-src '{_digest(code)}'; style-src '{_digest(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    blocks = {"data": payload.data, "images": payload.images, "features": payload.features}
    parts = {
        "policy": html.escape(policy, quote=False),
        "title": html.escape(payload.title),
        "style": style,
        "body": _asset("body.html"),
        "script": code,
        **{name: base64.b64encode(block).decode() for name, block in blocks.items()},
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _asset("page.html"))


def _script(entry: str) -> str:
    """Return a module, after all that it imports, as one script without comments and indentation."""
    sources: dict[str, str] = {}

    def collect(name: str) -> None:
        text = _asset(f"{name}.js")
        for other in _IMPORT.findall(text):
            if other not in sources:
                collect(other)
        sources[name] = _IMPORT.sub("", text)

    collect(entry)
    text = re.sub(r"^export (?!default)", "", "".join(sources.values()), flags=re.MULTILINE)
    return _INDENT.sub("", _COMMENT.sub("", text))


def _asset(name: str) -> str:
    return files("laptsne.explorer").joinpath("assets", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
