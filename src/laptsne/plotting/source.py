"""What a figure shows: an embedding and its labels, given as arrays or as a fitted model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from laptsne.colours.label_encoding import Categories, LabelEncoding, encode_labels

RELIABILITY = ("perturbation", "singularity")  # scores of points, set by the model's diagnose()


@dataclass(frozen=True)
class LabelledEmbedding:
    """An embedding, its labels, and the colour of all points if there is only one."""

    embedding: NDArray[Any]
    encoding: LabelEncoding
    colour: str | None = None
    missing_name: str = "no label"


def labelled_embedding(Y: Any, c: Any, *, continuous: bool | None) -> LabelledEmbedding:
    """Return an embedding, or that of a fitted model, with its labels; raise ValueError if it cannot be drawn."""
    model = Y if hasattr(Y, "fit") and hasattr(Y, "get_params") else None
    if model is not None:
        check_is_fitted(model, "embedding_")
        Y = model.embedding_
    embedding = check_embedding(Y)
    if model is not None and c is None:
        return LabelledEmbedding(embedding, _clusters(model, len(embedding)), missing_name="no cluster")
    if isinstance(c, str):
        if model is not None and c in RELIABILITY:
            return LabelledEmbedding(embedding, encode_labels(_reliability(model, c), len(embedding), continuous=True))
        return LabelledEmbedding(embedding, encode_labels(None, len(embedding)), _check_colour(c))
    return LabelledEmbedding(embedding, encode_labels(c, len(embedding), continuous=continuous))


def check_embedding(Y: ArrayLike, name: str = "Y", dimensions: tuple[int, ...] = (1, 2, 3)) -> NDArray[Any]:
    """Return an embedding as an array of shape (n_samples, n_components); raise ValueError if it cannot be drawn."""
    array = np.asarray(Y)
    if array.ndim == 1 and 1 in dimensions and array.dtype.kind in "iuf":
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] not in dimensions:
        counts = " or ".join(map(str, dimensions))
        raise ValueError(
            f"{name} must have shape (n_samples, {counts}) to be drawn, got {array.shape}; fit with n_components=2."
        )
    if array.dtype.kind not in "iuf":
        array = array.astype(np.float64)
    if not np.isfinite(array).all():
        rows = np.flatnonzero(~np.isfinite(array).all(axis=1))
        raise ValueError(f"{name} is not finite in row {rows[0]}; remove the {rows.size} rows that are not finite.")
    return array


def _clusters(model: Any, n_samples: int) -> LabelEncoding:
    """Return the clusters of a model, -1 as no cluster; points of one colour if there are no two clusters."""
    labels = np.asarray(getattr(model, "labels_", ()))
    n_clusters = int(labels.max(initial=-1)) + 1
    if labels.shape != (n_samples,) or (n_clusters < 2 and (labels >= 0).all()):
        return encode_labels(None, n_samples)
    return Categories(tuple(map(str, range(n_clusters))), np.maximum(labels, -1).astype(np.intp))


def _reliability(model: Any, name: str) -> Any:
    scores = getattr(model, "reliability_", None)
    if scores is None:
        raise ValueError(f"c={name!r} needs the reliability of the points; call model.diagnose() first.")
    return getattr(scores, name)


def _check_colour(c: str) -> str:
    from matplotlib.colors import is_color_like  # noqa: PLC0415  matplotlib is slow to import

    if not is_color_like(c):
        raise ValueError(
            f"c={c!r} must be a matplotlib colour such as 'tab:blue', one label per point, or, with a fitted model, "
            f"{' or '.join(map(repr, RELIABILITY))}."
        )
    return c
