"""Cluster-contractive t-SNE: maps of high-dimensional data in which clusters can be seen."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from laptsne._runtime.version import __version__

if TYPE_CHECKING:
    from laptsne.contraction.finished import contract
    from laptsne.engine.descent import Descent
    from laptsne.estimator import LaptSNE
    from laptsne.landmarks import LandmarkLaptSNE
    from laptsne.lapumap import LapUMAP
    from laptsne.memory import estimate_memory

__all__ = ["Descent", "LandmarkLaptSNE", "LapUMAP", "LaptSNE", "__version__", "contract", "estimate_memory"]

# Imported on first use: numba, SciPy and scikit-learn take more than a second, which `laptsne --help` does not need.
_MODULE_OF = {
    "Descent": "engine.descent",
    "LandmarkLaptSNE": "landmarks",
    "LapUMAP": "lapumap",
    "LaptSNE": "estimator",
    "contract": "contraction.finished",
    "estimate_memory": "memory",
}
_SUBMODULES = ("contraction_path", "estimator", "explorer", "landmarks", "memory", "metrics", "plotting", "scanpy")


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"laptsne.{name}")
    if name in _MODULE_OF:
        globals()[name] = value = getattr(import_module(f"laptsne.{_MODULE_OF[name]}"), name)
        return value
    raise AttributeError(f"module 'laptsne' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES])
