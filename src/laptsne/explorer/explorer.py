"""The explorer: a map, its table and its path of contraction in one HTML file."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from laptsne._runtime.atomic_file import atomic_write
from laptsne.colours.palette import colours
from laptsne.contraction_path import ContractionPath
from laptsne.explorer.columns import Column, read_columns
from laptsne.explorer.html import page
from laptsne.explorer.thumbnails import thumbnails

_COLOURS = 60  # the page repeats them for more categories
_STEPS = 65535  # positions are kept to this fraction of the longer side of the map


def explorer(
    Y: ArrayLike | ContractionPath,
    out: str | os.PathLike[str],
    *,
    columns: Any = None,
    images: ArrayLike | None = None,
    color: str | None = None,
    title: str | None = None,
) -> Path:
    """Write a page on which a map can be explored: one file, which opens in a browser without a server or a network.

    The page draws the map, coloured by any column; shows the values of a point under the pointer, and its image; finds
    text; and lists the points inside a lasso, to be saved as CSV. Given a path of maps, it has a slider that moves the
    points from plain t-SNE to strong contraction, and draws beside it what that does to the KL divergence, to the
    neighbours and to the eigenvalues.

    Parameters
    ----------
    Y : array of shape (n_samples, 2) or ContractionPath
        The map, or maps at rising contraction as from :func:`laptsne.contraction_path.contraction_path`.
        Positions are kept to one part in 65,535 of the map's longer side.
    out : path
        The file to write; an existing one is replaced.
    columns : mapping from names to arrays, pandas or polars DataFrame, optional
        What is known of the points, one value a point: text, truths, categories, whole and real numbers (to seven
        digits), and times. None and NaN are missing values. An index of pandas that is not a mere count is a column.
    images : array of shape (n_samples, height, width) or (n_samples, height, width, 3), optional
        Images of the points, of type uint8. Those of more than 64 pixels a side are made smaller.
    color : str, optional
        The column that colours the points first; by default the first that holds categories.
    title : str, optional
        The title of the page; by default the number of points.

    Returns
    -------
    path : Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from laptsne.plotting import explorer
    >>> Y = [[0.0, 0.0], [1.0, 0.5], [4.0, 2.0]]
    >>> explorer(Y, Path(tempfile.mkdtemp(), "map.html"), columns={"kind": ["a", "a", "b"]}).name
    'map.html'
    """
    maps = _maps(Y)
    n_samples = maps.shape[1]
    table = read_columns(columns, n_samples)
    pixels = None if images is None else thumbnails(images, n_samples)
    corner, side = maps.min((0, 1)), float(np.ptp(maps, (0, 1)).max()) or 1.0
    states = np.rint((maps - corner) * (_STEPS / side)).astype(np.uint16)
    header = {
        "title": title or f"Map of {n_samples:,} points",
        "points": n_samples,
        "states": len(maps),
        "box": {"x": float(corner[0]), "y": float(corner[1]), "side": side},
        "columns": [_described(column) for column in table],
        "color": _first_colour(color, table),
        "palette": colours(_COLOURS),
        "images": None if pixels is None else list(pixels.shape[1:]),
        "path": _curves(Y) if isinstance(Y, ContractionPath) and len(maps) > 1 else None,
    }
    path = Path(out)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"out={str(path)!r}: the folder {str(path.parent)!r} does not exist; make it first.")
    text = page(header["title"], header, [states, *(column.values for column in table)], pixels)
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
    return path


def _maps(Y: ArrayLike | ContractionPath) -> NDArray[np.float64]:
    """Return maps of shape (n_maps, n_samples, 2)."""
    maps = np.asarray(Y.embeddings if isinstance(Y, ContractionPath) else np.asarray(Y)[None], dtype=np.float64)
    if maps.ndim != 3 or maps.shape[2] != 2 or not maps.size:
        raise ValueError(
            f"Y must have shape (n_samples, 2) to be explored; it has {maps.shape[1:]}. Use n_components=2."
        )
    if not np.isfinite(maps).all():
        raise ValueError("Y has positions that are NaN or infinite; leave these points out.")
    return maps


def _described(column: Column) -> dict[str, Any]:
    described: dict[str, Any] = {"name": column.name, "kind": column.kind}
    if column.kind == "category":
        described |= {"names": column.names, "numeric": column.numeric}
    if column.kind == "time":
        present = column.values[~np.isnan(column.values)]
        described["daily"] = bool((present % 86_400_000 == 0).all())
    return described


def _first_colour(color: str | None, table: list[Column]) -> int | None:
    names = [column.name for column in table]
    if color is not None:
        if color not in names:
            raise ValueError(
                f"color={color!r} is not among the columns: {', '.join(map(repr, names)) or 'there are none'}."
            )
        return names.index(color)
    # A column in which nearly every value is another, such as a name, tells nothing by its colours.
    few = [
        i for i, column in enumerate(table) if column.kind == "category" and 2 * len(column.names) <= len(column.values)
    ]
    return few[0] if few else 0 if table else None


def _curves(path: ContractionPath) -> dict[str, Any]:
    """What is drawn beside the slider; null stands for what is not known."""

    def numbers(values: Any) -> Any:
        if isinstance(values, list):
            return [numbers(value) for value in values]
        return values if math.isfinite(values) else None

    return {
        "contractions": numbers(np.asarray(path.contractions, float).tolist()),
        "kl": numbers(np.asarray(path.kl_divergences, float).tolist()),
        "trustworthiness": numbers(np.asarray(path.trustworthiness, float).tolist()),
        "kept": numbers(np.asarray(path.neighbors_kept, float).tolist()),
        "eigenvalues": numbers(np.atleast_2d(np.asarray(path.eigenvalues, float)).tolist()),
        "chosen": int(path.chosen),
    }
