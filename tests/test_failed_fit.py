"""A fit that fails leaves the estimator as it was."""

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
