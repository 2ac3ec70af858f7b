"""Benchmarks have a question, a command and options that work; some name functions of the package or judge a commit."""

import json
import re
import shlex
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.metrics import normalized_mutual_info_score
from sklearn.neighbors import NearestNeighbors

from laptsne import LaptSNE

FOLDER = Path(__file__).parent.parent / "benchmarks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))
COMMANDS = [name for name in NAMES if name not in ("shared", "suite_runs")]
# Those that compare or vary parts of the package, and so name its modules.
DEEP = {
    "by_hand",
    "clusters",
    "constants",
    "lapumap",
    "palette",
    "peers",
    "phases",
    "reliability",
    "suite_runs",
    "sums",
}


@pytest.fixture(autouse=True)
def benchmarks_on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    yield
    for name in NAMES:
        sys.modules.pop(name, None)


def imported(name):
    return pytest.importorskip(name, reason="needs an extra of pyproject.toml", exc_type=ImportError)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_docstring_has_a_question_and_commands_that_are_understood(name):
    module = imported(name)
    question = module.__doc__.splitlines()[0]
    assert "?" in question
    commands = re.findall(rf"^python benchmarks/{name}\.py\b(.*)$", module.__doc__, re.MULTILINE)
    assert commands
    for line in commands:
        arguments = re.sub(r"\[|\]|\.\.\.", "", line.partition(" #")[0])
        if name != "peers_fit" and "SET" not in arguments:
            module.parser().parse_args(shlex.split(arguments))


@pytest.mark.parametrize("name", COMMANDS)
def test_help(name, capsys):
    with pytest.raises(SystemExit) as end:
        imported(name).parser().parse_args(["--help"])
    assert end.value.code == 0
    assert f"python benchmarks/{name}.py" in capsys.readouterr().out


def test_modules_within_the_package_are_named_in_few_benchmarks():
    imports, places = (
        r"^ *from laptsne\.(?!(?:metrics|plotting|contraction|clusters|kernels) )\S+ import",
        r'"laptsne\.[\w.]+[:.]\w',
    )
    deep = re.compile(f"{imports}|{places}", re.MULTILINE)
    assert {name for name in NAMES if deep.search((FOLDER / f"{name}.py").read_text())} == DEEP


def test_constants_that_are_varied_are_there():
    constants, lapumap = imported("constants"), imported("lapumap")
    groups = [*constants.VARIANTS.values(), lapumap.VARIANTS]
    places = {place for group in groups for variant in group.values() for place in variant.constants}
    assert len(places) >= 9
    for group in groups:
        for variant in group.values():
            with constants.changed(variant.constants):
                pass


def test_a_changed_constant_changes_the_map_and_is_restored():
    constants = imported("constants")
    data = constants.load("digits").at(slice(0, 300))
    variants = constants.VARIANTS["contraction"]
    settings = {"max_iter": 60, "n_clusters": 5}
    default, wide, again = (
        constants.scores(data, variants[name], 0, **settings) for name in ("default", "width 1.25", "default")
    )
    assert default == again != wide
    assert len(default) == len(constants.SCORES)


class TestBits:
    @pytest.fixture
    def cases(self):
        forms = {"small": np.float64, "sparse": csr_matrix}
        return {name: (LaptSNE, 100, form, {"max_iter": 5}) for name, form in forms.items()}

    def test_digests_are_compared_with_those_of_a_file(self, cases, tmp_path, capsys):
        bits, file = import_module("bits"), tmp_path / "before.json"
        bits.write(file, cases)
        assert bits.compare_with(file, cases) == 0
        stored = json.loads(file.read_text())
        assert set(stored["small"]) == {"embedding", "transform", "labels", "eigenvalues", "objective"}
        stored["small"]["transform"] = "0"
        file.write_text(json.dumps(stored))
        capsys.readouterr()
        assert bits.compare_with(file, cases) == 1
        assert re.search(r"DIFFERENT +small; transform\nsame +sparse\n1 of 2 cases differ", capsys.readouterr().out)

    def test_cases_that_a_file_lacks_are_named(self, cases, tmp_path, capsys):
        (tmp_path / "empty.json").write_text("{}")
        assert import_module("bits").compare_with(tmp_path / "empty.json", cases) == 0
        assert capsys.readouterr().out.count("not in the file") == 2


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("suite", "--stored", "| LaptSNE | 10 |"),
        ("suite", "--stored --frontier", "| total | 280 of 329 |"),
        ("null", "show", "| Gaussian, 5 dimensions | 2000 |"),
        ("palette", "", "60 colours"),
        ("paper", "eigengap digits", "digits"),
    ],
)
def test_commands_that_take_seconds(name, arguments, expected, monkeypatch, capsys):
    module = imported(name)
    monkeypatch.setattr(sys, "argv", [name, *shlex.split(arguments)])
    module.main()
    assert expected in capsys.readouterr().out


class TestSuite:
    @pytest.fixture
    def data(self, rng):
        """Two classes that overlap slightly in the plane."""
        y = np.repeat([0, 1], 200)
        return imported("suite_runs").Dataset("blobs", rng.normal(size=(400, 2)) + 5 * y[:, None], y)

    def test_nmi_of_leiden_is_that_of_the_best_resolution(self, data):
        pytest.importorskip("leidenalg", reason="needs the extra laptsne[benchmark]")
        runs = imported("suite_runs")
        finest = runs.leiden(runs.neighbor_graph(data.X), [2.0])[0]
        assert runs.leiden_scores(data, data.X, 400)["NMI of Leiden"] > 0.9
        assert normalized_mutual_info_score(data.y, finest) < 0.6

    def test_nmi_of_leiden_takes_a_sample_of_large_sets(self, data):
        pytest.importorskip("leidenalg", reason="needs the extra laptsne[benchmark]")
        runs, Y = imported("suite_runs"), data.X.copy()
        Y[np.setdiff1d(np.arange(400), runs.sampled_rows(400, 100))] = np.nan
        assert runs.leiden_scores(data, Y, 100)["NMI of Leiden"] > 0.7

    def test_the_graph_for_leiden_is_that_of_scanpy(self, data):
        sc, anndata = imported("scanpy"), imported("anndata")
        adata = anndata.AnnData(data.X)
        sc.pp.neighbors(adata, use_rep="X")
        found, expected = imported("suite_runs").neighbor_graph(data.X), adata.obsp["connectivities"]
        np.testing.assert_allclose(found.toarray(), expected.toarray(), atol=1e-4)

    def test_only_scores_that_are_not_stored_are_computed(self, data):
        suite, computed = imported("suite"), []

        class Runner:
            def origin(self, method):
                return {"version": "2"}

            def scores(self, data, run, groups):
                names = [name for group in groups for name in suite.SCORES_OF[group.compute]]
                computed.append(names)
                return dict.fromkeys(names, 0.5)

        everything = [score for score in suite.SCORES if score not in ("KL", "n_clusters")]
        stored = {"version": "2"} | {score: [0.1, 0.2] for score in everything if score != "SC"}
        found = suite.run_set(Runner(), data, ["UMAP"], 2, {"UMAP": stored})
        assert computed == [["NMI", "SC", "DBI"]] * 2
        assert found["UMAP"] == stored | {score: [0.5, 0.5] for score in ("NMI", "SC", "DBI")}
        assert suite.run_set(Runner(), data, ["UMAP"], 2, found) == {}
        for other in (found["UMAP"] | {"version": "1"}, {}):
            suite.run_set(Runner(), data, ["UMAP"], 2, {"UMAP": other})
            assert sorted(computed[-1]) == sorted(everything)

    def test_sets_with_one_seed_get_the_variance_of_the_others(self):
        mean = imported("suite").Mean.over
        found = mean([{"SC": [1, 3]}, {"SC": [5]}], "SC")
        assert (found.value, found.n_sets) == (3.5, 2)
        assert found.error == pytest.approx(np.sqrt(2 / 2 + 2 / 1) / 2)
        assert np.isnan(mean([{"SC": [5]}], "SC").error)
        assert mean([{"SC": [1, 3]}, {}], "SC") is None

    @pytest.mark.parametrize(("score", "best"), [("SC", {"a", "b"}), ("DBI", {"c", "d"})])
    def test_methods_within_a_standard_error_of_the_difference_are_best(self, score, best):
        suite = imported("suite")
        means = {"a": (0.5, 0.03), "b": (0.46, 0.04), "c": (0.1, 0.01), "d": (0.12, 0.02)}
        means = {method: suite.Mean(*values, n_sets=3) for method, values in means.items()}
        means |= {"few sets": suite.Mean(0.5, 0.03, n_sets=2), "none": None}
        assert suite.best_methods(means, 3, score) == best

    def test_the_best_mean_is_bold(self, capsys):
        scores = {"LaptSNE": [0.5, 0.5], "UMAP": [0.3, 0.5], "PaCMAP": [0.1]}
        imported("suite").print_means("Sets", {"digits": {method: {"SC": values} for method, values in scores.items()}})
        said = capsys.readouterr().out
        for row in (
            "LaptSNE | 1 | | | **0.500** ± 0.000",
            "UMAP | 1 | | | **0.400** ± 0.100",
            "PaCMAP | 1 | | | 0.100 |",
        ):
            assert row in said


def test_sums_of_the_grid_have_small_errors():
    sums, threads = imported("sums"), import_module("laptsne._runtime.threads")
    with threads.Workers(1) as workers:
        assert max(sums.errors(2.5, workers)) < 0.01


def test_clusterings_find_what_is_there():
    clusters = imported("clusters")
    assert clusters.counts(lambda rng: clusters.mixture(600, 3, rng), "labels_", 2) == [3, 3]
    assert clusters.counts(lambda rng: rng.normal(size=(300, 3)), "EVoC", 1) == []  # needs four features
    X = np.repeat(np.eye(3) * 20, 100, axis=0) + np.random.default_rng(0).normal(size=(300, 3))
    np.testing.assert_array_equal(np.unique(clusters.dpa(X), return_counts=True)[1], [100, 100, 100])


def test_clusters_of_the_textbook_and_of_continua(capsys):
    clusters = imported("clusters")
    clusters.in_textbook(["labels_"], [90], 1)
    assert "labels_: right in 26 of 26 data sets" in capsys.readouterr().out
    clusters.NULL = {title: clusters.NULL[title] for title in ("Gaussian, 5 dimensions", "ring")}
    clusters.in_null(["labels_"], [200], 2)
    said = capsys.readouterr().out
    assert "ring, 200 and 30 far, labels_: [2, 2]" in said
    assert "more than one cluster in 0 of 4 data sets" in said
    assert "other than two clusters in 0 of 4 data sets" in said


def test_the_chance_of_a_border_is_a_power_law_of_its_contrast(capsys):
    clusters = imported("clusters")
    thresholds = np.array(clusters.CONTRASTS)
    divided = np.round(10_000 * np.minimum(0.02 * thresholds**3, 1))
    assert clusters.power_law(thresholds, divided, 10_000) == pytest.approx((0.02, 3), rel=0.02)
    clusters.NULL = {"Gaussian, 5 dimensions": clusters.NULL["Gaussian, 5 dimensions"]}
    clusters.CONTRASTS = (0.01, 100.0)
    clusters.calibrate([200], 3)
    said = capsys.readouterr().out
    assert "Gaussian, 5 dimensions, 200: 0.00, 1.00" in said
    assert "contrast 100: divided in 1.0000 of 3 data sets" in said


def test_cuts_of_the_tree_are_chosen_by_modularity(rng):
    clusters = imported("clusters")
    X = np.repeat(np.array([[0, 0], [12, 0], [0, 60], [12, 60]]), 60, axis=0) + rng.normal(size=(240, 2))
    model, classes = clusters.fitted(X), np.repeat([0, 1], 120)
    P, labels = model.affinities_, model.labels_
    W = P.toarray()
    degrees = W.sum(axis=1)
    expected = ((W - 0.5 * np.outer(degrees, degrees)) * (labels[:, None] == labels)).sum()
    assert clusters.modularity(P, labels, 0.5) == pytest.approx(expected)
    scores = clusters.layer_scores(model.cluster_tree_, P, labels, model.cluster_layers_, classes)
    assert model.n_clusters_ == 4
    assert scores["best layer"] == scores["best cut"] == 1
    assert scores["labels_"] == scores["modularity, resolution 1"] < 1


def test_the_divergence_of_an_embedding_is_that_of_its_fit(rng):
    peers = imported("peers")
    model = LaptSNE(contraction=0, max_iter=50, random_state=0).fit(rng.normal(size=(400, 5)))
    assert peers.divergence(model.affinities_, model.embedding_) == pytest.approx(model.kl_divergence_, rel=1e-3)


def test_phases_charge_a_fit_to_parts_that_exist(rng):
    phases = import_module("phases")
    measured = phases.Phases()
    measured.run(lambda: LaptSNE(max_iter=20, random_state=0).fit(rng.normal(size=(300, 4))))
    assert sys.getprofile() is None or sys.getprofile() != measured._on_event
    parts = {part for part, seconds in measured.seconds.items() if seconds > 0}
    expected = {"nearest neighbours", "affinities", "spectrum of the data", "clusters", "attraction", "descent, other"}
    assert expected <= parts
    assert measured.seconds["repulsion of all pairs"] > 0


def test_fits_of_a_file_are_judged_by_all_rows(rng, tmp_path, monkeypatch):
    phases, shared = import_module("phases"), import_module("shared")
    shared.mixture_file(tmp_path / "rows.npy", 700, n_rows=300)
    X = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert X.shape == (700, 50)
    assert np.unique(X, axis=0).shape == X.shape
    monkeypatch.setattr(phases, "SAMPLED", 90)
    rows = phases.sampled(700)
    true = NearestNeighbors(n_neighbors=31).fit(X).kneighbors(X[rows])[1][:, 1:]
    np.testing.assert_array_equal(phases.true_neighbors(X, rows, 30), true)
    assert phases.judged(X, X, true[:, :15]) == {"recall": 1.0, "kept": 1.0}
    found = np.where(np.arange(15) < 9, true[:, :15], -1)
    scores = phases.judged(X, rng.normal(size=(700, 2)), found)
    assert scores["recall"] == pytest.approx(9 / 15)
    assert scores["kept"] < 0.15


def test_the_fastest_peer_is_the_unit(capsys, tmp_path):
    report = imported("peers").report
    rows = [
        {"data": "mnist", "n": 1000, "method": method, "repeat": repeat, "seconds": seconds + repeat, "peak_gib": 1.0}
        for method, seconds in (("laptsne", 2.0), ("PaCMAP", 3.0), ("openTSNE", 7.0))
        for repeat in (0, 1, 2)
    ]
    rows.append({"data": "mnist", "n": 1000, "method": "umap-learn", "repeat": 0, "failure": "out of memory"})
    run = {"rows": rows, "started": "now", "commit": "abc", "cpu": "a CPU", "threads": 2, "versions": {"pacmap": "1"}}
    report(run, ["laptsne", "PaCMAP", "openTSNE", "umap-learn"], tmp_path)
    printed = capsys.readouterr().out
    assert "| method | time, PaCMAP = 1 |" in printed
    assert "| laptsne | 0.75 | 3.00 |" in printed
    assert "| openTSNE | 2.00 | 8.00 |" in printed
    assert "laptsne / PaCMAP: 0.750" in printed
    assert "failed: umap-learn, 1,000 points: out of memory" in printed


@pytest.mark.parametrize(("slowdown", "code"), [(1.0, 0), (2.5, 1)])
def test_a_fit_that_is_much_slower_than_stored_fails_the_check(capsys, slowdown, code):
    times = iter([9.0, 1.0, 3.0 * slowdown, 1.0, 8.0, 2.0])  # fits and calibrations take turns; minima count
    workloads = {"small": (50, {"max_iter": 2}, 3.0)}
    assert import_module("regression").main(workloads, lambda _: next(times)) == code
    assert ("More than 2 times slower than stored: small" in capsys.readouterr().out) == bool(code)


def test_the_points_of_the_check_are_always_the_same():
    regression = import_module("regression")
    np.testing.assert_array_equal(regression.points(20), regression.points(20))
