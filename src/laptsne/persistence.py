"""Fitted models to files and back."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from laptsne._runtime.array_file import read_archive, write_archive
from laptsne._runtime.threads import Workers
from laptsne.embedding.descent import Descent
from laptsne.embedding.kernels import Gaussian, Student
from laptsne.embedding.potential import Potential
from laptsne.transform import Network, Placement

# Parameters that are of no use to a fitted model, and may be any object: a file holds None instead.
_DROPPED = {"callbacks", "checkpoint"}
_OBJECTS: dict[str, Any] = {kind.__name__: kind for kind in (Descent, Gaussian, Student, Potential, Network)}


def save_model(model: Any, path: str | os.PathLike[str]) -> int:
    """Write a fitted model; return the size of the file in bytes."""
    writer = _Writer()
    parameters = {
        name: None if name in _DROPPED or isinstance(value, np.random.RandomState | np.random.Generator) else value
        for name, value in model.get_params(deep=False).items()
    }
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_") and name not in model._not_saved}
    content = {
        "class": type(model).__name__,
        "parameters": {name: writer.encoded(value, name) for name, value in parameters.items()},
        "fitted": {name: writer.encoded(value, name) for name, value in fitted.items() if not name.startswith("_")},
        "mapping": writer.mapping(model._mapping, model.n_jobs),
    }
    return write_archive(path, content, writer.arrays)


def load_model(path: str | os.PathLike[str], classes: dict[str, Any]) -> Any:
    """Read a model of one of the classes, by name."""
    content, arrays = read_archive(path)
    try:
        kind = content["class"]
        if kind not in classes:
            raise ValueError(f"{path} holds a model of class {kind!r}; load it with laptsne.{kind}.load.")
        reader = _Reader(arrays)
        # What save leaves out is not taken from a file either: a path for checkpoints would be written to at the next
        # fit.
        given = {name: value for name, value in content["parameters"].items() if name not in _DROPPED}
        model = classes[kind](**{name: reader.decoded(value) for name, value in given.items()})
        for name, value in content["fitted"].items():
            if not name.endswith("_") or name.startswith("_"):
                raise ValueError(f"{path}: {name!r} is not the name of a fitted attribute.")
            setattr(model, name, reader.decoded(value))
        model._mapping = reader.mapping(content["mapping"], model)
        model._validate_params()
    except (KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{path}: parts of the model are missing or of another kind ({error!r}).") from error
    return model


class _Writer:
    """Values as JSON, with the arrays in them apart."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}

    def encoded(self, value: Any, name: str) -> Any:  # noqa: PLR0911
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, list | tuple):
            return {"tuple": [self.encoded(part, f"{name}.{i}") for i, part in enumerate(value)]}
        if isinstance(value, dict):
            return {"dict": {str(key): self.encoded(part, f"{name}.{key}") for key, part in value.items()}}
        if scipy.sparse.issparse(value):
            rows = value.tocsr()
            parts = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr}
            return {
                "csr": {key: self.encoded(part, f"{name}.{key}") for key, part in parts.items()},
                "shape": list(rows.shape),
            }
        if isinstance(value, np.ndarray) and value.dtype.kind == "O" and all(isinstance(v, str) for v in value.flat):
            value = value.astype(str)  # names of features
        if isinstance(value, np.ndarray) and value.dtype.kind in "biufU":
            # An array that is held twice is written once.
            name = next((key for key, known in self.arrays.items() if known is value), name)
            self.arrays[name] = value
            return {"array": name}
        if type(value) in _OBJECTS.values():
            parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            encoded = {key: self.encoded(part, f"{name}.{key}") for key, part in parts.items()}
            return {"object": type(value).__name__, "parts": encoded}
        raise ValueError(
            f"{name}={value!r} cannot be saved: a file holds numbers, strings and arrays only. "
            f"Give {name} by such a value before fit, or keep the model in memory."
        )

    def mapping(self, mapping: Placement | Network | None, n_jobs: int | None) -> Any:
        if isinstance(mapping, Placement):
            with Workers(n_jobs) as workers:
                potential = mapping.potential(workers)
            return {
                "placement": self.encoded(mapping.X, "X"),
                "map": self.encoded(mapping.Y, "Y"),
                "potential": self.encoded(potential, "potential"),
                "perplexity": mapping.perplexity,
            }
        return self.encoded(mapping, "network")


class _Reader:
    """Values from JSON and arrays."""

    def __init__(self, arrays: dict[str, NDArray[Any]]) -> None:
        # Names become objects here, once: a file may refer to an array as often as it likes.
        self.arrays = {name: a.astype(object) if a.dtype.kind == "U" else a for name, a in arrays.items()}

    def decoded(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if "array" in value:
            return self.arrays[value["array"]]
        if "tuple" in value:
            return tuple(self.decoded(part) for part in value["tuple"])
        if "dict" in value:
            return {key: self.decoded(part) for key, part in value["dict"].items()}
        if "csr" in value:
            parts = (self.decoded(value["csr"][key]) for key in ("data", "indices", "indptr"))
            matrix = scipy.sparse.csr_matrix(tuple(parts), shape=tuple(value["shape"]))
            matrix.check_format()
            return matrix
        return _OBJECTS[value["object"]](**{key: self.decoded(part) for key, part in value["parts"].items()})

    def mapping(self, content: Any, model: Any) -> Placement | Network | None:
        if content is not None and "placement" in content:
            X, Y, potential = (self.decoded(content[part]) for part in ("placement", "map", "potential"))
            _check_data(X, model.n_features_in_)
            options = {"metric": model.metric, "metric_params": model.metric_params}
            return Placement(X, Y, potential, perplexity=float(content["perplexity"]), **options)
        return self.decoded(content)  # type: ignore[no-any-return]


def _check_data(X: Any, n_features: Any) -> None:
    """Refuse data that compiled code could not go through; fit has checked those that it was given."""
    if X is None:
        return
    values = X.data if scipy.sparse.issparse(X) else X
    if X.ndim != 2 or X.shape[1] != n_features or values.dtype.kind != "f" or not np.isfinite(values).all():
        raise ValueError(
            f"the data of the model, {values.dtype} of shape {X.shape}, are not {n_features} numbers a row."
        )
