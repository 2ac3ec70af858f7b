"""The page of a map: its columns, its images, and its path of contraction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from laptsne import plotting
from laptsne._runtime.atomic_file import atomic_write
from laptsne.cli.fitting import Made, refused
from laptsne.cli.tables import EXAMPLE
from laptsne.cli.terminal import say, waiting
from laptsne.contraction_path import ContractionPath, contraction_path

_MAX_SHOWN = 20  # features; more would bury the other columns
_MAX_PATH = 200_000  # points; the maps of a path take as long as several fits


def write_page(made: Made, out: Path, *, quiet: bool) -> ContractionPath | None:
    """Write the page; return the path of contraction that is in it, if there is one."""
    path = _path(made, quiet=quiet)
    Y = made.model.embedding_ if path is None else path
    columns = page_columns(made)
    with atomic_write(out) as temporary:
        plotting.explorer(
            Y,
            temporary,
            columns=columns,
            images=images(made),
            color=made.table.label or "cluster",
            title=Path(made.table.name).name,
        )
    return path


def _path(made: Made, *, quiet: bool) -> ContractionPath | None:
    n_points = len(made.model.embedding_)
    if made.model.n_clusters_ == 1:
        return None  # there is nothing to contract
    if n_points > _MAX_PATH:
        say(
            [
                f"laptsne: the page has no slider: with {n_points} points, more than {_MAX_PATH}, "
                "its maps would take too long; embed fewer for one."
            ],
            "yellow",
        )
        return None
    with waiting("making maps at rising contraction", quiet=quiet), refused():
        return contraction_path(made.model, made.table.X)


def page_columns(made: Made) -> dict[str, NDArray[Any]]:
    """Labels, clusters, the columns that were kept, and the features where they are few."""
    table = made.table
    columns = {name: with_gaps(values) for name, values in table.columns.items() if name == table.label}
    own = "cluster" if "cluster" not in table.columns else "cluster (of the map)"
    columns[own] = made.model.labels_
    columns |= {name: with_gaps(values) for name, values in table.columns.items()}
    names = table.features or ()
    if len(names) <= _MAX_SHOWN and not scipy.sparse.issparse(table.X):
        columns |= {name: table.X[:, i] for i, name in enumerate(names) if name not in columns}
    return columns


def with_gaps(values: NDArray[Any]) -> NDArray[Any]:
    """Text with None for what is missing."""
    if values.dtype.kind in "biuf":
        return values
    return np.array([value or None for value in values.tolist()], dtype=object)


def images(made: Made) -> NDArray[np.uint8] | None:
    """The rows as grey squares, for the built-in example."""
    if made.table.name != EXAMPLE:
        return None
    X = made.table.X
    side = round(X.shape[1] ** 0.5)
    grey: NDArray[np.uint8] = np.rint(X * (255 / (X.max() or 1))).clip(0, 255).astype(np.uint8)
    return grey.reshape(-1, side, side)
