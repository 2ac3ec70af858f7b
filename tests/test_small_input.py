"""Data from which little can be concluded: each answer of a model is a result or an error that says what is missing."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import kneighbors_graph

from laptsne import LandmarkLaptSNE, LaptSNE

FAST = {"max_iter": 30, "random_state": 0}
Z = np.random.default_rng(0).normal(size=(40, 4))
FEATURES = {
    "two rows": np.array([[0.0, 1.0], [1.0, 0.0]]),
    "equal rows": np.ones((30, 3)),
    "one feature": np.arange(40.0)[:, None],
}
PAIRWISE = {
    "distances": ("precomputed", pairwise_distances(Z)),
    "graph": ("precomputed", kneighbors_graph(Z, 12, mode="distance")),
    "affinities": ("affinities", kneighbors_graph(Z, 12)),
}


@pytest.mark.parametrize("name", FEATURES)
def test_few_or_equal_rows_are_one_cluster(name):
    X = FEATURES[name]
    model = LaptSNE(**FAST)
    labels = model.fit_predict(X)
    np.testing.assert_array_equal(labels, np.zeros(len(X)))
    np.testing.assert_array_equal(model.labels_, labels)
    assert model.n_clusters_ == 1
    np.testing.assert_array_equal(model.clusters_.size, [len(X)])
    np.testing.assert_array_equal(model.predict(X), labels)
    support = model.support(X)
    assert support.shape == (len(X),)
    assert ((support >= 0) & (support <= 1)).all()
    assert len(model.distinguish(X).feature) == 0  # nothing to compare the only cluster with


@pytest.mark.parametrize("name", PAIRWISE)
def test_without_features_what_needs_them_is_absent_or_takes_them(name):
    metric, X = PAIRWISE[name]
    model = LaptSNE(metric=metric, **FAST)
    labels = model.fit_predict(X)
    assert labels.shape == (40,)
    assert model.clusters_.size.sum() == (labels >= 0).sum()
    assert len(set(model.distinguish(Z).cluster)) in (0, model.n_clusters_)
    if metric == "affinities":
        assert not hasattr(model, "predict")
        assert not hasattr(model, "support")
    else:
        distances = pairwise_distances(Z[:5], Z)
        np.testing.assert_array_equal(model.predict(distances), labels[:5])
        assert model.support(distances).shape == (5,)
        with pytest.raises(ValueError, match="features"):
            model.predict(Z)  # four columns where there should be one per sample


@pytest.mark.parametrize("kind", [LaptSNE, LandmarkLaptSNE])
def test_a_model_that_is_not_fitted_has_no_answers(kind):
    model = kind()
    for name in ("labels_", "n_clusters_"):
        with pytest.raises(AttributeError, match=name):
            getattr(model, name)
    with pytest.raises(NotFittedError, match="not fitted"):
        _ = model.clusters_
    for method, *args in ((model.predict, Z), (model.support, Z), (model.distinguish, Z), (model.diagnose,)):
        with pytest.raises(NotFittedError, match="not fitted"):
            method(*args)
