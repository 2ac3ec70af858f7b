"""The contraction term: penalised eigenvalues of the Laplacian of the embedding's own similarity graph."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from laptsne.contraction.finished import contract
    from laptsne.estimators.contraction_path import ContractionPath, contraction_path

__all__ = ["ContractionPath", "contract", "contraction_path"]


def __getattr__(name: str) -> Any:
    # Imported on first use: the path is made of descents, which import this package.
    if name not in __all__:
        raise AttributeError(f"module 'laptsne.contraction' has no attribute {name!r}")
    module = "laptsne.contraction.finished" if name == "contract" else "laptsne.estimators.contraction_path"
    return getattr(import_module(module), name)
