import csv
import io
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import laptsne
from laptsne import LaptSNE, LapUMAP
from laptsne.cli.commands import app
from laptsne.cli.outputs import save_plot
from laptsne.cli.tables import Dataset
from laptsne.contraction import ContractionPath
from laptsne.engine.minimise import Descending
from laptsne.fitted_map import FittedMap
from laptsne.graph.spectrum import eigengap_clusters
from laptsne.transform.network import Network

QUICK = ("--iterations", 40, "--perplexity", 10)
COMMANDS = ("embed", "transform", "gap", "explore")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments, **options: CliRunner().invoke(app, [str(a) for a in arguments], **options)


@pytest.fixture
def table(blobs, tmp_path):
    X, labels = blobs
    with (tmp_path / "cells.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "kind", "c", "d", "note"])
        rows = zip(X, labels, strict=True)
        writer.writerows([x[0], x[1], f"kind {k}", x[2], x[3], f"<b>{i}</b>"] for i, (x, k) in enumerate(rows))
    return tmp_path / "cells.csv"


@pytest.fixture
def path_of(monkeypatch):
    """Stands in for the path of contraction, which takes as long as several maps."""
    calls = []

    def path(model, X, *, n_maps=7):
        calls.append((model, X))
        maps = np.stack([model.embedding_ * s for s in (1, 0.5)]).astype(np.float32)
        half = np.array([0.5, 0.4])
        return ContractionPath(np.array([0, 0.04]), maps, half, half, half, half, np.zeros((2, 3)), 1)

    monkeypatch.setattr("laptsne.cli.runs.contraction_path", path)
    return calls


@pytest.fixture
def pages(monkeypatch):
    """What the explorer was asked to write."""
    asked = []

    def explorer(Y, out, **options):
        asked.append({"Y": Y, **options})
        Path(out).write_text("<!doctype html>")
        return Path(out)

    monkeypatch.setattr("laptsne.plotting.explorer", explorer)
    return asked


def rows_of(path):
    return list(csv.DictReader(Path(path).open(encoding="utf-8", newline="")))


def shell(*arguments, **options):
    """The command in a process of its own."""
    command = [sys.executable, "-m", "laptsne", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, timeout=120, check=False, **options)


class TestEmbed:
    def test_a_table_and_a_picture_by_default(self, run, table, tmp_path):
        result = run("embed", table, "--label", "kind", *QUICK)
        assert result.exit_code == 0
        assert result.stdout == ""
        lines = result.stderr.splitlines()
        embedded, note, points, clusters, contraction, time, files, blank, header, *evidence, explained = lines
        assert embedded == "embedded: a, b, c, d"
        assert note == "not embedded, since they hold text: note"
        assert points == "points       120 x 4"
        assert clusters == "clusters     3: 3 clear, 0 likely, 0 doubtful"
        assert (blank, header.split()) == ("", ["cluster", "size", "nearest", "chance", "verdict"])
        assert [row.split()[-1] for row in evidence] == ["clear"] * 3
        assert explained.startswith("chance: how often data without clusters")
        assert explained.endswith("clear: at most 0.1 %, likely: at most 1 %, doubtful: more.")
        assert [row.split()[1] for row in evidence] == ["40"] * 3
        assert contraction.startswith("contraction  ")
        assert "40 iterations" in time
        assert files == "files        cells-map.csv, cells-map.png"
        rows = rows_of("cells-map.csv")
        assert len(rows) == 120
        assert list(rows[0]) == ["x", "y", "cluster", "kind", "note"]
        assert rows[0]["kind"] == "kind 0"
        assert rows[7]["note"] == "<b>7</b>"
        assert np.isfinite([float(row["x"]) for row in rows]).all()
        assert (tmp_path / "cells-map.png").read_bytes().startswith(b"\x89PNG")

    def test_the_same_map_as_in_python(self, run, table, blobs):
        run("embed", table, "--label", "kind", *QUICK, "--seed", 3, "--metric", "cosine", "--out", "m.npy")
        model = LaptSNE(max_iter=40, perplexity=10, random_state=3, metric="cosine")
        np.testing.assert_array_equal(np.load("m.npy"), model.fit_transform(blobs[0][:, :4]))

    def test_only_what_is_asked_for_is_written(self, run, table, tmp_path):
        assert run("embed", table, *QUICK, "--out", "m.csv", "--quiet").stderr == ""
        assert run("embed", table, *QUICK, "--plot", "m.svg").exit_code == 0
        assert sorted(os.listdir(tmp_path)) == ["cells.csv", "m.csv", "m.svg"]
        assert (tmp_path / "m.svg").read_text().lstrip().startswith("<?xml")

    def test_a_label_is_guessed_and_said(self, run, table):
        result = run("embed", table, *QUICK, "--out", "-")
        assert "label column: kind (guessed" in result.stderr
        rows = list(csv.DictReader(io.StringIO(result.stdout)))
        assert rows[119]["kind"] == "kind 2"
        result = run("embed", table, *QUICK, "--out", "-", "--no-label")
        assert list(csv.DictReader(io.StringIO(result.stdout)))[119]["kind"] == "kind 2"
        assert "guessed" not in result.stderr

    def test_it_says_why_so_many_clusters(self, run, blobs, tmp_path):
        np.save(tmp_path / "x.npy", np.vstack([blobs[0]] * 3))
        result = run("embed", "x.npy", "--iterations", 150, "--perplexity", 20, "--clusters", 3, "--out", "m.csv")
        assert "clusters     3, as given" in result.stderr
        assert 0 < float(re.search(r"contraction  \S+, KL (\S+)", result.stderr)[1]) < 5

    def test_where_there_are_no_clusters_it_says_so(self, run, rng, tmp_path):
        np.save(tmp_path / "cloud.npy", rng.normal(size=(300, 5)))
        result = run("embed", "cloud.npy")
        assert "clusters     none: there is no evidence of any" in result.stderr
        assert "contraction  0," in result.stderr
        result = run("embed", "cloud.npy", "--force", "--contraction", 0.02)
        assert result.exit_code == 0
        assert "laptsne: contraction=0.02 has no effect" in result.stderr
        assert "contraction  0," in result.stderr
        assert len(result.stderr.strip().splitlines()) == 6

    def test_nothing_is_overwritten_without_force(self, run, table, tmp_path):
        target = tmp_path / "cells-map.csv"
        target.write_text("precious")
        files = {"--out": "m.csv", "--plot": "m.png", "--html": "m.html", "--save": "m.laptsne"}
        for name in files.values():
            (tmp_path / name).write_text("precious")
        refused = {(): "cells-map.csv"} | {("--out", "new.csv", *option): option[1] for option in files.items()}
        for words, name in refused.items():
            result = run("embed", table, *words)
            assert result.exit_code == 2
            (line,) = result.stderr.splitlines()  # before the work, of which there would be notes
            assert f"{name} exists already; give --force" in line
        assert {(tmp_path / name).read_text() for name in files.values()} == {"precious"}
        assert target.read_text() == "precious"
        assert run("embed", table, "--force", *QUICK).exit_code == 0
        assert target.read_text() != "precious"

    def test_only_the_default_files_of_the_example_are_overwritten(self, run, tmp_path):
        for _ in range(2):
            result = run("embed", "digits", "--iterations", 2, "--landmarks", 50)
            assert result.exit_code == 0, result.stderr
        (tmp_path / "mine.csv").write_text("mine")
        assert "mine.csv exists already" in run("embed", "digits", "--out", "mine.csv").stderr
        (tmp_path / "cells.csv").write_text("a,b\n1,2\n3,4\n5,6\n")
        assert "digits-map.csv exists already" in run("embed", "cells.csv", "--out", "digits-map.csv").stderr

    def test_the_data_are_never_overwritten(self, run, table):
        before = table.read_text()
        assert "is the input file" in run("embed", table, "--out", table, "--force").stderr
        assert table.read_text() == before

    def test_what_fails_late_leaves_no_half_files(self, run, table, tmp_path, monkeypatch):
        def full(*arguments, **options):
            raise OSError("no space left on device")

        monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
        result = run("embed", table, *QUICK, "--plot", "m.png")
        assert result.exit_code == 2
        assert "no space left" in result.stderr
        assert os.listdir(tmp_path) == ["cells.csv"]

    def test_deprecations_of_libraries_are_not_shown(self, run, table, monkeypatch):
        class Deprecated(UserWarning, DeprecationWarning):
            pass

        fit = LaptSNE.fit

        def warning_fit(self, X, y=None):
            warnings.warn("old name", Deprecated, stacklevel=2)
            return fit(self, X)

        monkeypatch.setattr(LaptSNE, "fit", warning_fit)
        assert "old name" not in run("embed", table, *QUICK).stderr

    def test_warnings_are_one_line_each(self, run, table):
        result = run("embed", table, "--iterations", 20, "--perplexity", 100, "--out", "m.csv", "--quiet")
        assert result.exit_code == 0
        assert len(result.stderr.strip().splitlines()) == 1
        assert result.stderr.startswith("laptsne: perplexity=100")

    def test_stopping_the_descent_writes_the_map_so_far(self, run, table, tmp_path, monkeypatch):
        fields = Descending.fields

        def stop(descent):
            if descent.iteration == 7:
                raise KeyboardInterrupt
            return fields(descent)

        monkeypatch.setattr(Descending, "fields", stop)
        result = run("embed", table, "--iterations", "50", "--out", tmp_path / "m.csv")
        assert result.exit_code == 130
        assert "laptsne: Interrupted at iteration 7 of 50" in result.stderr
        assert len((tmp_path / "m.csv").read_text().splitlines()) == len(table.read_text().splitlines())

    @pytest.mark.parametrize("fitted", [True, False])
    def test_an_interrupt_that_fit_lets_through(self, run, table, tmp_path, monkeypatch, fitted):
        fit = LaptSNE.fit

        def interrupted(model, X):
            if fitted:
                fit(model, X)
                model.n_iter_ = 7
            raise KeyboardInterrupt

        monkeypatch.setattr(LaptSNE, "fit", interrupted)
        result = run("embed", table, "--iterations", 50, "--out", "m.csv")
        assert result.exit_code == 130
        assert (tmp_path / "m.csv").exists() == fitted
        if fitted:
            assert "laptsne: Interrupted at iteration 7 of 50" in result.stderr
            assert len((tmp_path / "m.csv").read_text().splitlines()) == 121
        else:
            assert "laptsne: stopped.\n" in result.stderr

    def test_one_and_three_dimensions(self, run, table, tmp_path):
        for dims, names in ((1, ["x"]), (3, ["x", "y", "z"])):
            result = run("embed", table, *QUICK, "--dims", dims, "--force")
            assert result.exit_code == 0, result.stderr
            assert list(rows_of("cells-map.csv")[0])[: dims + 1] == [*names, "cluster"]
            assert sorted(os.listdir(tmp_path)) == ["cells-map.csv", "cells-map.png", "cells.csv"]
            assert (tmp_path / "cells-map.png").read_bytes().startswith(b"\x89PNG")
        result = run("embed", table, "--dims", 1, "--html", "m.html")
        assert result.exit_code == 2
        assert "m.html shows two or three dimensions, not one; embed with --dims 2" in result.stderr

    def test_what_sets_clusters_apart(self, run, table):
        result = run("embed", table, "--label", "kind", *QUICK, "--distinguish", "features.csv")
        assert result.exit_code == 0, result.stderr
        rows = rows_of("features.csv")
        assert list(rows[0])[:4] == ["cluster", "against", "feature", "auc"]
        assert {row["cluster"] for row in rows} == {"0", "1", "2"}
        assert not {row["feature"] for row in rows} & {"kind", "note"}
        result = run("embed", table, "--distinguish", "features.npy")
        assert result.exit_code == 2
        assert "features.npy cannot be written; give a name that ends in .csv" in result.stderr

    def test_landmarks(self, run, table, blobs):
        options = ("--iterations", 200, "--perplexity", 10, "--clusters", 3, "--landmarks", 60, "--force")
        result = run("embed", table, *options, "--out", "m.csv", "--html", "m.html", "--save", "m.laptsne")
        assert result.exit_code == 0, result.stderr
        rows = rows_of("m.csv")
        assert len(rows) == 120
        # Every row has the cluster of the landmarks around it: one per blob here.
        assert len({(row["kind"], row["cluster"]) for row in rows}) == len({row["cluster"] for row in rows}) == 3
        run("transform", "m.laptsne", table, "--out", "p.csv")
        for row, placed in zip(rows, rows_of("p.csv"), strict=True):
            assert float(row["x"]) == pytest.approx(float(placed["x"]), rel=1e-5)

    def test_points_without_a_cluster_are_grey_and_written(self, run, table, monkeypatch, pages):
        fit, drawn = LaptSNE.fit, []

        def fit_with_outliers(self, X, y=None):
            fit(self, X)
            self.labels_ = np.where(np.arange(120) < 5, -1, self.labels_)
            return self

        monkeypatch.setattr(LaptSNE, "fit", fit_with_outliers)
        scatter = laptsne.plotting.scatter
        monkeypatch.setattr("laptsne.plotting.scatter", lambda Y, c, **k: drawn.append(list(c)) or scatter(Y, c, **k))
        files = ("--out", "m.csv", "--plot", "m.png", "--html", "m.html")
        assert run("embed", table, *QUICK, "--clusters", 3, "--no-label", *files).exit_code == 0
        labels = [row["cluster"] for row in rows_of("m.csv")]
        assert labels[:5] == ["-1"] * 5
        for shown in (drawn[0], pages[0]["columns"]["cluster"].tolist()):
            assert shown[:5] == [None] * 5
            assert list(map(str, shown[5:])) == labels[5:]

    def test_a_column_to_colour_by(self, run, table, blobs, pages):
        run("embed", table, *QUICK, "--clusters", 1, "--color", "a", "--html", "m.html", "--out", "m.csv")
        assert pages[0]["color"] == "a"
        np.testing.assert_allclose([float(row["a"]) for row in rows_of("m.csv")], blobs[0][:, 0])
        assert "no column q to colour by; there is kind, note, a" in run("embed", table, "--color", "q").stderr

    def test_the_progress_bar_ends_with_the_divergence_of_the_summary(self, run, table, monkeypatch):
        screen = io.StringIO()
        options = {"file": screen, "force_terminal": True, "force_interactive": True, "width": 120}
        terminal = Console(**options, color_system=None)
        monkeypatch.setattr("rich.console.Console", lambda **options: terminal)
        monkeypatch.setattr("laptsne.cli.runs.console", terminal)
        result = run("embed", table, "--iterations", 60, "--perplexity", 10, "--clusters", 3)
        summary = re.search(r"contraction  (\S+), KL (\d\.\d{3})", result.stderr)
        *_, last = re.findall(r"60/60 KL (\d\.\d{3})  contraction (\S+)", screen.getvalue())
        assert last == (summary[2], summary[1])


class TestPage:
    def test_columns_and_path(self, run, table, blobs, path_of, pages, tmp_path):
        result = run("embed", table, *QUICK, "--clusters", 3, "--html", "m.html")
        assert result.exit_code == 0
        assert (tmp_path / "m.html").read_text() == "<!doctype html>"
        (page,) = pages
        assert isinstance(page["Y"], ContractionPath)
        assert list(page["columns"]) == ["kind", "cluster", "note", "a", "b", "c", "d"]
        np.testing.assert_allclose(page["columns"]["c"], blobs[0][:, 2])
        assert page["color"] == "kind"
        assert page["title"] == "cells.csv"
        ((model, X),) = path_of
        assert X.shape == (120, 4)
        assert model.n_clusters_ == 3

    def test_without_clusters_there_is_no_path(self, run, table, path_of, pages):
        run("embed", table, *QUICK, "--clusters", 1, "--html", "m.html", "--no-label")
        assert path_of == []
        assert pages[0]["Y"].shape == (120, 2)
        assert pages[0]["color"] is None
        assert "cluster" not in pages[0]["columns"]  # one cluster is no cluster

    def test_many_features_are_left_out_and_clashes_named(self, run, rng, pages):
        names = [f"f{i}" for i in range(21)]
        rows = [[*map(str, rng.normal(size=21)), str(i % 3)] for i in range(30)]
        Path("wide.csv").write_text("\n".join(map(",".join, [[*names, "cluster"], *rows])))
        run("embed", "wide.csv", "--iterations", 20, "--clusters", 1, "--html", "m.html")
        assert list(pages[0]["columns"]) == ["cluster"]
        assert pages[0]["columns"]["cluster"][:4].tolist() == [0, 1, 2, 0]

    def test_many_points_have_no_path_and_it_is_said(self, run, table, path_of, pages, monkeypatch):
        monkeypatch.setattr("laptsne.cli.runs._MAX_POINTS", 119)
        result = run("embed", table, *QUICK, "--clusters", 3, "--html", "m.html")
        assert path_of == []
        assert "the explorer has no contraction slider" in result.stderr
        assert "more than 119 points" in result.stderr

    def test_the_real_page(self, run, table, path_of):
        assert run("embed", table, *QUICK, "--clusters", 3, "--html", "m.html").exit_code == 0
        text = Path("m.html").read_text(encoding="utf-8")
        assert text.lstrip().lower().startswith("<!doctype html>")
        assert len(text) > 10_000

    def test_the_real_path(self, run, table, pages):
        run("embed", table, *QUICK, "--clusters", 3, "--html", "m.html")
        path = pages[0]["Y"]
        assert path.contractions[0] == 0
        assert path.embeddings.shape[1:] == (120, 2)


class TestTransform:
    @pytest.fixture
    def model(self, run, table):
        run("embed", table, *QUICK, "--out", "m.csv", "--save", "m.laptsne")
        return "m.laptsne"

    def test_columns_are_taken_by_name(self, run, table, model, tmp_path):
        rows = rows_of(table)
        shuffled = ["note", "d", "kind", "a", "extra", "c", "b"]
        with (tmp_path / "new.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(shuffled)
            writer.writerows([{"extra": "1.5", **row}[name] for name in shuffled] for row in rows[100:103])
        result = run("transform", model, "new.csv", "--out", "placed.csv")
        assert result.exit_code == 0
        assert "not embedded: extra" in result.stderr
        placed, known = rows_of("placed.csv"), rows_of("m.csv")[100:103]
        assert [row["note"] for row in placed] == [row["note"] for row in known]
        for axis in "xy":  # rows that the map is made of get their places
            np.testing.assert_allclose([float(r[axis]) for r in placed], [float(r[axis]) for r in known], rtol=1e-5)

    def test_one_row_from_a_pipe_to_a_pipe(self, run, table, model):
        lines = table.read_text().splitlines(keepends=True)
        result = run("transform", model, "-", "--quiet", input="".join(lines[:2]))
        assert result.exit_code == 0
        assert result.stderr == ""
        assert len(result.stdout.splitlines()) == 2

    def test_a_model_without_names_takes_columns_in_order(self, run, table, blobs):
        np.save("x.npy", blobs[0][:, :4])
        run("embed", "x.npy", *QUICK, "--out", "m.npy", "--save", "m.laptsne")
        assert run("transform", "m.laptsne", table, "--out", "placed.npy").exit_code == 0
        np.testing.assert_allclose(np.load("placed.npy"), np.load("m.npy"), rtol=1e-5)
        np.save("x.npy", blobs[0])
        result = run("transform", "m.laptsne", "x.npy")
        assert result.exit_code == 2
        assert "has 6 features, but the map was fitted to 4" in result.stderr

    def test_a_python_user_finds_the_names_in_the_model(self, model, table, blobs):
        pandas = pytest.importorskip("pandas")
        loaded = LaptSNE.load(model)
        assert list(loaded.feature_names_in_) == ["a", "b", "c", "d"]
        frame = pandas.read_csv(table)[["a", "b", "c", "d"]]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert loaded.transform(frame).shape == (120, 2)

    def test_what_is_wrong_is_said(self, run, table, model):
        Path("new.csv").write_text("a,b\n1,2\n")
        result = run("transform", model, "new.csv")
        assert result.exit_code == 2
        assert result.stderr == "laptsne: new.csv lacks the features c, d; add them, as the model has them.\n"
        assert "there is no model none" in run("transform", "none", table).stderr
        Path("bad.laptsne").write_bytes(Path(model).read_bytes()[:-100])
        result = run("transform", "bad.laptsne", table)
        assert result.exit_code == 2
        assert "not a model" in result.stderr
        Path("cells-placed.csv").write_text("precious")
        result = run("transform", model, table)
        assert result.exit_code == 2
        assert "--force" in result.stderr

    @pytest.mark.parametrize("impute", ["median", "drop"])
    def test_the_preprocessing_of_the_model_is_applied(self, run, table, impute):
        """Rows that the model was fitted to get their positions, so that every step is the same."""
        steps = ("--impute", impute, "--log1p", "--scale", "robust", "--pca", 3, "--drop", "d")
        frame = [{name: value.lstrip("-") for name, value in row.items()} for row in rows_of(table)]
        frame[7]["b"] = ""
        with Path("t.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(frame[0]))
            writer.writeheader()
            writer.writerows(frame)
        assert run("embed", "t.csv", *QUICK, *steps, "--out", "m.csv", "--save", "m.laptsne").exit_code == 0
        known = rows_of("m.csv")
        shuffled = ["note", "c", "b", "a"]
        with Path("new.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, shuffled, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(frame[:20])
        assert run("transform", "m.laptsne", "new.csv", "--out", "p.csv").exit_code == 0
        placed = rows_of("p.csv")
        assert len(placed) == (19 if impute == "drop" else 20)
        assert [row["note"] for row in placed] == [row["note"] for row in known[: len(placed)]]
        for axis in "xy":
            found, expected = ([float(row[axis]) for row in rows] for rows in (placed, known))
            np.testing.assert_allclose(found, expected[: len(found)], rtol=1e-3)
        loaded = LaptSNE.load("m.laptsne")
        assert list(loaded.feature_names_in_) == list(loaded.columns_["names"]) == ["a", "b", "c"]
        assert loaded.fitted_map_.preprocessing.n_features_out == 3

    def test_raw_columns_are_preprocessed_in_python_as_well(self, run, table):
        pandas = pytest.importorskip("pandas")
        X = pandas.read_csv(table)[["a", "b", "c", "d"]]
        X.loc[7, "b"] = X.loc[[3, 50], "d"] = np.nan
        X.to_csv("t.csv", index=False)
        steps = ("--impute", "median", "--scale", "standard", "--pca", 3)
        assert run("embed", "t.csv", *QUICK, *steps, "--out", "m.npy", "--save", "m.laptsne").exit_code == 0
        loaded = LaptSNE.load("m.laptsne")
        np.testing.assert_allclose(loaded.transform(X), np.load("m.npy"), rtol=1e-6)
        with pytest.raises(ValueError, match="feature names"):
            loaded.transform(X[["d", "c", "b", "a"]])

    def test_a_model_without_columns_still_works(self, run, table, model):
        loaded = LaptSNE.load(model)
        del loaded.columns_
        loaded.save("old.laptsne")
        assert run("transform", "old.laptsne", table, "--out", "p.csv").exit_code == 0
        assert [row["x"] for row in rows_of("p.csv")] == [row["x"] for row in rows_of("m.csv")]

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("spread", np.ones(3)),
            ("components", np.ones((4, 4))),
            ("medians", np.ones(4, int)),
        ],
    )
    def test_parts_of_a_model_that_do_not_fit_are_refused(self, run, table, name, value):
        run("embed", table, *QUICK, "--scale", "standard", "--save", "m.laptsne", "--out", "m.csv")
        loaded = LaptSNE.load("m.laptsne")
        vars(loaded.fitted_map_.preprocessing)[name] = value
        loaded.save("bad.laptsne")
        result = run("transform", "bad.laptsne", table)
        assert result.exit_code == 2
        assert re.match(r"laptsne: bad\.laptsne: .*parts", result.stderr.splitlines()[-1])

    @pytest.mark.parametrize(
        ("settings", "reason"),
        [
            ({"metric": "affinities"}, "needs features or distances, but this model was fitted to affinities"),
            ({"kernel": "gaussian"}, "needs a fit that was not interrupted, with kernel='student'"),
        ],
    )
    def test_models_that_cannot_place_new_rows(self, run, table, blobs, settings, reason):
        X = blobs[0][:, :4]
        P = LaptSNE(max_iter=20, perplexity=10).fit(X).affinities_
        LaptSNE(max_iter=20, **settings).fit(P if "metric" in settings else X).save("p.laptsne")
        result = run("transform", "p.laptsne", table)
        assert result.exit_code == 2
        (line,) = result.stderr.splitlines()
        assert reason in line
        assert "fit another model with laptsne embed FILE --save p.laptsne" in line

    def test_models_of_lapumap_from_python(self, table, blobs):
        """In a process of its own, since a class that was imported is known."""
        X = blobs[0][:, :4]
        model = LapUMAP(max_iter=20, n_neighbors=10, random_state=0).fit(X)
        model.save(table.parent / "u.laptsne")
        done = shell("transform", "u.laptsne", table, "--out", "p.csv", cwd=table.parent)
        assert done.returncode == 0, done.stderr
        placed = [[float(row["x"]), float(row["y"])] for row in rows_of(table.parent / "p.csv")]
        np.testing.assert_allclose(placed, model.embedding_, rtol=1e-5)

    def test_clusters_and_support(self, run, table, model):
        header, *rows = table.read_text().splitlines()
        for n_far in (12, 0):
            far = [f"{1000 + i},1000,kind 0,1000,1000,far" for i in range(n_far)]
            Path("new.csv").write_text("\n".join([header, *far, *rows[n_far:]]))
            result = run("transform", model, "new.csv", "--out", "p.csv", "--force")
            placed = rows_of("p.csv")
            X = np.array([[float(row[name]) for name in "abcd"] for row in rows_of("new.csv")])
            support = LaptSNE.load(model).support(X)
            np.testing.assert_allclose([float(row["support"]) for row in placed], support)
            n_unlike = int((support < 0.01).sum())
            warning = f"laptsne: {n_unlike} of 120 rows ({n_unlike / 120:.0%}) are unlike the training data"
            assert (warning in result.stderr) == (n_far == 12)
            assert [row["cluster"] for row in placed[:n_far]] == ["-1"] * n_far

    def test_old_and_new_together(self, run, table, model, monkeypatch, pages):
        scatter, drawn = laptsne.plotting.scatter, []

        def record(Y, c, **options):
            drawn.append((Y, list(c)))
            return scatter(Y, c, **options)

        monkeypatch.setattr("laptsne.plotting.scatter", record)
        Path("new.csv").write_text("".join(table.read_text().splitlines(keepends=True)[:11]).replace("kind", "sort"))
        files = ("--plot", "p.png", "--html", "p.html", "--force")
        loaded = LaptSNE.load(model)
        X = np.array([[float(row[name]) for name in "abcd"] for row in rows_of(table)])
        network = Network.trained(X, loaded.embedding_, np.random.RandomState(0))
        fitted = replace(loaded.fitted_map_, network=network, data=None, spacing=None)  # cannot tell clusters
        fitted.to_file("n.laptsne", **{"class": "LaptSNE"}, parameters={}, fitted={"columns_": loaded.columns_})
        assert run("transform", "n.laptsne", "new.csv", *files, "--no-label").exit_code == 0
        assert run("transform", model, "new.csv", *files, "--label", "sort").exit_code == 0
        monkeypatch.setattr(FittedMap, "predict", lambda self, X, n_jobs: np.arange(len(X)) - 1)
        assert run("transform", model, "new.csv", *files, "--no-label").exit_code == 0
        expected = (["new"] * 10, ["sort 0"] * 10, ["no cluster", *map(str, range(9))])
        old = LaptSNE.load(model).embedding_
        for (Y, shown), page, column, values in zip(
            drawn, pages, ("cluster", "sort", "cluster"), expected, strict=True
        ):
            assert Y.shape == (130, 2)
            np.testing.assert_array_equal(Y[:120], old)
            assert shown == [None] * 120 + values  # None is grey
            assert page["color"] == column
            assert page["columns"][column].tolist() == shown
            assert np.isnan(page["columns"]["a"][:120]).all()
        assert Path("p.png").read_bytes().startswith(b"\x89PNG")


class TestGap:
    def test_eigenvalues_and_the_gap(self, run, table, blobs):
        result = run("gap", table, "--plot", "g.png", "--perplexity", 10)
        assert result.exit_code == 0
        header, *lines = result.stdout.splitlines()
        assert header.split() == ["k", "eigenvalue", "gap"]
        values = [float(line.split()[1]) for line in lines]
        model = LaptSNE(perplexity=10, max_iter=1, random_state=0).fit(blobs[0][:, :4])
        np.testing.assert_allclose(values, model.data_eigenvalues_, atol=1e-4)
        (marked,) = [line for line in lines if "<- the largest gap" in line]
        chosen = eigengap_clusters(model.data_eigenvalues_)
        gaps = np.diff(np.log1p(model.data_eigenvalues_ / 0.1))  # the scale that it names
        np.testing.assert_allclose([float(line.split()[2]) for line in lines[:-1]], gaps, atol=2e-4)
        assert int(marked.split()[0]) == gaps[1:].argmax() + 2
        assert f"clusters     {chosen} by the eigengap of 120 points, {model.n_clusters_} by evidence" in result.stderr
        assert "gap: in log(1 + eigenvalue / 0.1). The clusters are the last k" in result.stderr

    def test_a_later_gap_that_is_nearly_as_large_is_marked_as_well(self, run, table, monkeypatch):
        for values, marked in (([0, 0.01, 0.4, 1.5, 1.6], {2: "the largest gap", 3: "nearly as large"}), ([0, 1], {})):
            spectrum = SimpleNamespace(eigenvalues=np.array(values))
            monkeypatch.setattr("laptsne.cli.runs.laplacian_spectrum", lambda *given, s=spectrum: s)
            result = run("gap", table, "--perplexity", 10)
            found = re.findall(r"^ +(\d) .* <- (.*)$", result.stdout, re.MULTILINE)
            assert {int(k): text for k, text in found} == (marked or {1: "the largest gap"})
            assert f"clusters     {max(marked, default=1)} by the eigengap" in result.stderr

    def test_nothing_is_written(self, run, table, tmp_path):
        assert run("gap", table).exit_code == 0
        assert os.listdir(tmp_path) == ["cells.csv"]

    def test_what_is_wrong_is_said(self, run, table):
        result = run("gap", table, "--metric", "nonsense")
        assert result.exit_code == 2
        assert "'nonsense'" in result.stderr
        assert "no column z" in run("gap", table, "--label", "z").stderr


class TestExplore:
    @pytest.fixture
    def opened(self, monkeypatch):
        addresses = []
        monkeypatch.setattr("webbrowser.open", lambda address: addresses.append(address) or True)
        return addresses

    def test_it_makes_a_page_and_opens_it(self, run, table, path_of, pages, opened, tmp_path):
        assert run("explore", table, *QUICK).exit_code == 0
        assert opened == [(tmp_path / "cells-map.html").as_uri()]
        assert pages[0]["color"] == "kind"
        result = run("explore", table, *QUICK)
        assert result.exit_code == 2
        assert "cells-map.html exists already" in result.stderr
        assert run("explore", table, *QUICK, "--html", "other.html", "--no-open").exit_code == 0
        assert len(opened) == 1
        assert (tmp_path / "other.html").exists()

    def test_the_map_so_far_is_opened_after_an_interrupt(self, run, table, path_of, pages, opened, monkeypatch):
        fit = LaptSNE.fit

        def interrupted(model, X):
            fit(model, X)
            raise KeyboardInterrupt

        monkeypatch.setattr(LaptSNE, "fit", interrupted)
        assert run("explore", table, *QUICK).exit_code == 130
        assert len(opened) == 1

    def test_it_opens_a_page_that_is_there(self, run, opened, tmp_path, monkeypatch):
        result = run("explore", "page.html")
        assert result.exit_code == 2
        assert "there is no file page.html" in result.stderr
        (tmp_path / "page.html").write_text("<!doctype html>")
        assert run("explore", "page.html").exit_code == 0
        assert opened == [(tmp_path / "page.html").as_uri()]
        monkeypatch.setattr("webbrowser.open", lambda address: False)
        result = run("explore", "page.html")
        assert result.exit_code == 0
        assert "no browser was found; open page.html" in result.stderr


@pytest.mark.parametrize(
    ("name", "content", "arguments", "message"),
    [
        ("none.csv", None, (), "there is no file none.csv"),
        ("x.xls", b"x", (), "give a file that ends in .csv"),
        ("x.npy", b"not an array", (), "not an array of numbers"),
        ("x.csv", b"", (), "no rows"),
        ("x.csv", b"a,b\n1,2\n3\n", (), "row 3 has 1 values"),
        ("x.csv", b"a,b\n1,x\n3,y\n5,2\n6,2\n", (), "column b is not all numbers: row 2 has 'x'"),
        ("x.csv", b"a,b\nu,x\nv,y\n", (), "no column of numbers"),
        ("x.csv", b"a,b\n1,nan\n3,4\n", (), "the first in row 2; by column: b (1)"),
        ("x.csv", b"a,b\n1,2\n3,4\n", ("--label", "c"), "no column c; its columns are a, b"),
        ("x.csv", b"a\n1\n3\n", ("--label", "a"), "no column of numbers"),
        ("x.csv", b"a,b\n1,2\n", (), "too few rows, 1"),
        ("x.csv", b"a,b\n1,2\n3,4\n5,6\n", ("--clusters", "7"), "n_clusters=7 is out of range"),
        ("x.csv", b"a,b\n1,2\n3,4\n5,6\n", ("--metric", "far"), "Got 'far' instead"),
        ("x.csv", b"a,b\n1,2\n3,4\n5,6\n", ("--label", "a", "--no-label"), "exclude each other"),
        ("x.csv", b"a,b\n1,2\n3,4\n5,6\n", ("--out", "x.xlsx"), "ends in .csv"),
        ("x.csv", b"a,b\n1,2\n3,4\n5,6\n", ("--plot", "x.bmpx"), "ends in .png or .svg or .pdf"),
        ("x.csv", b"a,b\n1,2\n3,4\n5,6\n", ("--html", "x.csv"), "ends in .html"),
        ("x.csv", b"a,b\n1,2\n3,4\n5,6\n", ("--plot", "-"), "only --out can be -"),
        ("x.csv", b"a,b\n1,2\n3,4\n5,6\n", ("--out", "nowhere/x.csv"), "no folder nowhere"),
        (".", None, (), "is a folder"),
        ("digits", None, ("--label", "a"), "no column a; its columns are label"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_with_exit_code_2(run, tmp_path, name, content, arguments, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    result = run("embed", name, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert sum(line.startswith("laptsne: ") for line in result.stderr.splitlines()) == 1
    assert "Traceback" not in result.output


class TestPlot:
    @pytest.fixture
    def figures(self, monkeypatch):
        drawn = []
        monkeypatch.setattr("laptsne.cli.outputs.save_figure", lambda ax, path: drawn.append(ax.figure))
        return drawn

    @staticmethod
    def titles(figure):
        return figure.get_suptitle(), [ax.get_title() for ax in figure.axes if ax.get_label() != "<colorbar>"]

    def test_label_and_clusters_are_side_by_side(self, run, table, figures):
        result = run("embed", table, *QUICK, "--clusters", 3, "--plot", "m.png")
        (figure,) = figures
        assert self.titles(figure) == ("cells.csv: 120 points", ["colour: kind", "colour: cluster"])
        assert {text.get_text() for text in figure.axes[0].texts} == {"kind 0", "kind 1", "kind 2"}
        rows = [
            line.split()[0] for line in result.stderr.splitlines() if line.endswith(("clear", "likely", "doubtful"))
        ]
        assert {text.get_text() for text in figure.axes[1].texts} == set(rows) == {"0", "1", "2"}

    @pytest.mark.parametrize(("up", "height"), [(1.0, 5.5), (0.7, 4.2), (0.1, 2.75), (3.0, 5.5), (0.0, 2.75)])
    def test_a_flat_map_takes_less_room(self, figures, tmp_path, up, height):
        Y = np.random.default_rng(0).random((50, 2))
        Y = (Y - Y.min(axis=0)) / np.ptp(Y, axis=0) * [1, up]
        save_plot(Y, {"no clusters": None}, tmp_path / "m.png", Dataset("t.csv"), "50 points")
        np.testing.assert_allclose(figures[0].get_size_inches(), [5.5, height + 0.4], atol=0.05)

    def test_one_panel_is_enough(self, run, table, figures):
        run("embed", table, *QUICK, "--clusters", 1, "--plot", "m.png")
        run("embed", table, *QUICK, "--clusters", 1, "--no-label", "--plot", "m.png")
        run("embed", table, *QUICK, "--clusters", 3, "--no-label", "--plot", "m.png")
        assert [self.titles(figure)[1] for figure in figures] == [
            ["colour: kind"],
            ["no clusters"],
            ["colour: cluster"],
        ]

    def test_a_key_makes_the_figure_wider_and_the_map_no_smaller(self, run, table, figures):
        for column in ("kind", "a", "note:category"):
            run("embed", table, *QUICK, "--clusters", 1, "--no-label", "--color", column, "--plot", "m.png")
        names, scale, many = figures
        for figure in figures:
            figure.draw_without_rendering()
        assert names.get_figwidth() == many.get_figwidth() == 5.5
        assert scale.get_figwidth() > 6
        widths = [figure.axes[0].get_window_extent().width / figure.dpi for figure in figures]
        assert min(widths) > 5.2

    def test_new_rows_among_old_ones(self, run, table, figures):
        run("embed", table, *QUICK, "--save", "m.laptsne", "--out", "m.csv")
        assert run("transform", "m.laptsne", table, "--plot", "p.png").exit_code == 0
        assert self.titles(figures[0]) == ("cells.csv: 120 new points among 120 in grey", ["colour: kind"])
        assert len(rows_of("cells-placed.csv")) == 120  # the table as well

    def test_other_dimensions(self, run, table, tmp_path):
        for n_dims in (1, 3):
            assert (
                run("embed", table, *QUICK, "--clusters", 3, "--dims", n_dims, "--plot", f"{n_dims}.png").exit_code == 0
            )


class TestMethods:
    def test_umap(self, run, table, blobs):
        options = ("--method", "umap", "--neighbors", 12, "--iterations", 40)
        result = run("embed", table, *options, "--out", "m.npy", "--save", "m.laptsne", "--html", "m.html")
        assert result.exit_code == 0, result.stderr
        model = LapUMAP(n_neighbors=12, max_iter=40, random_state=0).fit(blobs[0][:, :4])
        np.testing.assert_array_equal(np.load("m.npy"), model.embedding_)
        assert f"loss {model.cross_entropy_:.3f}" in result.stderr
        assert run("transform", "m.laptsne", table, "--out", "p.npy").exit_code == 0

    def test_neighbours_of_tsne(self, run, table, blobs):
        assert run("embed", table, *QUICK, "--neighbors", 20, "--out", "m.npy").exit_code == 0
        model = LaptSNE(max_iter=40, perplexity=10, n_neighbors=20, random_state=0)
        np.testing.assert_array_equal(np.load("m.npy"), model.fit_transform(blobs[0][:, :4]))

    @pytest.mark.parametrize("option", ["--perplexity", "--landmarks"])
    def test_options_of_tsne_are_refused(self, run, table, option):
        result = run("embed", table, "--method", "umap", option, 20)
        assert result.exit_code == 2
        assert f"{option} is of t-SNE, not of --method umap; omit it" in result.stderr


class TestProcess:
    def test_a_pipe(self, table):
        result = shell("embed", "-", *QUICK, input=table.read_bytes(), cwd=table.parent)
        assert result.returncode == 0
        assert len(result.stdout.splitlines()) == 121
        assert result.stdout.startswith(b"x,y,cluster,kind,note\n")
        assert len(result.stderr.splitlines()) == 8 + 6  # and the evidence for three clusters
        assert os.listdir(table.parent) == ["cells.csv"]

    def test_an_error(self, tmp_path):
        result = shell("embed", "none.csv", cwd=tmp_path)
        assert result.returncode == 2
        assert result.stdout == b""
        assert result.stderr.startswith(b"laptsne: there is no file none.csv")
        assert len(result.stderr.splitlines()) == 1

    @pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
    def test_a_pipe_that_breaks_is_not_complained_of(self, table):
        command = [sys.executable, "-m", "laptsne", "embed", str(table), "--iterations", "5", "--out", "-", "-q"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.close()
            said = process.stderr.read()
            assert process.wait(60) == 141
        assert said == b""

    @pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
    def test_an_interrupt_ends_with_130(self, table):
        command = [sys.executable, "-m", "laptsne", "embed", str(table), "--iterations", "10000000"]
        command += ["--perplexity", "10", "--clusters", "3", "--contraction", "0", "--out", "m.csv"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=table.parent) as process:
            assert "label column" in process.stderr.readline()
            process.send_signal(signal.SIGINT)
            said = process.stderr.read()
            assert process.wait(60) == 130
        assert "Traceback" not in said
        # Before there is a map there is nothing to write; afterwards the map so far is written.
        written = (table.parent / "m.csv").exists()
        assert ("laptsne: Interrupted at iteration" if written else "laptsne: stopped.") in said


class TestStop:
    """Ctrl-C before there is anything to stop."""

    @pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
    @pytest.mark.parametrize("module", ["typer", "numba", "sklearn.neighbors", "matplotlib.figure"])
    def test_during_imports(self, module, tmp_path):
        """Some libraries turn a KeyboardInterrupt into an ImportError."""
        (tmp_path / "sitecustomize.py").write_text(f"""
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
""")
        paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        done = shell("embed", "digits", env=environment, cwd=tmp_path)
        assert done.returncode == 130
        assert done.stderr == b"laptsne: stopped.\n"

    @pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
    def test_the_map_so_far_is_written_once_the_fit_has_begun(self, table):
        code = """
import os, signal, sys
from laptsne.cli import main
from laptsne.engine.minimise import Descending
from laptsne.fitted_map import FittedMap

fields = Descending.fields

def stop(run):
    if run.iteration == 7:
        os.kill(os.getpid(), signal.SIGINT)
    return fields(run)

Descending.fields = stop
sys.argv[1:] = ["embed", "cells.csv", "--out", "m.csv"]
main()
"""
        command, options = [sys.executable, "-c", code], {"cwd": table.parent, "timeout": 120}
        done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
        assert done.returncode == 130
        assert f"laptsne: Interrupted at iteration 7 of {LaptSNE().max_iter}" in done.stderr
        assert len(rows_of(table.parent / "m.csv")) == 120

    def test_a_traceback_on_request(self, run, tmp_path):
        result = run("embed", "none.csv", "--debug")
        assert result.exit_code == 2
        assert result.stderr.startswith("Traceback")
        assert "InputError" in result.stderr
        assert result.stderr.splitlines()[-1].startswith("laptsne: there is no file none.csv")


class TestHelp:
    @staticmethod
    def examples(run, command):
        result = run(command, "--help", env={"COLUMNS": "200", "TERM": "dumb"})
        assert result.exit_code == 0
        lines = [line.strip() for line in result.stdout.splitlines()]
        return [line for line in lines if re.match(rf"(cat \S+ \| )?laptsne {command} ", line)]

    def test_every_command_has_examples(self, run):
        for command in COMMANDS:
            assert len(self.examples(run, command)) >= 2, command

    @pytest.mark.parametrize("command", COMMANDS)
    def test_the_examples_run(self, run, command, table, path_of, pages, monkeypatch):
        opened = []
        monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
        self.prepare(run, table)
        for line in self.examples(run, command):
            first, *rest = [shlex.split(part) for part in line.split("|")]
            piped = Path(first[1]).read_text() if first[0] == "cat" else None
            words = rest[0] if first[0] == "cat" else first
            assert words[0] == "laptsne"
            named = [Path(b) for a, b in pairwise(words) if a in ("--out", "--plot", "--html", "--save") and b != "-"]
            for path in named:
                path.unlink(missing_ok=True)
            quick = ["--iterations", "5"] if command in ("embed", "explore") and words[2] != "cells.html" else []
            result = run(*words[1:], *quick, "--force", input=piped)
            assert result.exit_code == 0, (line, result.stderr)
            assert all(path.stat().st_size for path in named), line
            if quick:
                assert " 5 iterations" in result.stderr, line
            if "--out -" in line:
                assert result.stdout.startswith("x,y,")
        assert len(opened) == (2 if command == "explore" else 0)

    @staticmethod
    def prepare(run, table):
        pandas = pytest.importorskip("pandas")
        frame = pandas.read_csv(table).rename(columns={"kind": "celltype"})
        frame.to_csv("cells.csv", index=False)
        frame.to_csv("new-cells.csv", index=False)
        frame.to_parquet("cells.parquet")
        run("embed", "cells.csv", "--iterations", 5, "--out", "-", "--save", "cells.laptsne")
        Path("cells.html").write_text("<!doctype html>")

    @pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
    def test_shell_completion(self, shell_name):
        environment = os.environ | {"_LAPTSNE_COMPLETE": f"complete_{shell_name}"}
        environment |= {"COMP_WORDS": "laptsne ", "COMP_CWORD": "1", "_TYPER_COMPLETE_ARGS": "laptsne "}
        environment |= {"_TYPER_COMPLETE_FISH_ACTION": "get-args"}
        done = shell(env=environment)
        assert all(command.encode() in done.stdout for command in COMMANDS)

    def test_version(self, run):
        assert run("--version").stdout == f"laptsne {laptsne.__version__}\n"


STARTS = (["-m", "laptsne"], ["-c", "from laptsne.cli import main; main()"])


class TestStart:
    """The command before it does anything."""

    @pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["embed", "--help"], ["explore", "-h"]])
    def test_help_does_not_wait_for_heavy_imports(self, arguments):
        heavy = {"numba", "numpy", "scipy", "sklearn", "matplotlib", "pyarrow", "pandas"}
        code = f"""
import sys
from laptsne.cli import main
sys.argv[1:] = {arguments}
try:
    main()
finally:
    print(sorted({heavy} & sys.modules.keys()), file=sys.stderr)
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
        assert done.stderr == "[]\n"
        assert "laptsne" in done.stdout

    @pytest.mark.parametrize("start", STARTS, ids=["package", "script"])
    def test_it_runs_by_every_name(self, start):
        done = subprocess.run([sys.executable, *start, "--version"], capture_output=True, text=True, check=True)
        assert done.stdout == f"laptsne {laptsne.__version__}\n"

    def test_the_garbage_collector_leaves_what_lives_until_the_end(self):
        """Its default thresholds take a sixth of a short run, and the search for cycles at exit as much."""
        code = """
import gc, sys
from laptsne.cli import main
sys.argv[1:] = ["--version"]
try:
    main()
finally:
    print(gc.isenabled(), gc.get_threshold()[0] >= 10_000, gc.get_freeze_count() > 1000)
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.splitlines()[1:] == ["True True True"]

    def test_the_script_is_that_function(self):
        project = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text())["project"]
        assert project["scripts"] == {"laptsne": "laptsne.cli:main"}

    @pytest.mark.parametrize("missing", ["typer", "rich", "pyarrow", "matplotlib"])
    @pytest.mark.parametrize("start", STARTS, ids=["package", "script"])
    def test_without_the_extra_it_says_how_to_get_it(self, start, missing, tmp_path):
        (tmp_path / "sitecustomize.py").write_text(f"""
import sys

class Without:
    def __init__(self, finders):
        self.finders = finders

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "{missing}":
            return None
        return next((spec for f in self.finders if (spec := f.find_spec(name, path, target))), None)

sys.meta_path[:] = [Without(list(sys.meta_path))]
""")
        paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        command = [sys.executable, *start, "embed", "digits"]
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=60, check=False
        )
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr == f'laptsne: the command needs {missing}; pip install "laptsne[cli]".\n'


class TestLazyPackage:
    def test_names_are_imported_on_first_use(self):
        code = """
import sys, laptsne
assert not {"numba", "sklearn", "laptsne.estimators", "laptsne.plotting"} & sys.modules.keys()
assert {"LaptSNE", "LandmarkLaptSNE", "Descent", "estimate_memory", "plotting", "metrics"} <= set(dir(laptsne))
assert "LaptSNE" in dir(laptsne) and laptsne.LaptSNE is laptsne.estimators.laptsne.LaptSNE
assert laptsne.plotting.scatter and laptsne.metrics.knn_accuracy
from laptsne import *
assert LaptSNE is laptsne.LaptSNE and Descent.__name__ == "Descent" and __version__ == laptsne.__version__
"""
        subprocess.run([sys.executable, "-c", code], timeout=60, check=True)

    def test_other_names_are_not_there(self):
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            laptsne.nothing  # noqa: B018
