"""Are ``labels_`` the clusters of the data, beside other clusterings: with classes, without clusters, in mixtures?

python benchmarks/clusters.py sets [SET ...]   # ARI and NMI with the classes of the 31 sets of suite.py: an hour
python benchmarks/clusters.py sets --ways labels_ PLSCAN "PLSCAN, affinities" DPA EVoC --group small  # ten minutes
python benchmarks/clusters.py textbook         # Gaussians that are clearly separate, and far groups: ten minutes
python benchmarks/clusters.py null             # data without clusters, 100 to 20,000 points, and a far group: an hour
python benchmarks/clusters.py mixtures         # 3 to 50 Gaussians of unequal size, and 200 clusters: minutes
python benchmarks/clusters.py agreement        # ARI of labels_ and HDBSCAN on our map of each set: an hour
python benchmarks/clusters.py halves --group small     # clusters of a random half of the rows and of all: minutes
python benchmarks/clusters.py layers --group small     # ARI of the layers and of other cuts of the tree: minutes
python benchmarks/clusters.py calibrate        # how often continua show a border of a given contrast: half an hour

``--ways`` chooses the clusterings. *labels_* are ours. *Leiden* (modularity, resolution 1) is on UMAP's graph of 15
neighbours; *HDBSCAN on UMAP* (smallest cluster 0.5 %, at least 10 points) and *PLSCAN on UMAP* on a UMAP in five
dimensions (15 neighbours, min_dist 0). *PLSCAN* and *PLSCAN, affinities* are leaf clusters of HDBSCAN at the most
persistent smallest size, on the distances to 90 neighbours or on -log of their affinities. *DPA* (d'Errico et al.,
Information Sciences 560, 2021) estimates the density at the intrinsic dimension with as many neighbours as agree with a
constant density, and merges peaks whose height above the saddle is within Z = 1.65 of its error; it is written out
here, since its package downgrades NumPy. *EVoC* is on the features, and needs four of them. All have their defaults. A
clustering that labels more than half of the points as noise has found no cluster.

In *textbook*, three Gaussians are 6 standard deviations apart, 2 to 12 are 11 apart, and a far group of 10 to 120
points is 30 away from a Gaussian of 300. *null* adds such a group of 30 points to data without clusters, so that there
are two clusters. *layers* compares ``labels_``, the finest clusters, with the layer and with the cut of the tree of the
highest ARI, and with the cuts of the greatest modularity. *calibrate* counts the data sets without clusters that would
be divided if borders were evident below other contrasts than 1, and fits a power law: the chance of a border in
laptsne/clusters/table.py.

Means are over all sets, and over the sets for choosing constants and the others. null.py has the clusters of maps.
Needs ``pip install ".[benchmark]"``.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from null import MIXTURE_POINTS, MIXTURES, NULL, SEEDS, mixture
from scipy.optimize import minimize
from shared import command_line
from sklearn.cluster import HDBSCAN
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.neighbors import NearestNeighbors
from suite_runs import GROUPS, SETS, leiden, load, n_rows

from laptsne import LaptSNE
from laptsne._runtime.threads import Workers
from laptsne.clusters.counting import clusters_below
from laptsne.clusters.linkage import ClusterTree
from laptsne.graph.affinity import joint_affinities
from laptsne.graph.neighbors import first_copies

Array = np.ndarray[Any, Any]
Labels = np.ndarray[Any, Any]
SMALL = (
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
OTHERS = ("Leiden", "HDBSCAN on UMAP", "PLSCAN on UMAP", "EVoC")
PERPLEXITY = 30.0
POINTS = {
    "textbook": [90, 150, 300, 600, 1500, 3000],
    "null": [100, 300, 1000, 2000, 5000, 20_000],
    "calibrate": [300, 1000, 3000],
}
FAR = 30  # points of the far group beside data without clusters
CONTRASTS = (0.5, 0.7, 1.0, 1.1, 1.2, 1.3, 1.4, 1.6)
_SAME_DENSITY = 23.928  # likelihood ratio of two densities that agree, as in DPA
_Z = 1.65  # standard errors of a saddle


def fitted(X: Array, metric: str = "euclidean") -> LaptSNE:
    """Return a model of the data whose map is not of interest."""
    perplexity = min(PERPLEXITY, (len(X) - 1) / 3)
    return LaptSNE(perplexity=perplexity, metric=metric, max_iter=1, random_state=0).fit(X)


def ours(X: Array, metric: str = "euclidean") -> Labels:
    return np.asarray(fitted(X, metric).labels_)


def impostors(n: int, rng: np.random.Generator) -> Array:
    """Squared distances of three Gaussians plus a constant: nearly the affinities of clusters (arXiv 2510.07746)."""
    X = rng.normal(size=(n, 5)) + 8 * np.eye(3, 5)[rng.integers(0, 3, n)]
    squares = ((X[:, None] - X) ** 2).sum(axis=2) + 50 * float(2 * X.var(axis=0).sum())
    np.fill_diagonal(squares, 0)
    return np.sqrt(squares)


def leiden_of_umap(X: np.ndarray) -> Labels:
    from umap.umap_ import fuzzy_simplicial_set

    graph = fuzzy_simplicial_set(X, 15, np.random.RandomState(0), "euclidean")[0]
    return leiden(graph, [1.0])[0]


def in_five_dimensions(X: Array) -> Array:
    from umap import UMAP

    return np.asarray(UMAP(n_components=5, n_neighbors=15, min_dist=0.0, random_state=0).fit_transform(X))


def hdbscan(Z: Array) -> Labels:
    return np.asarray(HDBSCAN(min_cluster_size=max(10, len(Z) // 200), copy=True).fit_predict(Z.astype(np.float64)))


def plscan(Z: Any, metric: str = "euclidean") -> Labels:
    from fast_plscan import PLSCAN

    return np.asarray(PLSCAN(metric=metric).fit_predict(Z))


def evoc(X: Array) -> Labels:
    from evoc import EVoC

    return np.asarray(EVoC(random_state=0).fit_predict(X.astype(np.float32)))


def neighbors(X: Array) -> tuple[Array, Array]:
    """Return distances and indices of the nearest neighbours, of shape (n_samples, n_neighbors), nearest first."""
    k = int(3 * min(PERPLEXITY, (len(X) - 1) / 3))
    distances, indices = NearestNeighbors(n_neighbors=k).fit(X).kneighbors()
    return distances.astype(np.float32), indices.astype(np.int32)


def surprisal(X: Array) -> Any:
    """Return -log of the affinities, from 0 for the largest, as a sparse matrix of distances."""
    P = scipy.sparse.csr_array(fitted(X).affinities_)
    P.data = (np.log(P.data.max()) - np.log(P.data) + 1e-6).astype(np.float32)
    P.indices, P.indptr = P.indices.astype(np.int32), P.indptr.astype(np.int32)
    return P


def intrinsic_dimension(distances: Array) -> float:
    """Return the two-neighbour estimate (Facco et al., 2017), by maximum likelihood."""
    pairs = distances[distances[:, 0] > 0]
    ratio = np.log(np.maximum(pairs[:, 1] / pairs[:, 0], 1 + 1e-12))
    return float(len(ratio) / ratio.sum())


def adaptive_density(indices: Array, distances: Array) -> tuple[Array, Array, Array]:
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


def dpa(X: Array) -> Labels:
    """Return the clusters of peaks of density whose saddles are outside their errors, -1 for none."""
    distances, indices = neighbors(X)
    density, error, size = adaptive_density(indices, distances.astype(np.float64))
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


def _merged(labels: Labels, peaks: Array, density: Array, error: Array, indices: Array, within: Array) -> Labels:
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
    """Return the number of clusters; none if more than half of the points are noise."""
    return int(np.unique(labels[labels >= 0]).size) if (labels < 0).mean() <= 0.5 else 0


WAYS: dict[str, Callable[[Array], Labels]] = {
    "labels_": ours,
    "Leiden": leiden_of_umap,
    "HDBSCAN on UMAP": lambda X: hdbscan(in_five_dimensions(X)),
    "PLSCAN on UMAP": lambda X: plscan(in_five_dimensions(X)),
    "EVoC": evoc,
    "PLSCAN": lambda X: plscan(neighbors(X), "precomputed"),
    "PLSCAN, affinities": lambda X: plscan(surprisal(X), "precomputed"),
    "DPA": dpa,
}
MIN_FEATURES = {"EVoC": 4}


def compare_sets(names: list[str], ways: list[str]) -> None:
    rows: dict[str, dict[str, tuple[float, float]]] = {}
    for name in sorted(names, key=n_rows):
        data, rows[name] = load(name), {}
        X = np.ascontiguousarray(data.X, dtype=np.float32)
        print(f"{name}, {len(X)} rows, {data.n_classes} classes; ARI, NMI, clusters:", flush=True)
        for way in ways:
            labels = WAYS[way](X)
            scores = adjusted_rand_score(data.y, labels), normalized_mutual_info_score(data.y, labels)
            rows[name][way] = scores
            print(f"  {way}: {scores[0]:.3f} {scores[1]:.3f} {count(labels)}", flush=True)
    for group, members in {"all": tuple(rows), **GROUPS}.items():
        chosen = [rows[name] for name in members if name in rows]
        for way in ways if chosen else []:
            ari, nmi = np.mean([row[way] for row in chosen], axis=0)
            print(f"{group} ({len(chosen)}), {way}: {ari:.3f} {nmi:.3f}")


def agreement(names: list[str]) -> None:
    values = []
    for name in sorted(names, key=n_rows):
        model = LaptSNE(random_state=0).fit(load(name).X)
        value = adjusted_rand_score(model.labels_, hdbscan(model.embedding_))
        values += [value] if model.n_clusters_ > 1 else []
        print(f"{name}: {model.n_clusters_} clusters, ARI {value:.3f}", flush=True)
    print(f"mean over the {len(values)} sets with clusters: {np.mean(values):.3f}")


def counts(make: Callable[[np.random.Generator], Array], way: str, n_seeds: int) -> list[int]:
    """Return the number of clusters found in data of each seed; none for data with too few features."""
    data = (make(np.random.default_rng(seed)) for seed in range(n_seeds))
    return [count(WAYS[way](X)) for X in data if X.shape[1] >= MIN_FEATURES.get(way, 1)]


def with_far_group(X: Array, n_far: int, rng: np.random.Generator) -> Array:
    """Add a Gaussian group, 30 times as far from the data as it is wide; each has the median spread of the others."""
    centre, spread = np.median(X, axis=0), X.std(axis=0).mean()
    far = rng.normal(size=(n_far, X.shape[1])) + 30 / np.sqrt(X.shape[1])
    return np.vstack([X, centre + spread * far])


def in_null(ways: list[str], sizes: list[int], n_seeds: int) -> None:
    wrong: dict[tuple[str, int], list[bool]] = {}
    for n in sizes:
        for title, make in NULL.items():
            for way in ways:
                for n_far in (0, FAR):

                    def data(rng: np.random.Generator, make: Any = make, n: int = n, n_far: int = n_far) -> Array:
                        X = make(n, rng)
                        return with_far_group(X, n_far, rng) if n_far else X

                    found = counts(data, way, n_seeds)
                    expected = 2 if n_far else 1
                    # No cluster, of a way that has noise, is one.
                    wrong.setdefault((way, n_far), []).extend(max(k, 1) != expected for k in found)
                    print(f"{title}, {n}{f' and {n_far} far' if n_far else ''}, {way}: {found}", flush=True)
    for (way, n_far), each in wrong.items():
        where = f"with a far group of {n_far}, other than two clusters" if n_far else "more than one cluster"
        print(f"{way}: {where} in {sum(each)} of {len(each)} data sets")
    found = [count(ours(impostors(1500, np.random.default_rng(seed)), "precomputed")) for seed in range(n_seeds)]
    print(f"impostors of three clusters, 1500, labels_: {found}")


def in_mixtures(ways: list[str], n_seeds: int) -> None:
    off: dict[str, list[int]] = {way: [] for way in ways}
    for k in MIXTURES:
        for way in ways:
            found = counts(lambda rng, k=k: mixture(MIXTURE_POINTS, k, rng), way, n_seeds)
            off[way] += [abs(c - k) for c in found]
            print(f"mixture of {k}, {way}: {found}", flush=True)
    for way, errors in off.items():
        right = sum(error == 0 for error in errors)
        print(f"{way}: right in {right} of {len(errors)}, off by {np.mean(errors):.1f} in the mean")
    print(f"200 clusters of 50 points, labels_: {counts(many, 'labels_', n_seeds)}")


def three(n: int, n_features: int) -> Callable[[np.random.Generator], Array]:
    """Three Gaussians at the corners of a triangle."""
    corners = 6 * np.array([[0, 0], [1, 0], [0.5, np.sqrt(0.75)]])

    def make(rng: np.random.Generator) -> Array:
        X = rng.normal(size=(n, n_features))
        X[:, :2] += corners[np.arange(n) % 3]
        return X

    return make


def spaced(k: int, n_features: int = 20, size: int = 60) -> Callable[[np.random.Generator], Array]:
    """Gaussians of which all pairs are 11 standard deviations apart."""
    centres = np.repeat(11 / np.sqrt(2) * np.eye(k, n_features), size, axis=0)
    return lambda rng: centres + rng.normal(size=centres.shape)


def in_textbook(ways: list[str], sizes: list[int], n_seeds: int) -> None:
    cases: dict[str, tuple[int, Callable[[np.random.Generator], Array]]] = {}
    for d in (2, 5, 20):
        cases |= {f"three in {d} dimensions, {n} points": (3, three(n, d)) for n in sizes}
        for n_far in (10, 15, 30, 120):
            cases[f"a Gaussian in {d} dimensions and {n_far} far"] = (
                2,
                lambda rng, d=d, n_far=n_far: with_far_group(rng.normal(size=(300, d)), n_far, rng),
            )
    cases |= {f"{k} Gaussians": (k, spaced(k)) for k in range(2, 13)}
    right: dict[str, list[bool]] = {way: [] for way in ways}
    for title, (expected, make) in cases.items():
        for way in ways:
            found = counts(make, way, n_seeds)
            right[way] += [k == expected for k in found]
            print(f"{title}, {way}: {found}", flush=True)
    for way, each in right.items():
        print(f"{way}: right in {sum(each)} of {len(each)} data sets")


def in_halves(names: list[str], ways: list[str], n_seeds: int) -> None:
    ratios: dict[str, list[float]] = {way: [] for way in ways}
    for name in sorted(names, key=n_rows):
        X = np.ascontiguousarray(load(name).X, dtype=np.float32)
        for way in ways:
            whole = count(WAYS[way](X))
            orders = (np.random.default_rng(seed).permutation(len(X)) for seed in range(n_seeds))
            halves = [count(WAYS[way](X[np.sort(order[: len(X) // 2])])) for order in orders]
            ratios[way] += [abs(float(np.log2(max(half, 1) / max(whole, 1)))) for half in halves]
            print(f"{name}, {way}: {whole} of all {len(X)} rows, {halves} of halves", flush=True)
    for way, each in ratios.items():
        print(f"{way}: counts of halves are off by a factor of {2 ** np.mean(each):.2f} in the mean")


def modularity(P: Any, labels: Labels, resolution: float) -> float:
    """Return the modularity of labels from 0, without the points of no cluster."""
    known = np.flatnonzero(labels >= 0)
    graph = scipy.sparse.csr_matrix(P)[known][:, known].tocoo()
    own = labels[known]
    inside = graph.data[own[graph.row] == own[graph.col]].sum()
    degrees = np.bincount(own, np.bincount(graph.row, graph.data, minlength=known.size))
    return float(inside / degrees.sum() - resolution * ((degrees / degrees.sum()) ** 2).sum())


def layer_scores(tree: ClusterTree, P: Any, labels: Labels, layers: Array, classes: Array) -> dict[str, float]:
    """Return the ARI of ``labels_``, of the best layer, and of cuts of the tree."""
    cuts = [np.where(labels < 0, -1, tree.cut(k)[labels]) for k in range(1, tree.n_clusters + 1)]
    chosen = {"labels_": labels}
    for resolution in (0.5, 1.0):
        values = [modularity(P, cut, resolution) for cut in cuts]
        chosen[f"modularity, resolution {resolution:g}"] = cuts[int(np.argmax(values))]
    scores = {name: float(adjusted_rand_score(classes, cut)) for name, cut in chosen.items()}
    for name, others in (("best layer", layers), ("best cut", cuts)):
        scores[name] = max(float(adjusted_rand_score(classes, other)) for other in others)
    return scores


def in_layers(names: list[str]) -> None:
    rows = []
    for name in sorted(names, key=n_rows):
        data = load(name)
        model = fitted(np.ascontiguousarray(data.X, dtype=np.float32))
        arguments = (model.cluster_tree_, model.affinities_, model.labels_, model.cluster_layers_)
        rows.append(layer_scores(*arguments, data.y))
        layers = [int(layer.max()) + 1 for layer in model.cluster_layers_]
        cells = ", ".join(f"{title} {value:.3f}" for title, value in rows[-1].items())
        print(f"{name}, {data.n_classes} classes, layers of {layers}; {cells}", flush=True)
    print("mean ARI: " + ", ".join(f"{title} {np.mean([row[title] for row in rows]):.3f}" for title in rows[0]))


def is_divided(X: Array, thresholds: tuple[float, ...]) -> list[bool]:
    """Whether there would be several clusters if borders were evident below other contrasts."""
    with Workers() as workers:
        P = joint_affinities(X, perplexity=min(PERPLEXITY, (len(X) - 1) / 3), refine=True, workers=workers)
        first = first_copies(X)
        return [int(clusters_below(threshold, P, workers, first).max()) > 0 for threshold in thresholds]


def power_law(thresholds: Array, n_divided: Array, n_sets: int) -> tuple[float, float]:
    """Return the chance at a threshold of 1, and the power, of the greatest likelihood given counts.

    Thresholds at which more than a quarter of the data sets are divided do not count: there the share approaches 1.
    """
    rare = n_divided <= n_sets / 4
    thresholds, n_divided = thresholds[rare], n_divided[rare]

    def loss(parameters: Array) -> float:
        chance = np.clip(np.exp(parameters[0]) * thresholds ** parameters[1], 1e-12, 1 - 1e-9)
        return -float((n_divided * np.log(chance) + (n_sets - n_divided) * np.log1p(-chance)).sum())

    best = minimize(loss, [np.log(0.01), 5.0], method="Nelder-Mead", options={"maxiter": 5000}).x
    return float(np.exp(best[0])), float(best[1])


def calibrate(sizes: list[int], n_seeds: int) -> None:
    found = []
    for n in sizes:
        for title, make in NULL.items():
            own = [is_divided(make(n, np.random.default_rng(seed)), CONTRASTS) for seed in range(n_seeds)]
            found += own
            print(f"{title}, {n}: {', '.join(f'{share:.2f}' for share in np.mean(own, axis=0))}", flush=True)
    thresholds, n_divided = np.array(CONTRASTS), np.sum(found, axis=0)
    for threshold, share in zip(thresholds, n_divided / len(found), strict=True):
        print(f"contrast {threshold:g}: divided in {share:.4f} of {len(found)} data sets")
    chance, power = power_law(thresholds, n_divided, len(found))
    print(f"_CHANCE, _POWER = {chance:.3g}, {power:.2f}")


def many(rng: np.random.Generator) -> Array:
    """Return 200 clusters of 50 points."""
    centres = rng.normal(scale=1.25, size=(200, 20))
    return np.repeat(centres, 50, axis=0) + 0.6 * rng.normal(size=(10_000, 20))


def parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__)
    what = ["sets", "agreement", "textbook", "null", "mixtures", "halves", "layers", "calibrate"]
    parser.add_argument("what", choices=what)
    parser.add_argument("names", nargs="*", metavar="SET", help="all by default")
    parser.add_argument("--group", choices=["small", *GROUPS], help="sets of a group, or ten of up to 5,000 rows")
    help_ = f"by default labels_, for sets also {', '.join(OTHERS)}"
    parser.add_argument("--ways", nargs="+", choices=WAYS, metavar="WAY", help=help_)
    parser.add_argument("--points", type=int, nargs="+", help="of each data set that is generated")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="of data that are generated, and of halves")
    return parser


def main() -> None:
    warnings.simplefilter("ignore")
    args = parser().parse_args()
    names = list(args.names or {"small": SMALL, **GROUPS}.get(args.group, SETS))
    ways, points = args.ways or ["labels_"], args.points or POINTS.get(args.what, [])
    commands: dict[str, Callable[[], None]] = {
        "sets": lambda: compare_sets(names, args.ways or ["labels_", *OTHERS]),
        "agreement": lambda: agreement(names),
        "textbook": lambda: in_textbook(ways, points, args.seeds),
        "null": lambda: in_null(ways, points, args.seeds),
        "mixtures": lambda: in_mixtures(ways, args.seeds),
        "halves": lambda: in_halves(names, ways, args.seeds),
        "layers": lambda: in_layers(names),
        "calibrate": lambda: calibrate(points, args.seeds),
    }
    commands[args.what]()


if __name__ == "__main__":
    main()
