"""Screenshots of the explorer: light, dark and on a phone, beside datamapplot's plot of the same map.

python benchmarks/screenshots.py FOLDER [digits pbmc68k text million]
python benchmarks/screenshots.py docs/images/explorer.png

The second form makes the image in the README.

Maps are computed once and kept in FOLDER; delete them there to compute them again. The set "text" is
text_20news_tfidf of the suite in LAPTSNE_DATA, and "pbmc68k" is part of scanpy.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright

from laptsne import LaptSNE
from laptsne.contraction import contraction_path
from laptsne.plotting import explorer

SOFTWARE = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
MAX_COMPARED = 20_000  # points in the plot of datamapplot, which takes many minutes for a million
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


def digits(out: Path) -> tuple[Any, Any]:
    from sklearn.datasets import load_digits

    data = load_digits()
    model = LaptSNE(random_state=0).fit(data.data)
    columns = {"digit": data.target, "ink": data.data.sum(axis=1)}
    images = (data.images * 255 / 16).astype("uint8")
    path = contraction_path(model, data.data, n_maps=5)
    table = {"labels": model.labels_, "clusters": model.clusters_}
    explorer(path, out, columns=columns, images=images, color="digit", title="Digits", **table)
    return model.embedding_, data.target.astype(str)


def pbmc68k(out: Path) -> tuple[Any, Any]:
    import scanpy

    cells = scanpy.datasets.pbmc68k_reduced()
    model = LaptSNE(random_state=0).fit(cells.obsm["X_pca"])
    maps = {"LaptSNE": model.embedding_, "UMAP": cells.obsm["X_umap"]}
    table = [{"cluster": k, "size": int((model.labels_ == k).sum()), "verdict": "given"} for k in set(model.labels_)]
    color = "bulk_labels"
    explorer(maps, out, columns=cells, color=color, labels=model.labels_, clusters=table, title="68k PBMCs, reduced")
    return model.embedding_, cells.obs[color].to_numpy(str)


def text(out: Path) -> tuple[Any, Any]:
    file = Path(os.environ["LAPTSNE_DATA"], "suite", "text_20news_tfidf.npz")
    data = np.load(file, allow_pickle=False)
    model = LaptSNE(metric="cosine", max_iter=500, random_state=0).fit(data["X"])
    names = data["classes"][data["y"]]
    explorer(model, out, columns={"newsgroup": names}, title="20 newsgroups")
    return model.embedding_, names


def million(out: Path) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    n, n_clusters = 1_000_000, 40
    labels = rng.integers(n_clusters, size=n)
    centres, widths = rng.normal(scale=40, size=(n_clusters, 2)), rng.uniform(1, 7, (n_clusters, 2))
    angle = rng.normal(size=n)
    offsets = np.stack([rng.normal(size=n) + angle**2, angle + 0.3 * rng.normal(size=n)], axis=1)
    Y = centres[labels] + widths[labels] * offsets
    columns = {"group": np.char.add("group ", labels.astype(str)), "depth": rng.gamma(2, size=n).astype(np.float32)}
    explorer(Y, out, columns=columns, title="A million points")
    return Y, columns["group"]


SETS: dict[str, Callable[[Path], tuple[Any, Any]]] = {
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


def compare(Y: Any, labels: Any, out: Path) -> None:
    """Save the plot of datamapplot."""
    import datamapplot

    rows = slice(None, None, -(-len(Y) // MAX_COMPARED))
    Y, labels = Y[rows], labels[rows]
    style = {"figsize": (9, 8), "use_medoids": len(Y) < MAX_COMPARED, "font_family": "DejaVu Sans"}
    figure, _ = datamapplot.create_plot(Y, labels, **style)
    figure.savefig(out, dpi=90)


def main() -> None:
    folder = Path(sys.argv[1])
    chromium = next(found for name in ("chromium", "google-chrome") if (found := shutil.which(name)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=SOFTWARE)
        if folder.suffix == ".png":
            photograph_for_readme(browser, folder)
            return
        folder.mkdir(exist_ok=True)
        for name in sys.argv[2:] or SETS:
            page_file = folder / f"{name}.html"
            if not page_file.exists():
                Y, labels = SETS[name](page_file)
                compare(Y, labels, folder / f"{name}-datamapplot.png")
            photograph(browser, page_file, folder, name)
        browser.close()


if __name__ == "__main__":
    main()
