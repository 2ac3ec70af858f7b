"""The maps that the explorer shows, as states of one page, and what figures and it read of fitted models."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import orthogonal_procrustes
from sklearn.utils.validation import check_is_fitted

from laptsne._runtime.typing import Array, Floats
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


def aligned_maps(Y: Shown) -> tuple[Floats, Array]:
    """Return the maps, of shape (n_maps, n_samples, 2 or 3), and the rotations applied to those to compare."""
    if isinstance(Y, ContractionPath):
        embeddings = same_points(dict(enumerate(Y.embeddings)), (2, 3))
        return embeddings, np.stack([np.eye(embeddings.shape[2])] * len(embeddings))
    embeddings = same_points(Y if isinstance(Y, Mapping) else {"Y": Y}, (2, 3))
    turns = rotations(embeddings)  # so that points can be followed from map to map
    return embeddings @ turns, turns


def quantized(embeddings: Floats, turns: Array) -> tuple[list[Any], list[Any], NDArray[np.uint16]]:
    """Return boxes, frames and positions of the maps, scaled to the same length of the longer side.

    A box is the corner and the side of a map's square or cube, and the rotation back to the given coordinates. A frame
    is the lower and the upper end of its points along each axis, such as left, bottom, right and top, in units of the
    side. Positions have the shape of the maps.
    """
    low, high = embeddings.min(axis=1), embeddings.max(axis=1)
    sides = (high - low).max(axis=1, keepdims=True)
    sides[sides == 0] = 1.0
    corners = (high + low - sides) / 2
    if embeddings.shape[2] == 2:  # without the margin common to all; a cube is turned about its centre
        corners += ((low - corners) / sides).min(axis=0) * sides
    positions = np.rint((embeddings - corners[:, None]) * (_STEPS / sides[:, None]))
    parts = zip(corners.tolist(), sides[:, 0].tolist(), turns.tolist(), strict=True)
    boxes = [{"corner": corner, "side": side, "turn": turn} for corner, side, turn in parts]
    frames = np.hstack([(low - corners) / sides, (high - corners) / sides])
    return boxes, frames.tolist(), positions.astype(np.uint16)


def same_points(maps: Mapping[Any, Any], dimensions: tuple[int, ...] = (2,)) -> Floats:
    """Return maps of the same points, of shape (n_maps, n_samples, n_components); raise ValueError if they differ."""
    if not maps:
        raise ValueError("there are no maps; pass at least one, or a Recorder after a fit.")
    arrays = {name: embedding_of(given) for name, given in maps.items()}
    shapes = {name: array.shape for name, array in arrays.items()}
    shape = next(iter(shapes.values()))
    if len(set(shapes.values())) > 1 or len(shape) != 2 or shape[0] == 0 or shape[1] not in dimensions:
        known = " or ".join(map(str, dimensions))
        raise ValueError(f"maps must have the same shape (n_samples, {known}), got {shapes}; fit with n_components=2.")
    stacked = np.stack(list(arrays.values())).astype(np.float64)
    if not np.isfinite(stacked).all():
        raise ValueError("a map has coordinates that are NaN or infinite; remove these points.")
    return stacked


def rotations(embeddings: Array) -> Array:
    """Return the rotations, and reflections, by which the rows of each map match those of the first one best."""
    centred = embeddings - embeddings.mean(axis=1, keepdims=True)
    turns = (orthogonal_procrustes(other, centred[0])[0] for other in centred[1:])
    return np.stack([np.eye(centred.shape[2]), *turns])


def path_header(path: ContractionPath) -> dict[str, Any]:
    """Return the curves drawn beside the slider, with None for values that are not finite."""
    curves = {"contractions": path.contractions, "kl": path.kl_divergences, "trustworthiness": path.trustworthiness}
    curves |= {"kept": path.neighbors_kept, "seen": path.neighbors_seen, "eigenvalues": path.eigenvalues}
    known = {name: np.where(np.isfinite(values), values, None).tolist() for name, values in curves.items()}  # type: ignore[call-overload]
    return {**known, "chosen": int(path.chosen)}
