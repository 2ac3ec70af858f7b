"""Steps applied to the columns of the data before they are embedded, and later to those of new points."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from laptsne._runtime.threads import single_threaded_blas
from laptsne._runtime.typing import Array

# Rows per matrix product, the last ones padded: the bits of a product depend on its shape, and the result of a row must
# not depend on the other rows of the call.
_BLOCK = 256


def in_blocks(function: Callable[[Array], Array], X: Any, n_columns: int, dtype: Any) -> Array:
    """Return the rows that a function computes of rows, given in blocks of one size."""
    result, block = np.empty((X.shape[0], n_columns), dtype), np.zeros((_BLOCK, X.shape[1]), X.dtype)
    with single_threaded_blas():
        for start in range(0, X.shape[0], _BLOCK):
            rows = X[start : start + _BLOCK]
            block[: rows.shape[0]] = rows.toarray() if scipy.sparse.issparse(rows) else rows
            result[start : start + _BLOCK] = function(block)[: rows.shape[0]]
    return result


@dataclass(frozen=True, eq=False)
class Preprocessing:
    """Steps in the order of their fields; None leaves a step out. Arrays are checked, since they may be from a file."""

    impute: str | None = None  # "median", or "drop" for rows with missing values, which apply refuses
    medians: Array | None = None  # replace missing values; this and the next are of shape (n_features,)
    log1p: bool = False
    center: Array | None = None  # subtracted from the features,
    spread: Array | None = None  # by which they are then divided
    mean: Array | None = None  # of the features before projection
    components: Array | None = None  # principal components, of shape (n_components, n_features)

    def __post_init__(self) -> None:
        if self.impute not in (None, "median", "drop") or not isinstance(self.log1p, bool):
            raise ValueError(f"impute={self.impute!r} or log1p={self.log1p!r} is not a known step.")
        for name, array in self._arrays.items():
            n_dims = 2 if name == "components" else 1
            if not isinstance(array, np.ndarray) or array.dtype.kind != "f" or array.ndim != n_dims or not array.size:
                raise ValueError(f"{name} of the preprocessing is not an array of floats with {n_dims} dimensions.")
            if not np.isfinite(array).all():
                raise ValueError(f"{name} of the preprocessing is not finite.")
        if (self.center is None) != (self.spread is None) or (self.mean is None) != (self.components is None):
            raise ValueError("the preprocessing lacks one of center and spread, or one of mean and components.")
        widths = {name: array.shape[-1] for name, array in self._arrays.items()}
        if len(set(widths.values())) > 1:
            raise ValueError(f"the arrays of the preprocessing differ in their number of features: {widths}.")
        if self.spread is not None and not (self.spread > 0).all():
            raise ValueError("spread of the preprocessing is not positive.")

    @property
    def _arrays(self) -> dict[str, Array]:
        names = ("medians", "center", "spread", "mean", "components")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    @property
    def n_features_in(self) -> int | None:
        """Number of columns that the steps expect, None if they take any number."""
        return next((array.shape[-1] for array in self._arrays.values()), None)

    @property
    def n_features_out(self) -> int | None:
        """Number of columns that the steps return, None if it is that of their input."""
        return self.n_features_in if self.components is None else len(self.components)

    @property
    def is_empty(self) -> bool:
        """Whether there are no steps."""
        return self.impute is None and not self.log1p and not self._arrays

    def apply(self, X: Any) -> Any:
        """Return the features as they are embedded, in single precision if X is. X may be sparse.

        ValueError is raised if X does not fit the steps, or has missing values that no step replaces.
        """
        if self.n_features_in not in (None, X.shape[1]):
            raise ValueError(f"X has {X.shape[1]} features, but the preprocessing was fitted to {self.n_features_in}.")
        X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
        sparse = scipy.sparse.issparse(X)
        missing = np.isnan(X.data if sparse else X)
        if missing.any():
            if sparse or self.medians is None:
                raise ValueError(
                    f"X has {missing.sum()} missing values (NaN), and the preprocessing replaces none; fill them in, "
                    "or remove these rows."
                )
            X = np.where(missing, self.medians.astype(X.dtype), X)
        if self.log1p:
            lowest = (X.data if sparse else X).min(initial=0)
            if lowest <= -1:
                raise ValueError(f"log1p needs values above -1, but X has {lowest:.4g}; remove it, or such columns.")
            X = X.log1p() if sparse else np.log1p(X)
        if self.center is not None and self.spread is not None:
            if sparse:  # only divided, so that they stay sparse
                X = (X @ scipy.sparse.diags_array(1 / self.spread)).tocsr().astype(X.dtype)
            else:
                X = (X - self.center.astype(X.dtype)) / self.spread.astype(X.dtype)
        if self.mean is not None and self.components is not None:
            mean, components = self.mean.astype(X.dtype), self.components.astype(X.dtype)
            if sparse:  # which centring would make dense
                return np.asarray(X @ components.T - mean @ components.T)
            return in_blocks(lambda block: (block - mean) @ components.T, X, len(components), X.dtype)
        return X
