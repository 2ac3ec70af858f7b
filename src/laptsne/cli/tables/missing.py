"""Missing values and unequal scales among the features of a dataset."""

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from laptsne.cli.errors import InputError
from laptsne.cli.tables.dataset import Dataset, listed

_MAX_RATIO = 100.0  # of two variances: distances then hardly depend on the smaller one


def is_incomplete(X: Any) -> NDArray[np.bool_]:
    """Return which rows have missing values; sparse matrices have none, as they are checked when they are read."""
    if scipy.sparse.issparse(X):
        return np.zeros(X.shape[0], bool)
    incomplete: NDArray[np.bool_] = np.isnan(X).any(axis=1)
    return incomplete


def check_complete(dataset: Dataset, X: Any) -> None:
    """Raise InputError, with the columns and the number of missing values in each, if some are missing."""
    incomplete = is_incomplete(X)
    if not incomplete.any():
        return
    counts = np.isnan(X).sum(axis=0)
    if dataset.inputs is None or len(counts) != sum(dataset.inputs.values()):
        names = list(dataset.features or ()) or [f"column {i + 1}" for i in range(len(counts))]
    else:  # a list is missing as a whole, so that its first value stands for it
        starts = np.cumsum([0, *dataset.inputs.values()])
        counts = np.array([counts[start:stop].max() for start, stop in pairwise(starts)])
        names = list(dataset.inputs)
    found = [f"{names[i]} ({counts[i]})" for i in np.flatnonzero(counts)]
    row = int(np.flatnonzero(incomplete)[0]) + dataset.first_row
    raise InputError(
        f"{dataset.name}: values are missing in {incomplete.sum()} of {len(incomplete)} rows, the first in row {row}; "
        f"by column: {listed(found)}. Give --impute median to fill them in, --impute drop to leave out these rows, or "
        "--drop to leave out columns."
    )


def scale_warning(dataset: Dataset, X: Any) -> str | None:
    """Return a warning if the columns of a table have such different variances that only the widest matter."""
    if dataset.inputs is None or len(dataset.inputs) < 2:
        return None
    starts = np.cumsum([0, *dataset.inputs.values()])[:-1]
    deviations = np.sqrt(np.add.reduceat(X.var(axis=0), starts) / list(dataset.inputs.values()))
    varying = np.flatnonzero(deviations > 0)
    if not varying.size:
        return None
    wide, narrow = varying[deviations[varying].argmax()], varying[deviations[varying].argmin()]
    ratio = float(deviations[wide] / deviations[narrow]) ** 2
    if ratio <= _MAX_RATIO:
        return None
    names = list(dataset.inputs)
    widest, narrowest = (f"{names[i]} (standard deviation {deviations[i]:.3g})" for i in (wide, narrow))
    return (
        f"the variances of the columns differ by a factor of {ratio:.3g}, so that some hardly count: the widest is "
        f"{widest}, the narrowest {narrowest}. Give --scale standard to let all count alike, or --scale none to keep "
        "them as they are."
    )
