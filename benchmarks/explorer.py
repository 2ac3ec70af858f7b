"""The explorer with many points: file size, time to the first frame, frame rate of the slider, time of a hover.

python benchmarks/explorer.py

Runs in headless Chromium with software rendering, as on a machine without a graphics card. The frame rate is measured
while the mouse drags the slider from end to end and back; a hover is the time that the page takes for a move of the
pointer, right after a move of the slider. Medians over five runs.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright

from laptsne.contraction import ContractionPath
from laptsne.plotting import explorer

N_CLUSTERS = 20
REPEATS = 5
DRAG_SECONDS = 3.0
MAX_OVERHEAD = 120_000  # bytes of a file beyond its data
SOFTWARE = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
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


def told(name: str, values: list[float], unit: str, limit: str) -> None:
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
    told("first frame", loads, "s", f"allowed: {case.seconds:.0f}")
    told("slider", rates, "frames per second", f"at least: {case.rate:.0f}")
    told("hover", hovers, "ms", f"allowed: {case.hover:.0f}")


def main() -> None:
    chromium = next(
        found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))
    )
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        empty = explorer(np.zeros((1, 2)), Path(folder, "empty.html")).stat().st_size
        print(f"a file of one point has {empty:,} bytes, allowed: {MAX_OVERHEAD:,}")
        browser = playwright.chromium.launch(executable_path=chromium, args=SOFTWARE)
        for case in CASES:
            measure(case, browser, folder)
        browser.close()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
