"""What is read from AnnData: features, the neighbour graph of scanpy, and fitted models."""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.threads import Workers
from laptsne._runtime.warn import warn
from laptsne.estimators.laptsne import LaptSNE
from laptsne.graph.affinity import auto_perplexity
from laptsne.graph.neighbors import nearest_by_path

if TYPE_CHECKING:
    from anndata import AnnData

_NOT_OF_GRAPHS = ("use_rep", "n_pcs", "metric", "metric_params")  # a graph stands for them


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
    is_small = n_pcs == 0 or adata.n_vars <= import_scanpy().settings.N_PCS
    return use_rep or ("X" if is_small else "X_pca")


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
    for name in _NOT_OF_GRAPHS:
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


def graph_settings(adata: AnnData, neighbors_key: str) -> tuple[str, int | None, str]:
    """Return features, number of components and metric from which scanpy computed its graph."""
    given = adata.uns[neighbors_key].get("params", {})
    n_pcs = given.get("n_pcs")
    use_rep = chosen_representation(adata, given.get("use_rep"), n_pcs)
    return use_rep, None if n_pcs is None else int(np.asarray(n_pcs)), str(given.get("metric", "euclidean"))


def model_bytes(model: LaptSNE) -> NDArray[np.uint8] | None:
    """Return the content of the model's file, which h5ad can hold, or None, with a warning, if it cannot be saved."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        try:
            model.save(path)
        except ValueError as error:
            warn(f"the model is not kept, so that new cells cannot be added: {error}")
            return None
        return np.frombuffer(path.read_bytes(), np.uint8)


def get_model(adata: AnnData, key: str = "laptsne") -> LaptSNE:
    """Return the fitted model of a map, as read by :meth:`laptsne.LaptSNE.load`.

    Parameters
    ----------
    adata : AnnData
        Annotated data with a map from :func:`laptsne.scanpy.tl.laptsne`.
    key : str, default="laptsne"
        Key of ``adata.uns``, if the map was computed with ``key_added``.

    Returns
    -------
    model : LaptSNE
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
