"""Tools that compute results from annotated data and store them in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from laptsne.estimators.laptsne import LaptSNE
from laptsne.scanpy.ingest import ingest
from laptsne.scanpy.representation import chosen_representation, features, import_scanpy, model_bytes, path_distances

if TYPE_CHECKING:
    from anndata import AnnData

__all__ = ["ingest", "laptsne"]

_RESULTS = (
    *("perplexity", "n_clusters", "contraction", "kl_divergence", "objective", "n_iter"),
    *("eigenvalues", "data_eigenvalues"),
)


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

    By default, the map is computed from the principal components. With ``neighbors_key``, it is computed from the
    distances in scanpy's neighbour graph, which UMAP and Leiden use as well. A perplexity of 30 takes 90 neighbours per
    cell; those that a graph of 15 lacks are its nearest nodes by shortest path, at the length of the path.

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
    clusters_key : str, optional
        Column of ``adata.obs`` for the clusters of the map. By default, they are not stored.
    keep_model : bool, default=True
        Whether to store the fitted model, which :func:`laptsne.scanpy.tl.ingest` needs. It contains the features.
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
        ``adata.uns["laptsne"]`` (or ``adata.uns[key_added]``)
            ``params``, and from the fitted model ``perplexity``, ``n_clusters``, ``contraction``, ``kl_divergence``,
            ``objective``, ``n_iter``, ``eigenvalues`` and ``data_eigenvalues``; ``model`` is the model itself, which
            :func:`laptsne.scanpy.get_model` returns.
        ``adata.obs[clusters_key]``
            Clusters "0", "1", ... of the map, as a categorical column, missing for cells in no cluster.

    Examples
    --------
    >>> import scanpy as sc
    >>> import laptsne.scanpy as lsc
    >>> adata = sc.datasets.pbmc68k_reduced()
    >>> lsc.tl.laptsne(adata, clusters_key="clusters", max_iter=300)
    >>> adata.obsm["X_laptsne"].shape
    (700, 2)
    >>> adata.obs["clusters"].dtype.name
    'category'
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
    source = {"use_rep": use_rep, "n_pcs": n_pcs or None, "neighbors_key": neighbors_key}
    basis, name = ("X_laptsne", "laptsne") if key_added is None else (key_added, key_added)
    adata.obsm[basis] = model.embedding_
    adata.uns[name] = _results(model, source, keep_model=keep_model)
    added = f"added\n    {basis!r}, LaptSNE coordinates (adata.obsm)"
    if clusters_key is not None:
        import pandas as pd  # noqa: PLC0415  optional: scanpy depends on it

        names = [str(k) for k in range(model.labels_.max() + 1)]
        adata.obs[clusters_key] = pd.Categorical.from_codes(model.labels_, names)  # -1 is a missing value
        added += f"\n    {clusters_key!r}, clusters of the map (adata.obs)"
    added += f"\n    {name!r}, LaptSNE parameters and results (adata.uns)"
    sc.logging.info("    finished", time=start, deep=added)
    return adata if copy else None


def _results(model: LaptSNE, source: dict[str, Any], *, keep_model: bool) -> dict[str, Any]:
    # h5ad files cannot hold functions, other objects or None.
    settings = model.get_params() | source
    params = {key: value for key, value in settings.items() if isinstance(value, str | int | float | np.number)}
    results = {"params": params} | {result: getattr(model, f"{result}_") for result in _RESULTS}
    content = model_bytes(model) if keep_model else None
    return results if content is None else results | {"model": content}
