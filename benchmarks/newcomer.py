"""What does a new user meet, step by step, and how long is the wait for the first map?

python benchmarks/newcomer.py walk                    # five minutes: a line per step, and exit code 1 if one fails
python benchmarks/newcomer.py walk tables explorer    # parts: command, tables, explorer, python, documents
python benchmarks/newcomer.py startup                 # three minutes

``walk`` runs the command in a temporary folder, opens explorers in a headless Chromium, and calls the library. Of each
step it prints "ok" or "MISSING" and what was observed; steps that need a package which is not installed, such as
palmerpenguins and vega_datasets, are skipped. Needs ``pip install ".[test]"``.

``startup`` times the import, the first fit of a process and the command, with a cold and a warm cache of kernels:
medians over fresh processes. The cache is cold in a process that starts with an empty cache directory, as after an
installation. The times of the command are those of the whole process, interpreter and imports included.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from shared import command_line

IMPORT = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
FITS = """
import time
from sklearn.datasets import load_digits
from laptsne import LaptSNE
X, _ = load_digits(return_X_y=True)
times = []
for _ in range(2):
    start = time.perf_counter()
    LaptSNE(random_state=0, max_iter=250).fit(X)
    times.append(time.perf_counter() - start)
print(times[0] - times[1])
"""
COMMAND = ["-m", "laptsne", "embed", "digits", "--force"]
ROOT = Path(__file__).parent.parent
N = 240  # rows of the tables that are made

# Walk

STEPS: list[tuple[str, str, Callable[[], str]]] = []  # part, what should be, and a check that returns what is


def step(part: str, what: str) -> Callable[[Callable[[], str]], Callable[[], str]]:
    def add(check: Callable[[], str]) -> Callable[[], str]:
        STEPS.append((part, what, check))
        return check

    return add


def walk(parts: list[str]) -> int:
    """Print a line per step; return the number of those that fail."""
    warnings.simplefilter("ignore")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for part, what, check in STEPS:
            if parts and part not in parts:
                continue
            try:
                found, observed = "ok", check()
            except ImportError as error:
                found, observed = "skipped", str(error)
            except Exception as error:  # whatever a user would meet
                found, observed = "MISSING", f"{type(error).__name__}: {error}"
                failed += 1
            print(f"{found:8} {part:10} {what}: {' '.join(observed.split())[:300]}", flush=True)
        os.chdir(ROOT)
    return failed


def laptsne(*words: Any, code: int = 0) -> str:
    """Run the command; return what it says."""
    command = [sys.executable, "-m", "laptsne", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, f"exit code {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def line(said: str, beginning: str) -> str:
    """Return the first line that begins so."""
    found = [line for line in said.splitlines() if line.startswith(beginning)]
    assert found, f"no line begins with {beginning!r}: {said}"
    return found[0]


def table(name: str, columns: dict[str, Any], delimiter: str = ",", encoding: str = "utf-8") -> str:
    """Write a CSV file and return its name."""
    with Path(name).open("w", newline="", encoding=encoding) as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return name


def groups(n_features: int, n_groups: int = 3, n: int = N) -> tuple[Any, Any]:
    """Return features of separate groups, and the group of each row."""
    rng = np.random.default_rng(0)
    group = rng.integers(n_groups, size=n)
    return rng.normal(scale=8, size=(n_groups, n_features))[group] + rng.normal(size=(n, n_features)), group


def measured(n_features: int = 4, **others: Any) -> dict[str, Any]:
    return {f"f{i}": column.round(3) for i, column in enumerate(groups(n_features)[0].T)} | others


def texts_of(path: str) -> list[str]:
    """Return the texts of an SVG."""
    return re.findall(r"<!-- (.*?) -->", Path(path).read_text())


@contextmanager
def page(path: str, width: int = 1000) -> Iterator[Any]:
    from browser import chromium, opened  # of the tests: nothing may fail on the page, or be requested by it

    with chromium() as browser, opened(browser, Path(path).resolve(), width=width, height=700) as found:
        yield found


# The command


@step("command", "a second `embed digits` works; other outputs need --force")
def _() -> str:
    laptsne("embed", "digits")
    said = laptsne("embed", "digits")
    table("t.csv", measured())
    laptsne("embed", "t.csv")
    refused = laptsne("embed", "t.csv", code=2)
    assert "--force" in refused
    return f"{line(said, 'files')}; {refused}"


@step("command", "numbers that count or date rows are named and not embedded")
def _() -> str:
    counted = {"year": np.arange(N) % 3 + 2007, "Sample Number": np.random.default_rng(0).permutation(N), "n": range(N)}
    days = [str(datetime.date(2024, 1, 1) + datetime.timedelta(days=i)) for i in range(N)]
    said = laptsne("embed", table("rows.csv", measured(**counted, day=days)))
    assert line(said, "embedded").endswith(": f0, f1, f2, f3")
    assert line(said, "not embedded, since they hold dates").endswith(": year, day")
    return line(said, "not embedded, since they count")


@step("command", "amounts and shares are numbers; a single column is warned of")
def _() -> str:
    amounts = {"price": [f"${1000 + i % 37:,.2f}" for i in range(N)], "share": [f"{i % 17}.5%" for i in range(N)]}
    said = laptsne("embed", table("prices.csv", amounts), "--scale", "none")
    assert line(said, "embedded").endswith(": price, share")
    return f"{line(said, 'read without $')}; {line(laptsne('embed', table('one.csv', measured(1))), 'laptsne: only')}"


@step("command", "a gene is a scale; NAME:category and NAME:number decide; --distinguish ranks genes")
def _() -> str:
    import anndata
    import scanpy

    rng, group = np.random.default_rng(0), groups(1)[1]
    counts = rng.poisson(rng.gamma(0.5, 2, size=(3, 200))[group]).astype(np.float32)
    cells = anndata.AnnData(counts)
    cells.var_names = [f"GENE{i}" for i in range(200)]
    scanpy.pp.pca(cells, n_comps=20)
    cells.write("cells.h5ad")
    laptsne("embed", "cells.h5ad", "--color", "GENE7", "--plot", "gene.svg", "--distinguish", "genes.csv")
    laptsne("embed", "cells.h5ad", "--color", "GENE7:category", "--plot", "category.svg")
    assert "colour: GENE7" in texts_of("gene.svg")
    assert Path("gene.svg").read_text().count("<image") == 1, "no colour bar"
    assert "<image" not in Path("category.svg").read_text()
    row = Path("genes.csv").read_text().splitlines()[1]
    assert "GENE" in row
    return f"a colour bar, none; {row}"


@step("command", "cp1252 is recognised, --encoding names others; .xlsx; repeated headers are numbered")
def _() -> str:
    from openpyxl import Workbook

    table("excel.csv", measured(Größe=["für"] * N), ";", "cp1252")
    said = line(laptsne("embed", "excel.csv"), "read as")
    laptsne("embed", "excel.csv", "--encoding", "cp1252", "--force")
    Path("twice.csv").write_text(Path(table("once.csv", measured(a=range(N)))).read_text().replace("f1", "f0", 1))
    repeated = line(laptsne("embed", "twice.csv"), "columns of a name")
    book = Workbook()
    book.active.append(["a", "b"])
    for row in groups(2)[0].tolist():
        book.active.append(row)
    book.save("book.xlsx")
    return f"{said}; {repeated}; {line(laptsne('embed', 'book.xlsx'), 'points')}"


@step("command", "thirty long labels stand on the map, beside a panel of the clusters")
def _() -> str:
    from matplotlib.image import imread

    X, group = groups(8, 30, 1500)
    names = [f"Books and stationery in warehouse {i}" for i in group]
    table("long.csv", {f"f{i}": column for i, column in enumerate(X.T)} | {"warehouse": names})
    laptsne("embed", "long.csv", "--label", "warehouse", "--plot", "long.png")
    laptsne("embed", "long.csv", "--label", "warehouse", "--plot", "long.svg")
    height, width = imread("long.png").shape[:2]
    texts = texts_of("long.svg")  # without names on the map, which are outlined
    assert width < 2 * height
    assert texts == ["colour: warehouse", "colour: cluster", "long.csv: 1,500 points"]
    return f"{width} x {height} pixels, no legend; {'; '.join(texts)}"


@step("command", "gap explains its number, and marks the largest gap")
def _() -> str:
    said = laptsne("gap", "digits")
    return f"{line(said, 'clusters')}; {line(said, 'gap:')}; {next(x for x in said.splitlines() if 'largest gap' in x)}"


@step("command", "--method umap; transform --plot writes the table as well")
def _() -> str:
    said = laptsne("embed", table("old.csv", measured()), "--method", "umap", "--save", "m.laptsne", "--out", "u.csv")
    laptsne("transform", "m.laptsne", "old.csv", "--plot", "new.png")
    return f"{line(said, 'contraction')}; {sorted(str(path) for path in Path().glob('old-placed*'))} beside new.png"


# Tables

WORDS = ("Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree")


def embedded(name: str, columns: str, *options: str) -> str:
    """Embed a file; return the columns that are embedded, the clusters, and what is warned of."""
    said = laptsne("embed", name, *options, "--html", f"{name}.html", "--force")
    found = line(said, "embedded").partition(": ")[2]
    assert found == columns or (columns.endswith("*") and found.startswith(columns[:-1])), found
    assert Path(f"{name}.html").stat().st_size > 100_000
    return f"{line(said, 'clusters').split(maxsplit=1)[1]}; {' '.join(x for x in said.splitlines() if 'laptsne:' in x)}"


@step("tables", "penguins_raw")
def _() -> str:
    from palmerpenguins import load_penguins_raw

    load_penguins_raw().to_csv("penguins_raw.csv", index=False)
    refused = laptsne("embed", "penguins_raw.csv", code=2)
    assert "--impute median" in refused
    numbers = "Culmen Length (mm), Culmen Depth (mm), Flipper Length (mm), Body Mass (g), Delta 15 N (o/oo), "
    return embedded("penguins_raw.csv", f"{numbers}Delta 13 C (o/oo)", "--impute", "median", "--scale", "standard")


def published(name: str) -> Any:
    from vega_datasets import local_data

    getattr(local_data, name)().to_csv(f"{name}.csv", index=False)
    return f"{name}.csv"


@step("tables", "cars")
def _() -> str:
    columns = "Miles_per_Gallon, Cylinders, Displacement, Horsepower, Weight_in_lbs, Acceleration"
    return embedded(published("cars"), columns, "--impute", "drop", "--scale", "standard", "--color", "Origin")


@step("tables", "weather with dates")
def _() -> str:
    columns = "precipitation, temp_max, temp_min, wind"
    return embedded(published("seattle_weather"), columns, "--color", "date", "--scale", "standard")


@step("tables", "stocks")
def _() -> str:
    observed = embedded(published("stocks"), "price")
    assert "only one column is embedded" in observed
    return observed


@step("tables", "an Excel CSV in cp1252, with decimal commas and semicolons")
def _() -> str:
    X, group = groups(2)
    sizes, prices = (np.abs(column + 50).round(2).astype(str) for column in X.T)
    columns = {
        "Kunden-Nr.": 10_000 + np.random.default_rng(0).permutation(N),
        "Ort": np.array(["Köln", "Ulm", "Aue"])[group],
    }
    columns |= {"Größe (m²)": [size.replace(".", ",") for size in sizes]}
    columns |= {"Preis": [f"1.{float(price):06.2f} €".replace(".", ",").replace(",", ".", 1) for price in prices]}
    return embedded(table("umsatz.csv", columns, ";", "cp1252"), "Größe (m²), Preis", "--scale", "standard")


@step("tables", "a survey with Likert scales and comments")
def _() -> str:
    rng, group = np.random.default_rng(0), groups(1, 2)[1]
    answers = np.clip(rng.normal(np.where(group, 4.2, 1.8)[:, None], 0.7, (N, 6)).round(), 1, 5).astype(int)
    start = datetime.datetime(2024, 3, 1, 9)
    columns: dict[str, Any] = {
        "Timestamp": [(start + datetime.timedelta(minutes=37 * i)).isoformat() for i in range(N)]
    }
    columns |= {f"Q{i + 1}. How much, if at all?": column for i, column in enumerate(answers.T)}
    columns |= {"Overall": [WORDS[answer - 1] for answer in answers[:, 0]], "Comments": ["Fine, thanks", ""] * (N // 2)}
    table("words.csv", {f"Q{i}": [WORDS[answer - 1] for answer in column] for i, column in enumerate(answers.T)})
    refused = laptsne("embed", "words.csv", code=2)
    assert "Write categories as numbers" in refused
    return embedded(table("survey.csv", columns), "Q1. How much, if at all?*", "--color", "Overall") + refused


@step("tables", "a one-hot table")
def _() -> str:
    group = groups(1)[1]
    columns = {f"{name}_{i}": group == i for name in ("colour", "size") for i in range(3)}
    said = laptsne(
        "embed", table("onehot.csv", columns | {"customer_id": range(5000, 5000 + N)}), "--plot", "onehot.svg"
    )
    assert line(said, "embedded").endswith(": " + ", ".join(columns))
    titles = [text for text in texts_of("onehot.svg") if "cluster" in text]
    assert ("no clusters" in titles) == ("none" in line(said, "clusters")), titles
    return f"{line(said, 'clusters')}; {line(said, 'not embedded')}; titles {titles}"


@step("tables", "30 % of the values missing")
def _() -> str:
    holes = np.where(np.random.default_rng(0).random((N, 4)) < 0.3, "", groups(4)[0].round(2).astype(str))
    table("missing.csv", {f"v{i}": column for i, column in enumerate(holes.T)})
    assert "--impute median" in laptsne("embed", "missing.csv", code=2)
    observed = embedded("missing.csv", "v0, v1, v2, v3", "--impute", "median")
    assert "are medians of their columns" in observed
    return observed


@step("tables", "a wide table of genes")
def _() -> str:
    rng, group = np.random.default_rng(0), groups(1)[1]
    counts = rng.poisson(rng.gamma(0.6, 2, (3, 1500))[group])
    columns = {"sample": [f"S{i:03}" for i in range(N)], "tissue": group.astype(str)}
    table("genes.csv", columns | {f"GENE{i}": column for i, column in enumerate(counts.T)})
    observed = embedded("genes.csv", "GENE0, GENE1, *", "--log1p", "--color", "tissue", "--drop", "tissue")
    assert "3: 3 clear" in observed
    return observed


@step("tables", "sensor logs with time stamps")
def _() -> str:
    X, state = groups(3)
    stamps = [datetime.datetime(2024, 5, 1) + datetime.timedelta(seconds=30 * i) for i in range(N)]
    columns = {"timestamp": [f"{stamp.isoformat()}+00:00" for stamp in stamps]}
    columns |= {"unix": [int(stamp.timestamp()) for stamp in stamps], "device": [f"a7-{i % 3:02}" for i in range(N)]}
    columns |= {name: column.round(2) for name, column in zip(("temperature_C", "rpm", "vibration"), X.T, strict=True)}
    columns |= {"status": np.array(["idle", "warm", "run"])[state], "seq": range(N)}
    return embedded(table("sensors.csv", columns), "temperature_C, rpm, vibration", "--color", "timestamp")


# The explorer


def digits_page() -> str:
    if not Path("walk.html").exists():
        laptsne("embed", "digits", "--html", "walk.html")
    return "walk.html"


@step("explorer", "categories are named once per island, names cover no others")
def _() -> str:
    with page(digits_page()) as shown:
        names = shown.read("explorer.names")
    texts = [" ".join(name["lines"]) for name in names]
    assert set(texts) == set("0123456789")
    assert len(texts) > len(set(texts)), "no category with several islands"
    boxes = [(b["left"], b["top"], b["left"] + b["width"], b["top"] + b["height"]) for b in names]
    assert not [
        1 for i, a in enumerate(boxes) for b in boxes[:i] if a[0] < b[2] > b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
    ]
    return f"at 1,000 pixels: {', '.join(texts)}"


@step("explorer", "panel of clusters: words and bars, in the colours of the map, figures on request")
def _() -> str:
    with page(digits_page()) as shown:
        shown.page.get_by_label("Colour by", exact=True).select_option(label="cluster")
        shown.settle()
        rows = shown.page.locator("#evidence button")
        n_rows, first = rows.count(), rows.first
        text, title = first.inner_text(), first.get_attribute("title") or first.get_attribute("aria-label")
        swatches = shown.read("document.querySelectorAll('#evidence .swatch').length")
    assert any(word in text for word in ("clear", "likely", "doubtful")), text
    assert swatches == n_rows > 8, f"{swatches} of {n_rows} clusters have the colour of the map"
    return f"{text!r}; on request: {title!r}; {swatches} colours"


@step("explorer", "legend buttons are read with their numbers of points")
def _() -> str:
    with page(digits_page()) as shown:
        button = shown.page.get_by_role("button", name=re.compile("^label 0, 178 points")).first
        return str(button.get_attribute("aria-label") or button.inner_text())


@step("explorer", "charts of columns filter each other; names of features are readable at 1,000 pixels")
def _() -> str:
    laptsne("embed", table("columns.csv", measured(3, answer=["one", "two"] * (N // 2))), "--html", "columns.html")
    with page("columns.html") as shown:
        summaries = [text.strip() for text in shown.page.locator("#charts summary").all_inner_texts()]
        shown.page.locator("#charts").get_by_role("button", name=re.compile("^answer one, 120 points")).first.click()
        shown.settle()
        left = shown.read("explorer.lit.length")
    assert left == N // 2
    assert {"f0", "f1", "f2"} <= set(summaries)
    return f"charts of {', '.join(summaries)}; {left} of {N} points after a click on a category"


@step("explorer", "a map in three dimensions turns")
def _() -> str:
    laptsne("embed", table("solid.csv", measured(5)), "--dims", "3", "--html", "solid.html")
    with page("solid.html") as shown:
        before, box = shown.read("explorer.screen(0)"), shown.page.locator("#stage").bounding_box()
        middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] - 20)
        shown.drag([middle, (middle[0] + 150, middle[1])])
        shown.settle()
        after = shown.read("explorer.screen(0)")
    assert before != after
    return f"point 0 moves from {np.round(before)} to {np.round(after)}"


@step("explorer", "nbconvert's HTML shows the map offline")
def _() -> str:
    import nbformat
    from nbconvert import HTMLExporter
    from nbconvert.preprocessors import ExecutePreprocessor

    code = (
        "from sklearn.datasets import load_iris\nfrom laptsne import LaptSNE\nfrom laptsne.plotting import explorer\n"
    )
    code += "explorer(LaptSNE(max_iter=50, random_state=0).fit(load_iris().data))"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    ExecutePreprocessor(timeout=120, store_widget_state=False).preprocess(notebook)
    images = re.findall('<img[^>]*src="data:image/png', HTMLExporter().from_notebook_node(notebook)[0])
    assert images
    return f"{len(images)} image within the file"


@step("explorer", "the slider is saved as a film")
def _() -> str:
    from sklearn.datasets import load_iris

    from laptsne import LaptSNE
    from laptsne.contraction import contraction_path

    X, y = load_iris(return_X_y=True)
    model = LaptSNE(n_clusters=3, max_iter=100, random_state=0).fit(X)
    film = contraction_path(model, X, n_maps=3).save("path.gif", y)
    assert film.read_bytes().startswith(b"GIF89a")
    return f"path.gif, {film.stat().st_size:,} bytes"


# In Python


def refusal(call: Callable[[], Any]) -> str:
    """Return what is said of a call that must fail, within a second."""
    begin = time.perf_counter()
    try:
        call()
    except (TypeError, ValueError) as error:
        assert time.perf_counter() - begin < 1, "slow"
        return str(error)
    raise AssertionError("it is not refused")


@step("python", "fit(adata) names laptsne.scanpy at once")
def _() -> str:
    import anndata

    from laptsne import LaptSNE

    said = refusal(lambda: LaptSNE().fit(anndata.AnnData(groups(4)[0])))
    assert "laptsne.scanpy" in said
    return said


@step("python", "n_components above 3 and precomputed_knn= are answered")
def _() -> str:
    from laptsne import LaptSNE

    X = groups(20)[0]
    said = refusal(lambda: LaptSNE(n_components=10).fit(X)), refusal(lambda: LaptSNE(precomputed_knn=(X, X)))
    assert "labels_" in said[0]
    assert "metric='precomputed'" in said[1]
    return "; ".join(said)


@step("python", "eigenvalues(model); colour bars have names; dark styles; perturbation has a wide scale; 3-D is whole")
def _() -> str:
    import matplotlib as mpl

    mpl.use("Agg")
    import pandas as pd
    from matplotlib import pyplot as plt

    from laptsne import LaptSNE, plotting

    X, group = groups(5)
    model = LaptSNE(random_state=0).fit(X)
    marked = plotting.eigenvalues(model, figsize=(4, 3)).texts[0].get_text()
    bar = plotting.scatter(model, pd.Series(X[:, 0], name="ink"), figsize=(4, 4)).figure.axes[-1].get_ylabel()
    assert bar == "ink"
    with plt.style.context("dark_background"):
        ax = plotting.scatter(model, group, figsize=(4, 4))
        darkest = (ax.collections[0].get_facecolors()[:, :3] @ [0.2126, 0.7152, 0.0722]).min()
    assert darkest > 0.2
    model.diagnose()
    scale = plotting.scatter(model, model.reliability_, figsize=(4, 4)).figure.axes[-1].get_yscale()
    assert scale == "log"
    ax = plotting.scatter(LaptSNE(n_components=3, max_iter=50, random_state=0).fit(X), figsize=(4, 4))
    box = ax.get_tightbbox()
    assert box is not None
    assert box.x0 >= 0, "cut off"
    plt.close("all")
    return f"{marked}; bar {bar!r}; darkest {darkest:.2f} on black; {scale}"


@step("python", "update keeps rows near their positions; align makes a series")
def _() -> str:
    from laptsne import LaptSNE, align

    X = groups(5)[0]
    model = LaptSNE(random_state=0).fit(X[:200])
    before = model.embedding_.copy()
    after = model.update(X).embedding_[:200]
    moved = np.median(np.linalg.norm(after - before, axis=1)) / before.std()
    assert moved < 0.1
    maps = [one.embedding_.shape for one in align([X[:150], X[50:]], [range(150), range(50, N)])]
    return f"median moved {moved:.3f} standard deviations; maps {maps}"


@step("python", "scanpy: tl.lapumap, rng=, graphs")
def _() -> str:
    import anndata
    import scanpy

    import laptsne.scanpy as lsc

    cells = anndata.AnnData(groups(6)[0].astype(np.float32))
    scanpy.pp.neighbors(cells, use_rep="X")
    lsc.tl.lapumap(cells)
    lsc.tl.laptsne(cells, rng=np.random.default_rng(0))
    return ", ".join(cells.obsm)


# Documents


@step("documents", "README: two screens of text, installation from the repository, the skipped tests")
def _() -> str:
    text = (ROOT / "README.md").read_text()
    n_lines = len(re.sub(r"^\|.*\n", "", text, flags=re.MULTILINE).splitlines())
    assert n_lines < 130
    assert "git+https://" in text
    assert "apt-get install chromium" in text
    return f"{n_lines} lines beside the tables"


@step("documents", "version, dated changelog, R, plotly and altair, AlignedUMAP")
def _() -> str:
    import laptsne as package

    dated = re.search(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert dated is not None
    assert package.__version__ == dated[1]
    text = (ROOT / "docs" / "coming-from.md").read_text()
    assert all(word in text for word in ("reticulate", "plotly", "altair", "AlignedUMAP"))
    return f"{dated[0]}, docs/coming-from.md"


@step("documents", "the paper has the sections of JOSS, meta.yaml the fields of scverse")
def _() -> str:
    found = re.findall(r"^# (.*)", (ROOT / "paper" / "paper.md").read_text(), re.MULTILINE)
    assert {"State of the field", "Software design", "Research impact statement", "AI usage disclosure"} <= set(found)
    fields = re.findall(r"^(\w+):", (ROOT / "packaging" / "scverse" / "meta.yaml").read_text(), re.MULTILINE)
    return f"{', '.join(found)}; {', '.join(fields)}"


# Start-up


def run(arguments: list[str], folder: str, cache: str) -> str:
    """Return what Python prints in a folder, with a directory of compiled code below it."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(Path(folder) / cache)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=True).stdout


def seconds_of_command(folder: str) -> float:
    start = time.perf_counter()
    run(COMMAND, folder, "command")
    return time.perf_counter() - start


def print_startup(repeats: int) -> None:
    times: dict[str, list[float]] = {}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            measured = {
                "import sklearn": float(run(["-c", IMPORT.format("sklearn")], folder, "import")),
                "import laptsne": float(run(["-c", IMPORT.format("laptsne")], folder, "import")),
                "first minus second fit, cold cache (limit 15)": float(run(["-c", FITS], folder, "fits")),
                "first minus second fit, warm cache (limit 2)": float(run(["-c", FITS], folder, "fits")),
                "laptsne embed digits, first time (limit 5)": seconds_of_command(folder),
                "laptsne embed digits, second time (limit 2)": seconds_of_command(folder),
            }
        for name, seconds in measured.items():
            times.setdefault(name, []).append(seconds)
    for name, found in times.items():
        print(f"{name:47} {statistics.median(found):6.2f} s")


def parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__)
    what = parser.add_subparsers(dest="what", required=True)
    what.add_parser("walk").add_argument("parts", nargs="*", metavar="PART", help="all by default")
    what.add_parser("startup").add_argument("--repeats", type=int, default=5)
    return parser


def main() -> None:
    args = parser().parse_args()
    if args.what == "startup":
        print_startup(args.repeats)
    else:
        sys.exit(min(walk(args.parts), 1))


if __name__ == "__main__":
    main()
