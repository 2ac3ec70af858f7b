import numpy as np
import pytest
import scipy.sparse

from laptsne import Descent, LaptSNE
from laptsne._runtime.threads import Workers
from laptsne.clusters import evidence
from laptsne.clusters.evidence import evident_clusters
from laptsne.graph.affinity import joint_affinities


def n_evident(Y, P):
    return int(evident_clusters(Y, P).max()) + 1


def two_groups(rng, distance, n=600):
    Y = rng.normal(size=(n, 2))
    Y[: n // 2, 0] += distance
    return Y


def test_one_group_is_one_cluster(rng):
    Y = rng.normal(size=(1000, 2))
    np.testing.assert_array_equal(evident_clusters(Y, joint_affinities(Y, perplexity=20)), 0)


def test_two_groups_far_apart_are_two_clusters(rng):
    Y = two_groups(rng, 10)
    labels = evident_clusters(Y, joint_affinities(Y, perplexity=20))
    assert labels[:300].std() == labels[300:].std() == 0
    assert labels[0] != labels[-1]


def test_groups_that_run_into_each_other_are_one(rng):
    Y = two_groups(rng, 2)
    assert n_evident(Y, joint_affinities(Y, perplexity=20)) == 1


@pytest.mark.parametrize("axis", [0, 1])
def test_a_tear_in_a_continuum_is_no_border(rng, axis):
    """The embedding has a wide density valley, but the data are continuous across it."""
    X = rng.random((2000, 2)) * [20, 8]
    torn = X.copy()
    torn[X[:, axis] > X[:, axis].mean(), axis] += 10
    assert n_evident(torn, joint_affinities(torn, perplexity=20)) == 2
    assert n_evident(torn, joint_affinities(X, perplexity=20)) == 1


def test_a_few_points_between_clusters_do_not_join_them(rng):
    X = two_groups(rng, 12, 1000)
    X[:2] = [6, 0] + 0.1 * rng.normal(size=(2, 2))
    assert n_evident(X, joint_affinities(X, perplexity=20)) == 2


def test_thresholds_are_relaxed_once_there_are_clusters(rng):
    """Two groups that nearly touch are no evidence of clusters; beside a distant third, they are two."""
    near = two_groups(rng, 5.0, 200)
    beside = np.vstack([near, rng.normal([0, 40], size=(200, 2))])
    assert n_evident(near, joint_affinities(near, perplexity=20)) == 1
    assert n_evident(beside, joint_affinities(beside, perplexity=20)) == 3


def n_peaks(Y):
    return int(evidence._prominent_clusters(Y, evidence.KDTree(Y), 4.0, Workers(1)).max()) + 1


def test_a_saddle_is_at_most_half_as_dense_as_the_lower_peak(rng):
    """Between two Gaussians 2.8 apart the density is 0.75 of their own, 4 apart 0.27."""
    assert n_peaks(two_groups(rng, 2.8, 20_000)) == 1
    assert n_peaks(two_groups(rng, 4.0, 20_000)) == 2


def test_peaks_within_the_error_of_the_density_are_not_prominent(rng):
    """None of forty small samples of one Gaussian has a second prominent peak."""
    assert [n_peaks(rng.normal(size=(250, 2))) for _ in range(40)] == [1] * 40


def by_hand(n):
    """Two groups of n points with equal affinities within and none across."""
    P = np.kron(np.eye(2), np.ones((n, n)) - np.eye(n))
    Y = np.random.default_rng(0).normal(size=(2 * n, 2))
    Y[:n] += 20
    return Y, P


def test_affinity_that_is_not_reciprocated_does_not_merge_clusters():
    Y, P = by_hand(300)
    P[:20, 300:] = P[300:, :20] = 1.0  # half of their affinity, but a fifteenth of that of the others
    assert n_evident(Y, P / P.sum()) == 2
    P[:300, 300:] = P[300:, :300] = 0.5
    assert n_evident(Y, P / P.sum()) == 1


def test_the_affinity_of_two_points_does_not_merge_clusters():
    Y, P = by_hand(300)
    P[0, 300] = P[300, 0] = 250.0  # nearly half of their affinity
    assert n_evident(Y, P / P.sum()) == 2


def test_small_groups_are_not_counted(rng):
    Y = np.vstack([rng.normal(size=(2000, 2)), rng.normal(size=(6, 2)) * 0.1 + 50])
    labels = evident_clusters(Y, joint_affinities(Y, perplexity=20))
    np.testing.assert_array_equal(labels, 0)


@pytest.mark.parametrize(("n_small", "n_counted"), [(6, 10), (8, 4)])
def test_of_many_clusters_the_relatively_small_are_dropped(rng, n_small, n_counted):
    sizes = [1000] * 4 + [80] * n_small
    angle = np.repeat(np.linspace(0, 2 * np.pi, len(sizes), endpoint=False), sizes)
    Y = 100 * np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(size=(angle.size, 2))
    labels = evident_clusters(Y, joint_affinities(Y, perplexity=20))
    assert labels.max() + 1 == n_counted
    assert set(labels[4000:]) == ({-1} if n_counted == 4 else set(labels) - set(labels[:4000]))


@pytest.mark.parametrize("n_components", [1, 3])
def test_other_dimensions(rng, n_components):
    Y = rng.normal(size=(600, n_components))
    assert n_evident(Y, joint_affinities(Y, perplexity=20)) == 1
    Y[:300, 0] += 15
    assert n_evident(Y, joint_affinities(Y, perplexity=20)) == 2


@pytest.mark.parametrize("n", [2, 3, 10, 30])
def test_few_points(rng, n):
    Y = rng.normal(size=(n, 2))
    assert evident_clusters(Y, np.ones((n, n)) - np.eye(n)).shape == (n,)


def test_equal_points_are_one_cluster():
    assert n_evident(np.zeros((100, 2)), np.ones((100, 100)) - np.eye(100)) == 1


def test_a_sample_of_the_points_is_enough(rng, monkeypatch):
    Y = two_groups(rng, 10, 3000)
    P = joint_affinities(Y, perplexity=20)
    monkeypatch.setattr(evidence, "_MAX_POINTS", 500)
    labels = evident_clusters(Y, P)
    assert len(set(labels[:1500])) == len(set(labels[1500:])) == 1
    assert labels[0] != labels[-1]


def test_affinities_in_another_order(rng):
    X = rng.random((2000, 2)) * [20, 8]
    torn = X.copy()
    torn[X[:, 0] > 10, 0] += 10
    P, order = joint_affinities(X, perplexity=20), rng.permutation(2000)
    moved = scipy.sparse.csr_matrix(P[order][:, order])
    np.testing.assert_array_equal(evident_clusters(torn, moved, order=order), evident_clusters(torn, P))
    assert int(evident_clusters(torn, joint_affinities(torn, perplexity=20)[order][:, order], order=order).max()) == 1


def test_data_without_clusters_are_not_contracted(rng):
    X = rng.normal(size=(500, 5))
    model, plain = (LaptSNE(contraction=c, random_state=0, max_iter=300).fit(X) for c in ("auto", 0))
    assert (model.n_clusters_, model.contraction_) == (1, 0)
    np.testing.assert_array_equal(model.embedding_, plain.embedding_)
    np.testing.assert_array_equal(model.labels_, 0)


def test_contraction_without_evidence_is_refused_with_the_remedy(rng):
    X = rng.normal(size=(500, 5))
    with pytest.warns(UserWarning, match=r"contraction=0.02 has no effect.*n_clusters"):
        assert LaptSNE(contraction=0.02, random_state=0, max_iter=100).fit(X).contraction_ == 0
    assert LaptSNE(contraction=0.02, n_clusters=3, random_state=0, max_iter=100).fit(X).n_clusters_ == 3
    assert LaptSNE(n_clusters="eigengap", random_state=0, max_iter=100).fit(X).n_clusters_ > 1


def test_clusters_of_unequal_size_and_spread_are_counted(rng):
    sizes, spreads = (600, 300, 100, 50, 20), (0.5, 1, 1.5, 1, 0.7)
    parts = [rng.normal(scale=3, size=10) + rng.normal(size=(n, 10)) * s for n, s in zip(sizes, spreads, strict=True)]
    model = LaptSNE(random_state=0).fit(np.vstack(parts))
    assert model.n_clusters_ == 5
    assert model.contraction_ == pytest.approx(0.4 / 5)


def test_clusters_are_counted_even_if_the_run_stops_before(blobs):
    model = LaptSNE(callbacks=lambda state: state.iteration == 40, random_state=0, max_iter=400).fit(blobs[0])
    assert model.n_iter_ == 40
    assert model.eigenvalues_.shape == (model.n_clusters_,)


@pytest.mark.parametrize("options", [{}, {"batch_size": 60}, {"method": "fourier"}])
def test_every_method_counts_the_clusters(blobs, options):
    assert LaptSNE(random_state=0, **options).fit(blobs[0]).n_clusters_ == 3


def test_exaggeration_out_of_range():
    with pytest.raises(ValueError, match=r"exaggeration must be None, or a finite number of at least 1; got 0\.5"):
        Descent(exaggeration=0.5)


def test_perplexity_by_the_number_of_points(rng):
    X = rng.normal(size=(200, 3))
    assert LaptSNE(max_iter=5).fit(X).perplexity_ == 30
    assert LaptSNE(max_iter=5).fit(X[:31]).perplexity_ == 10
    assert LaptSNE(max_iter=5, perplexity=7).fit(X).perplexity_ == 7
