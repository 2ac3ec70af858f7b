"""Tools that compute results from annotated data and store them in it."""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from laptsne.estimator import LaptSNE

if TYPE_CHECKING:
    from anndata import AnnData

_FEATURE_PARAMETERS = ("metric", "metric_params", "n_neighbors", "perplexity")  # not used with a precomputed graph
_RESULTS = ("n_clusters", "contraction", "kl_divergence", "objective", "n_iter", "eigenvalues", "data_eigenvalues")


def import_scanpy() -> Any:
    """Return the module scanpy, which is optional and slow to import."""
    try:
        return importlib.import_module("scanpy")
    except ModuleNotFoundError as error:
        if error.name != "scanpy":
            raise
        message = 'laptsne.scanpy requires scanpy; install it with pip install "laptsne[scanpy]".'
        raise ModuleNotFoundError(message, name="scanpy") from error


def laptsne(
    adata: AnnData,
    *,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    neighbors_key: str | None = None,
    key_added: str | None = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
    copy: bool = False,
    **parameters: Any,
) -> AnnData | None:
    """Compute a map of the cells with :class:`laptsne.LaptSNE`.

    By default, the map is computed from the principal components. With ``neighbors_key``, the edge weights of scanpy's
    neighbour graph (``connectivities``, which UMAP and Leiden use as well) are the affinities, and no neighbours are
    searched for. The distances of that graph are not used: scanpy's default of 15 neighbours allows only a perplexity
    of 5, and maps of the distances keep fewer neighbours than maps of the weights.

    Parameters
    ----------
    adata : AnnData
        Annotated data, one row per cell.
    use_rep : str, optional
        A key of ``adata.obsm``, or "X". By default chosen as in scanpy: ``X`` if it has at most 50 columns, otherwise
        ``X_pca``, which is computed with a warning if it is missing.
    n_pcs : int, optional
        Number of leading columns of ``adata.obsm[use_rep]`` to use. All by default; 0 means ``use_rep="X"``.
    neighbors_key : str, optional
        Key of ``adata.uns`` at which ``scanpy.pp.neighbors`` stored its graph, usually "neighbors".
    key_added : str, optional
        Key under which all results are stored, instead of those below.
    random_state : int, RandomState instance or None, default=0
        Seed.
    n_jobs : int, optional
        Number of threads. By default, all cores available to the process. It does not affect the result.
    copy : bool, default=False
        Whether to return a modified copy and leave `adata` unchanged.
    **parameters
        Other parameters of :class:`laptsne.LaptSNE`.

    Returns
    -------
    adata : AnnData or None
        The copy if ``copy=True``. The following fields are set:

        ``adata.obsm["X_laptsne"]`` (or ``adata.obsm[key_added]``)
            The map.
        ``adata.obs["laptsne"]`` (or ``adata.obs[key_added]``)
            Clusters "0", "1", ... of the map, as a categorical column.
        ``adata.uns["laptsne"]`` (or ``adata.uns[key_added]``)
            ``params``, and from the fitted model ``perplexity`` (without ``neighbors_key``), ``n_clusters``,
            ``contraction``, ``kl_divergence``, ``objective``, ``n_iter``, ``eigenvalues`` and ``data_eigenvalues``.

    Examples
    --------
    >>> import scanpy as sc
    >>> import laptsne.scanpy as lsc
    >>> adata = sc.datasets.pbmc68k_reduced()
    >>> lsc.tl.laptsne(adata, max_iter=300)
    >>> adata.obsm["X_laptsne"].shape
    (700, 2)
    >>> adata.obs["laptsne"].dtype.name
    'category'
    """
    sc = import_scanpy()
    start = sc.logging.info("computing LaptSNE")
    adata = adata.copy() if copy else adata
    if neighbors_key is None:
        X = _representation(sc, adata, use_rep, n_pcs)
    else:
        X = _weights(adata, neighbors_key, use_rep=use_rep, n_pcs=n_pcs, **parameters)
        parameters["metric"] = "affinities"
    parameters.setdefault("verbose", int(sc.settings.verbosity) > 3)
    model = LaptSNE(random_state=random_state, n_jobs=n_jobs, **parameters).fit(X)
    source = {"use_rep": use_rep, "n_pcs": n_pcs, "neighbors_key": neighbors_key}
    obsm, name = ("X_laptsne", "laptsne") if key_added is None else (key_added, key_added)
    _store(adata, model, source, obsm, name)
    added = (
        f"added\n    {obsm!r}, LaptSNE coordinates (adata.obsm)\n    {name!r}, clusters of the map (adata.obs)\n"
        f"    {name!r}, LaptSNE parameters and results (adata.uns)"
    )
    sc.logging.info("    finished", time=start, deep=added)
    return adata if copy else None


def _representation(sc: Any, adata: AnnData, use_rep: str | None, n_pcs: int | None) -> Any:
    """Return the features of the cells, chosen as in scanpy."""
    if use_rep is None:
        small = n_pcs == 0 or adata.n_vars <= sc.settings.N_PCS
        use_rep = "X" if small else "X_pca"
        if not small and use_rep not in adata.obsm:
            warnings.warn(
                f"adata has {adata.n_vars} variables but no 'X_pca': computing it with scanpy.pp.pca. "
                "Run scanpy.pp.pca first to silence this warning, or pass use_rep='X' to use all variables.",
                UserWarning,
                stacklevel=3,
            )
            sc.pp.pca(adata, n_comps=n_pcs)
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


def _weights(adata: AnnData, neighbors_key: str, **others: Any) -> Any:
    """Return the edge weights of scanpy's neighbour graph."""
    for name in ("use_rep", "n_pcs", *_FEATURE_PARAMETERS):
        if others.get(name) is not None:
            raise ValueError(
                f"{name}={others[name]!r} cannot be combined with neighbors_key={neighbors_key!r}, which supplies the "
                "graph; omit one of them."
            )
    if neighbors_key not in adata.uns:
        raise ValueError(f"neighbors_key={neighbors_key!r} is not in adata.uns; run scanpy.pp.neighbors(adata) first.")
    key = adata.uns[neighbors_key].get("connectivities_key", "connectivities")
    if key not in adata.obsp:
        raise ValueError(
            f"neighbors_key={neighbors_key!r} refers to adata.obsp[{key!r}], which is missing; "
            "run scanpy.pp.neighbors(adata) again."
        )
    return adata.obsp[key]


def _store(adata: AnnData, model: LaptSNE, source: dict[str, Any], obsm: str, name: str) -> None:
    settings = source | model.get_params()
    # h5ad files cannot hold functions, other objects or None.
    params = {key: value for key, value in settings.items() if isinstance(value, str | int | float | np.number)}
    results: dict[str, Any] = {} if source["neighbors_key"] else {"perplexity": model.perplexity_}
    results |= {result: getattr(model, f"{result}_") for result in _RESULTS}
    adata.obsm[obsm] = model.embedding_
    adata.obs[name] = model.labels_
    # Categories of numbers first, so that "2" is sorted before "10".
    adata.obs[name] = adata.obs[name].astype("category").cat.rename_categories(str)
    adata.uns[name] = {"params": params} | results
