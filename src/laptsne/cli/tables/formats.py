"""Which reader reads which file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sklearn.datasets import load_digits

from laptsne.cli.tables.arrays import read_npy, read_npz
from laptsne.cli.tables.content import Content, InputError
from laptsne.cli.tables.h5ad import read_h5ad
from laptsne.cli.tables.matrix_market import read_matrix_market
from laptsne.cli.tables.parquet import read_parquet
from laptsne.cli.tables.text import read_text

_READERS: dict[str, Callable[[Path], Content]] = {
    ".csv": read_text,
    ".csv.gz": read_text,
    ".tsv": read_text,
    ".tsv.gz": read_text,
    ".parquet": read_parquet,
    ".npy": read_npy,
    ".npz": read_npz,
    ".h5ad": read_h5ad,
    ".mtx": read_matrix_market,
    ".mtx.gz": read_matrix_market,
}
READABLE = tuple(_READERS)
EXAMPLE = "digits"  # the built-in data set


def read(source: str) -> Content:
    """Read a file by what its name ends in, the built-in example by its name, or a table in CSV from ``-``.

    Parameters
    ----------
    source : str
        The file, the data set or "-".

    Returns
    -------
    content : Content

    Examples
    --------
    >>> from laptsne.cli.tables import read
    >>> read("digits").matrix.shape
    (1797, 64)
    """
    if source == "-":
        return read_text(None)
    if source == EXAMPLE:
        X, y = load_digits(return_X_y=True)
        return Content(source, {"label": y}, matrix=X)
    path = Path(source)
    if path.is_dir():
        raise InputError(f"{path} is a folder; give a file in it.")
    if not path.exists():
        raise InputError(f"there is no file {source}; give a file, or the example {EXAMPLE}.")
    ending = next((ending for ending in READABLE if path.name.lower().endswith(ending)), None)
    if ending is None:
        raise InputError(f"{path} cannot be read; give a file that ends in {', '.join(READABLE)}.")
    if not path.stat().st_size and path.is_file():
        raise InputError(f"{path} is empty: it has no rows; give a file with data.")
    try:
        return _READERS[ending](path)
    except MemoryError as error:
        raise InputError(f"{path} does not fit into memory: {error}; give fewer rows or columns.") from error
