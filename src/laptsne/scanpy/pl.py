"""Plots of the results of :mod:`laptsne.scanpy.tl`, drawn by scanpy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from laptsne.scanpy.tl import import_scanpy

if TYPE_CHECKING:
    from anndata import AnnData


def laptsne(adata: AnnData, *, basis: str = "laptsne", **settings: Any) -> Any:
    """Draw a map from :func:`laptsne.scanpy.tl.laptsne` by ``scanpy.pl.embedding``, and return what that returns.

    Parameters
    ----------
    adata : AnnData
    basis : str, default="laptsne"
        Name of the map, if it was computed with ``key_added``.
    **settings
        Arguments of ``scanpy.pl.embedding``, such as ``color``, ``legend_loc``, ``show`` and ``save``.
    """
    if basis not in adata.obsm and f"X_{basis}" not in adata.obsm:
        raise ValueError(f"basis={basis!r} is not in adata.obsm; run laptsne.scanpy.tl.laptsne(adata) first.")
    return import_scanpy().pl.embedding(adata, basis=basis, **settings)
