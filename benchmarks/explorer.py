"""How fast is the explorer with many points, and what does it look like?

python benchmarks/explorer.py time                                       # minutes
python benchmarks/explorer.py screenshots FOLDER [digits pbmc68k text million]  # light, dark and on a phone: minutes
python benchmarks/explorer.py screenshots docs/images/explorer.png       # the image in the README: seconds

Runs in headless Chromium with software rendering, as on a machine without a graphics card. ``time`` prints the size of
the file, the time to the first frame, the frame rate while the mouse drags the slider from end to end and back, and the
time that the page takes for a move of the pointer, right after a move of the slider; medians over five runs.

Maps for screenshots are computed once and kept in FOLDER; delete them there to compute them again. The set "text" is
text_20news_tfidf of the suite in LAPTSNE_DATA, and "pbmc68k" is part of scanpy. Needs ``pip install ".[test]"``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright
from shared import command_line

from laptsne import LaptSNE
from laptsne.contraction import ContractionPath, contraction_path
from laptsne.plotting import explorer

SOFTWARE = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]

# Time

N_CLUSTERS = 20
REPEATS = 5
DRAG_SECONDS = 3.0
MAX_OVERHEAD = 120_000  # bytes of a file beyond its data
# Time for a pointermove, in milliseconds, from its dispatch to the layout of the tooltip.
HOVER = """(row) => {
  explorer.slider = explorer.slider > 0.5 ? 0.3 : 0.7;
  const map = document.getElementById("map");
  const box = map.getBoundingClientRect();
  const [x, y] = explorer.screen(row);
  const start = performance.now();
  map.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + x, clientY: box.top + y, bubbles: true }));
  document.getElementById("tooltip").getBoundingClientRect();
  return [performance.now() - start, explorer.hovered];
}"""


@dataclass
class Case:
    """A number of points and maps, and what is allowed."""

    n_points: int
    n_maps: int
    seconds: float  # to the first frame
    rate: float  # frames per second
    hover: float = 50.0  # milliseconds


CASES = [Case(100_000, 7, 2.0, 30.0), Case(1_000_000, 2, 6.0, 0.0)]


def blobs(case: Case, rng: np.random.Generator) -> tuple[ContractionPath, np.ndarray[Any, Any]]:
    """Return a path along which clusters contract, and the cluster of each point."""
    labels = rng.integers(N_CLUSTERS, size=case.n_points)
    centres = rng.normal(scale=40, size=(N_CLUSTERS, 2))
    offsets = rng.normal(scale=8, size=(case.n_points, 2))
    shares = np.linspace(0, 1, case.n_maps)
    maps = np.stack([centres[labels] * (1 + 0.3 * share) + offsets * (1 - 0.8 * share) for share in shares])
    eigenvalues = np.outer(1 - 0.9 * shares, np.linspace(0, 0.1, N_CLUSTERS))
    curves = 3 + shares, 0.98 - 0.03 * shares, 0.3 - 0.1 * shares, 0.3 - 0.15 * shares
    return ContractionPath(0.08 * shares, maps.astype(np.float32), *curves, eigenvalues, case.n_maps // 2), labels


def seconds_to_first_frame(page: Page, path: Path) -> float:
    """Return the seconds from the start of the navigation to the first frame."""
    page.goto(path.as_uri())
    while not page.evaluate("Boolean(window.explorer && explorer.firstFrame)"):
        time.sleep(0.02)
    return float(page.evaluate("explorer.firstFrame")) / 1000


def frame_rate(page: Page) -> float:
    """Return the frames per second while the mouse drags the slider."""
    slider = page.locator("#contraction input")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    assert box is not None
    left, right, y = box["x"] + 8, box["x"] + box["width"] - 8, box["y"] + box["height"] / 2
    page.mouse.move(left, y)
    page.mouse.down()
    start, before = time.perf_counter(), page.evaluate("explorer.frames")
    while (passed := time.perf_counter() - start) < DRAG_SECONDS:
        share = 1 - abs(1 - 2 * (passed / DRAG_SECONDS))
        page.mouse.move(left + share * (right - left), y)
    drawn = page.evaluate("explorer.frames") - before
    page.mouse.up()
    return float(drawn / (time.perf_counter() - start))


def hover_times(page: Page) -> list[float]:
    """Return the milliseconds of hovers, each after a move of the slider."""
    found = []
    for row in range(0, 9000, 1000):
        milliseconds, hovered = page.evaluate(HOVER, row)
        assert hovered >= 0
        found.append(milliseconds)
        page.wait_for_timeout(50)
    return found


def print_measure(name: str, values: list[float], unit: str, limit: str) -> None:
    low, high = min(values), max(values)
    print(f"{name:<12} {statistics.median(values):.2f} {unit} ({low:.2f} to {high:.2f}), {limit}")


def measure(case: Case, browser: Browser, folder: str) -> None:
    path, labels = blobs(case, np.random.default_rng(0))
    start = time.perf_counter()
    columns = {"label": np.char.add("cluster ", labels.astype(str)), "depth": path.embeddings[0, :, 0]}
    out = explorer(path, Path(folder, "map.html"), columns=columns, title="Blobs")
    print(f"\n{case.n_points:,} points, {case.n_maps} maps, written in {time.perf_counter() - start:.1f} s")
    print(f"{'file':<12} {out.stat().st_size / 1e6:.2f} MB")
    loads, rates, hovers = [], [], []
    for _ in range(REPEATS):
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        loads.append(seconds_to_first_frame(page, out))
        rates.append(frame_rate(page))
        hovers += hover_times(page)
        page.close()
    print_measure("first frame", loads, "s", f"allowed: {case.seconds:.0f}")
    print_measure("slider", rates, "frames per second", f"at least: {case.rate:.0f}")
    print_measure("hover", hovers, "ms", f"allowed: {case.hover:.0f}")


def print_times() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        empty = explorer(np.zeros((1, 2)), Path(folder, "empty.html")).stat().st_size
        print(f"a file of one point has {empty:,} bytes, allowed: {MAX_OVERHEAD:,}")
        browser = playwright.chromium.launch(executable_path=chromium(), args=SOFTWARE)
        for case in CASES:
            measure(case, browser, folder)
        browser.close()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


# Screenshots

VIEWS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1280, "height": 800}},
    "dark": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
    "phone": {
        "viewport": {"width": 390, "height": 844},
        "device_scale_factor": 2,
        "is_mobile": True,
        "has_touch": True,
    },
}


def digits(out: Path) -> None:
    from sklearn.datasets import load_digits

    data = load_digits()
    model = LaptSNE(random_state=0).fit(data.data)
    columns = {"digit": data.target, "ink": data.data.sum(axis=1)}
    images = (data.images * 255 / 16).astype("uint8")
    path = contraction_path(model, data.data, n_maps=5)
    table = {"labels": model.labels_, "clusters": model.clusters_}
    explorer(path, out, columns=columns, images=images, color="digit", title="Digits", **table)


def pbmc68k(out: Path) -> None:
    import scanpy

    cells = scanpy.datasets.pbmc68k_reduced()
    model = LaptSNE(random_state=0).fit(cells.obsm["X_pca"])
    maps = {"LaptSNE": model.embedding_, "UMAP": cells.obsm["X_umap"]}
    columns = {"columns": cells.obs, "features": cells.X, "feature_names": cells.var_names, "color": "bulk_labels"}
    explorer(
        maps,
        out,
        **columns,
        labels=model.labels_,
        clusters=model.clusters_,
        tree=model.cluster_tree_,
        title="68k PBMCs, reduced",
    )


def text(out: Path) -> None:
    file = Path(os.environ["LAPTSNE_DATA"], "suite", "text_20news_tfidf.npz")
    data = np.load(file, allow_pickle=False)
    model = LaptSNE(metric="cosine", max_iter=500, random_state=0).fit(data["X"])
    names = data["classes"][data["y"]]
    explorer(model, out, columns={"newsgroup": names}, title="20 newsgroups")


def million(out: Path) -> None:
    rng = np.random.default_rng(0)
    n, n_clusters = 1_000_000, 40
    labels = rng.integers(n_clusters, size=n)
    centres, widths = rng.normal(scale=40, size=(n_clusters, 2)), rng.uniform(1, 7, (n_clusters, 2))
    angle = rng.normal(size=n)
    offsets = np.stack([rng.normal(size=n) + angle**2, angle + 0.3 * rng.normal(size=n)], axis=1)
    Y = centres[labels] + widths[labels] * offsets
    columns = {"group": np.char.add("group ", labels.astype(str)), "depth": rng.gamma(2, size=n).astype(np.float32)}
    explorer(Y, out, columns=columns, title="A million points")


SETS: dict[str, Callable[[Path], None]] = {
    "digits": digits, "pbmc68k": pbmc68k, "text": text, "million": million,
}  # fmt: skip


def opened(browser: Browser, page_file: Path, view: str) -> Page:
    """Return the page once it is drawn."""
    page = browser.new_page(**VIEWS[view])
    page.goto(page_file.resolve().as_uri())
    while not page.evaluate("Boolean(window.explorer && explorer.firstFrame)"):
        page.wait_for_timeout(50)
    page.wait_for_timeout(600)
    return page


def select(page: Page) -> None:
    """Select the first eighth of the rows, and pin one of them."""
    box = page.locator("#map").bounding_box()
    assert box is not None
    page.evaluate("explorer.selected = [...Array(Math.ceil(explorer.points / 8)).keys()]")
    page.wait_for_timeout(300)
    x, y = page.evaluate("explorer.screen(3)")
    page.mouse.click(box["x"] + x, box["y"] + y)
    page.wait_for_timeout(600)


def photograph(browser: Browser, page_file: Path, folder: Path, name: str) -> None:
    """Save the page in every view, but for the dark one also with a selection and a pinned point."""
    for view in VIEWS:
        page = opened(browser, page_file, view)
        page.screenshot(path=folder / f"{name}-{view}.png")
        if view != "dark":
            select(page)
            page.screenshot(path=folder / f"{name}-{view}-selected.png")
        page.close()


def photograph_for_readme(browser: Browser, out: Path) -> None:
    """Save the light view of the digits, with the pointer on one of them."""
    with tempfile.TemporaryDirectory() as folder:
        page_file = Path(folder, "digits.html")
        digits(page_file)
        page = opened(browser, page_file, "light")
        box = page.locator("#map").bounding_box()
        assert box is not None
        x, y = page.evaluate("explorer.screen(3)")
        page.mouse.move(box["x"] + x, box["y"] + y)
        page.wait_for_timeout(300)
        page.screenshot(path=out)


def chromium() -> str:
    """Return the path of the browser."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(found for name in names if (found := shutil.which(name)))


def take_screenshots(target: Path, names: list[str]) -> None:
    """Write an image for the README, or a folder of them."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=SOFTWARE)
        if target.suffix == ".png":
            photograph_for_readme(browser, target)
            return
        target.mkdir(exist_ok=True)
        for name in names:
            page_file = target / f"{name}.html"
            if not page_file.exists():
                SETS[name](page_file)
            photograph(browser, page_file, target, name)
        browser.close()


def parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__)
    parts = parser.add_subparsers(dest="part", required=True)
    parts.add_parser("time")
    screenshots = parts.add_parser("screenshots")
    screenshots.add_argument("target", type=Path, metavar="FOLDER")
    screenshots.add_argument("sets", nargs="*", metavar="SET", help=f"{', '.join(SETS)}; all by default")
    return parser


def main() -> None:
    args = parser().parse_args()
    if args.part == "time":
        print_times()
    else:
        take_screenshots(args.target, args.sets or list(SETS))


if __name__ == "__main__":
    main()
