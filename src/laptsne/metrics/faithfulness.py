"""Scores of a map that need no labels: whether neighbours in the data and in the map are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import check_array

from laptsne._runtime.threads import Workers
from laptsne.metrics.pairwise import nearest, ranks

Array = NDArray[Any]


class Faithfulness:
    """Scores of several maps of the same data, whose nearest neighbours are found once.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The data.
    n_neighbors : int, default=30
        The largest neighbourhood that will be asked for.

    Attributes
    ----------
    neighbors : array of shape (n_samples, n_neighbors)
        The nearest neighbours of every point in the data, nearest first.

    Examples
    --------
    >>> import numpy as np
    >>> from laptsne.metrics import Faithfulness
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> data = Faithfulness(X)
    >>> data.neighbors_kept(X)
    1.0
    >>> data.continuity(X[:, :2]) > data.continuity(X[:, :1])
    True
    """

    def __init__(self, X: ArrayLike, *, n_neighbors: int = 30) -> None:
        self._X = _points(X)
        _check_fewer(n_neighbors, len(self._X))
        self.neighbors = _nearest(self._X, n_neighbors)

    def trustworthiness(self, Y: ArrayLike, *, n_neighbors: int = 5) -> float:
        """Trustworthiness of the map Y; see :func:`trustworthiness`."""
        _check_fewer_than_half(n_neighbors, len(self._X))
        return _kept_near(self._X, _nearest(self._map(Y), n_neighbors))

    def continuity(self, Y: ArrayLike, *, n_neighbors: int = 5) -> float:
        """Continuity of the map Y; see :func:`continuity`."""
        _check_fewer_than_half(n_neighbors, len(self._X))
        return _kept_near(self._map(Y), self._first(n_neighbors))

    def neighbors_kept(self, Y: ArrayLike, *, n_neighbors: int | None = None) -> float:
        """Share of neighbours that the map Y keeps, of all that were found by default; see :func:`neighbors_kept`."""
        neighbors = self.neighbors if n_neighbors is None else self._first(n_neighbors)
        return _shared(neighbors, _nearest(self._map(Y), neighbors.shape[1]))

    def _map(self, Y: ArrayLike) -> Array:
        found = _points(Y)
        if len(found) != len(self._X):
            raise ValueError(f"Y must have a row for each of the {len(self._X)} points of the data; got {len(found)}.")
        return found

    def _first(self, n_neighbors: int) -> Array:
        found = self.neighbors.shape[1]
        if not 1 <= n_neighbors <= found:
            raise ValueError(f"n_neighbors must be from 1 to {found}, the neighbours found; got {n_neighbors}.")
        return self.neighbors[:, :n_neighbors]


def trustworthiness(X: ArrayLike, Y: ArrayLike, *, n_neighbors: int = 5) -> float:
    r"""Share of the map's neighbourhoods that the data bear out.

    .. math:: 1 - \frac{2}{n k (2n - 3k - 1)} \sum_i \sum_{j \in N_k(i)} \max(0, r(i, j) - k)

    where :math:`N_k(i)` are the :math:`k` nearest neighbours of point :math:`i` in the map, and :math:`r(i, j)` is the
    rank of :math:`j` among all points in the order of their distance to :math:`i` in the data. All pairs are compared,
    by Euclidean distance, in memory proportional to the number of points.

    It is scikit-learn's score of that name. Where points are equally near to another, scikit-learn leaves open which
    comes first; here it is the one of the lower row, in data and map alike.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The data.
    Y : array of shape (n_samples, n_components)
        The map.
    n_neighbors : int, default=5
        Size k of a neighbourhood, less than half the number of points.

    References
    ----------
    J. Venna and S. Kaski, Neighborhood preservation in nonlinear projection methods: an experimental study, ICANN 2001.

    Examples
    --------
    >>> from laptsne.metrics import trustworthiness
    >>> X = [[0.0], [1.0], [2.5], [4.5], [7.0]]
    >>> trustworthiness(X, X, n_neighbors=1)
    1.0
    """
    data, points = _pair(X, Y)
    _check_fewer_than_half(n_neighbors, len(data))
    return _kept_near(data, _nearest(points, n_neighbors))


def continuity(X: ArrayLike, Y: ArrayLike, *, n_neighbors: int = 5) -> float:
    """Share of the data's neighbourhoods that the map keeps together; the counterpart of trustworthiness.

    Points that are neighbours in the data but not in the map are counted by how far apart the map has put them.
    Trustworthiness counts those that are neighbours in the map but not in the data, so that either is the
    other with data and map exchanged.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The data.
    Y : array of shape (n_samples, n_components)
        The map.
    n_neighbors : int, default=5
        Size of a neighbourhood, less than half the number of points.

    Examples
    --------
    >>> from laptsne.metrics import continuity
    >>> X = [[0.0], [1.0], [2.0], [3.0], [4.0]]
    >>> continuity(X, X, n_neighbors=1)
    1.0
    """
    return trustworthiness(Y, X, n_neighbors=n_neighbors)


def neighbors_kept(X: ArrayLike, Y: ArrayLike, *, n_neighbors: int = 30) -> float:
    """Mean share of the nearest neighbours of a point in the data that are among its nearest in the map.

    Neighbours are exact, by Euclidean distance. No point is its own neighbour, though its duplicates may be; of points
    equally near, those of lower rows come first.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The data.
    Y : array of shape (n_samples, n_components)
        The map.
    n_neighbors : int, default=30
        Size of a neighbourhood, in the data and in the map.

    Examples
    --------
    >>> from laptsne.metrics import neighbors_kept
    >>> X = [[0.0, 0.0], [1.0, 0.0], [0.0, 3.0], [1.0, 3.0]]
    >>> neighbors_kept(X, [[0.0], [1.0], [3.0], [4.0]], n_neighbors=1)
    1.0
    >>> neighbors_kept(X, [[0.0], [3.0], [1.0], [4.0]], n_neighbors=1)
    0.0
    """
    data, points = _pair(X, Y)
    _check_fewer(n_neighbors, len(data))
    return _shared(_nearest(data, n_neighbors), _nearest(points, n_neighbors))


def _kept_near(points: Array, neighbors: Array) -> float:
    """One minus the scaled sum of how far beyond the k-th place among ``points`` the k given neighbours are."""
    n, k = neighbors.shape
    with Workers() as workers:
        beyond = np.maximum(ranks(points, neighbors, workers=workers) - k, 0)
    return float(1 - beyond.sum() * 2 / (n * k * (2 * n - 3 * k - 1)))


def _shared(neighbors: Array, others: Array) -> float:
    """Share of the entries of every row that are in the same row of the other array."""
    row = np.arange(len(neighbors))[:, None] * len(neighbors)
    return float(np.isin((row + neighbors).ravel(), (row + others).ravel(), assume_unique=True).mean())


def _nearest(points: Array, n_neighbors: int) -> Array:
    with Workers() as workers:
        return nearest(points, n_neighbors, workers=workers)


def _points(X: Any) -> Array:
    found: Array = check_array(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    return found


def _pair(X: ArrayLike, Y: ArrayLike) -> tuple[Array, Array]:
    data, points = _points(X), _points(Y)
    if len(data) != len(points):
        raise ValueError(f"X and Y must have as many rows; got {len(data)} and {len(points)}.")
    return data, points


def _check_fewer(n_neighbors: int, n_samples: int) -> None:
    if not 1 <= n_neighbors < n_samples:
        raise ValueError(f"n_neighbors must be from 1 to {n_samples - 1}, for {n_samples} points; got {n_neighbors}.")


def _check_fewer_than_half(n_neighbors: int, n_samples: int) -> None:
    if not 1 <= n_neighbors < n_samples / 2:
        raise ValueError(
            f"n_neighbors must be at least 1 and less than half the {n_samples} points, beyond which the score means "
            f"nothing; got {n_neighbors}."
        )
