"""The command ``laptsne reproduce``: its store, its comparisons, its report."""

import json
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from typer.testing import CliRunner

from laptsne import cli
from reproduction import command, datasets, frontier, methods, paper, plan
from reproduction.comparison import Comparison, Count, Stat
from reproduction.figures import Picture
from reproduction.frontier import Point
from reproduction.methods import METHODS, Method
from reproduction.pages import Bullets, Document, Section, as_html, as_markdown
from reproduction.paper import Cell
from reproduction.plan import Options
from reproduction.runs import Laboratory, Run
from reproduction.store import Entry, Store, code_digest, sources_of
from reproduction.table import Entry as TableEntry
from reproduction.table import Table


class Fits:
    """A method that counts its fits, and may be told to fail or to be stopped."""

    def __init__(self):
        self.seeds, self.error = [], None

    def __call__(self, X, seed, settings):
        if self.error is not None:
            raise self.error
        self.seeds.append(seed)
        return X[:, :2] + 0.01 * seed, {}, {}


@pytest.fixture
def small(monkeypatch, rng):
    """All sets are three groups of 150 points."""
    labels = np.repeat([0, 1, 2], 50)
    X = rng.normal(scale=10, size=(3, 6))[labels] + rng.normal(size=(150, 6))
    monkeypatch.setattr(datasets, "load", lambda name: (X, labels))


@pytest.fixture
def fits(monkeypatch):
    fits = Fits()
    monkeypatch.setitem(METHODS, "PCA", Method(fits, lambda n: {}))
    return fits


@pytest.fixture
def laboratory(small, tmp_path):
    return lambda: Laboratory(Store(tmp_path))


@pytest.fixture
def reproduce(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(cli.app, ["reproduce", *map(str, arguments)])


def test_what_is_stored_is_found_and_nothing_else(tmp_path):
    store, key = Store(tmp_path), {"kind": "map", "seed": 0, "settings": {"a": (1, 2)}}
    entry = Entry({"seconds": 0.25}, {"map": np.arange(6.0).reshape(3, 2)})
    assert store.find(key) is None
    store.put(key, entry)
    found = store.find(key)
    assert found.facts == entry.facts
    np.testing.assert_array_equal(found.arrays["map"], entry.arrays["map"])
    assert store.find(key | {"seed": 1}) is None
    assert not list(tmp_path.glob(".unfinished*"))


@pytest.mark.parametrize("suffix", [".json", ".npz"])
@pytest.mark.parametrize("damage", [b"", b"{}", b"nonsense", None])
def test_a_damaged_file_is_made_anew(tmp_path, suffix, damage):
    store, key = Store(tmp_path), {"kind": "map"}
    store.put(key, Entry({"n": 1}, {"map": np.ones(3)}))
    (path,) = tmp_path.glob(f"*{suffix}")
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    made = store.get(key, lambda: Entry({"n": 2}, {"map": np.zeros(3)}))
    assert made.facts == {"n": 2}
    assert store.find(key).facts == {"n": 2}


def test_a_write_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    store, key = Store(tmp_path), {"kind": "map"}
    store.put(key, Entry({"n": 1}))

    def full(*args):
        raise OSError("no space left")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(OSError, match="no space"):
        store.put(key, Entry({"n": 2}))
    assert store.find(key).facts == {"n": 1}
    assert not list(tmp_path.glob(".unfinished*"))


def test_only_code_that_matters_counts(tmp_path, monkeypatch):
    names = {path.name for path in sources_of("laptsne.estimator")}
    assert {"estimator.py", "optimizer.py", "fourier.py", "spectrum.py"} <= names
    assert not {"cli.py", "metrics.py", "scatter.py", "progress.py", "report.py"} & names
    path = tmp_path / "module.py"
    monkeypatch.setattr("reproduction.store.sources_of", lambda module: [path])
    digests = []
    for source in ("x = 1", '"""Says something."""\nx = 1  # why', "x = 2"):
        path.write_text(source)
        code_digest.cache_clear()
        digests.append(code_digest("module"))
    code_digest.cache_clear()
    assert digests[0] == digests[1] != digests[2]


def test_a_stopped_run_is_taken_up_where_it_was(laboratory, fits):
    first = laboratory()
    first.record(Run("digits", "PCA", 0))
    fits.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        first.record(Run("digits", "PCA", 1))
    fits.error = None
    again = laboratory()
    for seed in range(2):
        record = again.record(Run("digits", "PCA", seed))
        assert record.absent is None
        assert 0 < record.scores["10-nn"] <= 1
    assert fits.seeds == [0, 1]
    unchanged = laboratory()
    unchanged.record(Run("digits", "PCA", 0))
    assert unchanged.made == 0


def test_other_settings_data_and_scores_are_other_entries(laboratory, fits):
    bench = laboratory()
    bench.record(Run("digits", "PCA", 0, purpose="frontier"))
    known = bench.record(Run("digits", "PCA", 0, purpose="table"))
    assert fits.seeds == [0]
    assert {"trustworthiness", "neighbours kept", "20-nn on training points"} <= set(known.scores)
    bench.record(Run("digits", "PCA", 0, (("whiten", True),)))
    assert fits.seeds == [0, 0]


def test_a_method_that_fails_or_is_missing_does_not_stop_the_rest(laboratory, fits, monkeypatch):
    monkeypatch.setitem(METHODS, "UMAP", Method(fits, lambda n: {}, "no_such_package", "umap-learn"))
    bench = laboratory()
    fits.error = RuntimeError("no luck")
    assert bench.record(Run("digits", "PCA")).absent == "failed: RuntimeError: no luck"
    missing = bench.record(Run("digits", "UMAP")).absent
    assert missing == 'umap-learn is not installed; pip install "laptsne[benchmark]" brings it.'
    fits.error = None
    assert laboratory().record(Run("digits", "PCA")).absent is None


def test_a_map_that_is_not_finite_is_a_failure(laboratory, monkeypatch):
    monkeypatch.setitem(METHODS, "PCA", Method(lambda X, seed, settings: (X[:, :2] * np.nan, {}, {}), lambda n: {}))
    assert "not finite" in laboratory().record(Run("digits", "PCA")).absent


def test_the_paper_has_70_cells_with_known_best_columns():
    cells = [cell for name in datasets.NAMES for cell in paper.cells(name)]
    assert len(cells) == 70
    assert all(set(cell.columns) == set(paper.COLUMNS) for cell in cells)
    best = {(cell.data, cell.score, cell.khat): cell.best for cell in cells}
    assert best["waveform", "DBI", False] == "Eigenmaps"
    assert best["digits", "20-nn", False] == "LaptSNE-Mini"
    assert best["mnist", "DBI", True] == "LaptSNE"


@pytest.mark.parametrize(
    ("score", "ours", "beats_paper", "beats_best"),
    [
        ("NMI", 0.6, True, True),
        ("NMI", 0.59996, True, True),  # 0.6000 as printed: a tie is a win
        ("NMI", 0.5999, True, False),
        ("NMI", 0.4999, False, False),
        ("10-nn", 0.4996, True, False),  # three digits are printed
        ("10-nn", 0.4994, False, False),
        ("DBI", 0.5, True, True),
        ("DBI", 0.5001, True, False),
        ("DBI", 0.6, True, False),
        ("DBI", 0.6001, False, False),
    ],
)
def test_cells_are_compared_as_printed(score, ours, beats_paper, beats_best):
    columns = {"LaptSNE": 0.6, "UMAP": 0.5} if score == "DBI" else {"LaptSNE": 0.5, "UMAP": 0.6}
    one = Comparison(Cell("digits", score, False, columns), Stat.of([ours]))
    assert (one.beats_paper, one.beats_best) == (beats_paper, beats_best)


def test_counts_and_means():
    cell = Cell("digits", "NMI", False, {"LaptSNE": 0.5, "UMAP": 0.6})
    comparisons = [Comparison(cell, Stat.of([value])) for value in (0.4, 0.5, 0.7)] + [Comparison(cell, None)]
    assert Count.of(comparisons) == Count(cells=4, compared=3, paper=2, best=1)
    assert comparisons[-1].beats_best is None
    assert Stat.of([0.1, 0.3]).text(2) == "0.20 ± 0.14"
    assert Stat.of([0.1]).text(2) == "0.10"
    assert Stat.of([]) is None


def test_maps_are_compared_with_the_best_of_ours_that_are_as_separate():
    def point(curve, silhouette, kept, seed=0):
        return Point(curve, "", Run("digits", curve, seed), silhouette, kept)

    places = [(frontier.OURS[0], 0.4, 0.8), (frontier.OURS[1], 0.8, 0.4), (frontier.OURS[0], 0.5, 0.3)]
    own = [point(curve, s, k, i) for i, (curve, s, k) in enumerate(places)]
    others = [point("UMAP", s, k) for s, k in [(0.6, 0.39), (0.6, 0.41), (0.3, 0.79), (0.9, 0.1)]]
    shared = Point("t-SNE", "1", own[0].run, 0.4, 0.8)
    found = frontier.verdicts([*own, *others, shared])
    assert [verdict.ahead for verdict in found] == [True, False, True, False]
    assert [verdict.ours for verdict in found] == [0.4, 0.4, 0.8, None]
    assert frontier.verdicts(others) == []


def test_pages_escape_what_they_are_given():
    wild = "<b>&|*_"
    table = Table(wild, ("set", wild), [[TableEntry(wild), TableEntry("0.5", best=True)]], wild)
    picture = Picture("one", wild, wild, b"\x89PNG")
    document = Document(wild, [wild], [Section(wild, [table, picture, Bullets([wild])])])
    page = as_html(document)
    assert "<b>" not in page
    assert page.count('src="data:image/png;base64,') == 1
    assert "<script" not in page
    assert '<td class="best">0.5</td>' in page
    text = as_markdown(document, "figures")
    assert r"\<b\>&amp;\|\*\_" in text
    assert "<b>" not in text
    assert "**0.5**" in text
    assert "(figures/one.png)" in text


class Cells(HTMLParser):
    """Texts of the cells of all tables of a page."""

    def __init__(self):
        super().__init__()
        self.texts, self._inside = [], False

    def handle_starttag(self, tag, attrs):
        self._inside = tag in ("td", "th")

    def handle_endtag(self, tag):
        self._inside = False

    def handle_data(self, data):
        if self._inside:
            self.texts.append(data.strip())


@pytest.fixture
def report(reproduce, small, fits, monkeypatch, tmp_path):
    """A report of two sets, one of them rebuilt, with one method of ours and one that is missing."""
    monkeypatch.setenv("LAPTSNE_DATA", str(tmp_path))
    (tmp_path / "har_reconstructed.npz").touch()

    def load(name):
        if name == "coil20":
            raise FileNotFoundError("coil20 is not here")
        rng = np.random.default_rng(1)
        labels = np.repeat([0, 1, 2], 50)
        return rng.normal(scale=10, size=(3, 6))[labels] + rng.normal(size=(150, 6)), labels

    monkeypatch.setattr(datasets, "load", load)
    monkeypatch.setitem(METHODS, "UMAP", Method(fits, lambda n: {}, "no_such_package", "umap-learn"))
    ours = METHODS["LaptSNE"].fit
    monkeypatch.setitem(METHODS, "LaptSNE", Method(ours, lambda n: {"max_iter": 30}, "laptsne", "laptsne", own=True))
    result = reproduce("--quick", "--sets", "coil20,waveform,har", "--methods", "LaptSNE,UMAP,PCA", "--out", "results")
    assert result.exit_code == 0, result.output
    return tmp_path / "results"


def test_the_report_has_every_cell_and_says_what_is_absent(report):
    results = json.loads((report / "results.json").read_text())
    assert results["counts"]["cells"] == 30
    assert results["counts"]["compared"] == 17  # all but the votes of 200 and more points of har
    page, text = (report / "report.html").read_text(), (report / "report.md").read_text()
    parser = Cells()
    parser.feed(page)
    for cell in results["cells"]:
        if cell["ours"] is not None:
            digits = 3 if cell["score"].endswith("-nn") else 4
            assert f"{cell['ours']['mean']:.{digits}f}" in parser.texts
            assert f"{cell['paper']['LaptSNE']:.{digits}f}" in parser.texts
    assert results["missing_sets"] == {"coil20": "coil20 is not here"}
    for content in (page, text):
        assert "coil20 is not here" in content
        assert "umap-learn is not installed" in content
        assert "HAR (rebuilt)" in content
        assert "against the LaptSNE column" in content
    assert parser.texts.count("HAR") == 0
    assert (report / "figures" / "all-maps.png").read_bytes().startswith(b"\x89PNG")
    assert page.count("data:image/png") == len(list((report / "figures").glob("*.png")))


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("--sets", "digits,letters"), "letters is no set here; give some of digits, coil20"),
        (("--methods", "LaptSNE,Isomap"), "Isomap is no method here; give some of LaptSNE, LaptSNE-Mini"),
        (("--sets", ","), "nothing is no set here"),
    ],
)
def test_unknown_names_are_refused_with_those_that_exist(reproduce, tmp_path, arguments, names):
    result = reproduce(*arguments)
    assert result.exit_code == 2
    assert names in result.stderr
    assert not list(tmp_path.iterdir())


def test_an_interrupt_ends_with_one_line(reproduce, small, fits):
    fits.error = KeyboardInterrupt()
    result = reproduce("--sets", "digits", "--methods", "pca")
    assert result.exit_code == 130
    assert result.stderr.strip().splitlines()[-1] == "laptsne: stopped; the same command goes on from here."
    assert "Traceback" not in result.output


def test_names_are_taken_in_any_case_and_put_in_order():
    assert command.make_options("mnist,digits", "pca,laptsne", quick=False) == Options(
        ("digits", "mnist"), ("LaptSNE", "PCA")
    )
    assert command.make_options(None, None, quick=True).sets == plan.QUICK_SETS


def test_runs_come_from_cheap_to_costly_and_once():
    options = command.make_options(None, None, quick=False)
    parts = command._parts(options)
    tables = [part[0].data for part in parts[:4]]
    assert tables == ["digits", "coil20", "waveform", "coil100"]
    assert parts[-1][0].data == "fashion_mnist"
    assert {run.purpose for run in parts[-1]} == {"frontier"}
    assert len({run.seed for run in parts[0]}) == 5
    assert len({run.seed for run in parts[-1]}) == 1
    assert methods.batch_size(1440) == 205


def test_other_commands_do_not_load_it():
    code = "import sys, laptsne.cli; print([m for m in sys.modules if m.startswith('reproduction') or 'umap' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
