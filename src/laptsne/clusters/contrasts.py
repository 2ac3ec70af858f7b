"""Which features set a group of points apart: effect sizes and areas under the ROC curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array

_DENSE_COLUMNS, _SHOWN = 64, 20  # that are copied and sorted together; comparisons in the representation
REST = -2  # stands for all points outside of a group


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
        names = [f"{cluster} against {against}" for cluster, against in zip(self.cluster, self.against, strict=True)]
        starts = [i for i, name in enumerate(names) if name not in names[max(i - 1, 0) : i]]
        lines = [f"{names[i]}: {self.feature[i]} (AUC {self.auc[i]:.2f})" for i in starts[:_SHOWN]]
        more = [f"{len(starts) - _SHOWN} more comparisons"] * (len(starts) > _SHOWN)
        return "\n  ".join([f"<FeatureTable of {len(self)} rows; the first of each comparison:", *lines, *more]) + ">"

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
    given = getattr(X, "columns", None) if feature_names is None else feature_names
    names = np.array([f"x{i}" for i in range(X.shape[1])] if given is None else list(map(str, given)), dtype=object)
    X, labels = _values(X), np.asarray(labels)
    if labels.shape != X.shape[:1] or labels.dtype.kind not in "iu":
        raise ValueError(
            f"labels: expected {X.shape[0]} integers, one per row of X, got {labels.dtype} of shape {labels.shape}."
        )
    labels = labels.astype(np.int64)
    if len(names) != X.shape[1]:
        raise ValueError(
            f"feature_names has {len(names)} names, but X has {X.shape[1]} features; give one per feature."
        )
    if max_features is not None and max_features < 1:
        raise ValueError(f"max_features={max_features} must be at least 1, or None for all features.")
    clusters = np.unique(labels[labels >= 0])
    pairs = [(a, b) for a in clusters.tolist() for b in ((nearest or {}).get(a), REST) if b is not None]
    pairs = [(a, b) for a, b in pairs if b != REST or (labels != a).any()]
    with Workers(n_jobs) as workers:
        found = _statistics(X, labels, pairs, workers)
    n_top = min(max_features or X.shape[1], X.shape[1])
    ranked = np.lexsort((-abs(found[1]), -abs(found[0] - 0.5)))[:, :n_top]
    return FeatureTable(
        np.repeat(np.array([a for a, _ in pairs], dtype=np.int64), n_top),
        np.repeat(np.array(["rest" if b == REST else str(b) for _, b in pairs], dtype=str), n_top),
        names[ranked.ravel()],
        *(np.take_along_axis(part, ranked, axis=1).ravel() for part in found),
    )


def selection_features(X: Any, selection: ArrayLike, **options: Any) -> FeatureTable:
    """Rank the features of a selection of points against all others, as :func:`distinguishing_features` does.

    The selection is cluster 0 of the table.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    selection : boolean array of shape (n_samples,), or indices of points
    **options
        ``feature_names``, ``max_features`` and ``n_jobs`` of :func:`distinguishing_features`.
    """
    n_samples, chosen = X.shape[0], np.asarray(selection)
    if chosen.dtype != bool:
        chosen = np.isin(np.arange(n_samples), chosen)
    if chosen.shape != (n_samples,) or not chosen.any() or chosen.all():
        raise ValueError(
            f"selection has {int(chosen.sum())} of {n_samples} points; select some but not all of the rows of X."
        )
    return distinguishing_features(X, np.where(chosen, 0, -1), **options)


def nearest_clusters(labels: Array, P: Any, Y: Array) -> dict[int, int]:
    """Return the nearest cluster of each: the one with which its points share most affinity.

    Without affinities between a cluster and any other, it is the one whose centre in the embedding is nearest.
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
        shared = (member.T @ (P @ member)).toarray() if scipy.sparse.issparse(P) else member.T @ np.asarray(P) @ member
        shared = np.asarray(shared, dtype=np.float64)
        np.fill_diagonal(shared, 0)
        closest = np.where(shared.max(axis=1) > 0, shared.argmax(axis=1), closest)
    return {int(a): int(clusters[b]) for a, b in zip(clusters, closest, strict=True)}


def _values(X: Any) -> Any:
    """Return X as a CSC matrix or an array of numbers."""
    X = scipy.sparse.csc_matrix(X) if scipy.sparse.issparse(X) else np.asarray(X)
    values = X
    if scipy.sparse.issparse(X):
        X.sum_duplicates()
        values = X.data
    if X.ndim != 2 or values.dtype.kind not in "biuf":
        raise ValueError(f"X: expected a matrix of numbers, got {values.dtype} of shape {X.shape}.")
    if not np.isfinite(values).all():
        raise ValueError("X contains NaN or infinite values; replace them.")
    return X


def _statistics(X: Any, labels: Array, pairs: list[tuple[int, int]], workers: Workers) -> Array:
    """Return AUC, effect and the two means of all features of an array or CSC matrix, each a row per comparison."""
    clusters, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    code = {int(c): i for i, c in enumerate(clusters)} | {REST: REST}
    coded = np.array([(code[a], code[b]) for a, b in pairs], dtype=np.int64).reshape(-1, 2)
    groups = (codes, sizes, coded, np.searchsorted(coded[:, 0], np.arange(len(clusters) + 1)))
    wins, sums = np.zeros((X.shape[1], len(coded))), np.zeros((X.shape[1], len(sizes), 2))
    if scipy.sparse.issparse(X):
        matrix, n_columns = (X.indptr, X.indices, X.data), X.shape[1]
        workers.rows(_column_kernel, n_columns, matrix, groups, wins, sums, work=50.0 * X.nnz, alignment=1)
    else:
        for start in range(0, X.shape[1], _DENSE_COLUMNS):
            block = np.ascontiguousarray(X[:, start : start + _DENSE_COLUMNS].T)
            rows, n = slice(start, start + len(block)), len(block)
            matrix = (np.arange(n + 1) * X.shape[0], np.tile(np.arange(X.shape[0]), n), block.ravel())
            args = (matrix, groups, wins[rows], sums[rows])
            workers.rows(_column_kernel, n, *args, work=50.0 * block.size, alignment=1)
    found = np.empty((4, len(coded), X.shape[1]))
    for q, (a, b) in enumerate(coded):
        others = np.arange(len(sizes)) != a if b == REST else np.arange(len(sizes)) == b
        n_a, n_b = float(sizes[a]), sizes[others].sum()
        mean = sums[:, a, 0]
        mean_b = (sums[:, others, 0] * sizes[others]).sum(axis=1) / n_b
        between = (sizes[others] * (sums[:, others, 0] - mean_b[:, None]) ** 2).sum(axis=1)
        pooled = np.sqrt((sums[:, a, 1] + sums[:, others, 1].sum(axis=1) + between) / max(n_a + n_b - 2, 1))
        alone = np.where(mean == mean_b, 0.0, np.copysign(np.inf, mean - mean_b))
        effect = np.divide(mean - mean_b, pooled, out=alone, where=pooled > 0)
        found[:, q] = wins[:, q] / (n_a * n_b), effect, mean, mean_b
    return found


@inlined
def _describe(column: Array, groups: Array, sizes: Array, stored: Array, sums: Array) -> None:
    """Set the number of stored values of each group, its mean and its sum of squared deviations."""
    stored[:] = 0
    sums[:] = 0
    for e in range(column.size):
        stored[groups[e]] += 1
        sums[groups[e], 0] += column[e]
    for g in range(sizes.size):
        sums[g, 0] /= sizes[g]
        sums[g, 1] = (sizes[g] - stored[g]) * sums[g, 0] ** 2
    for e in range(column.size):
        sums[groups[e], 1] += (column[e] - sums[groups[e], 0]) ** 2


@inlined
def _count_wins(a: int, totals: Array, below: Array, equal: Array, pairs: Array, first: Array, wins: Array) -> None:
    """Add the pairs of points in which the values of group a that are equal to the current one are larger."""
    for q in range(first[a], first[a + 1]):
        b = pairs[q, 1]
        lower = totals[0] - below[a] if b == REST else below[b]
        same = totals[1] - equal[a] if b == REST else equal[b]
        wins[q] += equal[a] * (lower + same / 2)


@compiled
def _column_kernel(start: int, stop: int, matrix: Any, comparisons: Any, wins: Array, sums: Array) -> None:
    """Set, for columns in CSC format, the Mann-Whitney statistics of the pairs, and means and squared deviations.

    Pairs are sorted by their first group, from which on they are at ``first``. One pass over the sorted values:
    ``below`` counts the values of each group below the current one, ``equal`` those equal to it, and ``totals`` has
    their sums. Zeros that are not stored are one more value.
    """
    (indptr, indices, values), (codes, sizes, pairs, first) = matrix, comparisons
    n_groups = sizes.size
    below, equal, stored = np.zeros((3, n_groups))
    totals, seen, tick = np.zeros(2), np.zeros(n_groups, np.int64), 0
    for f in range(start, stop):
        column = values[indptr[f] : indptr[f + 1]]
        groups = codes[indices[indptr[f] : indptr[f + 1]]]
        _describe(column, groups, sizes, stored, sums[f])
        order = np.argsort(column, kind="mergesort")
        below[:], totals[0] = 0, 0
        zeros_left = True
        e = 0
        while e < column.size or zeros_left:
            # Zeros come before the first value that is not negative.
            at_zero = zeros_left and (e == column.size or column[order[e]] >= 0)
            last = e
            tick += 1
            if at_zero:
                zeros_left = False
                equal[:] = sizes - stored
            value = column.dtype.type(0) if at_zero else column[order[e]]
            while last < column.size and column[order[last]] == value:
                equal[groups[order[last]]] += 1
                last += 1
            totals[1] = equal.sum() if at_zero else last - e
            n_touched = n_groups if at_zero else last - e
            for t in range(n_touched):
                a = t if at_zero else groups[order[e + t]]
                if equal[a] > 0 and seen[a] != tick:
                    seen[a] = tick
                    _count_wins(a, totals, below, equal, pairs, first, wins[f])
            totals[0] += totals[1]
            for t in range(n_touched):
                a = t if at_zero else groups[order[e + t]]
                below[a] += equal[a]
                equal[a] = 0
            e = last
