"""A table of features that set groups of points apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SHOWN = 20  # comparisons in the representation


@dataclass(frozen=True, repr=False, eq=False)
class FeatureTable:
    """Features that set groups of points apart, the most distinguishing of each comparison first.

    Attributes
    ----------
    cluster : array of shape (n_rows,)
        The group.
    against : array of shape (n_rows,)
        What it is compared with: "rest", or the label of another cluster as text.
    feature : array of shape (n_rows,)
        Name of the feature.
    auc : array of shape (n_rows,)
        Probability that the feature is larger for a random point of the group than for one of the others, ties counting
        half: 0.5 for no difference, 0 if it is always smaller.
    effect : array of shape (n_rows,)
        Difference of the means in pooled standard deviations (Cohen's d).
    mean, mean_against : arrays of shape (n_rows,)
        Means of the feature in the two groups.
    """

    cluster: NDArray[np.int64]
    against: NDArray[np.str_]
    feature: NDArray[Any]
    auc: NDArray[np.float64]
    effect: NDArray[np.float64]
    mean: NDArray[np.float64]
    mean_against: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.cluster)

    def __repr__(self) -> str:
        """Return the first feature of each comparison."""
        starts = [i for i in range(len(self)) if i == 0 or self._comparison(i) != self._comparison(i - 1)]
        lines = [f"{self._comparison(i)}: {self.feature[i]} (AUC {self.auc[i]:.2f})" for i in starts[:_SHOWN]]
        more = [f"{len(starts) - _SHOWN} more comparisons"] * (len(starts) > _SHOWN)
        return "\n  ".join([f"<FeatureTable of {len(self)} rows; the first of each comparison:", *lines, *more]) + ">"

    def _comparison(self, i: int) -> str:
        return f"{self.cluster[i]} against {self.against[i]}"

    def to_pandas(self) -> Any:
        """Return the table as a pandas DataFrame."""
        import pandas as pd  # noqa: PLC0415  # optional

        return pd.DataFrame(vars(self))
