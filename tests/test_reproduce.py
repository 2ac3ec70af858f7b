"""``python -m reproduction``: its result cache, its comparisons, its report."""

import json
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import laptsne
from reproduction import cells, command, datasets, frontier, methods, paper, plan, protocols, published
from reproduction.comparison import Comparison, Statistic, WinCount
from reproduction.frontier import FrontierPoint
from reproduction.methods import METHODS, Fit, Method
from reproduction.paper import PublishedScore
from reproduction.plan import Options
from reproduction.protocols import PUBLISHED, TUNED, choose
from reproduction.report import render, report_context, write_report
from reproduction.result_cache import NotStoredError, ResultCache, digest_of, sources_of
from reproduction.runs import Record, Run, Runner


class CountingMethod:
    """A method that records its seeds, and raises an error if it has one."""

    def __init__(self):
        self.seeds, self.error = [], None

    def __call__(self, X, seed, settings):
        if self.error is not None:
            raise self.error
        self.seeds.append(seed)
        return Fit(X[:, :2] + 0.01 * seed)


@pytest.fixture
def small(monkeypatch, rng):
    """Every set is three groups of 50 points, with as many features as the network needs to learn from."""
    labels = np.repeat([0, 1, 2], 50)
    X = rng.normal(scale=10, size=(3, 40))[labels] + rng.normal(size=(150, 40))
    monkeypatch.setattr(datasets, "load", lambda name: (X, labels))


@pytest.fixture
def counting(monkeypatch):
    counting = CountingMethod()
    monkeypatch.setitem(METHODS, "PCA", Method(counting))
    return counting


@pytest.fixture
def new_runner(small, tmp_path):
    return lambda: Runner(ResultCache(tmp_path))


@pytest.fixture
def reproduce(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: command.main([str(argument) for argument in arguments])


def refuse():
    raise AssertionError("the result should have been loaded")


def test_a_result_is_computed_once_per_key(tmp_path):
    key = {"kind": "fit", "seed": 0, "settings": {"a": (1, 2)}}
    result = ResultCache(tmp_path).get(key, lambda: Fit(np.arange(6.0).reshape(3, 2), {"seconds": 0.25}))
    found = ResultCache(tmp_path).get(dict(reversed(key.items())), refuse)
    assert found.facts == result.facts == {"seconds": 0.25}
    np.testing.assert_array_equal(found.embedding, np.arange(6.0).reshape(3, 2))
    for other in ({"seed": 1}, {"settings": {"a": (1, 3)}}, {"kind": "score"}):
        assert ResultCache(tmp_path).get(key | other, lambda: "other") == "other"


def test_a_frozen_cache_computes_nothing(tmp_path):
    frozen, key = ResultCache(tmp_path, frozen=True), {"kind": "fit"}
    with pytest.raises(NotStoredError, match="not run yet"):
        frozen.get(key, refuse)
    ResultCache(tmp_path).get(key, lambda: "stored")
    assert frozen.get(key, refuse) == "stored"


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: b"nonsense", lambda data: data[:-20]])
def test_a_damaged_result_is_computed_again(tmp_path, damage):
    cache, key = ResultCache(tmp_path), {"kind": "fit"}
    cache.get(key, lambda: {"n": 1, "array": np.ones(30)})
    (path,) = tmp_path.rglob("output.pkl")
    path.write_bytes(damage(path.read_bytes()))
    assert cache.get(key, lambda: {"n": 2})["n"] == 2
    assert cache.get(key, refuse)["n"] == 2


class KilledWhileWritten:
    def __reduce__(self):
        raise KeyboardInterrupt


def test_a_result_whose_writing_was_interrupted_is_not_there(tmp_path):
    cache, key = ResultCache(tmp_path), {"kind": "fit"}
    with pytest.raises(KeyboardInterrupt):
        cache.get(key, lambda: [np.ones(1000), KilledWhileWritten()])
    assert list(tmp_path.rglob("output.pkl.*"))  # what was written so far, under a name that is never read
    assert not list(tmp_path.rglob("output.pkl"))
    assert cache.get(key, lambda: "whole") == "whole"


def test_a_report_that_cannot_be_written_leaves_the_former_one(new_runner, tmp_path, monkeypatch):
    former = tmp_path / "report.html"
    former.write_text("former")
    write = Path.write_bytes

    def write_half(path, content):
        write(path, content[: len(content) // 2])
        if "report.html" in path.name:
            raise OSError("no space left")

    monkeypatch.setattr(Path, "write_bytes", write_half)
    with pytest.raises(OSError, match="no space left"):
        write_report(tmp_path, new_runner(), Options((), ()))
    assert former.read_text() == "former"


def test_results_depend_on_the_code_of_the_estimator_alone():
    root = Path(laptsne.__file__).parent
    names = {path.relative_to(root).as_posix() for path in sources_of("laptsne.estimators.laptsne")}
    assert {"estimators/laptsne.py", "graph/spectrum.py", "fields/fourier.py"} <= names
    without_effect = {"cli", "metrics", "plotting", "explorer", "scanpy"}
    assert without_effect <= {path.name for path in root.iterdir()}
    assert not without_effect & {name.split("/")[0] for name in names}
    assert (root / "engine" / "progress.py").exists()
    assert "engine/progress.py" not in names


def test_comments_and_docstrings_are_not_code(tmp_path):
    path, digests = tmp_path / "module.py", []
    for source in ("x = 1", '"""Says something."""\nx = 1  # why', "x = 2"):
        path.write_text(source)
        digests.append(digest_of([path]))
    assert digests[0] == digests[1] != digests[2]


def test_an_interrupted_run_is_resumed(new_runner, counting):
    first = new_runner()
    first.record(Run("digits", "PCA", 0))
    counting.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        first.record(Run("digits", "PCA", 1))
    counting.error = None
    again = new_runner()
    for seed in range(2):
        record = again.record(Run("digits", "PCA", seed))
        assert record.missing is None
        assert 0 < record.scores["10-nn"] <= 1
    assert counting.seeds == [0, 1]
    unchanged = new_runner()
    unchanged.record(Run("digits", "PCA", 0))
    assert unchanged.n_computed == 0


def test_other_settings_are_other_results_and_other_purposes_add_scores(new_runner, counting):
    runner = new_runner()
    runner.record(Run("digits", "PCA", 0, purpose="frontier"))
    known = runner.record(Run("digits", "PCA", 0, purpose="table"))
    assert counting.seeds == [0]
    assert {"trustworthiness", "neighbours kept", "20-nn on training points"} <= set(known.scores)
    runner.record(Run("digits", "PCA", 0, (("whiten", True),)))
    assert counting.seeds == [0, 0]


@pytest.mark.parametrize("part", ["data", "code"])
def test_other_data_and_other_code_are_other_results(new_runner, counting, monkeypatch, part):
    monkeypatch.setitem(METHODS, "PCA", Method(counting, own=True))
    new_runner().record(Run("digits", "PCA"))
    new_runner().record(Run("digits", "PCA"))
    assert counting.seeds == [0]
    if part == "data":
        X, labels = datasets.load("digits")
        monkeypatch.setattr(datasets, "load", lambda name: (X + 1, labels))
    else:
        monkeypatch.setattr("reproduction.methods.code_digest", lambda module: "of another version")
    new_runner().record(Run("digits", "PCA"))
    assert counting.seeds == [0, 0]


def test_results_as_published_depend_on_what_the_paper_settings_compute(new_runner, counting, monkeypatch):
    method = Method(counting, own=True, probe=lambda: "same", reduced=False)
    monkeypatch.setitem(published.METHODS, "LaptSNE as published", method)
    run = Run("digits", "LaptSNE as published", purpose="none")
    new_runner().record(run)
    monkeypatch.setattr("reproduction.methods.code_digest", lambda module: "of another version")
    new_runner().record(run)
    assert counting.seeds == [0]
    other = Method(counting, own=True, probe=lambda: "other", reduced=False)
    monkeypatch.setitem(published.METHODS, "LaptSNE as published", other)
    new_runner().record(run)
    assert counting.seeds == [0, 0]


def test_the_probe_sees_changes_of_the_paper_settings(monkeypatch):
    before = published.probe_digest()
    settings = laptsne.settings.paper_settings()
    monkeypatch.setattr("laptsne.estimators.laptsne.paper_settings", lambda: settings)
    published.probe_digest.cache_clear()
    assert published.probe_digest() == before
    settings["learning_rate"] = 99.0
    published.probe_digest.cache_clear()
    assert published.probe_digest() != before
    published.probe_digest.cache_clear()


def test_large_sets_go_through_landmarks_and_the_network(new_runner, monkeypatch):
    monkeypatch.setattr(published, "N_LANDMARKS", 90)
    monkeypatch.setattr(published, "_landmarks", {})
    runner = new_runner()
    settings = (("contraction", 0.1), ("n_clusters", 3), ("max_iter", 60), ("perplexity", 10.0))
    landmarks = runner.record(Run("har", "LaptSNE as published", 0, (*settings, ("through", "landmarks")), "cells"))
    assert landmarks.missing is None
    assert landmarks.fit.embedding.shape == (len(landmarks.fit.rows), 2)
    assert len(landmarks.fit.rows) <= 90
    assert landmarks.scores["NMI of 3 clusters"] == 1  # with the labels of the landmarks
    everything = runner.record(Run("har", "LaptSNE as published", 0, (*settings, ("through", "rows")), "cells"))
    assert everything.fit.embedding.shape == (150, 2)
    assert everything.fit.rows is None
    off = np.linalg.norm(everything.fit.embedding[landmarks.fit.rows] - landmarks.fit.embedding, axis=1)
    assert np.median(off) < 0.5 * landmarks.fit.embedding.std()


def test_a_method_that_fails_or_is_missing_does_not_stop_the_rest(new_runner, counting, monkeypatch):
    monkeypatch.setitem(METHODS, "UMAP", Method(counting, package="no_such_package", distribution="umap-learn"))
    runner = new_runner()
    counting.error = RuntimeError("no luck")
    assert runner.record(Run("digits", "PCA")).missing == "failed: RuntimeError: no luck"
    missing = runner.record(Run("digits", "UMAP")).missing
    assert missing == 'umap-learn is not installed; install it with pip install ".[benchmark]".'
    counting.error = None
    assert new_runner().record(Run("digits", "PCA")).missing is None


def test_an_embedding_that_is_not_finite_is_a_failure(new_runner, monkeypatch):
    monkeypatch.setitem(METHODS, "PCA", Method(lambda X, seed, settings: Fit(X[:, :2] * np.nan)))
    assert "not finite" in new_runner().record(Run("digits", "PCA")).missing


def test_the_paper_has_70_scores_with_known_best_methods():
    scores = [score for name in datasets.NAMES for score in paper.published_scores(name)]
    assert len(scores) == 70
    assert all(set(score.by_method) == set(paper.METHODS) for score in scores)
    best = {(score.data, score.score, score.khat): score.best_method for score in scores}
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
def test_scores_are_compared_as_printed(score, ours, beats_paper, beats_best):
    by_method = {"LaptSNE": 0.6, "UMAP": 0.5} if score == "DBI" else {"LaptSNE": 0.5, "UMAP": 0.6}
    one = Comparison(PublishedScore("digits", score, False, by_method), Statistic.of([ours]))
    assert (one.beats_paper, one.beats_best) == (beats_paper, beats_best)


def test_counts_and_means():
    published = PublishedScore("digits", "NMI", False, {"LaptSNE": 0.5, "UMAP": 0.6})
    comparisons = [Comparison(published, Statistic.of([value])) for value in (0.4, 0.5, 0.7)]
    comparisons.append(Comparison(published, None))
    assert WinCount.of(comparisons) == WinCount(cells=4, compared=3, paper=2, best=1)
    assert comparisons[-1].beats_best is None
    assert Statistic.of([0.1, 0.3]).text(2) == "0.20 ± 0.14"
    assert Statistic.of([0.1]).text(2) == "0.10"
    assert Statistic.of([]) is None


def scored(runner, run, value):
    """Record a run all of whose scores are a value."""
    names = [protocols.score_name(one, runner.n_classes[run.data]) for one in paper.published_scores(run.data)]
    signs = [-1 if one.lower_is_better else 1 for one in paper.published_scores(run.data)]
    scores = {name: sign * value for name, sign in zip(names, signs, strict=True)}
    runner.records[run] = Record(run, Fit(np.ones((3, 2))), scores=scores)


def test_a_protocol_reports_the_setting_that_reaches_most_scores(new_runner):
    runner, options = new_runner(), Options(("digits",), ("LaptSNE",))
    runner.n_classes["digits"] = 10
    runs = PUBLISHED.grid(options, "digits", 10)
    assert choose(runner, runs) is None
    for run, value in zip(runs, (0.2, 0.98, 0.4, 0.97, 0.3, 0.2), strict=True):
        scored(runner, run, value)
    assert choose(runner, runs) is runs[1]  # as many as the fourth, but better
    runner.records[runs[1]].scores["SC of 10 clusters"] = 0.1
    assert choose(runner, runs) is runs[3]
    final = protocols.final_runs(runner, PUBLISHED, "digits", options)
    assert [run.seed for run in final] == [0, 1, 2, 3, 4]
    assert {run.changes for run in final} == {runs[3].changes}


def test_grids_have_the_numbers_of_the_paper_and_large_sets_end_with_the_network():
    options = Options(("mnist",), ("LaptSNE",))
    runs = PUBLISHED.grid(options, "mnist", 10)
    assert [dict(run.changes)["contraction"] for run in runs] == [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6]
    assert {dict(run.changes)["n_clusters"] for run in runs} == {14}
    (final,) = PUBLISHED.final(runs[0], options)
    assert dict(runs[0].changes)["through"] == "landmarks"
    assert dict(final.changes)["through"] == "rows"
    assert all("through" not in dict(run.changes) for run in TUNED.grid(options, "mnist", 10))
    assert {dict(run.changes)["n_clusters"] for run in TUNED.grid(options, "digits", 10)} == {11, "auto", 10}


def test_scores_are_compared_with_the_method_of_the_paper_that_they_repeat(new_runner):
    runner, options = new_runner(), Options(("digits",), ("LaptSNE",))
    runner.n_classes["digits"] = 10
    for protocol, value in ((PUBLISHED, 0.97), (protocols.MINI, 0.97)):
        run = protocol.grid(options, "digits", 10)[0]
        scored(runner, run, value)
    found = {(cell.published.score, cell.published.khat): cell for cell in cells.cells(runner, options, "digits")}
    cell = found["80-nn", False]  # the paper has 0.970, and 0.952 for LaptSNE-Mini
    assert cell.comparison(PUBLISHED.heading).beats_paper
    assert cell.comparison(protocols.MINI.heading).beats_paper
    assert cell.is_near(PUBLISHED.heading)
    assert cell.is_near(protocols.MINI.heading)
    assert found["20-nn", False].is_near(PUBLISHED.heading)
    assert not found["20-nn", False].comparison(PUBLISHED.heading).beats_paper  # 0.987
    assert not found["NMI", False].is_near(PUBLISHED.heading)  # 0.9084: better, but not the same
    assert found["SC", False].is_near(PUBLISHED.heading) is None
    assert cell.ours["tuned"] is None
    assert cell.comparison("tuned").beats_paper is None


def test_without_contraction_a_sweep_has_one_run():
    for sweep in plan.sweeps(quick=False).values():
        assert len({sweep.run("coil20", 0.0, count) for count in (5, 10)}) == 1
        assert len({sweep.run("coil20", 0.1, count) for count in (5, 10)}) == 2


def test_embeddings_are_compared_with_the_best_of_ours_that_are_as_separated():
    def point(curve, silhouette, kept, seed=0):
        return FrontierPoint(curve, "", Run("digits", curve, seed), silhouette, kept)

    scores = [(plan.OURS[0], 0.4, 0.8), (plan.OURS[1], 0.8, 0.4), (plan.OURS[0], 0.5, 0.3)]
    own = [point(curve, s, k, i) for i, (curve, s, k) in enumerate(scores)]
    others = [point("UMAP", s, k) for s, k in [(0.6, 0.39), (0.6, 0.41), (0.3, 0.79), (0.9, 0.1)]]
    shared = FrontierPoint("t-SNE", "1", own[0].run, 0.4, 0.8)
    found = frontier.compare_points([*own, *others, shared])
    assert [one.ahead for one in found] == [True, False, True, False]
    assert [one.ours for one in found] == [0.4, 0.4, 0.8, None]
    assert frontier.compare_points(others) == []


def test_reports_escape_what_they_are_given(new_runner):
    wild, runner = "<b>&|*_", new_runner()
    run = Run("digits", wild)
    runner.n_classes["digits"], runner.records[run] = 3, Record(run, Fit(np.ones((3, 2)), {"seconds": 2.0}), wild)
    context = report_context(runner, Options(("digits",), (wild,)), {"frontier": b"\x89PNG"})
    html, markdown = render("html", context), render("markdown", context)
    assert "<b>" not in html
    assert "<td>&lt;b&gt;&amp;|*_</td>" in html
    assert html.count('src="data:image/png;base64,') == 1
    assert "<script" not in html
    assert '<td class="best">2.0</td>' in html
    assert r"| \<b\>&amp;\|\*\_ |" in markdown
    assert "<b>" not in markdown
    assert "**2.0**" in markdown
    assert "(figures/frontier.png)" in markdown


class TableTexts(HTMLParser):
    """Texts of the cells of all tables of an HTML file."""

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
def report(reproduce, small, counting, monkeypatch, tmp_path):
    """A report on three sets, one of them missing and one rebuilt, with three methods, one of them missing."""
    monkeypatch.setenv("LAPTSNE_DATA", str(tmp_path))
    (tmp_path / "har_reconstructed.npz").touch()
    X, labels = datasets.load("waveform")

    def load(name):
        if name == "coil20":
            raise FileNotFoundError("coil20 is not here")
        return X, labels

    monkeypatch.setattr(datasets, "load", load)
    monkeypatch.setitem(METHODS, "UMAP", Method(counting, package="no_such_package", distribution="umap-learn"))
    ours = METHODS["LaptSNE"].fit
    monkeypatch.setitem(METHODS, "LaptSNE", Method(ours, lambda n: {"max_iter": 30}, own=True))
    arguments = "--quick", "--sets", "coil20,waveform,har", "--methods", "LaptSNE,UMAP,PCA", "--out", "results"
    assert reproduce(*arguments) == 0
    return tmp_path / "results"


def test_the_report_has_every_score_and_says_what_is_missing(report):
    results = json.loads((report / "results.json").read_text())
    for heading in cells.HEADINGS:
        assert results["counts"][heading]["cells"] == 30
        # All but k-NN with 200 and more neighbours on har.
        assert results["counts"][heading]["compared"] == 17
    html, markdown = (report / "report.html").read_text(), (report / "report.md").read_text()
    parser = TableTexts()
    parser.feed(html)
    for cell in results["cells"]:
        digits = 3 if cell["score"].endswith("-nn") else 4
        for ours in cell["ours"].values():
            if ours is not None:
                assert f"{ours['mean']:.{digits}f}" in parser.texts
                assert f"{cell['paper']['LaptSNE']:.{digits}f}" in parser.texts
    assert results["missing_sets"] == {"coil20": "coil20 is not here"}
    for content in (html, markdown):
        assert "coil20 is not here" in content
        assert "umap-learn is not installed" in content
        assert "HAR (rebuilt)" in content
        assert "of 30 scores are at least as good as those of LaptSNE in the paper" in content
    assert parser.texts.count("HAR (rebuilt)") > 0
    assert parser.texts.count("HAR") == 0
    rows = [
        line
        for line in (report / "cells.md").read_text().splitlines()
        if line.startswith(("| COIL20 |", "| Waveform |"))
    ]
    assert len(rows) == 20
    assert (report / "figures" / "all-maps.png").read_bytes().startswith(b"\x89PNG")
    assert html.count("data:image/png") == markdown.count("](figures/") == len(list((report / "figures").glob("*.png")))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--sets", "digits,letters"), "--sets got letters; give some of digits, coil20"),
        (("--methods", "LaptSNE,Isomap"), "--methods got Isomap; give some of LaptSNE, LaptSNE-Mini"),
        (("--sets", ","), "--sets got no name; give some of digits"),
        (("--tables", "as told"), "--tables got as told; give some of as published, as coded"),
    ],
)
def test_unknown_names_are_refused_with_those_that_exist(reproduce, tmp_path, capsys, arguments, message):
    assert reproduce(*arguments) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_report_of_finished_runs_makes_no_new_ones(reproduce, small, counting, tmp_path):
    arguments = "--tables", "--sets", "digits", "--methods", "PCA", "--out", "results"
    assert reproduce(*arguments, "--report") == 0
    assert counting.seeds == []
    assert "PCA, seed 0: not run yet." in (tmp_path / "results" / "report.md").read_text()
    assert reproduce(*arguments) == 0
    assert counting.seeds == [0]
    assert reproduce(*arguments, "--report") == 0
    assert counting.seeds == [0]
    assert "not run yet" not in (tmp_path / "results" / "report.md").read_text()


def test_columns_of_the_paper_tables_that_are_not_named_are_not_run(reproduce, small, counting, tmp_path):
    arguments = "--sets", "digits", "--methods", "PCA", "--out", "results"
    assert reproduce(*arguments, "--tables", "defaults,tuned") == 0
    assert counting.seeds == []
    assert reproduce(*arguments, "--tables", "best baseline") == 0
    assert counting.seeds == [0]
    assert reproduce(*arguments, "--tables", "defaults,tuned") == 0
    assert "not run yet" not in (tmp_path / "results" / "report.md").read_text()


def test_an_interrupt_ends_with_one_line(reproduce, small, counting, capsys):
    counting.error = KeyboardInterrupt()
    assert reproduce("--sets", "digits", "--methods", "pca") == 130
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last == "reproduction: stopped; the same command continues from here."


def test_a_missing_library_is_named_with_the_command_that_installs_it(tmp_path):
    (tmp_path / "jinja2.py").write_text("raise ModuleNotFoundError(name='jinja2')")
    root = str(Path(__file__).parent.parent)
    code = f"import sys, runpy; sys.path[:0] = [{str(tmp_path)!r}, {root!r}]; runpy.run_module('reproduction')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        'reproduction: jinja2 is not installed; run pip install ".[reproduction]" in the repository.\n'
    )


def test_names_are_taken_in_any_case_and_put_in_order():
    assert command.select("mnist,digits", "pca,laptsne", quick=False) == Options(
        ("digits", "mnist"), ("LaptSNE", "PCA")
    )
    assert command.select(None, None, quick=True).sets == plan.QUICK_SETS


def test_runs_come_in_order_of_cost_and_once():
    batches = plan.all_runs(command.select(None, None, quick=False))
    assert [batch[0].data for batch in batches[:4]] == ["digits", "coil20", "waveform", "coil100"]
    assert batches[-1][0].data == "fashion_mnist"
    assert {run.purpose for run in batches[-1]} == {"frontier"}
    assert len({run.seed for run in batches[0]}) == 5
    assert len({run.seed for run in batches[-1]}) == 1
    assert methods.batch_size(1440) == 205


def test_the_library_does_not_load_it():
    code = "import sys, laptsne.cli; print([m for m in sys.modules if m.split('.')[0] in ('reproduction', 'umap')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
