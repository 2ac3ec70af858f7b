"""Tools that compute results from annotated data and store them in it."""

import tempfile
from collections.abc import Iterable
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scanpy as sc
from anndata import AnnData
from sklearn.neighbors import KNeighborsClassifier

from laptsne._runtime.threads import Workers
from laptsne._runtime.warn import warn
from laptsne.estimators.laptsne import LaptSNE, LapUMAP
from laptsne.graph.affinity import auto_perplexity
from laptsne.graph.paths import nearest_by_path

__all__ = ["ingest", "laptsne", "lapumap"]

_RESULTS = ("perplexity", "n_clusters", "contraction", "kl_divergence", "cross_entropy", "objective", "n_iter")
_EIGENVALUES = ("eigenvalues", "data_eigenvalues")
_PLACES = ("use_rep", "n_pcs", "key_added", "clusters_key")
_COMPONENTS = {"X_pca": "PCs", "pca": "pca"}  # keys of scanpy.pp.pca in obsm and varm, the second of its preset of 2.0
_N_VOTES = 15  # neighbours whose most frequent label is that of a new cell
_CHECKED = 500  # cells of the reference on which the projection is checked
_PCA_TOLERANCE = 0.07  # RMS error of the projection, relative to the spread; randomised solvers leave 0.04


def laptsne(
    adata: AnnData,
    *,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    neighbors_key: str | None = None,
    key_added: str | None = None,
    clusters_key: str | None = None,
    keep_model: bool = True,
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
        the principal components, which are computed with a warning if they are missing.
    n_pcs : int, optional
        Number of leading columns of ``adata.obsm[use_rep]`` to use. All by default; 0 means ``use_rep="X"``.
    neighbors_key : str, optional
        Key of ``adata.uns`` at which ``scanpy.pp.neighbors`` stored its graph, usually "neighbors", whose distances are
        used. A perplexity of 30 takes 90 neighbours per cell; a graph of 15 is extended by its shortest paths.
    key_added : str, optional
        Key under which all results are stored, instead of those below.
    clusters_key : str, optional
        Column of ``adata.obs`` for the clusters "0", "1", ..., missing for cells in none. Coarser groups of them are
        stored as ``<clusters_key>_layer1``, ``<clusters_key>_layer2``, and so on, down to two. By default, not stored.
    keep_model : bool, default=True
        Whether to store the fitted model, which :func:`laptsne.scanpy.tl.ingest` needs. It contains the features.
    copy : bool, default=False
        Whether to return a modified copy and leave `adata` unchanged.
    n_jobs, **parameters
        Parameters of :class:`laptsne.LaptSNE`. ``random_state`` is 0 by default; ``rng``, a seed or a generator of
        NumPy, can be given instead, as in scanpy 1.13.

    Returns
    -------
    adata : AnnData or None
        The copy if ``copy=True``. ``adata.obsm["X_laptsne"]``, or "laptsne" with scanpy's preset of 2.0, is the map.
        ``adata.uns["laptsne"]`` has ``params``, scalar attributes and eigenvalues of the model, the ``parent``,
        ``size`` and ``chance`` of the nodes of its ``cluster_tree``, and the model, for
        :func:`laptsne.scanpy.get_model`.

    Examples
    --------
    >>> import scanpy as sc
    >>> import laptsne.scanpy as lsc
    >>> adata = sc.datasets.pbmc68k_reduced()
    >>> lsc.tl.laptsne(adata, clusters_key="clusters", max_iter=300)
    """
    options = {"use_rep": use_rep, "n_pcs": n_pcs, "key_added": key_added, "clusters_key": clusters_key, "copy": copy}
    return _mapped(LaptSNE, adata, neighbors_key, keep_model=keep_model, n_jobs=n_jobs, **options, **parameters)


def lapumap(adata: AnnData, *, neighbors_key: str | None = "neighbors", **settings: Any) -> AnnData | None:
    """Compute a map of the graph of ``scanpy.pp.neighbors`` with :class:`laptsne.LapUMAP`, as ``scanpy.tl.umap`` does.

    Parameters
    ----------
    adata : AnnData
    neighbors_key : str or None, default="neighbors"
        Key of ``adata.uns`` at which ``scanpy.pp.neighbors`` stored its graph, whose connectivities are embedded. With
        None, LapUMAP finds the neighbours of the features, and :func:`laptsne.scanpy.tl.ingest` can add cells.
    **settings
        Other arguments of :func:`laptsne`, and parameters of LapUMAP. ``use_rep`` and ``n_pcs`` need
        ``neighbors_key=None``.

    Returns
    -------
    adata : AnnData or None
        As for :func:`laptsne`, with "lapumap" in place of "laptsne".
    """
    return _mapped(LapUMAP, adata, neighbors_key, **settings)


def _mapped(
    estimator: type[LaptSNE | LapUMAP], adata: AnnData, neighbors_key: str | None, **settings: Any
) -> AnnData | None:
    """Fit an estimator to features or to scanpy's graph, and store the results; see :func:`laptsne`."""
    use_rep, n_pcs, key_added, clusters_key = (settings.pop(name, None) for name in _PLACES)
    copy, keep_model = settings.pop("copy", False), settings.pop("keep_model", True)
    adata = adata.copy() if copy else adata
    if neighbors_key is None:
        use_rep = _representation(adata, use_rep, n_pcs)
        X = _features(adata, use_rep, n_pcs or None)
    else:
        of_tsne, given = estimator is LaptSNE, settings | {"use_rep": use_rep, "n_pcs": n_pcs}
        X = _graph(adata, neighbors_key, "distances" if of_tsne else "connectivities", given)
        X = _path_distances(X, settings) if of_tsne else X
        settings["metric"] = "precomputed" if of_tsne else "affinities"
    model = estimator(**_seeded(settings)).fit(X)
    name, preset = estimator.__name__.lower(), getattr(sc.settings, "preset", None)  # from scanpy 1.13 on
    if key_added is None and getattr(getattr(preset, "umap", None), "key_added", None) is not None:
        key_added = name  # without "X_"
    basis, key = (f"X_{name}", name) if key_added is None else (key_added, key_added)
    adata.obsm[basis] = model.embedding_
    # h5ad files cannot hold functions, other objects or None.
    params = model.get_params() | {"use_rep": use_rep, "n_pcs": n_pcs or None, "neighbors_key": neighbors_key}
    params = {key: value for key, value in params.items() if isinstance(value, str | int | float | np.number)}
    found = {result: getattr(model, f"{result}_", None) for result in (*_RESULTS, *_EIGENVALUES)}
    results = {"params": params} | {result: value for result, value in found.items() if value is not None}
    results["cluster_tree"] = dict(vars(model.cluster_tree_))
    adata.uns[key] = results
    if keep_model:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model")
            try:
                model.save(path)
                results["model"] = np.frombuffer(path.read_bytes(), np.uint8)  # which h5ad can hold
            except ValueError as error:
                warn(f"the model is not kept, so that new cells cannot be added: {error}")
    if clusters_key is not None:
        for layer, labels in enumerate(model.cluster_layers_):
            column, names = f"{clusters_key}_layer{layer}" if layer else clusters_key, range(labels.max() + 1)
            adata.obs[column] = pd.Categorical.from_codes(labels, [str(k) for k in names])  # -1 is a missing value
    return adata if copy else None


def _seeded(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters of an estimator, with scanpy's default seed and verbosity, and ``rng`` as a random state."""
    parameters = {"verbose": int(sc.settings.verbosity) > 3} | parameters
    if "rng" not in parameters:
        return {"random_state": 0} | parameters
    if "random_state" in parameters:
        raise TypeError("rng and random_state are both given; omit one of them.")
    rng = parameters.pop("rng")
    seed = rng if isinstance(rng, Integral) or rng is None else int(np.random.default_rng(rng).integers(2**31))
    return parameters | {"random_state": seed}


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
        The reference, with a map of features from :func:`laptsne.scanpy.tl.laptsne`, not of a graph.
    obs : str or iterable of str, default=()
        Columns of ``adata_ref.obs`` to predict by the most frequent value among the 15 nearest cells of the reference.
    key : str, default="laptsne"
        Key of ``adata_ref.uns``, if the map was computed with ``key_added``.
    use_rep : str, optional
        Key of ``adata.obsm`` with the features of the new cells. By default, the key that the map was computed from.
    copy : bool, default=False
        As in :func:`laptsne`.

    Returns
    -------
    adata : AnnData or None
        The copy if ``copy=True``. ``adata.obsm["X_laptsne"]``, or the key of the reference, has the positions of the
        new cells, and ``adata.obs`` the columns named by `obs`.

    Examples
    --------
    >>> import scanpy as sc
    >>> import laptsne.scanpy as lsc
    >>> adata = sc.datasets.pbmc68k_reduced()
    >>> reference, new = adata[:600].copy(), adata[600:].copy()
    >>> lsc.tl.laptsne(reference, max_iter=300)
    >>> lsc.tl.ingest(new, reference, obs="bulk_labels")
    """
    model = get_model(adata_ref, key)
    params = adata_ref.uns[key]["params"]
    if "neighbors_key" in params or not hasattr(model, "transform"):
        raise ValueError(
            f"the map of adata_ref.uns[{key!r}] takes no new cells; compute it from features, without neighbors_key."
        )
    columns = [obs] if isinstance(obs, str) else list(obs)
    for column in set(columns) - set(adata_ref.obs):
        raise ValueError(f"obs={column!r} is not a column of adata_ref.obs, which has {list(adata_ref.obs)}.")
    adata = adata.copy() if copy else adata
    name, n_pcs = params.get("use_rep"), params.get("n_pcs")
    reference = _features(adata_ref, name, n_pcs)
    X = _new_features(adata, adata_ref, name, n_pcs, use_rep)
    basis = f"X_{key}" if f"X_{key}" in adata_ref.obsm else key
    adata.obsm[basis] = model.transform(X)
    for column in columns:
        labels = adata_ref.obs[column]
        known, categories = labels.notna().to_numpy(), labels.astype("category").array
        votes = KNeighborsClassifier(min(_N_VOTES, int(known.sum())), metric=params.get("metric", "euclidean"))
        votes.fit(reference[known], categories.codes[known])
        adata.obs[column] = categories.from_codes(votes.predict(X), dtype=categories.dtype)
    return adata if copy else None


def _new_features(adata: AnnData, adata_ref: AnnData, name: str, n_pcs: int | None, use_rep: str | None) -> Any:
    """Return the features of new cells; their principal components are those on the loadings of the reference."""
    if use_rep is None and name == "X":
        return _genes(adata, adata_ref.var_names).X
    loadings_key = _COMPONENTS.get(name or "")
    if use_rep is not None or loadings_key not in adata_ref.varm:
        if use_rep is None and name not in adata.obsm:
            raise ValueError(
                f"the map was computed from adata_ref.obsm[{name!r}], which the new cells lack; compute it for them in "
                "the space of the reference, or pass another key of adata.obsm as use_rep."
            )
        return _features(adata, use_rep or name, n_pcs)
    loadings = np.nan_to_num(adata_ref.varm[loadings_key])
    used = (loadings != 0).any(axis=1)  # scanpy stores zeros, or NaN, for genes that are not highly variable
    genes, loadings = adata_ref.var_names[used], loadings[used]
    sample = slice(None, None, -(-adata_ref.n_obs // _CHECKED))
    known = np.asarray(adata_ref.obsm[name])[sample]
    residuals = known - _genes(adata_ref, genes).X[sample] @ loadings
    shift = residuals.mean(axis=0)  # the components of the mean of the cells
    if not np.linalg.norm(residuals - shift) <= _PCA_TOLERANCE * np.linalg.norm(known - known.mean(axis=0)):
        raise ValueError(
            f"adata_ref.X is not what adata_ref.obsm[{name!r}] was computed from, so that new cells cannot be "
            "projected; restore it, or compute the components of the new cells and pass their key as use_rep."
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


def _representation(adata: AnnData, use_rep: str | None, n_pcs: int | None) -> str:
    """Return the key of the features, chosen as in scanpy; components are computed with a warning if missing."""
    if use_rep is not None or n_pcs == 0 or adata.n_vars <= sc.settings.N_PCS:
        return use_rep or "X"
    found = next((key for key in _COMPONENTS if key in adata.obsm), None)
    if found is None and adata.X is not None:
        warn(
            f"adata has {adata.n_vars} variables but no 'X_pca': computing it with scanpy.pp.pca. "
            "Run scanpy.pp.pca first to silence this warning, or pass use_rep='X' to use all variables.",
        )
        sc.pp.pca(adata, n_comps=n_pcs)
        found = next(key for key in _COMPONENTS if key in adata.obsm)
    return found or "X_pca"


def _features(adata: AnnData, use_rep: str, n_pcs: int | None) -> Any:
    """Return the features of the cells."""
    if use_rep == "X" and "X" not in adata.obsm:
        if adata.X is None or adata.isbacked:
            raise ValueError("adata.X is not in memory; load it with adata.to_memory(), or pass a key of adata.obsm.")
        return adata.X
    if use_rep not in adata.obsm:
        raise ValueError(f"use_rep={use_rep!r} must be 'X' or a key of adata.obsm, which has {sorted(adata.obsm)}.")
    X = adata.obsm[use_rep]
    if n_pcs is not None and n_pcs > X.shape[1]:
        raise ValueError(f"n_pcs={n_pcs} exceeds the {X.shape[1]} columns of adata.obsm[{use_rep!r}]; lower it.")
    return X if n_pcs is None else X[:, :n_pcs]


def _graph(adata: AnnData, neighbors_key: str, kind: str, parameters: dict[str, Any]) -> Any:
    """Return the "distances" or the "connectivities" of scanpy's graph."""
    for name in ("use_rep", "n_pcs", "metric", "metric_params"):  # the graph stands for them
        if parameters.get(name) is not None:
            raise ValueError(
                f"{name}={parameters[name]!r} cannot be combined with neighbors_key={neighbors_key!r}, which supplies "
                "the graph; omit one of them."
            )
    key = adata.uns.get(neighbors_key, {}).get(f"{kind}_key", kind)
    if neighbors_key not in adata.uns or key not in adata.obsp:
        raise ValueError(
            f"neighbors_key={neighbors_key!r} is not in adata.uns, or adata.obsp[{key!r}] is missing; "
            "run scanpy.pp.neighbors(adata) first."
        )
    return adata.obsp[key]


def _path_distances(edges: Any, parameters: dict[str, Any]) -> Any:
    """Return the distances of as many neighbours as the perplexity takes, along the edges of scanpy's graph."""
    perplexity, wanted = (parameters.get(name, "auto") for name in ("perplexity", "n_neighbors"))
    if isinstance(wanted, str):
        wanted = int(3 * (auto_perplexity(edges.shape[0]) if isinstance(perplexity, str) else perplexity))
    with Workers(parameters.get("n_jobs")) as workers:
        return nearest_by_path(edges, max(wanted, 1), workers)


def get_model(adata: AnnData, key: str = "laptsne") -> LaptSNE:
    """Return the fitted model of a map from :func:`laptsne.scanpy.tl.laptsne`, given its key of ``adata.uns``."""
    content = adata.uns.get(key, {}).get("model")
    if content is None:
        raise ValueError(f"adata.uns[{key!r}] has no model; run laptsne.scanpy.tl.laptsne(adata, keep_model=True).")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        path.write_bytes(np.asarray(content, np.uint8).tobytes())
        return LaptSNE.load(path)
