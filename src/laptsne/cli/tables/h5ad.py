"""Annotated matrices of single cells in h5ad files, read by anndata."""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse

from laptsne._runtime.available_memory import check_room
from laptsne.cli.errors import InputError
from laptsne.cli.tables.contents import FileContents, typed_contents
from laptsne.cli.tables.dataset import listed

_PCA = "X_pca"
_X = "X"
_MAX_SHOWN = 400_000_000  # bytes of a matrix that is read only for the explorer


def read_h5ad(path: Path, *, rep: str | None = None, genes: Sequence[str] = ()) -> FileContents:
    """Read an array of obsm, or the matrix X; observations are columns, and so are these genes.

    Without ``rep``, it is the array of principal components, or X if there is none.
    """
    try:
        anndata, h5py = import_module("anndata"), import_module("h5py")
    except ImportError as error:
        raise InputError(f'reading {path} needs anndata, which is missing; pip install "laptsne[scanpy]".') from error
    with _opened(path, anndata, lambda: _check_datasets(path, h5py, rep)) as cells:
        return _contents(cells, path, rep, genes)


def read_genes(path: Path) -> tuple[Any, tuple[str, ...]] | None:
    """Read the matrix X and the names of its genes, for the explorer; None if there is none, or if it is large."""
    h5py = import_module("h5py")
    with h5py.File(path, "r") as file:
        sizes = [_size(part) for name, part in _datasets(file, h5py, path) if name.split("/")[1] == _X]
    if not 0 < sum(sizes) <= _MAX_SHOWN:
        return None
    with _opened(path, import_module("anndata")) as cells:
        return _matrix(cells, path), tuple(str(name) for name in cells.var_names)


@contextlib.contextmanager
def _opened(path: Path, anndata: Any, check: Callable[[], None] = lambda: None) -> Iterator[Any]:
    """Open a file; its matrix stays on disk until it is read."""
    try:
        check()
        cells = anndata.read_h5ad(path, backed="r")
        with contextlib.closing(cells.file):
            yield cells
    except (InputError, MemoryError):
        raise
    except Exception as error:  # whatever anndata and h5py raise, the file is at fault
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"{path} is not an h5ad file, or is damaged ({reason}); write or download it again."
        ) from error


def _check_datasets(path: Path, h5py: Any, rep: str | None) -> None:
    """Refuse a file that refers to other files, or whose datasets do not fit into memory.

    A few bytes suffice to declare a dataset of any shape: values that were never written count as zeros.
    """
    with h5py.File(path, "r") as file:
        on_disk = rep != _X and f"obsm/{rep or _PCA}" in file
        size = 0
        for name, dataset in _datasets(file, h5py, path):
            if not (on_disk and name.split("/")[1] in ("X", "raw")):  # these stay on disk then
                size += _size(dataset)
        check_room(size)


def _size(dataset: Any) -> int:
    """Bytes that a dataset takes in memory."""
    return int(max(dataset.size or 0, math.prod(dataset.chunks or (0,))) * dataset.dtype.itemsize)


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


def _contents(cells: Any, path: Path, rep: str | None, genes: Sequence[str]) -> FileContents:
    columns = {"obs_names": cells.obs_names.to_series()} | {str(name): cells.obs[name] for name in cells.obs.columns}
    table = pa.table({name: _column(series) for name, series in columns.items()})
    measured = {name: source for name in genes if (source := _measured_in(cells, name)) is not None}
    measured = {name: source for name, source in measured.items() if name not in table.column_names}
    for name, source in measured.items():
        table = table.append_column(name, pa.chunked_array([_gene(source, name)]))
    parts: dict[str, Any] = {"continuous": frozenset(measured)}
    if rep is not None and rep != _X and rep not in cells.obsm:
        raise InputError(
            f"{path} has no obsm[{rep!r}]; give --rep X, or one of {listed(sorted(cells.obsm)) or 'none'}."
        )
    key = rep or (_PCA if _PCA in cells.obsm else _X)
    if key != _X:
        matrix = np.asarray(cells.obsm[key])
        note = f"embedded: obsm[{key!r}], {matrix.shape[1]} features"
        return typed_contents(str(path), table, matrix=matrix, notes=(note,), **parts)
    X = _matrix(cells, path)
    note = f"embedded: X, {X.shape[1]} features"
    if rep is None:
        note += f", since there is no obsm[{_PCA!r}]"
    features = tuple(str(name) for name in cells.var_names)
    return typed_contents(str(path), table, matrix=X, features=features, notes=(note,), **parts)


def _matrix(cells: Any, path: Path) -> Any:
    try:
        X = cells.X[:]
    except KeyError as error:
        raise InputError(f"{path} has neither X nor obsm[{_PCA!r}]; write one of them.") from error
    if not scipy.sparse.issparse(X):
        return np.asarray(X)
    X.check_format(full_check=True)  # compiled code relies on the indices
    return X.tocsr()


def _measured_in(cells: Any, gene: str) -> Any:
    """Return the cells, or their raw data, of which a gene is a variable."""
    return next((part for part in (cells, cells.raw) if part is not None and gene in part.var_names), None)


def _gene(cells: Any, name: str) -> Any:
    """Return the values of one gene."""
    # Not cells[:, name]: raw data on disk ignore the choice of genes.
    values = cells.X[:, [cells.var_names.get_loc(name)]]
    return np.asarray(values.toarray() if scipy.sparse.issparse(values) else values, dtype=np.float64).ravel()


def _column(series: Any) -> pa.ChunkedArray:
    """Return numbers as they are; categories, dates and text as text."""
    if series.dtype.kind not in "biuf":
        series = [str(value) if there else None for value, there in zip(series, series.notna(), strict=True)]
    return pa.chunked_array([pa.array(series, from_pandas=True)])
