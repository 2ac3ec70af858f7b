"""Clusters of the data: communities, separation, counting, and the evidence for each."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_digits, load_iris, make_swiss_roll
from sklearn.metrics import adjusted_rand_score

from laptsne import LaptSNE, clusters
from laptsne._runtime.threads import Workers
from laptsne.clusters import counting
from laptsne.clusters.counting import (
    NeighborGraph,
    _mutually_nearest,
    _reciprocity,
    by_size,
    find_clusters,
    given_clusters,
    nearest_graph,
)
from laptsne.clusters.table import cluster_table
from laptsne.graph.affinity import joint_affinities
from laptsne.graph.communities import Cut, communities, within_parts


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


@pytest.mark.parametrize("most", [1, 3, 30])
def test_groups_are_merged_with_their_nearest_one_if_they_are_its_nearest(rng, most):
    first = rng.integers(0, 29, 60)
    second = rng.integers(first + 1, 30)
    order = rng.permutation(60)[:50]
    expected, seen, left = np.arange(30), set(), most
    for a, b in zip(first[order].tolist(), second[order].tolist(), strict=True):
        if not seen & {a, b} and left > 0:
            expected[b] = a
            left -= 1
        seen |= {a, b}
    assert 0 < (expected != np.arange(30)).sum() <= most
    assert np.array_equal(_mutually_nearest(order, first, second, 30, most), expected)


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


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n", [300, 1500])
def test_data_without_clusters_are_one(seed, n):
    rng = np.random.default_rng(seed)
    line = rng.normal(scale=0.05, size=(n, 10))
    line[:, 0] += 4 * rng.random(n)
    for X in (rng.normal(size=(n, 5)), rng.normal(size=(n, 100)), rng.random((n, 8)), rng.standard_t(3, (n, 10)), line):
        assert n_found(X) == 1
    if n > 1000:
        assert n_found(make_swiss_roll(n, random_state=seed)[0]) == 1


def test_groups_apart_are_found_whatever_their_size(rng):
    X = np.vstack([groups(rng, 4, 400, 8.0), groups(rng, 2, 25, 8.0) + 12])
    labels = find_clusters(affinities(X))
    assert adjusted_rand_score(np.repeat(range(6), [400] * 4 + [25] * 2), labels) == 1
    assert (np.diff(np.bincount(labels)) <= 0).all()  # numbered by size


def test_many_small_clusters(rng):
    centres = rng.normal(scale=3.0, size=(120, 20))
    X = np.repeat(centres, 40, axis=0) + rng.normal(size=(4800, 20))
    assert abs(n_found(X) - 120) <= 6


def test_a_sample_that_is_small_for_its_many_clusters_has_evidence_in_all_borders_together(monkeypatch):
    rng = np.random.default_rng(2)
    group = np.repeat(np.arange(30), 30)
    X = 0.85 * rng.normal(size=(30, 20))[group] + rng.normal(size=(900, 20))
    P = affinities(X)
    found = find_clusters(P)
    assert adjusted_rand_score(found, group) > 0.3
    # No two of them are separate by the strict test, and a partition that changes with the sample is no evidence.
    monkeypatch.setattr(counting, "_MIN_STABILITY", 1.0)
    assert find_clusters(P).max() == 0


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


def test_labels_do_not_depend_on_threads():
    X, _ = load_digits(return_X_y=True)
    P = affinities(X)
    with Workers(1) as one, Workers(2) as two:
        np.testing.assert_array_equal(find_clusters(P, workers=one), find_clusters(P, workers=two))


def test_evidence_of_clear_clusters(rng):
    X = groups(rng, 3, 150, 14.0)
    P = affinities(X)
    table = cluster_table(find_clusters(P), P)
    assert [row.size for row in table] == [150] * 3
    assert [row.verdict for row in table] == ["clear"] * 3
    assert (table.stability == 1).all()
    assert (table.contrast > 0.9).all()
    assert len(str(table).splitlines()) == 4
    assert list(table.to_pandas().columns[:2]) == ["cluster", "size"]


def test_clusters_that_do_not_exist_are_doubtful(rng):
    """A Gaussian cut in four: the borders are no weaker than other cuts, and clusters of samples are one."""
    P = affinities(rng.normal(size=(1000, 5)))
    labels = given_clusters(P, 4)
    table = cluster_table(labels, P)
    assert set(table.verdict) == {"doubtful"}
    assert (table.contrast < 0.2).all()
    assert (table.nearest != table.cluster).all()


def test_evidence_without_clusters(rng):
    model = LaptSNE(max_iter=50, random_state=0).fit(rng.normal(size=(200, 5)))
    assert model.n_clusters_ == 1
    np.testing.assert_array_equal(model.labels_, 0)
    assert model.clusters_.verdict.tolist() == ["doubtful"]


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
assert len({getattr(laptsne.clusters, name) for name in laptsne.clusters.__all__}) == 5
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    with pytest.raises(AttributeError, match="no attribute 'counted'"):
        clusters.counted  # noqa: B018
