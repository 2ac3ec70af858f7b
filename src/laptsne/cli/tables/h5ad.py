"""Annotated matrices of single cells in h5ad files, read by anndata."""

import contextlib
import math
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse

from laptsne._runtime.memory import check_room
from laptsne.cli.errors import InputError
from laptsne.cli.tables.contents import FileContents, as_column

_PCA = "X_pca"


def read_h5ad(path: Path) -> FileContents:
    """Read the principal components, or the matrix if there are none; observations are columns."""
    try:
        anndata, h5py = import_module("anndata"), import_module("h5py")
    except ImportError as error:
        raise InputError(f'reading {path} needs anndata, which is missing; pip install "laptsne[scanpy]".') from error
    try:
        _check_datasets(path, h5py)
        # Backed: the matrix stays on disk if the principal components are there.
        cells = anndata.read_h5ad(path, backed="r")
        with contextlib.closing(cells.file):
            return _contents(cells, path)
    except (InputError, MemoryError):
        raise
    except Exception as error:  # whatever anndata and h5py raise, the file is at fault
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"{path} is not an h5ad file, or is damaged ({reason}); write or download it again."
        ) from error


def _check_datasets(path: Path, h5py: Any) -> None:
    """Refuse a file that refers to other files, or whose datasets do not fit into memory.

    A few bytes suffice to declare a dataset of any shape: values that were never written count as zeros.
    """
    with h5py.File(path, "r") as file:
        has_pca = f"obsm/{_PCA}" in file
        size = 0
        for name, dataset in _datasets(file, h5py, path):
            if not (has_pca and name.split("/")[1] in ("X", "raw")):  # these stay on disk then
                size += max(dataset.size or 0, math.prod(dataset.chunks or (0,))) * dataset.dtype.itemsize
        check_room(size)


def _datasets(group: Any, h5py: Any, path: Path, parent: str = "", seen: set[Any] | None = None) -> Iterator[Any]:
    """Iterate over the names and datasets of a group and its subgroups."""
    for key in group:
        name = f"{parent}/{key}"
        # Groups may contain one another. Each one at the top is visited on its own, since not all of them are read.
        visited = set() if seen is None else seen
        item = None if isinstance(group.get(key, getlink=True), h5py.ExternalLink) else group.get(key)
        if isinstance(item, h5py.Group):
            if item not in visited:
                visited.add(item)
                yield from _datasets(item, h5py, path, name, visited)
        elif not isinstance(item, h5py.Dataset) or item.external or item.is_virtual:
            raise InputError(f"{path}: {name} refers to another file, or to nothing; write the data into one file.")
        else:
            yield name, item


def _contents(cells: Any, path: Path) -> FileContents:
    columns = {"obs_names": cells.obs_names.to_series()} | {str(name): cells.obs[name] for name in cells.obs.columns}
    table = pa.table({name: _column(series) for name, series in columns.items()})
    if _PCA in cells.obsm:
        note = f"embedded: the {cells.obsm[_PCA].shape[1]} principal components in obsm[{_PCA!r}]"
        return FileContents(str(path), table, matrix=np.asarray(cells.obsm[_PCA]), notes=(note,))
    try:
        X = cells.X[:]
    except KeyError as error:
        raise InputError(f"{path} has neither X nor obsm[{_PCA!r}]; write one of them.") from error
    if scipy.sparse.issparse(X):
        X.check_format(full_check=True)  # compiled code relies on the indices
    X = X.tocsr() if scipy.sparse.issparse(X) else np.asarray(X)
    note = (
        f"embedded: X, {X.shape[1]} features, since there is no obsm[{_PCA!r}]; components by scanpy.pp.pca are faster"
    )
    features = tuple(str(name) for name in cells.var_names)
    return FileContents(str(path), table, matrix=X, features=features, notes=(note,))


def _column(series: Any) -> pa.ChunkedArray:
    """Return numbers as they are; categories, dates and text as text."""
    if series.dtype.kind not in "biuf":
        series = [str(value) if there else None for value, there in zip(series, series.notna(), strict=True)]
    return as_column(pa.chunked_array([pa.array(series, from_pandas=True)]))
