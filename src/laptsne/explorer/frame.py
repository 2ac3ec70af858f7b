"""The explorer as an HTML document: in a file, or in a frame of a notebook."""

import html
import os
from pathlib import Path
from typing import Any

from laptsne._runtime.files import atomic_write
from laptsne.explorer.html_file import html_document
from laptsne.explorer.payload import Payload

_HEIGHT = 620  # pixels, in a notebook


class ExplorerFrame:
    """An explorer that notebooks display in a frame.

    It is what :func:`laptsne.plotting.explorer` returns without ``out`` if anywidget is not installed.
    """

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
        document = html.escape(html_document(self._payload.title, self._payload))
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
    text = html_document(payload.title, payload)
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
    return path
