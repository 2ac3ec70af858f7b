"""Cuts of the neighbour graph: the best balanced one through a group, and the contrast of the border of two groups."""

from itertools import combinations, pairwise

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from laptsne._runtime.threads import Workers
from laptsne.clusters import cuts
from laptsne.clusters.counting import bodies_of
from laptsne.clusters.cuts import Bodies, _balanced_cut_rows, mutually_nearest, quotient
from laptsne.clusters.reciprocity import nearest_graph
from laptsne.graph.affinity import joint_affinities
from laptsne.graph.communities import smallest_communities


def graph_of(edges, n):
    """A graph of n nodes with edges of weight 1."""
    first, second = np.array(edges, int).reshape(-1, 2).T
    half = scipy.sparse.csr_matrix((np.ones(len(first)), (first, second)), (n, n))
    return (half + half.T).tocsr()


def path(n):
    return graph_of([(i, i + 1) for i in range(n - 1)], n)


def cliques(sizes, n_joining):
    """Cliques, each joined with the next one by edges that have no node in common."""
    starts, edges = np.append(0, np.cumsum(sizes)), []
    for start, size in zip(starts, sizes, strict=False):
        edges += [(start + i, start + j) for i, j in combinations(range(size), 2)]
    for start, after in pairwise(starts[:-1]):
        edges += [(start + m, after + m) for m in range(n_joining)]
    return graph_of(edges, int(starts[-1]))


def balanced_cuts(graph, groups=None, size=None):
    """The weights of the best balanced cuts through groups of nodes, and the lesser volumes."""
    n = graph.shape[0]
    groups = np.zeros(n, np.int64) if groups is None else groups
    n_groups = int(groups.max()) + 1
    first = np.append(0, np.cumsum(np.bincount(groups)))
    numbers = (groups, np.arange(n_groups), np.argsort(groups, kind="stable"), first)
    space = (np.full(n, -1), np.empty(n, np.int64), np.empty(n))
    cut, volume = np.full((2, n_groups), np.nan)
    arrays = (graph.indptr, graph.indices, graph.data)
    _balanced_cut_rows(0, n_groups, arrays, numbers, np.ones(n) if size is None else size, space, cut, volume)
    return cut, volume


def least_balanced_cut(graph, balance=0.3):
    """The least weight of all cuts with a share of the nodes on either side, by trying all of them."""
    W, n = graph.toarray(), graph.shape[0]
    weights = []
    for bits in range(2 ** (n - 1)):
        side = (bits >> np.arange(n)) & 1 == 1
        if balance * n <= side.sum() <= (1 - balance) * n:
            weights.append(W[side][:, ~side].sum())
    return min(weights)


class TestBalancedCut:
    @pytest.mark.parametrize("n", [2, 3, 4, 5, 20, 101])
    def test_of_a_path_it_is_one_edge(self, n):
        cut, volume = balanced_cuts(path(n))
        assert cut == 1
        assert 0.3 * (n - 1) <= volume <= n - 1

    @pytest.mark.parametrize("order", ["as it is", "shuffled"])
    def test_of_a_ring_it_is_two_edges(self, order, rng):
        number = np.arange(40) if order == "as it is" else rng.permutation(40)
        ring = graph_of([(number[i], number[(i + 1) % 40]) for i in range(40)], 40)
        assert balanced_cuts(ring)[0] == 2

    @pytest.mark.parametrize("n_joining", [1, 2, 5])
    @pytest.mark.parametrize("sizes", [(12, 12), (12, 20)])
    def test_of_two_cliques_it_is_what_joins_them(self, sizes, n_joining):
        cut, volume = balanced_cuts(cliques(sizes, n_joining))
        assert cut == n_joining
        assert volume == 12 * 11 + n_joining

    def test_a_small_side_is_not_balanced(self):
        """A clique of 4 nodes at one of 28: the cut between them has less than three tenths on one side."""
        assert balanced_cuts(cliques((28, 4), 1))[0] > 10

    def test_the_weights_of_edges_count(self):
        graph = path(10)
        graph.data[:] = 3
        weak = graph.tolil()
        weak[5, 6] = weak[6, 5] = 0.5
        assert balanced_cuts(graph)[0] == 3
        assert balanced_cuts(weak.tocsr())[0] == 0.5

    def test_points_of_nodes_count(self):
        """A path of ten nodes: with half of the points in the first one, it is on one side, all others on the other."""
        weights = np.arange(2.0, 11.0)
        graph = graph_of([(i, i + 1) for i in range(9)], 10).tolil()
        for i, weight in enumerate(weights):
            graph[i, i + 1] = graph[i + 1, i] = weight
        assert balanced_cuts(graph.tocsr())[0] == weights[2]  # three nodes and seven
        assert balanced_cuts(graph.tocsr(), size=np.array([9.0] + [1] * 9))[0] == weights[0]

    def test_without_edges_or_in_parts_it_is_0(self):
        for graph in (graph_of([], 1), graph_of([], 3), cliques((8, 8), 0)):
            np.testing.assert_array_equal(balanced_cuts(graph), 0)

    def test_a_few_points_apart_do_not_matter(self):
        """With at least seven tenths of the points, the largest part is cut as if it were alone."""
        stray = scipy.sparse.block_diag([graph_of([], 3), cliques((12, 12), 2)], format="csr")
        assert balanced_cuts(stray)[0] == 2
        assert balanced_cuts(scipy.sparse.block_diag([cliques((12, 12), 2), graph_of([], 12)], format="csr"))[0] == 0

    def test_groups_are_cut_each_for_itself(self, rng):
        """Whatever the order of the nodes; edges to other groups do not count."""
        parts = [cliques((12, 12), 3), path(30), graph_of([], 1), cliques((9, 9), 0)]
        graph = scipy.sparse.block_diag(parts, format="csr")
        groups = np.repeat(np.arange(4), [24, 30, 1, 18])
        graph = (graph + graph_of([(0, 24), (1, 25), (54, 3), (60, 30)], groups.size)).tocsr()
        order = rng.permutation(groups.size)
        shuffled = graph[order][:, order].tocsr()
        shuffled.sort_indices()
        np.testing.assert_array_equal(balanced_cuts(shuffled, groups[order])[0], [3, 1, 0, 0])

    def test_against_all_cuts_of_small_graphs(self, rng):
        """It is never less than the best balanced cut, and the best one in most graphs that have a weak place."""
        is_best = []
        while len(is_best) < 40:
            side = np.arange(12) < rng.integers(4, 9)
            share = np.where(side[:, None] == side, 0.8, 0.15)
            graph = graph_of(np.argwhere(np.triu(rng.random((12, 12)) < share, 1)), 12)
            if connected_components(graph)[0] == 1:
                found, least = balanced_cuts(graph)[0], least_balanced_cut(graph)
                assert found >= least
                is_best.append(found == least)
        assert np.mean(is_best) > 0.9

    @pytest.mark.parametrize("distance", [0, 3, 5])
    def test_against_the_cuts_along_the_fiedler_vector(self, rng, distance):
        X = rng.normal(size=(300, 5))
        X[:150, 0] += distance
        graph = bodies(X).graph
        part = connected_components(graph)[1]
        nodes = np.flatnonzero(part == np.bincount(part).argmax())
        graph = graph[nodes][:, nodes]
        W, n = graph.toarray(), nodes.size
        root = np.sqrt(W.sum(axis=1))
        fiedler = np.linalg.eigh(np.eye(n) - W / np.outer(root, root))[1][:, 1] / root
        W = W[np.argsort(fiedler)][:, np.argsort(fiedler)]
        expected = min(W[:half, half:].sum() for half in range(int(0.3 * n) + 1, int(0.7 * n) + 1))
        assert balanced_cuts(graph)[0] == pytest.approx(expected, rel=0.25)

    def test_diagonal_entries_do_not_count(self):
        graph = path(12)
        np.testing.assert_array_equal(balanced_cuts((graph + 5 * scipy.sparse.eye(12)).tocsr()), balanced_cuts(graph))


def gaussians(rng, n_groups, size, distance, n_features=5):
    return np.repeat(distance * np.eye(n_groups, n_features), size, axis=0) + rng.normal(
        size=(n_groups * size, n_features)
    )


def bodies(X, workers=None):
    return bodies_of(nearest_graph(joint_affinities(X, perplexity=30), 20, Workers(1)), workers or Workers(1))


class TestBodies:
    def test_a_group_is_cut_alike_point_by_point_and_between_small_communities(self, rng, monkeypatch):
        """To within the coarseness of the communities, which are not divided by the cut."""
        X, labels = gaussians(rng, 2, 250, 20.0), np.repeat([0, 1], 250)
        found = []
        for most in (600, 10):
            monkeypatch.setattr(cuts, "_MAX_POINTS", most)
            body = bodies(X)
            body.group, body._is_new = labels[np.unique(body.smallest, return_index=True)[1]], np.ones(2, bool)
            body._cut, body._volume = np.zeros((2, 2))
            body._measure()
            found.append(body._cut)
        assert (found[0] > 100).all()
        assert (found[1] >= found[0]).all()
        assert (found[1] < 1.5 * found[0]).all()

    def test_the_contrast_falls_with_the_distance(self):
        labels, found = np.repeat([0, 1], 200), []
        for distance in (2, 3, 4, 5):
            first, second, contrast = (
                bodies(gaussians(np.random.default_rng(0), 2, 200, distance)).grouped(labels).borders()[:3]
            )
            assert (first.tolist(), second.tolist()) == ([0], [1])
            found.append(contrast[0])
        assert (np.diff(found) < 0).all()
        assert found[0] > 1 > found[-1]

    def test_the_contrasts_of_the_merged_groups_are_below_the_threshold(self, rng):
        body = bodies(gaussians(rng, 3, 150, 6.0))
        labels = body.merge()
        assert labels.max() == 2
        assert (body.borders()[2] < 1).all()
        np.testing.assert_array_equal(body.grouped(labels).borders()[2], body.borders()[2])

    def test_of_a_group_that_is_in_parts_no_border_is_evident(self):
        """Whatever the number of edges: the contrast is large but finite."""
        graph = cliques((40, 40, 40), 12)
        first, second, contrast = (
            Bodies(graph, np.arange(120), 20, Workers(1)).grouped(np.repeat([0, 1, 0], 40)).borders()[:3]
        )
        assert (first.tolist(), second.tolist()) == ([0], [1])
        assert 1e6 < contrast[0] < np.inf

    @pytest.mark.parametrize("n", [300, 1500])
    def test_threads_do_not_matter(self, rng, n):
        X = gaussians(rng, 3, n // 3, 5.0)
        with Workers(1) as one, Workers(2) as two:
            np.testing.assert_array_equal(bodies(X, one).merge(), bodies(X, two).merge())

    def test_groups_consist_of_communities_that_are_small_and_connected(self, rng):
        graph = nearest_graph(joint_affinities(rng.normal(size=(800, 3)), perplexity=30), 20, Workers(1))
        labels = smallest_communities(graph, 40)
        assert set(labels) == set(range(labels.max() + 1))
        sizes = np.bincount(labels)
        assert sizes.max() <= 40
        assert sizes.mean() > 5
        for label in range(labels.max() + 1):
            nodes = np.flatnonzero(labels == label)
            assert connected_components(graph[nodes][:, nodes])[0] == 1

    def test_a_clique_is_not_divided_further(self):
        assert smallest_communities(cliques((60,), 0), 40).max() == 0

    def test_merging_graphs_of_one_node_or_no_edges(self):
        for n in (1, 2, 7):
            body = Bodies(graph_of([], n), np.arange(n), 5, Workers(1))
            np.testing.assert_array_equal(body.merge(), np.arange(n))


def test_mutual_neighbours_alone_form_the_bodies(rng):
    graph = nearest_graph(joint_affinities(rng.normal(size=(300, 4)), perplexity=30), 20, Workers(1))
    mutual = bodies_of(graph, Workers(1)).graph
    np.testing.assert_array_equal(mutual.toarray(), graph.toarray() == 1)
    assert 0 < mutual.nnz < graph.nnz


def test_the_quotient_has_the_weights_between_and_within_groups(rng):
    W = rng.random((30, 30)) * (rng.random((30, 30)) < 0.3)
    W, labels = W + W.T, rng.integers(0, 4, 30)
    expected = [[W[np.ix_(labels == a, labels == b)].sum() for b in range(4)] for a in range(4)]
    np.testing.assert_allclose(quotient(scipy.sparse.csr_matrix(W), labels).toarray(), expected)


@pytest.mark.parametrize("most", [1, 3, None])
def test_groups_are_merged_with_their_nearest_one_if_they_are_its_nearest(rng, most):
    first = rng.integers(0, 29, 60)
    second = rng.integers(first + 1, 30)
    order = rng.permutation(60)[:50]
    expected, seen, left = np.arange(30), set(), most or 30
    for a, b in zip(first[order].tolist(), second[order].tolist(), strict=True):
        if not seen & {a, b} and left > 0:
            expected[b] = a
            left -= 1
        seen |= {a, b}
    assert 0 < (expected != np.arange(30)).sum() <= (most or 30)
    np.testing.assert_array_equal(mutually_nearest(order, first, second, 30, most), expected)
