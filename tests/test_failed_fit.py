"""A fit that fails leaves the estimator as it was."""

import os

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import pairwise_distances
from sklearn.utils.validation import check_is_fitted

from laptsne import LandmarkLaptSNE, LaptSNE, LapUMAP

FAST = {"max_iter": 10, "random_state": 0}


def test_a_refused_fit_keeps_the_fitted_model(rng):
    D = pairwise_distances(rng.normal(size=(50, 3)))
    model = LaptSNE(metric="precomputed", perplexity=5, **FAST).fit(D)
    before = model.embedding_.copy()
    with pytest.raises(ValueError, match="negative"):
        model.fit(-pairwise_distances(rng.normal(size=(5000, 3))))
    assert model.n_features_in_ == 50
    np.testing.assert_array_equal(model.embedding_, before)
    np.testing.assert_array_equal(model.transform(D), before)
    with pytest.raises(ValueError, match="5000 features"):
        model.transform(np.ones((1, 5000)))


@pytest.mark.parametrize("kind", [LaptSNE, LandmarkLaptSNE, LapUMAP])
def test_an_estimator_whose_first_fit_failed_is_not_fitted(kind, rng):
    def fail(state):
        raise RuntimeError("stop")

    model = kind(callbacks=fail, **FAST)
    with pytest.raises(RuntimeError, match="stop"):
        model.fit(rng.normal(size=(60, 4)))
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_the_first_row_with_missing_values_is_named(rng, tmp_path, monkeypatch, dtype, value, name):
    monkeypatch.setattr("laptsne.graph.neighbors._MAX_BATCH", 300)
    X = rng.normal(size=(2000, 3)).astype(dtype)
    model = LaptSNE(**FAST).fit(X[:100])
    before = model.embedding_
    X[[1234, 1800], 1] = value
    np.save(tmp_path / "rows.npy", X)
    for given in (X, np.load(tmp_path / "rows.npy", mmap_mode="r")):
        with pytest.raises(ValueError, match=f"Input X, row 1,234, contains {name}"):
            model.fit(given)
        assert model.embedding_ is before


def test_a_file_that_has_become_too_short_is_refused(rng, tmp_path):
    np.save(tmp_path / "rows.npy", rng.normal(size=(2000, 4)))
    X = np.load(tmp_path / "rows.npy", mmap_mode="r")
    os.truncate(tmp_path / "rows.npy", X.offset + 1500 * 32 + 8)
    with pytest.raises(ValueError, match=r"rows.npy ends in row 1,500 of 2,000"):
        LaptSNE(**FAST).fit(X)


def test_a_file_is_fitted_as_an_array_is(rng, tmp_path):
    X = rng.normal(size=(400, 4)).astype(np.float32)
    np.save(tmp_path / "rows.npy", X)
    expected = LaptSNE(**FAST).fit(X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    found = LaptSNE(**FAST).fit(mapped)
    np.testing.assert_array_equal(found.embedding_, expected.embedding_)
    assert np.shares_memory(found.fitted_map_.data, mapped)
    np.testing.assert_array_equal(found.transform(X), expected.transform(X))
