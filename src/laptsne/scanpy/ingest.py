"""New cells in an existing map."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils import gen_batches

from laptsne.scanpy.representation import edge_distances, features, get_model, graph_settings, import_scanpy

if TYPE_CHECKING:
    from anndata import AnnData

_N_VOTES = 15  # neighbours whose most frequent label is that of a new cell
_CHECKED = 500  # cells of the reference on which the projection or the graph is checked
_PCA_TOLERANCE = 0.07  # RMS error of the projection, relative to the spread; randomised solvers leave 0.04
_GRAPH_TOLERANCE = 0.01  # largest error of a distance, relative to the longest
_BATCH = 1000  # new cells whose distances to all cells of the reference are computed at once


def ingest(
    adata: AnnData,
    adata_ref: AnnData,
    *,
    obs: str | Iterable[str] = (),
    key: str = "laptsne",
    use_rep: str | None = None,
    copy: bool = False,
) -> AnnData | None:
    """Add new cells to the map of a reference, which does not change.

    The new cells must be preprocessed like the reference. If the map was computed from principal components, the new
    cells are projected on the components of the reference, since their own would differ.

    Parameters
    ----------
    adata : AnnData
        The new cells.
    adata_ref : AnnData
        The reference, with a map from :func:`laptsne.scanpy.tl.laptsne`.
    obs : str or iterable of str, default=()
        Columns of ``adata_ref.obs`` to predict for the new cells, by the most frequent value among their 15 nearest
        neighbours in the reference.
    key : str, default="laptsne"
        Key of ``adata_ref.uns``, if the map was computed with ``key_added``.
    use_rep : str, optional
        Key of ``adata.obsm`` with the features of the new cells, in the same space as the reference, such as the
        output of an integration of both. By default, the key that the map was computed from.
    copy : bool, default=False
        Whether to return a modified copy and leave `adata` unchanged.

    Returns
    -------
    adata : AnnData or None
        The copy if ``copy=True``. The following fields are set:

        ``adata.obsm["X_laptsne"]`` (or that of the reference)
            Positions in the map of the reference.
        ``adata.obs[...]``
            The columns named by `obs`.

    Examples
    --------
    >>> import scanpy as sc
    >>> import laptsne.scanpy as lsc
    >>> adata = sc.datasets.pbmc68k_reduced()
    >>> reference, new = adata[:600].copy(), adata[600:].copy()
    >>> lsc.tl.laptsne(reference, max_iter=300)
    >>> lsc.tl.ingest(new, reference, obs="bulk_labels")
    >>> new.obsm["X_laptsne"].shape
    (100, 2)
    """
    sc = import_scanpy()
    start = sc.logging.info("mapping new cells")
    model = get_model(adata_ref, key)
    if not hasattr(model, "transform"):
        raise ValueError(f"the model of adata_ref.uns[{key!r}] cannot map new cells; compute it with other parameters.")
    columns = [obs] if isinstance(obs, str) else list(obs)
    for column in columns:
        if column not in adata_ref.obs:
            raise ValueError(f"obs={column!r} is not a column of adata_ref.obs, which has {list(adata_ref.obs)}.")
    adata = adata.copy() if copy else adata
    params = adata_ref.uns[key]["params"]
    neighbors_key = params.get("neighbors_key")
    name, n_pcs, metric = params.get("use_rep"), params.get("n_pcs"), params.get("metric", "euclidean")
    if neighbors_key is not None:
        name, n_pcs, metric = graph_settings(adata_ref, neighbors_key)
    reference = features(adata_ref, name, n_pcs)
    X = _new_features(adata, adata_ref, name, n_pcs, use_rep)
    basis = f"X_{key}" if f"X_{key}" in adata_ref.obsm else key
    if neighbors_key is None:
        adata.obsm[basis] = model.transform(X)
    else:
        _check_graph(adata_ref, neighbors_key, reference, metric)
        batches = (pairwise_distances(X[rows], reference, metric=metric) for rows in gen_batches(X.shape[0], _BATCH))
        adata.obsm[basis] = np.concatenate([model.transform(distances) for distances in batches])
    for column in columns:
        adata.obs[column] = _predicted(reference, adata_ref.obs[column], X, metric)
    added = f"added\n    {basis!r}, LaptSNE coordinates (adata.obsm)"
    sc.logging.info("    finished", time=start, deep=added)
    return adata if copy else None


def _new_features(adata: AnnData, adata_ref: AnnData, name: str, n_pcs: int | None, use_rep: str | None) -> Any:
    if use_rep is not None:
        return features(adata, use_rep, n_pcs)
    if name == "X":
        return _genes(adata, adata_ref.var_names).X
    if name == "X_pca" and "PCs" in adata_ref.varm:
        return _projected(adata, adata_ref)[:, :n_pcs]
    if name not in adata.obsm:
        raise ValueError(
            f"the map was computed from adata_ref.obsm[{name!r}], which the new cells lack; compute it for them in the "
            "space of the reference, or pass another key of adata.obsm as use_rep."
        )
    return features(adata, name, n_pcs)


def _projected(adata: AnnData, adata_ref: AnnData) -> Any:
    """Return the principal components of new cells, on the loadings of the reference."""
    loadings = np.nan_to_num(adata_ref.varm["PCs"])
    used = (loadings != 0).any(axis=1)  # scanpy stores zeros, or NaN, for genes that are not highly variable
    genes, loadings = adata_ref.var_names[used], loadings[used]
    sample = slice(None, None, -(-adata_ref.n_obs // _CHECKED))
    known = np.asarray(adata_ref.obsm["X_pca"])[sample]
    residuals = known - _genes(adata_ref, genes).X[sample] @ loadings
    shift = residuals.mean(axis=0)  # the components of the mean of the cells
    if not np.linalg.norm(residuals - shift) <= _PCA_TOLERANCE * np.linalg.norm(known - known.mean(axis=0)):
        raise ValueError(
            "adata_ref.X is not what adata_ref.obsm['X_pca'] was computed from, so that new cells cannot be projected; "
            "restore it, or compute the components of the new cells and pass their key as use_rep."
        )
    return _genes(adata, genes).X @ loadings + shift


def _genes(adata: AnnData, names: Any) -> AnnData:
    missing = names.difference(adata.var_names)
    if len(missing):
        raise ValueError(
            f"the new cells lack {len(missing)} of the {len(names)} genes of the reference, such as {missing[0]!r}; "
            "add them (with zeros if they were not detected), or pass use_rep."
        )
    return adata[:, names]


def _check_graph(adata_ref: AnnData, neighbors_key: str, reference: Any, metric: str) -> None:
    """Raise ValueError unless the graph has the distances of the features that it is said to be computed from."""
    graph = edge_distances(adata_ref, neighbors_key).tocsr()
    rows = np.arange(0, graph.shape[0], -(-graph.shape[0] // _CHECKED))
    edges = graph[rows].tocoo()
    all_distances = pairwise_distances(reference[rows], reference, metric=metric)
    expected = all_distances[edges.row, edges.col]
    if not np.abs(edges.data - expected).max(initial=0) <= _GRAPH_TOLERANCE * expected.max(initial=0):
        raise ValueError(
            f"the graph of neighbors_key={neighbors_key!r} does not have the {metric} distances of the cells, so that "
            "new cells cannot be added to it; compute the map from use_rep instead."
        )


def _predicted(reference: Any, labels: Any, X: Any, metric: str) -> Any:
    """Return the most frequent label among the nearest cells of the reference, as a categorical array."""
    known, categories = labels.notna().to_numpy(), labels.astype("category").array
    votes = KNeighborsClassifier(min(_N_VOTES, int(known.sum())), metric=metric)
    votes.fit(reference[known], categories.codes[known])
    return categories.from_codes(votes.predict(X), dtype=categories.dtype)
