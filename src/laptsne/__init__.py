"""Cluster-contractive t-SNE: maps of high-dimensional data in which clusters can be seen."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from laptsne._runtime.version import __version__

if TYPE_CHECKING:
    from laptsne.contraction.finished import contract
    from laptsne.engine.minimise import State
    from laptsne.engine.schedule import Descent
    from laptsne.estimators.aligned import align
    from laptsne.estimators.landmarks import LandmarkLaptSNE
    from laptsne.estimators.laptsne import LaptSNE, LapUMAP
    from laptsne.fitted_map import FittedMap
    from laptsne.memory import estimate_memory

__all__ = [
    "Descent",
    "FittedMap",
    "LandmarkLaptSNE",
    "LapUMAP",
    "LaptSNE",
    "State",
    "__version__",
    "align",
    "contract",
    "estimate_memory",
]

# Imported on first use: numba, SciPy and scikit-learn take more than a second, which `laptsne --help` does not need.
_MODULE_OF = {
    "Descent": "engine.schedule",
    "FittedMap": "fitted_map",
    "LandmarkLaptSNE": "estimators.landmarks",
    "LapUMAP": "estimators.laptsne",
    "LaptSNE": "estimators.laptsne",
    "State": "engine.minimise",
    "align": "estimators.aligned",
    "contract": "contraction.finished",
    "estimate_memory": "memory",
}
_NAMESPACES = ("clusters", "contraction", "explorer", "kernels", "metrics", "plotting", "scanpy")


def __getattr__(name: str) -> Any:
    if name in _NAMESPACES:
        return import_module(f"laptsne.{name}")
    if name in _MODULE_OF:
        globals()[name] = value = getattr(import_module(f"laptsne.{_MODULE_OF[name]}"), name)
        return value
    raise AttributeError(f"module 'laptsne' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_NAMESPACES])
