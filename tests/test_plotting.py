import pickle
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from browser import chromium, opened
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Bbox

from laptsne import LaptSNE, plotting
from laptsne._runtime.colours import (
    MISSING,
    N_COLOUR_BLIND_SAFE,
    PALETTE,
    Categories,
    Scale,
    category_colours,
    encode_labels,
    is_missing,
    natural_sort_key,
)
from laptsne.contraction import ContractionPath
from laptsne.explorer.payload import encode_columns
from laptsne.plotting.canvas import make_colouring
from laptsne.plotting.text_labels import place_boxes

# Colour vision deficiencies as matrices on linear RGB, by Machado, Oliveira and Fernandes (2009) at full severity.
VISIONS = {
    "normal": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
LMS = [
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
]
LAB = [
    [0.2104542553, 0.7936177850, -0.0040720468],
    [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
]


@pytest.fixture(autouse=True)
def _no_open_figures():
    plt.close("all")
    yield
    plt.close("all")


def fresh(Y, c=None, **settings):
    """Draw on axes of a new figure of pyplot."""
    plt.close("all")
    return plotting.scatter(Y, c, **settings)


def seen(palette, vision):
    """Colours in OKLab, as perceived with normal or deficient colour vision."""
    rgb = np.array([to_rgba(colour)[:3] for colour in palette])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return np.cbrt(np.clip(linear @ np.transpose(VISIONS[vision]), 0, 1) @ np.transpose(LMS)) @ np.transpose(LAB)


def nearest_pair(palette, vision="normal"):
    lab = seen(palette, vision)
    return np.linalg.norm(lab[:, None] - lab, axis=2)[np.triu_indices(len(lab), 1)].min()


def shades(n_categories):
    """The palette of version 0.1.0: its twelve colours, then mixed with white or black."""
    levels = ((0, 0.0), (255, 0.45), (0, 0.4), (255, 0.7), (0, 0.65))
    found = []
    for i in range(n_categories):
        colour, (level, share) = PALETTE[i % 12], levels[i // 12]
        channels = [int(colour[k : k + 2], 16) for k in (1, 3, 5)]
        found.append("#" + "".join(f"{round(channel + (level - channel) * share):02x}" for channel in channels))
    return found


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize(("count", "least"), [(4, 0.16), (6, 0.149), (8, 0.115), (10, 0.095), (12, 0.083)])
def test_first_colours_are_distinct_with_any_colour_vision(vision, count, least):
    assert nearest_pair(PALETTE[:count], vision) >= least
    assert nearest_pair([*PALETTE[:N_COLOUR_BLIND_SAFE], MISSING], vision) >= 0.06


@pytest.mark.parametrize(("count", "least"), [(30, 0.115), (40, 0.1), (60, 0.085)])
def test_many_colours_are_distinct_and_more_so_than_shades(count, least):
    assert nearest_pair(PALETTE[:count]) >= least
    assert nearest_pair([*PALETTE[:count], MISSING, "#ffffff"]) >= 0.085
    assert nearest_pair(PALETTE[:count]) > 2 * nearest_pair(shades(count))


def test_colours_are_visible_on_white_and_on_dark():
    lightness = seen(PALETTE, "normal")[:, 0]
    assert lightness.max() < 0.87
    assert lightness[N_COLOUR_BLIND_SAFE:].min() >= 0.38
    assert seen(["#ffffff"], "normal")[0, 0] == pytest.approx(1, abs=1e-3)  # checks the conversion itself


def test_sixty_labels_have_sixty_colours():
    ones = np.ones(61, int)
    assert len(PALETTE) == len(set(category_colours(ones[:60]))) == 60
    assert category_colours(ones) == [*PALETTE, PALETTE[0]]


def test_of_very_many_labels_only_the_frequent_ones_have_colours():
    counts = np.arange(300)
    found = category_colours(counts)
    assert found[-36:] == list(PALETTE[35::-1])
    assert set(found[:-36]) == {MISSING}


def test_the_palette_is_that_of_the_search():
    script = runpy.run_path(str(Path(__file__).parent.parent / "benchmarks" / "palette.py"))
    assert tuple(script["glasbey"](PALETTE[:N_COLOUR_BLIND_SAFE], script["N_COLOURS"])) == PALETTE


@pytest.mark.parametrize("value", [None, np.nan, np.float32("nan"), np.datetime64("NaT"), pd.NaT, pd.NA])
def test_missing_values_are_recognised(value):
    assert is_missing(value)


@pytest.mark.parametrize("value", ["", "nan", 0, False, np.inf, np.array([1, 2])])
def test_other_values_are_not_missing(value):
    assert not is_missing(value)


def test_names_are_in_natural_sort_order():
    ordered = ["-1.5", "007", "10", "1e2", "A9", "a10", "a10b", "B", "nan", "z" + "1" * 5000, "z" + "2" * 5000]
    rotated = ordered[5:] + ordered[:5]
    assert sorted(rotated, key=natural_sort_key) == ordered


def test_labels_may_be_long_runs_of_digits():
    labels = ["1" * 5000, "x" + "2" * 5000]  # int() refuses more than 4,300 digits
    assert encode_labels(labels, 2).names == tuple(labels)


@pytest.mark.parametrize(
    ("labels", "names", "codes"),
    [
        (["b", None, "a"], ("a", "b"), [1, -1, 0]),
        ([True, None, False], ("False", "True"), [1, -1, 0]),
        (["s10", "s9", "1e2"], ("1e2", "s9", "s10"), [2, 1, 0]),
        ([None, None, None], (), [-1, -1, -1]),
        (pd.Series(["x", pd.NA, "y"], dtype="string"), ("x", "y"), [0, -1, 1]),
        (
            pd.Series(["low", "high", None]).astype(pd.CategoricalDtype(["low", "mid", "high"])),
            ("low", "mid", "high"),
            [0, 2, -1],
        ),
        (pl.Series(["low", "high", None], dtype=pl.Enum(["low", "mid", "high"])), ("low", "mid", "high"), [0, 2, -1]),
    ],
)
def test_labels_are_read_as_categories(labels, names, codes):
    found = encode_labels(labels, 3)
    assert isinstance(found, Categories)
    assert found.names == names
    assert found.codes.tolist() == codes


@pytest.mark.parametrize(
    ("labels", "names", "codes"),
    [
        ([10, 9, 10, 9], ("9", "10"), [1, 0, 1, 0]),
        ([2.0, np.nan, 0.0, np.nan], ("0", "2"), [1, -1, 0, -1]),
        (pd.Series([7, None, 3, 7], dtype="Int64"), ("3", "7"), [1, -1, 0, 1]),
        (pl.Series([1, None, 2, 2]), ("1", "2"), [0, -1, 1, 1]),
        ([True, True, True, True], ("False", "True"), [1, 1, 1, 1]),
        ([2**60, 2**60 + 1, 2**60 + 2, 5], ("5", str(2**60), str(2**60 + 1), str(2**60 + 2)), [1, 2, 3, 0]),
    ],
)
def test_few_integers_and_identifiers_are_categories(labels, names, codes):
    found = encode_labels(labels, 4)
    assert isinstance(found, Categories)
    assert found.names == names
    assert found.codes.tolist() == codes


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (np.arange(200) % 100, Categories),
        (np.arange(202) % 101, Scale),
        (np.arange(200.0) % 100, Categories),
        (np.arange(60), Scale),
        ([0.5, 1, 0.5, 1], Scale),
        ([1, 2, 1, 2, np.inf], Scale),
        ([1e300, 2e300, 1e300, 2e300], Scale),
        ([*np.linspace(0, 1, 30), None], Scale),
        ([str(i) for i in range(200)], Categories),
        (np.array(["2020-01-01", "NaT", "2021-01-01"], "M8[D]"), Scale),
        (pd.Series(pd.date_range("2020-01-01", periods=3, tz="Europe/Paris")), Scale),
    ],
)
def test_numbers_and_times_are_a_scale(labels, kind):
    assert isinstance(encode_labels(labels, len(labels)), kind)


def columns(rng):
    """Columns of 400 values of every kind that figures and the explorer colour."""
    n = 400
    kinds = pd.Categorical.from_codes(rng.choice([0, 2], n), ["low", "mid", "high"])
    return {
        "text": rng.choice(["b", "a10", "a9"], n),
        "text with gaps": np.where(rng.random(n) < 0.2, None, "x"),
        "category": pd.Series(kinds),
        "boolean": np.ones(n, bool),
        "few integers": rng.integers(0, 9, n),
        "integers as floats": np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 9, n)),
        "hundred integers": np.arange(n) % 100,
        "many integers": np.arange(n) % 101,
        "identifiers": 2**60 + np.arange(n),
        "two fractions": rng.choice([0.5, 1.5], n),
        "fractions": np.where(rng.random(n) < 0.1, np.nan, rng.lognormal(size=n)),
        "infinite": np.where(rng.random(n) < 0.1, np.inf, rng.normal(size=n)),
        "constant": np.full(n, 2.5),
        "times": np.datetime64("2020-01-01") + rng.integers(0, 999, n),
        "many names": [f"name {i % 300}" for i in range(n)],
        "large floats": rng.choice([1e300, 2e300], n),
        "nothing": np.full(n, np.nan),
        "enum": pl.Series(rng.choice(["low", "high"], n), dtype=pl.Enum(["low", "mid", "high"])),
    }


def test_figures_and_the_explorer_encode_the_same_column_alike(rng):
    given = columns(rng)
    for name, column in encode_columns(given, 400).items():
        found = encode_labels(given[name], 400)
        assert isinstance(found, Categories) == (column.header["kind"] == "category"), name
        if isinstance(found, Categories):
            assert found.names == column.header["names"]
            np.testing.assert_array_equal(np.where(found.missing, len(found.names), found.codes), column.values)
        else:
            np.testing.assert_allclose(found.values, column.values, rtol=1e-6)


@pytest.mark.slow
def test_figures_and_the_explorer_draw_the_same_column_in_the_same_colours(rng, tmp_path):
    given, rows = columns(rng), range(0, 400, 13)
    with chromium() as browser:
        for name, values in given.items():
            plotting.explorer(rng.normal(size=(400, 2)), tmp_path / "map.html", columns=given, color=name)
            colouring = make_colouring(encode_labels(values, 400))
            expected = 255 * colouring.rgba[:, :3]
            with opened(browser, tmp_path / "map.html", color_scheme="light") as page:
                for row in rows:
                    if not colouring.encoding.missing[row] and to_hex(expected[row] / 255) != MISSING:
                        np.testing.assert_allclose(page.read(f"explorer.colour({row})"), expected[row], atol=3)


def test_a_scale_can_be_requested_or_declined():
    assert isinstance(encode_labels([1, 2, 3], 3, continuous=True), Scale)
    assert isinstance(encode_labels(np.arange(300), 300, continuous=False), Categories)
    times = encode_labels(np.array(["2020-01-01", "NaT"], "M8[D]"), 2, continuous=False)
    assert (times.names, times.codes.tolist()) == (("2020-01-01",), [0, -1])
    with pytest.raises(ValueError, match="continuous=True requires numeric"):
        encode_labels(["a", "b"], 2, continuous=True)


def test_extremes_do_not_take_up_the_scale():
    values = np.append(np.linspace(0, 1, 999), 1e6)
    scale = encode_labels(values, 1000)
    assert 0.98 < scale.high < 1.01
    bar = plotting.scatter(np.zeros((1000, 2)), values).figure.axes[1]
    assert bar.get_ylim()[1] < 1.01


def test_scatter_draws_each_point_in_the_colour_of_its_label(rng):
    Y, labels = rng.normal(size=(200, 2)), np.arange(200) % 3
    points = fresh(Y, labels).collections[0]
    for place, colour in zip(points.get_offsets(), points.get_facecolors(), strict=True):
        label = labels[np.flatnonzero((place == Y).all(axis=1))[0]]
        assert to_hex(colour) == PALETTE[label]


def test_no_label_lies_above_the_others(rng):
    points = fresh(rng.normal(size=(400, 2)), np.arange(400) // 200).collections[0]
    last = [to_hex(colour) for colour in points.get_facecolors()[-100:]]
    assert 20 < last.count(PALETTE[0]) < 80


@pytest.mark.parametrize("labels", [["a", "b", None] * 20, [*np.linspace(0, 1, 40), *[np.nan] * 20]])
def test_points_without_label_are_grey_and_below_the_others(rng, labels):
    points = fresh(rng.normal(size=(60, 2)), labels).collections[0]
    grey = [to_hex(colour) == MISSING for colour in points.get_facecolors()]
    assert grey == [True] * 20 + [False] * 40


@pytest.mark.parametrize("frame", [pd.DataFrame, lambda Y: pl.DataFrame(Y, schema=["a", "b"])])
def test_scatter_takes_frames(rng, frame):
    Y = rng.normal(size=(20, 2))
    drawn = fresh(frame(Y)).collections[0].get_offsets()
    np.testing.assert_array_equal(np.sort(drawn, axis=0), np.sort(Y, axis=0))


def test_scatter_on_given_axes(rng):
    ax = Figure().add_subplot()
    assert plotting.scatter(rng.normal(size=(20, 2)), ax=ax, title="map") is ax
    assert ax.get_title() == "map"
    assert not ax.texts


@pytest.mark.parametrize("shape", [(20, 4), (20, 0), (20, 2, 2)])
def test_scatter_refuses_other_dimensions(rng, shape):
    with pytest.raises(ValueError, match=r"shape \(n_samples, 1 or 2 or 3\).*got " + re.escape(str(shape))):
        fresh(rng.normal(size=shape))


def test_scatter_refuses_what_does_not_fit(rng):
    Y = rng.normal(size=(20, 2))
    with pytest.raises(ValueError, match=r"labels must have shape \(20,\).*\(3,\)"):
        fresh(Y, [1, 2, 3])
    Y[7] = np.nan
    with pytest.raises(ValueError, match="Y is not finite in row 7"):
        fresh(Y)


@pytest.mark.parametrize("Y", [np.empty((0, 2)), np.zeros((1, 2)), np.zeros((5, 2)), [[0, 0], [1, 0], [2, 0]]])
def test_degenerate_maps_are_drawn(Y, tmp_path):
    ax = fresh(Y, ["a"] * len(Y))
    ax.figure.savefig(tmp_path / "map.png")
    assert [text.get_text() for text in ax.texts] == ["a"] * bool(len(Y))


def clusters(rng, centres, members=30, scale=0.1):
    labels = np.repeat(np.arange(len(centres)), members)
    return np.asarray(centres)[labels] + rng.normal(scale=scale, size=(labels.size, 2)), labels


def word_boxes(ax, dpi=150):
    ax.figure.set_dpi(dpi)
    ax.figure.draw_without_rendering()
    renderer = ax.figure._get_renderer()
    return [drawn_box(text, renderer, dpi) for text in ax.texts if text.get_visible()]


def drawn_box(text, renderer, dpi):
    """What a name covers, whose letters are drawn as outlines and then are wider than matplotlib measures."""
    lines, font = text.get_text().splitlines(), text.get_fontproperties()
    outline = max(text_to_path.get_text_width_height_descent(line, font, False)[0] for line in lines)
    box = text.get_window_extent(renderer)
    return Bbox.from_bounds(box.x0, box.y0, max(box.width, outline * dpi / 72), box.height)


def overlaps(boxes):
    return [(a, b) for i, a in enumerate(boxes) for b in boxes[:i] if a.shrunk(0.999, 0.999).overlaps(b)]


@pytest.mark.parametrize("dpi", [60, 150])
def test_names_do_not_overlap_and_stay_within(rng, dpi):
    Y, labels = clusters(rng, rng.normal(size=(60, 2)))
    ax = fresh(Y, [f"{label:x>20}" for label in labels], legend="on")
    boxes = word_boxes(ax, dpi)
    assert len(boxes) == 60
    assert not overlaps(boxes)
    assert all(ax.bbox.padded(1).contains(*corner) for box in boxes for corner in box.corners()[[0, 3]])


def test_names_are_placed_again_when_the_figure_changes(rng):
    Y, labels = clusters(rng, rng.normal(size=(12, 2)), scale=0.01)
    ax = fresh(Y, [f"cells of kind {label}" for label in labels], legend="on")
    word_boxes(ax)
    ax.figure.set_size_inches(4, 4)
    assert not overlaps(word_boxes(ax))


def test_names_of_small_clusters_are_omitted_if_all_would_cover_the_map(rng):
    Y, labels = clusters(rng, rng.normal(size=(150, 2)), members=5)
    Y, labels = np.concatenate([Y, Y[:1]]), np.append(labels, 0)  # the first is the largest
    ax = fresh(Y, [f"a very long name of cells of kind {label}" for label in labels], legend="on")
    for _ in range(2):  # also when it is drawn again
        boxes = word_boxes(ax)
        assert 30 < len(boxes) < 100
        assert not overlaps(boxes)
        assert sum(box.width * box.height for box in boxes) < 0.4 * ax.bbox.width * ax.bbox.height
    assert ax.texts[0].get_visible()


def test_a_name_is_at_the_centre_of_a_large_cluster_and_beside_a_small_one(rng):
    large, small = rng.normal(size=(300, 2)), rng.normal(size=(30, 2)) * 0.02 + [6, 0]
    ax = fresh(np.concatenate([large, small]), ["large"] * 300 + ["s"] * 30)
    boxes = dict(zip(("large", "s"), word_boxes(ax), strict=True))
    assert boxes["large"].contains(*ax.transData.transform(np.median(large, axis=0)))
    assert not boxes["s"].contains(*ax.transData.transform(np.median(small, axis=0)))
    assert not ax.collections[1].get_segments()


def test_a_line_leads_from_a_name_that_was_moved_far():
    Y = np.concatenate([np.zeros((120, 2)), [[-5, -5], [5, 5]]])
    ax = fresh(Y, ["one"] * 50 + ["two"] * 40 + ["three"] * 30 + [None] * 2, legend="on")
    boxes = word_boxes(ax)
    assert not overlaps(boxes)
    [(start, end)] = ax.collections[1].get_segments()
    np.testing.assert_allclose(start, ax.transData.transform((0, 0)))
    assert boxes[2].padded(4).contains(*end)
    assert ax.texts[2].get_text() == "three"


def test_long_names_are_truncated_and_omitted_without_space(rng):
    Y, labels = rng.normal(size=(40, 2)), ["one\nline " + "x" * 100] * 40
    ax = fresh(Y, labels)
    assert ax.texts[0].get_text().replace("\n", "") == "one line " + "x" * 19 + "…" + "x" * 19
    assert len(word_boxes(ax)) == 1
    assert not word_boxes(plotting.scatter(Y, labels, ax=Figure(figsize=(1, 1)).add_subplot()))


def test_thirty_long_names_stand_on_the_map_and_are_whole(rng):
    grid = np.argwhere(np.ones((5, 6))) * 10.0
    names = [f"Books and stationery in warehouse {i}" for i in range(29)] + [
        "Chinstrap penguin (Pygoscelis antarctica)"
    ]
    ax = fresh(np.repeat(grid, 20, axis=0) + rng.normal(size=(600, 2)), np.repeat(names, 20))
    assert ax.get_legend() is None
    assert {text.get_text().replace("\n", " ") for text in ax.texts} == set(names)
    assert len(word_boxes(ax)) == 30


def test_names_are_text_not_formulas(rng, tmp_path):
    ax = fresh(rng.normal(size=(9, 2)), [r"$\alpha$ & $"] * 9)
    ax.figure.savefig(tmp_path / "map.svg")
    assert ax.texts[0].get_text() == r"$\alpha$ & $"


def test_boxes_get_a_free_position_near_to_the_nearest(rng):
    room = np.array([[0, 0], [30, 30]])
    anchors, sizes = rng.uniform(5, 15, (12, 2)), rng.uniform(2, 6, (12, 2))
    centres = place_boxes(anchors, sizes, room)
    grid = np.stack(np.meshgrid(*[np.arange(0, 30, 0.1)] * 2), axis=-1).reshape(-1, 2)
    for i in range(12):
        reach = (sizes[:i] + sizes[i]) / 2
        assert not np.all(np.abs(centres[i] - centres[:i]) < reach - 1e-6, axis=1).any()
        free = ~np.all(np.abs(grid[:, None] - centres[:i]) < reach, axis=2).any(axis=1)
        free &= np.all((grid >= sizes[i] / 2) & (grid <= 30 - sizes[i] / 2), axis=1)
        best = np.linalg.norm(grid[free] - anchors[i], axis=1).min()
        assert np.linalg.norm(centres[i] - anchors[i]) <= best + 0.3


def test_boxes_that_do_not_fit_are_not_placed():
    assert np.isnan(place_boxes(np.zeros((3, 2)), np.full((3, 2), 6.0), np.array([[0, 0], [14, 7]]))[2]).all()
    room, size = np.array([[0, 0], [10, 10]]), np.full((1, 2), 2.0)
    everything = np.array([[[5.0, 5.0]], [[10.0, 10.0]]])  # is covered where there is nothing else
    np.testing.assert_array_equal(place_boxes(np.full((1, 2), 5.0), size, room, everything), [[5, 5]])


def test_scattered_labels_are_named_in_a_legend(rng):
    Y, labels = clusters(rng, [[0, 0], [9, 0], [0, 9]])
    together, scattered = fresh(Y, labels), fresh(Y, rng.permutation(labels))
    assert together.get_legend() is None
    assert [len(together.texts), len(scattered.texts)] == [3, 0]
    assert [text.get_text() for text in scattered.get_legend().texts] == ["0", "1", "2"]
    asked = fresh(Y, [None, *labels[1:]], legend="right")
    assert [text.get_text() for text in asked.get_legend().texts] == ["0", "1", "2", "no label"]


def test_points_shrink_and_fade_with_density(rng):
    marks = [fresh(rng.normal(size=(n, 2))).collections[0] for n in (100, 3000, 70_000)]
    sizes = [float(mark.get_sizes()[0]) for mark in marks]
    assert sizes[0] > 1.5 * sizes[1] > 6 * sizes[2] > 0
    assert marks[0].get_alpha() > marks[2].get_alpha() >= 0.35
    tight = fresh(np.concatenate([rng.normal(size=(3000, 2)) * 0.01, [[9, 9]]])).collections[0]
    assert tight.get_sizes()[0] < sizes[1]


def test_eigenvalues_marks_the_gap():
    ax = plotting.eigenvalues([0, 0.01, 0.02, 0.5, 0.6])
    assert ax.texts[0].get_text() == "3 clusters"
    assert ax.lines[-1].get_xdata()[0] == 3.5
    np.testing.assert_allclose(ax.patches[0].get_extents().transformed(ax.transData.inverted()).intervaly, [0.02, 0.5])
    for count, text in ((2, "2 clusters"), (1, "1 cluster"), (7, "7 clusters, beyond the values shown")):
        plt.close("all")
        assert plotting.eigenvalues([0, 0.1, 0.2], count).texts[0].get_text() == text


@pytest.mark.parametrize(("values", "count", "words"), [([], None, "values"), ([0, 1], 0, "n_clusters=0")])
def test_eigenvalues_refuses(values, count, words):
    with pytest.raises(ValueError, match=words):
        plotting.eigenvalues(values, count)


def test_a_recorder_keeps_maps_and_restarts_with_each_fit(blobs):
    recorder = plotting.Recorder(every=20)
    for _ in range(2):
        model = LaptSNE(max_iter=50, callbacks=recorder, random_state=0).fit(blobs[0])
        assert recorder.iterations == [0, 20, 40]
    assert [Y.shape for Y in recorder.maps] == [(120, 2)] * 3
    assert not np.array_equal(recorder.maps[2], model.embedding_)
    figure = plotting.trajectory(recorder, blobs[1])
    assert [ax.get_title() for ax in figure.axes] == ["start", "iteration 20", "iteration 40"]
    with pytest.raises(ValueError, match="every=0"):
        plotting.Recorder(0)


@pytest.mark.parametrize(
    ("count", "drawn"), [(1, [0]), (5, range(5)), (12, range(12)), (14, [0, 2, 4, 6, 8, 10, 12, 13]), (75, None)]
)
def test_trajectory_draws_up_to_twelve_maps(rng, count, drawn):
    titles = [str(i) for i in range(count)]
    axes = plotting.trajectory(rng.normal(size=(count, 8, 2)), titles=titles).axes
    found = [ax.get_title() for ax in axes]
    assert (found[0], found[-1]) == (titles[0], titles[-1])
    assert len(found) <= 12
    assert drawn is None or found == [str(i) for i in drawn]


def test_trajectory_of_a_path_marks_the_map_of_the_model(rng, tmp_path):
    strengths, rising = np.array([0, 0.01, 0.1]), np.array([1.0, 1.2, 2.0])
    maps = rng.normal(size=(3, 30, 2)).astype(np.float32)
    path = ContractionPath(strengths, maps, rising, 1 - rising / 10, rising, rising, np.zeros((3, 2)), chosen=1)
    figure = plotting.trajectory(path, np.arange(30) % 3)
    titles = ["contraction 0", "contraction 0.01 (the model's)", "contraction 0.1"]
    assert [ax.get_title() for ax in figure.axes] == titles
    figure.savefig(tmp_path / "path.png")
    plotting.trajectory(path, rising[np.arange(30) % 3] + rng.normal(size=30)).savefig(tmp_path / "scale.png")


def test_trajectory_refuses_what_does_not_fit(rng):
    with pytest.raises(ValueError, match="there are no maps"):
        plotting.trajectory(plotting.Recorder())
    with pytest.raises(ValueError, match=r"same shape \(n_samples, 2\), got {0: \(5, 2\), 1: \(4, 2\)}"):
        plotting.trajectory([np.zeros((5, 2)), np.zeros((4, 2))])
    with pytest.raises(ValueError, match=r"titles.*2.*1"):
        plotting.trajectory(np.zeros((2, 5, 2)), titles=["a"])
    with pytest.raises(ValueError, match=r"got {0: \(5, 3\), 1: \(5, 3\)}; fit with n_components=2"):
        plotting.trajectory(np.zeros((2, 5, 3)))


def turned(Y):
    c, s = np.cos(2), np.sin(2)
    return Y @ np.array([[c, s], [s, -c]]) + 5  # turned, reflected, moved


def sides(figure):
    return [np.asarray(ax.collections[0].get_offsets()) for ax in figure.axes]


def test_compare_aligns_maps(rng):
    Y = rng.normal(size=(40, 2)) * [3, 1]
    maps = {"here": Y, "there": turned(Y)}
    first, second = sides(plotting.compare(maps, np.arange(40) % 2))
    np.testing.assert_allclose(first - first.mean(axis=0), second - second.mean(axis=0), atol=1e-12)
    first, second = sides(plotting.compare(maps, align=False))
    assert sorted(second.tolist()) == sorted(maps["there"].tolist())


def test_alignment_keeps_distances(rng):
    Y, target = rng.normal(size=(2, 30, 2))
    shown = [sides(plotting.compare({"target": target, "Y": Y}, align=align))[1] for align in (False, True)]
    before, after = (np.linalg.norm(A[:, None] - A, axis=2) for A in shown)
    np.testing.assert_allclose(before, after, atol=1e-12)


def test_compare_has_one_legend_and_the_same_colours(rng, tmp_path):
    Y = rng.normal(size=(40, 2))
    figure = plotting.compare(dict.fromkeys("abcde", Y), ["x", "y", None, "z"] * 10)
    assert [ax.get_title() for ax in figure.axes] == list("abcde")
    assert [[text.get_text() for text in legend.texts] for legend in figure.legends] == [["x", "y", "z", "no label"]]
    colours = [ax.collections[0].get_facecolors() for ax in figure.axes]
    assert all(np.array_equal(colours[0], other) for other in colours)
    figure.savefig(tmp_path / "compare.png")
    heights = {round(ax.get_window_extent().y1) for ax in figure.axes[:4]}
    assert len(heights) == 1
    assert len(plotting.compare({"a": Y, "b": Y}, Y[:, 0]).axes) == 3  # two maps and a colour bar


def test_compare_refuses_what_does_not_fit(rng):
    with pytest.raises(ValueError, match=r"same shape.*'a': \(5, 2\), 'b': \(4, 2\)"):
        plotting.compare({"a": np.zeros((5, 2)), "b": np.zeros((4, 2))})
    with pytest.raises(ValueError, match=r"'b': \(5, 3\)"):
        plotting.compare({"a": np.zeros((5, 2)), "b": np.zeros((5, 3))})
    with pytest.raises(ValueError, match="there are no maps"):
        plotting.compare({})
    with pytest.raises(TypeError, match="mapping from titles to"):
        plotting.compare([np.zeros((5, 2))])


def test_figures_can_be_pickled(rng):
    ax = pickle.loads(pickle.dumps(plotting.scatter(rng.normal(size=(30, 2)), ["a", "b", "c"] * 10, legend="on")))
    assert len(word_boxes(ax)) == 3


def run_python(code):
    """Run code in a new process; return its output."""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_submodules_are_imported_on_first_use():
    assert run_python("import laptsne; print(laptsne.plotting.scatter.__name__)") == "scatter"
    listed = set(run_python("import laptsne; print(*dir(laptsne))").split())
    assert {"contraction", "explorer", "metrics", "plotting", "scanpy", "LaptSNE"} <= listed
    code = "import sys, laptsne; print([m for m in sys.modules if m.startswith(('laptsne.plot', 'laptsne.scanpy'))])"
    assert run_python(code) == "[]"


@pytest.mark.parametrize("module", ["laptsne", "laptsne.plotting"])
def test_matplotlib_is_imported_only_to_draw(module):
    assert run_python(f"import sys, {module}; print('matplotlib' in sys.modules)") == "False"


def test_without_matplotlib_the_error_names_the_extra():
    messages = run_python("""
import sys
sys.modules["matplotlib"] = None
from laptsne import plotting
for draw in (plotting.scatter, plotting.eigenvalues, plotting.trajectory, plotting.compare):
    try:
        draw([[0, 0], [1, 1]])
    except ImportError as error:
        print(error)
""")
    assert messages.splitlines() == ['plotting requires matplotlib; install it with pip install "laptsne[plot]".'] * 4
