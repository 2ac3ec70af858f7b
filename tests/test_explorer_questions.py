"""The explorer answers questions: names, filters, comparisons, evidence, features, cards, maps to compare, links."""

import base64
import csv
import io
import re
from types import SimpleNamespace

import numpy as np
import pytest
from browser import opened
from firefox import firefox
from matplotlib.image import imread

from laptsne.clusters.linkage import ClusterTree
from laptsne.clusters.table import ClusterRow
from laptsne.explorer.payload import count_words, distinguishing_words, pack_features
from laptsne.plotting import explorer

PER_CLUSTER = 50
N = 4 * PER_CLUSTER
PIXEL = "data:image/gif;base64,R0lGODlhAQABAIAAAP8AAP///ywAAAAAAQABAAACAkQBADs="
WORDS = ("hockey goal team", "orbit moon rocket", "flour oven bread", "violin chord opera")


@pytest.fixture(scope="module")
def model():
    """What the explorer reads of a fitted model: three clusters, and points that belong to none."""
    rng = np.random.default_rng(0)
    centres = np.repeat([[0.0, 0.0], [12.0, 0.0], [12.0, 9.0], [0.0, 9.0]], PER_CLUSTER, axis=0)
    labels = np.repeat([0, 1, 2, -1], PER_CLUSTER)
    evidence = [(1, 1e-5, "clear"), (2, 0.004, "likely"), (-1, 0.0, "clear")]
    rows = [ClusterRow(k, PER_CLUSTER, *row) for k, row in enumerate(evidence)]
    reliability = SimpleNamespace(perturbation=rng.random(N))
    embedding = centres + rng.normal(size=(N, 2)).clip(-2, 2)
    return SimpleNamespace(embedding_=embedding, labels_=labels, clusters_=rows, reliability_=reliability)


@pytest.fixture
def nested():
    """Sixteen clusters in a square, of which two and two, four and four, and eight and eight form groups."""
    labels = np.repeat(np.arange(16), 25)
    noise = np.random.default_rng(0).normal(size=(400, 2))
    parent = [16 + k // 2 for k in range(28)] + [30, 30, -1]
    size = np.repeat([25, 50, 100, 200, 400], [16, 8, 4, 2, 1])
    tree = ClusterTree(np.array(parent), size, np.full(31, np.nan))
    rows = [ClusterRow(k, 25, k ^ 1, 1e-4, "clear") for k in range(16)]
    embedding = 10 * np.column_stack([labels % 4, labels // 4]) + noise
    return SimpleNamespace(embedding_=embedding, labels_=labels, clusters_=rows, cluster_tree_=tree)


@pytest.fixture(scope="module")
def features():
    rng = np.random.default_rng(1)
    X = rng.random((N, 30))
    X[PER_CLUSTER : 2 * PER_CLUSTER, 7] += 10  # a gene that marks the second cluster
    return X


@pytest.fixture(scope="module")
def file(model, features, tmp_path_factory):
    text = [f"{WORDS[i // PER_CLUSTER]} number {i}" for i in range(N)]
    columns = {
        "text": text,
        "height": np.arange(N) / 10,
        "flag": np.arange(N) < PER_CLUSTER,
        "link": [f"see https://example.org/{i} or javascript:alert({i})" for i in range(N)],
        "image": [PIXEL] * N,
    }
    names = [f"GENE{i}" for i in range(30)]
    out = tmp_path_factory.mktemp("explorer") / "map.html"
    return explorer(model, out, columns=columns, text="text", features=features, feature_names=names)


def lasso(page, row, reach=60, key=None):
    x, y = page.place(row)
    if key:
        page.page.keyboard.down(key)
    page.drag([(x - reach, y - reach), (x + reach, y - reach), (x + reach, y + reach), (x - reach, y + reach)])
    if key:
        page.page.keyboard.up(key)


def overlaps(names):
    boxes = [(name["left"], name["top"], name["left"] + name["width"], name["top"] + name["height"]) for name in names]
    pairs = [(a, b) for i, a in enumerate(boxes) for b in boxes[:i]]
    return [(a, b) for a, b in pairs if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]]


class TestNames:
    def test_clusters_are_named_by_their_words_where_they_are(self, page, model):
        page.page.get_by_label("Colour by", exact=True).select_option(label="cluster")
        page.settle()
        names = page.read("explorer.names")
        assert sorted(" ".join(name["lines"]) for name in names) == [
            "bread, flour, oven", "goal, hockey, team", "moon, orbit, rocket",
        ]  # fmt: skip
        assert page.page.locator("#names text").count() == 3
        middle = page.page.locator("#names text", has_text="hockey").bounding_box()
        cluster = np.array([page.place(row) for row in range(PER_CLUSTER)])
        assert cluster[:, 0].min() < middle["x"] + middle["width"] / 2 < cluster[:, 0].max()
        assert cluster[:, 1].min() < middle["y"] + middle["height"] / 2 < cluster[:, 1].max()

    def test_names_of_clusters_stay_when_points_have_other_colours(self, page):
        page.page.get_by_label("Colour by", exact=True).select_option(label="height")
        page.settle()
        assert len(page.read("explorer.names")) == 3
        page.page.get_by_label("names on the map").uncheck()
        page.settle()
        assert page.read("explorer.names") == []

    def test_names_do_not_overlap_and_shrink_when_zoomed_out(self, browser, tmp_path):
        rng = np.random.default_rng(0)
        labels = np.repeat(np.arange(40), 30)
        Y = rng.normal(size=(40, 2))[labels] + 0.05 * rng.normal(size=(1200, 2))
        out = explorer(Y, tmp_path / "map.html", columns={"kind": [f"a kind of thing {k}" for k in labels]})
        with opened(browser, out) as page:
            before = page.read("explorer.names")
            assert 15 < len(before) <= 40
            assert overlaps(before) == []
            for _ in range(4):
                page.page.locator("#nearer").click()
            page.settle()
            after = page.read("explorer.names")
            assert len(after) >= len(before)
            assert overlaps(after) == []
            assert max(name["size"] for name in after) > max(name["size"] for name in before)

    def test_a_small_island_is_not_hidden_by_its_name(self, browser, tmp_path):
        rng = np.random.default_rng(0)
        centres, spreads = np.array([[0, 0], [20, 0], [10, 10]]), np.array([[1.0], [1.0], [0.1]])
        which = np.repeat([0, 1, 2], [100, 100, 10])
        Y = centres[which] + spreads[which] * rng.normal(size=(210, 2))
        kinds = np.array(["left", "right", "a few between them"])[which]
        with opened(browser, explorer(Y, tmp_path / "map.html", columns={"kind": kinds})) as page:
            name = page.page.locator("#names text", has_text="few").bounding_box()
            places = np.array([page.place(row) for row in range(200, 210)])
            right, bottom = name["x"] + name["width"], name["y"] + name["height"]
            below = (places > [name["x"], name["y"]]) & (places < [right, bottom])
            assert not below.all(axis=1).any()

    def test_an_eighth_of_a_category_is_an_island_unless_it_is_a_point_or_two(self, browser, tmp_path):
        rng = np.random.default_rng(0)
        sizes, centres = [70, 10, 7, 1, 60], np.array([[0, 0], [20, 0], [20, 20], [0, 20], [10, 10]])
        which = np.repeat(np.arange(5), sizes)
        kinds = np.array(["many", "many", "few", "few", "other"])[which]
        Y = centres[which] + 0.3 * rng.normal(size=(148, 2))
        with opened(browser, explorer(Y, tmp_path / "map.html", columns={"kind": kinds})) as page:
            names = [" ".join(name["lines"]) for name in page.read("explorer.names")]
            assert sorted(names) == ["few", "many", "many", "other"]

    def test_each_island_is_named(self, browser, tmp_path):
        rng = np.random.default_rng(0)
        centres = [[0, 0], [20, 0], [20, 20], [0, 20]]
        Y = np.repeat(centres, [60, 40, 90, 10], axis=0) + rng.normal(size=(200, 2))
        kinds = np.repeat(["two islands", "one island"], 100)  # of the last, a tenth lies apart
        with opened(browser, explorer(Y, tmp_path / "map.html", columns={"kind": kinds})) as page:
            names = [" ".join(name["lines"]) for name in page.read("explorer.names")]
            assert names == ["one island", "two islands", "two islands"]
            boxes = page.page.locator("#names text")
            middles = [boxes.nth(i).bounding_box() for i in range(3)]
            places = np.array([page.place(row) for row in range(200)])
            for box, rows in zip(middles, (slice(100, 190), slice(60), slice(60, 100)), strict=True):
                middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
                assert (places[rows].min(0) < middle).all()
                assert (middle < places[rows].max(0)).all()

    def test_names_beside_a_mixture_have_lines_also_in_images(self, browser, tmp_path):
        rng = np.random.default_rng(0)
        labels = np.repeat(np.arange(20), 100)
        Y = np.concatenate([rng.normal(size=(1900, 2)), rng.normal([15, 0], 1, size=(100, 2))])
        out = explorer(Y, tmp_path / "map.html", columns={"kind": [f"mixed kind {k}" for k in labels]})
        with opened(browser, out) as page:
            kinds = page.read("[...document.querySelectorAll('#names > *')].map((part) => part.tagName)")
            assert 15 < kinds.count("text") <= 20
            assert 1 <= kinds.count("line") < 20  # the kind that lies apart needs none
            assert kinds == sorted(kinds)  # lines are below the names
            lines = page.read("[...document.querySelectorAll('#names line')].map((line) => line.getTotalLength())")
            assert min(lines) > 10
            corner = np.array([page.page.locator("#map").bounding_box()[side] for side in "xy"])
            points = np.array([page.place(row) for row in range(2000)]) - corner
            ends = page.read(
                "[...document.querySelectorAll('#names line')].map((line) => { const at = line.getCTM();"
                " return ['1', '2'].map((end) => [line[`x${end}`].baseVal.value + at.e,"
                " line[`y${end}`].baseVal.value + at.f]); })"
            )
            for start, end in np.array(ends):  # the line begins at the edge of the mixture and runs through no points
                way = start + np.linspace(0.3, 1, 40)[:, None] * (end - start)
                assert np.linalg.norm(points[:, None] - way, axis=2).min() > 3
            page.page.get_by_label("Save an image").click()
            with page.page.expect_download() as download:
                page.page.get_by_role("button", name="SVG").click()
            saved = re.findall(r"<line[^>]*>", download.value.path().read_text(encoding="utf-8"))
            assert len(saved) == len(lines)
            assert all("stroke-opacity" in line for line in saved)
            page.page.get_by_label("Save an image").click()
            with page.page.expect_download() as download:
                page.page.get_by_role("button", name="PNG").click()
            picture = imread(io.BytesIO(download.value.path().read_bytes()))[..., :3]
            line = page.read(
                "(() => { const at = document.querySelector('#names line').getBoundingClientRect();"
                " const box = document.getElementById('stage').getBoundingClientRect();"
                " return [at.left + at.width / 2 - box.left, at.top + at.height / 2 - box.top]; })()"
            )
            x, y = (int(2 * value) for value in line)
            assert picture[y - 6 : y + 7, x - 6 : x + 7].min() < 0.7

    def test_groups_of_clusters_are_named_where_the_map_shows_too_many(self, browser, tmp_path, nested):
        with opened(browser, explorer(nested, tmp_path / "map.html")) as page:

            def names():
                page.settle()
                found = page.read("explorer.names.map((name) => name.lines.join(' '))")
                assert overlaps(page.read("explorer.names")) == []
                return {frozenset(name.split(", ")) for name in found}

            fine = {frozenset([str(k)]) for k in range(16)}
            assert names() == fine
            page.page.locator("#farther").click()
            pairs = [frozenset([str(k), str(k + 1)]) for k in range(0, 16, 2)]
            assert names() == {*pairs[:6], *(frozenset([str(k)]) for k in range(12, 16))}
            page.page.locator("#farther").click()
            assert names() == {pairs[0] | pairs[1], pairs[2] | pairs[3], *pairs[4:]}
            page.page.locator("#legend button").nth(3).click()
            assert names() == {frozenset("3")}  # what is chosen in the legend keeps its name

    def test_groups_are_named_by_words_as_well(self, browser, tmp_path, nested):
        pairs, words = [[f"{name}{chr(97 + k)}" for k in range(16)] for name in ("pair", "kind")]
        text = [f"{pairs[k // 2]} {words[k]}" for k in nested.labels_]
        out = explorer(nested, tmp_path / "map.html", columns={"text": text}, text="text", color="cluster")
        with opened(browser, out) as page:
            joined = "explorer.names.map((name) => name.lines.join(' '))"
            assert all(name.startswith("kind") for name in page.read(joined))
            page.page.locator("#farther").click()
            page.settle()
            named = [name.split(",")[0] for name in page.read(joined)]
            assert sorted(named) == [*words[12:], *pairs[:6]]

    def test_a_model_without_clusters_names_none(self, browser, tmp_path, nested):
        one = SimpleNamespace(**{**vars(nested), "labels_": np.zeros(len(nested.labels_), int)})
        one.clusters_, one.cluster_tree_ = [ClusterRow(0, 400, -1, 1.0, "doubtful")], None
        out = explorer(one, tmp_path / "map.html", columns={"text": ["a word"] * 400}, text="text")
        with opened(browser, out) as page:
            assert page.read("explorer.names") == []
            assert page.page.locator("#evidence").is_hidden()
            assert "cluster" not in page.page.locator("#colour option").all_text_contents()

    def test_a_name_for_all_points_says_nothing(self, browser, tmp_path):
        Y = np.random.default_rng(0).normal(size=(100, 2))
        with opened(browser, explorer(Y, tmp_path / "map.html", labels=np.zeros(100, int))) as page:
            assert page.read("explorer.names") == []


class TestQuestions:
    def test_points_of_no_cluster_are_grey(self, page):
        page.page.get_by_label("Colour by", exact=True).select_option(label="cluster")
        entry = page.page.get_by_role("button", name=re.compile("no cluster"))
        assert "50" in entry.inner_text()
        assert page.read("explorer.colour(190)") == [150, 154, 160]
        assert len({tuple(page.read(f"explorer.colour({row})")) for row in (0, 60, 110, 190)}) == 4

    def test_evidence_is_listed_and_selects(self, page):
        panel = page.page.locator("#evidence")
        assert panel.locator("li").count() == 3
        text = panel.inner_text()
        assert re.findall("clear|likely|doubtful", text) == ["clear", "likely", "clear"]
        assert not re.search("chance|%|0\\.0", text)  # only on request
        verdicts = panel.locator(".verdict")
        titles = [verdicts.nth(k).get_attribute("title") for k in range(3)]
        assert titles[0].endswith("cluster and 1 in <0.1 % of cases")
        assert titles[1].endswith("cluster and 2 in 0.4 % of cases")
        assert titles[2] == "Apart from all other clusters"
        shares = panel.locator(".bar").evaluate_all(
            "(bars) => bars.map((bar) => bar.style.getPropertyValue('--share'))"
        )
        assert [float(share.removesuffix("%")) for share in shares] == pytest.approx([83.33, 39.97, 100], abs=0.01)
        assert panel.locator("button").nth(1).get_attribute("aria-label").endswith(", likely, 50 points")
        panel.locator("button").nth(1).click()
        assert page.read("explorer.selected") == list(range(PER_CLUSTER, 2 * PER_CLUSTER))
        panel.locator("button").nth(2).click(modifiers=["Shift"])
        assert page.read("explorer.selected") == list(range(PER_CLUSTER, 3 * PER_CLUSTER))

    def test_reliability_is_a_column(self, page, model):
        options = page.page.locator("#colour option").all_text_contents()
        assert options[-2:] == ["perturbation", "nothing"]

    def test_lasso_adds_with_shift_and_subtracts_with_alt(self, page):
        page.page.locator("#evidence button").nth(0).click()
        page.settle()
        lasso(page, 60, key="Shift")
        added = set(page.read("explorer.selected"))
        assert set(range(PER_CLUSTER)) < added
        assert len(added) > PER_CLUSTER + 10
        lasso(page, 60, key="Alt")
        assert page.read("explorer.selected") == list(range(PER_CLUSTER))

    def test_clusters_have_the_colours_of_the_map_or_none(self, page):
        page.page.get_by_label("Colour by", exact=True).select_option(label="height")
        assert page.page.locator("#evidence .swatch").count() == 0
        page.page.get_by_label("Colour by", exact=True).select_option(label="cluster")
        colours = page.page.locator("#evidence .swatch").evaluate_all(
            "(found) => found.map((it) => getComputedStyle(it).backgroundColor)"
        )
        rows = (0, 60, 110)
        assert colours == [f"rgb({', '.join(map(str, page.read(f'explorer.colour({row})')))})" for row in rows]

    def test_charts_show_the_selection_beside_all_and_filter(self, page):
        page.page.get_by_label("Colour by", exact=True).select_option(label="cluster")
        charts = page.page.locator("#charts details:visible")
        assert charts.locator("summary").all_text_contents() == ["height", "flag", "perturbation"]  # no texts
        charts.nth(1).locator("summary").click()
        page.page.locator("#evidence button").nth(1).click()  # rows 50 to 99
        bars = "[...document.querySelectorAll('#charts .histogram')[0].querySelectorAll('rect')]"
        heights = f"{bars}.map((bar) => Number(bar.getAttribute('height')) > 0)"
        assert np.flatnonzero(page.read(heights)).tolist() == list(range(11, 24))  # of 48
        page.page.get_by_role("button", name="flag True, 0 of 50 points, shown").wait_for()
        page.page.keyboard.press("Escape")
        page.page.get_by_role("button", name="flag True, 50 points, shown").click()
        assert page.read("explorer.lit") == list(range(50))
        assert sum(page.read(heights)) == 12  # charts show what the others leave
        page.page.get_by_role("button", name="flag False, 150 points, faded").wait_for()
        largest = page.page.locator("#charts").get_by_label("Largest height shown")
        largest.evaluate("(it) => { it.value = 100; it.dispatchEvent(new Event('input')); }")
        assert page.read("explorer.lit") == list(range(21))
        page.page.get_by_role("button", name="flag False, 0 of 150 points, faded").wait_for()
        page.page.get_by_role("button", name="Select these 21 points").click()
        page.page.get_by_label("Colour by", exact=True).select_option(label="flag")  # whose filter goes with its chart
        assert charts.locator("summary").all_text_contents() == ["height", "cluster", "perturbation"]
        page.page.keyboard.press("Escape")
        assert page.read("explorer.lit") is None

    @pytest.mark.parametrize("width", [1000, 760])
    def test_names_in_the_comparison_are_readable(self, browser, file, width):
        with opened(browser, file, width=width) as page:
            page.page.locator("#evidence button").nth(1).click()
            cells = page.page.locator("#comparison tbody th").evaluate_all(
                "(cells) => cells.map((it) => [it.clientWidth, it.scrollWidth])"
            )
            assert all(shown >= needed and shown > 100 for shown, needed in cells)
            table = page.page.locator("#comparison").evaluate("(it) => [it.clientWidth, it.scrollWidth]")
            assert table[0] >= table[1]

    def test_histogram_filters(self, page):
        page.page.get_by_label("Colour by", exact=True).select_option(label="height")
        assert page.page.locator("#legend rect").count() == 48
        smallest = page.page.get_by_label("Smallest height shown")
        smallest.evaluate("(it) => { it.value = 500; it.dispatchEvent(new Event('input')); }")
        lit = page.read("explorer.lit")
        assert lit == list(range(N // 2, N))
        assert "100 points ≥ 9.95" in page.page.locator("#legend .note").inner_text()
        page.page.get_by_role("button", name="Select these 100 points").click()
        assert page.read("explorer.selected.length") == 100
        page.page.keyboard.press("Escape")
        assert page.read("explorer.lit") is None

    def test_selection_against_the_rest(self, page, features):
        page.page.locator("#evidence button").nth(1).click()
        lines = [row.split("\t") for row in page.page.locator("#comparison tbody").inner_text().splitlines()]
        found = {
            name: (inside, outside, float(effect.replace("\N{MINUS SIGN}", "-")))
            for name, inside, outside, effect in lines
        }
        inside, rest = np.arange(50, 100) / 10, np.r_[np.arange(50), np.arange(100, N)] / 10
        pooled = np.sqrt((49 * inside.var(ddof=1) + 149 * rest.var(ddof=1)) / 198)
        assert found["height"][:2] == (f"{inside.mean():g}", f"{rest.mean():.4g}")
        assert found["height"][2] == pytest.approx((inside.mean() - rest.mean()) / pooled, abs=0.006)
        assert found["flag"][:2] == ("0.0 %", "33.3 %")
        assert found["flag"][2] == pytest.approx(-2 * np.arcsin(np.sqrt(1 / 3)), abs=0.006)
        assert found["cluster: moon, orbit, rocket"][:2] == ("100.0 %", "0.0 %")
        page.page.get_by_role("button", name="Compare all 30 features").click()
        page.wait("document.querySelector('#comparison tbody').innerText.includes('GENE7')")
        assert "GENE7" in page.page.locator("#comparison tbody tr").first.inner_text()

    def test_colour_by_a_feature(self, page):
        page.page.get_by_label("Colour by a feature").fill("gene7")
        page.wait("explorer.colouring == 'GENE7'")
        dark, light = (np.dot(page.read(f"explorer.colour({row})"), [0.2126, 0.7152, 0.0722]) for row in (0, 60))
        assert light > dark + 80

    def test_card_has_the_full_text_links_and_images(self, page):
        page.page.mouse.click(*page.place(120))
        page.wait("explorer.pinned >= 0")
        row = page.read("explorer.pinned")
        card = page.page.locator("#card")
        assert f"number {row}" in card.inner_text()
        links = card.locator("a")
        assert links.count() == 1
        assert links.get_attribute("href") == f"https://example.org/{row}"
        assert links.get_attribute("target") == "_blank"
        assert card.locator("img").get_attribute("src") == PIXEL
        assert card.locator("img").evaluate("(it) => it.decode().then(() => it.naturalWidth)") == 1
        card.get_by_role("button", name="Close").click()
        assert card.is_hidden()

    def test_size_and_opacity(self, page):
        before = page.pixels()
        page.page.locator("#appearance summary").click()
        page.page.locator("#point-size").fill("2")
        page.page.locator("#opacity").fill("0.1")
        page.settle()
        after = page.pixels()
        inked = [(np.abs(pixels - 255).sum(2) > 20).mean() for pixels in (before, after)]
        assert inked[1] > 2 * inked[0]
        assert np.abs(after - 255).sum(2).mean() < np.abs(before - 255).sum(2).mean() * 3

    def test_images_of_the_view(self, page):
        page.page.get_by_label("Save an image").click()
        with page.page.expect_download() as download:
            page.page.get_by_role("button", name="PNG").click()
        saved = imread(io.BytesIO(download.value.path().read_bytes()))
        stage = page.page.locator("#stage").bounding_box()
        assert saved.shape[:2] == (2 * round(stage["height"]), 2 * round(stage["width"]))
        x, y = page.read("explorer.screen(60)")
        near = saved[int(2 * y) - 4 : int(2 * y) + 5, int(2 * x) - 4 : int(2 * x) + 5, :3].reshape(-1, 3) * 255
        assert np.abs(near - page.read("explorer.colour(60)")).sum(1).min() < 90
        page.page.get_by_label("Save an image").click()
        with page.page.expect_download() as download:
            page.page.get_by_role("button", name="SVG").click()
        text = download.value.path().read_text(encoding="utf-8")
        assert text.count("<circle") == N
        assert "hockey" in text

    def test_theme_is_remembered(self, browser, file):
        with opened(browser, file) as page:
            page.page.get_by_role("button", name="Dark mode").click()
            page.page.reload()
            page.wait("Boolean(window.explorer && explorer.firstFrame)")
            page.settle()
            assert page.pixels()[2, 2].max() < 60


def test_a_link_restores_view_colour_and_selection(browser, file):
    with opened(browser, file) as page:
        page.page.locator("#evidence button").nth(2).click()
        page.page.get_by_label("Colour by", exact=True).select_option(label="flag")
        page.page.get_by_role("button", name=re.compile("^flag True")).click()
        page.page.locator("#nearer").click()
        page.wait("location.hash.includes('view') && location.hash.includes('select')")
        names = ("selected", "view", "lit", "colouring")
        address, before = page.page.url, [page.read(f"explorer.{name}") for name in names]
        page.page.goto("about:blank")
        page.page.goto(address)
        page.wait("Boolean(window.explorer && explorer.firstFrame)")
        page.requests[:] = [url for url in page.requests if url not in (address, "about:blank")]
        after = [page.read(f"explorer.{name}") for name in names]
        assert before[0] == after[0] == list(range(100, 150))
        assert before[2:] == after[2:] == [[], "flag"]
        assert after[1] == pytest.approx(before[1], rel=1e-4)
        page.read("location.hash = '#colour=cluster&select=0-zz.5'")  # rows that there are not
        page.wait("explorer.colouring == 'cluster'")
        assert page.read("explorer.selected") == []
        assert page.read("explorer.view.zoom") == 1


def test_a_link_restores_the_slider(browser, tmp_path, model):
    out = explorer({"one": model.embedding_, "other": -model.embedding_}, tmp_path / "map.html")
    with opened(browser, out) as page:
        page.page.get_by_role("button", name="other", exact=True).first.click()
        page.wait("location.hash == '#map=1.00'")
        page.page.reload()
        page.wait("Boolean(window.explorer && explorer.firstFrame)")
        page.requests.clear()
        assert page.read("explorer.slider") == 1


def test_maps_are_compared(browser, tmp_path, model):
    Y = model.embedding_
    turned = np.column_stack([3 * Y[:, 1] + 5, -3 * Y[:, 0]])  # the same map, rotated by a right angle
    other = Y * [1.0, 0.2]
    out = explorer({"t-SNE": Y, "UMAP": turned, "flat": other}, tmp_path / "map.html", columns={"a": np.arange(N)})
    with opened(browser, out) as page:
        panel = page.page.get_by_label("Map", exact=True).last
        assert panel.locator(".maps button").all_text_contents() == ["t-SNE", "UMAP", "flat"]
        at = np.array([page.read(f"explorer.screen({row})") for row in (0, 60, 110)])
        panel.get_by_role("button", name="UMAP", exact=True).first.click()
        page.settle()
        assert page.read("explorer.slider") == 1
        moved = np.array([page.read(f"explorer.screen({row})") for row in (0, 60, 110)])
        np.testing.assert_allclose(moved, at, atol=2)
        page.read("explorer.selected = [0, 60]")
        with page.page.expect_download() as download:
            page.page.get_by_role("button", name="Save CSV").click()
        rows = list(csv.DictReader(io.StringIO(download.value.path().read_text())))
        saved = np.array([[row["x"], row["y"]] for row in rows], float)
        np.testing.assert_allclose(saved, turned[[0, 60]], atol=0.002)


def test_the_view_fits_every_map(browser, tmp_path, model):
    Y = model.embedding_
    out = explorer({"wide": Y * [1.0, 0.2], "high": Y * [0.2, 1.0]}, tmp_path / "map.html")
    with opened(browser, out) as page:
        stage = page.page.locator("#stage").bounding_box()
        for at in (0, 1):
            page.read(f"explorer.slider = {at}")
            screen = np.array([page.read(f"explorer.screen({row})") for row in range(N)])
            tools = np.array([56, 0])  # on the left of the map, where no point is below them
            free = [stage["width"], stage["height"]] - tools
            share = np.ptp(screen, axis=0) / free
            assert share.max() == pytest.approx(0.92, abs=0.01)
            middle = (screen.min(axis=0) + screen.max(axis=0)) / 2
            np.testing.assert_allclose(middle, tools + free / 2, atol=1)


def test_many_points_are_drawn_as_a_density_until_zoomed(browser, tmp_path):
    n = 300_000
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=n)
    Y = rng.normal(size=(n, 2)) + 6 * labels[:, None]
    out = explorer(Y, tmp_path / "map.html", columns={"kind": np.array(["a", "b"])[labels]})
    with opened(browser, out) as page:
        assert page.read("explorer.crowded")
        row = int(np.argmin(np.hypot(*(Y - [6, 6]).T)))
        x, y = page.read(f"explorer.screen({row})")
        page.page.get_by_label("names on the map").uncheck()
        page.page.wait_for_timeout(300)
        pixel = page.pixels()[int(y), int(x)]
        assert np.abs(pixel - page.read(f"explorer.colour({row})")).sum() < 60
        page.page.mouse.move(*page.place(row))
        page.wait("explorer.hovered >= 0")
        assert labels[page.read("explorer.hovered")] == 1
        for _ in range(8):
            page.page.locator("#nearer").click()
        assert not page.read("explorer.crowded")


def test_firefox(file, tmp_path):
    with firefox(tmp_path) as page:
        page.open(file)
        assert page.read("explorer.points") == N
        assert len(page.read("explorer.names")) == 3
        box = page.read("(({x, y}) => [x, y])(document.getElementById('map').getBoundingClientRect())")
        x, y = np.add(box, page.read("explorer.screen(60)"))
        near = page.pixels()[round(y) - 2 : round(y) + 3, round(x) - 2 : round(x) + 3].reshape(-1, 3) * 255
        assert np.abs(near - page.read("explorer.colour(60)")).sum(1).min() < 90
        page.drag([(x - 60, y - 60), (x + 60, y - 60), (x + 60, y + 60), (x - 60, y + 60)], key="\ue008")
        page.wait("explorer.selected.length > 10")
        assert set(page.read("explorer.selected")) <= set(range(PER_CLUSTER, 2 * PER_CLUSTER))
        page.read("(explorer.colouring = 'height', 1)")
        page.wait("document.querySelectorAll('#legend rect').length == 48")
        dark = "getComputedStyle(document.body).backgroundColor"
        before = page.read(dark)
        page.read("document.getElementById('theme').click()")
        assert page.read(dark) != before
        assert page.errors == []


def test_words_of_clusters():
    texts = [f"the {word}s are common {word}" for word in ("cat", "dog") for _ in range(40)] + [None] * 5
    codes = np.repeat([0, 1, 2], [40, 40, 5])
    assert distinguishing_words(*count_words(texts, codes, 3), n_words=1) == ["cat", "dog", ""]
    assert distinguishing_words(*count_words(["1 2 3", ""], np.array([0, 0]), 1)) == [""]
    assert distinguishing_words(*count_words(["word"], np.array([-1]), 2)) == ["", ""]


def test_words_of_siblings_differ():
    texts = ["flower petals rose"] * 30 + ["flowers petal petal tulip"] * 30 + ["engine wheel"] * 30
    words, counts = count_words(texts, np.repeat([0, 1, 2], 30), 3)
    assert sorted(words) == ["engine", "flower", "petal", "rose", "tulip", "wheel"]  # the more frequent form of each
    alone = distinguishing_words(words, counts)
    assert sorted(", ".join(alone).split(", ")) == sorted(words)  # each names one cluster
    assert alone[1].split(", ")[0] == "petal"
    siblings = np.array([[0, 1, 0], [1, 0, 0], [1, 1, 0]], bool)
    named = distinguishing_words(words, counts, siblings)
    assert [names.split(", ")[0] for names in named[:2]] == ["rose", "tulip"]
    assert named[2] == alone[2]


def test_features_beyond_the_limit_are_the_most_variable():
    X = np.random.default_rng(0).random((1000, 9)) * np.arange(9)
    header, content = pack_features(X, [f"g{i}" for i in range(9)], 1000, max_bytes=3000)
    assert header["names"] == ["g7", "g8"]
    assert header["note"] == "the 2 most variable of 9 features"
    assert header["ends"][-1] == len(content) <= 3000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"Y": {}}, "there are no maps"),
        ({"Y": {"a": np.eye(5, 2), "b": np.eye(6, 2)}}, "same shape"),
        ({"labels": [0, 1]}, r"labels must have shape \(5,\)"),
        ({"labels": [0.5] * 5}, "labels must be integers"),
        ({"clusters": []}, "pass labels"),
        ({"text": "a"}, "text='a' must be one of the columns"),
        ({"columns": {"a": ["x"] * 5}, "text": "a"}, "needs clusters"),
        ({"columns": {"a": np.arange(5.0)}, "text": "a", "labels": [0] * 5}, "not a column of strings"),
        ({"features": np.zeros((4, 2))}, r"features must have shape \(5, n_features\)"),
        ({"features": np.zeros((5, 2)), "feature_names": ["a"]}, "feature_names has 1 names"),
        ({"features": np.array([["a"]] * 5)}, "features must be numbers"),
        ({"continuous": ["a"]}, "continuous='a' must be one of the columns"),
        ({"columns": {"a": ["x"] * 5}, "continuous": ["a"]}, "continuous has 'a', which is not a column of numbers"),
    ],
)
def test_wrong_arguments_are_named(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        explorer(**{"Y": np.zeros((5, 2)), "out": tmp_path / "map.html", **arguments})


def test_images_in_columns_are_only_those_inside_the_file(browser, tmp_path):
    svg = "data:image/svg+xml;base64," + base64.b64encode(b"<svg onload='alert(1)'/>").decode()
    columns = {"one": ["http://example.org/a.png"] * 3, "other": [svg] * 3}
    with opened(browser, explorer(np.eye(3, 2), tmp_path / "map.html", columns=columns)) as page:
        page.page.mouse.click(*page.place(0))
        page.wait("explorer.pinned == 0")
        assert page.page.locator("#card img").count() == 0
