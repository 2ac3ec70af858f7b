"""Plots of the results of :mod:`laptsne.scanpy.tl`, drawn by scanpy."""

from typing import Any

import scanpy as sc
from anndata import AnnData


def laptsne(adata: AnnData, *, basis: str = "laptsne", **settings: Any) -> Any:
    """Draw a map from :func:`laptsne.scanpy.tl.laptsne` by ``scanpy.pl.embedding``, and return what that returns.

    Parameters
    ----------
    adata : AnnData
    basis : str, default="laptsne"
        Name of the map: "lapumap" from that function, or its ``key_added``.
    **settings
        Arguments of ``scanpy.pl.embedding``, such as ``color``, ``legend_loc``, ``show`` and ``save``.
    """
    return sc.pl.embedding(adata, basis=basis, **settings)
