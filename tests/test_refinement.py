"""Path-refined affinities, compared with SciPy's shortest paths."""

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.csgraph import dijkstra
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import kneighbors_graph

from laptsne import LaptSNE
from laptsne._runtime.threads import Workers
from laptsne.graph import paths
from laptsne.graph.affinity import joint_affinities
from laptsne.graph.neighbors import neighbor_distances

FAST = {"max_iter": 1, "random_state": 0}


def mutual_edges(graph, n_mutual):
    """Dense lengths of the mutual edges of a graph of neighbours, infinite for none."""
    dense = np.full(graph.shape, np.inf)
    for i, (a, b) in enumerate(zip(graph.indptr[:-1], graph.indptr[1:], strict=True)):
        nearest = np.lexsort((graph.indices[a:b], graph.data[a:b]))[:n_mutual]
        dense[i, graph.indices[a:b][nearest]] = graph.data[a:b][nearest]
    return np.where(np.isfinite(dense) & np.isfinite(dense.T), dense, np.inf)


def expected_lengths(graph, n_mutual):
    """Shortest paths along mutual edges, infinite where there are none and on the diagonal."""
    dense, tiny = mutual_edges(graph, n_mutual), 1e-12  # SciPy has no edges of length 0
    weights = scipy.sparse.csr_matrix(np.where(np.isfinite(dense), np.maximum(dense, tiny), 0))
    lengths = dijkstra(weights, directed=False)
    np.fill_diagonal(lengths, np.inf)
    return lengths


def path_distances(graph, n_mutual, n_neighbors):
    """The nearest nodes by path, found in two blocks of rows."""
    edges, middle = paths.mutual_edges(graph, n_mutual, Workers(1)), graph.shape[0] // 2
    blocks = [slice(0, middle), slice(middle, graph.shape[0])]
    return scipy.sparse.vstack([paths.nearest_along(edges, rows, n_neighbors) for rows in blocks], format="csr")


def rows_of(found):
    assert np.isfinite(found.data).all()
    return [np.sort(found.data[a:b]) for a, b in zip(found.indptr[:-1], found.indptr[1:], strict=True)]


DATA = {
    "Gaussian": lambda rng: rng.normal(size=(200, 10)),
    "duplicates": lambda rng: np.repeat(rng.normal(size=(60, 3)), [1, 2, 3, 4, 10, 1] * 10, axis=0),
    "two groups": lambda rng: rng.normal(size=(150, 4)) + 100 * (np.arange(150) % 2)[:, None],
    "hubs": lambda rng: rng.standard_t(2, size=(200, 30)),
    "3 points": lambda rng: rng.normal(size=(3, 2)),
    "10 points": lambda rng: rng.normal(size=(10, 2)),
}


@pytest.mark.parametrize("n_mutual", [1, 5, 10])
@pytest.mark.parametrize("name", DATA)
def test_lengths_are_those_of_scipy(rng, name, n_mutual):
    X = DATA[name](rng)
    k = min(15, len(X) - 1)
    graph = neighbor_distances(X, k, workers=Workers(1))
    n_mutual = min(n_mutual, k)
    expected = expected_lengths(graph, n_mutual)
    found = path_distances(graph, n_mutual, 20).astype(np.float64) * graph.data.max()
    for i, row in enumerate(rows_of(found)):
        reached = np.sort(expected[i][np.isfinite(expected[i])])[:20]
        np.testing.assert_allclose(row, reached, rtol=1e-6, atol=1e-9)
        columns = found.indices[found.indptr[i] : found.indptr[i + 1]]
        assert i not in columns
        assert len(set(columns)) == len(columns)
        np.testing.assert_allclose(np.sort(expected[i, columns]), row, rtol=1e-6, atol=1e-9)


def test_groups_without_edges_between_them_stay_apart(rng):
    X = rng.normal(size=(30, 4)) + 100 * (np.arange(30) % 3)[:, None]
    found = path_distances(neighbor_distances(X, 5, workers=Workers(1)), 5, 20).tocoo()
    np.testing.assert_array_equal(found.row % 3, found.col % 3)
    np.testing.assert_array_equal(np.bincount(found.row), 9)


def test_ties_go_to_the_lowest_index():
    points = np.array([[0.0], [1], [2], [3], [4], [5]])
    graph = scipy.sparse.csr_matrix(kneighbors_graph(points, 4, mode="distance"))
    shuffled = graph.copy()
    for i in range(6):
        row = slice(graph.indptr[i], graph.indptr[i + 1])
        shuffled.indices[row], shuffled.data[row] = graph.indices[row][::-1], graph.data[row][::-1]
    for given in (graph, shuffled):
        found = path_distances(given, 2, 3)
        assert found.indices.reshape(6, 3).tolist()[2] == [1, 3, 0]
        assert found.indices.reshape(6, 3).tolist()[3] == [2, 4, 1]


def reference(X, perplexity):
    """P' by the mean of two conditionals, one from distances, the other from SciPy's lengths."""
    graph = neighbor_distances(X, 3 * perplexity, workers=Workers(1))
    lengths = expected_lengths(graph, perplexity)
    raw = np.full(lengths.shape, np.inf)
    raw[np.repeat(np.arange(len(X)), np.diff(graph.indptr)), graph.indices] = graph.data
    total = np.zeros(lengths.shape)
    for D, share in ((raw, np.where(np.isfinite(lengths).any(axis=1), 0.5, 1)), (lengths, np.full(len(X), 0.5))):
        for i, row in enumerate(D):
            near = np.argsort(row, kind="stable")[: 3 * perplexity]
            near = near[np.isfinite(row[near])]
            if near.size == 0:
                continue
            squared = row[near] ** 2 - row[near].min() ** 2
            low, high = 1e-9, 1e9
            for _ in range(200):
                beta = np.sqrt(low * high)
                p = np.exp(-beta * squared)
                p /= p.sum()
                entropy = -(p[p > 0] * np.log(p[p > 0])).sum()
                low, high = (beta, high) if entropy > np.log(perplexity) else (low, beta)
            total[i, near] += share[i] * p
    total += total.T
    total[total < 2e-3] = 0
    return total / total.sum()


@pytest.mark.parametrize("name", ["Gaussian", "two groups", "hubs"])
def test_affinities_are_those_of_the_definition(rng, name):
    X = DATA[name](rng)
    P = joint_affinities(X, perplexity=10, refine=True)
    np.testing.assert_allclose(P.toarray(), reference(X, 10), rtol=2e-3, atol=1e-7)
    assert abs(P - P.T).max() == 0
    assert P.sum(dtype=float) == pytest.approx(1, abs=1e-6)
    assert not P.diagonal().any()
    assert np.abs(P - joint_affinities(X, perplexity=10)).sum() > 0.05


def test_bits_do_not_depend_on_the_number_of_threads(rng, monkeypatch):
    monkeypatch.setattr("laptsne._runtime.threads.MIN_WORK", 0)
    X = np.vstack([rng.normal(size=(700, 5)), rng.integers(0, 2, size=(300, 5))])
    found = []
    for n_jobs in (1, 2, 3):
        with Workers(n_jobs) as workers:
            found.append(joint_affinities(X, perplexity=30, refine=True, workers=workers))
    for other in found[1:]:
        for name in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(getattr(found[0], name), getattr(other, name))


@pytest.mark.parametrize("scale", [1e-140, 1e140])
def test_the_scale_of_the_data_does_not_matter(rng, scale):
    X = rng.normal(size=(60, 3))
    a, b = (joint_affinities(given, perplexity=6, refine=True).toarray() for given in (X, X * scale))
    np.testing.assert_allclose(a, b, atol=1e-6)


class TestEstimator:
    def test_affinities_of_the_map_are_refined_by_default(self, rng):
        X = rng.normal(size=(150, 8))
        refined, raw = (joint_affinities(X, perplexity=30, refine=refine) for refine in (True, False))
        assert abs(LaptSNE(**FAST).fit(X).affinities_ - refined).max() == 0
        assert abs(LaptSNE(**FAST, refine_affinities=False).fit(X).affinities_ - raw).max() == 0
        assert abs(refined - raw).max() > 1e-5

    def test_not_those_of_the_paper_nor_given_ones_nor_those_of_all_pairs(self, rng):
        X = rng.normal(size=(80, 4))
        dense = joint_affinities(X, perplexity=10, n_neighbors="all")
        assert not LaptSNE.paper().refine_affinities
        for changes in ({}, {"n_neighbors": "auto"}):
            P = LaptSNE.paper(2, perplexity=10, max_iter=1, **changes).fit(X).affinities_
            P = P if isinstance(P, np.ndarray) else P.toarray()
            expected = joint_affinities(X, perplexity=10, n_neighbors=changes.get("n_neighbors", "all"))
            np.testing.assert_array_equal(P, expected if not changes else expected.toarray())
        np.testing.assert_array_equal(LaptSNE(n_neighbors="all", perplexity=10, **FAST).fit(X).affinities_, dense)
        given = joint_affinities(X, perplexity=10)
        found = LaptSNE(metric="affinities", **FAST).fit(given).affinities_
        assert abs(found - given).max() < 1e-8

    @pytest.mark.parametrize("metric", ["euclidean", "cosine"])
    def test_the_form_of_the_input_does_not_matter(self, rng, metric):
        X = rng.normal(size=(120, 6))
        D = pairwise_distances(X, metric=metric)
        expected = LaptSNE(perplexity=10, metric=metric, **FAST).fit(X).affinities_.toarray()
        np.fill_diagonal(D, 0)
        nearest = np.argsort(D + np.diag(np.full(120, np.inf)), axis=1)[:, :30]
        far = np.take_along_axis(D, nearest, axis=1)
        graph = scipy.sparse.csr_matrix((far.ravel(), nearest.ravel(), np.arange(121) * 30), D.shape)
        for given, name in (
            (scipy.sparse.csr_matrix(X), metric),
            (D, "precomputed"),
            (graph, "precomputed"),
            ((nearest, far), "precomputed"),
        ):
            found = LaptSNE(perplexity=10, metric=name, **FAST).fit(given).affinities_.toarray()
            np.testing.assert_allclose(found, expected, atol=1e-7)

    @pytest.mark.parametrize("n", [2, 3, 5, 10])
    def test_few_points(self, rng, n):
        model = LaptSNE(**FAST).fit(rng.normal(size=(n, 3)))
        assert (np.asarray(model.affinities_.sum(axis=1)) > 0).all()
        assert np.isfinite(model.embedding_).all()

    def test_all_points_equal(self):
        P = LaptSNE(**FAST).fit(np.ones((40, 3))).affinities_
        assert P.sum() == pytest.approx(1, abs=1e-6)

    def test_affinities_are_the_same_after_a_file(self, rng, tmp_path):
        X = rng.normal(size=(200, 4))
        model = LaptSNE(random_state=0, max_iter=50).fit(X)
        model.save(tmp_path / "model")
        loaded = LaptSNE.load(tmp_path / "model")
        np.testing.assert_array_equal(loaded.data_eigenvalues_, model.data_eigenvalues_)
