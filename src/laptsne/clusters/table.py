"""Evidence for each cluster: size, nearest cluster, and how often data without clusters would show such a border."""

import math
from collections import namedtuple
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.clusters.counting import N_NEIGHBORS, bodies_of
from laptsne.clusters.linkage import ClusterTree, linked
from laptsne.clusters.reciprocity import NeighborGraph, nearest_graph

CLEAR, LIKELY = 0.001, 0.01  # the largest chance of a border of a clear and of a likely cluster
# Chance of a border at the threshold of evidence, and by which power of the contrast it rises (benchmarks/clusters.py).
_CHANCE, _POWER = 0.0045, 11.3

# Evidence for one cluster; see ClusterTable.
ClusterRow = namedtuple("ClusterRow", "cluster size nearest chance verdict")


@dataclass(frozen=True)
class ClusterTable:
    """Evidence for the clusters of the data, one row per cluster.

    Attributes
    ----------
    cluster, size : arrays of shape (n_clusters,)
        Number of the cluster in ``labels_``, and number of its points.
    nearest : array of shape (n_clusters,)
        The cluster to which it has the least evident border; -1 if it borders on none.
    chance : array of shape (n_clusters,)
        How often data without clusters, of the same size and dimension, show a border as evident as that.
    verdict : array of shape (n_clusters,)
        "clear" if the chance is at most 0.1 %, "likely" if it is at most 1 %, otherwise "doubtful".
    """

    cluster: Array
    size: Array
    nearest: Array
    chance: Array
    verdict: Array

    def __len__(self) -> int:
        return len(self.cluster)

    def __getitem__(self, cluster: int) -> ClusterRow:
        return list(self)[cluster]

    def __iter__(self) -> Iterator[ClusterRow]:
        return map(ClusterRow, *(column.tolist() for column in vars(self).values()))

    def to_frame(self) -> Any:
        """Return the table as a pandas DataFrame."""
        import pandas as pd  # noqa: PLC0415 (optional)

        return pd.DataFrame(vars(self))

    to_pandas = to_frame

    def __repr__(self) -> str:
        return "\n".join("{:>7} {:>7} {:>8} {:>8}  {}".format(*cells) for cells in self._cells())

    def _repr_html_(self) -> str:
        head, *rows = ("".join(f"<td>{cell}</td>" for cell in cells) for cells in self._cells())
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<table><thead><tr>{head.replace('td>', 'th>')}</tr></thead><tbody>{body}</tbody></table>"

    def _cells(self) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = [("cluster", "size", "nearest", "chance", "verdict")]
        for row in self:
            found.append(
                (row.cluster, row.size, "-" if row.nearest < 0 else row.nearest, percent(row.chance), row.verdict)
            )
        return found


def percent(chance: float) -> str:
    """Return a chance as text."""
    if chance < CLEAR:
        return "<0.1 %"
    # Rounded up, so that the figure agrees with the verdict.
    return f"{math.ceil(1000 * chance) / 10:.1f} %" if chance < 2 * LIKELY else f"{100 * chance:.0f} %"


def evidence(
    labels: Array, P: Any, workers: Workers | None = None, first: Array | None = None
) -> tuple[ClusterTable, ClusterTree]:
    """Return the table and the tree of clusters, given the labels of the points, -1 for none, and their affinities.

    ``first`` has the first copy of every point, if there are copies.
    """
    borders = _borders(labels, P, workers or Workers(1), np.arange(labels.size) if first is None else first)
    return _table(labels, *borders), _tree(linked(labels, P), *borders)


def _table(labels: Array, first: Array, second: Array, chances: Array) -> ClusterTable:
    n_clusters = int(labels.max(initial=0)) + 1
    chance, nearest = np.zeros(n_clusters), np.full(n_clusters, -1)
    for p in np.argsort(chances, kind="stable"):  # the least evident border is the last to be set
        for own, other in ((first[p], second[p]), (second[p], first[p])):
            chance[own], nearest[own] = chances[p], other
    if n_clusters == 1:  # no clusters, or one
        chance[:] = 1
    verdict = np.where(chance <= CLEAR, "clear", np.where(chance <= LIKELY, "likely", "doubtful")).astype(object)
    sizes = np.bincount(labels[labels >= 0], minlength=n_clusters)
    return ClusterTable(np.arange(n_clusters), sizes, nearest, chance, verdict)


def _tree(tree: ClusterTree, first: Array, second: Array, chances: Array) -> ClusterTree:
    n_clusters, chance = tree.n_clusters, np.full(len(tree.parent), np.nan)
    chance[n_clusters:] = 0.0
    for a, b, border in zip(first, second, chances, strict=True):
        node, other = a, b
        while node != other:  # parts have lower numbers than their unions
            node, other = max(node, other), tree.parent[min(node, other)]
        chance[node] = max(chance[node], border)
    return replace(tree, chance=chance)


def _borders(labels: Array, P: Any, workers: Workers, first: Array) -> tuple[Array, Array, Array]:
    """Return the pairs of clusters with a border, and its chance in data without clusters."""
    n_clusters = int(labels.max(initial=0)) + 1
    # Points of no cluster form a group of their own, as do further copies.
    groups = np.where((labels < 0) | (first != np.arange(labels.size)), n_clusters, labels)
    graph = nearest_graph(P, N_NEIGHBORS, workers, first)
    first, second, contrast, *_ = bodies_of(graph, workers).grouped(groups).borders()
    pairs = NeighborGraph(graph, workers).reciprocity(groups)
    reciprocity = np.full((n_clusters + 1, n_clusters + 1), 0.0)
    reciprocity[pairs.first, pairs.second] = pairs.contrast
    contrast = np.minimum(contrast, np.maximum(reciprocity, reciprocity.T)[first, second])
    kept = (first < n_clusters) & (second < n_clusters)
    return first[kept], second[kept], np.minimum(_CHANCE * contrast[kept] ** _POWER, 1)
