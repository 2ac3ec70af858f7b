"""Which features set a group of points apart: effect sizes and areas under the ROC curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.clusters.linkage import linked


@dataclass(frozen=True, repr=False, eq=False)
class FeatureTable:
    """Features that set groups of points apart, the most distinguishing of each comparison first.

    Attributes
    ----------
    cluster, against : arrays of shape (n_rows,)
        The group and what it is compared with: "rest", or the label of another cluster as text.
    feature : array of shape (n_rows,)
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
        first: dict[str, str] = {}
        for cluster, against, feature, auc in zip(self.cluster, self.against, self.feature, self.auc, strict=True):
            level = "low" if auc < 0.5 else "high" if auc > 0.5 else "alike"
            first.setdefault(f"{cluster} against {against}", f"{feature} {level} (AUC {auc:.2f})")
        lines = [f"\n  {comparison}: {best}" for comparison, best in first.items()]
        return f"<FeatureTable of {len(self)} rows; the first of each comparison:{''.join(lines)}>"

    def to_pandas(self) -> Any:
        """Return the table as a pandas DataFrame."""
        import pandas as pd  # noqa: PLC0415  # optional

        return pd.DataFrame(vars(self))


def distinguishing_features(
    X: Any,
    labels: ArrayLike,
    *,
    nearest: dict[int, int] | None = None,
    feature_names: Sequence[str] | None = None,
    max_features: int | None = 20,
    n_jobs: int | None = None,
) -> FeatureTable:
    """Rank the features of each cluster against its nearest cluster and against all other points.

    Features are ranked by ``|AUC - 0.5|``, the AUC being the Mann-Whitney statistic; of equal ones, by the absolute
    effect size. Clusters found in the same data differ by construction, so the values describe and do not test.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Features; they may be others than those of the embedding. Sparse data are not made dense.
    labels : array of shape (n_samples,)
        Clusters; -1 for points in no cluster, which count among the rest.
    nearest : dict, optional
        The nearest cluster of each; clusters that are not in it are only compared with the rest.
    feature_names : sequence of str, optional
        Names of the features; by default the columns of a data frame, or "x0", "x1" and so on.
    max_features : int or None, default=20
        Features per comparison; None for all.
    n_jobs : int, optional

    Examples
    --------
    >>> import numpy as np
    >>> from laptsne.clusters import distinguishing_features
    >>> X = np.array([[0, 5.0], [1, 5.1], [0, 9.0], [1, 9.3]])
    >>> table = distinguishing_features(X, [0, 0, 1, 1], feature_names=["noise", "size"])
    >>> table.feature[0], float(table.auc[0])
    ('size', 0.0)
    """
    names = getattr(X, "columns", None) if feature_names is None else feature_names
    X, labels = check_array(X, accept_sparse="csc", input_name="X"), np.asarray(labels)
    if scipy.sparse.issparse(X):
        X.sum_duplicates()
    n, n_features = X.shape
    names = np.array([f"x{i}" for i in range(n_features)] if names is None else list(map(str, names)), dtype=object)
    if labels.shape != (n,) or labels.dtype.kind not in "iu":
        raise ValueError(f"labels: expected {n} integers, one per row of X; got {labels.dtype} of shape {labels.shape}")
    if len(names) != n_features:
        raise ValueError(f"feature_names has {len(names)} names, but X has {n_features} features; give one for each.")
    if max_features is not None and max_features < 1:
        raise ValueError(f"max_features={max_features} must be at least 1, or None for all features.")
    nearest, groups = nearest or {}, np.unique(labels)
    rest = "rest" if len(groups) > 1 else None
    pairs = [(a, b) for a in groups[groups >= 0].tolist() for b in (nearest.get(a), rest) if b is not None]
    found = _statistics(X, labels, pairs, n_jobs)
    n_top = min(max_features or n_features, n_features)
    ranked = np.lexsort((-abs(found[1]), -abs(found[0] - 0.5)))[:, :n_top]
    return FeatureTable(
        np.repeat(np.array([a for a, _ in pairs], dtype=np.int64), n_top),
        np.repeat(np.array([b for _, b in pairs], dtype=str), n_top),
        names[ranked.ravel()],
        *(np.take_along_axis(part, ranked, axis=1).ravel() for part in found),
    )


def selection_features(X: Any, selection: ArrayLike, **options: Any) -> FeatureTable:
    """Rank the features of a selection of points, cluster 0 of the table, against all others.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    selection : boolean array of shape (n_samples,), or indices of points
    **options
        ``feature_names``, ``max_features`` and ``n_jobs`` of :func:`distinguishing_features`.
    """
    n, chosen = X.shape[0], np.asarray(selection)
    if chosen.dtype != bool:
        chosen = np.isin(np.arange(n), chosen)
    if chosen.shape != (n,) or not chosen.any() or chosen.all():
        raise ValueError(f"selection has {chosen.sum()} of {n} points; select some but not all of the rows of X.")
    return distinguishing_features(X, np.where(chosen, 0, -1), **options)


def nearest_clusters(labels: Array, P: Any, Y: Array) -> dict[int, int]:
    """Return the cluster with which each shares most affinity, or whose centre in the embedding is nearest if none.

    Of several, it is one of the siblings in the tree: those with which the cluster forms the smallest union.
    """
    clusters = np.unique(labels[labels >= 0])
    if len(clusters) < 2:
        return {}
    centres = np.array([Y[labels == c].mean(axis=0, dtype=np.float64) for c in clusters])
    gap = np.linalg.norm(centres[:, None] - centres[None], axis=2)
    np.fill_diagonal(gap, np.inf)
    closest = gap.argmin(axis=1)
    if P is not None:
        member = scipy.sparse.csr_matrix((labels[:, None] == clusters).astype(np.float64))
        shared = (member.T @ (scipy.sparse.csr_matrix(P) @ member)).toarray()
        numbers = np.arange(len(clusters))
        shared *= linked(numbers, scipy.sparse.csr_matrix(shared)).siblings(numbers)
        closest = np.where(shared.max(axis=1) > 0, shared.argmax(axis=1), closest)
    return {int(a): int(clusters[b]) for a, b in zip(clusters, closest, strict=True)}


def _statistics(X: Any, labels: Array, pairs: list[tuple[int, Any]], n_jobs: int | None) -> Array:
    """Return AUC, effect and the two means of all features of an array or CSC matrix, each a row per comparison."""
    clusters, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    first = np.searchsorted(clusters, np.array([a for a, _ in pairs], dtype=np.int64))
    others = np.array([clusters != a if b == "rest" else clusters == b for a, b in pairs]).reshape(-1, len(sizes))
    means, squares = np.empty((2, X.shape[1], len(sizes)))
    wins = np.empty((X.shape[1], len(pairs)))

    def describe(start: int, stop: int) -> None:
        for f in range(start, stop):
            if scipy.sparse.issparse(X):
                stored = slice(X.indptr[f], X.indptr[f + 1])
                values, groups = X.data[stored], codes[X.indices[stored]]
            else:
                values, groups = X[:, f], codes
            means[f], squares[f], above = _by_group(values, groups, sizes)
            wins[f] = (above[first] * others).sum(axis=1)

    with Workers(n_jobs) as workers:
        workers.rows(describe, X.shape[1], work=np.inf, alignment=1)
    found = np.empty((4, len(pairs), X.shape[1]))
    for q, (a, rest) in enumerate(zip(first, others, strict=True)):
        n_a, n_b = float(sizes[a]), sizes[rest].sum()
        mean, mean_b = means[:, a], (means[:, rest] * sizes[rest]).sum(axis=1) / n_b
        between = (sizes[rest] * (means[:, rest] - mean_b[:, None]) ** 2).sum(axis=1)
        pooled = np.sqrt((squares[:, a] + squares[:, rest].sum(axis=1) + between) / max(n_a + n_b - 2, 1))
        alone = np.where(mean == mean_b, 0.0, np.copysign(np.inf, mean - mean_b))
        effect = np.divide(mean - mean_b, pooled, out=alone, where=pooled > 0)
        found[:, q] = wins[:, q] / (n_a * n_b), effect, mean, mean_b
    return found


def _by_group(values: Array, groups: Array, sizes: Array) -> tuple[Array, Array, Array]:
    """Return means and sums of squared deviations of a feature, and the wins of each group over each other one.

    Those are the pairs of points in which the value of the first group is larger; ties count half. Only zeros may be
    left out of the values.
    """
    n_groups = len(sizes)
    weights = np.concatenate([sizes - np.bincount(groups, minlength=n_groups), np.ones(len(values))])
    groups = np.concatenate([np.arange(n_groups), groups])
    values = np.concatenate([np.zeros(n_groups, values.dtype), values])  # one zero for all that are left out of a group
    mean = np.bincount(groups, weights * values) / sizes
    squares = np.bincount(groups, weights * (values - mean[groups]) ** 2)
    distinct, rank = np.unique(values, return_inverse=True)
    above = np.empty((n_groups, n_groups))
    for group in range(n_groups):
        inside = groups == group
        counts = np.bincount(rank[inside], weights[inside], len(distinct))
        below = counts.cumsum() - counts / 2  # members of this group, at each value
        above[:, group] = np.bincount(groups, weights * below[rank])
    return mean, squares, above
