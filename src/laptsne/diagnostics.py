"""What a fitted model says about its points and about new ones, besides their positions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from laptsne import parameters
from laptsne._runtime.threads import Workers
from laptsne.clusters.contrasts import distinguishing_features, nearest_clusters
from laptsne.clusters.feature_table import FeatureTable
from laptsne.clusters.table import ClusterTable, cluster_table
from laptsne.reliability import Reliability, diagnosis
from laptsne.transform import Placement


class DiagnosticsMixin:
    """Methods of the estimators that describe their points, clusters and new points."""

    embedding_: NDArray[Any]
    labels_: NDArray[Any]
    reliability_: Reliability | None = None
    metric: Any
    n_jobs: int | None
    _clusters: ClusterTable | None = None
    _mapping: Any
    _validated: Any

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

        Two scores per point, in linear time; :class:`laptsne.reliability.Reliability` defines them. Which of them there
        are depends on the model, and ``reliability_.reason`` says why one is None. Both are None with a Gaussian
        kernel. ``perturbation`` is None without features to be nudged, that is with ``metric="precomputed"``,
        ``metric="affinities"`` or ``out_of_sample="network"``, and with a metric other than "euclidean", "sqeuclidean",
        "cosine" and "correlation". ``singularity`` is None for a model without features that was saved and loaded.

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
            self.reliability_ = diagnosis(self, length, workers)
        return self.reliability_

    def _new_points(self, X: Any) -> Any:
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        if parameters.is_pairwise(self.metric) and (scipy.sparse.issparse(X) or X.min() < 0):
            raise ValueError(
                "metric='precomputed': X must be a dense matrix of non-negative distances to the training data."
            )
        return X

    @available_if(parameters.keeps_data)  # type: ignore[untyped-decorator]
    def support(self, X: Any) -> NDArray[np.float64]:
        """Compare the distances of new points to their neighbours in the training data with distances within the data.

        The support of a point is the share of training points that are at least as isolated as it is; see
        :class:`laptsne.transform.support.Support`. It is uniform between 0 and 1 for new points of the distribution of
        the training data, and close to 0 for points unlike them, which :meth:`transform` places nevertheless. A row
        equal to one of the training data has the support of the latter without itself. Not available with
        ``metric="affinities"``, with ``out_of_sample="network"``, which keeps no data, nor with a Gaussian kernel.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_points, n_features)
            New points, as in :meth:`transform`.

        Returns
        -------
        support : array of shape (n_points,)
        """
        X = self._new_points(X)
        assert isinstance(self._mapping, Placement)
        with Workers(self.n_jobs) as workers:
            return self._mapping.supported(X, workers)

    @available_if(parameters.keeps_data)  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the cluster of new points: that of their neighbours in the training data.

        The neighbours vote with their affinities. A point has the label -1 if the vote is for -1, or if its
        :meth:`support` is less than 0.01. A row equal to one of the training data has the label of the latter.
        Available if :meth:`support` is.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_points, n_features)
            New points, as in :meth:`transform`.

        Returns
        -------
        labels : array of shape (n_points,)
        """
        X = self._new_points(X)
        assert isinstance(self._mapping, Placement)
        with Workers(self.n_jobs) as workers:
            return self._mapping.labelled(X, self._row_labels, workers)

    @property
    def _row_labels(self) -> NDArray[Any]:
        """Labels of the points by which new ones are placed."""
        return np.asarray(self.labels_)

    def distinguish(
        self, X: Any, feature_names: Sequence[str] | None = None, *, max_features: int | None = 20
    ) -> FeatureTable:
        """Rank the features of each cluster against its nearest cluster and against all other points.

        See :func:`laptsne.clusters.contrasts.distinguishing_features`, and
        :func:`laptsne.clusters.contrasts.selection_features` for an arbitrary selection of points.

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
