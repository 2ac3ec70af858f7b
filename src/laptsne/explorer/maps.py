"""The maps that the explorer shows, as states of one page, and what figures and it read of fitted models."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import orthogonal_procrustes
from sklearn.utils.validation import check_is_fitted

from laptsne._runtime.typing import Array
from laptsne.estimators.base import MapEstimator
from laptsne.estimators.contraction_path import ContractionPath
from laptsne.fitted_map import FittedMap

RELIABILITY = ("perturbation",)  # scores of points, set by diagnose() of a fitted model
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


@dataclass(frozen=True)
class Maps:
    """Maps of the same points: several of a contraction path, several to compare, or one."""

    embeddings: NDArray[np.float64]  # of shape (n_maps, n_samples, 2)
    names: tuple[str, ...] = ()  # of maps to compare
    path: ContractionPath | None = None
    turns: Array | None = None  # of shape (n_maps, 2, 2): rotations that were applied to maps to compare

    def quantized(self) -> tuple[list[dict[str, Any]], list[list[float]], NDArray[np.uint16]]:
        """Return boxes, frames and positions of the maps, scaled to the same length of the longer side.

        A box is the corner and the side of a map's square, and the rotation back to the given coordinates. A frame is
        left, bottom, right and top of its points, in units of the side. Positions have shape (n_maps, n_samples, 2).
        """
        low, high = self.embeddings.min(axis=1), self.embeddings.max(axis=1)
        sides = (high - low).max(axis=1, keepdims=True)
        sides[sides == 0] = 1.0
        corners = (high + low - sides) / 2
        corners += ((low - corners) / sides).min(axis=0) * sides  # without the margin common to all
        positions = np.rint((self.embeddings - corners[:, None]) * (_STEPS / sides[:, None]))
        turns = np.broadcast_to(np.eye(2) if self.turns is None else self.turns, (len(sides), 2, 2))
        parts = zip(corners.tolist(), sides[:, 0].tolist(), turns.tolist(), strict=True)
        boxes = [{"x": x, "y": y, "side": side, "turn": turn} for (x, y), side, turn in parts]
        frames = np.hstack([(low - corners) / sides, (high - corners) / sides])
        return boxes, frames.tolist(), positions.astype(np.uint16)


def check_maps(Y: Shown) -> Maps:
    """Return the maps of an array, a contraction path, a fitted model, or a mapping from names to maps."""
    if isinstance(Y, ContractionPath):
        return Maps(_checked(Y.embeddings), path=Y if len(Y.embeddings) > 1 else None)
    if not isinstance(Y, Mapping):
        return Maps(_checked(embedding_of(Y)[None]))
    if not Y:
        raise ValueError('Y is an empty mapping; pass maps by name, such as {"t-SNE": Y1, "UMAP": Y2}.')
    arrays = {str(name): embedding_of(value).astype(np.float64) for name, value in Y.items()}
    shapes = {name: array.shape for name, array in arrays.items()}
    if len(set(shapes.values())) > 1:
        raise ValueError(f"Y: maps to compare must have the same shape, got {shapes}.")
    embeddings = _checked(np.stack(list(arrays.values())))
    # Onto the first one, so that points can be followed from map to map.
    turns = np.stack([np.eye(2), *(rotation_onto(other, embeddings[0]) for other in embeddings[1:])])
    # The inverse of a rotation is its transpose, and rows are multiplied from the left.
    return Maps(embeddings @ turns, names=tuple(arrays) if len(arrays) > 1 else (), turns=turns)


def rotation_onto(Y: Array, target: Array) -> Array:
    """Return the rotation, and reflection, that matches an embedding best to another one of the same points."""
    return np.asarray(orthogonal_procrustes(Y - Y.mean(axis=0), target - target.mean(axis=0))[0])


def _checked(given: Any) -> NDArray[np.float64]:
    maps: NDArray[np.float64] = np.asarray(given, dtype=np.float64)
    if maps.ndim != 3 or maps.shape[2] != 2 or not maps.size:
        raise ValueError(
            f"Y must have shape (n_samples, 2) to be explored, got {maps.shape[1:]}; fit with n_components=2."
        )
    if not np.isfinite(maps).all():
        raise ValueError("Y has coordinates that are NaN or infinite; remove these points.")
    return maps


def path_header(path: ContractionPath) -> dict[str, Any]:
    """Return the curves drawn beside the slider, with None for values that are not finite."""
    curves = {"contractions": path.contractions, "kl": path.kl_divergences, "trustworthiness": path.trustworthiness}
    curves |= {"kept": path.neighbors_kept, "seen": path.neighbors_seen, "eigenvalues": path.eigenvalues}
    known = {name: np.where(np.isfinite(values), values, None).tolist() for name, values in curves.items()}  # type: ignore[call-overload]
    return {**known, "chosen": int(path.chosen)}
