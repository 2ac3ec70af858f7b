"""The explorer and the model in notebooks."""

import base64
import contextlib
import io
import json
import os
import secrets
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
from browser import chromium

from laptsne.explorer.export import ExplorerFrame
from laptsne.plotting import explorer

Y = np.arange(20.0).reshape(10, 2)


@pytest.fixture
def widget():
    pytest.importorskip("anywidget", reason="needs the extra laptsne[notebook]")
    return explorer(Y, columns={"kind": list("aabbbbbbcc"), "weight": np.arange(10) / 4}, title="Ten points")


class TestWidget:
    def test_selection_is_an_array_of_rows(self, widget):
        assert widget.selection.tolist() == []
        widget.selection = [7, 2, 2]
        assert widget.selection.tolist() == [2, 7]
        assert widget.selection.dtype == np.uint32
        widget.selection = np.arange(10) > 6
        assert widget.selection.tolist() == [7, 8, 9]
        assert widget.color == "kind"

    @pytest.mark.parametrize("rows", [[10], [-1], [0.5], [[1]], "a", np.ones(3, bool)])
    def test_rows_that_there_are_not_are_refused(self, widget, rows):
        traitlets = pytest.importorskip("traitlets")
        widget.selection = [1]
        with pytest.raises(traitlets.TraitError, match="selection"):
            widget.selection = rows
        assert widget.selection.tolist() == [1]

    def test_observers_are_called_only_for_changes(self, widget):
        seen = []
        widget.observe(lambda change: seen.append(change.new.tolist()), "selection")
        for rows in ([1, 2], [2, 1], [], []):
            widget.selection = rows
        assert seen == [[1, 2], []]

    def test_what_the_front_end_sends_is_read(self, widget):
        widget.set_state({"selection": memoryview(np.array([3, 5], "<u4").tobytes())})
        assert widget.selection.tolist() == [3, 5]
        assert bytes(widget.get_state(["selection"])["selection"]) == np.array([3, 5], "<u4").tobytes()

    def test_widgets_are_linked(self, widget):
        other = explorer(Y[:, ::-1])
        widget.link(other)
        widget.selection = [4, 6]
        assert other.selection.tolist() == [4, 6]
        other.selection = [1]
        assert widget.selection.tolist() == [1]
        with pytest.raises(ValueError, match="other has 3 points"):
            widget.link(explorer(Y[:3]))

    def test_an_image_stands_in_for_it(self, widget):
        image = pytest.importorskip("matplotlib.image")
        bundle, _ = widget._repr_mimebundle_()
        assert "application/vnd.jupyter.widget-view+json" in bundle
        content = base64.b64decode(bundle["image/png"])
        assert len(content) < 50_000
        pixels = (image.imread(io.BytesIO(content))[..., :3] * 255).astype(int)
        for colour in ((31, 119, 180), (240, 160, 0), (85, 34, 136)):  # of the three kinds
            assert (np.abs(pixels[60:, :460] - colour).sum(2) < 30).sum() > 20

    @pytest.mark.parametrize("column", [np.arange(10) / 4, np.arange(10).astype("M8[D]"), [None, *"abcdefabc"]])
    def test_images_have_any_colours(self, column):
        pytest.importorskip("anywidget")
        pytest.importorskip("matplotlib")
        for shown in ({"c": column}, None):
            assert "image/png" in explorer(Y, columns=shown)._repr_mimebundle_()[0]
        assert "image/png" in explorer(np.eye(10, 3), columns={"c": column})._repr_mimebundle_()[0]

    def test_without_matplotlib_there_is_no_image(self, widget, monkeypatch):
        monkeypatch.setattr("laptsne.explorer.widget.find_spec", lambda name: None)
        assert "image/png" not in widget._repr_mimebundle_()[0]

    def test_a_notebook_exported_to_html_has_the_image(self, widget):
        nbformat = pytest.importorskip("nbformat")
        nbconvert = pytest.importorskip("nbconvert")
        bundle, _ = widget._repr_mimebundle_()
        cell = nbformat.v4.new_code_cell("view", outputs=[nbformat.v4.new_output("display_data", bundle)])
        text, _ = nbconvert.HTMLExporter().from_notebook_node(nbformat.v4.new_notebook(cells=[cell]))
        assert bundle["image/png"] in text.replace("\n", "")

    def test_it_is_saved_as_the_same_file(self, widget, tmp_path):
        columns = {"kind": list("aabbbbbbcc"), "weight": np.arange(10) / 4}
        saved = widget.save(tmp_path / "one.html")
        written = explorer(Y, tmp_path / "other.html", columns=columns, title="Ten points")
        assert saved.read_bytes() == written.read_bytes()


# A stand-in for the model of anywidget, and counts of what is added to objects that outlive the widget.
OUTSIDE = """
(() => {
  window.added = {};
  const counted = (kind, Class) => class extends Class {
    observe(...given) { if (!this.counts) window.added[kind]++; this.counts = true; super.observe(...given); }
    disconnect() { if (this.counts) window.added[kind]--; this.counts = false; super.disconnect(); }
  };
  window.ResizeObserver = counted("observers", ResizeObserver);
  window.MutationObserver = counted("observers", MutationObserver);
  const list = MediaQueryList.prototype;
  const [add, remove] = [list.addEventListener, list.removeEventListener];
  list.addEventListener = function (...given) { window.added.media++; add.apply(this, given); };
  list.removeEventListener = function (...given) { window.added.media--; remove.apply(this, given); };
  window.fake = (values) => {
    const handlers = {};
    return {
      get: (name) => values[name],
      set(name, value) { values[name] = value; for (const done of handlers[`change:${name}`] ?? []) done(); },
      save_changes() {},
      on(name, done) { window.added.model++; (handlers[name] ??= new Set()).add(done); },
      off(name, done) { if (handlers[name]?.delete(done)) window.added.model--; },
    };
  };
  window.show = async (data) => {
    window.added = { model: 0, media: 0, observers: 0 }; // without those of Playwright
    const view = (text) => new DataView(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
    const values = { _data: view(data), _images: view(""), _features: view(""), selection: view("") };
    window.model = window.fake({ ...values, height: 300, color: "kind" });
    window.el = document.body.appendChild(document.createElement("div"));
    window.clean = await window.widget.render({ model: window.model, el: window.el });
  };
})();
"""


def test_the_front_end_removes_what_it_added(widget):
    data = base64.b64encode(widget.get_state(["_data"])["_data"]).decode()
    with chromium() as browser:
        page = browser.new_context().new_page()
        errors = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.add_script_tag(content=OUTSIDE)
        page.add_script_tag(
            content=widget.get_state(["_esm"])["_esm"].replace("export default", "window.widget ="), type="module"
        )
        wait_for(lambda: page.evaluate("Boolean(window.widget)"))
        for _ in range(2):  # as when a cell runs again
            page.evaluate("(data) => window.show(data)", data)
            wait_for(lambda: page.evaluate("Boolean(el.explorer.firstFrame)"))
            assert page.evaluate("window.added") == {"model": 2, "media": 1, "observers": 3}
            page.evaluate("window.shown = el.explorer")
            page.evaluate("clean()")
            assert page.evaluate("window.added") == {"model": 0, "media": 0, "observers": 0}
            assert page.evaluate("el.shadowRoot.childElementCount") == 0
            page.evaluate("model.set('selection', new DataView(new Uint32Array([1]).buffer))")
            assert page.evaluate("shown.selected") == []
        assert errors == []


def test_without_anywidget_a_frame_is_displayed(monkeypatch, tmp_path):
    monkeypatch.setattr("laptsne.explorer.export.find_spec", lambda name: None)
    view = explorer(Y, columns={"<b>": ["</iframe><script>window.pwned = 1</script>"] * 10}, title='"><script>')
    assert isinstance(view, ExplorerFrame)
    page = tmp_path / "notebook.html"
    page.write_text(f"<!doctype html><meta charset='utf-8'><body>{view._repr_html_()}", encoding="utf-8")
    assert view.save(tmp_path / "map.html").stat().st_size > 10_000
    with chromium() as browser:
        context = browser.new_context()
        tab = context.new_page()
        tab.goto(page.as_uri())
        frame = tab.frame_locator("iframe")
        frame.locator("#size").get_by_text("10 points").wait_for()
        assert frame.locator("#notice").is_hidden()
        assert tab.evaluate("window.pwned") is None


NOTEBOOK = """
import json, pathlib
import numpy as np
from laptsne.plotting import explorer
Y = np.array([[i // 5, i % 5] for i in range(25)], float)
columns = {"kind": [f"kind {i // 5}" for i in range(25)], "weight": np.arange(25) / 4}
one, other = explorer(Y, columns=columns), explorer(Y[:, ::-1], columns=columns)
one.link(other)
def write(change):
    known = {"one": one.selection.tolist(), "other": other.selection.tolist(), "color": one.color}
    pathlib.Path("seen.json").write_text(json.dumps(known))
one.observe(write, ["selection", "color"])
one.observe(lambda change: setattr(other, "selection", [1, 2, 3]), "color")
display(one, other)
"""


@contextlib.contextmanager
def jupyterlab(folder):
    """The address of a JupyterLab with a notebook."""
    pytest.importorskip("jupyterlab", reason="JupyterLab is not installed")
    pytest.importorskip("anywidget", reason="needs the extra laptsne[notebook]")
    cell = {"cell_type": "code", "id": "a", "source": NOTEBOOK, "metadata": {}, "outputs": [], "execution_count": None}
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = {"cells": [cell], "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (folder / "map.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    token = secrets.token_hex(16)
    homes = ("HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    environment = {**os.environ, **{name: str(folder / "home") for name in homes}}
    (folder / "home").mkdir()
    options = ["--no-browser", "--allow-root", "--expose-app-in-browser", "--ip=127.0.0.1", f"--port={port}"]
    options += [f"--IdentityProvider.token={token}", "--ServerApp.port_retries=0"]
    command = [sys.executable, "-m", "jupyterlab", *options]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert process.poll() is None, (folder / "log").read_text()
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/lab/tree/map.ipynb?token={token}"
    finally:
        process.terminate()
        process.wait(timeout=30)


def wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it does not come true"
        time.sleep(0.1)
    return found


@pytest.mark.slow
def test_jupyterlab(tmp_path):
    seen = tmp_path / "seen.json"

    def known():
        with contextlib.suppress(OSError, ValueError):
            return json.loads(seen.read_text())
        return {}

    with jupyterlab(tmp_path) as address, chromium() as browser:
        page = browser.new_context(viewport={"width": 1500, "height": 1000}).new_page()
        errors = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(address)
        page.locator(".jp-Notebook").wait_for(timeout=60_000)
        page.get_by_text("| Idle").wait_for(timeout=60_000)  # the kernel; cells run before are lost
        page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")
        page.locator(".explorer.widget #map").nth(1).wait_for(timeout=90_000)
        first = page.locator(".explorer.widget").nth(0)
        first.scroll_into_view_if_needed()
        view = "[...document.querySelectorAll('*')].filter((it) => it.explorer).map((it) => it.explorer)"
        wait_for(lambda: page.evaluate(f"{view}.length == 2 && {view}.every((it) => it.firstFrame)"))
        x, y = page.evaluate(f"{view}[0].screen(0)")
        box = first.locator("#map").bounding_box()
        corner = box["x"] + x, box["y"] + y
        page.keyboard.down("Shift")  # a lasso around row 0
        page.mouse.move(corner[0] - 15, corner[1] - 15)
        page.mouse.down()
        for right, down in ((15, -15), (15, 15), (-15, 15)):
            page.mouse.move(corner[0] + right, corner[1] + down, steps=4)
        page.mouse.up()
        page.keyboard.up("Shift")
        wait_for(lambda: known().get("one") == [0])
        assert known()["other"] == [0]  # linked
        wait_for(lambda: page.evaluate(f"{view}[1].selected") == [0])
        first.get_by_label("Colour by", exact=True).select_option(label="weight")
        wait_for(lambda: known().get("color") == "weight")
        wait_for(lambda: page.evaluate(f"{view}[0].selected") == [1, 2, 3])  # set from Python
        search = first.get_by_role("searchbox")
        search.fill("kind 4")
        wait_for(lambda: page.evaluate(f"{view}[0].lit.length") == 0)  # none of the selected rows
        assert errors == []
