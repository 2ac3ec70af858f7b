"""The explorer as a widget of notebooks, with the JavaScript of the HTML file."""

import base64
import io
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anywidget
import numpy as np
import traitlets

from laptsne._runtime.colours import LabelEncoding
from laptsne._runtime.drawing import draw_map
from laptsne._runtime.typing import Array
from laptsne.explorer.export import notebook_module, save_document
from laptsne.explorer.payload import Payload


class RowNumbers(traitlets.TraitType):  # type: ignore[type-arg]
    """A sorted array of distinct row numbers, synchronised as bytes."""

    default_value = np.zeros(0, np.uint32)

    def validate(self, obj: Any, value: Any) -> Array:
        """Return the rows as a sorted array without repetitions."""
        rows, n = np.asarray(value), obj.n_samples
        if rows.dtype == bool and rows.shape == (n,):
            rows = np.flatnonzero(rows)
        are_rows = rows.ndim == 1 and (not rows.size or (rows.dtype.kind in "iu" and 0 <= rows.min() <= rows.max() < n))
        if not are_rows:
            raise traitlets.TraitError(
                f"selection must be row numbers from 0 to {n - 1} or a mask of shape ({n},), got {value!r}."
            )
        return np.unique(rows).astype(np.uint32)

    def set(self, obj: Any, value: Any) -> None:
        """Set the rows. Observers are called only if the rows changed."""
        rows = self.validate(obj, value)
        if not np.array_equal(np.asarray(self.get(obj)), rows):
            super().set(obj, rows)


class ExplorerWidget(anywidget.AnyWidget):
    """The explorer in Jupyter, VS Code, Colab and marimo.

    Attributes
    ----------
    selection : array of shape (n_selected,)
        Numbers of the selected rows. It can be set, to row numbers or to a mask, and observed.
    color : str
        Name of the column by which points are coloured; "" is none.
    height : int
        Height in pixels, set before the widget is displayed.
    """

    _esm = notebook_module()
    _data = traitlets.Bytes().tag(sync=True)
    _images = traitlets.Bytes().tag(sync=True)
    _features = traitlets.Bytes().tag(sync=True)
    height = traitlets.Int(620).tag(sync=True)
    color = traitlets.Unicode("").tag(sync=True)
    selection = RowNumbers().tag(
        sync=True,
        to_json=lambda rows, _: rows.astype("<u4").tobytes(),
        from_json=lambda content, _: np.frombuffer(bytes(content), "<u4").astype(np.uint32),
    )

    def __init__(self, payload: Payload, Y: Array, encoding: LabelEncoding) -> None:
        self.n_samples = payload.n_samples
        self._payload, self._still = payload, (Y, encoding)
        blocks = {"_data": payload.data, "_images": payload.images, "_features": payload.features}
        super().__init__(**blocks, color=payload.color or "")

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Add an image, which is shown where no widget can run, such as in a notebook exported to HTML."""
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        if find_spec("matplotlib") is not None:
            draw_map(*self._still, self._payload.title).figure.savefig(image := io.BytesIO(), format="png")
            data["image/png"] = base64.b64encode(image.getvalue()).decode()
        return data, metadata

    def link(self, other: "ExplorerWidget") -> None:
        """Select the same rows in both widgets from now on, starting with those of this one."""
        if other.n_samples != self.n_samples:
            raise ValueError(f"other has {other.n_samples} points, but this widget has {self.n_samples}.")
        other.selection = self.selection
        # Not by traitlets.link, for which the comparison of values must be a single boolean.
        self.observe(lambda change: other.set_trait("selection", change.new), "selection")
        other.observe(lambda change: self.set_trait("selection", change.new), "selection")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the explorer to an HTML file, replacing an existing one, and return its path."""
        return save_document(self._payload, path)
