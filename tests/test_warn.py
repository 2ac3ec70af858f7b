"""Warnings point at the code that called the package."""

import warnings

import numpy as np
import pytest

from laptsne import LandmarkLaptSNE, LaptSNE, LapUMAP

X = np.random.default_rng(0).normal(size=(40, 3))


@pytest.mark.parametrize(
    "fit",
    [
        lambda: LaptSNE(perplexity=30, max_iter=3, random_state=0).fit(X),
        lambda: LaptSNE(contraction=0.1, max_iter=3, random_state=0).fit_transform(X),
        lambda: LapUMAP(n_neighbors=60, max_iter=3, random_state=0).fit(X),
        lambda: LandmarkLaptSNE(n_landmarks=50, max_iter=3, random_state=0).fit(X),
        lambda: LaptSNE(init=np.ones((40, 2)), max_iter=3, random_state=0).fit(X),
    ],
    ids=["perplexity", "contraction", "n_neighbors", "n_landmarks", "init"],
)
def test_a_warning_names_the_line_of_the_caller(fit):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    assert caught
    assert {entry.filename for entry in caught} == {__file__}
