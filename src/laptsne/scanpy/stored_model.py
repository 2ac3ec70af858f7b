"""Fitted models in AnnData: as the bytes of a model file, which h5ad files can hold."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.warn import warn
from laptsne.estimators.laptsne import LaptSNE

if TYPE_CHECKING:
    from anndata import AnnData


def model_bytes(model: LaptSNE) -> NDArray[np.uint8] | None:
    """Return the content of the model's file, or None, with a warning, if it cannot be saved."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        try:
            model.save(path)
        except ValueError as error:
            warn(f"the model is not kept, so that new cells cannot be added: {error}")
            return None
        return np.frombuffer(path.read_bytes(), np.uint8)


def get_model(adata: AnnData, key: str = "laptsne") -> LaptSNE:
    """Return the fitted model of a map.

    Parameters
    ----------
    adata : AnnData
        Annotated data with a map from :func:`laptsne.scanpy.tl.laptsne`.
    key : str, default="laptsne"
        Key of ``adata.uns``, if the map was computed with ``key_added``.

    Returns
    -------
    model : LaptSNE
        As read by :meth:`laptsne.LaptSNE.load`.

    Examples
    --------
    >>> import scanpy as sc
    >>> import laptsne.scanpy as lsc
    >>> adata = sc.datasets.pbmc68k_reduced()
    >>> lsc.tl.laptsne(adata, max_iter=100)
    >>> lsc.get_model(adata).embedding_.shape
    (700, 2)
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
