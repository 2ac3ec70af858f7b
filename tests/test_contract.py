import numpy as np
import pytest
import scipy.sparse
from scipy.spatial import procrustes

import laptsne
from laptsne._runtime import threads
from laptsne._runtime.threads import Workers
from laptsne.contraction.cluster_term import TAIL_SHARE, TAIL_WIDTH, ClusterTerm
from laptsne.contraction.finished import SmoothDisplacement
from laptsne.contraction.term import Penalty
from laptsne.fields import ExactFields
from laptsne.graph.affinity import joint_affinities

N = 250


@pytest.fixture(scope="module")
def clusters():
    """Three clusters of the data, two of which touch in the map while the third is far away."""
    rng = np.random.default_rng(0)
    label = np.repeat([0, 1, 2], N)
    X = rng.normal(size=(3 * N, 6)) + 8 * np.eye(6)[label]
    angle, radius = rng.uniform(0, 2 * np.pi, 3 * N), np.sqrt(rng.uniform(size=3 * N))
    disc = np.column_stack([radius * np.cos(angle), 2 * radius * np.sin(angle)])
    Y = disc + np.array([[0, 0], [1.7, 0], [20, 5]])[label]
    return X, Y, label


def gap(Y, label):
    """Distance between the first two clusters along the first axis, without a few stray points."""
    return np.quantile(Y[label == 1, 0], 0.02) - np.quantile(Y[label == 0, 0], 0.98)


def test_gaps_open_and_the_rest_stays(clusters):
    X, Y, label = clusters
    contracted = laptsne.contract(Y, X)
    assert gap(Y, label) < 0.1
    assert gap(contracted, label) > gap(Y, label) + 0.4
    far = label == 2
    assert np.abs(contracted[far] - Y[far]).max() < 1e-3
    for c in (0, 1):
        assert procrustes(Y[label == c], contracted[label == c])[2] < 0.01
        # Neither grown nor shrunk.
        assert contracted[label == c].std(axis=0) == pytest.approx(Y[label == c].std(axis=0), rel=0.15)


def test_larger_strengths_open_wider_gaps(clusters):
    X, Y, label = clusters
    gaps = [gap(laptsne.contract(Y, X, strength=s), label) for s in (0, 0.3, 1, 3)]
    assert gaps == sorted(gaps)
    assert gaps[0] == gap(Y, label)


def test_a_cluster_of_which_all_points_lie_in_another(clusters):
    X, Y, label = clusters
    X, Y = X.copy(), Y.copy()
    X[:30] += 30  # a small cluster of its own in the data, and in the map in the midst of the third
    Y[:30] = Y[label == 2].mean(axis=0) + 0.01 * Y[:30]
    contracted = laptsne.contract(Y, X)
    assert np.isfinite(contracted).all()
    assert gap(contracted[30:], label[30:]) > gap(Y[30:], label[30:]) + 0.2


def test_the_largest_strength_gives_a_finite_map(clusters):
    X, Y, label = clusters
    contracted = laptsne.contract(Y, X, strength=1000)
    assert np.isfinite(contracted).all()
    assert gap(contracted, label) > gap(Y, label)


@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_map_without_clusters_is_unchanged(n_components):
    X = np.random.default_rng(0).normal(size=(500, 5))
    Y = X[:, :n_components].astype(np.float32)
    contracted = laptsne.contract(Y, X)
    assert contracted.tobytes() == Y.tobytes()
    assert not np.shares_memory(contracted, Y)


@pytest.mark.parametrize("n_components", [1, 3])
def test_maps_of_other_dimensions(clusters, n_components):
    X, Y, label = clusters
    Y = np.column_stack([Y, np.random.default_rng(1).normal(size=len(Y))])[:, :n_components]
    assert gap(laptsne.contract(Y, X), label) > gap(Y, label) + 0.2


def test_units_of_the_map_do_not_matter(clusters):
    X, Y, _ = clusters
    expected = laptsne.contract(Y, X)
    assert laptsne.contract(1e-3 * Y + 7, X) == pytest.approx(1e-3 * expected + 7, abs=1e-5)


def test_precision_of_the_map_is_kept(clusters):
    X, Y, _ = clusters
    given = Y.astype(np.float32)
    single = laptsne.contract(given, X)
    assert single.dtype == np.float32
    assert (given == Y.astype(np.float32)).all()
    assert single == pytest.approx(laptsne.contract(Y, X), abs=1e-3)


def test_data_as_features_distances_or_graph(clusters):
    X, Y, label = clusters
    graph = joint_affinities(X, perplexity=30)
    by_graph = laptsne.contract(Y, graph)
    assert (by_graph == laptsne.contract(Y, graph, metric="affinities")).all()
    assert (by_graph == laptsne.contract(Y, X)).all()
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    assert gap(laptsne.contract(Y, distances, metric="precomputed"), label) > gap(Y, label) + 0.4
    # A sparse matrix of features is not taken for a graph.
    assert (laptsne.contract(Y, scipy.sparse.csr_matrix(X)) == laptsne.contract(Y, X)).all()


def test_umap_graph(clusters):
    umap = pytest.importorskip("umap.umap_")
    X, Y, label = clusters
    graph = umap.fuzzy_simplicial_set(X.astype(np.float32), 15, np.random.RandomState(0), "euclidean")[0]
    assert gap(laptsne.contract(Y, graph), label) > gap(Y, label) + 0.4


def test_a_point_deep_inside_another_cluster_stays_there(clusters):
    X, Y, _ = clusters
    Y = Y.copy()
    Y[0] = Y[2 * N :].mean(axis=0)
    assert np.linalg.norm(laptsne.contract(Y, X)[0] - Y[0]) < 1e-3


def test_the_same_bits_for_any_number_of_threads(clusters, monkeypatch):
    X, Y, _ = clusters
    monkeypatch.setattr(threads, "MIN_WORK", 0)
    one, three = (laptsne.contract(Y, X, n_jobs=n_jobs) for n_jobs in (1, 3))
    assert one.tobytes() == three.tobytes()


def test_all_points_in_one_position(clusters):
    X, Y, _ = clusters
    assert (laptsne.contract(np.ones_like(Y), X) == 1).all()


def cut_of(Y, label, width, penalty):
    """The term with constant volumes."""
    term = ClusterTerm(label, penalty, width, min_share=0)
    term.refresh(ExactFields(Y))
    term.fix_volumes()
    return term


def value_at(term, Y):
    term.refresh(ExactFields(Y))
    return term.value()


@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_gradient_with_constant_volumes(n_components):
    rng = np.random.default_rng(0)
    label = np.repeat([0, 1, 2, -1], 40)
    Y = (rng.normal(size=(160, 3)) + 1.5 * rng.normal(size=(4, 3))[label])[:, :n_components]
    term = cut_of(Y, label, 0.8, Penalty("log", 0.01))
    direction = rng.normal(size=Y.shape)
    h = 1e-2
    difference = (value_at(term, Y + h * direction) - value_at(term, Y - h * direction)) / (2 * h)
    term.refresh(ExactFields(Y))
    gradient = term.gradient(ExactFields(Y))
    assert np.vdot(gradient, direction) == pytest.approx(difference, rel=2e-3)
    assert not gradient[label < 0].any()


def test_value_with_constant_volumes():
    rng = np.random.default_rng(0)
    label = np.repeat([0, 1], 50)
    Y = rng.normal(size=(100, 2)) + 2.0 * label[:, None]
    width = 1.0
    d2 = ((Y[:, None] - Y) ** 2).sum(axis=2)
    w, tail = (np.exp(-d2 / (2 * h**2)) * (1 - np.eye(100)) for h in (width, TAIL_WIDTH * width))
    whole = w + TAIL_SHARE / TAIL_WIDTH**2 * tail
    across = w[:50, 50:].sum()
    volumes = np.array([whole[:50].sum(), whole[50:].sum()])
    value = value_at(cut_of(Y, label, width, Penalty("trace", 0.0)), Y)
    assert value == pytest.approx(across * (1 / volumes).sum(), rel=0.01)


def test_displacements_are_smooth_within_clusters():
    y = np.linspace(0, 1, 101)[None]
    members = [np.arange(60), np.arange(60, 100)]  # the last point belongs to none
    push = np.zeros_like(y)
    push[0, 50] = 1.0
    moved = SmoothDisplacement(y, members, 0.1, Workers(1)).of(push)[0]
    assert moved[50] > moved[45] > moved[30] > 0
    assert not moved[60:].any()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"Y": np.zeros((750, 4))}, "Y has 4 columns"),
        ({"Y": np.zeros((10, 2))}, "X has 750 rows, but Y has 10"),
        ({"Y": np.full((750, 2), np.nan)}, "Y contains NaN"),
        ({"Y": np.zeros(750)}, "Expected 2D array"),
        ({"strength": -1}, "strength=-1"),
        ({"strength": np.inf}, "strength=inf"),
        ({"strength": 1e50}, r"strength=1e\+50 is not between 0 and 1000"),
        ({"strength": "strong"}, "strength='strong'"),
        ({"metric": "euclid"}, "The 'metric' parameter"),
        ({"metric": "affinities"}, "needs a square matrix"),
        ({"X": np.full((750, 3), np.inf)}, "X contains infinity"),
    ],
)
def test_bad_input(clusters, changes, message):
    X, Y, _ = clusters
    arguments = {"Y": Y, "X": X} | changes
    with pytest.raises(ValueError, match=message):
        laptsne.contract(**arguments)
