"""Saving and loading of fitted models."""

import dataclasses
import os
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from laptsne._runtime.files import read_archive, write_archive
from laptsne._runtime.threads import Workers
from laptsne.clusters.table import ClusterTable
from laptsne.engine.descent import Descent
from laptsne.fields.potential import Potential
from laptsne.kernels import Gaussian, Student
from laptsne.reliability import Reliability
from laptsne.transform import Network, Placement
from laptsne.transform.support import Support

# Parameters that a fitted model does not need and that may be arbitrary objects: saved as None.
_DROPPED = {"callbacks", "checkpoint"}
_OBJECTS: dict[str, Any] = {
    kind.__name__: kind for kind in (Descent, Gaussian, Student, Potential, Network, Reliability, Support, ClusterTable)
}
# Names and parts of version 0.1.0.
_READABLE: dict[str, Any] = _OBJECTS | {"Landscape": Potential, "Reliability": Reliability.of_parts}


class PersistenceMixin:
    """Methods of the estimators that write them to files and read them."""

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write the fitted model to a file of arrays and JSON, without pickle.

        ``affinities_``, ``callbacks``, and a ``random_state`` that is not a number are not saved. The file contains the
        data if :meth:`transform` needs them, which is the case with ``out_of_sample="placement"``.

        An existing file is replaced atomically. The size of the file in bytes is returned.
        """
        check_is_fitted(self)
        return save_model(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model written by :meth:`save`, without running code from the file.

        ValueError is raised if the file is damaged, of a newer version or of another format.
        """
        model: Self = load_model(path, {kind.__name__: kind for kind in (cls, *cls.__subclasses__())})
        return model


def save_model(model: Any, path: str | os.PathLike[str]) -> int:
    """Write a fitted model; return the size of the file in bytes."""
    writer = _Writer()
    parameters = {
        name: None if name in _DROPPED or isinstance(value, np.random.RandomState | np.random.Generator) else value
        for name, value in model.get_params(deep=False).items()
    }
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_") and name not in model._not_saved}
    # While there are affinities to compute them from; a model of an earlier version may have no clusters.
    fitted |= {"data_eigenvalues_": model.data_eigenvalues_, "clusters_": getattr(model, "clusters_", None)}
    content = {
        "class": type(model).__name__,
        "parameters": {name: writer.encode(value, name) for name, value in parameters.items()},
        "fitted": {name: writer.encode(value, name) for name, value in fitted.items() if not name.startswith("_")},
        "mapping": writer.encode_mapping(model._mapping, model.n_jobs),
    }
    return write_archive(path, content, writer.arrays)


def load_model(path: str | os.PathLike[str], classes: dict[str, Any]) -> Any:
    """Read a model of one of the given classes, by name; raise ValueError if the file holds anything else."""
    content, arrays = read_archive(path)
    try:
        kind = content["class"]
        if kind not in classes:
            raise ValueError(f"{path} holds a model of class {kind!r}; load it with laptsne.{kind}.load.")
        reader = _Reader(arrays)
        # Not taken from a file even if present: the next fit would write to a checkpoint path of the file's choice.
        given = {name: value for name, value in content["parameters"].items() if name not in _DROPPED}
        model = classes[kind](**{name: reader.decode(value) for name, value in given.items()})
        for name, value in content["fitted"].items():
            if not name.endswith("_") or name.startswith("_"):
                raise ValueError(f"{path}: {name!r} is not the name of a fitted attribute.")
            setattr(model, name, reader.decode(value))
        model._mapping = reader.decode_mapping(content["mapping"], model)
        model._validate_params()
        _check_fitted(model)
    except (KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{path}: parts of the model are missing or of the wrong type ({error!r}).") from error
    return model


class _Writer:
    """Encode values as JSON and collect the arrays in them."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}

    def encode(self, value: Any, name: str) -> Any:  # noqa: PLR0911
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, list | tuple):
            return {"tuple": [self.encode(part, f"{name}.{i}") for i, part in enumerate(value)]}
        if isinstance(value, dict):
            return {"dict": self._encode_parts(value, name)}
        if scipy.sparse.issparse(value):
            rows = value.tocsr()
            parts = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr}
            return {"csr": self._encode_parts(parts, name), "shape": list(rows.shape)}
        if isinstance(value, np.ndarray) and value.dtype.kind == "O" and all(isinstance(v, str) for v in value.flat):
            value = value.astype(str)  # feature names
        if isinstance(value, np.ndarray) and value.dtype.kind in "biufU":
            # An array that occurs twice is written once.
            name = next((key for key, known in self.arrays.items() if known is value), name)
            self.arrays[name] = value
            return {"array": name}
        if type(value) in _OBJECTS.values():
            parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return {"object": type(value).__name__, "parts": self._encode_parts(parts, name)}
        raise ValueError(
            f"{name}={value!r} cannot be saved: model files hold numbers, strings and arrays only. "
            f"Use such a value of {name} before fit, or keep the model in memory."
        )

    def _encode_parts(self, parts: dict[Any, Any], name: str) -> dict[str, Any]:
        return {str(key): self.encode(part, f"{name}.{key}") for key, part in parts.items()}

    def encode_mapping(self, mapping: Placement | Network | None, n_jobs: int | None) -> Any:
        if not isinstance(mapping, Placement):
            return self.encode(mapping, "network")
        with Workers(n_jobs) as workers:
            potential = mapping.potential(workers)
        arrays = {"placement": self.encode(mapping.X, "X"), "map": self.encode(mapping.Y, "Y")}
        arrays |= {"support": self.encode(mapping.support, "support")}
        return arrays | {"potential": self.encode(potential, "potential"), "perplexity": mapping.perplexity}


class _Reader:
    """Decode values from JSON and arrays."""

    def __init__(self, arrays: dict[str, NDArray[Any]]) -> None:
        # Converted here, once: a file may refer to an array any number of times.
        self.arrays = {name: a.astype(object) if a.dtype.kind == "U" else a for name, a in arrays.items()}

    def decode(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if "array" in value:
            return self.arrays[value["array"]]
        if "tuple" in value:
            return tuple(self.decode(part) for part in value["tuple"])
        if "dict" in value:
            return {key: self.decode(part) for key, part in value["dict"].items()}
        if "csr" in value:
            parts = (self.decode(value["csr"][key]) for key in ("data", "indices", "indptr"))
            matrix = scipy.sparse.csr_matrix(tuple(parts), shape=tuple(value["shape"]))
            matrix.check_format()
            return matrix
        return _READABLE[value["object"]](**{key: self.decode(part) for key, part in value["parts"].items()})

    def decode_mapping(self, content: Any, model: Any) -> Placement | Network | None:
        if content is None or "placement" not in content:
            return self.decode(content)  # type: ignore[no-any-return]
        name = "landscape" if "landscape" in content else "potential"  # the former in files of version 0.1.0
        X, Y, potential = (self.decode(content[part]) for part in ("placement", "map", name))
        _check_data(X, model.n_features_in_)
        options = {"metric": model.metric, "metric_params": model.metric_params, "kernel": model._placement_kernel()}
        options["support"] = self.decode(content.get("support"))  # not in files of version 0.1.0
        return Placement(X, Y, potential, perplexity=float(content["perplexity"]), **options)


def _check_fitted(model: Any) -> None:
    """Raise ValueError if fitted attributes do not belong together: compiled code does not check bounds."""
    Y, labels = getattr(model, "landmark_embedding_", getattr(model, "embedding_", None)), model.labels_
    expected = (len(Y), model.n_components) if isinstance(Y, np.ndarray) and Y.ndim == 2 else None
    if expected is None or Y.shape != expected or Y.dtype.kind != "f" or not np.isfinite(Y).all():
        raise ValueError(f"embedding_ is not a finite array with n_components={model.n_components} columns.")
    _check_labels("labels_", labels, len(Y), model.n_clusters_)
    if isinstance(model._mapping, Placement):
        mapped = model._mapping.Y
        if hasattr(model, "sample_labels_"):
            _check_labels("sample_labels_", model.sample_labels_, len(mapped), model.n_clusters_)
        elif mapped.shape != Y.shape or mapped.tobytes() != Y.tobytes():
            raise ValueError(f"map of shape {mapped.shape} differs from embedding_ of shape {Y.shape}.")
        if model._mapping.X is None and model.n_features_in_ != len(mapped):
            raise ValueError(f"n_features_in_ is {model.n_features_in_}, but there are {len(mapped)} points.")
    if isinstance(model._mapping, Network) and model._mapping.mean.shape != (model.n_features_in_,):
        raise ValueError(f"n_features_in_ is {model.n_features_in_}, but the network has {model._mapping.mean.shape}.")


def _check_labels(name: str, labels: Any, n_samples: int, n_clusters: Any) -> None:
    if not isinstance(labels, np.ndarray) or labels.shape != (n_samples,) or labels.dtype.kind not in "iu":
        raise ValueError(f"{name} is not one integer for each of {n_samples} points.")
    if labels.min() < -1 or labels.max() >= n_clusters:
        raise ValueError(f"{name} has values from {labels.min()} to {labels.max()}, but n_clusters_ is {n_clusters}.")


def _check_data(X: Any, n_features: Any) -> None:
    """Raise ValueError for data that fit would have refused: compiled code does not check bounds."""
    if X is None:
        return
    values = X.data if scipy.sparse.issparse(X) else X
    if X.ndim != 2 or X.shape[1] != n_features or values.dtype.kind != "f" or not np.isfinite(values).all():
        raise ValueError(
            f"data of the model: {values.dtype} of shape {X.shape}, not finite with {n_features} features."
        )
