"""The maps that the explorer shows, as states of one page, and what figures and it read of fitted models."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import orthogonal_procrustes
from sklearn.utils.validation import check_is_fitted

from laptsne._runtime.typing import Array
from laptsne.estimators.base import MapEstimator
from laptsne.estimators.contraction_path import ContractionPath
from laptsne.fitted_map import FittedMap

_STEPS = 65535  # positions are stored as multiples of the longer side divided by this

Shown = MapEstimator | FittedMap | ContractionPath | Mapping[Any, Any] | ArrayLike


def embedding_of(Y: Shown) -> Array:
    """Return the embedding of a fitted estimator or of its landmarks, or of a fitted map, or an array as it is."""
    if isinstance(Y, FittedMap):
        return Y.embedding
    if hasattr(Y, "get_params"):
        check_is_fitted(Y, ["embedding_", "landmark_embedding_"], all_or_any=any)
    # A LandmarkLaptSNE that was read from a file or fitted to an iterator has only the second.
    return np.asarray(getattr(Y, "embedding_", getattr(Y, "landmark_embedding_", Y)))


def labels_of(Y: Shown, n_samples: int) -> Array | None:
    """Return the clusters of the points of a fitted model, or of its landmarks; None if there are none."""
    names = ("labels",) if isinstance(Y, FittedMap) else ("labels_", "landmark_labels_")
    known = (getattr(Y, name, None) for name in names)
    return next((np.asarray(labels) for labels in known if labels is not None and len(labels) == n_samples), None)


def aligned_maps(Y: Shown) -> tuple[NDArray[np.float64], Array]:
    """Return the maps, of shape (n_maps, n_samples, 2), and the rotations that were applied to those to compare."""
    if isinstance(Y, ContractionPath):
        embeddings = same_points(dict(enumerate(Y.embeddings)))
        return embeddings, np.broadcast_to(np.eye(2), (len(embeddings), 2, 2))
    embeddings = same_points(Y if isinstance(Y, Mapping) else {"Y": Y})
    turns = rotations(embeddings)  # so that points can be followed from map to map
    return embeddings @ turns, turns


def quantized(embeddings: NDArray[np.float64], turns: Array) -> tuple[list[Any], list[Any], NDArray[np.uint16]]:
    """Return boxes, frames and positions of the maps, scaled to the same length of the longer side.

    A box is the corner and the side of a map's square, and the rotation back to the given coordinates. A frame is left,
    bottom, right and top of its points, in units of the side. Positions have shape (n_maps, n_samples, 2).
    """
    low, high = embeddings.min(axis=1), embeddings.max(axis=1)
    sides = (high - low).max(axis=1, keepdims=True)
    sides[sides == 0] = 1.0
    corners = (high + low - sides) / 2
    corners += ((low - corners) / sides).min(axis=0) * sides  # without the margin common to all
    positions = np.rint((embeddings - corners[:, None]) * (_STEPS / sides[:, None]))
    parts = zip(corners.tolist(), sides[:, 0].tolist(), turns.tolist(), strict=True)
    boxes = [{"x": x, "y": y, "side": side, "turn": turn} for (x, y), side, turn in parts]
    frames = np.hstack([(low - corners) / sides, (high - corners) / sides])
    return boxes, frames.tolist(), positions.astype(np.uint16)


def same_points(maps: Mapping[Any, Any]) -> NDArray[np.float64]:
    """Return maps of the same points as an array of shape (n_maps, n_samples, 2); raise ValueError if they differ."""
    if not maps:
        raise ValueError("there are no maps; pass at least one, or a Recorder after a fit.")
    arrays = {name: embedding_of(given) for name, given in maps.items()}
    shapes = {name: array.shape for name, array in arrays.items()}
    shape = next(iter(shapes.values()))
    if len(set(shapes.values())) > 1 or len(shape) != 2 or shape[0] == 0 or shape[1] != 2:
        raise ValueError(f"maps must have the same shape (n_samples, 2), got {shapes}; fit with n_components=2.")
    stacked = np.stack(list(arrays.values())).astype(np.float64)
    if not np.isfinite(stacked).all():
        raise ValueError("a map has coordinates that are NaN or infinite; remove these points.")
    return stacked


def rotations(embeddings: Array) -> Array:
    """Return the rotations, and reflections, by which the rows of each map match those of the first one best."""
    centred = embeddings - embeddings.mean(axis=1, keepdims=True)
    return np.stack([np.eye(2), *(orthogonal_procrustes(other, centred[0])[0] for other in centred[1:])])


def path_header(path: ContractionPath) -> dict[str, Any]:
    """Return the curves drawn beside the slider, with None for values that are not finite."""
    curves = {"contractions": path.contractions, "kl": path.kl_divergences, "trustworthiness": path.trustworthiness}
    curves |= {"kept": path.neighbors_kept, "seen": path.neighbors_seen, "eigenvalues": path.eigenvalues}
    known = {name: np.where(np.isfinite(values), values, None).tolist() for name, values in curves.items()}  # type: ignore[call-overload]
    return {**known, "chosen": int(path.chosen)}
