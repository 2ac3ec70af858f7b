import warnings

import numpy as np
import pytest
import scipy.sparse
from hypothesis import Phase, given, settings
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from strategies import cases, outcome, wrong_cases

from laptsne import LaptSNE

# The same cases every time, so that a failure is one of the change and not of the day.
steady = {"derandomize": True, "deadline": None, "database": None, "phases": [Phase.generate, Phase.shrink]}


@settings(max_examples=200, **steady)
@given(cases())
def test_a_finite_map_or_a_named_error(case):
    judged = outcome(case)
    assert judged.kind in ("map", "error"), judged.reason


@settings(max_examples=100, **steady)
@given(wrong_cases())
def test_what_is_wrong_is_refused_by_name(case):
    judged = outcome(case)
    assert judged.kind == "error", judged.reason or "a map was made of it"


def test_affinities_know_no_unit():
    """Whatever the unit of the data, of distances or of affinities, single precision must not lose them."""
    X = make_blobs(60, 3, centers=3, random_state=0)[0]
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    similar = scipy.sparse.csr_matrix(np.exp(-distances))
    for data, metric in ((X, "euclidean"), (distances, "precomputed"), (similar, "affinities")):
        usual = LaptSNE(perplexity=5, metric=metric, max_iter=1, random_state=0).fit(data).affinities_
        for unit in (1e-120, 1e-30, 1e30, 1e120):
            model = LaptSNE(perplexity=5, metric=metric, max_iter=1, random_state=0).fit(data * unit)
            np.testing.assert_allclose(model.affinities_.toarray(), usual.toarray(), rtol=1e-3, atol=1e-9)


def test_constant_rows_under_correlation_are_far_from_all():
    X = np.random.default_rng(0).normal(size=(40, 6))
    X[:3] = 1.0
    model = LaptSNE(perplexity=5, metric="correlation", max_iter=5, random_state=0).fit(X)
    assert (np.asarray(model.affinities_.sum(axis=1)).ravel() > 0).all()
    assert np.isfinite(model.embedding_).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_beyond_all_others_has_its_place_whatever_comes_with_it(dtype):
    X = make_blobs(60, 3, centers=3, random_state=0)[0].astype(dtype)
    model = LaptSNE(perplexity=5, max_iter=50, random_state=0).fit(X)
    far = (X[:1] * dtype(1e30)).astype(dtype)
    alone, together = model.transform(X[5:8] + dtype(0.5)), model.transform(np.vstack([X[5:8] + dtype(0.5), far]))
    assert np.isfinite(together).all()
    np.testing.assert_array_equal(alone, together[:3])


ways = pytest.mark.parametrize(
    "way",
    [
        {"method": "exact"},
        {"method": "fourier"},
        {"kernel": "gaussian"},
        {"method": "exact", "penalty": "trace"},
        {"batch_size": 40},
    ],
    ids=str,
)


def caught(**parameters):
    """The map of some blobs, and the message of the warning that it came with."""
    X = make_blobs(90, 4, centers=3, random_state=0)[0]
    with pytest.warns(ConvergenceWarning) as warned:
        model = LaptSNE(n_clusters=3, random_state=0, **parameters).fit(X)
    return model, str(warned[0].message)


@ways
@pytest.mark.parametrize("contraction", [1e12, 1e15])  # lower ones end at a gap
def test_a_contraction_far_too_strong_ends_finite_with_a_warning(way, contraction):
    model, message = caught(contraction=contraction, max_iter=40, **way)
    assert np.isfinite(model.embedding_).all()
    assert np.isfinite([model.kl_divergence_, model.objective_]).all()
    assert f"contraction (now {contraction:.4g})" in message


@pytest.mark.parametrize("way", [{"method": "exact"}, {"method": "fourier"}, {"kernel": "gaussian"}], ids=str)
@pytest.mark.parametrize("learning_rate", [1e5, 1e9, 1e12])
def test_a_step_size_far_too_high_ends_finite_with_a_warning(way, learning_rate):
    model, message = caught(learning_rate=learning_rate, contraction=0, max_iter=60, **way)
    assert np.isfinite(model.embedding_).all()
    assert f"learning_rate (now {learning_rate:.4g})" in message


@pytest.mark.parametrize(("learning_rate", "least"), [(1e4, 8), (1e5, 8)])
def test_long_runs_whose_points_do_not_settle_warn(learning_rate, least):
    """Far more than these points need: chaotic runs, of which bounds for eight seeds hold on any CPU."""
    X = make_blobs(90, 4, centers=3, random_state=0)[0]
    n_warned = 0
    for seed in range(8):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            LaptSNE(n_clusters=3, random_state=seed, learning_rate=learning_rate, contraction=0).fit(X)
        n_warned += any("still move by more than 1 per step" in str(warning.message) for warning in said)
    assert n_warned >= least


def test_batches_have_their_own_bound_on_the_step_size():
    X = make_blobs(90, 4, centers=3, random_state=0)[0]
    model = LaptSNE(learning_rate=1e12, batch_size=30, contraction=0, n_clusters=3, max_iter=200, random_state=0).fit(X)
    usual = LaptSNE(batch_size=30, contraction=0, n_clusters=3, max_iter=200, random_state=0).fit(X)
    assert model.kl_divergence_ < usual.kl_divergence_ + 0.5


def test_a_map_that_tells_nothing_is_called_so():
    X = make_blobs(90, 4, centers=3, random_state=0)[0]

    def torn(state):
        return state.iteration == 120

    # A start far apart in which nothing can move any more: no step is cut.
    start = np.random.default_rng(0).normal(scale=1e6, size=(90, 2))
    with pytest.warns(ConvergenceWarning, match="higher than that of an embedding with all points in one position"):
        LaptSNE(init=start, contraction=0, n_clusters=3, learning_rate=1.0, callbacks=torn, random_state=0).fit(X)


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("max_iter", [1, 5, 20, 60, 250])
def test_ordinary_runs_do_not_warn(max_iter):
    X = make_blobs(150, 6, centers=4, random_state=0)[0]
    for way in ({}, {"method": "fourier"}, {"batch_size": 50}, {"n_clusters": 4, "contraction": 0.04}):
        LaptSNE(max_iter=max_iter, random_state=0, **way).fit(X)
