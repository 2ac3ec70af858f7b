"""Modules that have moved: importing one by its former name works, with a deprecation warning."""

import importlib
import sys
import warnings
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

# Former name: present name, both within the package. Those that the documentation of version 0.1.0 used.
MOVED = {
    "contraction_path": "estimators.contraction_path",
    "estimator": "estimators.laptsne",
    "landmarks": "estimators.landmarks",
    "lapumap": "estimators.lapumap",
}


class _Alias(MetaPathFinder, Loader):
    """Finds the modules that have moved, and loads those at their present place."""

    def __init__(self) -> None:
        self._specs: dict[str, ModuleSpec | None] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        package, _, rest = name.partition(".")
        return ModuleSpec(name, self) if package == "laptsne" and rest in MOVED else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        present = f"laptsne.{MOVED[spec.name.partition('.')[2]]}"
        message = f"{spec.name} is now private, at {present}; import public names from laptsne."
        warnings.warn(message, DeprecationWarning, stacklevel=2)  # noqa: TID251  at import
        module = importlib.import_module(present)
        self._specs[module.__name__] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore what the import system has changed; the module itself has been executed."""
        module.__spec__ = self._specs[module.__name__]


sys.meta_path.append(_Alias())
