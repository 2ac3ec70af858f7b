"""Ways to count clusters in the data, without a map: ours, PLSCAN on our graph, the rule of DPA, and EVoC.

python benchmarks/counting_ways.py sets [SET ...]   # ARI and NMI with the classes, and the number of clusters
python benchmarks/counting_ways.py mixtures         # 3 to 50 Gaussians of unequal size
python benchmarks/counting_ways.py null             # twelve kinds of data without clusters, 2,000 points

All but EVoC see the same 90 nearest neighbours. *Reciprocity* is ``labels_``: communities of the neighbour graph,
merged where affinities across their border are reciprocated. *PLSCAN, distances* and *PLSCAN, affinities* are leaf
clusters of HDBSCAN at the most persistent smallest size, on the distances to the neighbours, or on -log of their
affinities, which removes differences in density. *DPA* (d'Errico et al., Information Sciences 560, 2021) estimates the
density at the intrinsic dimension with as many neighbours as agree with a constant density, and merges peaks whose
height above the saddle is within Z = 1.65 of its error; it is written out here, after the description, since the
package downgrades NumPy. All have their defaults. The sets are those of suite.py, by default ten of up to 5,000 rows.
A way that calls more than half of the points noise has found no cluster.

Needs ``pip install ".[benchmark]"``.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse
from null import MIXTURE_POINTS, MIXTURES, NULL, mixture
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from suite_sets import load, n_rows

from laptsne._runtime.threads import Workers
from laptsne.clusters.counting import find_clusters
from laptsne.graph.affinity import graph_affinities
from laptsne.graph.neighbors import neighbor_distances

Labels = np.ndarray[Any, Any]
SETS = (
    "sc_cell_lines_celseq2",
    "sc_pbmc68k_700",
    "series_fifty_words",
    "coil20",
    "digits",
    "tab_image_segmentation",
    "faces_yaleb",
    "sc_pbmc4k",
    "series_ecg5000",
    "waveform",
)
PERPLEXITY = 30.0
SEEDS = range(2)
_SAME_DENSITY = 23.928  # likelihood ratio of two densities that agree, as in DPA
_Z = 1.65  # standard errors of a saddle


def ways(X: np.ndarray) -> Iterator[tuple[str, Labels]]:
    """Yield the name and the labels of every way."""
    from evoc import EVoC
    from fast_plscan import PLSCAN

    n = len(X)
    perplexity = min(PERPLEXITY, (n - 1) / 3)
    with Workers(None) as workers:
        options: dict[str, Any] = {"metric": "euclidean", "metric_params": None, "workers": workers}
        graph = neighbor_distances(X, int(3 * perplexity), **options)
        P = graph_affinities(graph.copy(), perplexity, workers)
        yield "reciprocity", np.asarray(find_clusters(P, workers=workers))
    indices, distances = graph.indices.reshape(n, -1), graph.data.reshape(n, -1)
    order = np.argsort(distances, axis=1, kind="stable")
    indices, distances = (np.take_along_axis(each, order, axis=1) for each in (indices, distances))
    neighbors = (distances.astype(np.float32), indices.astype(np.int32))
    yield "PLSCAN, distances", np.asarray(PLSCAN(metric="precomputed").fit_predict(neighbors))
    yield "PLSCAN, affinities", np.asarray(PLSCAN(metric="precomputed").fit_predict(_surprisal(P)))
    yield "DPA", dpa(indices, distances.astype(np.float64))
    if X.shape[1] > 3:  # EVoC needs four features
        yield "EVoC", np.asarray(EVoC(random_state=0).fit_predict(np.asarray(X, np.float32)))


def _surprisal(P: Any) -> Any:
    """Return -log of affinities, from 0 for the largest, as a sparse matrix of distances."""
    P = scipy.sparse.csr_array(P)
    P.data = (np.log(P.data.max()) - np.log(P.data) + 1e-6).astype(np.float32)
    P.indices, P.indptr = P.indices.astype(np.int32), P.indptr.astype(np.int32)
    return P


def intrinsic_dimension(distances: np.ndarray) -> float:
    """Return the two-neighbour estimate (Facco et al., 2017), by maximum likelihood."""
    pairs = distances[distances[:, 0] > 0]
    ratio = np.log(np.maximum(pairs[:, 1] / pairs[:, 0], 1 + 1e-12))
    return float(len(ratio) / ratio.sum())


def adaptive_density(indices: np.ndarray, distances: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return log densities, their errors, and how many neighbours each point uses."""
    n, k_max = indices.shape
    logs = intrinsic_dimension(distances) * np.log(np.maximum(distances, 1e-12))
    size, growing = np.full(n, k_max - 1), np.ones(n, bool)
    for k in range(3, k_max - 1):  # compare with the density at the next neighbour, over as many neighbours
        mine, its = logs[:, k - 1], logs[indices[:, k], k - 1]
        ratio = -2 * k * (mine + its - 2 * np.logaddexp(mine, its) + np.log(4))
        stop = growing & (ratio > _SAME_DENSITY)
        size[stop], growing[stop] = k, False
    return np.log(size) - logs[np.arange(n), size - 1], 1 / np.sqrt(size), size


def dpa(indices: np.ndarray, distances: np.ndarray) -> Labels:
    """Return the clusters of peaks of density whose saddles are outside their errors, -1 for none."""
    density, error, size = adaptive_density(indices, distances)
    n, k_max = indices.shape
    within = np.arange(k_max) < size[:, None]
    value = density - error
    near = np.where(within, value[indices], -np.inf)
    higher = near > value[:, None]
    rows, first = np.arange(n), np.argmax(higher, axis=1)
    parent = np.where(higher.any(axis=1), indices[rows, first], rows)  # the nearest point of higher density
    # A peak is not within the neighbourhood of a higher point either.
    for i in np.argsort(-value, kind="stable"):
        seen = indices[i][within[i]]
        rest = seen[(parent[seen] == seen) & (value[seen] < value[i])]
        parent[rest] = i
    while (parent[parent] != parent).any():
        parent = parent[parent]
    peaks, labels = np.unique(parent, return_inverse=True)
    return _merged(labels, peaks, density, error, indices, within)


def _merged(
    labels: Labels, peaks: np.ndarray, density: np.ndarray, error: np.ndarray, indices: np.ndarray, within: np.ndarray
) -> Labels:
    """Merge peaks in the order of their saddles, the highest first, where the saddle is within the errors."""
    rows, columns = np.nonzero(within)
    others = indices[rows, columns]
    border = labels[rows] != labels[others]
    i, j = rows[border], others[border]
    low = np.where(density[i] - error[i] < density[j] - error[j], i, j)  # the saddle is the lower of the two points
    saddles: dict[tuple[int, int], int] = {}
    for a, b, point in zip(labels[i], labels[j], low, strict=True):
        pair = (min(a, b), max(a, b))
        if pair not in saddles or density[point] - error[point] > density[saddles[pair]] - error[saddles[pair]]:
            saddles[pair] = point
    target = np.arange(len(peaks))

    def root(a: int) -> int:
        while target[a] != a:
            a = int(target[a])
        return a

    for (first, second), point in sorted(saddles.items(), key=lambda item: -density[item[1]]):
        a, b = root(first), root(second)
        if a == b:
            continue
        lower, upper = (a, b) if density[peaks[a]] < density[peaks[b]] else (b, a)
        if density[peaks[lower]] - density[point] < _Z * (error[peaks[lower]] + error[point]):
            target[lower] = upper
    _, merged = np.unique([root(a) for a in range(len(peaks))], return_inverse=True)
    return np.asarray(merged[labels])


def count(labels: Labels) -> int:
    """Return the number of clusters; none if more than half of the points are noise, as in null.py."""
    return int(np.unique(labels[labels >= 0]).size) if (labels < 0).mean() <= 0.5 else 0


def compare_sets(names: list[str]) -> None:
    found: dict[str, list[tuple[float, float]]] = {}
    for name in sorted(names, key=n_rows):
        data = load(name)
        print(f"{name}, {len(data.y)} rows, {data.n_classes} classes; ARI, NMI, clusters:", flush=True)
        for way, labels in ways(np.ascontiguousarray(data.X, dtype=np.float32)):
            scores = adjusted_rand_score(data.y, labels), normalized_mutual_info_score(data.y, labels)
            found.setdefault(way, []).append(scores)
            print(f"  {way}: {scores[0]:.3f} {scores[1]:.3f} {count(labels)}", flush=True)
    for way, rows in found.items():
        ari, nmi = np.mean(rows, axis=0)
        print(f"mean over {len(rows)} sets, {way}: {ari:.3f} {nmi:.3f}")


def tally(make: Callable[[int, np.random.Generator], np.ndarray], n: int) -> dict[str, list[int]]:
    """Return the number of clusters that every way finds, for each seed."""
    found: dict[str, list[int]] = {}
    for seed in SEEDS:
        for way, labels in ways(make(n, np.random.default_rng(seed))):
            found.setdefault(way, []).append(count(labels))
    return found


def run_mixtures() -> None:
    off: dict[str, list[int]] = {}
    for k in MIXTURES:
        found = tally(lambda n, rng, k=k: mixture(n, k, rng), MIXTURE_POINTS)
        print(f"mixture of {k}:", found, flush=True)
        for way, counts in found.items():
            off.setdefault(way, []).extend(abs(c - k) for c in counts)
    for way, errors in off.items():
        print(
            f"{way}: right in {sum(e == 0 for e in errors)} of {len(errors)}, off by {np.mean(errors):.1f} in the mean"
        )


def run_null() -> None:
    wrong: dict[str, list[bool]] = {}
    for title, make in NULL.items():
        found = tally(make, 2000)
        print(f"{title}:", found, flush=True)
        for way, counts in found.items():
            wrong.setdefault(way, []).extend(c > 1 for c in counts)
    for way, each in wrong.items():
        print(f"{way}: more than one cluster in {sum(each)} of {len(each)} data sets")


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["sets", "mixtures", "null"])
    parser.add_argument("names", nargs="*", default=SETS, metavar="SET")
    args = parser.parse_args()
    {"sets": lambda: compare_sets(list(args.names)), "mixtures": run_mixtures, "null": run_null}[args.what]()


if __name__ == "__main__":
    main()
