"""Evidence for each cluster: size, border to the nearest cluster, stability, and a verdict."""

from collections import namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.clusters import counting
from laptsne.clusters.counting import CONTINUUM, ERROR, EVIDENT, N_NEIGHBORS

_N_SAMPLES, _SHARE = 3, 0.8  # of the points, for the stability; share of the points in each
_STABLE, _FAIRLY_STABLE = 0.9, 0.75  # required of clear and of likely clusters
_APART = 0.02  # share of the affinity of a clear cluster with others, whatever its reciprocity


# Evidence for one cluster; see ClusterTable.
ClusterRow = namedtuple("ClusterRow", "cluster size contrast contrast_error nearest reciprocity stability verdict")


@dataclass(frozen=True)
class ClusterTable:
    """Evidence for the clusters of the data, one row per cluster.

    Attributes
    ----------
    cluster, size : arrays of shape (n_clusters,)
        Number of the cluster in ``labels_``, and number of its points.
    contrast : array of shape (n_clusters,)
        How much weaker the border with the nearest cluster is than a cut through a continuum: 0 if it is no weaker, 1
        if no affinity crosses it.
    contrast_error : array of shape (n_clusters,)
        Standard error of the contrast, from the number of points at the border.
    nearest : array of shape (n_clusters,)
        The cluster with which it shares the most affinity; -1 if it shares none.
    reciprocity : array of shape (n_clusters,)
        Reciprocity of the affinities with that cluster; a cut through a continuum has about 0.26.
    stability : array of shape (n_clusters,)
        Share of the pairs of points of a cluster that are together in the clusters of 80 % of the points.
    verdict : array of shape (n_clusters,)
        "clear" if the stability is at least 0.9, and the reciprocity is below that of continua by more than twice its
        error or less than 2 % of the cluster's affinity is with other clusters; "likely" if the reciprocity is below
        that of continua and the stability at least 0.75; otherwise "doubtful".
    """

    cluster: Array
    size: Array
    contrast: Array
    contrast_error: Array
    nearest: Array
    reciprocity: Array
    stability: Array
    verdict: Array

    def __len__(self) -> int:
        return len(self.cluster)

    def __iter__(self) -> Iterator[ClusterRow]:
        return map(ClusterRow, *(column.tolist() for column in vars(self).values()))

    def to_pandas(self) -> Any:
        """Return the table as a pandas DataFrame."""
        import pandas as pd  # noqa: PLC0415 (optional)

        return pd.DataFrame(vars(self))

    def __repr__(self) -> str:
        lines = ["cluster   size  contrast        nearest  stability  verdict"]
        for row in self:
            contrast = f"{row.contrast:.2f} ± {row.contrast_error:.2f}"
            nearest = "-" if row.nearest < 0 else row.nearest
            lines.append(
                f"{row.cluster:>7} {row.size:>6}  {contrast:<14} {nearest:>8} {row.stability:>10.2f}  {row.verdict}"
            )
        return "\n".join(lines)


def cluster_table(labels: Array, P: Any, workers: Workers | None = None) -> ClusterTable:
    """Collect the evidence for clusters, given the labels of the points, -1 for none, and their affinities."""
    workers = workers or Workers(1)
    n_clusters = int(labels.max(initial=0)) + 1
    graph = counting.NeighborGraph(counting.nearest_graph(P, N_NEIGHBORS, workers), workers)
    # Points of no cluster form a group of their own, which is left out.
    groups = np.where(labels < 0, n_clusters, labels)
    pairs, conductance = graph.reciprocity(groups), graph.conductance(groups)[:n_clusters]
    reciprocity, nearest, error = np.zeros(n_clusters), np.full(n_clusters, -1), np.zeros(n_clusters)
    for p in np.argsort(pairs.weight, kind="stable"):  # the pair that shares the most is the last to be set
        for own, other in ((pairs.first[p], pairs.second[p]), (pairs.second[p], pairs.first[p])):
            if pairs.second[p] < n_clusters:
                reciprocity[own], nearest[own], error[own] = pairs.value[p], other, ERROR / np.sqrt(pairs.n_points[p])
    stability = _stability(labels, P, n_clusters, workers)
    is_apart = (reciprocity + 2 * error < EVIDENT[0]) | (conductance < _APART)
    is_clear = is_apart & (stability >= _STABLE)
    is_likely = (reciprocity < EVIDENT[0]) & (stability >= _FAIRLY_STABLE)
    verdict = np.where(is_clear, "clear", np.where(is_likely, "likely", "doubtful")).astype(object)
    contrast = np.clip(1 - reciprocity / CONTINUUM, 0, 1)
    if n_clusters == 1:  # no clusters, or one
        verdict[:], contrast[:] = "doubtful", 0
    sizes = np.bincount(labels[labels >= 0], minlength=n_clusters)
    columns = (np.arange(n_clusters), sizes, contrast, error / CONTINUUM, nearest, reciprocity, stability, verdict)
    return ClusterTable(*columns)


def _stability(labels: Array, P: Any, n_clusters: int, workers: Workers) -> Array:
    """Share of the pairs of points of each cluster that are together when clusters are found in samples."""
    rng = check_random_state(0)
    together, all_pairs = np.zeros((2, n_clusters))
    for _ in range(_N_SAMPLES):
        sample = np.sort(rng.choice(labels.size, max(int(_SHARE * labels.size), 2), replace=False))
        found = counting.find_clusters(P[sample][:, sample], workers=workers)
        own = labels[sample]
        kept = own >= 0
        # Points of no cluster in the sample are together with no other point.
        joint = np.zeros((n_clusters, int(found.max(initial=0)) + 1))
        np.add.at(joint, (own[kept & (found >= 0)], found[kept & (found >= 0)]), 1)
        sizes = np.bincount(own[kept], minlength=n_clusters)
        together += (joint * (joint - 1)).sum(axis=1)
        all_pairs += sizes * (sizes - 1.0)
    return np.asarray(np.divide(together, all_pairs, out=np.ones(n_clusters), where=all_pairs > 0))
