"""Steps applied to raw columns, as a model stores them."""

import numpy as np
import pytest
import scipy.sparse

from laptsne.transform.preprocessing import Preprocessing

N = 3


@pytest.fixture
def steps(rng):
    parts = {"medians": rng.normal(size=N), "center": rng.normal(size=N), "spread": np.array([0.5, 1, 2])}
    return parts | {"mean": rng.normal(size=N), "components": rng.normal(size=(2, N))}


def test_steps_in_their_order(steps, rng):
    X = rng.random((300, N))
    X[5, 1] = np.nan
    steps["medians"] = np.abs(steps["medians"])
    filled = np.where(np.isnan(X), steps["medians"], X)
    expected = ((np.log1p(filled) - steps["center"]) / steps["spread"] - steps["mean"]) @ steps["components"].T
    found = Preprocessing("median", log1p=True, **steps)
    np.testing.assert_allclose(found.apply(X), expected)
    assert (found.n_features_in, found.n_features_out) == (N, 2)
    assert found.apply(X.astype(np.float32)).dtype == np.float32
    assert np.isnan(X[5, 1])


def test_rows_do_not_depend_on_those_beside_them(steps, rng):
    X = rng.random((600, N))
    apply = Preprocessing(log1p=True, **steps).apply
    np.testing.assert_array_equal(apply(X[300:302]), apply(X)[300:302])


def test_sparse_matrices_stay_sparse_and_are_not_centred(steps, rng):
    X = scipy.sparse.random(50, N, 0.5, random_state=0, format="csr")
    found = Preprocessing(log1p=True, center=np.zeros(N), spread=steps["spread"]).apply(X)
    np.testing.assert_allclose(found.toarray(), np.log1p(X.toarray()) / steps["spread"])
    projected = Preprocessing(mean=steps["mean"], components=steps["components"]).apply(X)
    np.testing.assert_allclose(projected, (X.toarray() - steps["mean"]) @ steps["components"].T)


def test_no_steps_change_nothing(rng):
    X = rng.random((5, N))
    assert Preprocessing().apply(X) is X
    assert Preprocessing().is_empty
    assert Preprocessing().n_features_in is None
    assert Preprocessing().apply(np.ones((5, N), int)).dtype == np.float64


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones((2, N + 1)), "X has 4 features, but the preprocessing was fitted to 3"),
        (np.array([[1, np.nan, 2], [np.nan, np.nan, 2]]), "X has 3 missing values"),
        (scipy.sparse.csr_matrix([[1, np.nan, 2]]), "X has 1 missing values"),
        (np.array([[1, -2.5, 2]]), "log1p needs values above -1, but X has -2.5"),
        (scipy.sparse.csr_matrix([[1, -2.5, 2]]), "log1p needs values above -1, but X has -2.5"),
    ],
)
def test_data_that_cannot_be_used(X, message):
    with pytest.raises(ValueError, match=message):
        Preprocessing(log1p=True, center=np.zeros(N), spread=np.ones(N)).apply(X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"spread": np.ones(N + 1)}, "differ in their number of features"),
        ({"components": np.ones((2, N + 1))}, "differ in their number of features"),
        ({"spread": None}, "lacks one of center and spread"),
        ({"mean": None}, "lacks one of center and spread, or one of mean and components"),
        ({"spread": np.array([1.0, 0, 1])}, "not positive"),
        ({"center": np.array([1.0, np.nan, 1])}, "center of the preprocessing is not finite"),
        ({"components": np.ones(N)}, "components of the preprocessing is not an array of floats with 2 dimensions"),
        ({"mean": np.ones((N, N))}, "mean of the preprocessing is not an array of floats with 1 dimensions"),
        ({"medians": np.ones(N, int)}, "medians of the preprocessing is not an array of floats"),
        ({"medians": np.ones(0)}, "medians of the preprocessing is not an array of floats"),
        ({"center": "all"}, "center of the preprocessing is not an array of floats"),
        ({"impute": "mean"}, "impute='mean'"),
        ({"log1p": "yes"}, "log1p='yes'"),
    ],
)
def test_parts_from_a_file_are_checked(steps, change, message):
    with pytest.raises(ValueError, match=message):
        Preprocessing(**steps | change)
