"""Annotated matrices of cells in h5ad files, by anndata."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from laptsne.tables.content import Column, Content, InputError, as_column, required

_PCA = "X_pca"


def read_h5ad(path: Path) -> Content:
    """Read the principal components where there are some, else the matrix; observations are columns."""
    anndata = required("anndata", f"reading {path}", "scanpy")
    try:
        # Backed: the matrix is not read where the components are there.
        cells = anndata.read_h5ad(path, backed="r")
    except Exception as error:  # whatever the libraries below raise, the file is what is wrong
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"{path} is not an h5ad file, or is damaged ({reason}); write or download it again."
        ) from error
    try:
        return _content(cells, path)
    finally:
        cells.file.close()


def _content(cells: Any, path: Path) -> Content:
    columns = {"obs_names": as_column(cells.obs_names.astype(object))}
    columns |= {str(name): _column(cells.obs[name]) for name in cells.obs.columns}
    if _PCA in cells.obsm:
        note = f"embedded: the {cells.obsm[_PCA].shape[1]} principal components in obsm[{_PCA!r}]"
        return Content(str(path), columns, matrix=np.asarray(cells.obsm[_PCA]), notes=(note,))
    try:
        X = cells.X[:]
    except KeyError as error:
        raise InputError(f"{path} has neither X nor obsm[{_PCA!r}]; write one of them.") from error
    X = X.tocsr() if scipy.sparse.issparse(X) else np.asarray(X)
    note = (
        f"embedded: X, {X.shape[1]} features, since there is no obsm[{_PCA!r}]; components by scanpy.pp.pca are faster"
    )
    features = tuple(str(name) for name in cells.var_names)
    return Content(str(path), columns, matrix=X, features=features, notes=(note,))


def _column(series: Any) -> Column:
    """Numbers as they are; categories, dates and text as strings."""
    return as_column(series.to_numpy() if series.dtype.kind in "biuf" else series.astype(object).to_numpy())
