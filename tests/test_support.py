from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise_distances, roc_auc_score
from sklearn.model_selection import train_test_split

from laptsne import LandmarkLaptSNE, LaptSNE
from laptsne._runtime.threads import Workers
from laptsne.transform.support import MIN_SUPPORT, Support

FAST = {"max_iter": 20, "random_state": 0}


@pytest.fixture(scope="module")
def digits():
    """Training and held-out digits without the threes, and the threes."""
    X, y = load_digits(return_X_y=True)
    train, test = train_test_split(X[y != 3], test_size=0.25, random_state=0)
    return train, test, X[y == 3]


@pytest.fixture(scope="module")
def model(digits):
    return LaptSNE(random_state=0).fit(digits[0])


def auc(supported, other):
    return roc_auc_score(np.repeat([1, 0], [len(supported), len(other)]), np.concatenate([supported, other]))


def test_support_is_uniform_for_held_out_points(model, digits):
    support = model.support(digits[1])
    for share in (0.05, 0.2, 0.5, 0.8):
        assert (support < share).mean() == pytest.approx(share, abs=0.06)


def test_support_tells_unseen_digits_and_junk_from_held_out_ones(model, digits):
    held_out = model.support(digits[1])
    assert auc(held_out, model.support(digits[2])) > 0.97
    junk = np.random.default_rng(0).uniform(0, 16, (200, 64))
    assert auc(held_out, model.support(junk)) == 1.0
    further = model.support(junk * 10)
    assert (further < model.support(junk)).all()  # the tail is ordered
    assert (further > 0).all()


def test_predict_gives_no_cluster_to_unsupported_points(model, digits):
    unseen, support = model.predict(digits[2]), model.support(digits[2])
    np.testing.assert_array_equal(unseen[support < MIN_SUPPORT], -1)
    assert (unseen == -1).mean() > 0.4
    held_out = model.predict(digits[1])
    assert (held_out == -1).mean() < 0.05
    assert set(held_out) <= {-1, *model.labels_}


def test_predict_is_the_vote_of_the_neighbours(blobs):
    X, y = blobs
    model = LaptSNE(**FAST, perplexity=10).fit(X)
    model.fitted_map_ = replace(model.fitted_map_, labels=y - 1, n_clusters=9)  # the first cluster is none
    np.testing.assert_array_equal(model.predict(X + 1e-3), y - 1)
    assert (model.predict(X[y == 0] + 1e-3) == -1).all()


@pytest.mark.parametrize(
    ("form", "settings"),
    [
        (np.asarray, {}),
        (np.asarray, {"metric": "cosine"}),
        (np.asarray, {"metric": "manhattan"}),
        (np.float32, {}),
        (scipy.sparse.csr_matrix, {}),
        (pairwise_distances, {"metric": "precomputed"}),
    ],
)
def test_predict_of_the_training_data_is_their_labels(digits, form, settings, tmp_path):
    X = form(digits[0][:400])
    model = LaptSNE(**FAST, **settings).fit(X)
    model.labels_ = np.arange(400) % 7 - 1  # nothing like a vote
    model.fitted_map_ = replace(model.fitted_map_, labels=model.labels_, n_clusters=6)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    model.save(tmp_path / "model")
    loaded = LaptSNE.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), model.labels_)
    np.testing.assert_array_equal(loaded.support(X), model.support(X))


def test_distances_give_the_support_of_their_features(rng):
    X, new = rng.normal(size=(300, 4)), rng.normal(size=(50, 4), scale=2)
    by_features = LaptSNE(**FAST).fit(X).support(new)
    model = LaptSNE(metric="precomputed", **FAST).fit(pairwise_distances(X))
    np.testing.assert_allclose(model.support(pairwise_distances(new, X)), by_features, rtol=1e-6)
    sparse = LaptSNE(metric="precomputed", **FAST).fit(LaptSNE(**FAST).fit(X).affinities_.power(-0.5))
    assert np.isfinite(sparse.support(pairwise_distances(new, X))).all()


def test_an_equal_row_has_the_support_of_the_training_row(digits, model):
    X = digits[0]
    with Workers(1) as workers:  # limits OpenMP, too
        support = Support.of_data(X, 30, workers)
    np.testing.assert_array_equal(model.support(X[:100]), support.share(support.isolation[:100]))
    assert (model.support(X) < 0.05).mean() == pytest.approx(0.05, abs=0.01)


def test_the_support_of_a_point_does_not_depend_on_the_others(digits, model):
    new = np.concatenate([digits[1][:50], digits[2][:50]])
    parts = [model.support(new[i : i + 7]) for i in range(0, 100, 7)]
    np.testing.assert_array_equal(np.concatenate(parts), model.support(new))


def test_duplicates_and_few_rows():
    same = LaptSNE(**FAST).fit(np.ones((30, 3)))
    assert same.support(np.array([[1.0, 1, 1], [2, 2, 2]])).tolist() == [1.0, 1 / 31]
    two = LaptSNE(**FAST).fit(np.array([[0.0], [1.0]]))
    assert two.support(np.array([[0.5], [50.0]])).shape == (2,)
    assert two.predict(np.array([[0.0], [1.0]])).tolist() == two.labels_.tolist()


def test_landmarks_have_support_and_predict(digits, tmp_path):
    model = LandmarkLaptSNE(n_landmarks=200, **FAST).fit(digits[0])
    reference = LaptSNE(**FAST).fit(digits[0])
    np.testing.assert_array_equal(model.support(digits[1]), reference.support(digits[1]))
    np.testing.assert_array_equal(model.predict(digits[0][model.landmarks_]), model.landmark_labels_)
    np.testing.assert_array_equal(model.predict(digits[0]), model.labels_)
    model.save(tmp_path / "model")
    loaded = LandmarkLaptSNE.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(digits[1]), model.predict(digits[1]))
    assert "landmarks" in model.diagnose().reason


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ({"metric": "affinities"}, "this model was fitted to affinities"),
        ({"out_of_sample": "network"}, "use out_of_sample='placement'"),
        ({"kernel": "gaussian"}, "use kernel='student'"),
    ],
)
@pytest.mark.parametrize("method", ["support", "predict"])
def test_models_without_data_say_so(settings, remedy, method):
    with pytest.raises(AttributeError) as error:
        getattr(LaptSNE(**settings), method)
    assert remedy in str(error.value.__cause__)


def test_a_model_that_is_not_fitted_says_so(digits):
    for method in ("support", "predict", "distinguish"):
        with pytest.raises(Exception, match="not fitted"):
            getattr(LaptSNE(), method)(digits[0])


def test_damaged_support_is_refused():
    with pytest.raises(ValueError, match="inconsistent"):
        Support(np.ones(3), np.ones(4))
