"""What a fitted model says about its points and clusters, besides their positions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from laptsne._runtime.threads import Workers
from laptsne.clusters.contrasts import FeatureTable, distinguishing_features, nearest_clusters
from laptsne.clusters.table import ClusterTable, cluster_table
from laptsne.reliability import Reliability, reliability_of
from laptsne.transform import Placement


class DiagnosticsMixin:
    """Methods of the estimators that describe their points and clusters."""

    embedding_: NDArray[Any]
    labels_: NDArray[Any]
    reliability_: Reliability | None = None
    n_jobs: int | None
    perplexity_: float
    _mapping: Any
    _clusters: ClusterTable | None = None

    @property
    def clusters_(self) -> ClusterTable:
        """Evidence for each cluster, computed when it is first read or when the model is saved."""
        check_is_fitted(self)
        if self._clusters is None:
            if not hasattr(self, "affinities_"):
                raise AttributeError("clusters_ needs affinities_, which a model read from a file lacks; fit it again.")
            with Workers(self.n_jobs) as workers:
                self._clusters = cluster_table(self.labels_, self.affinities_, workers)
        return self._clusters

    @clusters_.setter
    def clusters_(self, table: ClusterTable | None) -> None:
        self._clusters = table

    def diagnose(self, *, length: float | None = None) -> Reliability:
        """Compute how far the position of each point can be relied on, and store it as ``reliability_``.

        One score per point, in linear time; :class:`laptsne.reliability.Reliability` defines it. It is None, and
        ``reliability_.reason`` says why, with a Gaussian kernel, without features that could be nudged
        (``metric="precomputed"``, ``metric="affinities"``, ``out_of_sample="network"``), and with a metric other than
        "euclidean", "sqeuclidean", "cosine" and "correlation".

        Parameters
        ----------
        length : float, optional
            By how much the data of a point are nudged, in their units. By default half the median distance to the
            neighbour whose rank is the perplexity.

        Returns
        -------
        reliability : Reliability
        """
        check_is_fitted(self)
        if length is not None and not (np.isfinite(length) and length > 0):
            raise ValueError(f"length={length!r} must be a positive number; leave it out for the default.")
        with Workers(self.n_jobs) as workers:
            placement: Any = mapping if isinstance(mapping := self._mapping, Placement) else None
            self.reliability_ = reliability_of(
                None if placement is None else placement.X,
                self.embedding_,
                None if placement is None else placement.potential(workers),
                length=length,
                workers=workers,
                perplexity=self.perplexity_,
                **{name: getattr(self, name) for name in ("kernel", "metric", "metric_params")},
            )
        return self.reliability_

    def distinguish(
        self, X: Any, feature_names: Sequence[str] | None = None, *, max_features: int | None = 20
    ) -> FeatureTable:
        """Rank the features of each cluster against its nearest cluster and against all other points.

        See :func:`laptsne.clusters.distinguishing_features`, and
        :func:`laptsne.clusters.selection_features` for an arbitrary selection of points.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Features of the training data. They may be others than those of the embedding, such as genes instead of
            principal components. Sparse data are not made dense.
        feature_names : sequence of str, optional
            Names of the features; by default the columns of a data frame, or "x0", "x1" and so on.
        max_features : int or None, default=20
            Features per comparison; None for all.

        Returns
        -------
        table : FeatureTable
            The most distinguishing features first; empty without at least one cluster and other points.
        """
        check_is_fitted(self)
        X = X if hasattr(X, "shape") else np.asarray(X)
        if X.shape[0] != len(self.labels_):
            raise ValueError(f"X has {X.shape[0]} rows, but labels_ has {len(self.labels_)}; give the rows of the fit.")
        nearest = nearest_clusters(self.labels_, getattr(self, "affinities_", None), self._labelled_embedding)
        options: dict[str, Any] = {"feature_names": feature_names, "max_features": max_features, "n_jobs": self.n_jobs}
        return distinguishing_features(X, self.labels_, nearest=nearest, **options)

    @property
    def _labelled_embedding(self) -> NDArray[Any]:
        """Positions of the points that ``labels_`` are of."""
        return self.embedding_
