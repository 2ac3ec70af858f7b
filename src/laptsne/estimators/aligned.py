"""Maps of successive data with common rows, which stay near their earlier positions."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from laptsne.estimators.base import UpdatableEstimator
from laptsne.estimators.laptsne import LaptSNE


def align(
    slices: Sequence[Any],
    ids: Sequence[Iterable[Hashable]],
    estimator: UpdatableEstimator | None = None,
    *,
    weight: float = 50,
) -> list[UpdatableEstimator]:
    """Compute comparable maps of successive data, such as those of each year, in which some rows are the same things.

    There is one fitted estimator per slice, with its map as ``embedding_``. The first map is an ordinary one. In each
    of the following, a row is held near the last position of its id by :meth:`laptsne.LaptSNE.update`, and rows with
    new ids are free. A map does not depend on later slices.

    Parameters
    ----------
    slices : sequence of arrays of shape (n_samples, n_features)
        The data; the features of a row may change, and so may the numbers of rows and of features.
    ids : sequence of sequences of shape (n_samples,)
        What the rows of each slice are, such as names or ``X.index``; an id occurs at most once in a slice.
    estimator : LaptSNE or LapUMAP, optional
        The parameters, ``LaptSNE()`` by default. It is not changed.
    weight : float, default=50
        As in ``update``: larger weights keep rows in place, and smaller ones follow changes.

    Examples
    --------
    >>> import numpy as np
    >>> import laptsne
    >>> X = np.random.default_rng(0).normal(size=(150, 5))
    >>> ids = [range(100), range(50, 150)]
    >>> models = laptsne.align([X[:100], X[50:]], ids, laptsne.LaptSNE(max_iter=100, random_state=0))
    >>> [model.embedding_.shape for model in models]
    [(100, 2), (100, 2)]
    """
    estimator = LaptSNE() if estimator is None else estimator
    if not isinstance(estimator, UpdatableEstimator):
        raise TypeError(f"estimator must be a LaptSNE or a LapUMAP, got {type(estimator).__name__}.")
    names = [list(given) for given in ids]
    if len(names) != len(slices):
        raise ValueError(f"ids must have one sequence for each of the {len(slices)} slices, got {len(names)}.")
    for i, (X, given) in enumerate(zip(slices, names, strict=True)):
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if not len(set(given)) == len(given) == n_rows:
            distinct = f"{len(given)} ids, {len(set(given))} of them distinct"
            raise ValueError(f"ids[{i}] must have a different id for each of the {n_rows} rows, got {distinct}.")
    models: list[UpdatableEstimator] = []
    last: dict[Hashable, Any] = {}
    for X, given in zip(slices, names, strict=True):
        model = clone(estimator)
        if models:
            free = np.full(models[-1].embedding_.shape[1], np.nan)
            model.update(X, np.array([last.get(name, free) for name in given]), weight=weight)
        else:
            model.fit(X)
        models.append(model)
        last.update(zip(given, model.embedding_, strict=True))
    return models
