import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import KDTree, NearestNeighbors

from laptsne import LaptSNE
from laptsne._runtime.threads import Workers
from laptsne.graph import ivf
from laptsne.graph.ivf import IVFIndex, nearest_columns
from laptsne.graph.neighbors import NeighborIndex, nearest_in_rows, neighbor_distances, neighbor_graph


def groups(rng, n=12_000, n_features=10, n_groups=30):
    """Anisotropic groups, as in data reduced by PCA."""
    centres = rng.normal(scale=4, size=(n_groups, n_features))
    spread = 3 / np.arange(1, n_features + 1)
    return centres[rng.integers(0, n_groups, n)] + rng.normal(size=(n, n_features)) * spread


def recall(found, exact):
    return np.mean([np.isin(a, b).mean() for a, b in zip(exact, found, strict=True)])


def found_neighbors(X, n_neighbors, metric="euclidean"):
    with Workers(2) as workers:
        graph = neighbor_distances(X, n_neighbors, metric=metric, metric_params=None, workers=workers)
    return graph.indices.reshape(-1, n_neighbors)


def true_neighbors(X, n_neighbors, rows):
    """By a KD-tree, which computes distances by differences."""
    return KDTree(X).query(X[rows], n_neighbors + 1)[1][:, 1:]


@pytest.mark.parametrize("metric", ["euclidean", "l2", "sqeuclidean", "cosine", "correlation"])
def test_approximate_neighbours_are_nearly_all_true(rng, metric):
    X = groups(rng)
    with Workers(2) as workers:
        graph = neighbor_distances(X, 90, metric=metric, metric_params=None, workers=workers)
    some = rng.choice(len(X), 300, replace=False)
    distances, indices = NearestNeighbors(n_neighbors=91, metric=metric, algorithm="brute").fit(X).kneighbors(X[some])
    found = graph.indices.reshape(-1, 90)
    assert recall(found[some], indices[:, 1:]) >= 0.98
    assert not (found == np.arange(len(X))[:, None]).any()
    furthest = graph.data.reshape(-1, 90)[some].max(axis=1)
    np.testing.assert_allclose(np.median(furthest / distances[:, -1]), 1, rtol=0.01)


def test_bits_do_not_depend_on_the_number_of_threads(rng):
    X = groups(rng, 5000)
    results = []
    for n_jobs in (1, 2, 4):
        with Workers(n_jobs) as workers:
            results.append(IVFIndex(X, workers).neighbors(20, workers))
    for other in results[1:]:
        for found, expected in zip(other, results[0], strict=True):
            np.testing.assert_array_equal(found, expected)


def test_distances_are_those_of_the_points(rng):
    X = groups(rng, 3000) + 1e4
    indices, distances = IVFIndex(X, Workers(1)).neighbors(5, Workers(1))
    expected = np.linalg.norm(X[:, None] - X[indices], axis=2)
    np.testing.assert_allclose(distances, expected, rtol=1e-4)


def test_duplicates_find_each_other(rng):
    X = np.vstack([np.zeros((6000, 5)), rng.normal(size=(6000, 5))])
    with Workers(2) as workers:
        indices, distances = IVFIndex(X, workers).neighbors(10, workers)
    assert (distances[:6000] == 0).all()
    assert (indices != np.arange(12_000)[:, None]).all()
    assert (np.diff(np.sort(indices, axis=1), axis=1) > 0).all()


@pytest.mark.parametrize("sparse", [False, True])
def test_other_metrics_and_sparse_features_are_exact(rng, sparse):
    X = groups(rng, 10_050, 4)
    metric = "cosine" if sparse else "manhattan"
    given = scipy.sparse.csr_matrix(X) if sparse else X
    with Workers(2) as workers:
        graph = neighbor_distances(given, 7, metric=metric, metric_params=None, workers=workers)
    some = rng.choice(len(X), 100, replace=False)
    expected = NearestNeighbors(n_neighbors=8, metric=metric).fit(X).kneighbors(X[some])[1][:, 1:]
    assert recall(graph.indices.reshape(-1, 7)[some], expected) > 0.999


def test_neighbours_given_as_indices_and_distances(blobs):
    X = blobs[0]
    distances, indices = NearestNeighbors(n_neighbors=31).fit(X).kneighbors(X)
    settings = {"perplexity": 10, "max_iter": 30, "init": "random", "random_state": 0}
    expected = LaptSNE(**settings).fit_transform(X)
    given = LaptSNE(metric="precomputed", **settings)
    np.testing.assert_allclose(given.fit_transform((indices, distances)), expected, rtol=1e-5)
    # A negative index is no neighbour.
    indices[5, 20:] = -1
    assert np.isfinite(given.fit_transform((indices, distances))).all()
    assert given.affinities_.shape == (120, 120)


@pytest.mark.parametrize(
    ("indices", "distances", "message"),
    [
        ([[0.5], [1.0]], [[1.0], [1.0]], "the first of integers"),
        ([[1], [0]], [[1.0, 2.0], [1.0, 2.0]], "of the same shape"),
        ([[1], [7]], [[1.0], [1.0]], "index 7 is out of range for 2 samples"),
        ([[1], [0]], [[-1.0], [1.0]], "at least 0"),
        ([[1], [0]], [[np.nan], [1.0]], "finite"),
    ],
)
def test_wrong_neighbours_are_refused(indices, distances, message):
    with pytest.raises(ValueError, match=message):
        neighbor_graph(indices, distances)


def test_a_graph_is_cut_to_the_nearest(rng):
    X = rng.normal(size=(50, 3))
    graph = NearestNeighbors(n_neighbors=20).fit(X).kneighbors_graph(mode="distance")
    cut = neighbor_distances(graph, 6, metric="precomputed", metric_params=None, workers=Workers(1))
    expected = NearestNeighbors(n_neighbors=6).fit(X).kneighbors()[0]
    np.testing.assert_allclose(np.sort(cut.data.reshape(50, 6), axis=1), expected)


@pytest.mark.parametrize("scale", [1e-40, 1.0, 1e40])
def test_the_search_does_not_depend_on_the_unit(rng, scale):
    X = groups(rng, 3000)
    expected, distances = IVFIndex(X, Workers(1)).neighbors(5, Workers(1))
    found, scaled = IVFIndex(X * scale, Workers(1)).neighbors(5, Workers(1))
    assert recall(found, expected) > 0.999
    np.testing.assert_allclose(np.median(scaled / scale / distances), 1, rtol=1e-4)


def searched_lists(index, n_probes, n_neighbors):
    """Whether each point searches each list: its nearest ones, or all if these have too few points."""
    points, centres = index.columns.T.astype(float), index.centres.T.astype(float)
    nearest = np.argsort(((points[:, None] - centres) ** 2).sum(axis=2), axis=1)[:, :n_probes]
    searched = np.zeros((len(points), len(centres)), bool)
    np.put_along_axis(searched, nearest, True, axis=1)
    searched[searched @ np.diff(index.lists) <= n_neighbors] = True
    return searched


@pytest.mark.parametrize(("n_probes", "n_neighbors"), [(4, 20), (2, 15)])
def test_neighbours_are_the_nearest_in_the_lists_that_a_point_searches(rng, monkeypatch, n_probes, n_neighbors):
    monkeypatch.setattr(ivf, "PROBE_ENTRIES", 2000)  # many blocks
    X = groups(rng, 700, 6)
    index = IVFIndex(X, Workers(1))
    points = index.columns.T.astype(float)
    searched = searched_lists(index, n_probes, n_neighbors)
    squared = ((points[:, None] - points) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    squared[~np.repeat(searched, np.diff(index.lists), axis=1)] = np.inf
    expected = index.order[np.argsort(squared, axis=1)[:, :n_neighbors]]
    found = index.neighbors(n_neighbors, Workers(1), n_probes)[0][index.order]
    np.testing.assert_array_equal(np.sort(found, axis=1), np.sort(expected, axis=1))
    assert 0 < searched.all(axis=1).mean() < 1


@pytest.mark.parametrize(("n", "n_features", "n_neighbors"), [(1000, 4, 200), (3000, 4, 10), (5000, 3, 90)])
def test_as_few_lists_are_searched_as_reach_the_recall(rng, n, n_features, n_neighbors):
    index = IVFIndex(groups(rng, n, n_features), Workers(1))
    found = index.n_probes(n_neighbors, Workers(1))
    points = index.columns.T.astype(float)
    sample = np.linspace(0, n - 1, 512).astype(int)
    true = NearestNeighbors(n_neighbors=n_neighbors + 1, algorithm="brute").fit(points).kneighbors(points[sample])[1]
    holders = np.searchsorted(index.lists, true, side="right") - 1
    squared = ((points[sample][:, None] - index.centres.T) ** 2).sum(axis=2)
    ranks = np.take_along_axis(np.argsort(np.argsort(squared, axis=1), axis=1), holders, axis=1)
    assert np.mean(ranks < found) >= ivf._RECALL
    assert np.mean(ranks < found - 1) <= ivf._RECALL + 1e-3


def test_the_table_of_probed_lists_is_never_whole(rng, monkeypatch):
    n, limit, n_entries = 20_000, 100_000, []

    def counted(queries, centres, k, workers, **options):
        n_entries.append(queries.shape[1] * k)
        return nearest_columns(queries, centres, k, workers, **options)

    index = IVFIndex(rng.normal(size=(n, 10)), Workers(1))
    n_probes = index.n_probes(30, Workers(1))
    monkeypatch.setattr(ivf, "PROBE_ENTRIES", limit)
    monkeypatch.setattr(ivf, "nearest_columns", counted)
    index.neighbors(30, Workers(1), n_probes)
    assert sum(n_entries) == n * n_probes > 3 * limit
    assert max(n_entries) <= limit + np.diff(index.lists).max() * n_probes


def test_a_tuple_of_three_is_refused(blobs):
    with pytest.raises(ValueError, match=r"expected a tuple \(indices, distances\), got one of 3 elements"):
        LaptSNE(metric="precomputed").fit((blobs[0], blobs[0], blobs[0]))


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
@pytest.mark.parametrize("n_features", [4, 20])
def test_exact_neighbours_are_those_of_all_pairs(rng, metric, n_features):
    X = rng.normal(size=(1500, n_features))
    with Workers(2) as workers:
        graph = neighbor_distances(X, 6, metric=metric, metric_params=None, workers=workers)
    distances = pairwise_distances(X, metric=metric)
    np.fill_diagonal(distances, np.inf)
    expected = np.argsort(distances, axis=1)[:, :6]
    np.testing.assert_array_equal(np.sort(graph.indices.reshape(-1, 6)), np.sort(expected))
    np.testing.assert_allclose(np.sort(graph.data.reshape(-1, 6)), np.sort(distances)[:, :6], rtol=1e-6)


def test_no_point_is_its_own_neighbour_among_many_duplicates(rng):
    X = np.repeat(rng.normal(size=(30, 20)), 20, axis=0)
    graph = neighbor_distances(X, 5, metric="euclidean", metric_params=None, workers=Workers(1))
    indices = graph.indices.reshape(-1, 5)
    assert (indices != np.arange(600)[:, None]).all()
    assert (indices // 20 == np.arange(600)[:, None] // 20).all()


@pytest.mark.parametrize("metric", ["seuclidean", "mahalanobis"])
def test_metrics_take_from_the_data_what_is_not_given(rng, metric):
    X = rng.normal(size=(200, 5)) * [1, 2, 4, 8, 16]
    given = {"V": X.var(axis=0, ddof=1)} if metric == "seuclidean" else {"VI": np.linalg.inv(np.cov(X.T))}
    options = {"metric": metric, "workers": Workers(1)}
    found, expected = (neighbor_distances(X, 5, metric_params=params, **options) for params in (None, given))
    np.testing.assert_array_equal(found.indices, expected.indices)


@pytest.mark.parametrize("given", [None, {"V": np.ones((3, 3))}], ids=["of the data", "given"])
@pytest.mark.parametrize("n_neighbors", [5, "all"])
def test_a_covariance_without_inverse_is_refused(rng, given, n_neighbors):
    X = rng.normal(size=(60, 3))
    X[:, 2] = X[:, 0] - X[:, 1]
    model = LaptSNE(metric="mahalanobis", metric_params=given, n_neighbors=n_neighbors)
    with pytest.raises(ValueError, match=r"'mahalanobis' needs the inverse of the covariance of 3 features.*'VI'"):
        model.fit(X)


def test_a_given_covariance_is_inverted(rng):
    X = rng.normal(size=(100, 3)) * [1, 2, 4]
    options = {"metric": "mahalanobis", "workers": Workers(1)}
    given = ({"V": np.cov(X.T)}, {"VI": np.linalg.inv(np.cov(X.T))})
    found, expected = (neighbor_distances(X, 5, metric_params=params, **options) for params in given)
    np.testing.assert_allclose(found.data, expected.data)


def twisted(a, b):
    """A dissimilarity without the triangle inequality: 0 to 1 to 2 is much shorter than 0 to 2."""
    return float((np.abs(a - b) ** 3.5).sum() + 0.1 * np.sin(5 * np.abs(a - b)).sum() ** 2)


@pytest.mark.parametrize("metric", [twisted, "braycurtis"])
def test_neighbours_are_exact_without_the_triangle_inequality(rng, metric):
    X = abs(rng.normal(size=(1000, 3))) ** 2
    distances = pairwise_distances(X, metric=metric)
    new = NeighborIndex(X, metric=metric, metric_params=None, n_neighbors=5, workers=Workers(1))
    np.testing.assert_allclose(new.search(X[:200], Workers(1))[1], np.sort(distances[:200], axis=1)[:, :5], atol=1e-12)
    np.fill_diagonal(distances, np.inf)
    graph = neighbor_distances(X, 5, metric=metric, metric_params=None, workers=Workers(1))
    np.testing.assert_allclose(np.sort(graph.data.reshape(-1, 5)), np.sort(distances)[:, :5], atol=1e-12)


def test_mahalanobis_neighbours_do_not_depend_on_the_number_of_threads(rng):
    X = rng.normal(size=(3000, 10))
    found = []
    for n_jobs in (1, 2, 2):
        with Workers(n_jobs) as workers:
            found.append(neighbor_distances(X, 7, metric="mahalanobis", metric_params=None, workers=workers).data)
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


NEW_POINTS = {
    "manhattan": ("manhattan", None, np.asarray),
    "sparse cosine": ("cosine", None, scipy.sparse.csr_matrix),
    "sparse array": ("euclidean", None, scipy.sparse.csr_array),
    "function": (twisted, None, np.asarray),
    "minkowski": ("minkowski", {"p": 1.5}, np.asarray),
    "matrix products": ("nan_euclidean", None, np.asarray),
}


@pytest.mark.parametrize("case", NEW_POINTS)
@pytest.mark.parametrize("n_features", [4, 30])
def test_new_points_are_searched_in_blocks_as_if_one_by_one(rng, monkeypatch, case, n_features):
    metric, params, form = NEW_POINTS[case]
    X = rng.normal(size=(300, n_features)) * (rng.random((300, n_features)) < 0.5)
    data, new = form(X[:150]), form(X[150:])
    index = NeighborIndex(data, metric=metric, metric_params=params, n_neighbors=7, workers=Workers(1))
    alone = [index.search(new[i : i + 1], Workers(1)) for i in range(150)]
    n_calls, kneighbors = [], NearestNeighbors.kneighbors
    monkeypatch.setattr(
        NearestNeighbors, "kneighbors", lambda self, X: n_calls.append(X.shape[0]) or kneighbors(self, X)
    )
    with Workers(2) as workers:
        indices, distances = index.search(new, workers)
    np.testing.assert_array_equal(indices, np.concatenate([found[0] for found in alone]))
    np.testing.assert_array_equal(distances, np.concatenate([found[1] for found in alone]))
    assert sorted(n_calls) == sorted([64, 64, 22 if case == "function" else 64])


@pytest.mark.parametrize("distance", [1e2, 1e4, 1e5, 1e6])
def test_groups_far_apart_keep_their_approximate_neighbours(rng, distance):
    X = rng.normal(size=(10_500, 8))
    X[::2] += distance
    rows = rng.choice(len(X), 300, replace=False)
    assert recall(found_neighbors(X, 15)[rows], true_neighbors(X, 15, rows)) > 0.98


@pytest.mark.parametrize("n", [3000, 10_500])
def test_an_outlier_costs_the_others_no_neighbours(rng, n):
    X = rng.normal(size=(n, 8))
    X[7] = 1e8
    rows = rng.choice(n, 300, replace=False)
    assert recall(found_neighbors(X, 30)[rows], true_neighbors(X, 30, rows)) > 0.98


@pytest.mark.parametrize("n", [500, 10_500])
@pytest.mark.parametrize("outlier", [1e6, 1e8])
def test_rows_of_the_data_find_themselves_in_spite_of_an_outlier(rng, n, outlier):
    X = rng.normal(size=(n, 8))
    X[7] = outlier
    index = NeighborIndex(X, metric="euclidean", metric_params=None, n_neighbors=5, workers=Workers(2))
    indices, distances = index.search(X, Workers(2))
    np.testing.assert_array_equal(indices[:, 0], np.arange(n))
    expected = np.linalg.norm(X[:, None] - X[indices], axis=2)[np.arange(n) != 7]
    np.testing.assert_allclose(distances[np.arange(n) != 7], expected, rtol=1e-4)


OFFSETS = {
    "a constant column": lambda X: np.column_stack([X, np.full(len(X), 1e9)]),
    "all columns": lambda X: X + 1e8,
    "two groups": lambda X: X + 1e8 * (np.arange(len(X)) % 2)[:, None],
}


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_an_offset_costs_no_exact_neighbours(rng, offset, metric):
    X = OFFSETS[offset](rng.normal(size=(2000, 20)))
    rows = rng.choice(len(X), 300, replace=False)
    assert recall(found_neighbors(X, 30, metric)[rows], true_neighbors(X, 30, rows)) == 1


@pytest.mark.filterwarnings("error")
def test_duplicates_and_large_constants_are_not_warned_of(rng):
    X = np.repeat(rng.normal(size=(20, 20)), 10, axis=0)
    found_neighbors(scipy.sparse.csr_matrix(X), 5)
    found_neighbors(np.column_stack([X, np.full(200, 1e9)]).astype(np.float32), 5)


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
@pytest.mark.parametrize("n", [9900, 10_400])
def test_rows_without_direction_are_at_distance_one_from_all(rng, metric, n):
    X = rng.normal(size=(n, 12))
    X[:100] = 0 if metric == "cosine" else 0.1
    with Workers(2) as workers:
        graph = neighbor_distances(X, 30, metric=metric, metric_params=None, workers=workers)
        index = NeighborIndex(X, metric=metric, metric_params=None, n_neighbors=5, workers=workers)
        indices, distances = index.search(X, workers)
    assert (graph.indices.reshape(-1, 30)[100:] >= 100).all()
    assert (graph.data.reshape(-1, 30)[:100] == 1).all()
    np.testing.assert_array_equal(indices[100:, 0], np.arange(100, n))
    assert (distances[:100] == 1).all()


def test_new_rows_without_direction_are_at_distance_one_from_data_with_directions(rng):
    X, new = rng.normal(size=(200, 5)), np.vstack([np.zeros(5), rng.normal(size=(3, 5))])
    index = NeighborIndex(X, metric="cosine", metric_params=None, n_neighbors=200, workers=Workers(1))
    found = index.search(new, Workers(1))[1]
    np.testing.assert_allclose(found, np.sort(pairwise_distances(new, X, metric="cosine"), axis=1), atol=1e-6)


def with_duplicates(graph):
    """The same matrix with every entry stored as two halves, which SciPy sums."""
    graph = scipy.sparse.csr_matrix(graph)
    halves = np.repeat(graph.data / 2, 2), np.repeat(graph.indices, 2), 2 * graph.indptr
    return scipy.sparse.csr_matrix(halves, graph.shape)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "precomputed", "affinities"])
def test_repeated_entries_are_summed_but_not_in_the_matrix_of_the_caller(blobs, metric):
    X = scipy.sparse.csr_matrix(np.rint(blobs[0]))
    if metric in ("precomputed", "affinities"):
        X = NearestNeighbors(n_neighbors=20).fit(blobs[0]).kneighbors_graph(mode="distance")
    given = with_duplicates(X)
    before = given.copy()
    model = LaptSNE(metric=metric, perplexity=5, max_iter=5, random_state=0)
    found = model.fit(given).affinities_
    if metric not in ("affinities", "precomputed"):
        model.transform(given)
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(given, name), getattr(before, name))
    assert abs(found - model.fit(X).affinities_).max() < 1e-8


def test_nearest_of_sparse_distances(rng):
    distances = rng.integers(0, 9, (6, 40)).astype(float)
    stored = rng.random((6, 40)) < 0.5
    row, column = np.nonzero(stored)
    graph = scipy.sparse.csr_matrix((distances[stored], (row, column)), distances.shape)
    indices, found = nearest_in_rows(graph, 7)
    order = np.argsort(np.where(stored, distances, np.inf), axis=1, kind="stable")[:, :7]
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(found, np.take_along_axis(distances, order, axis=1))
    graph = graph.tolil()
    graph[3] = 0
    graph[3, :5] = 2
    with pytest.raises(ValueError, match=r"X has 5 distances in row 3, but 7 are needed.*dense matrix"):
        nearest_in_rows(graph.tocsr(), 7)


def test_neighbours_lost_in_rounding_are_warned_of(rng):
    X = rng.normal(size=(300, 20))
    with pytest.warns(UserWarning, match="distances of 300 rows of the sparse X .* are lost in rounding"):
        found_neighbors(scipy.sparse.csr_matrix(X + 1e8), 30)
    far_apart = rng.normal(size=(10_500, 8)) + 1e8 * (np.arange(10_500) % 2)[:, None]
    with pytest.warns(UserWarning, match=r"neighbours of \d+ rows of X are lost in rounding.*Transform or remove"):
        found_neighbors(far_apart, 15)


def test_rows_of_a_file_are_those_of_memory_to_the_bit(rng, tmp_path, monkeypatch):
    """Whatever the number of threads and the size of blocks; no copy of the rows is made."""
    X = groups(rng, 12_000).astype(np.float32)
    np.save(tmp_path / "rows.npy", X)
    expected = found_neighbors(X, 15)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    for size, n_jobs in ((1 << 16, 2), (1000, 1), (777, 3)):
        monkeypatch.setattr(ivf, "_ORDERED", size)
        monkeypatch.setattr(ivf, "PROBE_ENTRIES", 50 * size)
        with Workers(n_jobs) as workers:
            graph = neighbor_distances(mapped, 15, workers=workers)
        np.testing.assert_array_equal(graph.indices.reshape(-1, 15), expected)
