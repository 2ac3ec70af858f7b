"""Points that were not part of the fit: their positions, clusters and support."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from laptsne import parameters
from laptsne._runtime.threads import Workers
from laptsne.contraction.term import LazyPotential
from laptsne.distributed import is_dask, mapped
from laptsne.fields.potential import Potential
from laptsne.graph.metric_params import is_pairwise
from laptsne.transform import Network, Placement
from laptsne.transform.support import support_of_distances

T = TypeVar("T")


class NewPointsMixin(TransformerMixin):  # type: ignore[misc]
    """Methods of the estimators for new points."""

    labels_: NDArray[Any]
    metric: Any
    n_features_in_: int
    n_jobs: int | None
    _mapping: Any  # Placement, Network or None
    _validated: Any

    def transform(self, X: Any) -> Any:
        """Embed new points in the fitted embedding, which does not change.

        Each point is embedded independently of the others in X. With ``out_of_sample="placement"``, a row equal to one
        of the training data gets its position. Not available with ``metric="affinities"``, nor with a Gaussian kernel
        and ``out_of_sample="placement"``.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_points, n_features)
            New points; with ``metric="precomputed"`` their distances to the training data, of shape
            (n_points, n_samples). Blocks of a Dask array are embedded where they are.

        Returns
        -------
        Y : array of shape (n_points, n_components)
            A Dask array if X is one.
        """
        check_is_fitted(self)
        if is_dask(X):
            if X.ndim != 2 or X.shape[1] != self.n_features_in_:
                raise ValueError(f"X has shape {X.shape}, but LaptSNE was fitted with {self.n_features_in_} features.")
            return mapped(X, self._mapping)
        return self._transformed(X)

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
        return self._on_new_points(X, Placement.supported)

    @available_if(parameters.keeps_data)  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the cluster of new points: that of their neighbours in the training data.

        The neighbours vote with their affinities. A point has the label -1 if the vote is for -1, or if its
        :meth:`support` is less than 0.01. A row equal to one of the training data has the label of the latter.
        Available if :meth:`support` is.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_points, n_features)
            The points, as in :meth:`support`.

        Returns
        -------
        labels : array of shape (n_points,)
        """
        return self._on_new_points(
            X, lambda placement, rows, workers: placement.labelled(rows, self._row_labels, workers)
        )

    @property
    def _row_labels(self) -> NDArray[Any]:
        """Labels of the points by which new ones are placed."""
        return np.asarray(self.labels_)

    def _transformed(self, X: Any) -> NDArray[Any]:
        return self._on_new_points(X, type(self._mapping).place)

    def _on_new_points(self, X: Any, compute: Callable[[Any, Any, Workers], T]) -> T:
        """Validate new points and apply a method of the mapping to them."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        if is_pairwise(self.metric) and (scipy.sparse.issparse(X) or X.min() < 0):
            raise ValueError(
                "metric='precomputed': X must be a dense matrix of non-negative distances to the training data."
            )
        with Workers(self.n_jobs) as workers:
            return compute(self._mapping, X, workers)


# After the class: set_output would wrap a conditional method into one that is always there.
NewPointsMixin.transform = available_if(parameters.can_transform)(NewPointsMixin.transform)  # type: ignore[method-assign]


def mapping_of(
    model: Any, X: Any, Y: NDArray[Any], potential: Potential | LazyPotential | None, random_state: Any
) -> Placement | Network | None:
    """What embeds new points, given the parameters of a model, the data and their embedding."""
    if model.out_of_sample == "network":
        return Network.trained(X, Y, random_state)
    if potential is None or model.metric == "affinities":
        return None
    pairwise = is_pairwise(model.metric)
    options = {"metric": model.metric, "metric_params": model.metric_params}
    options |= {"perplexity": model.perplexity_, "kernel": model._placement_kernel()}
    placement = Placement(None if pairwise else X, Y, potential, **options)
    if pairwise:  # the distances are not kept
        placement.support = support_of_distances(X, placement.n_neighbors)
    return placement
