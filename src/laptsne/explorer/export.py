"""Export of maps to the explorer: an HTML file assembled from the shipped assets, or a view in a notebook."""

import base64
import hashlib
import html
import json
import os
import re
from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from laptsne._runtime.colours import PALETTE, encode_labels
from laptsne._runtime.files import atomic_write
from laptsne._runtime.typing import Array
from laptsne.clusters import ClusterTable
from laptsne.clusters.linkage import ClusterTree
from laptsne.clusters.table import percent
from laptsne.estimators.contraction_path import ContractionPath
from laptsne.explorer.maps import Shown, aligned_maps, labels_of, path_header, quantized
from laptsne.explorer.payload import (
    CLUSTERS,
    EncodedColumn,
    Payload,
    cluster_column,
    count_words,
    distinguishing_words,
    encode_columns,
    make_thumbnails,
    named_column,
    pack,
    pack_features,
)

_EVIDENCE = ("size", "nearest", "chance", "verdict")
_HEIGHT = 620  # pixels, in a notebook
_IMPORT = re.compile(r'^import .* from "\./(\w+)\.js";\n', re.MULTILINE)
_COMMENT = re.compile(r"^\s*//[^\n]*\n|/\*\*.*?\*/[ ]?", re.MULTILINE | re.DOTALL)
_INDENT = re.compile(r"^\s+", re.MULTILINE)


def explorer(
    Y: Shown,
    out: str | os.PathLike[str] | None = None,
    *,
    columns: Any = None,
    images: ArrayLike | None = None,
    color: str | None = None,
    title: str | None = None,
    labels: ArrayLike | None = None,
    clusters: ClusterTable | None = None,
    tree: ClusterTree | None = None,
    text: str | None = None,
    features: Any = None,
    feature_names: Any = None,
    continuous: Collection[str] = (),
) -> Any:
    """Show an interactive map in a notebook, or write it to an HTML file that needs no server and no network.

    Parameters
    ----------
    Y : array-like of shape (n_samples, 2 or 3), fitted model, FittedMap, ContractionPath or mapping
        The map; a fitted model, which adds its clusters, the evidence for them and the reliability of the points; maps
        at increasing contraction, to be moved through by a slider; or maps to compare, such as
        ``{"t-SNE": Y1, "UMAP": Y2}``, which are rotated onto the first one.
    out : path-like, optional
        File to write. An existing file is replaced. Without it, an object to display in a notebook is returned.
    columns : mapping from str to array-like of shape (n_samples,), or pandas or polars DataFrame, optional
        Strings, booleans, categories, integers, floats (to seven digits) and datetimes; None and NaN are missing
        values. Strings may contain links, and images as data URIs.
    images : array-like of shape (n_samples, height, width) or (n_samples, height, width, 3), optional
        Images of the points, of dtype uint8, reduced to at most 64 pixels per side.
    color : str, optional
        The column by which points are coloured at first. By default, the first categorical one.
    title : str, optional
        By default, the number of points.
    labels : array-like of int of shape (n_samples,), optional
        Cluster of each point, shown as the column "cluster"; -1 is no cluster. By default, those of a fitted model.
    clusters : ClusterTable, optional
        The evidence for the clusters. By default, ``clusters_`` of a fitted model.
    tree : ClusterTree, optional
        How the clusters are nested: groups of them are named where the map shows too many. By default,
        ``cluster_tree_`` of a fitted model.
    text : str, optional
        The column with the texts of the points. Clusters are named by their most distinguishing words.
    features : array, sparse matrix or DataFrame of shape (n_samples, n_features), optional
        The features that the map was computed from, to colour by; of more than 32 MB, the most variable ones.
    feature_names : sequence of str of shape (n_features,), optional
    continuous : collection of str, optional
        Columns of integers that are numbers on a continuous scale, such as counts, however few are distinct.

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
    embeddings, turns = aligned_maps(Y)
    n_maps, n_samples = embeddings.shape[:2]
    known = labels_of(Y, n_samples)
    if clusters is None and known is not None:
        clusters = getattr(Y, "clusters_", None)
    table = encode_columns(columns, n_samples, continuous)
    if labels is None and known is not None and known.max() > 0:  # one cluster is no cluster
        labels, tree = known, tree or getattr(Y, "cluster_tree_", None)
    if labels is not None and CLUSTERS not in table:
        table[CLUSTERS] = cluster_column(labels, n_samples)
    reliability = getattr(Y, "reliability_", None)  # of a model that has been diagnosed
    if reliability is not None and "perturbation" not in table:
        table |= encode_columns({"perturbation": reliability.perturbation}, n_samples)
    if tree is not None:
        _add_layers(table, tree)
    if text is not None and (labels is not None or known is None):
        _add_words(table, text, tree)
    feature_header, feature_content = pack_features(features, feature_names, n_samples)
    pixels = None if images is None else make_thumbnails(images, n_samples)
    boxes, frames, positions = quantized(embeddings, turns)
    header = {
        "title": title or f"Map of {n_samples:,} points",
        "points": n_samples,
        "states": n_maps,
        "dimensions": embeddings.shape[2],
        "boxes": boxes,
        "frames": frames,
        "columns": [column.header for column in table.values()],
        "color": _initial_color(table, color),
        "palette": PALETTE,
        "images": None if pixels is None else list(pixels.shape[1:]),
        "path": path_header(Y) if isinstance(Y, ContractionPath) and n_maps > 1 else None,
        "maps": list(map(str, Y)) if isinstance(Y, Mapping) and n_maps > 1 else None,
        "evidence": _evidence(table, clusters),
        "features": feature_header,
    }
    payload = pack(header, [positions, *(column.values for column in table.values())], pixels, feature_content)
    shown = embeddings[getattr(Y, "chosen", 0), :, :2]
    return _view(payload, shown, table) if out is None else save_document(payload, out)


def _view(payload: Payload, Y: Array, table: dict[str, EncodedColumn]) -> Any:
    """Return what a notebook displays."""
    if find_spec("anywidget") is None:
        return ExplorerFrame(payload)
    from laptsne.explorer.widget import ExplorerWidget  # noqa: PLC0415  anywidget is optional

    labels = encode_labels(None, len(Y)) if payload.color is None else table[payload.color].encoding
    return ExplorerWidget(payload, Y, labels)


def _add_layers(table: dict[str, EncodedColumn], tree: ClusterTree) -> None:
    """Add coarser layers to the column of clusters: the group of each cluster, and names of the groups."""
    names = np.array([str(cluster) for cluster in range(tree.n_clusters)])
    if CLUSTERS not in table or list(table[CLUSTERS].header.get("names", ())) != names.tolist():  # another column
        return
    table[CLUSTERS].header["layers"] = [
        {"groups": groups.tolist(), "names": [", ".join(names[groups == group]) for group in range(groups.max() + 1)]}
        for groups in tree.layers(np.arange(tree.n_clusters))[1:]
    ]


def _add_words(table: dict[str, EncodedColumn], text: str, tree: ClusterTree | None) -> None:
    """Add the words of each cluster, and of each group in coarser layers, to the column of clusters."""
    texts = named_column(table, text, "text")
    if texts.header["kind"] != "category":
        raise ValueError(f"text={text!r} is not a column of strings.")
    if CLUSTERS not in table or "names" not in table[CLUSTERS].header:
        raise ValueError(f"text={text!r} needs clusters to name; pass labels, or a fitted model as Y.")
    names = (*texts.header["names"], "")
    header, codes, _ = table[CLUSTERS]
    words, counts = count_words([names[code] for code in texts.values], codes, len(header["names"]))
    header["captions"] = distinguishing_words(words, counts, _siblings(header, tree, np.arange(len(counts))))
    for layer in header.get("layers", ()):
        groups = np.array(layer["groups"])
        totals = np.zeros((len(layer["names"]), len(words)))
        np.add.at(totals, groups, counts)
        layer["captions"] = distinguishing_words(words, totals, _siblings(header, tree, groups))


def _siblings(header: dict[str, Any], tree: ClusterTree | None, groups: Array) -> Array | None:
    return tree.siblings(groups) if tree is not None and "layers" in header else None


def _initial_color(table: dict[str, EncodedColumn], color: str | None) -> int | None:
    """Return the index of the column by which points are coloured at first."""
    if color is not None:
        named_column(table, color, "color")
        return list(table).index(color)
    # Colours say nothing about a column in which nearly all values differ, such as a name.
    for i, (header, values, _) in enumerate(table.values()):
        if 0 < 2 * len(header.get("names", ())) <= len(values):
            return i
    return 0 if table else None


def _evidence(table: dict[str, EncodedColumn], clusters: ClusterTable | None) -> dict[str, Any] | None:
    """Return the rows of the evidence, as JSON can hold them, and the index of the column of clusters."""
    if clusters is None or len(clusters) == 1:
        return None
    if CLUSTERS not in table or table[CLUSTERS].header["kind"] != "category":
        raise ValueError("clusters needs the cluster of each point; pass labels, or a fitted model as Y.")
    rows = [{"cluster": str(row.cluster)} | {name: getattr(row, name) for name in _EVIDENCE} for row in clusters]
    for row in rows:
        row["percent"] = percent(row["chance"])
    return {"rows": rows, "column": list(table).index(CLUSTERS)} if rows else None


class ExplorerFrame:
    """An explorer that notebooks display in a frame, if anywidget is not installed."""

    def __init__(self, payload: Payload) -> None:
        self._payload = payload

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the explorer to an HTML file, replacing an existing one, and return its path."""
        return save_document(self._payload, path)

    def _repr_html_(self) -> str:
        document = html.escape(_html_document(self._payload))
        # Scripts may run and files may be saved, but the frame has no access to the notebook.
        sandbox = "allow-scripts allow-downloads allow-popups allow-popups-to-escape-sandbox"
        style = f"width: 100%; height: {_HEIGHT}px; border: 0"
        title = html.escape(self._payload.title)
        return f'<iframe srcdoc="{document}" sandbox="{sandbox}" style="{style}" title="{title}"></iframe>'


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
    body, style = json.dumps(_asset("body.html")), json.dumps(_style())
    return f"const BODY = {body};\nconst STYLE = {style};\n{_script('widget')}"


def _html_document(payload: Payload) -> str:
    """Return the document. Data are encoded in base64, so that nothing in them can close a tag."""
    code = f"(() => {{\n'use strict';\n{_script('page')}}})();\n"
    style = _style()
    # Only this script and this style are allowed, and no request of any kind.
    policy = (
        f"default-src 'none'; script-src '{_digest(code)}'; style-src '{_digest(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    blocks = {"data": payload.data, "images": payload.images, "features": payload.features}
    parts = {name: base64.b64encode(block).decode() for name, block in blocks.items()}
    parts |= {"policy": html.escape(policy, quote=False), "title": html.escape(payload.title)}
    parts |= {"style": style, "body": _asset("body.html"), "script": code}
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _asset("page.html"))


def _script(entry: str) -> str:
    """Return a module, after all that it imports, as one script."""
    names = [entry]
    for name in names:  # which grow as imports are found
        names += _IMPORT.findall(_asset(f"{name}.js"))
    sources = (_IMPORT.sub("", _asset(f"{name}.js")) for name in dict.fromkeys(reversed(names)))
    return re.sub(r"^export (?!default)", "", "".join(sources), flags=re.MULTILINE)


def _style() -> str:
    return re.sub(r"\s*([{};])\s*|(?<=[:,])\s+", r"\1", _asset("style.css"))


@cache
def _asset(name: str) -> str:
    """Return an asset without comments and indentation."""
    text = files("laptsne.explorer").joinpath("assets", name).read_text(encoding="utf-8")
    return _INDENT.sub("", _COMMENT.sub("", text))


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
