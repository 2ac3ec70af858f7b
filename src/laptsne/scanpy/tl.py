"""Tools: what is computed from annotated data and written into it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from laptsne.estimator import LaptSNE
from laptsne.scanpy.optional import scanpy

if TYPE_CHECKING:
    from anndata import AnnData

_OF_FEATURES = ("metric", "metric_params", "n_neighbors", "perplexity")  # without a meaning for a graph of weights
_RESULTS = ("n_clusters", "contraction", "kl_divergence", "objective", "n_iter", "eigenvalues", "data_eigenvalues")


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
    r"""Make a map of cells with :class:`laptsne.LaptSNE`.

    By default the map is made of the principal components. With ``neighbors_key`` it is made of the graph that
    ``scanpy.pp.neighbors`` computed, and no neighbours are searched for: the weights of its edges
    (``connectivities``, of which UMAP and Leiden are made as well) are the affinities. The distances in that graph
    are not used: at scanpy's 15 neighbours they allow a perplexity of 5 only, and maps of them keep fewer neighbours
    than maps of the weights.

    Parameters
    ----------
    adata : AnnData
        Annotated data, one row a cell.
    use_rep : str, optional
        A key of ``adata.obsm``, or "X". By default it is chosen as in scanpy: ``X`` where it has at most 50
        columns, otherwise ``X_pca``, which is computed with a warning where it is missing.
    n_pcs : int, optional
        Number of leading columns of the key of ``adata.obsm`` to use; all by default. 0 is ``use_rep="X"``.
    neighbors_key : str, optional
        A key of ``adata.uns`` that ``scanpy.pp.neighbors`` wrote, mostly "neighbors".
    key_added : str, optional
        Name of everything that is written, in place of those below.
    random_state : int, RandomState instance or None, default=0
        Seed.
    n_jobs : int, optional
        Number of threads; all cores that the process may use by default. It does not change the result.
    copy : bool, default=False
        Whether to return a changed copy and leave ``adata`` as it is.
    **parameters
        All other parameters of :class:`laptsne.LaptSNE`.

    Returns
    -------
    adata : AnnData or None
        The copy, where ``copy=True``. These are written:

        ``adata.obsm["X_laptsne"]`` (or ``adata.obsm[key_added]``)
            The map.
        ``adata.obs["laptsne"]`` (or ``adata.obs[key_added]``)
            Clusters "0", "1", ... read from the map, as a categorical column.
        ``adata.uns["laptsne"]`` (or ``adata.uns[key_added]``)
            ``params``, and of the fitted model ``perplexity`` (where there is one), ``n_clusters``, ``contraction``,
            ``kl_divergence``, ``objective``, ``n_iter``, ``eigenvalues`` and ``data_eigenvalues``.

    See Also
    --------
    laptsne.scanpy.pl.laptsne : Draw the map.

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
    sc = scanpy()
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
    _write(adata, model, source, obsm, name)
    added = (
        f"added\n    {obsm!r}, LaptSNE coordinates (adata.obsm)\n    {name!r}, clusters of the map (adata.obs)\n"
        f"    {name!r}, LaptSNE parameters and results (adata.uns)"
    )
    sc.logging.info("    finished", time=start, deep=added)
    return adata if copy else None


def _representation(sc: Any, adata: AnnData, use_rep: str | None, n_pcs: int | None) -> Any:
    """The features of the cells, chosen as scanpy chooses them."""
    if use_rep is None:
        small = n_pcs == 0 or adata.n_vars <= sc.settings.N_PCS
        use_rep = "X" if small else "X_pca"
        if not small and use_rep not in adata.obsm:
            _add_pca(sc, adata, n_pcs)
    if use_rep == "X" and "X" not in adata.obsm:
        return _matrix(adata)
    if use_rep not in adata.obsm:
        raise ValueError(
            f"use_rep={use_rep!r} is not a key of adata.obsm, which has {sorted(adata.obsm)}; or give 'X'."
        )
    X = adata.obsm[use_rep]
    if n_pcs is not None and n_pcs > X.shape[1]:
        raise ValueError(
            f"n_pcs={n_pcs} is more than the {X.shape[1]} columns of adata.obsm[{use_rep!r}]; lower it, or compute "
            "more, for instance with scanpy.pp.pca(adata, n_comps=...)."
        )
    return X if n_pcs is None else X[:, :n_pcs]


def _add_pca(sc: Any, adata: AnnData, n_pcs: int | None) -> None:
    warnings.warn(
        f"adata has no 'X_pca', and {adata.n_vars} variables: computing scanpy.pp.pca with its defaults. "
        "Run it first to silence this warning, or give use_rep='X' to make the map of all variables.",
        UserWarning,
        stacklevel=4,
    )
    sc.pp.pca(adata, n_comps=n_pcs)


def _matrix(adata: AnnData) -> Any:
    if adata.X is None:
        raise ValueError("adata.X is empty; give use_rep, a key of adata.obsm.")
    if adata.isbacked:
        raise ValueError("adata.X is on disk; use adata.to_memory(), or compute scanpy.pp.pca first.")
    return adata.X


def _weights(adata: AnnData, neighbors_key: str, **others: Any) -> Any:
    """The weights of the edges of scanpy's graph."""
    for name in ("use_rep", "n_pcs", *_OF_FEATURES):
        if others.get(name) is not None:
            raise ValueError(
                f"{name}={others[name]!r} has no use with neighbors_key={neighbors_key!r}, where the graph is given; "
                "leave one of them out."
            )
    if neighbors_key not in adata.uns:
        raise ValueError(f"neighbors_key={neighbors_key!r} is not in adata.uns; run scanpy.pp.neighbors(adata) first.")
    key = adata.uns[neighbors_key].get("connectivities_key", "connectivities")
    if key not in adata.obsp:
        raise ValueError(
            f"neighbors_key={neighbors_key!r} names adata.obsp[{key!r}], which is missing; "
            "run scanpy.pp.neighbors(adata) again."
        )
    return adata.obsp[key]


def _write(adata: AnnData, model: LaptSNE, source: dict[str, Any], obsm: str, name: str) -> None:
    settings = source | model.get_params()
    # What a file of h5ad can hold; functions, objects and what was not set are left out.
    params = {key: value for key, value in settings.items() if isinstance(value, str | int | float | np.number)}
    results: dict[str, Any] = {} if source["neighbors_key"] else {"perplexity": model.perplexity_}
    results |= {result: getattr(model, f"{result}_") for result in _RESULTS}
    adata.obsm[obsm] = model.embedding_
    adata.obs[name] = model.labels_
    # By way of numbers, so that "2" comes before "10".
    adata.obs[name] = adata.obs[name].astype("category").cat.rename_categories(str)
    adata.uns[name] = {"params": params} | results
