"""Export of maps to the explorer: an HTML file, or a view in a notebook."""

import os
from collections.abc import Collection
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from laptsne._runtime.typing import Array
from laptsne.colours.palette import PALETTE
from laptsne.explorer.annotated import is_annotated, own_colours
from laptsne.explorer.cluster_table import table_rows
from laptsne.explorer.columns import CLUSTERS, EncodedColumn, encode_clusters, encode_columns, model_labels
from laptsne.explorer.feature_block import pack_features
from laptsne.explorer.frame import ExplorerFrame
from laptsne.explorer.maps import check_maps, path_header
from laptsne.explorer.payload import Payload, pack
from laptsne.explorer.thumbnails import make_thumbnails
from laptsne.explorer.words import cluster_words

if TYPE_CHECKING:
    from laptsne.explorer.widget import ExplorerWidget

_RELIABILITY = ("perturbation", "singularity")


def explorer(
    Y: Any,
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
    """Show an interactive map in a notebook, or write it to a single HTML file.

    The file opens in a browser without a server or a network. The map is coloured by any column, with the names of
    categories or clusters on it; it shows the values and the image of the point under the pointer, searches text, and
    compares the points inside a lasso with the rest. Given a contraction path, it has a slider that moves the points
    from plain t-SNE to strong contraction; given several maps, it moves the points from map to map.

    Parameters
    ----------
    Y : array-like of shape (n_samples, 2), fitted model, ContractionPath or mapping
        The map; a fitted model, which adds its clusters, the evidence for them and the reliability of the points; maps
        at increasing contraction from :func:`laptsne.contraction_path.contraction_path`; or maps to compare, such as
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
        Title of the document. By default, the number of points.
    labels : array-like of int of shape (n_samples,), optional
        Cluster of each point, shown as the column "cluster"; -1 is no cluster, drawn grey. By default, ``labels_`` of a
        fitted model.
    clusters : iterable of rows or DataFrame, optional
        The evidence for the clusters, one row per cluster with at least ``cluster`` and ``size``. By default,
        ``clusters_`` of a fitted model.
    text : str, optional
        The column with the texts of the points. Clusters are named by their most distinguishing words.
    features : array, sparse matrix or DataFrame of shape (n_samples, n_features), optional
        What the map was made of, to colour by any of them. Values are rounded to 1/254 of their range. If all take more
        than 32 MB, the most variable ones are kept.
    feature_names : sequence of str of shape (n_features,), optional
        Names of the features.
    continuous : collection of str, optional
        Columns of integers that are numbers on a continuous scale, such as counts. Other integers are categories if
        there are at most 100 distinct ones that occur twice or more often on average.

    Returns
    -------
    path or view : Path, ExplorerWidget or ExplorerFrame
        The file, or an object that is displayed by notebooks and has a method ``save(path)``. With the extra
        ``notebook`` it is a widget whose ``selection`` is an array of row numbers that can be read and set.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from laptsne.plotting import explorer
    >>> Y = [[0.0, 0.0], [1.0, 0.5], [4.0, 2.0]]
    >>> explorer(Y, Path(tempfile.mkdtemp(), "map.html"), columns={"kind": ["a", "a", "b"]}).name
    'map.html'
    """
    maps = check_maps(Y)
    table = _Table(Y, columns, labels, maps.n_samples, continuous)
    if text is not None:
        table.name_clusters(text)
    if is_annotated(columns) and features is None:
        features, feature_names = columns.X, columns.var_names
    block = pack_features(features, feature_names, maps.n_samples)
    pixels = None if images is None else make_thumbnails(images, maps.n_samples)
    boxes, frames, positions = maps.quantized()
    header = {
        "title": title or f"Map of {maps.n_samples:,} points",
        "points": maps.n_samples,
        "states": len(maps.embeddings),
        "boxes": boxes,
        "frames": frames,
        "columns": [column.header() for column in table.columns],
        "color": table.initial_color(color),
        "palette": PALETTE,
        "images": None if pixels is None else list(pixels.shape[1:]),
        "path": None if maps.path is None else path_header(maps.path),
        "maps": maps.names or None,
        "evidence": table.evidence(_model_clusters(Y, maps.n_samples) if clusters is None else clusters),
        "features": block.header,
    }
    payload = pack(header, [positions, *(column.values for column in table.columns)], pixels, block.content)
    return _view(payload) if out is None else ExplorerFrame(payload).save(out)


def _view(payload: Payload) -> "ExplorerFrame | ExplorerWidget":
    """Return a widget if anywidget is installed, otherwise the document in a frame."""
    if find_spec("anywidget") is None:
        return ExplorerFrame(payload)
    from laptsne.explorer.widget import ExplorerWidget  # noqa: PLC0415  anywidget is optional

    return ExplorerWidget(payload)


class _Table:
    """The columns of the explorer, those of a fitted model included."""

    def __init__(
        self, Y: Any, columns: Any, labels: ArrayLike | None, n_samples: int, continuous: Collection[str] = ()
    ) -> None:
        annotated = is_annotated(columns)
        self.columns = encode_columns(columns.obs if annotated else columns, n_samples, continuous)
        for name in continuous:
            if self._named(name, "continuous").kind != "number":
                raise ValueError(f"continuous has {name!r}, which is not a column of numbers.")
        for name, colours in (own_colours(columns) if annotated else {}).items():
            self._replace(replace(self._named(name), colours=tuple(colours)))
        if labels is None:
            labels = model_labels(Y, n_samples)
        if labels is not None and not any(column.name == CLUSTERS for column in self.columns):
            self.columns.append(encode_clusters(_check_labels(labels, n_samples)))
        reliability = getattr(Y, "reliability_", None)
        known = {name: getattr(reliability, name, None) for name in _RELIABILITY}
        taken = {column.name for column in self.columns}
        found = {name: values for name, values in known.items() if values is not None and name not in taken}
        self.columns += encode_columns(found, n_samples)

    def _named(self, name: str, parameter: str = "color") -> EncodedColumn:
        for column in self.columns:
            if column.name == name:
                return column
        names = ", ".join(repr(column.name) for column in self.columns)
        raise ValueError(f"{parameter}={name!r} must be one of the columns: {names or 'there are none'}.")

    def _replace(self, column: EncodedColumn) -> None:
        self.columns = [column if other.name == column.name else other for other in self.columns]

    def name_clusters(self, text: str) -> None:
        """Add the words of each cluster to the column of clusters."""
        texts = self._named(text, "text")
        if texts.kind != "category":
            raise ValueError(f"text={text!r} is not a column of strings.")
        if not any(column.name == CLUSTERS for column in self.columns):
            raise ValueError(f"text={text!r} needs clusters to name; pass labels, or a fitted model as Y.")
        column = self._named(CLUSTERS)
        names = (*texts.names, "")
        words = cluster_words([names[code] for code in texts.values], column.values, len(column.names))
        self._replace(replace(column, captions=tuple(words)))

    def evidence(self, clusters: Any) -> dict[str, Any] | None:
        """Return the table of the evidence and the index of the column of clusters."""
        if clusters is None:
            return None
        names = [column.name for column in self.columns]
        if CLUSTERS not in names or self._named(CLUSTERS).kind != "category":
            raise ValueError("clusters needs the cluster of each point; pass labels, or a fitted model as Y.")
        rows = table_rows(clusters)
        return {"rows": rows, "column": names.index(CLUSTERS)} if rows else None

    def initial_color(self, color: str | None) -> int | None:
        """Return the index of the column by which points are coloured at first."""
        if color is not None:
            return self.columns.index(self._named(color))
        for i, column in enumerate(self.columns):
            # Colours say nothing about a column in which nearly all values differ, such as a name.
            if column.kind == "category" and 2 * len(column.names) <= len(column.values):
                return i
        return 0 if self.columns else None


def _model_clusters(Y: Any, n_samples: int) -> Any:
    """Return the evidence of a fitted model, unless its clusters are those of landmarks."""
    return None if model_labels(Y, n_samples) is None else getattr(Y, "clusters_", None)


def _check_labels(labels: ArrayLike, n_samples: int) -> Array:
    array = np.asarray(labels)
    if array.shape != (n_samples,):
        raise ValueError(f"labels must have shape ({n_samples},), one cluster per point; got {array.shape}.")
    if array.dtype.kind not in "iu":
        raise ValueError(f"labels must be integers, got dtype {array.dtype}; pass other labels as columns.")
    return array.astype(np.int64)
