"""Tools that compute results from annotated data and store them in it."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils import gen_batches

from laptsne._runtime.threads import Workers
from laptsne._runtime.warn import warn
from laptsne.estimators.laptsne import LaptSNE
from laptsne.graph.affinity import auto_perplexity
from laptsne.graph.neighbors import nearest_by_path

if TYPE_CHECKING:
    from anndata import AnnData

__all__ = ["ingest", "laptsne"]

_RESULTS = (
    *("perplexity", "n_clusters", "contraction", "kl_divergence", "objective", "n_iter"),
    *("eigenvalues", "data_eigenvalues"),
)
_N_VOTES = 15  # neighbours whose most frequent label is that of a new cell
_CHECKED = 500  # cells of the reference on which the projection or the graph is checked
_PCA_TOLERANCE = 0.07  # RMS error of the projection, relative to the spread; randomised solvers leave 0.04
_GRAPH_TOLERANCE = 0.01  # largest error of a distance, relative to the longest
_BATCH = 1000  # new cells whose distances to all cells of the reference are computed at once


def laptsne(
    adata: AnnData,
    *,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    neighbors_key: str | None = None,
    key_added: str | None = None,
    clusters_key: str | None = None,
    keep_model: bool = True,
    random_state: Any = 0,
    n_jobs: int | None = None,
    copy: bool = False,
    **parameters: Any,
) -> AnnData | None:
    """Compute a map of the cells with :class:`laptsne.LaptSNE`.

    Parameters
    ----------
    adata : AnnData
    use_rep : str, optional
        A key of ``adata.obsm``, or "X". By default chosen as in scanpy: ``X`` if it has at most 50 columns, otherwise
        ``X_pca``, which is computed with a warning if it is missing.
    n_pcs : int, optional
        Number of leading columns of ``adata.obsm[use_rep]`` to use. All by default; 0 means ``use_rep="X"``.
    neighbors_key : str, optional
        Key of ``adata.uns`` at which ``scanpy.pp.neighbors`` stored its graph, usually "neighbors", whose distances are
        used. A perplexity of 30 takes 90 neighbours per cell; a graph of 15 is extended by its shortest paths.
    key_added : str, optional
        Key under which all results are stored, instead of those below.
    clusters_key : str, optional
        Column of ``adata.obs`` for the clusters "0", "1", ..., missing for cells in none. By default, not stored.
    keep_model : bool, default=True
        Whether to store the fitted model, which :func:`laptsne.scanpy.tl.ingest` needs. It contains the features.
    copy : bool, default=False
        Whether to return a modified copy and leave `adata` unchanged.
    random_state, n_jobs, **parameters
        Parameters of :class:`laptsne.LaptSNE`.

    Returns
    -------
    adata : AnnData or None
        The copy if ``copy=True``. ``adata.obsm["X_laptsne"]`` is the map. ``adata.uns["laptsne"]`` has ``params``, and
        from the fitted model ``perplexity``, ``n_clusters``, ``contraction``, ``kl_divergence``, ``objective``,
        ``n_iter``, ``eigenvalues`` and ``data_eigenvalues``; its ``model`` is read by :func:`laptsne.scanpy.get_model`.

    Examples
    --------
    >>> import scanpy as sc
    >>> import laptsne.scanpy as lsc
    >>> adata = sc.datasets.pbmc68k_reduced()
    >>> lsc.tl.laptsne(adata, clusters_key="clusters", max_iter=300)
    """
    sc = import_scanpy()
    start = sc.logging.info("computing LaptSNE")
    adata = adata.copy() if copy else adata
    if neighbors_key is None:
        use_rep = chosen_representation(adata, use_rep, n_pcs)
        X = features(adata, use_rep, n_pcs or None)
    else:
        X = path_distances(adata, neighbors_key, n_jobs, parameters | {"use_rep": use_rep, "n_pcs": n_pcs})
        parameters["metric"] = "precomputed"
    parameters.setdefault("verbose", int(sc.settings.verbosity) > 3)
    model = LaptSNE(random_state=random_state, n_jobs=n_jobs, **parameters).fit(X)
    basis, name = ("X_laptsne", "laptsne") if key_added is None else (key_added, key_added)
    adata.obsm[basis] = model.embedding_
    # h5ad files cannot hold functions, other objects or None.
    settings = model.get_params() | {"use_rep": use_rep, "n_pcs": n_pcs or None, "neighbors_key": neighbors_key}
    params = {key: value for key, value in settings.items() if isinstance(value, str | int | float | np.number)}
    results = {"params": params} | {result: getattr(model, f"{result}_") for result in _RESULTS}
    adata.uns[name] = results | (model_bytes(model) if keep_model else {})
    added = [f"{basis!r}, LaptSNE coordinates (adata.obsm)", f"{name!r}, LaptSNE parameters and results (adata.uns)"]
    if clusters_key is not None:
        import pandas as pd  # noqa: PLC0415  optional: scanpy depends on it

        names = [str(k) for k in range(model.labels_.max() + 1)]
        adata.obs[clusters_key] = pd.Categorical.from_codes(model.labels_, names)  # -1 is a missing value
        added.append(f"{clusters_key!r}, clusters of the map (adata.obs)")
    sc.logging.info("    finished", time=start, deep="\n    ".join(["added", *added]))
    return adata if copy else None


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

    Parameters
    ----------
    adata : AnnData
        The new cells, preprocessed like the reference, on whose principal components they are projected.
    adata_ref : AnnData
        The reference, with a map from :func:`laptsne.scanpy.tl.laptsne`.
    obs : str or iterable of str, default=()
        Columns of ``adata_ref.obs`` to predict by the most frequent value among the 15 nearest cells of the reference.
    key : str, default="laptsne"
        Key of ``adata_ref.uns``, if the map was computed with ``key_added``.
    use_rep : str, optional
        Key of ``adata.obsm`` with the features of the new cells, in the space of the reference. By default, the key
        that the map was computed from.
    copy : bool, default=False
        As in :func:`laptsne`.

    Returns
    -------
    adata : AnnData or None
        The copy if ``copy=True``. ``adata.obsm["X_laptsne"]``, or the key of the reference, has the positions of the
        new cells in the map of the reference, and ``adata.obs`` the columns named by `obs`.

    Examples
    --------
    >>> import scanpy as sc
    >>> import laptsne.scanpy as lsc
    >>> adata = sc.datasets.pbmc68k_reduced()
    >>> reference, new = adata[:600].copy(), adata[600:].copy()
    >>> lsc.tl.laptsne(reference, max_iter=300)
    >>> lsc.tl.ingest(new, reference, obs="bulk_labels")
    """
    sc = import_scanpy()
    start = sc.logging.info("mapping new cells")
    model = get_model(adata_ref, key)
    if not hasattr(model, "transform"):
        raise ValueError(f"the model of adata_ref.uns[{key!r}] cannot map new cells; compute it with other parameters.")
    columns = [obs] if isinstance(obs, str) else list(obs)
    for column in set(columns) - set(adata_ref.obs):
        raise ValueError(f"obs={column!r} is not a column of adata_ref.obs, which has {list(adata_ref.obs)}.")
    adata = adata.copy() if copy else adata
    params = adata_ref.uns[key]["params"]
    neighbors_key = params.get("neighbors_key")
    name, n_pcs, metric = params.get("use_rep"), params.get("n_pcs"), params.get("metric", "euclidean")
    if neighbors_key is not None:  # the features from which scanpy computed its graph
        given = adata_ref.uns[neighbors_key].get("params", {})
        n_pcs, metric = given.get("n_pcs"), str(given.get("metric", "euclidean"))
        name = chosen_representation(adata_ref, given.get("use_rep"), n_pcs)
        n_pcs = None if n_pcs is None else int(np.asarray(n_pcs))
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
        labels = adata_ref.obs[column]
        known, categories = labels.notna().to_numpy(), labels.astype("category").array
        votes = KNeighborsClassifier(min(_N_VOTES, int(known.sum())), metric=metric)
        votes.fit(reference[known], categories.codes[known])
        adata.obs[column] = categories.from_codes(votes.predict(X), dtype=categories.dtype)
    sc.logging.info("    finished", time=start, deep=f"added\n    {basis!r}, LaptSNE coordinates (adata.obsm)")
    return adata if copy else None


def _new_features(adata: AnnData, adata_ref: AnnData, name: str, n_pcs: int | None, use_rep: str | None) -> Any:
    """Return the features of new cells; their principal components are those on the loadings of the reference."""
    if use_rep is None and name == "X":
        return _genes(adata, adata_ref.var_names).X
    if use_rep is not None or name != "X_pca" or "PCs" not in adata_ref.varm:
        if use_rep is None and name not in adata.obsm:
            raise ValueError(
                f"the map was computed from adata_ref.obsm[{name!r}], which the new cells lack; compute it for them in "
                "the space of the reference, or pass another key of adata.obsm as use_rep."
            )
        return features(adata, use_rep or name, n_pcs)
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
    return (_genes(adata, genes).X @ loadings + shift)[:, :n_pcs]


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
    expected = pairwise_distances(reference[rows], reference, metric=metric)[edges.row, edges.col]
    if not np.abs(edges.data - expected).max(initial=0) <= _GRAPH_TOLERANCE * expected.max(initial=0):
        raise ValueError(
            f"the graph of neighbors_key={neighbors_key!r} does not have the {metric} distances of the cells, so that "
            "new cells cannot be added to it; compute the map from use_rep instead."
        )


def import_scanpy() -> Any:
    """Return the module scanpy, which is optional and slow to import."""
    try:
        return importlib.import_module("scanpy")
    except ModuleNotFoundError as error:
        if error.name == "scanpy":
            error.msg = 'laptsne.scanpy requires scanpy; install it with pip install "laptsne[scanpy]".'
        raise


def chosen_representation(adata: AnnData, use_rep: str | None, n_pcs: int | None) -> str:
    """Return the name of the features: as in scanpy, "X" if it has few columns, otherwise "X_pca"."""
    if use_rep is not None:
        return use_rep
    return "X" if n_pcs == 0 or adata.n_vars <= import_scanpy().settings.N_PCS else "X_pca"


def features(adata: AnnData, use_rep: str, n_pcs: int | None) -> Any:
    """Return the features of the cells; principal components are computed with a warning if they are missing."""
    if use_rep == "X_pca" and use_rep not in adata.obsm and adata.X is not None:
        warn(
            f"adata has {adata.n_vars} variables but no 'X_pca': computing it with scanpy.pp.pca. "
            "Run scanpy.pp.pca first to silence this warning, or pass use_rep='X' to use all variables.",
        )
        import_scanpy().pp.pca(adata, n_comps=n_pcs)
    if use_rep == "X" and "X" not in adata.obsm:
        if adata.X is None:
            raise ValueError("adata.X is None; pass a key of adata.obsm as use_rep.")
        if adata.isbacked:
            raise ValueError("adata.X is backed by a file; load it with adata.to_memory(), or run scanpy.pp.pca first.")
        return adata.X
    if use_rep not in adata.obsm:
        raise ValueError(f"use_rep={use_rep!r} must be 'X' or a key of adata.obsm, which has {sorted(adata.obsm)}.")
    X = adata.obsm[use_rep]
    if n_pcs is not None and n_pcs > X.shape[1]:
        raise ValueError(
            f"n_pcs={n_pcs} exceeds the {X.shape[1]} columns of adata.obsm[{use_rep!r}]; lower it, or compute more "
            "with scanpy.pp.pca(adata, n_comps=...)."
        )
    return X if n_pcs is None else X[:, :n_pcs]


def path_distances(adata: AnnData, neighbors_key: str, n_jobs: int | None, parameters: dict[str, Any]) -> Any:
    """Return the distances of as many neighbours as the perplexity takes, along the edges of scanpy's graph."""
    for name in ("use_rep", "n_pcs", "metric", "metric_params"):  # the graph stands for them
        if parameters.get(name) is not None:
            raise ValueError(
                f"{name}={parameters[name]!r} cannot be combined with neighbors_key={neighbors_key!r}, which supplies "
                "the graph; omit one of them."
            )
    graph = edge_distances(adata, neighbors_key)
    perplexity, wanted = (parameters.get(name, "auto") for name in ("perplexity", "n_neighbors"))
    if isinstance(wanted, str):
        wanted = int(3 * (auto_perplexity(adata.n_obs) if isinstance(perplexity, str) else perplexity))
    with Workers(n_jobs) as workers:
        return nearest_by_path(graph, max(wanted, 1), workers)


def edge_distances(adata: AnnData, neighbors_key: str) -> Any:
    """Return the distances of the neighbours that scanpy found."""
    if neighbors_key not in adata.uns:
        raise ValueError(f"neighbors_key={neighbors_key!r} is not in adata.uns; run scanpy.pp.neighbors(adata) first.")
    key = adata.uns[neighbors_key].get("distances_key", "distances")
    if key not in adata.obsp:
        raise ValueError(
            f"neighbors_key={neighbors_key!r} refers to adata.obsp[{key!r}], which is missing; "
            "run scanpy.pp.neighbors(adata) again."
        )
    return adata.obsp[key]


def model_bytes(model: LaptSNE) -> dict[str, Any]:
    """Return the content of the model's file, which h5ad can hold, or nothing, with a warning, if it has none."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        try:
            model.save(path)
        except ValueError as error:
            warn(f"the model is not kept, so that new cells cannot be added: {error}")
            return {}
        return {"model": np.frombuffer(path.read_bytes(), np.uint8)}


def get_model(adata: AnnData, key: str = "laptsne") -> LaptSNE:
    """Return the fitted model of a map from :func:`laptsne.scanpy.tl.laptsne`.

    Parameters
    ----------
    adata : AnnData
    key : str, default="laptsne"
        Key of ``adata.uns``, if the map was computed with ``key_added``.
    """
    if key not in adata.uns:
        raise ValueError(f"key={key!r} is not in adata.uns; run laptsne.scanpy.tl.laptsne(adata) first.")
    content = adata.uns[key].get("model")
    if content is None:
        raise ValueError(
            f"adata.uns[{key!r}] has no model; run laptsne.scanpy.tl.laptsne(adata) again with keep_model=True."
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        path.write_bytes(np.asarray(content, np.uint8).tobytes())
        return LaptSNE.load(path)
