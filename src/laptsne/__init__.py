"""Cluster-contractive t-SNE: maps of high-dimensional data in which clusters can be seen."""

from importlib import import_module
from typing import Any

from laptsne._runtime.version import __version__
from laptsne.embedding.descent import Descent
from laptsne.estimator import LaptSNE
from laptsne.landmarks import LandmarkLaptSNE
from laptsne.memory import estimate_memory

__all__ = ["Descent", "LandmarkLaptSNE", "LaptSNE", "__version__", "estimate_memory"]

# Imported when they are first used: most programs need none or one of them.
_SUBMODULES = ("contraction_path", "explorer", "metrics", "plotting", "scanpy")


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"laptsne.{name}")
    raise AttributeError(f"module 'laptsne' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES})
