import csv
import io
import json
import re
import zlib
from base64 import b64decode
from dataclasses import replace

import numpy as np
import pytest
from browser import Opened, opened

from laptsne.contraction import ContractionPath
from laptsne.explorer.payload import encode_columns, make_thumbnails
from laptsne.plotting import explorer

N_MAPS, PER_CLUSTER = 4, 40
SCRIPT = "<script>window.pwned = 1</script>"
IMAGE = "<img src=x onerror='window.pwned = 2'>"
NASTY = f'{SCRIPT}{IMAGE}</script><!-- \u2028 "quoted", =1+1'


@pytest.fixture(scope="module")
def maps():
    """Three clusters in a row that draw together from map to map."""
    rng = np.random.default_rng(0)
    centres = np.repeat([[0.0, 0.0], [10.0, 0.0], [20.0, 6.0]], PER_CLUSTER, axis=0)
    offsets = rng.normal(size=centres.shape).clip(-2, 2)
    return np.stack([centres + offsets * (1 - share) for share in np.linspace(0, 0.9, N_MAPS)])


@pytest.fixture(scope="module")
def path(maps):
    steps = np.arange(N_MAPS)
    eigenvalues = np.array([[1e-9, 0.1 / (1 + step), 0.2 / (1 + step)] for step in steps])
    curves = 1 + 0.1 * steps, 0.99 - 0.01 * steps, 0.5 - 0.05 * steps, 0.4 - 0.05 * steps
    return ContractionPath(0.02 * steps, maps.astype(np.float32), *curves, eigenvalues, 1)


@pytest.fixture(scope="module")
def columns():
    n = 3 * PER_CLUSTER
    return {
        "kind": np.repeat(["apple", "pear", NASTY], PER_CLUSTER),
        "weight": np.arange(n) / 10 + 0.05,
        "name": [f"fruit {i}, ripe" for i in range(n)],
        IMAGE: [None if i % 7 == 0 else i % 2 == 0 for i in range(n)],
    }


@pytest.fixture(scope="module")
def images():
    pixels = np.zeros((3 * PER_CLUSTER, 8, 8), np.uint8)
    pixels[PER_CLUSTER : 2 * PER_CLUSTER] = 200
    return pixels


@pytest.fixture(scope="module")
def file(path, columns, images, tmp_path_factory):
    out = tmp_path_factory.mktemp("explorer") / "map.html"
    return explorer(path, out, columns=columns, images=images, title=NASTY)


def around(page, row, reach=45):
    x, y = page.place(row)
    return [(x - reach, y - reach), (x + reach, y - reach), (x + reach, y + reach), (x - reach, y + reach)]


def select_first_cluster(page):
    """Lasso the apples in the most contracted map, where the outline is sure to hold them and nothing else."""
    page.read("explorer.slider = 3")
    page.page.keyboard.down("Shift")
    page.drag(around(page, 0, 20))
    page.page.keyboard.up("Shift")


def payload(file):
    packed = re.search(r'id="data">([^<]*)<', file.read_text(encoding="utf-8"))[1]
    content = zlib.decompress(b64decode(packed))
    length = int.from_bytes(content[:4], "little")
    return json.loads(content[4 : 4 + length]), content[4 + length :]


class TestPage:
    def test_points_are_drawn_in_the_colours_of_their_kinds(self, page):
        page.page.get_by_label("names on the map").uncheck()
        page.settle()
        pixels = page.pixels()
        for row in (5, 60, 100):
            x, y = page.read(f"explorer.screen({row})")
            near = pixels[int(y) - 3 : int(y) + 4, int(x) - 3 : int(x) + 4].reshape(-1, 3)
            colour = page.read(f"explorer.colour({row})")
            assert np.abs(near - colour).sum(1).min() < 90
        assert page.read("explorer.colour(5)") != page.read("explorer.colour(60)")
        background = np.abs(pixels - 255).sum(2) < 10
        assert 0.8 < background.mean() < 0.995

    def test_where_points_are_drawn_is_where_they_are(self, page, maps):
        flat = np.array([page.read(f"explorer.screen({row})") for row in (0, 50, 119)])
        spread = maps[1][[0, 50, 119]]  # the model's own map comes first
        scale = np.ptp(flat[:, 0]) / np.ptp(spread[:, 0])
        np.testing.assert_allclose(np.diff(flat[:, 0]), scale * np.diff(spread[:, 0]), atol=0.5)
        np.testing.assert_allclose(np.diff(flat[:, 1]), -scale * np.diff(spread[:, 1]), atol=0.5)

    def test_slider_moves_the_points_and_the_readings(self, page):
        slider = page.page.locator("#contraction input")
        assert page.read("explorer.slider") == 1
        before, drawn = page.place(3), page.pixels()
        box = slider.bounding_box()
        middle = box["y"] + box["height"] / 2
        page.drag([(box["x"] + 8 + (box["width"] - 16) / 3, middle), (box["x"] + box["width"] - 4, middle)])
        page.settle()
        assert page.read("explorer.slider") == 3
        assert np.hypot(*np.subtract(page.place(3), before)) > 5
        assert (page.pixels() != drawn).any(2).mean() > 0.01
        texts = [text.strip() for text in page.page.locator("#contraction output").all_text_contents()]
        assert texts == ["0.06", "0.9600", "35.0 %", "25.0 %", "1.300", "0.025 … 0.05"]
        page.read("explorer.slider = 1.5")
        assert page.page.locator("#contraction output").nth(4).text_content() == "1.150"
        ends = [page.read(f"explorer.slider = {at}; explorer.screen(3)") for at in (1, 2)]
        np.testing.assert_allclose(page.read("explorer.slider = 1.5; explorer.screen(3)"), np.mean(ends, 0), atol=0.01)

    def test_moving_and_resting_points_are_drawn_alike(self, page):
        # A software renderer draws moving points on another canvas; both must agree on where and what.
        page.read("explorer.slider = 0.5")
        page.settle()
        rest = page.pixels()
        page.read("window.moving = setInterval(() => { explorer.slider = 0.5; }, 20)")
        page.wait("!document.getElementById('painting').hidden")
        moving = page.pixels()
        assert not page.read("document.getElementById('painting').hidden")
        page.read("clearInterval(moving)")
        inked = [(np.abs(frame - 255).sum(2) > 150) for frame in (rest, moving)]
        assert (inked[0] & inked[1]).sum() > 0.75 * (inked[0] | inked[1]).sum()
        assert abs(inked[0].sum() / inked[1].sum() - 1) < 0.2

    def test_play_goes_to_the_end_and_stops(self, page):
        page.page.get_by_label("Play from plain").click()
        page.wait("explorer.slider > 1.2")
        page.page.get_by_label("Pause").click()
        stopped = page.read("explorer.slider")
        page.page.wait_for_timeout(150)
        assert page.read("explorer.slider") == stopped < 3
        page.read("explorer.slider = 2.8")
        page.page.get_by_label("Play from plain").click()
        page.wait("explorer.slider == 3")
        assert page.page.get_by_label("Play from plain").count() == 1

    def test_lasso_selects_lists_and_saves(self, page, columns):
        select_first_cluster(page)
        assert page.read("explorer.selected") == list(range(PER_CLUSTER))
        assert page.page.locator("#selection .table tbody tr").count() == PER_CLUSTER
        assert "40 points selected" in page.page.locator("#selection .total").inner_text()
        with page.page.expect_download() as download:
            page.page.get_by_role("button", name="Save CSV").click()
        text = download.value.path().read_bytes().decode()
        head, *rows = csv.reader(io.StringIO(text, newline=""))
        assert head == ["row", "x", "y", *columns]
        assert [int(row[0]) for row in rows] == list(range(PER_CLUSTER))
        assert [row[4] for row in rows][:3] == ["0.05", "0.15", "0.25"]
        assert rows[2][5] == "fruit 2, ripe"
        assert [rows[i][6] for i in (0, 1, 2)] == ["", "False", "True"]

    def test_saved_positions_are_those_of_the_slider_and_text_is_unchanged(self, page, maps):
        page.page.get_by_role("searchbox").fill("=1+1")
        page.page.get_by_role("button", name="Select these 40 points").click()
        page.read("explorer.slider = 2")
        with page.page.expect_download() as download:
            page.page.get_by_role("button", name="Save CSV").click()
        text = download.value.path().read_bytes().decode()
        _, *rows = csv.reader(io.StringIO(text, newline=""))
        assert {row[3] for row in rows} == {NASTY}
        positions = np.array([row[1:3] for row in rows], float)
        np.testing.assert_allclose(positions, maps[2][2 * PER_CLUSTER :], atol=26 / 65535)

    def test_lasso_button_and_escape(self, page):
        page.page.get_by_role("button", name="Lasso").click()
        page.drag(around(page, 50, 120))
        assert page.read("explorer.selected.length") > 0
        assert page.read("explorer.lit.length") == page.read("explorer.selected.length")
        page.page.keyboard.press("Escape")
        assert page.read("explorer.selected") == []
        assert page.read("explorer.lit") is None
        assert page.page.locator("#selection").is_hidden()

    def test_search_highlights_counts_and_visits(self, page):
        page.page.keyboard.press("/")
        page.page.keyboard.type("fruit 11")
        page.wait("explorer.lit && explorer.lit.length == 11")
        assert page.page.locator("#matches").inner_text() == "11 matches"
        page.page.keyboard.press("Enter")
        assert page.read("explorer.pinned") == 11
        page.page.keyboard.press("Enter")
        assert page.read("explorer.pinned") == 110
        x, y = page.read("explorer.screen(110)")
        stage = page.page.locator("#stage").bounding_box()
        assert abs(x - (stage["width"] + 56) / 2) < 1  # beside the tools
        assert abs(y - stage["height"] / 2) < 1
        page.page.get_by_role("searchbox").fill("no such fruit")
        page.wait("document.getElementById('matches').textContent == 'no match'")

    def test_numbers_are_found_by_their_value(self, page):
        page.page.get_by_role("searchbox").fill("1.15")
        page.wait("explorer.lit")
        assert page.read("explorer.lit") == [11]

    def test_hover_shows_the_values_and_the_image(self, page):
        page.read("explorer.images")
        page.page.mouse.move(*page.place(50))
        page.wait("explorer.hovered >= 40 && explorer.hovered < 80")
        row = page.read("explorer.hovered")
        text = page.page.locator("#tooltip").inner_text()
        assert f"fruit {row}, ripe" in text
        assert "pear" in text
        pixel = "[...document.querySelector('#tooltip canvas').getContext('2d').getImageData(4, 4, 1, 1).data]"
        assert page.read(pixel) == [200, 200, 200, 255]
        page.page.mouse.move(*np.add(page.place(0), (0, 200)))
        assert page.page.locator("#tooltip").is_hidden()

    def test_colour_by_another_column(self, page):
        before, drawn = page.read("explorer.colour(0)"), page.pixels()
        page.page.get_by_label("Colour by", exact=True).select_option(label="weight")
        page.settle()
        colours = np.array([page.read(f"explorer.colour({row})") for row in (0, 60, 119)])
        assert before != colours[0].tolist()
        assert (np.diff(colours @ [0.2126, 0.7152, 0.0722]) > 20).all()  # the scale rises in lightness
        assert (page.pixels() != drawn).any(2).mean() > 0.005
        assert page.page.locator("#legend .ends").inner_text().split() == ["≤", "0.15", "≥", "11.85"]

    def test_legend_highlights_a_category_and_selects_it(self, page):
        entry = page.page.get_by_role("button", name="kind pear, 40 points, shown")
        entry.focus()
        entry = page.page.locator("#legend button", has_text="pear")
        page.page.keyboard.press("Enter")
        assert entry.get_attribute("aria-pressed") == "true"
        assert page.read("explorer.lit") == list(range(PER_CLUSTER, 2 * PER_CLUSTER))
        page.page.get_by_role("button", name="kind apple, 40 points, faded").wait_for()
        page.page.get_by_role("button", name="Select these 40 points").press("Enter")
        assert page.read("explorer.selected") == list(range(PER_CLUSTER, 2 * PER_CLUSTER))
        entry.press("Enter")
        page.page.get_by_role("button", name="kind apple, 0 of 40 points, shown").wait_for()

    def test_keys_move_and_zoom_the_map_and_the_slider(self, page):
        page.page.locator("#map").focus()
        home = page.read("explorer.view")
        page.page.keyboard.press("+")
        page.page.keyboard.press("ArrowRight")
        view = page.read("explorer.view")
        assert view["zoom"] == pytest.approx(1.4)
        assert view["x"] > home["x"]
        page.page.keyboard.press("0")
        assert page.read("explorer.view") == home
        page.page.locator("#contraction input").focus()
        page.page.keyboard.press("ArrowRight")
        assert page.read("explorer.slider") == pytest.approx(1.1)
        page.page.keyboard.press("PageUp")
        assert page.read("explorer.slider") == 2
        page.page.keyboard.press("Home")
        assert page.read("explorer.slider") == 0

    def test_all_controls_are_reached_by_tab(self, page):
        reached, shown = set(), []
        for _ in range(22):
            page.page.keyboard.press("Tab")
            reached.add(page.read("(({id, type}) => id || type)(document.activeElement)"))
            # The search field's frame shows its focus.
            shown.append(page.read("[document.activeElement, document.activeElement.parentElement].some((it) => "
                                   "getComputedStyle(it).outlineStyle != 'none')"))  # fmt: skip
        wanted = {"search", "theme", "map", "lasso", "nearer", "farther", "home", "range", "colour", "button"}
        assert wanted <= reached
        assert shown.count(False) <= 1  # beyond the last control

    def test_wheel_zooms_where_the_pointer_is_and_drag_pans(self, page):
        x, y = np.round(page.place(100))
        page.page.mouse.move(x, y)
        page.page.mouse.wheel(0, -300)
        page.wait("explorer.view.zoom > 1.1")
        np.testing.assert_allclose(page.place(100), (x, y), atol=1.5)
        page.drag([(x, y), (x - 60, y + 30)])
        np.testing.assert_allclose(page.place(100), (x - 60, y + 30), atol=1.5)
        page.page.mouse.dblclick(x, y)
        assert page.read("explorer.view.zoom") == 1

    def test_markup_in_the_data_stays_text(self, page):
        page.page.mouse.move(*page.place(100))
        page.page.locator("#facts summary").click()
        select_first_cluster(page)
        assert page.read("window.pwned") is None
        assert page.page.locator("main img").count() == 0
        assert page.page.title().startswith(SCRIPT + IMAGE)
        assert page.page.locator("h1").text_content() == NASTY
        assert page.page.locator(".table thead th").last.text_content() == IMAGE
        assert NASTY in page.page.locator("#legend .name").all_text_contents()

    def test_the_policy_lets_nothing_else_run(self, page):
        page.read("document.body.append(Object.assign(document.createElement('script'), {text: 'window.pwned = 3'}))")
        page.read(
            "document.body.append(Object.assign(document.createElement('img'), {src: 'http://example.org/a.png'}))"
        )
        page.page.wait_for_timeout(50)
        assert page.read("window.pwned") is None
        refused = [error for error in page.errors if "Content Security Policy" in error]
        assert len(refused) == len(page.errors) >= 2
        page.errors.clear()
        page.requests[:] = [url for url in page.requests if not url.startswith("http://example.org")]

    def test_toggle_changes_the_theme(self, page):
        light = page.pixels()[2, 2]
        page.page.get_by_role("button", name="Dark mode").click()
        page.settle()
        assert light.min() > 240
        assert page.pixels()[2, 2].max() < 60


def test_dark_mode_follows_the_system(browser, file):
    with opened(browser, file, color_scheme="dark") as page:
        assert page.pixels()[2, 2].max() < 60
        assert page.read("getComputedStyle(document.body).backgroundColor") != "rgb(246, 247, 249)"


def test_phone(browser, file):
    with opened(browser, file, width=360, height=740, has_touch=True, is_mobile=True, device_scale_factor=2) as page:
        page.read("explorer.slider = 3; document.querySelector('#legend button').click()")
        page.page.locator("#select").click()
        page.page.locator("#facts summary").click()
        assert page.read("document.documentElement.scrollWidth") <= 360
        stage = page.page.locator("#stage").bounding_box()
        assert stage["height"] > 740 / 2
        page.read("document.querySelector('main').scrollTop = 0")
        assert page.page.locator("#colouring").bounding_box()["y"] >= stage["y"] + stage["height"]
        lit = page.read("explorer.selected")
        page.page.touchscreen.tap(*page.place(lit[0]))
        page.wait("explorer.pinned >= 0")
        assert page.read("explorer.pinned") in lit
        assert page.page.locator("#tooltip").is_hidden()
        card = page.page.locator("#card").bounding_box()
        assert stage == page.page.locator("#stage").bounding_box()
        assert stage["y"] + stage["height"] <= card["y"] < 740


def test_pinch_zooms(browser, file):
    with opened(browser, file, has_touch=True) as page:
        session = page.page.context.new_cdp_session(page.page)

        def touch(kind, *positions):
            points = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(positions)]
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

        touch("touchStart", (300, 300), (400, 300))
        for step in range(1, 6):
            touch("touchMove", (300 - 10 * step, 300), (400 + 10 * step, 300))
        touch("touchEnd")
        assert page.read("explorer.view.zoom") == pytest.approx(2, rel=0.05)


def test_reduced_motion_plays_from_map_to_map(browser, file):
    with opened(browser, file, reduced_motion="reduce") as page:
        page.page.get_by_label("Play from plain").click()
        page.page.wait_for_timeout(300)
        assert page.read("explorer.slider") == 1
        page.wait("explorer.slider != 1")
        assert page.read("explorer.slider") == 2


def test_curves_that_hardly_change_look_flat(browser, tmp_path, path):
    """Between 98.9 and 99 % a curve is nearly flat; between 40 and 50 % it has the height of its chart."""
    steady = replace(
        path, trustworthiness=np.linspace(0.99, 0.989, N_MAPS), neighbors_kept=np.linspace(0.5, 0.4, N_MAPS)
    )
    with opened(browser, explorer(steady, tmp_path / "map.html")) as page:
        heights = page.read("[...document.querySelectorAll('.charts .curve')].map((curve) => curve.getBBox().height)")
        assert heights[0] < 2
        assert heights[1] > 30


def test_one_map_without_columns_has_no_slider(browser, tmp_path, maps):
    with opened(browser, explorer(maps[0], tmp_path / "map.html")) as page:
        assert page.page.title() == "Map of 120 points"
        assert page.page.locator("#contraction").is_hidden()
        assert page.page.locator("#colouring").is_hidden()
        assert (np.abs(page.pixels() - 255).sum(2) > 150).mean() > 0.005


class TestSolid:
    """A map in three dimensions."""

    @pytest.fixture
    def solid(self):
        return 7 + 3 * np.random.default_rng(1).normal(size=(60, 3)).clip(-2, 2)

    @pytest.fixture
    def file(self, solid, tmp_path):
        return explorer(solid, tmp_path / "solid.html", columns={"kind": np.repeat(["a", "b", "c"], 20)})

    def screen(self, page):
        return np.array([page.read(f"explorer.screen({row})") for row in range(60)])

    def test_it_is_seen_from_some_side_at_one_scale(self, page, solid):
        screen = self.screen(page)
        _, residual, rank, _ = np.linalg.lstsq(np.c_[solid, np.ones(60)], screen, rcond=None)
        assert rank == 4
        assert residual.max() < 60 * 0.02**2  # pixels: linear in the coordinates
        axes = np.linalg.lstsq(np.c_[solid, np.ones(60)], screen, rcond=None)[0][:3]
        assert axes[:, 0] @ axes[:, 1] == pytest.approx(0, abs=0.02 * (axes**2).sum())
        assert np.linalg.norm(axes[:, 0]) == pytest.approx(np.linalg.norm(axes[:, 1]), rel=0.01)

    def test_dragging_turns_it(self, page):
        before = self.screen(page)
        stage = page.page.locator("#stage").bounding_box()
        middle = [stage["x"] + stage["width"] / 2, stage["y"] + 0.95 * stage["height"]]
        across = min(stage["width"], stage["height"])  # half a turn
        page.drag([(middle[0] - across / 2, middle[1]), (middle[0] + across / 2, middle[1])])
        page.settle()
        after = self.screen(page)
        assert np.ptp(after - before, axis=0).max() > 50
        assert len(page.read("explorer.names")) == 3
        page.wait("location.hash.includes('turn')")
        address = page.page.url
        page.page.reload()
        page.wait("Boolean(window.explorer && explorer.firstFrame)")
        page.requests[:] = [url for url in page.requests if url != address]
        np.testing.assert_allclose(self.screen(page), after, atol=0.1)
        page.page.locator("#home").click()
        np.testing.assert_allclose(self.screen(page), before, atol=0.1)

    def test_arrow_keys_turn_it_and_lassos_select(self, page):
        before = self.screen(page)
        page.page.locator("#map").focus()
        page.page.keyboard.press("ArrowRight")
        turned = self.screen(page)
        assert np.ptp(turned[:, 0] - before[:, 0]) > 5
        page.settle()
        inked = (np.abs(page.pixels() - 255).sum(2) > 60).nonzero()
        assert np.ptp(inked[0]) > np.ptp(turned[:, 1])  # the points are drawn where they now are
        page.page.keyboard.down("Shift")
        page.drag(around(page, 5, 8))
        page.page.keyboard.up("Shift")
        assert 5 in page.read("explorer.selected")

    def test_saved_positions_are_those_given(self, page, solid):
        page.page.locator("#map").press("ArrowUp")
        page.read("explorer.selected = [0, 7, 59]")
        with page.page.expect_download() as download:
            page.page.get_by_role("button", name="Save CSV").click()
        head, *rows = csv.reader(io.StringIO(download.value.path().read_text(), newline=""))
        assert head[:4] == ["row", "x", "y", "z"]
        np.testing.assert_allclose(np.array([row[1:4] for row in rows], float), solid[[0, 7, 59]], atol=0.002)


def test_points_are_drawn_without_webgl(browser, file):
    context = browser.new_context(viewport={"width": 1100, "height": 760})
    page = context.new_page()
    page.add_init_script(
        "const real = HTMLCanvasElement.prototype.getContext; HTMLCanvasElement.prototype.getContext = "
        "function (kind, ...rest) { return kind.startsWith('webgl') ? null : real.call(this, kind, ...rest); };"
    )
    page.goto(file.as_uri())
    opened_page = Opened(page)
    opened_page.wait("Boolean(window.explorer && explorer.firstFrame)")
    pixels = "document.getElementById('painting').getContext('2d').getImageData(0, 0, 600, 600).data.buffer"
    opened_page.wait(f"new Set(new Uint32Array({pixels})).size > 3")
    context.close()


def test_files_of_many_points_are_small(tmp_path):
    n, n_maps = 20_000, 3
    maps = np.random.default_rng(0).normal(size=(n_maps, n, 2)).astype(np.float32)
    zeros = np.zeros(n_maps)
    path = ContractionPath(np.arange(n_maps) / 100, maps, zeros, zeros, zeros, zeros, np.zeros((n_maps, 2)), 0)
    labels = [f"cluster {i % 30}" for i in range(n)]
    out = explorer(path, tmp_path / "map.html", columns={"label": labels})
    empty = explorer(maps[0, :1], tmp_path / "empty.html").stat().st_size
    assert out.stat().st_size - empty < 7 * n * n_maps
    assert empty < 120_000


def test_positions_are_kept(file, maps):
    header, content = payload(file)
    states = np.frombuffer(content, np.uint16, header["arrays"][0]["length"]).reshape(maps.shape)
    for state, box, Y in zip(states, header["boxes"], maps, strict=True):
        kept = state * (box["side"] / 65535) + box["corner"]
        np.testing.assert_allclose(kept, Y.astype(np.float32), atol=box["side"] / 65535)


def test_every_map_of_a_path_fills_the_view(file, maps):
    header, content = payload(file)
    states = np.frombuffer(content, np.uint16, header["arrays"][0]["length"]).reshape(maps.shape)
    assert len({box["side"] for box in header["boxes"]}) > 1
    assert states.min(axis=(0, 1)).tolist() == [0, 0]
    assert all(np.ptp(state, axis=0).max() == 65535 for state in states)
    middles = [(state.min(axis=0).astype(int) + state.max(axis=0)) / 2 for state in states]
    np.testing.assert_allclose(middles, np.broadcast_to(middles[0], (len(maps), 2)), atol=1)


def test_nothing_of_the_data_is_in_the_markup(file):
    text = file.read_text(encoding="utf-8")
    assert "fruit" not in text
    assert SCRIPT not in text
    assert text.count("</script>") == 4


def test_an_existing_file_is_replaced_whole(tmp_path, maps):
    out = tmp_path / "map.html"
    out.write_text("before")
    with pytest.raises(ValueError, match="'a' has shape"):
        explorer(maps[0], out, columns={"a": [1]})
    assert out.read_text() == "before"
    assert explorer(maps[0], str(out)) == out
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [file.name for file in tmp_path.iterdir()] == ["map.html"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"Y": np.zeros((5, 4))}, r"shape \(n_samples, 2 or 3\), got {'Y': \(5, 4\)}; fit with n_components=2"),
        ({"Y": np.zeros(5)}, r"shape \(n_samples, 2 or 3\)"),
        ({"Y": np.zeros((0, 2))}, r"shape \(n_samples, 2 or 3\)"),
        ({"Y": np.full((5, 2), np.nan)}, "coordinates that are NaN"),
        ({"columns": {"a": [1, 2]}}, r"'a' has shape \(2,\).*5 points"),
        ({"columns": {"a": np.zeros((5, 2))}}, "one value per point"),
        ({"columns": {"a": [1] * 5}, "color": "b"}, "color='b' must be one of the columns: 'a'"),
        ({"color": "b"}, "there are none"),
        ({"columns": {"1": [1] * 5, 1: [2] * 5}}, "'1' occurs twice"),
        ({"images": np.zeros((5, 4, 4))}, "images must have dtype uint8"),
        ({"images": np.zeros((4, 4, 4), np.uint8)}, r"images must have shape \(5, height, width\).*got \(4, 4, 4\)"),
        ({"images": np.zeros((5, 16), np.uint8)}, "images must have shape"),
    ],
)
def test_wrong_arguments_are_named(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        explorer(**{"Y": np.zeros((5, 2)), "out": tmp_path / "map.html", **arguments})


def test_a_list_of_columns_and_a_missing_folder_are_named(tmp_path):
    with pytest.raises(TypeError, match="columns must be a mapping"):
        explorer(np.zeros((5, 2)), tmp_path / "map.html", columns=[1, 2])
    with pytest.raises(FileNotFoundError, match="create it first"):
        explorer(np.zeros((5, 2)), tmp_path / "none" / "map.html")


def kinds(columns, n):
    return {
        name: (column.header["kind"], column.header.get("names", ()), column.values.tolist())
        for name, column in encode_columns(columns, n).items()
    }


def test_columns_of_plain_values():
    found = kinds(
        {
            "label": [2, 10, 2, 10],
            "whole": [1, 2, 3, 4],
            "large": [2**40, 1, 2, 3],
            "identifier": [2**60 + 1, 1, 2, 3],
            "text": ["item 10", "item 9", None, "item 10"],
            "flag": [True, False, None, True],
            "real": [0.5, None, float("nan"), 2.0],
            "huge": [1e200, 0.5, -1e200, 2.0],
            "nothing": [None, None, None, None],
            "day": np.array(["2024-01-02", "NaT", "2024-01-01", "2024-01-01"], "datetime64[D]"),
        },
        4,
    )
    assert found["label"] == ("category", ("2", "10"), [0, 1, 0, 1])
    assert found["whole"] == ("number", (), [1, 2, 3, 4])
    assert found["large"] == ("number", (), [2**40, 1, 2, 3])
    assert found["identifier"][:2] == ("category", ("1", "2", "3", str(2**60 + 1)))
    assert found["text"] == ("category", ("item 9", "item 10"), [1, 0, 2, 1])
    assert found["flag"] == ("category", ("False", "True"), [1, 0, 2, 1])
    np.testing.assert_array_equal(found["real"][2], [0.5, np.nan, np.nan, 2.0])
    assert found["huge"] == ("number", (), [1e200, 0.5, -1e200, 2.0])
    assert found["nothing"] == ("category", (), [0, 0, 0, 0])
    assert not encode_columns({"nothing": [np.nan] * 4}, 4)["nothing"].header["numeric"]  # no colour scale is offered
    np.testing.assert_array_equal(found["day"][2], [19724 * 864e5, np.nan, 19723 * 864e5, 19723 * 864e5])


def test_few_integers_are_numbers_if_said_so():
    column = encode_columns({"count": [0.0, 1.0, 1.0, 0.0]}, 4, ["count"])["count"]
    assert (column.header["kind"], column.values.tolist()) == ("number", [0, 1, 1, 0])


def test_columns_of_pandas():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "size": pd.Categorical(["small", None, "large"], categories=["small", "large"]),
            "count": pd.array([1, None, 300], dtype="Int64"),
            "text": pd.array(["a", None, "b"], dtype="string"),
            "when": pd.to_datetime(["2024-01-01 12:00", None, "2024-01-02 00:00"]).tz_localize("Europe/Paris"),
        },
        index=pd.Index(["cell a", "cell b", "cell c"], name="cell"),
    )
    found = kinds(frame, 3)
    assert list(found) == ["cell", "size", "count", "text", "when"]
    assert found["size"] == ("category", ("small", "large"), [0, 2, 1])
    np.testing.assert_array_equal(found["count"][2], [1, np.nan, 300])
    assert found["text"] == ("category", ("a", "b"), [0, 2, 1])
    np.testing.assert_array_equal(found["when"][2], [1704106800e3, np.nan, 1704150000e3])
    assert list(kinds(frame.reset_index(drop=True), 3)) == ["size", "count", "text", "when"]


def test_columns_of_polars():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"text": ["a", None, "b"], "number": [1.5, None, 2.5], "flag": [True, None, False]})
    frame = frame.with_columns(pl.Series("kind", ["x", "y", None], dtype=pl.Categorical))
    frame = frame.with_columns(pl.Series("level", ["low", "high", None], dtype=pl.Enum(["low", "mid", "high"])))
    found = kinds(frame, 3)
    assert found["text"] == ("category", ("a", "b"), [0, 2, 1])
    np.testing.assert_array_equal(found["number"][2], [1.5, np.nan, 2.5])
    assert found["flag"] == ("category", ("False", "True"), [1, 2, 0])
    assert found["kind"] == ("category", ("x", "y"), [0, 1, 2])
    assert found["level"] == ("category", ("low", "mid", "high"), [0, 2, 3])


def test_large_images_are_averaged():
    images = np.zeros((2, 128, 96, 3), np.uint8)
    images[:, ::2] = 100
    small = make_thumbnails(images, 2)
    assert small.shape == (2, 64, 48, 3)
    assert (small == 50).all()
    assert make_thumbnails(np.zeros((3, 28, 28), np.uint8), 3).shape == (3, 28, 28, 1)


def test_files_are_the_same_for_the_same_data(tmp_path, maps):
    one, other = (explorer(maps[0], tmp_path / f"{i}.html", columns={"a": np.arange(120)}) for i in range(2))
    assert one.read_bytes() == other.read_bytes()
