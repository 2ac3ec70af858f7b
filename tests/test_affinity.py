import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import kneighbors_graph

from laptsne._runtime.threads import Workers
from laptsne.graph.affinity import auto_perplexity, feasible_perplexity, joint_affinities


def plain_affinities(X, perplexity):
    """Dense P of t-SNE by root finding in every row."""
    from scipy.optimize import brentq

    squared = pairwise_distances(X) ** 2
    n = len(X)
    conditional = np.zeros((n, n))
    for i in range(n):
        others = np.delete(np.arange(n), i)
        d = squared[i, others] - squared[i, others].min()

        def row(log_beta, d=d):
            p = np.exp(-np.exp(log_beta) * d)
            return p / p.sum()

        def excess(log_beta):
            p = row(log_beta)
            p = p[p > 0]
            return -(p * np.log(p)).sum() - np.log(perplexity)

        conditional[i, others] = row(brentq(excess, -30, 30))
    return (conditional + conditional.T) / (2 * n)


def test_dense_affinities_are_those_of_tsne(rng):
    X = rng.normal(size=(60, 4))
    P = joint_affinities(X, perplexity=10, n_neighbors="all")
    np.testing.assert_allclose(P, plain_affinities(X, 10), rtol=2e-3, atol=1e-9)


def test_sparse_affinities_are_near_the_dense_ones(rng):
    X = rng.normal(size=(200, 4))
    sparse, dense = (joint_affinities(X, perplexity=15, n_neighbors=n) for n in ("auto", "all"))
    assert scipy.sparse.issparse(sparse)
    assert np.diff(sparse.indptr).min() >= 45
    assert np.abs(sparse.toarray() - dense).sum() < 0.1


@pytest.mark.parametrize("n_neighbors", ["auto", 20, "all"])
def test_symmetric_normalised_without_diagonal(rng, n_neighbors):
    P = joint_affinities(rng.normal(size=(1100, 3)), perplexity=7, n_neighbors=n_neighbors)
    P = P.toarray() if scipy.sparse.issparse(P) else P
    assert P.dtype == np.float32
    np.testing.assert_array_equal(P, P.T)
    assert P.sum(dtype=float) == pytest.approx(1, abs=1e-5)
    assert not P.diagonal().any()


def test_the_form_of_the_input_does_not_matter(rng):
    X = rng.integers(0, 9, size=(150, 6)).astype(np.float64)
    expected = joint_affinities(X, perplexity=12).toarray()
    D = pairwise_distances(X)
    for given, metric in [
        (X.astype(np.float32), "euclidean"),
        (scipy.sparse.csr_matrix(X), "euclidean"),
        (X, lambda a, b: np.sqrt(((a - b) ** 2).sum())),
    ]:
        # Integers have ties, whose order is undefined.
        found = joint_affinities(given, perplexity=12, metric=metric).toarray()
        assert np.abs(found - expected).sum() < 0.05
    np.testing.assert_allclose(
        joint_affinities(D, perplexity=12, metric="precomputed", n_neighbors="all"),
        joint_affinities(X, perplexity=12, n_neighbors="all"),
        atol=1e-7,
    )


def test_a_graph_of_neighbours_gives_the_same(rng):
    X = rng.normal(size=(150, 6))
    expected = joint_affinities(X, perplexity=12).toarray()
    graph = kneighbors_graph(X, 36, mode="distance")
    larger = kneighbors_graph(X, 60, mode="distance", include_self=True)
    for given in (graph, larger, graph.tocoo()):
        found = joint_affinities(given, perplexity=12, metric="precomputed")
        np.testing.assert_allclose(found.toarray(), expected, atol=1e-8)


def test_a_graph_may_have_rows_of_any_length():
    graph = scipy.sparse.csr_matrix(
        (np.ones(9), ([0, 0, 0, 0, 1, 2, 2, 3, 4], [1, 2, 3, 4, 0, 0, 1, 0, 0])), shape=(6, 6)
    )
    with pytest.warns(UserWarning, match="lowered to 1.333"), pytest.warns(UserWarning, match="1 of 6 points"):
        P = joint_affinities(graph, perplexity=30, metric="precomputed")
    assert np.isfinite(P.data).all()
    assert P.sum() == pytest.approx(1, abs=1e-6)
    assert P[5].nnz == 0


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
def test_given_affinities_are_made_symmetric_and_normalised(rng, form):
    A = rng.random((30, 30))
    P = joint_affinities(form(A), perplexity=5, metric="affinities")
    P = P.toarray() if scipy.sparse.issparse(P) else P
    expected = A + A.T
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(P, expected / expected.sum(), rtol=1e-4)


@pytest.mark.parametrize("metric", ["manhattan", "cosine", "chebyshev", "correlation"])
def test_metrics(rng, metric):
    X = rng.normal(size=(80, 5))
    found = joint_affinities(X, perplexity=8, metric=metric).toarray()
    D = pairwise_distances(X, metric=metric)
    np.testing.assert_allclose(found, joint_affinities(D, perplexity=8, metric="precomputed").toarray(), atol=1e-6)


def test_metric_params(rng):
    X = rng.normal(size=(50, 4))
    a = joint_affinities(X, perplexity=5, metric="minkowski", metric_params={"p": 1})
    b = joint_affinities(X, perplexity=5, metric="manhattan")
    np.testing.assert_allclose(a.toarray(), b.toarray(), atol=1e-8)


def test_perplexity_is_lowered_with_a_warning_that_says_to_what(rng):
    with pytest.warns(UserWarning, match=r"perplexity=30 takes 90 neighbours per point.*only 19.*lowered to 6.333"):
        joint_affinities(rng.normal(size=(20, 3)), perplexity=30)


@pytest.mark.parametrize("n_neighbors", ["auto", "all"])
@pytest.mark.parametrize("n", [2, 3])
def test_the_least_perplexity_is_never_lowered(rng, n, n_neighbors):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        joint_affinities(rng.normal(size=(n, 3)), perplexity=1, n_neighbors=n_neighbors)


def test_the_feasible_perplexity_is_the_one_used(rng):
    X = rng.normal(size=(20, 3))
    graph = kneighbors_graph(X, 6, mode="distance", include_self=True)
    for data, options, expected in [
        (X, {"perplexity": 5}, 5),
        (X, {"perplexity": 1}, 1),
        (X[:3], {"perplexity": 1}, 1),
        (X, {"perplexity": 30}, 19 / 3),
        (X, {"perplexity": 30, "n_neighbors": "all"}, 19 / 3),
        (X, {"perplexity": 5, "n_neighbors": 9}, 3),
        (graph, {"perplexity": 5, "metric": "precomputed"}, 5 / 3),
        (graph, {"perplexity": 1.2, "metric": "precomputed"}, 1.2),
    ]:
        found = feasible_perplexity(data, **options)
        assert found == expected
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            joint_affinities(data, **options)
        said = [float(str(w.message).split("lowered to ")[1].split(". ")[0]) for w in caught]
        assert said == ([] if found == options["perplexity"] else [pytest.approx(found, rel=1e-3)])
    assert feasible_perplexity(graph, perplexity=30, metric="affinities") == 30


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
def test_points_without_neighbours_are_counted_in_one_warning(rng, form):
    P = rng.random((30, 30))
    P[[3, 7]] = P[:, [3, 7]] = 0
    P[5] = P[:, 5] = 0
    P[5, 5] = 1.0  # an affinity with itself is none
    with pytest.warns(UserWarning, match=r"3 of 30 points have no neighbour.*leave them out") as caught:
        joint_affinities(form(P), perplexity=5, metric="affinities")
    assert len(caught) == 1


def test_rows_of_a_graph_without_neighbours_are_warned_of(rng):
    graph = kneighbors_graph(rng.normal(size=(50, 3)), 12, mode="distance").tolil()
    graph[[1, 2]] = 0
    graph[:, [1, 2]] = 0
    with pytest.warns(UserWarning, match="2 of 50 points have no neighbour") as caught:
        joint_affinities(graph.tocsr(), perplexity=3, metric="precomputed")
    assert len(caught) == 1


def test_ordinary_data_give_no_warning(rng):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        joint_affinities(rng.normal(size=(50, 3)), perplexity=5)
        joint_affinities(rng.normal(size=(50, 3)), perplexity=5, n_neighbors="all")


def test_equal_points_get_equal_affinities():
    P = joint_affinities(np.ones((40, 3)), perplexity=5, n_neighbors="all")
    off = P[~np.eye(40, dtype=bool)]
    np.testing.assert_allclose(off, 1 / (40 * 39), rtol=1e-5)


@pytest.mark.parametrize("scale", [1e-140, 1e-30, 1e30, 1e140])
def test_the_scale_of_the_data_does_not_matter(rng, scale):
    X = rng.normal(size=(60, 3))
    a, b = (joint_affinities(given, perplexity=6).toarray() for given in (X, X * scale))
    np.testing.assert_allclose(a, b, atol=1e-6)
    D = pairwise_distances(X)
    for data, metric in ((X, "euclidean"), (D, "precomputed"), (X, "manhattan")):
        a, b = (
            joint_affinities(given, perplexity=6, n_neighbors="all", metric=metric) for given in (data, data * scale)
        )
        np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_neighbors": 60}, r"n_neighbors=60 is out of range for 60 samples.*1 to 59"),
        ({"n_neighbors": 5, "metric": "affinities"}, "n_neighbors=5 has no use"),
        ({"metric_params": {"p": 1}, "metric": "affinities"}, "metric_params=.* has no use"),
        ({"metric_params": {"p": 1}, "metric": "precomputed"}, "metric_params=.* has no use"),
    ],
)
def test_options_without_effect_are_refused(rng, options, message):
    with pytest.raises(ValueError, match=message):
        joint_affinities(rng.random((60, 60)), perplexity=5, **options)


def test_distances_that_overflow_are_refused(rng):
    with pytest.raises(ValueError, match="Scale X down"):
        joint_affinities(rng.normal(size=(30, 3)) * 1e300, perplexity=3)


@pytest.mark.parametrize("metric", ["precomputed", "affinities"])
def test_impossible_matrices_are_refused(rng, metric):
    with pytest.raises(ValueError, match=r"square matrix.*X has shape \(5, 4\)"):
        joint_affinities(rng.random((5, 4)), perplexity=2, metric=metric)
    with pytest.raises(ValueError, match="negative values"):
        joint_affinities(-rng.random((5, 5)), perplexity=2, metric=metric)


def test_a_graph_without_edges_is_refused():
    with pytest.raises(ValueError, match="at least one edge"):
        joint_affinities(np.zeros((5, 5)), perplexity=2, metric="affinities")


def test_all_pairs_of_a_graph_are_refused(rng):
    graph = kneighbors_graph(rng.normal(size=(20, 3)), 5, mode="distance")
    with pytest.raises(ValueError, match="n_neighbors='all' needs all distances"):
        joint_affinities(graph, perplexity=3, metric="precomputed", n_neighbors="all")


def test_bits_do_not_depend_on_the_number_of_threads(rng):
    X = rng.normal(size=(500, 5))
    found = []
    for n_jobs in (1, 2, 3):
        with Workers(n_jobs) as workers:
            found.append(joint_affinities(X, perplexity=30, workers=workers).data)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("n_neighbors", [89, "all"])
@pytest.mark.parametrize("outlier", [1e4, 1e7, 1e9])
def test_an_outlier_leaves_the_affinities_of_the_others(rng, n_neighbors, outlier):
    X = rng.normal(size=(90, 5))
    options = {"perplexity": 20, "n_neighbors": n_neighbors}
    usual, found = (joint_affinities(data, **options) for data in (X, np.vstack([X, np.full((1, 5), outlier)])))
    if n_neighbors == 89:
        usual, found = usual.toarray(), found.toarray()
    found = found[:-1, :-1] / found[:-1, :-1].sum()
    assert np.abs(found - usual).sum() < 1e-4


@pytest.mark.parametrize("n_neighbors", [40, "all"])
def test_more_duplicates_than_the_perplexity_are_equally_near(rng, n_neighbors):
    X = np.vstack([np.repeat(rng.normal(size=(1, 30)), 30, axis=0), rng.normal(size=(70, 30))])
    P = joint_affinities(X, perplexity=12, n_neighbors=n_neighbors)
    P = P[:30, :30].toarray() if n_neighbors == 40 else P[:30, :30]
    off = P[~np.eye(30, dtype=bool)]
    np.testing.assert_allclose(off, off[0], rtol=1e-5)


@pytest.mark.parametrize("offset", [1e8, 1e8 * np.arange(60)[:, None]], ids=["of all", "of each"])
def test_an_offset_leaves_the_affinities_of_all_pairs(rng, offset):
    X = np.repeat(offset + np.zeros((60, 1)), 3, axis=0) + rng.normal(size=(180, 20))
    squared = ((X[:, None] - X) ** 2).sum(axis=2)
    expected = joint_affinities(np.sqrt(squared), perplexity=2, n_neighbors="all", metric="precomputed")
    np.testing.assert_allclose(joint_affinities(X, perplexity=2, n_neighbors="all"), expected, atol=1e-7)


def test_more_than_half_a_million_points_have_fewer_neighbours(rng, monkeypatch):
    assert [auto_perplexity(n) for n in (10, 500_000, 500_001)] == [3.0, 30.0, 15.0]
    X = rng.normal(size=(300, 5))
    few = joint_affinities(X, perplexity=15, refine=True)
    monkeypatch.setattr("laptsne.graph.affinity.MAX_WIDE", 299)
    many = joint_affinities(X, perplexity=15, refine=True)
    assert many.nnz < 0.9 * few.nnz
    assert many.data.min() > 1.5 * few.data.min()
    assert np.abs(many - few).sum() < 0.1
