"""Preprocessing of a dataset: what is fitted to it, applied to it, and stored with the model for new rows."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.preprocessing import RobustScaler, StandardScaler

from laptsne._runtime.threads import single_threaded_blas
from laptsne.cli.errors import InputError
from laptsne.cli.options import FeatureOptions, Imputation, Scaling
from laptsne.cli.tables.dataset import Dataset
from laptsne.cli.tables.missing import check_complete, is_incomplete

Vector = NDArray[np.float64]
_BLOCK = 256  # rows projected at a time


@dataclass(frozen=True)
class Preprocessing:
    """Steps in the order of their fields; None leaves a step out."""

    impute: str | None = None  # "median" or "drop"
    medians: Vector | None = None  # by which missing values are replaced
    log1p: bool = False
    center: Vector | None = None  # subtracted from the features,
    spread: Vector | None = None  # by which they are then divided
    mean: Vector | None = None  # of the features before projection
    components: Vector | None = None  # principal components, of shape (n_components, n_features)

    @classmethod
    def fitted(cls, dataset: Dataset, options: FeatureOptions) -> Preprocessing:
        """Return the steps that the options ask for, fitted to the rows of a dataset that they keep."""
        impute = None if options.impute is None else options.impute.value
        steps = cls(impute, log1p=options.log1p)
        if options.impute is Imputation.median:
            steps = replace(steps, medians=_medians(dataset))
        scales = options.scale not in (None, Scaling.none)
        if not scales and options.pca is None:
            return steps
        X = steps.apply(steps.kept(dataset))
        if scales:
            steps = replace(steps, **_scaling(X, options.scale))
            X = _scaled(X, steps.center, steps.spread)
        return steps if options.pca is None else replace(steps, **_projection(X, options.pca))

    def kept(self, dataset: Dataset) -> Dataset:
        """Return the rows that are embedded: those without missing values if the others are dropped."""
        if self.impute != "drop":
            return dataset
        incomplete = is_incomplete(dataset.X)
        if not incomplete.any():
            return dataset
        note = f"left out, since values are missing: {incomplete.sum()} of {len(incomplete)} rows"
        if incomplete.all():
            raise InputError(
                f"{dataset.name}: values are missing in every row; give --impute median, or --drop columns."
            )
        return replace(dataset.rows(~incomplete), notes=(*dataset.notes, note))

    def apply(self, dataset: Dataset) -> Any:
        """Return the features as they are embedded."""
        X = dataset.X
        if self.medians is not None and not scipy.sparse.issparse(X):
            X = np.where(np.isnan(X), self.medians.astype(X.dtype), X)
        check_complete(dataset, X)
        if self.log1p:
            X = _logged(dataset, X)
        X = _scaled(X, self.center, self.spread)
        if self.components is None or self.mean is None:
            return X
        with single_threaded_blas():
            return _projected(X, self.mean.astype(X.dtype), self.components.astype(X.dtype))

    @property
    def is_trivial(self) -> bool:
        """Whether nothing is changed but missing values."""
        return not self.log1p and self.spread is None and self.components is None

    def to_dict(self) -> dict[str, Any]:
        """Return what a model file stores."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    @classmethod
    def from_dict(cls, stored: dict[str, Any], n_features: int) -> Preprocessing:
        """Return the steps of a model file; raise ValueError if they do not fit each other or the model."""
        steps = cls(**{part.name: stored.get(part.name, part.default) for part in fields(cls)})
        vectors = [part for part in (steps.medians, steps.center, steps.spread, steps.mean) if part is not None]
        arrays = vectors if steps.components is None else [*vectors, steps.components]
        if not all(isinstance(array, np.ndarray) and array.dtype.kind == "f" and array.size for array in arrays):
            raise ValueError("the preprocessing is not made of arrays of numbers")
        widths = {array.shape[-1] for array in arrays}
        n_output = n_features if steps.components is None else len(steps.components)
        if steps.components is None:
            widths |= {n_features}
        if len(widths) > 1 or n_output != n_features or (steps.components is None) != (steps.mean is None):
            raise ValueError("the preprocessing does not fit the model")
        if (steps.center is None) != (steps.spread is None):
            raise ValueError("the preprocessing is not complete")
        return steps


def _medians(dataset: Dataset) -> Vector | None:
    X = dataset.X
    if scipy.sparse.issparse(X):
        return None
    empty = np.flatnonzero(np.isnan(X).all(axis=0))
    if empty.size:
        name = f"column {empty[0] + 1}" if dataset.features is None else dataset.features[empty[0]]
        raise InputError(f"{dataset.name}: {name} has no values, so that it has no median; leave it out with --drop.")
    medians: Vector = np.nanmedian(X, axis=0).astype(np.float64)
    return medians


def _logged(dataset: Dataset, X: Any) -> Any:
    values = X.data if scipy.sparse.issparse(X) else X
    lowest = values.min(initial=0)
    if lowest <= -1:
        raise InputError(
            f"--log1p needs values above -1, but {dataset.name} has {lowest:.4g}; remove --log1p, or --drop the column."
        )
    if not scipy.sparse.issparse(X):
        return np.log1p(X)
    X = X.astype(np.result_type(X.dtype, np.float32))
    return X.log1p()


def _scaling(X: Any, scale: Scaling | None) -> dict[str, Any]:
    """Return what each feature is shifted and divided by. Sparse features are only divided, to stay sparse."""
    sparse = scipy.sparse.issparse(X)
    if scale is Scaling.robust:
        if sparse:
            raise InputError("--scale robust needs dense data, and these are sparse; give --scale standard.")
        robust = RobustScaler().fit(X)
        return {"center": robust.center_.astype(np.float64), "spread": robust.scale_.astype(np.float64)}
    standard = StandardScaler(with_mean=not sparse).fit(X)
    center = np.zeros(X.shape[1]) if sparse else standard.mean_
    return {"center": center.astype(np.float64), "spread": standard.scale_.astype(np.float64)}


def _scaled(X: Any, center: Vector | None, spread: Vector | None) -> Any:
    if center is None or spread is None:
        return X
    if scipy.sparse.issparse(X):
        return (X @ scipy.sparse.diags_array(1 / spread)).tocsr().astype(X.dtype)
    return (X - center.astype(X.dtype)) / spread.astype(X.dtype)


def _projection(X: Any, n_components: int) -> dict[str, Any]:
    """Return the mean and the principal components of the features."""
    n_possible = min(X.shape) - scipy.sparse.issparse(X)
    if n_components > n_possible:
        raise InputError(
            f"--pca {n_components} is too many: {X.shape[0]} rows of {X.shape[1]} features have at most {n_possible}."
        )
    solver = "arpack" if scipy.sparse.issparse(X) else "auto"
    with single_threaded_blas():
        pca = PCA(n_components, svd_solver=solver, random_state=0).fit(X)
    return {"mean": pca.mean_.astype(np.float64), "components": pca.components_.astype(np.float64)}


def _projected(X: Any, mean: NDArray[Any], components: NDArray[Any]) -> NDArray[Any]:
    """Return principal components of rows, each with the same bits whatever rows are beside it."""
    if scipy.sparse.issparse(X):
        return np.asarray(X @ components.T - mean @ components.T)
    projected = np.empty((X.shape[0], len(components)), X.dtype)
    block = np.zeros((_BLOCK, X.shape[1]), X.dtype)
    for start in range(0, len(X), _BLOCK):
        rows = X[start : start + _BLOCK]
        block[: len(rows)] = rows - mean
        projected[start : start + _BLOCK] = (block @ components.T)[: len(rows)]
    return projected
