"""Modules that have moved: their former names work, with a deprecation warning."""

import importlib
import sys
import warnings
from types import ModuleType
from typing import Any

# Former name: present name, both within the package. Those that the documentation of version 0.1.0 used.
MOVED = {
    "contraction_path": "estimators.contraction_path",
    "estimator": "estimators.laptsne",
    "landmarks": "estimators.landmarks",
    "lapumap": "estimators.laptsne",
}


class _Former(ModuleType):
    """A module of a former name, which takes its attributes from that of the present name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked for by tools that list all modules
            raise AttributeError(name)
        present = f"laptsne.{MOVED[self.__name__.partition('.')[2]]}"
        message = f"{self.__name__} is now private, at {present}; import public names from laptsne."
        warnings.warn(message, DeprecationWarning, stacklevel=2)  # noqa: TID251  at import
        return getattr(importlib.import_module(present), name)


sys.modules.update({f"laptsne.{former}": _Former(f"laptsne.{former}") for former in MOVED})
