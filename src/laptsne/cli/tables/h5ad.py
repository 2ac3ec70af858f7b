"""Annotated matrices of cells in h5ad files, by anndata."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from laptsne._runtime.memory import check_room
from laptsne.cli.tables.content import Column, Content, InputError, as_column, required

_PCA = "X_pca"


def read_h5ad(path: Path) -> Content:
    """Read the principal components where there are some, else the matrix; observations are columns."""
    anndata = required("anndata", f"reading {path}", "scanpy")
    try:
        _check_parts(path)
        # Backed: the matrix is not read where the components are there.
        cells = anndata.read_h5ad(path, backed="r")
        with contextlib.closing(cells.file):
            return _content(cells, path)
    except (InputError, MemoryError):
        raise
    except Exception as error:  # whatever the libraries below raise, the file is what is wrong
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"{path} is not an h5ad file, or is damaged ({reason}); write or download it again."
        ) from error


def _check_parts(path: Path) -> None:
    """Refuse a file that leads to others, and one whose parts, unpacked, are larger than there is room for.

    A few bytes are enough to say that an array has any shape: what was never written counts as zeros.
    """
    h5py = required("h5py", f"reading {path}", "scanpy")
    with h5py.File(path, "r") as file:
        has_components = f"obsm/{_PCA}" in file
        size = 0
        for name, part in _parts(file, h5py, path):
            # Where there are components, these stay on disk.
            if not (has_components and name.split("/")[1] in ("X", "raw")):
                size += max(part.size or 0, math.prod(part.chunks or (0,))) * part.dtype.itemsize
        check_room(size)


def _parts(group: Any, h5py: Any, path: Path, above: str = "", seen: set[Any] | None = None) -> Iterator[Any]:
    """Names and arrays of a group and those in it."""
    for key in group:
        name = f"{above}/{key}"
        # Groups may hold one another; each part at the top is gone through on its own, for some are not read.
        known = set() if seen is None else seen
        part = None if isinstance(group.get(key, getlink=True), h5py.ExternalLink) else group.get(key)
        if isinstance(part, h5py.Group):
            if part not in known:
                known.add(part)
                yield from _parts(part, h5py, path, name, known)
        elif not isinstance(part, h5py.Dataset) or part.external or part.is_virtual:
            raise InputError(f"{path}: {name} leads to another file, or to nothing; write the data into one file.")
        else:
            yield name, part


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
    if scipy.sparse.issparse(X):
        X.check_format(full_check=True)  # compiled code goes by its indices
    X = X.tocsr() if scipy.sparse.issparse(X) else np.asarray(X)
    note = (
        f"embedded: X, {X.shape[1]} features, since there is no obsm[{_PCA!r}]; components by scanpy.pp.pca are faster"
    )
    features = tuple(str(name) for name in cells.var_names)
    return Content(str(path), columns, matrix=X, features=features, notes=(note,))


def _column(series: Any) -> Column:
    """Numbers as they are; categories, dates and text as strings."""
    return as_column(series.to_numpy() if series.dtype.kind in "biuf" else series.astype(object).to_numpy())
