"""What the explorer of a fitted dataset shows: columns, images, and the contraction path."""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from laptsne import LandmarkLaptSNE
from laptsne.cli.fitting import FittedDataset, input_errors
from laptsne.cli.tables.dataset import Dataset
from laptsne.cli.tables.h5ad import read_genes
from laptsne.cli.tables.reading import EXAMPLE
from laptsne.cli.tables.writing import free_name
from laptsne.cli.terminal import say, waiting
from laptsne.contraction_path import ContractionPath, contraction_path

_MAX_FEATURES = 20  # that are columns of the explorer; more would bury the others
_MAX_POINTS = 200_000  # with a contraction path, whose embeddings take as long as several fits


def explorer_columns(dataset: Dataset, found: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the label, what was found, the columns beside the embedding, and the features if they are few."""
    kept = {name: dataset.values(name) for name in dataset.columns.column_names}
    columns = {} if dataset.label is None else {dataset.label: kept[dataset.label]}
    columns |= {free_name(name, list(kept)): values for name, values in found.items()} | kept
    features = dataset.features or ()
    if len(features) <= _MAX_FEATURES and not scipy.sparse.issparse(dataset.X):
        columns |= {name: dataset.X[:, i] for i, name in enumerate(features) if name not in columns}
    return columns


def explorer_title(dataset: Dataset) -> str:
    """Return the name of the file, or of the folder of a 10x matrix, which has the same name everywhere."""
    path = Path(dataset.name)
    return path.resolve().parent.name if path.name.startswith("matrix.mtx") else path.name


def explorer_features(dataset: Dataset) -> dict[str, Any]:
    """Return the features that are not columns of the explorer: many columns of a table, or the genes of cells."""
    X, names = dataset.X, dataset.features
    if names is None and Path(dataset.name).suffix.lower() == ".h5ad":
        X, names = read_genes(Path(dataset.name)) or (X, None)
        if X.shape[0] != dataset.X.shape[0]:  # rows were left out
            return {}
    lists = any(width > 1 for width in (dataset.inputs or {}).values())  # numbers without a meaning of their own
    if names is None or lists or (len(names) <= _MAX_FEATURES and not scipy.sparse.issparse(X)):
        return {}
    return {"features": X, "feature_names": names}


def explorer_path(fitted: FittedDataset, *, quiet: bool) -> ContractionPath | None:
    """Return embeddings at increasing contraction; None if there is nothing to contract, or too much to compute."""
    model = fitted.model
    n_points = len(model.embedding_)
    if model.n_clusters_ == 1 or isinstance(model, LandmarkLaptSNE):
        return None
    if n_points > _MAX_POINTS:
        message = (
            f"laptsne: the explorer has no contraction slider: the maps for it would take too long with {n_points} "
            f"points, more than {_MAX_POINTS}; embed fewer to get one."
        )
        say([message], "yellow")
        return None
    with waiting("fitting maps at increasing contraction", quiet=quiet), input_errors():
        return contraction_path(model, fitted.prepared.X)


def explorer_images(dataset: Dataset) -> NDArray[np.uint8] | None:
    """Return the rows of the built-in example as greyscale images."""
    if dataset.name != EXAMPLE:
        return None
    X = dataset.X
    side = round(X.shape[1] ** 0.5)
    grey: NDArray[np.uint8] = np.rint(X * (255 / (X.max() or 1))).clip(0, 255).astype(np.uint8)
    return grey.reshape(-1, side, side)
