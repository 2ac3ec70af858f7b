"""Export of maps to the explorer: an HTML file, or a view in a notebook."""

import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from laptsne._runtime.colours import PALETTE
from laptsne.explorer.columns import (
    CLUSTERS,
    EncodedColumn,
    cluster_column,
    cluster_words,
    encode_columns,
    is_annotated,
    named_column,
)
from laptsne.explorer.frame import ExplorerFrame, save_document
from laptsne.explorer.maps import RELIABILITY, Shown, check_maps, labels_of, path_header
from laptsne.explorer.payload import make_thumbnails, pack, pack_features

_EVIDENCE = ("cluster", "size", "contrast", "contrast_error", "nearest", "reciprocity", "stability", "verdict")


def explorer(
    Y: Shown,
    out: str | os.PathLike[str] | None = None,
    *,
    columns: Any = None,
    images: ArrayLike | None = None,
    color: str | None = None,
    title: str | None = None,
    labels: ArrayLike | None = None,
    clusters: Any = None,
    text: str | None = None,
    features: Any = None,
    feature_names: Any = None,
    continuous: Collection[str] = (),
) -> Any:
    """Show an interactive map in a notebook, or write it to an HTML file that needs no server and no network.

    Parameters
    ----------
    Y : array-like of shape (n_samples, 2), fitted model, FittedMap, ContractionPath or mapping
        The map; a fitted model, which adds its clusters, the evidence for them and the reliability of the points; maps
        at increasing contraction, to be moved through by a slider; or maps to compare, such as
        ``{"t-SNE": Y1, "UMAP": Y2}``, which are rotated onto the first one. Coordinates are rounded to 1/65,535 of the
        map's longer side.
    out : path-like, optional
        File to write. An existing file is replaced. Without it, an object to display in a notebook is returned.
    columns : mapping from str to array-like of shape (n_samples,), pandas or polars DataFrame, or AnnData, optional
        Data on the points: strings, booleans, categories, integers, floats (to seven digits) and datetimes. None and
        NaN are missing values. A pandas index other than a RangeIndex becomes a column. Strings may contain links, and
        images as data URIs. Of AnnData, the table ``obs`` is shown in its own colours, and ``X`` are the features.
    images : array-like of shape (n_samples, height, width) or (n_samples, height, width, 3), optional
        Images of the points, of dtype uint8. They are reduced to at most 64 pixels per side.
    color : str, optional
        The column by which points are coloured at first. By default, the first categorical one.
    title : str, optional
        By default, the number of points.
    labels : array-like of int of shape (n_samples,), optional
        Cluster of each point, shown as the column "cluster"; -1 is no cluster. By default, those of a fitted model.
    clusters : iterable of rows or DataFrame, optional
        The evidence for the clusters, one row per cluster with at least ``cluster`` and ``size``. By default,
        ``clusters_`` of a fitted model.
    text : str, optional
        The column with the texts of the points. Clusters are named by their most distinguishing words.
    features : array, sparse matrix or DataFrame of shape (n_samples, n_features), optional
        The features that the map was computed from, to colour by. Values are rounded to 1/254 of their range. If all
        take more than 32 MB, the most variable ones are kept.
    feature_names : sequence of str of shape (n_features,), optional
    continuous : collection of str, optional
        Columns of integers that are numbers on a continuous scale, such as counts. Other integers are categories if
        there are at most 100 distinct ones that occur twice or more often on average.

    Returns
    -------
    path or view : Path, ExplorerWidget or ExplorerFrame
        The file, or an object that is displayed by notebooks and has a method ``save(path)``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from laptsne.plotting import explorer
    >>> file = Path(tempfile.mkdtemp(), "map.html")
    >>> explorer([[0.0, 0.0], [1.0, 0.5], [4.0, 2.0]], file, columns={"kind": ["a", "a", "b"]}).name
    'map.html'
    """
    maps = check_maps(Y)
    n_samples = maps.embeddings.shape[1]
    known = labels_of(Y, n_samples)
    if clusters is None and known is not None:
        clusters = getattr(Y, "clusters_", None)
    labels = known if labels is None else labels
    table = encode_columns(columns, n_samples, continuous)
    taken = {column.name for column in table}
    if labels is not None and CLUSTERS not in taken:
        table.append(cluster_column(labels, n_samples))
    scores = {name: getattr(getattr(Y, "reliability_", None), name, None) for name in RELIABILITY if name not in taken}
    table += encode_columns({name: values for name, values in scores.items() if values is not None}, n_samples)
    if text is not None:
        table = _with_words(table, text)
    if is_annotated(columns) and features is None:
        features, feature_names = columns.X, columns.var_names
    feature_header, feature_content = pack_features(features, feature_names, n_samples)
    pixels = None if images is None else make_thumbnails(images, n_samples)
    boxes, frames, positions = maps.quantized()
    header = {
        "title": title or f"Map of {n_samples:,} points",
        "points": n_samples,
        "states": len(boxes),
        "boxes": boxes,
        "frames": frames,
        "columns": [column.header() for column in table],
        "color": _initial_color(table, color),
        "palette": PALETTE,
        "images": None if pixels is None else list(pixels.shape[1:]),
        "path": None if maps.path is None else path_header(maps.path),
        "maps": maps.names or None,
        "evidence": _evidence(table, clusters),
        "features": feature_header,
    }
    payload = pack(header, [positions, *(column.values for column in table)], pixels, feature_content)
    if out is not None:
        return save_document(payload, out)
    if find_spec("anywidget") is None:
        return ExplorerFrame(payload)
    from laptsne.explorer.widget import ExplorerWidget  # noqa: PLC0415  anywidget is optional

    return ExplorerWidget(payload)


def _with_words(table: list[EncodedColumn], text: str) -> list[EncodedColumn]:
    """Add the words of each cluster to the column of clusters."""
    texts = named_column(table, text, "text")
    if texts.kind != "category":
        raise ValueError(f"text={text!r} is not a column of strings.")
    if not any(column.name == CLUSTERS for column in table):
        raise ValueError(f"text={text!r} needs clusters to name; pass labels, or a fitted model as Y.")
    clusters = named_column(table, CLUSTERS, "text")
    names = (*texts.names, "")
    words = cluster_words([names[code] for code in texts.values], clusters.values, len(clusters.names))
    return [replace(column, captions=tuple(words)) if column is clusters else column for column in table]


def _initial_color(table: list[EncodedColumn], color: str | None) -> int | None:
    """Return the index of the column by which points are coloured at first."""
    if color is not None:
        return table.index(named_column(table, color, "color"))
    # Colours say nothing about a column in which nearly all values differ, such as a name.
    grouped = (column.kind == "category" and 0 < 2 * len(column.names) <= len(column.values) for column in table)
    return next((i for i, is_grouped in enumerate(grouped) if is_grouped), 0 if table else None)


def _evidence(table: list[EncodedColumn], clusters: Any) -> dict[str, Any] | None:
    """Return the rows of the evidence, as JSON can hold them, and the index of the column of clusters."""
    if clusters is None:
        return None
    index = next((i for i, column in enumerate(table) if column.name == CLUSTERS), None)
    if index is None or table[index].kind != "category":
        raise ValueError("clusters needs the cluster of each point; pass labels, or a fitted model as Y.")
    if hasattr(clusters, "to_dicts"):  # polars
        clusters = clusters.to_dicts()
    elif hasattr(clusters, "to_dict"):  # pandas
        clusters = clusters.to_dict("records")
    rows = []
    for row in clusters:
        given = row if isinstance(row, Mapping) else {name: getattr(row, name, None) for name in _EVIDENCE}
        if given.get("cluster") is None or given.get("size") is None:
            raise ValueError(
                f"clusters: a row lacks 'cluster' or 'size'; pass clusters_ of a fitted model, got {row!r}."
            )
        figures = {name: _plain(given.get(name)) for name in _EVIDENCE[2:]}
        rows.append({"cluster": str(given["cluster"]), "size": int(given["size"]), **figures})
    return {"rows": rows, "column": index} if rows else None


def _plain(value: Any) -> str | float | None:
    if value is None or isinstance(value, str):
        return value
    number = float(value)
    if not np.isfinite(number):
        return None
    return int(number) if number.is_integer() else number
