"""The evidence for each cluster, how clusters are nested, and their shares in new points."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score, pairwise_distances

from laptsne import FittedMap, LandmarkLaptSNE, LaptSNE, LapUMAP
from laptsne._runtime.files import read_archive, write_archive
from laptsne._runtime.threads import Workers
from laptsne.clusters import ClusterTable, find_clusters
from laptsne.clusters.counting import by_size, given_clusters
from laptsne.clusters.linkage import linked
from laptsne.clusters.table import evidence, percent
from laptsne.graph.affinity import joint_affinities

FAST = {"max_iter": 20, "random_state": 0}


def affinities(X):
    return joint_affinities(X, perplexity=min(30.0, (len(X) - 1) / 3))


def pairs_of_pairs(rng, size=80, near=7.0, far=14.0):
    """Four Gaussians: two near each other, and two others near each other; the labels are in this order."""
    X = rng.normal(size=(4 * size, 4))
    group = np.repeat(range(4), size)
    X[:, 0] += near * (group % 2)
    X[:, 1] += far * (group // 2)
    return X, group


@pytest.fixture(scope="module")
def digits():
    P = affinities(load_digits().data)
    return P, find_clusters(P)


class TestTree:
    def test_near_clusters_are_joined_first(self, rng):
        X, group = pairs_of_pairs(rng)
        tree = evidence(group, affinities(X))[1]
        np.testing.assert_array_equal(tree.size, [80, 80, 80, 80, 160, 160, 320])
        assert tree.parent[6] == -1
        assert tree.parent[0] == tree.parent[1] != tree.parent[2] == tree.parent[3]
        assert set(tree.parent[4:6]) == {6}
        assert np.isnan(tree.chance[:4]).all()
        assert tree.chance[6] <= tree.chance[4:6].min()
        assert repr(tree) == "<ClusterTree of 4 clusters>"

    def test_nodes_are_unions_of_two_earlier_ones(self, digits):
        P, labels = digits
        tree = evidence(labels, P)[1]
        n = tree.n_clusters
        assert n == labels.max() + 1 >= 9
        assert len(tree.parent) == len(tree.size) == len(tree.chance) == 2 * n - 1
        np.testing.assert_array_equal(tree.size[:n], np.bincount(labels))
        for node in range(n, 2 * n - 1):
            parts = np.flatnonzero(tree.parent == node)
            assert len(parts) == 2
            assert (parts < node).all()
            assert tree.size[node] == tree.size[parts].sum()
        assert tree.size[-1] == len(labels)
        assert ((tree.chance[n:] >= 0) & (tree.chance[n:] <= 1)).all()

    def test_the_closest_pair_is_joined_first(self, digits):
        """The affinity of two clusters, relative to the product of their sums."""
        P, labels = digits
        W, n = P.toarray(), labels.max() + 1
        between = np.array([[W[np.ix_(labels == a, labels == b)].sum() for b in range(n)] for a in range(n)])
        score = between / np.outer(between.sum(axis=1), between.sum(axis=1))
        score[np.tril_indices(n)] = 0
        expected = np.unravel_index(score.argmax(), score.shape)
        np.testing.assert_array_equal(np.flatnonzero(linked(labels, P).parent == n), expected)

    def test_dense_and_sparse_affinities_have_the_same_tree(self, digits):
        P, labels = digits
        sparse, dense = linked(labels, P), linked(labels, P.toarray())
        np.testing.assert_array_equal(sparse.parent, dense.parent)
        np.testing.assert_array_equal(sparse.size, dense.size)

    def test_cuts_have_as_many_groups_as_requested_and_are_nested(self, digits):
        P, labels = digits
        tree, finer = linked(labels, P), None
        for k in range(tree.n_clusters, 0, -1):
            group = tree.cut(k)
            assert set(group) == set(range(k))
            sizes = np.bincount(group, tree.size[: tree.n_clusters])
            assert (np.diff(sizes) <= 0).all()  # numbered by size
            if finer is not None:
                assert len(set(zip(finer, group, strict=True))) == k + 1  # each finer group is in one
            finer = group
        np.testing.assert_array_equal(tree.cut(tree.n_clusters), np.arange(tree.n_clusters))
        np.testing.assert_array_equal(tree.cut(1000), np.arange(tree.n_clusters))

    def test_layers_are_nested_from_fine_to_coarse(self, digits):
        P, labels = digits
        labels = by_size(np.where(np.arange(len(labels)) < 9, -1, labels))
        layers = linked(labels, P).layers(labels)
        np.testing.assert_array_equal(layers[0], labels)
        assert (layers[:, :9] == -1).all()
        counts = layers.max(axis=1) + 1
        assert counts[-1] == 2
        assert (np.diff(counts) < 0).all()
        for fine, coarse in pairwise(layers):
            assert len(set(zip(fine, coarse, strict=True))) == len(set(fine))

    def test_points_of_no_cluster_do_not_count(self, rng):
        X, group = pairs_of_pairs(rng)
        tree = evidence(np.where(np.arange(320) % 10 == 0, -1, group), affinities(X))[1]
        np.testing.assert_array_equal(tree.size, [72, 72, 72, 72, 144, 144, 288])

    def test_one_cluster_is_a_tree_of_one_node(self, rng):
        labels = np.zeros(60, np.int64)
        tree = evidence(labels, affinities(rng.normal(size=(60, 3))))[1]
        assert (tree.parent.tolist(), tree.size.tolist()) == ([-1], [60])
        np.testing.assert_array_equal(tree.layers(labels), [labels])

    def test_a_given_number_of_clusters_is_a_cut_of_the_tree(self, digits):
        P, labels = digits
        tree = linked(labels, P)
        for k in (2, 5, tree.n_clusters):
            assert adjusted_rand_score(given_clusters(P, k), tree.cut(k)[labels]) == 1


class TestTable:
    def test_clusters_far_apart_are_clear(self, rng):
        X, _ = pairs_of_pairs(rng, near=14.0, far=20.0)
        P = affinities(X)
        table = evidence(find_clusters(P), P)[0]
        assert table.size.tolist() == [80] * 4
        assert table.verdict.tolist() == ["clear"] * 4
        assert (table.chance < 1e-3).all()

    def test_a_division_of_a_continuum_is_doubtful(self, rng):
        P = affinities(rng.normal(size=(1000, 5)))
        table = evidence(given_clusters(P, 4), P)[0]
        assert set(table.verdict) == {"doubtful"}
        assert (table.chance > 0.01).all()
        assert (table.nearest != table.cluster).all()

    def test_the_chance_falls_with_the_distance(self):
        labels, chances = np.repeat([0, 1], 200), []
        for distance in (0, 1, 2, 3, 4, 5, 6):
            X = np.random.default_rng(0).normal(size=(400, 5))
            X[200:, 0] += distance
            table = evidence(labels, affinities(X))[0]
            assert table.chance[0] == table.chance[1]
            chances.append(table.chance[0])
        assert chances[0] == 1
        below = np.array(chances)[np.array(chances) < 1]
        assert len(below) >= 3
        assert (np.diff(chances) <= 0).all()
        assert (np.diff(below) < 0).all()
        assert chances[-1] < 1e-6

    def test_the_chance_of_a_cluster_is_that_of_its_least_evident_border(self, rng):
        X, group = pairs_of_pairs(rng, near=4.5, far=8.0)
        P = affinities(X)
        table, tree = evidence(group, P)[0], evidence(group, P)[1]
        np.testing.assert_array_equal(table.nearest, [1, 0, 3, 2])
        np.testing.assert_array_equal(table.chance, np.repeat(tree.chance[tree.parent[[0, 2]]], 2))

    def test_without_clusters_nothing_is_claimed(self, rng):
        model = LaptSNE(**FAST).fit(rng.normal(size=(200, 5)))
        assert model.n_clusters_ == 1
        np.testing.assert_array_equal(model.labels_, 0)
        assert [tuple(row) for row in model.clusters_] == [(0, 200, -1, 1.0, "doubtful")]

    def test_threads_do_not_matter(self, digits):
        P, labels = digits
        with Workers(1) as one, Workers(2) as two:
            tables = [evidence(labels, P, workers)[0] for workers in (one, two)]
            trees = [evidence(labels, P, workers)[1] for workers in (one, two)]
        for first, second in (tables, trees):
            for name, column in vars(first).items():
                np.testing.assert_array_equal(column, getattr(second, name))

    @pytest.fixture
    def table(self):
        verdicts = np.array(["clear", "likely", "doubtful"], dtype=object)
        return ClusterTable(
            np.arange(3), np.array([9, 8, 8]), np.array([-1, 2, 1]), np.array([0, 0.004, 0.3]), verdicts
        )

    def test_rows(self, table):
        assert len(table) == 3
        assert table[1] == (1, 8, 2, 0.004, "likely")
        assert [row.verdict for row in table] == ["clear", "likely", "doubtful"]
        assert isinstance(table[0].size, int)
        with pytest.raises(IndexError):
            table[3]

    def test_as_a_frame(self, table):
        frame = table.to_frame()
        assert list(frame.columns) == ["cluster", "size", "nearest", "chance", "verdict"]
        assert frame.equals(table.to_pandas())
        assert frame["chance"].tolist() == [0, 0.004, 0.3]

    def test_as_text_and_as_html(self, table):
        head, *rows = [line.split(maxsplit=3) for line in repr(table).splitlines()]
        assert head == ["cluster", "size", "nearest", "chance  verdict"]
        assert rows[0][2] == "-"
        assert [row[3].rsplit("  ", 1) for row in rows] == [
            ["<0.1 %", "clear"],
            ["0.4 %", "likely"],
            ["30 %", "doubtful"],
        ]
        html = table._repr_html_()
        assert html.count("<tr>") == 4
        assert html.count("<th>") == html.count("</th>") == 5
        assert html.count("<td>") == html.count("</td>") == 15
        assert "<td>0.4 %</td><td>likely</td>" in html

    @pytest.mark.parametrize(
        ("chance", "text"), [(0, "<0.1 %"), (0.001, "0.1 %"), (0.0099, "1.0 %"), (0.02, "2 %"), (1, "100 %")]
    )
    def test_chances_as_text(self, chance, text):
        assert percent(chance) == text


@pytest.mark.parametrize("kind", [LaptSNE, LapUMAP, LandmarkLaptSNE])
class TestModels:
    @pytest.fixture
    def model(self, rng, kind):
        # Affinities of landmarks that are further apart are too small to be kept.
        X, self.group = pairs_of_pairs(rng, near=6.0 if kind is LandmarkLaptSNE else 9.0, far=18.0)
        self.X = X
        settings = {"n_landmarks": 200} if kind is LandmarkLaptSNE else {}
        return kind(**FAST, **settings).fit(X)

    def test_tree_and_layers(self, model):
        assert model.n_clusters_ == model.cluster_tree_.n_clusters == 4
        assert model.cluster_layers_.shape == (2, 320)
        np.testing.assert_array_equal(model.cluster_layers_[0], model.labels_)
        assert adjusted_rand_score(self.group // 2, model.cluster_layers_[1]) > 0.99

    def test_shares(self, model):
        shares = model.predict_proba(self.X)
        assert shares.shape == (320, 4)
        assert (shares >= 0).all()
        np.testing.assert_allclose(shares.sum(axis=1), 1)
        far = model.predict_proba(np.full((1, 4), 9.0) * [0.5, 0, 0, 0])  # between the first two
        first, second = model.labels_[[0, 80]]
        assert far[0, [first, second]].sum() > 0.9
        assert (shares.argmax(axis=1) == model.labels_).mean() > 0.99
        np.testing.assert_array_equal(model.fitted_map_.predict_proba(self.X[:5]), model.predict_proba(self.X[:5]))

    def test_rows_of_the_table_are_found_by_their_number(self, model):
        table = model.clusters_
        assert [table[i].cluster for i in (0, -1)] == [0, len(table) - 1]
        assert list(table) == [table[i] for i in range(len(table))]
        with pytest.raises(IndexError):
            table[len(table)]

    def test_points_of_no_cluster_have_no_share(self, model):
        shares = model.predict_proba(self.X[:80])
        labels = model.fitted_map_.labels.copy()
        first = model.labels_[0]
        labels[np.flatnonzero(labels == first)[::2]] = -1
        fewer = replace(model.fitted_map_, labels=labels).predict_proba(self.X[:80])
        assert fewer.shape == (80, 4)
        assert (fewer.sum(axis=1) < 0.9).any()
        assert (fewer <= shares + 1e-12).all()

    def test_files_keep_what_was_computed_and_compute_the_rest(self, model, tmp_path):
        model.save(tmp_path / "before")
        expected = str(model.clusters_), model.cluster_tree_
        model.save(tmp_path / "after")
        for name in ("before", "after"):
            loaded = LaptSNE.load(tmp_path / name)
            # Affinities of landmarks cannot be computed again, so that their evidence is always saved.
            is_saved = name == "after" or isinstance(model, LandmarkLaptSNE)
            assert ("cluster_tree_" in vars(loaded)) == is_saved
            assert str(loaded.clusters_) == expected[0]
            for part, column in vars(expected[1]).items():
                np.testing.assert_allclose(getattr(loaded.cluster_tree_, part), column, rtol=1e-9)
            if not isinstance(model, LandmarkLaptSNE):  # files of which lack the labels of all rows
                np.testing.assert_array_equal(loaded.cluster_layers_, model.cluster_layers_)
        np.testing.assert_array_equal(
            FittedMap.from_file(tmp_path / "before").predict_proba(self.X[:9]).argmax(axis=1),
            model.predict_proba(self.X[:9]).argmax(axis=1),
        )


@pytest.mark.parametrize("metric", ["precomputed", "affinities"])
def test_without_features(rng, metric, tmp_path):
    X, group = pairs_of_pairs(rng, near=9.0, far=18.0)
    given = pairwise_distances(X) if metric == "precomputed" else affinities(X)
    model = LaptSNE(metric=metric, **FAST).fit(given)
    assert adjusted_rand_score(group, model.labels_) > 0.99
    assert set(model.clusters_.verdict) == {"clear"}
    assert hasattr(model, "predict_proba") == (metric == "precomputed")
    if metric == "precomputed":
        assert model.predict_proba(given[:3]).shape == (3, 4)
    model.save(tmp_path / "model")
    loaded = LaptSNE.load(tmp_path / "model")  # from the tree in the file: there are no affinities
    assert str(loaded.clusters_) == str(model.clusters_)
    np.testing.assert_array_equal(loaded.cluster_layers_, model.cluster_layers_)


def test_evidence_of_earlier_versions_in_a_file_is_computed_anew(rng, tmp_path):
    X, _ = pairs_of_pairs(rng)
    model = LaptSNE(**FAST).fit(X)
    _ = model.clusters_
    model.save(tmp_path / "model")
    content, arrays = read_archive(tmp_path / "model")
    parts = content["fitted"]["dict"]["clusters_"]["parts"]
    parts["contrast"] = parts["contrast_error"] = parts["reciprocity"] = parts["stability"] = parts.pop("chance")
    write_archive(tmp_path / "model", content, arrays)
    loaded = LaptSNE.load(tmp_path / "model")
    assert "clusters_" not in vars(loaded)
    np.testing.assert_array_equal(loaded.clusters_.chance, model.clusters_.chance)
    write_archive(tmp_path / "model", content, {**arrays, "fitted.clusters_.size": arrays["labels"][:1]})
    assert str(LaptSNE.load(tmp_path / "model").clusters_) == str(model.clusters_)
