"""Breiman's waveform data, which are generated."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def waveform(n_samples: int = 5000, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """Generate waveforms: each class mixes two of three triangles at random, plus unit noise (Breiman et al., 1984)."""
    rng = np.random.default_rng(seed)
    position = np.arange(1, 22)
    triangles = np.maximum(6 - np.abs(position - np.array([[7], [15], [11]])), 0)
    y = rng.integers(0, 3, n_samples)
    weight = rng.random((n_samples, 1))
    first, second = triangles[np.array([0, 0, 1])[y]], triangles[np.array([1, 2, 2])[y]]
    return weight * first + (1 - weight) * second + rng.standard_normal((n_samples, 21)), y
