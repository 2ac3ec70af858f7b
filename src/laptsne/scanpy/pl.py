"""Pictures of what :mod:`laptsne.scanpy.tl` computed, drawn by scanpy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from laptsne.scanpy.optional import scanpy

if TYPE_CHECKING:
    from anndata import AnnData


def laptsne(adata: AnnData, *, basis: str = "laptsne", **settings: Any) -> Any:
    """Draw the map of cells.

    Parameters
    ----------
    adata : AnnData
        Annotated data with a map by :func:`laptsne.scanpy.tl.laptsne`.
    basis : str, default="laptsne"
        Name of the map, where it was made with ``key_added``.
    **settings
        What ``scanpy.pl.embedding`` takes: ``color``, ``legend_loc``, ``show``, ``save`` and others.

    Returns
    -------
    What ``scanpy.pl.embedding`` returns.
    """
    if basis not in adata.obsm and f"X_{basis}" not in adata.obsm:
        raise ValueError(f"basis={basis!r} is not in adata.obsm; run laptsne.scanpy.tl.laptsne(adata) first.")
    return scanpy().pl.embedding(adata, basis=basis, **settings)
