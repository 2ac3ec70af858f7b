"""Export of an embedding, or of a contraction path, to the explorer's HTML file."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from laptsne._runtime.atomic_file import atomic_write
from laptsne.colours.palette import PALETTE
from laptsne.contraction_path import ContractionPath
from laptsne.explorer.columns import EncodedColumn, encode_columns
from laptsne.explorer.html_file import html_document
from laptsne.explorer.thumbnails import make_thumbnails

_STEPS = 65535  # positions are stored as multiples of the longer side divided by this
_DAY = 86_400_000  # milliseconds


def explorer(
    Y: ArrayLike | ContractionPath,
    out: str | os.PathLike[str],
    *,
    columns: Any = None,
    images: ArrayLike | None = None,
    color: str | None = None,
    title: str | None = None,
) -> Path:
    """Write an interactive map to a single HTML file, which opens in a browser without a server or a network.

    The file colours the map by any column, shows the values and the image of the point under the pointer, searches
    text, and lists the points inside a lasso, which can be saved as CSV. Given a contraction path, it has a slider
    that moves the points from plain t-SNE to strong contraction, with charts of the KL divergence, the neighbours
    kept, the neighbours seen and the eigenvalues. Each of its maps fills the view.

    Parameters
    ----------
    Y : array-like of shape (n_samples, 2) or ContractionPath
        The map, or maps at increasing contraction from :func:`laptsne.contraction_path.contraction_path`. Coordinates
        are rounded to 1/65,535 of the map's longer side.
    out : path-like
        File to write. An existing file is replaced.
    columns : mapping from str to array-like of shape (n_samples,), pandas or polars DataFrame, optional
        Data on the points: strings, booleans, categories, integers, floats (to seven digits) and datetimes. None and
        NaN are missing values. A pandas index other than a RangeIndex becomes a column.
    images : array-like of shape (n_samples, height, width) or (n_samples, height, width, 3), optional
        Images of the points, of dtype uint8. They are reduced to at most 64 pixels per side.
    color : str, optional
        The column by which points are coloured at first. By default, the first categorical one.
    title : str, optional
        Title of the document. By default, the number of points.

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
    maps = _check_maps(Y)
    n_samples = maps.shape[1]
    encoded = encode_columns(columns, n_samples)
    pixels = None if images is None else make_thumbnails(images, n_samples)
    boxes, positions = _fitted(maps)
    header = {
        "title": title or f"Map of {n_samples:,} points",
        "points": n_samples,
        "states": len(maps),
        "boxes": boxes,
        "columns": [_column_header(column) for column in encoded],
        "color": _initial_color(color, encoded),
        "palette": PALETTE,
        "images": None if pixels is None else list(pixels.shape[1:]),
        "path": _path_header(Y) if isinstance(Y, ContractionPath) and len(maps) > 1 else None,
    }
    path = Path(out)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"out={str(path)!r}: the folder {str(path.parent)!r} does not exist; create it first.")
    text = html_document(header["title"], header, [positions, *(column.values for column in encoded)], pixels)
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
    return path


def _check_maps(Y: ArrayLike | ContractionPath) -> NDArray[np.float64]:
    """Return maps of shape (n_maps, n_samples, 2)."""
    maps = np.asarray(Y.embeddings if isinstance(Y, ContractionPath) else np.asarray(Y)[None], dtype=np.float64)
    if maps.ndim != 3 or maps.shape[2] != 2 or not maps.size:
        raise ValueError(
            f"Y must have shape (n_samples, 2) to be explored, got {maps.shape[1:]}; fit with n_components=2."
        )
    if not np.isfinite(maps).all():
        raise ValueError("Y has coordinates that are NaN or infinite; remove these points.")
    return maps


def _fitted(maps: NDArray[np.float64]) -> tuple[list[dict[str, float]], NDArray[np.uint16]]:
    """Scale the maps to the same length of the longer side and centre them; return their squares and positions."""
    low, high = maps.min(axis=1), maps.max(axis=1)
    sides = (high - low).max(axis=1)
    sides[sides == 0] = 1.0
    corners = (high + low - sides[:, None]) / 2
    corners += ((low - corners) / sides[:, None]).min(axis=0) * sides[:, None]  # without the margin common to all
    positions = np.rint((maps - corners[:, None]) * (_STEPS / sides[:, None, None]))
    boxes = [{"x": x, "y": y, "side": side} for (x, y), side in zip(corners.tolist(), sides.tolist(), strict=True)]
    return boxes, positions.astype(np.uint16)


def _column_header(column: EncodedColumn) -> dict[str, Any]:
    header: dict[str, Any] = {"name": column.name, "kind": column.kind}
    if column.kind == "category":
        header |= {"names": column.names, "numeric": column.numeric}
    if column.kind == "time":
        header["daily"] = bool((column.values[~np.isnan(column.values)] % _DAY == 0).all())
    return header


def _initial_color(color: str | None, columns: list[EncodedColumn]) -> int | None:
    """Return the index of the column by which points are coloured at first."""
    names = [column.name for column in columns]
    if color is not None:
        if color not in names:
            raise ValueError(
                f"color={color!r} must be one of the columns: {', '.join(map(repr, names)) or 'there are none'}."
            )
        return names.index(color)
    for i, column in enumerate(columns):
        # Colours say nothing about a column in which nearly all values differ, such as a name.
        if column.kind == "category" and 2 * len(column.names) <= len(column.values):
            return i
    return 0 if columns else None


def _path_header(path: ContractionPath) -> dict[str, Any]:
    """Return the curves drawn beside the slider, with None for values that are not finite."""
    curves = {
        "contractions": path.contractions,
        "kl": path.kl_divergences,
        "trustworthiness": path.trustworthiness,
        "kept": path.neighbors_kept,
        "seen": path.neighbors_seen,
        "eigenvalues": np.atleast_2d(path.eigenvalues),
    }
    known = {name: np.where(np.isfinite(values), values, None).tolist() for name, values in curves.items()}  # type: ignore[call-overload]
    return {**known, "chosen": int(path.chosen)}
