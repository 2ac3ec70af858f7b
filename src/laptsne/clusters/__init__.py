"""Which clusters the data have, which points belong to them, and which features set them apart."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from laptsne.clusters.contrasts import FeatureTable, distinguishing_features, selection_features
    from laptsne.clusters.counting import find_clusters
    from laptsne.clusters.linkage import ClusterTree
    from laptsne.clusters.table import ClusterTable

__all__ = [
    "ClusterTable",
    "ClusterTree",
    "FeatureTable",
    "distinguishing_features",
    "find_clusters",
    "selection_features",
]


def __getattr__(name: str) -> Any:
    # Imported on first use: numba and scikit-learn take long.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = {"ClusterTable": "table", "ClusterTree": "linkage", "find_clusters": "counting"}.get(name, "contrasts")
    return getattr(import_module(f"{__name__}.{module}"), name)
