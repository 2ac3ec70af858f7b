"""A fitted map: plain arrays and numbers, by which new points are placed, and which files hold."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils import check_array

from laptsne._runtime.files import read_archive, write_archive
from laptsne._runtime.threads import Workers
from laptsne.clusters.linkage import ClusterTree
from laptsne.clusters.table import ClusterTable
from laptsne.contraction.term import LazyPotential, Penalty
from laptsne.engine.schedule import Descent
from laptsne.fields.potential import Potential
from laptsne.fields.umap_kernel import UmapKernel
from laptsne.graph.distances import is_pairwise
from laptsne.kernels import Gaussian, Student
from laptsne.methods import Fit, Method, Metric
from laptsne.reliability import Reliability, reliability_of
from laptsne.transform.network import Network
from laptsne.transform.placement import Placement
from laptsne.transform.preprocessing import Preprocessing
from laptsne.transform.support import Support

# One memory layout: sums along rows and columns differ in their last bits between layouts.
CHECKS: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}
_IN_MEMORY: Any = {"saved": False}  # metadata of fields that files do not hold


@dataclass(frozen=True, eq=False, repr=False)
class FittedMap:
    """A map of data, and what is needed to place new points on it, to find their clusters, and to judge positions.

    Attributes
    ----------
    embedding : array of shape (n_samples, n_components)
    labels : array of shape (n_samples,)
        Cluster of each point, -1 for none.
    data : array or sparse matrix of shape (n_samples, n_features), or None
        The data, if new points are compared with them and they have features.
    network : Network or None
        The network by which new points are placed; otherwise they are placed by their neighbours in the data.
    method, affinities
        Those of the fit; None if the map was read from a file.
    """

    embedding: NDArray[Any]
    labels: NDArray[np.intp]
    n_clusters: int
    metric: Metric
    kernel: UmapKernel | None = None  # of the attraction; None for Student's
    contraction: float = 0.0
    contraction_width: float | None = None
    data: Any = None
    network: Network | None = None
    potential: Potential | LazyPotential | None = None  # repulsion and contraction, in which new points move
    spacing: Support | None = None  # distances within the data; those of features are computed when first needed
    preprocessing: Preprocessing | None = None  # steps that new rows go through first, as the data did
    is_sample: bool = False  # whether the points are a sample placed among landmarks, rather than embedded together
    method: Method | None = field(default=None, metadata=_IN_MEMORY)
    affinities: Any = field(default=None, metadata=_IN_MEMORY)

    @classmethod
    def of(cls, method: Method, X: Any, fit: Fit) -> FittedMap:
        """Return the map of a fit to data, which it keeps if they are features."""
        result, name = fit.result, method.metric.name
        fitted = cls(
            embedding=result.embedding.astype(X.dtype, copy=False),
            labels=fit.labels,
            n_clusters=fit.n_clusters,
            metric=method.metric,
            kernel=method.kernel if isinstance(method.kernel, UmapKernel) else None,
            contraction=result.contraction,
            contraction_width=result.contraction_width,
            data=None if result.potential is None or is_pairwise(name) else X,
            potential=result.potential,
            method=method,
            affinities=fit.affinities,
        )
        if name != "precomputed" or fitted.potential is None:
            return fitted
        # The distances are not kept.
        spacing = Support.of_data(X, fitted._placement.n_neighbors, Workers(1), metric="precomputed")
        return replace(fitted, spacing=spacing)

    def __post_init__(self) -> None:
        """Raise ValueError if the parts do not belong together: kernels that read them do not check bounds."""
        Y, labels, n_samples = self.embedding, self.labels, len(self.embedding)
        if Y.ndim != 2 or not 1 <= Y.shape[1] <= 3 or Y.dtype.kind != "f" or not np.isfinite(Y).all():
            raise ValueError(f"embedding: {Y.dtype} of shape {Y.shape} is not a finite map of 1 to 3 dimensions")
        if labels.shape != (n_samples,) or labels.dtype.kind not in "iu":
            raise ValueError(f"labels: {labels.dtype} of shape {labels.shape}, expected {n_samples} integers")
        if n_samples and (labels.min() < -1 or labels.max() >= self.n_clusters):
            raise ValueError(f"labels: from {labels.min()} to {labels.max()}, but n_clusters is {self.n_clusters}")
        X = self.data
        if X is not None:
            values = X.data if scipy.sparse.issparse(X) else X
            extremes = values.min(initial=0), values.max(initial=0)  # without a mask of the size of X
            if X.ndim != 2 or X.shape[0] != n_samples or values.dtype.kind != "f" or not np.isfinite(extremes).all():
                raise ValueError(f"data: {values.dtype} of shape {X.shape}, expected {n_samples} finite rows")
        if isinstance(self.potential, Potential) and self.potential.origin.size != Y.shape[1]:
            raise ValueError(f"potential: {self.potential.origin.size} dimensions, but the embedding has {Y.shape[1]}")
        if self.spacing is not None and len(self.spacing.spacing) != n_samples:
            raise ValueError(f"spacing: {len(self.spacing.spacing)} points, but the embedding has {n_samples}")
        if self.network is not None and self.network.n_components != Y.shape[1]:
            raise ValueError(f"network: {self.network.n_components} dimensions, but the embedding has {Y.shape[1]}")
        if self.preprocessing is not None and self.preprocessing.n_features_out not in (None, self._n_compared):
            raise ValueError(f"preprocessing: {self.preprocessing.n_features_out} columns, expected {self._n_compared}")

    def __repr__(self) -> str:
        return f"<FittedMap of {len(self.embedding):,} points in {self.embedding.shape[1]} dimensions>"

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling, without what is computed on demand."""
        return {part.name: getattr(self, part.name) for part in dataclasses.fields(self)}

    @property
    def n_features(self) -> int:
        """Number of columns that new rows have: features, or distances to the points of the data."""
        given = None if self.preprocessing is None else self.preprocessing.n_features_in
        return self._n_compared if given is None else given

    @property
    def obstacle(self) -> str | None:
        """Why new points cannot be placed, or None."""
        if self.network is not None:
            return None
        if self.metric.name == "affinities":
            return "a new point needs features or distances, but this model was fitted to affinities"
        if self.potential is None or (self.data is None and not is_pairwise(self.metric.name)):
            return "a new point needs a fit that was not interrupted, with kernel='student' or out_of_sample='network'"
        return None

    def place(self, X: Any, n_jobs: int | None = None) -> NDArray[Any]:
        """Return the positions of new points, each independent of the others, shape (n_points, n_components).

        X has rows of features, or of distances to the points of the map if it was fitted to distances.
        """
        if self.obstacle is not None:
            raise ValueError(f"{self.obstacle}.")
        with Workers(n_jobs) as workers:
            return (self.network or self._placement).place(self._prepared(X), workers)

    def support(self, X: Any, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Return the share of points of the data that are at least as isolated as each new point."""
        with Workers(n_jobs) as workers:
            return self._compared.supported(self._prepared(X), workers)

    def predict(self, X: Any, n_jobs: int | None = None) -> NDArray[np.int64]:
        """Return the cluster of each new point by a vote of its neighbours, -1 for none or too little support."""
        with Workers(n_jobs) as workers:
            return self._compared.labelled(self._prepared(X), self.labels, workers)

    def predict_proba(self, X: Any, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Return the share of each cluster in the affinities of new points, shape (n_points, n_clusters)."""
        with Workers(n_jobs) as workers:
            return self._compared.shared(self._prepared(X), self.labels, self.n_clusters, workers)

    def reliability(self, length: float | None = None, n_jobs: int | None = None) -> Reliability:
        """Compute how far each point moves if its data are nudged by ``length``; see :meth:`LaptSNE.diagnose`."""
        for obstacle, reason in (
            (self.kernel is not None, "scores are for the loss of t-SNE; fit a LaptSNE"),
            (self.is_sample, "scores need the affinities of all rows, not of landmarks; fit a LaptSNE to some of them"),
            (self.potential is None and self.network is None, "scores are for kernel='student'"),
        ):
            if obstacle:
                return Reliability(None, reason=reason)
        with Workers(n_jobs) as workers:
            potential = None if self.data is None else self._placement.computed_potential(workers)
            return reliability_of(self.data, self.embedding, potential, self.metric, length, workers)

    def computed(self, n_jobs: int | None = None) -> FittedMap:
        """Return the same map with the potential, if there is one, computed."""
        if not isinstance(self.potential, LazyPotential):
            return self
        with Workers(n_jobs) as workers:
            return replace(self, potential=self._placement.computed_potential(workers))

    def to_file(self, path: str | os.PathLike[str], **content: Any) -> int:
        """Write the map, and other plain values, to a file of arrays and JSON; return its size in bytes."""
        computed = self.computed()
        arrays: dict[str, NDArray[Any]] = {}
        saved = [part.name for part in dataclasses.fields(self) if part.metadata.get("saved", True)]
        content |= {name: getattr(computed, name) for name in saved}
        encoded = {name: _encoded(value, name, arrays) for name, value in content.items()}
        return write_archive(path, encoded, arrays)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> FittedMap:
        """Read a map written by :meth:`to_file`, or of a saved model, without running code from the file."""
        return read_model(path)[0]

    @property
    def _n_compared(self) -> int:
        """Number of columns that are compared with the data."""
        if self.network is not None:
            return int(self.network.mean.size)
        return int(len(self.embedding) if self.data is None else self.data.shape[1])

    def _prepared(self, X: Any) -> Any:
        """Return new rows as they are compared with the data; raise ValueError if they do not fit them."""
        steps = self.preprocessing
        X = check_array(X, ensure_min_samples=0, **CHECKS) if steps is None else steps.apply(X)
        if X.shape[1] != self._n_compared:
            raise ValueError(f"X has {X.shape[1]} features, but the map was fitted to {self._n_compared}.")
        if is_pairwise(self.metric.name) and (X.data if scipy.sparse.issparse(X) else X).min(initial=0) < 0:
            raise ValueError("metric='precomputed': X must hold non-negative distances to the training data.")
        return scipy.sparse.csr_matrix(X) if scipy.sparse.issparse(X) else X  # sparse arrays lack some methods

    @cached_property
    def _placement(self) -> Placement:
        options: dict[str, Any] = {"support": self.spacing, "kernel": self.kernel, "compared_by": self.metric.options}
        return Placement(self.data, self.embedding, self.potential, self.metric.perplexity, **options)

    @property
    def _compared(self) -> Placement:
        """The placement, by which new points are compared with the data."""
        without_data = "this map keeps no data to compare with; fit it with out_of_sample='placement'"
        reason = self.obstacle if self.network is None else without_data
        if reason is not None:
            raise ValueError(f"{reason}.")
        return self._placement


# Classes of which files hold objects.
_CLASSES = (ClusterTable, ClusterTree, Descent, Gaussian, Metric, Network, Penalty, Potential, Preprocessing)
_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (*_CLASSES, Reliability, Student, Support, UmapKernel)}
_CSR = ("data", "indices", "indptr")


def read_model(path: str | os.PathLike[str]) -> tuple[FittedMap, dict[str, Any]]:
    """Read a map and the other values in its file; raise ValueError if it is damaged or anything else."""
    content, arrays = read_archive(path)
    try:
        # Text is converted here, once: a file may refer to an array any number of times.
        arrays = {name: a.astype(object) if a.dtype.kind == "U" else a for name, a in arrays.items()}
        values = {name: _decoded(value, arrays) for name, value in _converted(content).items()}
        parts = {part.name: values.pop(part.name, part.default) for part in dataclasses.fields(FittedMap)}
        return FittedMap(**parts), values
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        raise ValueError(f"{path}: parts of the model are missing or of the wrong type ({error!r}).") from error
    except ValueError as error:
        raise ValueError(f"{path}: parts of the model do not belong together ({error}).") from error


def _converted(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a file of version 0.1.0 as that of the present version; others as they are."""
    if "mapping" not in content:
        return content
    content = dict(content)
    mapping, fitted, parameters = content.pop("mapping") or {}, content["fitted"], content["parameters"]
    metric = {"name": parameters["metric"], "params": parameters["metric_params"]}
    metric["perplexity"] = mapping.get("perplexity", fitted["perplexity_"])
    # With landmarks, labels_ are those of the landmarks, and the map is that of all sampled rows.
    own = fitted.get("landmark_embedding_", fitted.get("embedding_"))
    return content | {
        "metric": {"object": "Metric", "parts": metric},
        "n_clusters": fitted["n_clusters_"],
        "embedding": mapping.get("map", own),
        "labels": fitted.get("sample_labels_", fitted["labels_"]),
        "data": mapping.get("placement"),
        "potential": mapping.get("landscape"),
        "network": None if "placement" in mapping else mapping or None,
        "fitted": fitted | {"landmark_labels_": fitted["labels_"]},
    }


def _encoded(value: Any, name: str, arrays: dict[str, NDArray[Any]]) -> Any:
    """Return a value as JSON, and add the arrays in it to ``arrays``."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind == "O" and all(isinstance(v, str) for v in value.flat):
        value = value.astype(str)  # feature names
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufU":
        # An array that occurs twice is written once.
        name = next((key for key, known in arrays.items() if known is value), name)
        arrays[name] = value
        return {"array": name}

    def parts(values: dict[Any, Any]) -> dict[str, Any]:
        return {str(key): _encoded(part, f"{name}.{key}", arrays) for key, part in values.items()}

    if isinstance(value, list | tuple):
        return {"tuple": list(parts(dict(enumerate(value))).values())}
    if isinstance(value, dict):
        return {"dict": parts(value)}
    if scipy.sparse.issparse(value):
        rows = value.tocsr()
        return {"csr": parts({key: getattr(rows, key) for key in _CSR}), "shape": list(rows.shape)}
    if type(value) in _KINDS.values():
        attributes = {part.name: getattr(value, part.name) for part in dataclasses.fields(value)}
        return {"object": type(value).__name__, "parts": parts(attributes)}
    kept = f"Use such a value of {name} before fit, or keep the model in memory."
    raise ValueError(f"{name}={value!r} cannot be saved: model files hold numbers, strings and arrays only. {kept}")


def _decoded(value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """Return what :func:`_encoded` made JSON of."""
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "tuple" in value:
        return tuple(_decoded(part, arrays) for part in value["tuple"])
    kind = next((kind for kind in ("dict", "csr", "parts") if kind in value), None)
    parts = {key: _decoded(part, arrays) for key, part in (value if kind is None else value[kind]).items()}
    if kind == "csr":
        matrix = scipy.sparse.csr_matrix(tuple(parts[key] for key in _CSR), shape=tuple(value["shape"]))
        matrix.check_format()
        return matrix
    if kind == "parts":
        # "Landscape" is the name of Potential in version 0.1.0, whose Descent had more settings.
        name = "Potential" if value["object"] == "Landscape" else value["object"]
        known = {part.name for part in dataclasses.fields(_KINDS[name])}
        known_parts = {key: part for key, part in parts.items() if key in known}
        # The evidence of earlier versions was another one; it is computed anew.
        return None if name == "ClusterTable" and "chance" not in parts else _KINDS[name](**known_parts)
    return parts
