"""Which clusters the data have, which points belong to them, and which features set them apart."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from laptsne.clusters.contrasts import FeatureTable, distinguishing_features, selection_features
    from laptsne.clusters.counting import find_clusters
    from laptsne.clusters.table import ClusterTable

__all__ = ["ClusterTable", "FeatureTable", "distinguishing_features", "find_clusters", "selection_features"]

# Imported on first use: numba and scikit-learn take long.
_MODULE_OF = {
    "ClusterTable": "table",
    "FeatureTable": "contrasts",
    "distinguishing_features": "contrasts",
    "find_clusters": "counting",
    "selection_features": "contrasts",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    return value
