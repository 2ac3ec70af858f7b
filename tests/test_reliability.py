import numpy as np
import pytest
import reference_reliability as exact
import scipy.sparse
from reference import central_differences, relative_error
from scipy.stats import spearmanr
from sklearn.datasets import load_digits, make_blobs, make_swiss_roll
from sklearn.metrics import pairwise_distances, roc_auc_score
from sklearn.neighbors import NearestNeighbors

from laptsne import LaptSNE
from laptsne._runtime.files import read_archive, write_archive
from laptsne._runtime.threads import Workers
from laptsne.graph.affinity import joint_affinities
from laptsne.graph.neighbors import neighbor_distances
from laptsne.kernels import Gaussian
from laptsne.reliability import NudgedNeighbors, Reliability, principal_directions

FAST = {"max_iter": 100, "perplexity": 10, "random_state": 0}


@pytest.fixture(scope="module")
def digits():
    """500 digits, a plain map of them, and its reliability."""
    X = load_digits().data[:500]
    model = LaptSNE(contraction=0, random_state=0).fit(X)
    model.diagnose()
    return X, model


def test_derivatives_of_the_exact_loss(rng):
    others, p = rng.normal(size=(20, 2)), rng.random(20) / 100
    y = np.array([0.3, -0.2])
    arguments = (others, p, 30.0, 1.1)
    slope = central_differences(lambda at: exact.own_loss(at[0], *arguments), y[None])[0]
    np.testing.assert_allclose(exact.own_gradient(y, *arguments), slope, rtol=1e-5)


@pytest.mark.slow
def test_perturbation_has_the_ranks_of_the_exact_definition(digits):
    X, model = digits
    rows = np.arange(0, 500, 4)
    options = {"length": model.reliability_.length, "perplexity": model.perplexity_}
    jumps = exact.jumps(X, model.embedding_, rows, **options)
    assert spearmanr(model.reliability_.perturbation[rows], jumps).statistic > 0.95


def test_perturbation_of_a_few_points_is_the_exact_one(digits):
    X, model = digits
    rows = np.arange(3, 500, 60)
    options = {"length": model.reliability_.length, "perplexity": model.perplexity_}
    jumps = exact.jumps(X, model.embedding_, rows, **options)
    error = np.abs(model.reliability_.perturbation[rows] - jumps)
    assert np.median(error) < 0.1
    assert (error < 0.5).mean() > 0.8


def test_the_score_finds_the_torn_edge_of_a_swiss_roll():
    scores = []
    for seed in (0, 2, 3):
        X, _ = make_swiss_roll(1000, random_state=seed)
        model = LaptSNE(contraction=0, refine_affinities=False, random_state=0).fit(X)  # refined, fewer points are torn
        near = NearestNeighbors(n_neighbors=11).fit(X).kneighbors(X, return_distance=False)[:, 1:]
        far = np.linalg.norm(model.embedding_[near] - model.embedding_[:, None], axis=2)
        torn = (far > np.sqrt(model.embedding_.var(axis=0).sum()) / 2).mean(axis=1) >= 0.3
        assert torn.sum() > 10
        scores.append(roc_auc_score(torn, model.diagnose().perturbation))
    assert np.mean(scores) > 0.95


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_affinities_of_nudged_rows(rng, metric):
    """They are those of the data in which one row is moved, but for the precisions of its neighbours."""
    X = rng.normal(size=(200, 5))
    direction = principal_directions(X)[1]
    with Workers(1) as workers:
        graph = neighbor_distances(X, 150, workers=workers)
        neighbors = NudgedNeighbors(graph, 10, 1 if metric == "euclidean" else 2, workers)
        for step, error in ((0.0, 1e-6), (0.3, 0.1)):
            P = neighbors.affinities(X @ direction, step).toarray()
            for i in (0, 7, 50):
                moved = X.copy()
                moved[i] += step * direction
                expected = 200 * joint_affinities(moved, perplexity=10, n_neighbors=150, metric=metric).toarray()[i]
                assert relative_error(P[i], expected) < error


@pytest.mark.parametrize("n_features", [2, 10, 2100])
def test_principal_directions(rng, n_features):
    X = rng.normal(size=(80, n_features)) * 0.1
    X[:, 1] += 3 * rng.normal(size=80)
    X += 50
    for data in (X, scipy.sparse.csr_matrix(X)):
        directions = principal_directions(data)
        assert directions.shape == (min(3, n_features), n_features)
        assert abs(directions[0, 1]) > 0.98
        np.testing.assert_allclose(directions @ directions.T, np.eye(len(directions)), atol=1e-8)
    assert principal_directions(np.ones((80, n_features))).shape == (min(3, n_features), n_features)


def test_a_point_does_not_repel_itself():
    """Points are at the minima of their own losses, as long as their data are not moved."""
    X, _ = make_blobs(100, 4, centers=3, random_state=0)
    model = LaptSNE(contraction=0, perplexity=5, refine_affinities=False, random_state=0).fit(X)
    assert np.median(model.diagnose(length=1e-6).perturbation) < 0.1


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"metric": "cosine"},
        {"metric": "correlation"},
        {"metric": "sqeuclidean"},
        {"n_neighbors": "all"},
        {"contraction_kernel": "student"},
        {"batch_size": 40},
        {"method": "fourier"},
        {"method": "exact"},
    ],
)
def test_the_score_is_finite_and_saved(blobs, settings, tmp_path):
    X, _ = blobs
    model = LaptSNE(**FAST, **settings).fit(X)
    model.save(tmp_path / "before")
    found = model.diagnose()
    assert found is model.reliability_
    assert found.reason is None
    assert found.perturbation.shape == (120,)
    assert np.isfinite(found.perturbation).all()
    assert (found.perturbation >= 0).all()
    model.save(tmp_path / "after")
    again = LaptSNE.load(tmp_path / "before")
    assert again.reliability_ is None
    again.diagnose()
    for other in (LaptSNE.load(tmp_path / "after"), again):
        np.testing.assert_array_equal(other.reliability_.perturbation, found.perturbation)
    model.fit(X)
    assert model.reliability_ is None


@pytest.mark.parametrize(
    ("settings", "given", "reason"),
    [
        ({"metric": "manhattan"}, np.asarray, "metric='manhattan' is not one of 'euclidean', "),
        ({"metric": "precomputed"}, pairwise_distances, "metric='precomputed' has no features"),
        ({"metric": "affinities"}, lambda X: joint_affinities(X, perplexity=10), "metric='affinities' has no features"),
        ({"out_of_sample": "network"}, np.asarray, "out_of_sample='network' keeps no features"),
    ],
)
def test_without_features_there_is_no_score_but_a_reason(blobs, settings, given, reason, tmp_path):
    model = LaptSNE(**FAST, **settings).fit(given(blobs[0]))
    found = model.diagnose()
    assert found.perturbation is None
    assert reason in found.reason
    assert found.reason in repr(found)
    model.save(tmp_path / "model")
    loaded = LaptSNE.load(tmp_path / "model")
    assert loaded.reliability_.reason == found.reason
    assert loaded.diagnose().reason == found.reason


@pytest.mark.parametrize("kernel", ["gaussian", Gaussian(2.0)])
def test_a_gaussian_kernel_has_no_score(blobs, kernel):
    found = LaptSNE(kernel=kernel, **FAST).fit(blobs[0]).diagnose()
    assert found.perturbation is None
    assert "kernel='student'" in found.reason


@pytest.mark.parametrize(
    "X",
    [
        np.array([[0.0], [1.0]]),
        np.ones((12, 3)),
        np.arange(40.0)[:, None],
        np.random.default_rng(0).normal(size=(40, 3)) * 1e25,
        np.float32(np.random.default_rng(0).normal(size=(40, 3)) * 1e-25),
        scipy.sparse.random(60, 3000, density=0.05, format="csr", random_state=0),
        np.repeat(np.random.default_rng(0).normal(size=(10, 3)), 4, axis=0),
    ],
    ids=["two rows", "equal rows", "one feature", "huge", "tiny", "sparse and wide", "duplicates"],
)
def test_unusual_data(X):
    found = LaptSNE(max_iter=60, random_state=0).fit(X).diagnose()
    assert found.perturbation.shape == (X.shape[0],)
    assert np.isfinite(found.perturbation).all()


def test_the_scores_do_not_depend_on_the_scale_of_the_data(blobs):
    X, _ = blobs
    one, other = (LaptSNE(init=X[:, :2], **FAST).fit(X * scale).diagnose() for scale in (1, 2.0**80))
    np.testing.assert_allclose(other.perturbation, one.perturbation, rtol=1e-3, atol=1e-3)
    assert other.length == pytest.approx(one.length * 2.0**80, rel=1e-5)


def test_a_longer_nudge_moves_points_further(digits):
    X, model = digits
    other = LaptSNE(contraction=0, random_state=0).fit(X)
    short, long = (other.diagnose(length=length).perturbation for length in (1.0, 20.0))
    assert np.median(short) < np.median(long) / 5
    np.testing.assert_array_equal(other.diagnose().perturbation, model.reliability_.perturbation)
    for length in (0, -1, np.nan, np.inf):
        with pytest.raises(ValueError, match="must be a positive number"):
            other.diagnose(length=length)


@pytest.mark.usefixtures("kernel_threads")
def test_the_scores_do_not_depend_on_the_number_of_threads(blobs):
    X, _ = blobs
    one, two = (LaptSNE(n_jobs=n, **FAST).fit(X).diagnose() for n in (1, 2))
    np.testing.assert_array_equal(one.perturbation, two.perturbation)


def test_a_model_that_is_not_fitted_says_so():
    with pytest.raises(Exception, match="not fitted"):
        LaptSNE().diagnose()
    assert LaptSNE().reliability_ is None


def test_damaged_scores_are_refused():
    with pytest.raises(ValueError, match="inconsistent"):
        Reliability(np.ones((3, 4)))


def test_files_of_earlier_versions_have_one_more_score(blobs, tmp_path):
    model = LaptSNE(**FAST).fit(blobs[0])
    found = model.diagnose()
    model.save(tmp_path / "model")
    content, arrays = read_archive(tmp_path / "model")
    content["fitted"]["dict"]["reliability_"]["parts"]["singularity"] = {"array": "reliability_.singularity"}
    write_archive(tmp_path / "old", content, arrays | {"reliability_.singularity": np.ones(120)})
    loaded = LaptSNE.load(tmp_path / "old").reliability_
    np.testing.assert_array_equal(loaded.perturbation, found.perturbation)
    assert loaded.length == found.length
