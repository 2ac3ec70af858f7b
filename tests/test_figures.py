"""Figures of :func:`laptsne.plotting.scatter` in pyplot, in subplots, in notebooks and in files."""

import textwrap

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex, to_rgba_array
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d import proj3d
from scipy.cluster import hierarchy
from sklearn.exceptions import NotFittedError

from laptsne import LandmarkLaptSNE, LaptSNE, plotting
from laptsne._runtime.colours import MISSING, MISSING_ON_DARK, PALETTE, category_colours, encode_labels
from laptsne.plotting import canvas
from laptsne.plotting.text_labels import find_islands
from laptsne.reliability import Reliability

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@pytest.fixture(autouse=True)
def _no_open_figures():
    plt.close("all")
    yield
    plt.close("all")


@pytest.fixture
def spots(rng):
    """Ten spots of 40 points, and their names."""
    centres = np.column_stack([np.arange(10) % 4, np.arange(10) // 4]) * 10.0
    codes = np.repeat(np.arange(10), 40)
    return centres[codes] + rng.normal(size=(400, 2)), np.array(DIGITS)[codes]


def drawn(ax):
    ax.figure.draw_without_rendering()
    return ax


@pytest.fixture(scope="module")
def layered():
    """A model of six clusters, two by two near each other."""
    rng = np.random.default_rng(0)
    centres = np.array([[0, 0], [0, 9], [40, 0], [40, 9], [90, 0], [90, 9]])
    X = np.concatenate([rng.normal(size=(60, 2)) + centre for centre in centres])
    return LaptSNE(max_iter=50, perplexity=15, n_clusters=6, random_state=0).fit(X)


def pixels(figure):
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(int)


class TestPyplot:
    def test_without_figures_a_new_one_is_current(self, spots, tmp_path):
        ax = plotting.scatter(*spots)
        assert plt.get_fignums() == [1]
        assert plt.gca() is ax
        plt.savefig(tmp_path / "map.png")
        assert (plt.imread(tmp_path / "map.png")[..., :3].min(axis=2) < 0.5).mean() > 0.01

    def test_it_draws_on_the_current_axes(self, spots):
        figure, axes = plt.subplots(1, 2)
        plt.sca(axes[0])
        assert plotting.scatter(*spots) is axes[0]
        assert not axes[1].collections
        assert plotting.eigenvalues([0, 0.5]) is axes[0]
        assert plt.get_fignums() == [figure.number]

    def test_a_size_makes_a_new_figure(self, spots):
        plt.figure()
        ax = plotting.scatter(*spots, figsize=(3, 2))
        assert len(plt.get_fignums()) == 2
        assert ax.figure.get_size_inches().tolist() == [3, 2]
        with pytest.raises(ValueError, match=r"figsize=\(3, 2\)"):
            plotting.scatter(*spots, figsize=(3, 2), ax=ax)

    def test_given_axes_need_no_pyplot(self, spots):
        ax = Figure().add_subplot()
        assert plotting.scatter(*spots, ax=ax) is ax
        assert not plt.get_fignums()
        with pytest.raises(TypeError, match=r"ax must be matplotlib Axes, got ndarray.*axes\[0\]"):
            plotting.scatter(*spots, ax=np.array([ax]))

    def test_several_maps_are_a_new_figure(self, spots):
        plt.figure()
        assert plotting.compare({"a": spots[0]}, spots[1]) is plt.gcf()
        assert plotting.trajectory([spots[0]]) is plt.gcf()
        assert len(plt.get_fignums()) == 3

    def test_dimensions_of_axes_are_checked(self, rng):
        plt.subplots()
        with pytest.raises(ValueError, match="Y has 3 components, but the axes have the projection 'rectilinear'"):
            plotting.scatter(rng.normal(size=(9, 3)))
        plt.close("all")
        flat = plt.subplots(subplot_kw={"projection": "3d"})[1]
        with pytest.raises(ValueError, match="Y has 2 components, but the axes have the projection '3d'"):
            plotting.scatter(rng.normal(size=(9, 2)), ax=flat)


class TestStyle:
    def test_size_and_opacity(self, spots):
        marks = plotting.scatter(*spots, s=7, alpha=0.3).collections[0]
        assert (marks.get_sizes().tolist(), marks.get_alpha()) == ([7], 0.3)

    def test_sizes_belong_to_their_points(self, spots):
        marks = plotting.scatter(*spots, s=np.arange(1, 401)).collections[0]
        for place, size in zip(marks.get_offsets(), marks.get_sizes(), strict=True):
            assert (spots[0][int(size) - 1] == place).all()
        for wrong in ([1, 2], 0, -1):
            with pytest.raises(ValueError, match="s="):
                plotting.scatter(*spots, s=wrong)

    @pytest.mark.parametrize(
        "palette",
        [["#111111", "#222222"], {"x": "#111111", "y": "#222222"}, {"y": "#222222", "x": "#111111", "z": "r"}],
    )
    def test_a_palette_colours_categories(self, rng, palette):
        marks = plotting.scatter(rng.normal(size=(40, 2)), ["x", "y"] * 20, palette=palette).collections[0]
        assert {to_hex(colour) for colour in marks.get_facecolors()} == {"#111111", "#222222"}

    def test_an_empty_palette_is_refused(self, rng):
        with pytest.raises(ValueError, match="palette has no colours"):
            plotting.scatter(rng.normal(size=(4, 2)), ["x", "y"] * 2, palette=[])

    def test_palettes_repeat_and_lack_labels(self, rng):
        Y, labels = rng.normal(size=(6, 2)), ["x", "y", "z"] * 2
        ax = plotting.scatter(Y, labels, palette=["#111111", "#222222"], legend="right")
        shown = [handle.get_color() for handle in ax.get_legend().legend_handles]
        assert [to_hex(colour) for colour in shown] == ["#111111", "#222222", "#111111"]
        marks = plotting.scatter(Y, labels, palette={"x": "k"}, figsize=(3, 3)).collections[0]
        assert sorted(to_hex(colour) for colour in marks.get_facecolors()) == ["#000000"] * 2 + [MISSING] * 4

    @pytest.mark.parametrize("settings", [{"palette": "tab10"}, {"cmap": "tab10"}, {"cmap": plt.get_cmap("tab10")}])
    def test_colour_maps_serve_as_palettes(self, rng, settings):
        marks = plotting.scatter(rng.normal(size=(40, 2)), ["x", "y"] * 20, **settings).collections[0]
        assert {to_hex(colour) for colour in marks.get_facecolors()} == {"#1f77b4", "#ff7f0e"}

    @pytest.mark.parametrize("settings", [{"cmap": "gray"}, {"palette": "gray"}])
    def test_numbers_have_a_colour_map(self, rng, settings):
        Y = rng.normal(size=(101, 2))
        marks = plotting.scatter(Y, np.linspace(0, 1, 101), **settings).collections[0]
        grey = {tuple(place): colour for place, colour in zip(marks.get_offsets(), marks.get_facecolors(), strict=True)}
        shades = np.array([grey[tuple(place)] for place in Y])
        assert np.ptp(shades[:, :3], axis=1).max() == 0
        assert (np.diff(shades[:, 0]) >= 0).all()
        assert np.ptp(shades[:, 0]) == 1

    def test_colours_that_do_not_exist_are_named(self, spots):
        with pytest.raises(ValueError, match="'nothing' is not a valid value for cmap"):
            plotting.scatter(*spots, palette="nothing")
        with pytest.raises(ValueError, match=r"'bleu'.* must be colours"):
            plotting.scatter(*spots, palette=["bleu"])
        with pytest.raises(ValueError, match=r"'perturbed'.* must be colours that matplotlib knows"):
            plotting.scatter(spots[0], "perturbed")
        with pytest.raises(ValueError, match="pass cmap"):
            plotting.scatter(spots[0], spots[0][:, 0], palette=["k"])

    def test_one_colour_for_all(self, spots):
        ax = plotting.scatter(spots[0], "tab:red")
        assert {to_hex(colour) for colour in ax.collections[0].get_facecolors()} == {"#d62728"}
        assert ax.get_legend() is None
        assert not ax.texts

    def test_times_have_a_bar_of_dates(self, rng, tmp_path):
        days = np.datetime64("2020-01-01") + np.arange(600)
        ax = plotting.scatter(rng.normal(size=(600, 2)), days)
        ax.figure.savefig(tmp_path / "times.png")
        bar = ax.figure.axes[1]
        assert {text.get_text() for text in bar.get_yticklabels()} >= {"2021", "Jul"}


class TestModel:
    @pytest.fixture
    def model(self, blobs):
        return LaptSNE(max_iter=50, n_clusters=3, random_state=0).fit(blobs[0])

    def test_its_clusters_are_the_default(self, model):
        model.labels_ = np.repeat([0, 1, -1], 40)
        ax = plotting.scatter(model, legend="right")
        for place, colour in zip(ax.collections[0].get_offsets(), ax.collections[0].get_facecolors(), strict=True):
            row = int(np.flatnonzero((model.embedding_ == place).all(axis=1))[0])
            assert to_hex(colour) == [PALETTE[0], PALETTE[1], MISSING][row // 40]
        assert [text.get_text() for text in ax.get_legend().texts] == ["0", "1", "no cluster"]

    def test_one_cluster_is_no_cluster(self, model):
        model.labels_ = np.zeros(120, int)
        ax = plotting.scatter(model)
        assert not ax.texts
        assert ax.get_legend() is None

    def test_one_cluster_beside_points_in_none_has_no_name(self, model):
        model.labels_ = np.repeat([0, -1], 60)
        for legend in ("auto", "on", "right"):
            ax = plotting.scatter(model, legend=legend, figsize=(4, 4))
            assert (ax.texts[:], ax.get_legend()) == ([], None)
        assert {to_hex(colour) for colour in ax.collections[0].get_facecolors()} == {PALETTE[0], MISSING}

    def test_clusters_have_the_numbers_of_their_table_on_the_map(self, model, rng):
        assert {text.get_text() for text in plotting.scatter(model).texts} == {
            str(row.cluster) for row in model.clusters_
        }
        model.labels_ = rng.permutation(np.repeat([0, 1, 2], 40))  # scattered labels of other kinds are in a legend
        ax = plotting.scatter(model, figsize=(4, 4))
        assert ax.get_legend() is None
        assert {text.get_text() for text in ax.texts} == {"0", "1", "2"}
        for text in ax.texts:
            assert (model.embedding_[model.labels_ == int(text.get_text())] == text.xy).all(axis=1).any()
        assert not plotting.scatter(model, legend=None, figsize=(4, 4)).texts

    def test_models_can_be_compared(self, model):
        figure = plotting.compare({"model": model, "array": model.embedding_})
        first, second = (np.asarray(ax.collections[0].get_offsets()) for ax in figure.axes)
        np.testing.assert_allclose(first, second, atol=1e-5 * np.abs(first).max())

    def test_labels_may_be_given(self, model, blobs):
        assert {text.get_text() for text in plotting.scatter(model, blobs[1] + 7, legend="on").texts} == {"7", "8", "9"}

    def test_a_fitted_map_is_drawn_and_explored_as_its_model(self, model, tmp_path):
        for legend in ("right", "on"):
            axes = [plotting.scatter(Y, legend=legend, figsize=(4, 4)) for Y in (model, model.fitted_map_)]
            first, second = (ax.collections[0] for ax in axes)
            np.testing.assert_array_equal(first.get_offsets(), second.get_offsets())
            np.testing.assert_array_equal(first.get_facecolors(), second.get_facecolors())
        files = [tmp_path / "model.html", tmp_path / "map.html"]
        for Y, file in zip((model, model.fitted_map_), files, strict=True):
            plotting.explorer(Y, file, clusters=model.clusters_, tree=model.cluster_tree_)
        assert files[0].read_bytes() == files[1].read_bytes()

    def test_an_unfitted_model(self):
        for kind in (LaptSNE, LandmarkLaptSNE):
            with pytest.raises(NotFittedError):
                plotting.scatter(kind())

    def test_landmarks_that_were_read_from_a_file(self, blobs, tmp_path):
        model = LandmarkLaptSNE(60, max_iter=50, n_clusters=3, random_state=0).fit(blobs[0])
        model.save(tmp_path / "model")
        read = LandmarkLaptSNE.load(tmp_path / "model")
        shown = plotting.scatter(read, legend="right")
        offsets = np.asarray(shown.collections[0].get_offsets())
        np.testing.assert_array_equal(np.sort(offsets, axis=0), np.sort(model.landmark_embedding_, axis=0))
        assert [text.get_text() for text in shown.get_legend().texts] == ["0", "1", "2"]
        with pytest.raises(ValueError, match=r"labels must have shape \(\d+,\).*got shape \(120,\)"):
            plotting.scatter(read, blobs[1])
        page = plotting.explorer(read, tmp_path / "map.html")
        assert f"{len(offsets)} points" in page.read_text()


class TestLayers:
    @staticmethod
    def groups(ax, model):
        """The points of each colour."""
        colour = {
            tuple(place): to_hex(colour)
            for place, colour in zip(ax.collections[0].get_offsets(), ax.collections[0].get_facecolors(), strict=True)
        }
        return np.array([PALETTE.index(colour[tuple(place)]) for place in model.embedding_])

    @pytest.mark.parametrize(("layer", "count"), [(0, 6), (1, 4), (2, 2), (-1, 2)])
    def test_a_layer_is_drawn_with_its_numbers(self, layered, layer, count):
        ax = plotting.scatter(layered, layer=layer)
        np.testing.assert_array_equal(self.groups(ax, layered), layered.cluster_layers_[layer])
        assert {text.get_text() for text in ax.texts} == set(map(str, range(count)))

    def test_the_finest_layer_is_the_default(self, layered):
        np.testing.assert_array_equal(self.groups(plotting.scatter(layered), layered), layered.labels_)

    @pytest.mark.parametrize("layer", [3, -2, 0.5, "all", None])
    def test_layers_that_are_not_there(self, layered, layer):
        with pytest.raises(ValueError, match=r"layer=.* must be from 0, the finest, to 2, or -1, the coarsest"):
            plotting.scatter(layered, layer=layer)

    def test_labels_have_no_layers(self, layered):
        with pytest.raises(ValueError, match=r"layer=1 is for the clusters of a model; omit it, or omit c"):
            plotting.scatter(layered, layered.labels_, layer=1)
        assert plotting.scatter(layered, layered.labels_, layer=0)

    def test_maps_without_a_tree_say_so(self, layered):
        for Y in (layered.embedding_, layered.fitted_map_):
            with pytest.raises(ValueError, match="layer=-1 needs a fitted model with cluster_tree_"):
                plotting.scatter(Y, layer=-1)
        np.testing.assert_array_equal(
            self.groups(plotting.scatter(layered.fitted_map_, layer=0), layered), layered.labels_
        )

    def test_models_from_files(self, layered, blobs, tmp_path):
        layered.save(tmp_path / "model")
        np.testing.assert_array_equal(
            self.groups(plotting.scatter(LaptSNE.load(tmp_path / "model"), layer=-1), layered),
            layered.cluster_layers_[-1],
        )
        # With landmarks, the file has no affinities, but the tree.
        sampled = LandmarkLaptSNE(90, max_iter=50, n_clusters=4, random_state=0).fit(blobs[0])
        sampled.save(tmp_path / "sampled")
        read = LandmarkLaptSNE.load(tmp_path / "sampled")
        ax = plotting.scatter(read, layer=-1, figsize=(4, 4))
        assert {text.get_text() for text in ax.texts} == {"0", "1"}
        del read.cluster_tree_
        with pytest.raises(ValueError, match="layer=-1 needs a fitted model with cluster_tree_"):
            plotting.scatter(read, layer=-1)

    def test_the_tree_is_a_linkage_of_scipy(self, layered):
        tree = layered.cluster_tree_
        Z = tree.to_linkage()
        assert hierarchy.is_valid_linkage(Z, throw=True)
        for count in range(1, 7):
            found = hierarchy.fcluster(Z, 6 - count, "distance")  # the distance of a union is its number from 1
            pairs = set(zip(found.tolist(), tree.cut(count).tolist(), strict=True))
            assert len(pairs) == len(set(found.tolist())) == count
        leaves = hierarchy.dendrogram(Z, no_plot=True)["leaves"]
        assert sorted(leaves) == list(range(6))

    def test_without_clusters_no_layer_has_names(self, rng):
        model = LaptSNE(max_iter=30, random_state=0).fit(rng.normal(size=(300, 5)))
        assert model.n_clusters_ == 1
        for layer in (0, -1):
            ax = plotting.scatter(model, layer=layer, figsize=(4, 4))
            assert (ax.texts[:], ax.get_legend()) == ([], None)


class TestIslands:
    def test_one_name_per_island(self, rng):
        Y = np.concatenate([rng.normal(size=(60, 2)) + centre for centre in ([0, 0], [30, 0], [0, 30], [30, 30])])
        ax = plotting.scatter(Y, ["twice"] * 120 + ["once"] * 60 + ["other"] * 60)
        found = [(text.get_text(), *np.round(np.array(text.xy) / 30)) for text in ax.texts]
        assert sorted(found) == [("once", 0, 1), ("other", 1, 1), ("twice", 0, 0), ("twice", 1, 0)]

    def test_names_are_at_points_of_their_label(self, spots):
        Y, names = spots
        for text in plotting.scatter(Y, names).texts:
            assert (Y[names == text.get_text()] == text.xy).all(axis=1).any()

    def test_dust_has_no_name(self, rng):
        Y = np.concatenate([rng.normal(size=(190, 2)), rng.uniform(20, 90, (10, 2))])
        islands = find_islands(Y, encode_labels(["a"] * 200, 200))
        assert [(island.name, island.size) for island in islands] == [("a", 190)]

    def test_one_point_of_few_is_none(self, rng):
        Y = np.concatenate([rng.normal(size=(7, 2)) * 0.1, [[9, 0]], [[18, 0]] * 20])
        islands = find_islands(Y, encode_labels(["a"] * 8 + ["b"] * 20, 28))
        assert [island.name for island in islands] == ["b", "a"]

    def test_an_eighth_is_one(self, rng):
        Y = np.concatenate([rng.normal(size=(70, 2)) * 0.1, rng.normal(size=(10, 2)) * 0.1 + 9])
        assert len(find_islands(Y, encode_labels(["a"] * 80, 80))) == 2

    def test_every_category_may_have_one(self, rng):
        pairs = np.column_stack([np.repeat(np.arange(20) * 60.0, 2) + [0, 0.01] * 20, np.full(40, 50)])
        Y = np.concatenate([rng.normal(size=(200, 2)), pairs])
        labels = encode_labels(["a"] * 200 + ["dust"] * 40, 240)
        assert {island.name for island in find_islands(Y, labels)} == {"a"}
        assert {island.name for island in find_islands(Y, labels, every=True)} == {"a", "dust"}

    @pytest.mark.parametrize("count", [1, 2, 10, 100, 30_000])
    def test_a_blob_is_one_island(self, rng, count):
        Y = np.concatenate([rng.normal(size=(count, 2)), [[300, 300]]])
        islands = find_islands(Y, encode_labels(["a"] * count + [None], count + 1))
        assert len(islands) == 1

    def test_sparse_labels_are_one_island(self, rng):
        islands = find_islands(rng.uniform(size=(12, 2)), encode_labels(["a"] * 12, 12))
        assert len(islands) == 1


class TestLegend:
    def test_choices(self, spots):
        on, right, none = (plotting.scatter(*spots, legend=where, figsize=(5, 5)) for where in ("on", "right", None))
        assert (len(on.texts), on.get_legend()) == (10, None)
        assert [text.get_text() for text in right.get_legend().texts] == sorted(DIGITS)
        assert (right.texts[:], none.texts[:], none.get_legend()) == ([], [], None)
        assert plotting.scatter(*spots, legend=True, figsize=(5, 5)).get_legend()
        assert not plotting.scatter(*spots, legend=False, figsize=(5, 5)).texts
        with pytest.raises(ValueError, match="legend='left' must be"):
            plotting.scatter(*spots, legend="left")
        assert len(plotting.scatter(spots[0], spots[0][:, 0], legend=None, figsize=(5, 5)).figure.axes) == 1

    def test_names_that_would_hide_each_other_are_in_a_legend(self, rng):
        names = [f"a long name of type {i % 8}" for i in range(400)]
        column = np.column_stack([np.zeros(8), np.arange(8)])[np.arange(400) % 8]
        apart = plotting.scatter(20 * column + rng.normal(size=(400, 2)), names, figsize=(5, 5))
        crowded = plotting.scatter(0.8 * column + rng.normal(size=(400, 2)) * [0.5, 0.2], names, figsize=(3, 1))
        assert (len(apart.texts), apart.get_legend() is None) == (8, True)
        assert (len(crowded.texts), crowded.get_legend() is None) == (0, False)

    def test_categories_without_points_are_not_listed(self, rng):
        pd = pytest.importorskip("pandas", reason="needs pandas")
        labels = pd.Categorical(["a", "c"] * 20, ["a", "b", "c"])
        ax = plotting.scatter(rng.normal(size=(40, 2)), labels, legend="right")
        assert [text.get_text() for text in ax.get_legend().texts] == ["a", "c"]
        assert [to_hex(handle.get_color()) for handle in ax.get_legend().legend_handles] == [PALETTE[0], PALETTE[2]]

    def test_a_new_figure_grows_by_its_legend(self, spots):
        without = plotting.scatter(*spots, legend="on")
        size = drawn(without).get_window_extent().size
        plt.close("all")
        beside = drawn(plotting.scatter(*spots, legend="right"))
        assert beside.get_window_extent().size == pytest.approx(size, rel=0.05)

    @pytest.mark.parametrize("layout", [None, "tight", "constrained", "tight_layout()"])
    @pytest.mark.parametrize("where", ["on", "right"])
    def test_subplots(self, spots, layout, where):
        engine = layout if layout in ("tight", "constrained") else None
        figure, axes = plt.subplots(2, 2, figsize=(9, 7), layout=engine)
        for ax in axes.flat:
            plotting.scatter(*spots, ax=ax, legend=where, title="map")
        if layout == "tight_layout()":
            figure.tight_layout()
        figure.draw_without_rendering()
        panels = [ax.get_window_extent() for ax in axes.flat]
        assert np.ptp([panel.size for panel in panels], axis=0).max() < 1
        assert min(panel.width for panel in panels) > 0.25 * figure.bbox.width
        legends = [ax.get_legend().get_window_extent() for ax in axes.flat] if where == "right" else []
        for legend in legends:
            assert figure.bbox.padded(1).contains(*legend.min)
            assert figure.bbox.padded(1).contains(*legend.max)
            assert not any(legend.overlaps(panel.padded(-1)) for panel in panels)

    def test_shared_axes(self, spots):
        figure, axes = plt.subplots(1, 2, sharex=True, sharey=True)
        for ax in axes:
            plotting.scatter(*spots, ax=ax)
        figure.draw_without_rendering()

    def test_dollars_are_text(self, rng, tmp_path):
        ax = plotting.scatter(rng.normal(size=(9, 2)), ["$a_", "$^", "$"] * 3, legend="right")
        ax.figure.savefig(tmp_path / "map.png")


class TestFiles:
    def test_vector_files_have_one_path_per_point(self, spots, tmp_path):
        for rasterized, vector in ((None, True), (False, True), (True, False)):
            plotting.scatter(*spots, rasterized=rasterized, figsize=(4, 4)).figure.savefig(tmp_path / "map.svg")
            text = (tmp_path / "map.svg").read_text()
            assert ("<image" not in text) == vector
            assert (text.count("<use") >= 400) == vector

    @pytest.mark.parametrize("suffix", ["svg", "pdf"])
    def test_rasterized_files_are_small(self, rng, tmp_path, suffix):
        path = tmp_path / f"map.{suffix}"
        plotting.scatter(rng.normal(size=(50_000, 2)), np.arange(50_000) % 10, rasterized=True).figure.savefig(path)
        assert path.stat().st_size < 700_000


@pytest.fixture
def shaded(monkeypatch):
    """More than 100 points are shaded."""
    monkeypatch.setattr(canvas, "MAX_MARKERS", 100)


def density(Y, colour="tab:red"):
    """The image of a map in one colour, and the position of its pixel of a point."""
    image = plotting.scatter(Y, colour, figsize=(4, 4)).images[0]
    left, right, bottom, top = image.get_extent()
    rgba = np.asarray(image.get_array())
    height, width = rgba.shape[:2]
    return rgba, lambda x, y: (int((y - bottom) / (top - bottom) * height), int((x - left) / (right - left) * width))


class TestDensity:
    def test_many_points_are_shaded(self, rng, shaded):
        Y = rng.normal(size=(101, 2))
        assert plotting.scatter(Y[:100]).collections
        ax = plotting.scatter(Y, figsize=(4, 4))
        assert not ax.collections
        assert len(ax.images) == 1
        assert plotting.scatter(Y, s=3, figsize=(4, 4)).collections

    def test_points_are_where_markers_would_be(self, rng, monkeypatch):
        Y = np.concatenate([rng.normal(size=(400, 2)), rng.normal(size=(400, 2)) + np.array([9, 3])])
        labels = ["a"] * 400 + ["b"] * 400
        figures = []
        for most in (10_000, 100):
            monkeypatch.setattr(canvas, "MAX_MARKERS", most)
            ax = plt.figure(figsize=(6, 4)).add_axes((0.3, 0.05, 0.65, 0.9))
            figures.append(255 - pixels(plotting.scatter(Y, labels, legend=None, ax=ax).figure))
        sums = [image.sum(axis=2) for image in figures]
        rows, columns = np.indices(sums[0].shape)
        for grid in (rows, columns):
            centres = [np.average(grid, weights=ink) for ink in sums]
            assert centres[0] == pytest.approx(centres[1], abs=1.5)
        half = round(0.625 * sums[0].shape[1])  # the middle of the axes
        for part in (np.s_[:, :half], np.s_[:, half:]):
            tones = [image[part].reshape(-1, 3).sum(axis=0) / image[part].sum() for image in figures]
            np.testing.assert_allclose(tones[0], tones[1], atol=0.03)

    def test_lone_points_are_seen_and_crowds_are_darker(self, shaded):
        rgba, place = density(np.concatenate([[[0, 0]], np.repeat([[3, 2]], 500, axis=0)]))
        lone, crowd, empty = rgba[place(0, 0)], rgba[place(3, 2)], rgba[place(0, 2)]
        assert crowd[3] > 0.94 > lone[3] > 0.3
        assert to_hex(lone[:3]) == "#d62728"
        assert not empty.any()

    @pytest.mark.parametrize("Y", [np.zeros((200, 2)), np.column_stack([np.arange(200), np.zeros(200)])])
    def test_degenerate_maps(self, Y, shaded):
        drawn(plotting.scatter(Y))

    def test_unlabelled_points_are_below(self, rng, shaded):
        ax = plotting.scatter(rng.normal(size=(500, 2)), [None, "a"] * 250)
        tones = [np.asarray(image.get_array()).reshape(-1, 4) for image in ax.images]
        assert [to_hex(tone[tone[:, 3].argmax(), :3]) for tone in tones] == [MISSING, PALETTE[0]]
        assert ax.images[0].get_extent() == ax.images[1].get_extent()


class TestDimensions:
    @pytest.mark.parametrize("shape", [(300,), (300, 1)])
    def test_one_dimension_is_a_stacked_histogram(self, rng, shape):
        y = np.concatenate([rng.normal(size=200), rng.normal(size=100) + 20])
        ax = plotting.scatter(y.reshape(shape), ["left"] * 200 + ["right"] * 100)
        areas = {}
        for patch in ax.patches:
            x, counts = patch.get_path().vertices.T
            areas[to_hex(patch.get_facecolor())] = abs(np.sum(x * np.roll(counts, 1) - np.roll(x, 1) * counts)) / 2
        assert areas[PALETTE[0]] == pytest.approx(2 * areas[PALETTE[1]])
        assert areas[PALETTE[1]] == pytest.approx(np.ptp(y))  # 100 points in bins of a hundredth of the range
        assert [text.get_text() for text in ax.get_legend().texts] == ["left", "right"]

    def test_one_dimension_with_numbers(self, rng):
        ax = plotting.scatter(rng.normal(size=(300, 1)), np.arange(300))
        assert len(ax.patches) > 100
        assert len(ax.figure.axes) == 2

    @pytest.mark.parametrize("y", [np.empty((0, 1)), np.zeros((1, 1)), np.zeros((5, 1))])
    def test_degenerate_strips(self, y):
        drawn(plotting.scatter(y, ["a"] * len(y)))

    @pytest.mark.parametrize(("where", "named"), [("auto", True), ("right", True), ("on", True), (None, False)])
    def test_three_dimensions(self, rng, where, named, tmp_path):
        Y, labels = rng.normal(size=(90, 3)), ["a", "b", "c"] * 30
        ax = plotting.scatter(Y, labels, legend=where)
        assert ax.name == "3d"
        ax.figure.savefig(tmp_path / "map.png")
        assert not ax.texts
        assert bool(ax.get_legend()) == named
        places = np.column_stack(ax.collections[0]._offsets3d)
        np.testing.assert_array_equal(np.sort(places, axis=0), np.sort(Y, axis=0))


NOTEBOOK = [
    "%matplotlib inline\nimport numpy as np, matplotlib.pyplot as plt\nfrom laptsne import plotting\n"
    "Y = np.random.default_rng(0).normal(size=(40, 2))",
    "plotting.scatter(Y)",
    "plotting.scatter(Y);",
    "ax = plotting.scatter(Y)",
    "plotting.compare({'a': Y})",
    "figure = plotting.compare({'a': Y})",
    "figure",
    "plotting.scatter(Y)\nplt.title('map')\nplt.show()",
    "plotting.compare({'a': Y}).savefig('map.png')",
]


def test_notebooks_show_each_figure_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    nbformat = pytest.importorskip("nbformat", reason="needs nbformat")
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient")
    cells = [nbformat.v4.new_code_cell(textwrap.dedent(code)) for code in NOTEBOOK]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    images = [sum("image/png" in output.get("data", {}) for output in cell.outputs) for cell in notebook.cells]
    assert images == [0, 1, 1, 1, 1, 1, 1, 1, 1]


DARK = ["dark_background", {"axes.facecolor": "#1b1b1b", "figure.facecolor": "#1b1b1b"}]


def lightness(colours):
    """The weighted mean of the channels, from 0 to 1."""
    return to_rgba_array(colours)[:, :3] @ [0.2126, 0.7152, 0.0722]


class TestDarkStyles:
    """Everything that is drawn can be seen on a dark background."""

    @pytest.fixture(autouse=True, params=DARK, ids=["style", "colours"])
    def _style(self, request):
        with plt.style.context(request.param):
            yield

    @pytest.mark.parametrize("labels", [np.arange(360) % 12, np.linspace(0, 1, 360)])
    def test_points_and_legend_are_light(self, rng, labels):
        ax = plotting.scatter(rng.normal(size=(360, 2)), labels, legend="right")
        assert lightness(ax.collections[0].get_facecolors()).min() > 0.2
        if ax.get_legend() is not None:
            assert lightness([h.get_color() for h in ax.get_legend().legend_handles]).min() > 0.2

    def test_missing_labels_stay_behind_the_others(self, rng):
        ax = plotting.scatter(rng.normal(size=(60, 2)), ["a", "b", None] * 20)
        assert to_hex(ax.collections[0].get_facecolors()[0]) == MISSING_ON_DARK

    def test_given_colours_are_kept(self, rng):
        ax = plotting.scatter(rng.normal(size=(60, 2)), ["a"] * 60, palette=["#552288"])
        assert {to_hex(colour) for colour in ax.collections[0].get_facecolors()} == {"#552288"}

    def test_titles_and_text_are_light(self, rng):
        Y = rng.normal(size=(30, 2))
        figure = plotting.compare({"one": Y, "other": Y}, np.arange(30) % 3)
        assert {ax.title.get_color() for ax in figure.axes} == {plt.rcParams["text.color"]}
        text = plotting.eigenvalues([0, 0.01, 0.5], ax=Figure().add_subplot()).texts[0]
        assert text.get_color() == plt.rcParams["text.color"]
        assert lightness(figure.axes[0].collections[0].get_facecolors()).min() > 0.2

    def test_panes_are_dark(self, rng):
        ax = plotting.scatter(rng.normal(size=(30, 3)))
        assert max(axis.pane.get_facecolor()[0] for axis in (ax.xaxis, ax.yaxis, ax.zaxis)) < 0.3


def test_colours_for_dark_backgrounds_are_lighter_and_distinct():
    ones = np.ones(len(PALETTE), int)
    dark, light = (to_rgba_array(category_colours(ones, dark=is_dark))[:, :3] for is_dark in (False, True))
    assert lightness(light).min() > 0.2
    assert (lightness(light) >= lightness(dark) - 0.01).all()
    assert (np.argmax(light, axis=1) == np.argmax(dark, axis=1)).mean() > 0.9
    assert len(set(category_colours(ones, dark=True))) == len(PALETTE)


def test_a_map_in_three_dimensions_has_one_scale_and_is_not_cut(rng):
    ax = plotting.scatter(rng.normal(size=(300, 3)) * [1, 1, 0.3], figsize=(5.5, 5.5))
    ax.figure.canvas.draw()
    limits = np.array([ax.get_xlim3d(), ax.get_ylim3d(), ax.get_zlim3d()])
    ratio = np.ptp(limits, axis=1) / ax.get_box_aspect()
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)
    corners = np.stack(np.meshgrid(*limits), axis=-1).reshape(-1, 3)
    x, y, _ = proj3d.proj_transform(*corners.T, ax.get_proj())
    shown = ax.transData.transform(np.column_stack([x, y]))
    assert all(ax.bbox.contains(*corner) for corner in shown)


def test_colour_bars_have_the_names_of_their_numbers(rng):
    Y, ages = rng.normal(size=(50, 2)), pd.Series(np.linspace(0, 1, 50), name="age in $")
    assert plotting.scatter(Y, ages).figure.axes[1].get_ylabel() == "age in $"
    plt.close("all")
    assert plotting.compare({"one": Y}, ages).axes[1].get_ylabel() == "age in $"
    plt.close("all")
    assert plotting.scatter(Y, ages.to_numpy()).figure.axes[1].get_ylabel() == ""


def test_scores_of_reliability_have_a_logarithmic_scale(rng):
    scores = np.append(rng.lognormal(sigma=2, size=399), 0.0)
    ax = plotting.scatter(rng.normal(size=(400, 2)), Reliability(scores))
    bar = ax.figure.axes[1]
    assert (bar.get_yscale(), bar.get_ylabel()) == ("log", "perturbation")
    assert len(np.unique(ax.collections[0].get_facecolors().round(1), axis=0)) > 10
    with pytest.raises(ValueError, match="c has no scores: they were lost"):
        plotting.scatter(rng.normal(size=(400, 2)), Reliability(None, reason="they were lost"))


def test_eigenvalues_of_a_model(blobs):
    model = LaptSNE(max_iter=20, random_state=0)
    with pytest.raises(NotFittedError):
        plotting.eigenvalues(model)
    found, expected = (plotting.eigenvalues(v, figsize=(4, 3)) for v in (model.fit(blobs[0]), model.data_eigenvalues_))
    np.testing.assert_array_equal(found.lines[0].get_ydata(), expected.lines[0].get_ydata())
