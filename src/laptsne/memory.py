"""The memory that a fit needs, before it is run."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from laptsne.estimator import LaptSNE
from laptsne.landmarks import LandmarkLaptSNE
from laptsne.lapumap import LapUMAP
from laptsne.sampling import Sampler

_ESTIMATORS = (LaptSNE, LandmarkLaptSNE, LapUMAP)


def estimate_memory(
    n_samples: int,
    n_features: int,
    *,
    dtype: DTypeLike = np.float64,
    estimator: type[LaptSNE] | None = None,
    **settings: Any,
) -> int:
    """Estimate the peak memory of a fit, in bytes.

    It is the growth of the process during ``estimator(**settings).fit(X)``, in addition to X and the loaded libraries,
    and mostly within a quarter of the measured one. The fraction of mutual neighbours, the number of clusters if it is
    "auto", and the area of the embedding are not known beforehand; typical values are assumed.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of X; with ``metric="precomputed"`` it is square and dense.
    dtype : dtype, default=float64
        Single precision, or double precision for all others.
    estimator : class, optional
        :class:`LaptSNE`, :class:`LandmarkLaptSNE` or :class:`LapUMAP`. None is the second with ``n_landmarks``, and the
        first without.
    **settings
        Parameters of the estimator.

    Returns
    -------
    n_bytes : int

    Examples
    --------
    A million points with 50 features, and all pairs of 20,000 points, in GiB:

    >>> from laptsne import estimate_memory
    >>> 1.5 < estimate_memory(1_000_000, 50) / 2**30 < 3
    True
    >>> 2 < estimate_memory(20_000, 50, n_neighbors="all", method="exact") / 2**30 < 4
    True
    """
    for name, value in (("n_samples", n_samples), ("n_features", n_features)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}.")
    if estimator is None:
        estimator = LandmarkLaptSNE if "n_landmarks" in settings else LaptSNE
    if estimator not in _ESTIMATORS:
        names = ", ".join(known.__name__ for known in _ESTIMATORS)
        raise ValueError(f"estimator={estimator!r} is not known; give one of the classes {names}.")
    model = estimator(**settings)
    model._validate_params()
    itemsize = 4 if np.dtype(dtype) == np.float32 else 8
    if not isinstance(model, LandmarkLaptSNE):
        return model._demand_class.of(model, n_samples, n_features, itemsize).peak
    n_sampled = min(n_samples, Sampler.of(model.n_landmarks, seed=0).n_wanted)
    return (
        model._demand_class.of(model, n_sampled, n_features, itemsize).peak + n_samples * model.n_components * itemsize
    )
