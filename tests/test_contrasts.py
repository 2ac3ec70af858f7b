import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from laptsne import LandmarkLaptSNE, LaptSNE
from laptsne.clusters import ClusterTree
from laptsne.clusters.contrasts import distinguishing_features, nearest_clusters, selection_features

NEAREST = {0: 1, 1: 2, 2: 3, 3: 0}


@pytest.fixture
def counts(rng):
    """Rounded values with many zeros and ties, negative ones among them, and labels with points of no cluster."""
    return np.round(rng.normal(size=(300, 9)), 1) * (rng.random((300, 9)) < 0.4), rng.integers(-1, 4, 300)


def reference(X, a, b):
    """AUC by scikit-learn and Cohen's d of one feature."""
    auc = roc_auc_score(np.repeat([1, 0], [a.sum(), b.sum()]), np.concatenate([X[a], X[b]]))
    pooled = ((a.sum() - 1) * X[a].var(ddof=1) + (b.sum() - 1) * X[b].var(ddof=1)) / (a.sum() + b.sum() - 2)
    return auc, (X[a].mean() - X[b].mean()) / np.sqrt(pooled)


@pytest.mark.parametrize("form", [np.asarray, np.float32, scipy.sparse.csr_matrix, scipy.sparse.csc_array])
def test_statistics_are_those_of_their_definitions(counts, form):
    X, labels = counts
    table = distinguishing_features(form(X), labels, nearest=NEAREST, max_features=None)
    assert len(table) == 4 * 2 * 9
    for i in range(len(table)):
        a = labels == table.cluster[i]
        b = ~a if table.against[i] == "rest" else labels == int(table.against[i])
        assert table.against[i] in ("rest", str(NEAREST[table.cluster[i]]))
        x = X[:, int(table.feature[i][1:])]
        np.testing.assert_allclose([table.auc[i], table.effect[i]], reference(x, a, b), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose([table.mean[i], table.mean_against[i]], [x[a].mean(), x[b].mean()], atol=1e-6)


def test_the_most_distinguishing_feature_comes_first(rng):
    X = rng.normal(size=(200, 30))
    labels = np.repeat([0, 1], 100)
    X[:100, 17] -= 4
    table = distinguishing_features(X, labels, max_features=3, feature_names=[f"gene {i}" for i in range(30)])
    assert list(table.feature[[0, 3]]) == ["gene 17", "gene 17"]
    assert len(table) == 6
    assert (np.diff(abs(table.auc[:3] - 0.5)) <= 0).all()
    assert "0 against rest: gene 17 low (AUC 0.0" in repr(table)
    assert "1 against rest: gene 17 high (AUC " in repr(table)
    frame = table.to_pandas()
    assert list(frame.columns) == ["cluster", "against", "feature", "auc", "effect", "mean", "mean_against"]


def test_constant_features_have_no_effect_or_an_infinite_one():
    X = np.array([[1.0, 0, 2], [1, 0, 2], [1, 3, 2], [1, 3, 2]])
    table = distinguishing_features(X, [0, 0, 1, 1])
    first = table.cluster == 0
    assert dict(zip(table.feature[first], table.effect[first], strict=True)) == {"x1": -np.inf, "x0": 0, "x2": 0}
    assert table.auc[first].tolist() == [0, 0.5, 0.5]


def test_a_selection_against_the_rest(counts):
    X, _ = counts
    chosen = np.zeros(300, dtype=bool)
    chosen[[5, 7, 200]] = True
    tables = [selection_features(X, selection) for selection in (chosen, [5, 7, 200])]
    np.testing.assert_array_equal(tables[0].auc, tables[1].auc)
    assert set(tables[0].against) == {"rest"}
    for selection in ([], np.ones(300, dtype=bool), np.ones(3, dtype=bool)):
        with pytest.raises(ValueError, match="select some but not all"):
            selection_features(X, selection)


def test_the_nearest_cluster_shares_most_affinity():
    labels = np.array([0, 0, 1, 1, 2, 2, -1])
    Y = np.array([[0.0], [0], [1], [1], [9], [9], [5]])
    P = np.zeros((7, 7))
    P[0, 4] = P[4, 0] = 0.5  # against the embedding
    assert nearest_clusters(labels, P, Y) == {0: 2, 1: 0, 2: 0}
    assert nearest_clusters(labels, scipy.sparse.csr_matrix(P), Y) == {0: 2, 1: 0, 2: 0}
    assert nearest_clusters(labels, None, Y) == {0: 1, 1: 0, 2: 1}
    assert nearest_clusters(np.zeros(7, dtype=int), None, Y) == {}


def test_the_nearest_cluster_is_a_sibling():
    # 2 shares most with 1, but 1 is closer to 0 for its size, and 2 to 3.
    shared = np.array([[1.0, 6, 0, 0], [6, 1, 5, 0], [0, 5, 40, 4], [0, 0, 4, 0]])
    labels = np.array([0, 1, 3, 4])
    assert nearest_clusters(labels, shared, np.arange(4.0)[:, None]) == {0: 1, 1: 0, 3: 4, 4: 3}


def test_siblings_in_the_tree():
    tree = ClusterTree(np.array([4, 4, 5, 6, 5, 6, -1]), np.array([3, 3, 2, 2, 6, 8, 10]), np.full(7, np.nan))
    assert tree.siblings(np.arange(4)).astype(int).tolist() == [[0, 1, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0]]
    assert tree.cut(3).tolist() == [0, 0, 1, 2]
    assert tree.siblings(tree.cut(3)).astype(int).tolist() == [[0, 1, 0], [1, 0, 0], [1, 1, 0]]
    assert not tree.siblings(np.zeros(4, int)).any()


def test_distinguish_of_a_model():
    X, _ = load_digits(return_X_y=True, as_frame=True)
    model = LaptSNE(max_iter=300, n_clusters=5, random_state=0).fit(X[:500])
    model.labels_ = np.where(np.arange(500) < 10, -1, model.labels_)
    table = model.distinguish(X[:500])
    assert len(table) == 5 * 2 * 20
    assert set(table.feature) <= set(X.columns)
    assert table.auc[0] in model.distinguish(scipy.sparse.csr_matrix(X[:500]), list(X.columns)).auc
    kept = model.distinguish()
    assert kept.feature.tolist() == table.feature.tolist()
    np.testing.assert_allclose(kept.auc, table.auc)
    with pytest.raises(ValueError, match="X has 499 rows, but labels_ has 500"):
        model.distinguish(X[:499])
    with pytest.raises(ValueError, match="feature_names has 1 names, but X has 64"):
        model.distinguish(X[:500], ["a"])


def test_distinguish_without_data_asks_for_them():
    X = load_digits().data[:200]
    for model in (LaptSNE(max_iter=5, out_of_sample="network"), LandmarkLaptSNE(n_landmarks=40, max_iter=5)):
        with pytest.raises(ValueError, match="X is needed"):
            model.fit(X).distinguish()


def test_without_clusters_the_table_is_empty(rng):
    X = rng.normal(size=(50, 3))
    for labels in (np.full(50, -1), np.zeros(50, dtype=int)):
        table = distinguishing_features(X, labels)
        assert len(table) == 0
        assert len(table.to_pandas()) == 0


@pytest.mark.parametrize(
    ("X", "labels", "options", "message"),
    [
        ([[np.nan], [1.0]], [0, 1], {}, "X contains NaN"),
        ([["a"], ["b"]], [0, 1], {}, "Convert your data to numeric values"),
        ([[1.0], [2.0]], [0.0, 1.0], {}, "labels: expected 2 integers"),
        ([[1.0], [2.0]], [0, 1], {"max_features": 0}, "max_features=0"),
    ],
)
def test_bad_input(X, labels, options, message):
    with pytest.raises(ValueError, match=message):
        distinguishing_features(np.array(X), labels, **options)


def test_clusters_of_landmarks_are_described_by_all_rows(blobs):
    X, _ = blobs
    model = LandmarkLaptSNE(n_landmarks=40, max_iter=50, perplexity=5, n_clusters=3, random_state=0).fit(X)
    assert len(model.distinguish(X)) == 3 * 2 * 6
    with pytest.raises(ValueError, match="X has 40 rows, but labels_ has 120"):
        model.distinguish(X[model.landmarks_])


def test_the_table_does_not_depend_on_the_number_of_threads(counts):
    X, labels = counts
    one, two = (distinguishing_features(X, labels, nearest=NEAREST, n_jobs=n) for n in (1, 2))
    for name in vars(one):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
