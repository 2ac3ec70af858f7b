"""What several benchmarks share: data reduced as the paper does not say but everybody does."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from sklearn.decomposition import PCA

from laptsne.datasets import load


def reduced(name: str, n_components: int = 50) -> tuple[NDArray[Any], NDArray[Any]]:
    """Load a data set; reduce it by PCA where it has more than 64 features."""
    X, y = load(name)
    if X.shape[1] > 64:
        X = PCA(n_components, random_state=0).fit_transform(X.astype("float32"))
    return X, y
