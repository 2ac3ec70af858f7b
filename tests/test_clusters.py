"""Clusters of the data: communities, reciprocity, and which clusters are found."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_digits, load_iris, load_wine, make_swiss_roll
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from laptsne import LaptSNE, clusters
from laptsne._runtime.threads import Workers
from laptsne.clusters.counting import bodies_of, by_size, find_clusters, given_clusters
from laptsne.clusters.reciprocity import NeighborGraph, _reciprocity, nearest_graph
from laptsne.graph.affinity import joint_affinities
from laptsne.graph.communities import Cut, communities, within_parts
from laptsne.graph.neighbors import first_copies


def affinities(X):
    return joint_affinities(X, perplexity=min(30.0, (len(X) - 1) / 3))


def n_found(X):
    return int(find_clusters(affinities(X)).max()) + 1


def groups(rng, n_groups, size, distance, n_features=10):
    centres = distance * np.eye(n_groups, n_features)
    return np.repeat(centres, size, axis=0) + rng.normal(size=(n_groups * size, n_features))


def modularity(graph, labels):
    degree = np.asarray(graph.sum(axis=1)).ravel()
    same = labels[:, None] == labels
    return float((graph.toarray() * same).sum() - (np.outer(degree, degree) * same).sum() / degree.sum())


def random_graph(rng, n, n_blocks):
    block = rng.integers(0, n_blocks, n)
    edges = rng.random((n, n)) < np.where(block[:, None] == block, 0.5, 0.05)
    weights = np.triu(edges * rng.random((n, n)), 1)
    return scipy.sparse.csr_matrix(weights + weights.T), block


def test_communities_have_a_higher_modularity_than_the_true_blocks_and_none_gains_by_a_move(rng):
    graph, block = random_graph(rng, 120, 4)
    labels = communities(graph, np.zeros(120, int))
    best = modularity(graph, labels)
    assert best >= modularity(graph, block) - 1e-9
    for i in range(0, 120, 7):
        for other in range(labels.max() + 1):
            moved = labels.copy()
            moved[i] = other
            assert modularity(graph, moved) <= best + 1e-9


def test_communities_of_parts_are_those_of_each_part_alone(rng):
    first, _ = random_graph(rng, 60, 2)
    second, _ = random_graph(rng, 80, 4)
    both = scipy.sparse.block_diag([first, second], format="csr")
    together = communities(both, np.repeat([0, 1], [60, 80]))
    assert adjusted_rand_score(together[:60], communities(first, np.zeros(60, int))) == 1
    assert adjusted_rand_score(together[60:], communities(second, np.zeros(80, int))) == 1
    assert not set(together[:60]) & set(together[60:])


def test_reciprocity_against_its_definition(rng):
    graph, labels = random_graph(rng, 60, 3)
    found = NeighborGraph(graph.copy(), Workers(1)).reciprocity(labels)
    W = graph.toarray()
    for first, second, value, weight, n_points in zip(
        found.first, found.second, found.value, found.weight, found.n_points, strict=True
    ):
        a, b = np.flatnonzero(labels == first), np.flatnonzero(labels == second)
        cross = W[np.ix_(a, b)]
        share_a = cross.sum(axis=1) / (cross.sum(axis=1) + W[np.ix_(a, a)].sum(axis=1))
        share_b = cross.sum(axis=0) / (cross.sum(axis=0) + W[np.ix_(b, b)].sum(axis=1))
        assert value == pytest.approx((cross * np.sqrt(np.outer(share_a, share_b))).sum() / cross.sum())
        assert weight == pytest.approx(cross.sum())
        effective = [cross.sum() ** 2 / (cross.sum(axis=axis) ** 2).sum() for axis in (0, 1)]
        assert n_points == pytest.approx(min(effective))
    outside = [W[labels == c][:, labels != c].sum() / W[labels == c].sum() for c in range(3)]
    np.testing.assert_allclose(NeighborGraph(graph, Workers(1)).conductance(labels), outside)


def test_the_graph_within_parts_has_all_edges_but_those_between_them(rng, monkeypatch):
    monkeypatch.setattr("laptsne.graph.communities._BLOCK", 16)
    graph, parts = random_graph(rng, 100, 4)[0], rng.integers(0, 3, 100)
    graph = scipy.sparse.csr_matrix(graph.toarray() * (np.arange(100) % 10 > 0)[:, None])  # rows without an edge
    within = within_parts(graph, parts)
    assert np.array_equal(within.toarray(), graph.toarray() * (parts[:, None] == parts))
    assert within.nnz < graph.nnz
    assert within_parts(within, parts) is within


def test_the_neighbour_graph_has_the_strongest_affinities():
    X, _ = load_digits(return_X_y=True)
    P = affinities(X[:300])
    graph = nearest_graph(P, 20, Workers(1)).toarray()
    dense = P.toarray()
    strongest = np.argsort(-dense, axis=1, kind="stable")[:, :20]
    directed = np.zeros_like(dense)
    np.put_along_axis(directed, strongest, 0.5, axis=1)
    np.testing.assert_array_equal(graph, directed + directed.T)
    np.testing.assert_array_equal(graph, nearest_graph(dense, 20, Workers(1)).toarray())


def line(rng, n):
    X = rng.normal(scale=0.05, size=(n, 10))
    X[:, 0] += 4 * rng.random(n)
    return X


def ring(rng, n):
    angle = rng.uniform(0, 2 * np.pi, n)
    return np.column_stack([np.cos(angle), np.sin(angle), np.zeros((n, 3))]) + rng.normal(scale=0.05, size=(n, 5))


def torus(rng, n):
    a, b = rng.uniform(0, 2 * np.pi, (2, n))
    return np.column_stack([(1 + 0.35 * np.cos(b)) * f(a) for f in (np.cos, np.sin)] + [0.35 * np.sin(b)])


def blocks(rng, n):
    """Two cubes that share a face."""
    return rng.random((n, 3)) + (np.arange(n)[:, None] < n // 2) * [1, 0, 0]


def tree(rng, n):
    """Seven branches in ten dimensions; all but the first two start where another one ends."""
    starts, ends = [], [np.zeros(10)]
    for branch in range(7):
        starts.append(ends[(branch + 1) // 2])
        direction = rng.normal(size=10)
        ends.append(starts[-1] + direction / np.linalg.norm(direction))
    branch = rng.integers(0, 7, n)
    start, end = np.array(starts)[branch], np.array(ends[1:])[branch]
    return start + rng.random((n, 1)) * (end - start) + rng.normal(scale=0.05, size=(n, 10))


def duplicates(rng, n):
    return rng.normal(size=(n // 2, 10))[rng.integers(0, n // 2, n)]


CONTINUA = {
    "Gaussian, 5 dimensions": lambda rng, n: rng.normal(size=(n, 5)),
    "Gaussian, 20 dimensions": lambda rng, n: rng.normal(size=(n, 20)),
    "Gaussian, 100 dimensions": lambda rng, n: rng.normal(size=(n, 100)),
    "cube": lambda rng, n: rng.random((n, 8)),
    "swiss roll": lambda rng, n: make_swiss_roll(n, random_state=int(rng.integers(2**31)))[0],
    "Student's t": lambda rng, n: rng.standard_t(3, (n, 10)),
    "line": line,
    "ring": ring,
    "torus": torus,
    "blocks": blocks,
    "tree": tree,
    "duplicates": duplicates,
}


@pytest.mark.parametrize("name", CONTINUA)
def test_data_without_clusters_are_one(name):
    for n, seeds in ((300, range(4)), (1200, range(2))):
        for seed in seeds:
            assert n_found(CONTINUA[name](np.random.default_rng(seed), n)) == 1, (n, seed)


@pytest.mark.parametrize("n_features", [2, 5, 20])
@pytest.mark.parametrize("n", [90, 150, 300, 600])
def test_three_gaussians_six_standard_deviations_apart(n, n_features):
    corners = 6 * np.array([[0, 0], [1, 0], [0.5, np.sqrt(0.75)]])
    group = np.arange(n) % 3
    for seed in range(3):
        X = np.random.default_rng(seed).normal(size=(n, n_features))
        X[:, :2] += corners[group]
        labels = find_clusters(affinities(X))
        assert labels.max() == 2, seed
        assert adjusted_rand_score(group, labels) > 0.9


@pytest.mark.parametrize("n_groups", [2, 3, 5, 8, 12])
def test_gaussians_eleven_standard_deviations_apart(n_groups):
    for seed in range(2):
        X = groups(np.random.default_rng(seed), n_groups, 60, 11 / np.sqrt(2), 20)
        labels = find_clusters(affinities(X))
        assert adjusted_rand_score(np.repeat(range(n_groups), 60), labels) == 1, seed


@pytest.mark.parametrize("n_far", [10, 15, 40])
@pytest.mark.parametrize("n_features", [2, 5, 20])
def test_a_far_group_is_a_cluster_beside_a_gaussian(n_far, n_features):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        far = rng.normal(size=(n_far, n_features)) + 30 / np.sqrt(n_features)
        labels = find_clusters(affinities(np.vstack([rng.normal(size=(300, n_features)), far])))
        np.testing.assert_array_equal(labels, np.repeat([0, 1], [300, n_far]))


@pytest.mark.parametrize("n_far", [10, 30, 120])
def test_a_far_group_does_not_change_the_clusters_of_the_rest(n_far):
    """Three Gaussians that nearly touch: the same borders are found, whatever lies far away."""
    rng = np.random.default_rng(0)
    X, far = groups(rng, 3, 100, 4.0, 5), rng.normal(size=(n_far, 5)) + 60
    alone, beside = find_clusters(affinities(X)), find_clusters(affinities(np.vstack([X, far])))
    assert alone.max() == 2
    assert beside.max() == 3
    assert adjusted_rand_score(alone, beside[:300]) == 1
    assert len(set(beside[300:])) == 1


@pytest.mark.parametrize(("load", "counts"), [(load_iris, {2, 3}), (load_wine, {3})])
def test_well_known_data(load, counts):
    data = load()
    X = data.data if load is load_iris else StandardScaler().fit_transform(data.data)
    labels = find_clusters(affinities(X))
    assert labels.max() + 1 in counts
    assert adjusted_rand_score(data.target, labels) > (0.5 if load is load_iris else 0.8)


def test_kinds_like_those_of_penguins():
    """Four measures in which two kinds overlap, as do Adelie and Chinstrap, and a third does not."""
    rng = np.random.default_rng(0)
    means = [[38.8, 18.3, 190, 3700], [48.8, 18.4, 196, 3730], [47.5, 15.0, 217, 5080]]
    spreads = [[2.7, 1.2, 6.5, 460], [3.3, 1.1, 7.1, 380], [3.1, 1.0, 6.5, 500]]
    kind = np.repeat(range(3), [151, 68, 123])
    X = StandardScaler().fit_transform(np.array(means)[kind] + rng.normal(size=(342, 4)) * np.array(spreads)[kind])
    labels = find_clusters(affinities(X))
    assert labels.max() + 1 in (2, 3)
    assert adjusted_rand_score(kind == 2, labels == np.bincount(labels[kind == 2]).argmax()) > 0.9


def test_tied_and_repeated_rows_have_the_clusters_of_their_places(rng):
    """Three grids of integers, and three Gaussians of which each row occurs twice."""
    grid = np.array(np.meshgrid(range(8), range(8))).reshape(2, -1).T
    corners = np.array([[0, 0], [30, 0], [0, 30]])
    repeated = np.repeat(groups(rng, 3, 40, 12.0, 5), 2, axis=0)
    for X, size in ((np.vstack([grid + corner for corner in corners]), 64), (repeated, 80)):
        labels = find_clusters(affinities(X.astype(float)))
        assert adjusted_rand_score(np.repeat(range(3), size), labels) == 1


@pytest.mark.parametrize("n_copies", [2, 3, 6])
def test_rows_that_are_repeated_have_the_clusters_of_single_ones(rng, n_copies):
    settings = {"max_iter": 5, "random_state": 0}
    for X, expected in ((rng.normal(size=(600, 5)), 1), (groups(rng, 3, 150, 6.0, 5), 3)):
        order = rng.permutation(n_copies * len(X))
        model = LaptSNE(**settings).fit(np.repeat(X, n_copies, axis=0)[order])
        assert model.n_clusters_ == len(model.clusters_) == expected
        labels = model.labels_[np.argsort(order)].reshape(len(X), n_copies)
        assert (labels == labels[:, :1]).all()
        assert adjusted_rand_score(LaptSNE(**settings).fit(X).labels_, labels[:, 0]) > 0.95


def test_rows_repeated_at_random_are_no_clusters():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 5))[np.append(np.arange(5000), rng.integers(5000, size=5000))]
    P = joint_affinities(X, perplexity=30, refine=True)
    assert find_clusters(P, first=first_copies(X)).max() == 0


@pytest.mark.parametrize("form", [np.float64, np.float32, scipy.sparse.csr_matrix, np.asfortranarray])
def test_first_copies(rng, form):
    X = rng.integers(-2, 3, size=(3000, 4)) / 8.0
    X[::7] *= -1.0  # zeros have both signs
    _, first, number = np.unique(X + 0.0, axis=0, return_index=True, return_inverse=True)
    np.testing.assert_array_equal(first_copies(form(X)), first[number.ravel()])
    distinct = rng.normal(size=(2000, 3)).astype(np.float32)
    np.testing.assert_array_equal(first_copies(distinct), np.arange(2000))


@pytest.mark.parametrize("seed", range(4))
def test_narrow_borders_that_small_pieces_hide(seed):
    """The three cultivars of wine, whatever the order of the rows."""
    data = load_wine()
    order = np.random.default_rng(seed).permutation(len(data.data))
    X = StandardScaler().fit_transform(data.data)[order]
    labels = find_clusters(joint_affinities(X, perplexity=30, refine=True))
    assert labels.max() == 2
    assert adjusted_rand_score(data.target[order], labels) > 0.65


def test_graphs_in_several_components(rng):
    """Components are clusters if they are large enough, and belong to none otherwise."""
    sizes = [120, 60, 20, 4]
    blocks = [affinities(rng.normal(size=(size, 3))) for size in sizes]
    labels = find_clusters(scipy.sparse.block_diag(blocks, format="csr"))
    np.testing.assert_array_equal(labels, np.repeat([0, 1, 2, -1], sizes))


@pytest.mark.parametrize("form", [np.float32, np.asfortranarray, np.ndarray.tolist])
def test_the_form_of_the_data_does_not_matter(rng, form):
    X = groups(rng, 3, 60, 5.0, 4).astype(np.float32)
    settings = {"max_iter": 5, "random_state": 0}
    expected, model = (LaptSNE(**settings).fit(data) for data in (X.astype(np.float64), form(X.astype(np.float64))))
    assert model.n_clusters_ == 3
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_allclose(model.clusters_.chance, expected.clusters_.chance, rtol=1e-3)


@pytest.mark.parametrize("n", range(3, 21))
def test_a_few_points(n):
    """They are one cluster, or two if they are in two places and there are enough of them."""
    X = np.random.default_rng(n).normal(size=(n, 3))
    apart = X + 50 * (np.arange(n)[:, None] < n // 2)
    for data, expected in ((X, 1), (apart, 2 if n >= 16 else 1)):
        model = LaptSNE(max_iter=5, random_state=0).fit(data)
        assert model.n_clusters_ == model.labels_.max() + 1 == len(model.clusters_) == expected
        assert model.cluster_layers_.shape == (1, n)
    assert n < 16 or adjusted_rand_score(np.arange(n) < n // 2, model.labels_) == 1


def test_groups_apart_are_found_whatever_their_size(rng):
    X = np.vstack([groups(rng, 4, 400, 8.0), groups(rng, 2, 25, 8.0) + 12])
    labels = find_clusters(affinities(X))
    assert adjusted_rand_score(np.repeat(range(6), [400] * 4 + [25] * 2), labels) == 1
    assert (np.diff(np.bincount(labels)) <= 0).all()  # numbered by size


def test_many_small_clusters(rng):
    centres = rng.normal(scale=3.0, size=(120, 20))
    X = np.repeat(centres, 40, axis=0) + rng.normal(size=(4800, 20))
    assert abs(n_found(X) - 120) <= 6


@pytest.mark.parametrize("seed", [1, 3, 6])
def test_borders_that_are_not_evident_one_by_one_are_by_their_reciprocity(seed):
    """Thirty small Gaussians that nearly touch: merging leaves a few groups, which are divided further."""
    group, rng = np.repeat(np.arange(30), 30), np.random.default_rng(seed)
    P = affinities(rng.normal(size=(30, 20))[group] + rng.normal(size=(900, 20)))
    merged = bodies_of(nearest_graph(P, 20, Workers(1)), Workers(1)).merge()
    found = find_clusters(P)
    assert found.max() > by_size(merged).max()
    assert adjusted_rand_score(group, found) > adjusted_rand_score(group, merged) + 0.2


@pytest.mark.parametrize("seed", range(4))
def test_the_border_between_two_continua_is_no_evidence_within_them(seed):
    """Two long lines, side by side."""
    rng = np.random.default_rng(seed)
    length, side = 4 * rng.random(1000), rng.integers(0, 2, 1000)
    X = np.column_stack([length, 0.5 * side + rng.normal(scale=0.1, size=1000)])
    assert n_found(X) <= 2


def test_a_stray_point_between_clusters_does_not_join_them(rng):
    X = rng.normal(size=(160, 4))
    X[80:, 0] += 14
    X[0] = [7, 0, 0, 0]
    assert n_found(X) == 2


def test_small_groups_belong_to_no_cluster(rng):
    beyond = np.eye(1, 10) * 30 + 0.1 * rng.normal(size=(6, 10))  # their neighbours are among the first group
    labels = find_clusters(affinities(np.vstack([groups(rng, 2, 200, 12.0), beyond])))
    assert labels.max() == 1
    # With fewer points than the neighbours of each, the group may join a cluster but never is one.
    assert len(set(labels[-6:])) == 1
    np.testing.assert_array_equal(by_size(np.array([0] * 3 + [1] * 20)), [-1] * 3 + [0] * 20)


@pytest.mark.parametrize("n_clusters", [1, 2, 3, 7])
def test_as_many_clusters_as_requested(n_clusters):
    labels = given_clusters(affinities(load_iris().data), n_clusters)
    assert set(labels) == set(range(n_clusters))


@pytest.mark.parametrize(
    ("n_clusters", "counts"),
    [(1, [180]), (2, [120, 60]), (3, [120, 60, 5]), (4, [120, 30, 30, 5])],
)
def test_small_components_count_if_so_many_clusters_are_requested(rng, n_clusters, counts):
    sizes = [120, 60, 5]
    parts = [affinities(rng.normal(size=(size, 3))) for size in sizes]
    labels = given_clusters(scipy.sparse.block_diag(parts, format="csr"), n_clusters)
    found = np.sort(np.bincount(labels[labels >= 0]))[::-1]
    assert len(found) == n_clusters
    assert found.sum() == sum(counts)
    assert (labels[-5:] >= 0).all() == (n_clusters > 2)


def test_labels_do_not_depend_on_threads():
    X, _ = load_digits(return_X_y=True)
    P = affinities(X)
    with Workers(1) as one, Workers(2) as two:
        np.testing.assert_array_equal(find_clusters(P, workers=one), find_clusters(P, workers=two))


def test_clusters_of_a_model(rng, tmp_path):
    X = groups(rng, 3, 60, 14.0)
    model = LaptSNE(max_iter=50, random_state=0)
    labels = model.fit_predict(X)
    assert adjusted_rand_score(np.repeat(range(3), 60), labels) == 1
    model.save(tmp_path / "model.laptsne")
    loaded = LaptSNE.load(tmp_path / "model.laptsne")
    assert str(loaded.clusters_) == str(model.clusters_)
    np.testing.assert_array_equal(loaded.labels_, labels)


def test_fewer_clusters_than_requested(blobs):
    """120 points have not 40 communities."""
    with pytest.warns(UserWarning, match=r"n_clusters=40, but .* only \d+ communities"):
        model = LaptSNE(n_clusters=40, perplexity=10, max_iter=20, random_state=0).fit(blobs[0])
    assert model.n_clusters_ == model.labels_.max() + 1 == len(model.eigenvalues_) < 40


def test_clusters_of_an_unfitted_model():
    with pytest.raises(AttributeError, match="not fitted"):
        LaptSNE().clusters_  # noqa: B018


def test_reciprocity_after_merging_is_that_computed_anew(rng):
    P = joint_affinities(rng.normal(size=(600, 3)), perplexity=30)
    graph, labels = nearest_graph(P, 20, Workers(1)), rng.integers(0, 8, 600)
    graph.sort_indices()
    cut = Cut.of(graph, labels, Workers(1))
    number = np.array([0, 1, 1, 2, 0, 3, 4, 5])
    merged, active = number[labels], np.array([True, True, False, False, False, False])
    anew = Cut.of(graph, merged, Workers(1))
    after = Cut.of(graph, merged, Workers(1), cut, active)
    np.testing.assert_array_equal(after.inside, anew.inside)
    np.testing.assert_array_equal(after.border, anew.border)
    found = _reciprocity(cut, 8).updated(number, active, _reciprocity(after, 6))
    for part, expected in zip(found, _reciprocity(anew, 6), strict=True):
        np.testing.assert_array_equal(part, expected)


def test_public_names_are_found_where_they_are_documented():
    code = """
import sys
import laptsne.clusters
assert "numba" not in sys.modules
assert len({getattr(laptsne.clusters, name) for name in laptsne.clusters.__all__}) == 6
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    with pytest.raises(AttributeError, match="no attribute 'counted'"):
        clusters.counted  # noqa: B018
