"""Maps in the format of Embedding Atlas (https://apple.github.io/embedding-atlas/), another explorer."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from laptsne._runtime.files import atomic_write
from laptsne._runtime.typing import Array
from laptsne.explorer.annotated import is_annotated
from laptsne.explorer.columns import CLUSTERS, column_items, model_labels
from laptsne.explorer.maps import check_maps

_RESERVED = ("projection_x", "projection_y", "neighbors")


def to_atlas(Y: Any, out: str | os.PathLike[str] | None = None, *, columns: Any = None, n_neighbors: int = 15) -> Any:
    """Return a map, its clusters and its neighbours as a table that Embedding Atlas opens.

    The table has the columns ``projection_x`` and ``projection_y``, and of a fitted model ``cluster`` and
    ``neighbors``: structs of ``ids``, which are row numbers, and ``distances``. The distance of a neighbour j of i is
    ``-log(P_ij / max_k P_ik)``, since a model keeps affinities rather than distances. Each row is its own first
    neighbour, as in the tables of Embedding Atlas itself.

    Parameters
    ----------
    Y : array-like of shape (n_samples, 2) or fitted model
        The map. A model that was loaded from a file has no affinities, and the table no neighbours.
    out : path-like, optional
        Parquet file to write as well.
    columns : mapping from str to array-like, pandas or polars DataFrame, or AnnData, optional
        Further columns of the table.
    n_neighbors : int, default=15
        Number of neighbours, the row itself included.

    Returns
    -------
    table : pyarrow.Table
        Open it with ``embedding_atlas.widget.EmbeddingAtlasWidget(table, x="projection_x", y="projection_y",
        neighbors="neighbors")``, or its file with ``embedding-atlas FILE --x projection_x --y projection_y
        --neighbors neighbors``.

    Examples
    --------
    >>> from laptsne.explorer import to_atlas
    >>> to_atlas([[0.0, 0.0], [1.0, 0.5]], columns={"kind": ["a", "b"]}).column_names
    ['projection_x', 'projection_y', 'kind']
    """
    try:
        import pyarrow as pa  # noqa: PLC0415  optional
    except ImportError as error:
        raise ImportError("to_atlas needs pyarrow: pip install pyarrow.") from error
    maps = check_maps(Y)
    embedding, n_samples = maps.embeddings[0], maps.n_samples
    found = {"projection_x": pa.array(embedding[:, 0]), "projection_y": pa.array(embedding[:, 1])}
    for name, values in column_items(columns.obs if is_annotated(columns) else columns):
        if name in _RESERVED:
            raise ValueError(f"columns: {name!r} is a column of the map; rename it.")
        found[name] = values.to_arrow() if hasattr(values, "to_arrow") else pa.array(values)
        if len(found[name]) != n_samples:
            raise ValueError(f"columns: {name!r} has {len(found[name])} values, but the map has {n_samples} points.")
    labels = model_labels(Y, n_samples)
    if labels is not None:
        found.setdefault(CLUSTERS, pa.array(labels))
    P = getattr(Y, "affinities_", None)
    if P is not None and P.shape[0] == n_samples:  # those of landmarks are of other points
        ids, distances = _neighbors(P, min(n_neighbors, n_samples))
        parts = [_lists(pa, ids, pa.int64()), _lists(pa, distances, pa.float64())]
        found["neighbors"] = pa.StructArray.from_arrays(parts, names=["ids", "distances"])
    table = pa.table(found)
    if out is not None:
        import pyarrow.parquet  # noqa: PLC0415  optional

        with atomic_write(Path(out)) as temporary:
            pyarrow.parquet.write_table(table, temporary)
    return table


def _neighbors(P: Any, n_neighbors: int) -> tuple[Array, Array]:
    """Return ids and distances of shape (n_samples, n_neighbors); the id is -1 where there are fewer."""
    P = scipy.sparse.csr_matrix(P)
    n_samples = P.shape[0]
    ids = np.full((n_samples, n_neighbors), -1, np.int64)
    distances = np.full((n_samples, n_neighbors), np.inf)
    ids[:, 0], distances[:, 0] = np.arange(n_samples), 0.0
    for row in range(n_samples):
        part = slice(P.indptr[row], P.indptr[row + 1])
        values, others = P.data[part], P.indices[part]
        kept = (others != row) & (values > 0)
        values, others = values[kept], others[kept]
        order = np.argsort(-values, kind="stable")[: n_neighbors - 1]
        ids[row, 1 : len(order) + 1] = others[order]
        distances[row, 1 : len(order) + 1] = np.log(values.max(initial=0.0) / values[order]) if len(order) else []
    return ids, distances


def _lists(pa: Any, values: Array, dtype: Any) -> Any:
    """Return the rows of an array as lists."""
    offsets = np.arange(len(values) + 1, dtype=np.int32) * values.shape[1]
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values.ravel(), type=dtype))
