"""The explorer with 100,000 points and seven maps: file size, time to the first frame, frame rate.

python benchmarks/explorer.py

Runs in headless Chromium with software rendering, as on a machine without a graphics card. The frame rate is measured
while the mouse drags the slider from end to end and back. Medians over five runs.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page, sync_playwright

from laptsne.contraction_path import ContractionPath
from laptsne.plotting import explorer

N_POINTS, N_MAPS, N_CLUSTERS = 100_000, 7, 20
REPEATS = 5
DRAG_SECONDS = 3.0
SOFTWARE = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]


def blobs(rng: np.random.Generator) -> tuple[ContractionPath, np.ndarray[Any, Any]]:
    """Return a path along which clusters contract, and the cluster of each point."""
    labels = rng.integers(N_CLUSTERS, size=N_POINTS)
    centres = rng.normal(scale=40, size=(N_CLUSTERS, 2))
    offsets = rng.normal(scale=8, size=(N_POINTS, 2))
    shares = np.linspace(0, 1, N_MAPS)
    maps = np.stack([centres[labels] * (1 + 0.3 * share) + offsets * (1 - 0.8 * share) for share in shares])
    eigenvalues = np.outer(1 - 0.9 * shares, np.linspace(0, 0.1, N_CLUSTERS))
    curves = 3 + shares, 0.98 - 0.03 * shares, 0.3 - 0.1 * shares, 0.3 - 0.15 * shares
    return ContractionPath(0.08 * shares, maps.astype(np.float32), *curves, eigenvalues, 3), labels


def seconds_to_first_frame(page: Page, path: Path) -> float:
    """Return the seconds from the start of the navigation to the first frame."""
    page.goto(path.as_uri())
    while not page.evaluate("Boolean(window.explorer && explorer.firstFrame)"):
        time.sleep(0.02)
    return float(page.evaluate("explorer.firstFrame")) / 1000


def frame_rate(page: Page) -> float:
    """Return the frames per second while the mouse drags the slider."""
    box = page.locator("#contraction input").bounding_box()
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


def main() -> None:
    path, labels = blobs(np.random.default_rng(0))
    chromium = next(
        found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))
    )
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        start = time.perf_counter()
        columns = {"label": [f"cluster {label}" for label in labels]}
        out = explorer(path, Path(folder, "map.html"), columns=columns, title="Blobs")
        print(f"{N_POINTS:,} points, {N_MAPS} maps, written in {time.perf_counter() - start:.1f} s")
        size, allowed = out.stat().st_size, 3e6 + 12 * N_POINTS * N_MAPS
        print(f"file     {size / 1e6:.2f} MB, {size / allowed:.2f} of the limit (3 MB plus 12 bytes per point and map)")
        browser = playwright.chromium.launch(executable_path=chromium, args=SOFTWARE)
        loads, rates = [], []
        for _ in range(REPEATS):
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            loads.append(seconds_to_first_frame(page, out))
            rates.append(frame_rate(page))
            page.close()
        browser.close()
    print(f"first frame after {statistics.median(loads):.2f} s ({min(loads):.2f} to {max(loads):.2f})")
    print(f"slider   {statistics.median(rates):.0f} frames per second ({min(rates):.0f} to {max(rates):.0f})")
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
