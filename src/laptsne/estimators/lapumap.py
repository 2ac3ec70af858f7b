"""LapUMAP: UMAP with contraction of clusters."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from laptsne.engine.schedule import Descent
from laptsne.engine.state import Callback
from laptsne.estimators.base import MapEstimator
from laptsne.methods import Umap
from laptsne.settings import UMAP_CONSTRAINTS, umap_method


class LapUMAP(MapEstimator):
    r"""UMAP with contraction of the clusters of the data.

    The graph, the kernel and the parameters are those of umap-learn. The loss is the one that umap-learn effectively
    minimises (:class:`laptsne.engine.cross_entropy.CrossEntropy`), but it is minimised in full instead of by random
    negative samples: the repulsion of all pairs is computed on a grid by FFT, and over near pairs where a grid would
    not resolve it. With the same ``random_state`` the result is the same to the bit for any number of threads.

    As in :class:`LaptSNE`, the clusters for which the data give evidence are contracted; without evidence, or with
    ``contraction=0``, the result is a map of UMAP.

    Parameters
    ----------
    n_neighbors : int, default=15
        Number of neighbours of each point including itself, as in umap-learn. A number larger than that of the samples
        is lowered with a warning.
    n_components : {1, 2, 3}, default=2
        Dimension of the embedding.
    min_dist : float, default=0.1
        How close neighbours may lie in the embedding, at most ``spread``.
    spread : float, default=1.0
        Scale of the embedding.
    metric : str or callable, default="euclidean"
        A metric of scikit-learn's nearest neighbours; "precomputed" if X holds distances (dense), is a sparse graph of
        distances, or a tuple (indices, distances); or "affinities" if X is the graph itself, such as ``graph_`` of an
        umap-learn model, ``obsp["connectivities"]`` of scanpy or ``affinities_`` of another fit.
    metric_params : dict, default=None
        Further arguments of the metric, as in :class:`LaptSNE`.
    local_connectivity : float, default=1.0
        Number of nearest neighbours to which every point is connected with weight 1.
    set_op_mix_ratio : float, default=1.0
        Between the intersection, 0, and the union, 1, of the neighbourhoods of two points.
    repulsion_strength : float, default=1.0
        Factor of the repulsion.
    negative_sample_rate : int, default=5
        Another factor of the repulsion: the number of negative samples per edge that umap-learn would draw.
    n_clusters : int, "auto" or "eigengap", default="auto"
        Number of clusters that are contracted, as in :class:`LaptSNE`.
    contraction : float or "auto", default="auto"
        Strength of the contraction; 0 is UMAP. "auto" is 0.03 divided by the number of clusters that are contracted.
    contraction_width : float or "auto", default="auto"
        Width of the kernel of the contraction, as in :class:`LaptSNE`.
    init : {"spectral", "pca", "random"} or array of shape (n_samples, n_components), default="spectral"
        Initial embedding, scaled to a span of 10. An array is centred, otherwise used as it is.
    learning_rate : float or "auto", default="auto"
        Step size of a point of mean degree at the beginning; "auto" is ``0.3 * n_samples * spread ** 2``.
    max_iter : int, default=200
        Maximum number of iterations. In the second half of them, the step size falls to 0.
    method : {"auto", "exact", "fourier"}, default="auto"
        How the repulsion is computed: "exact" over all pairs, "fourier" on a grid and over near pairs.
    optimizer : Descent, default=None
        Momentum, schedules and stopping; None is ``Descent(exaggeration=1, contraction_start=0.25)``.
    checkpoint, callbacks, verbose, n_jobs, random_state
        As in :class:`LaptSNE`.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        The embedding.
    affinities_ : sparse matrix in CSR format of shape (n_samples, n_samples)
        The graph, divided by the sum of its weights.
    cross_entropy_ : float
        Loss of the embedding without contraction.
    objective_ : float
        ``cross_entropy_`` plus ``contraction_`` times the sum of the penalties of ``eigenvalues_``.
    labels_ : array of shape (n_samples,)
        Cluster of every point, as in :class:`LaptSNE`, which also describes the other attributes.

    References
    ----------
    L. McInnes, J. Healy and J. Melville, "UMAP: Uniform Manifold Approximation and Projection for Dimension
    Reduction", 2018. S. Damrich and F. Hamprecht, "On UMAP's true loss function", NeurIPS 2021.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from laptsne import LapUMAP
    >>> X, _ = load_digits(return_X_y=True)
    >>> LapUMAP(max_iter=100, random_state=0).fit_transform(X[:300]).shape
    (300, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = UMAP_CONSTRAINTS

    def __init__(
        self,
        n_neighbors: int = 15,
        n_components: int = 2,
        *,
        min_dist: float = 0.1,
        spread: float = 1.0,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        local_connectivity: float = 1.0,
        set_op_mix_ratio: float = 1.0,
        repulsion_strength: float = 1.0,
        negative_sample_rate: int = 5,
        n_clusters: int | str = "auto",
        contraction: float | str = "auto",
        contraction_width: float | str = "auto",
        init: str | ArrayLike = "spectral",
        learning_rate: float | str = "auto",
        max_iter: int = 200,
        method: str = "auto",
        optimizer: Descent | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        callbacks: Callback | Sequence[Callback] | None = None,
        verbose: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self._store(locals())

    def _method(self, X: Any) -> Umap:
        return umap_method(self.get_params(deep=False), X)
