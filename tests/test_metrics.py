import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn import manifold
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from laptsne.metrics import (
    Faithfulness,
    affinity_recall,
    cluster_scores,
    continuity,
    knn_accuracy,
    trustworthiness,
)


def ordered(X, Q=None):
    """Points sorted by distance to each query; ties go to the lower row."""
    D = cdist(X if Q is None else Q, X, "sqeuclidean")
    if Q is None:
        np.fill_diagonal(D, np.inf)
    return np.argsort(D, axis=1, kind="stable")


def test_knn_accuracy_of_separate_classes(blobs):
    X, labels = blobs
    assert knn_accuracy(X, labels, 5) == 1
    assert knn_accuracy(X, labels, 5, protocol="paper") == 1


def test_the_papers_protocol_counts_a_point_as_its_own_neighbour(rng):
    Y, labels = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    assert knn_accuracy(Y, labels, 1, protocol="paper") == 1
    assert knn_accuracy(Y, labels, 1) < 0.65


def test_an_unknown_protocol_is_refused(blobs):
    with pytest.raises(ValueError, match=r"protocol must be .*; got 'lenient'"):
        knn_accuracy(*blobs, protocol="lenient")


def test_cluster_scores(blobs, rng):
    X, labels = blobs
    good, bad = cluster_scores(X, labels), cluster_scores(rng.normal(size=(120, 2)), labels)
    assert good.nmi == pytest.approx(1)
    assert good.silhouette > 0.6 > bad.silhouette
    assert good.davies_bouldin < 0.6 < bad.davies_bouldin
    assert cluster_scores(X, labels, 2).nmi < 1
    assert cluster_scores(X, labels) == good
    assert cluster_scores(X + 1e6, labels).silhouette == pytest.approx(good.silhouette, abs=1e-6)


def test_trustworthiness_and_continuity_see_different_faults():
    x = np.linspace(0, 1, 100)
    folded = np.column_stack([np.abs(x - 0.5), np.zeros(100)])  # brings far points together
    torn = np.column_stack([x + 10 * (x > 0.5), np.zeros(100)])  # takes near points apart
    X = x[:, None]
    assert trustworthiness(X, folded) < 0.9 < continuity(X, folded)
    assert trustworthiness(X, torn) == pytest.approx(1, abs=0.01)
    assert continuity(X, X) > 0.998  # 1 but for points at equal distances
    assert continuity(X, folded) == trustworthiness(folded, X)


@pytest.mark.parametrize("n_dims", [1, 2, 7, 50])
def test_neighbours_are_exact_and_in_order_whatever_the_offset(rng, n_dims):
    X = rng.normal(size=(700, n_dims))
    for offset in (0, 1e6):
        np.testing.assert_array_equal(Faithfulness(X + offset).neighbors, ordered(X + offset)[:, :30])


def test_points_at_equal_distances_have_the_mean_of_their_ranks():
    X, Y = [[0.0], [1.0], [-1.0], [3.0]], [[0.0], [1.0], [2.1], [3.3]]
    # In Y, the nearest of the points are 1, 0, 1 and 2; in X, their ranks are 1.5, 1, 2 and 3.
    assert trustworthiness(X, Y, n_neighbors=1) == pytest.approx(1 - (0.5 + 0 + 1 + 2) * 2 / (4 * 1 * (8 - 3 - 1)))


@pytest.mark.parametrize("metric", ["cosine", "precomputed"])
def test_trustworthiness_in_other_metrics_is_that_of_scikit_learn(rng, metric):
    X, Y = rng.normal(size=(150, 5)), rng.normal(size=(150, 2))
    data = cdist(X, X) if metric == "precomputed" else X
    expected = manifold.trustworthiness(data, Y, metric=metric)
    assert trustworthiness(data, Y, metric=metric) == pytest.approx(expected, abs=1e-9)


def test_cluster_scores_have_the_silhouette_of_k_means(rng):
    Y, y = rng.normal(size=(300, 2)), rng.integers(0, 4, 300)
    found = KMeans(4, n_init=10, random_state=0).fit_predict(Y)
    assert cluster_scores(Y, y).silhouette == pytest.approx(silhouette_score(Y, found), abs=1e-9)


@pytest.mark.parametrize("k", [1, 5, 30])
def test_trustworthiness_and_continuity_are_those_of_scikit_learn(rng, k):
    X = rng.normal(size=(400, 10))
    Y = X[:, :2] + rng.normal(scale=0.3, size=(400, 2))
    assert trustworthiness(X, Y, n_neighbors=k) == pytest.approx(
        manifold.trustworthiness(X, Y, n_neighbors=k), abs=1e-9
    )
    assert continuity(X, Y, n_neighbors=k) == pytest.approx(manifold.trustworthiness(Y, X, n_neighbors=k), abs=1e-9)


def test_duplicates_that_no_neighbourhood_divides_count_as_in_scikit_learn(rng):
    X = rng.normal(size=(150, 6))
    Y = np.repeat(X[:, :2], 2, axis=0)
    X = np.repeat(X, 2, axis=0)
    for k in (1, 3, 7):  # oneself excepted, all points are in pairs
        assert trustworthiness(X, Y, n_neighbors=k) == pytest.approx(
            manifold.trustworthiness(X, Y, n_neighbors=k), abs=1e-9
        )
    assert Faithfulness(X, n_neighbors=1).neighbors_kept(Y) == 1


def test_sparse_data_and_single_precision_score_the_same(rng):
    X = rng.normal(size=(100, 4)).astype(np.float32)
    Y = X[:, :2]
    assert trustworthiness(sparse.csr_matrix(X), Y) == trustworthiness(X.astype(float), Y.astype(float))


def test_neighbors_kept(rng):
    X = rng.normal(size=(500, 5))
    Y = X[:, :2]
    a, b = ordered(X)[:, :30], ordered(Y)[:, :30]
    share = np.mean([len(set(i) & set(j)) / 30 for i, j in zip(a, b, strict=True)])
    data = Faithfulness(X)
    assert data.neighbors_kept(Y) == pytest.approx(share)
    assert data.neighbors_kept(X) == 1
    assert data.neighbors_kept(3 * X[:, ::-1]) == 1
    assert data.neighbors_kept(rng.permutation(X)) == pytest.approx(30 / 499, abs=0.02)
    share = np.mean([len(set(i[:3]) & set(j[:3])) / 3 for i, j in zip(a, b, strict=True)])
    assert data.neighbors_kept(Y, n_neighbors=3) == pytest.approx(share)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_affinity_recall(rng, form):
    Y = rng.normal(size=(60, 2))
    D = cdist(Y, Y)
    P = np.exp(-D)
    np.fill_diagonal(P, 0)
    assert affinity_recall(form(P), Y) == 1
    P[0] = 0  # a row without affinities does not count
    assert affinity_recall(form(P), Y) == 1
    P[0, np.argsort(D[0])[10:26]] = 1.0  # the first six of its largest, which are equal, are among its 15 nearest
    P[0, np.argsort(D[0])[10:16]] = 2.0
    assert affinity_recall(form(P), Y, rows=[0]) == pytest.approx(6 / 15)
    assert affinity_recall(form(P), Y) == pytest.approx((59 + 6 / 15) / 60)


def test_scores_of_several_maps_of_the_same_data(rng):
    X = rng.normal(size=(200, 5))
    data = Faithfulness(X, n_neighbors=20)
    for Y in (X[:, :2], X[:, 1:3]):
        assert data.trustworthiness(Y) == trustworthiness(X, Y)
        assert data.continuity(Y, n_neighbors=8) == continuity(X, Y, n_neighbors=8)
    with pytest.raises(ValueError, match=r"n_neighbors must be from 1 to 20, that of this .*; got 21"):
        data.neighbors_kept(Y, n_neighbors=21)
    with pytest.raises(ValueError, match="the same number of rows; got 200 and 199"):
        data.neighbors_kept(Y[1:])


def test_too_large_neighbourhoods_are_refused(rng):
    X = rng.normal(size=(20, 2))
    for score in (trustworthiness, continuity, Faithfulness(X, n_neighbors=19).continuity):
        maps = (X,) if score not in (trustworthiness, continuity) else (X, X)
        assert score(*maps, n_neighbors=9) == 1
        for k in (0, 10):
            with pytest.raises(ValueError, match=f"less than half of the 20 points.*got {k}"):
                score(*maps, n_neighbors=k)
    with pytest.raises(ValueError, match="n_neighbors must be from 1 to 19 for 20 points; got 20"):
        Faithfulness(X, n_neighbors=20)
    with pytest.raises(ValueError, match="the same number of rows; got 20 and 19"):
        trustworthiness(X, X[1:], n_neighbors=3)


@pytest.mark.parametrize(("n_dims", "offset"), [(2, 0), (2, 1e6), (12, 0)])
def test_accuracies_are_those_of_scikit_learn(rng, n_dims, offset):
    y = rng.choice(["b", "a", "d", "c"], 400)
    Y = rng.normal(size=(400, n_dims)) + (y == "a")[:, None]
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    for k in (1, 2, 7, 200):
        model = KNeighborsClassifier(k)
        assert knn_accuracy(Y + offset, y, k) == pytest.approx(cross_val_score(model, Y, y, cv=folds).mean())
        assert knn_accuracy(Y + offset, y, k, protocol="paper") == pytest.approx(model.fit(Y, y).score(Y, y))


def test_impossible_numbers_of_neighbours_are_refused(rng):
    Y, y = rng.normal(size=(50, 2)), np.arange(50) % 2
    assert knn_accuracy(Y, y, 50, protocol="paper") == 0.5
    for k in (0, 41):
        with pytest.raises(ValueError, match=r"k must be from 1 to 40, the number of training points; got"):
            knn_accuracy(Y, y, k)
    with pytest.raises(TypeError):
        knn_accuracy(Y, y, 2.5)
