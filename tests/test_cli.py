import csv

import numpy as np
import pytest
from typer.testing import CliRunner

from laptsne.cli import app


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture
def table(blobs, tmp_path):
    X, labels = blobs
    with (tmp_path / "cells.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "kind", "c"])
        writer.writerows([x[0], x[1], f"kind {k}", x[2]] for x, k in zip(X, labels, strict=True))
    return tmp_path / "cells.csv"


def test_embed_writes_a_table_and_a_picture(run, table, tmp_path):
    result = run("embed", table, "--label", "kind", "--perplexity", 10)
    assert result.exit_code == 0
    assert "points       120 x 3" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 5
    rows = list(csv.DictReader((tmp_path / "cells-map.csv").open()))
    assert len(rows) == 120
    assert list(rows[0]) == ["x", "y", "cluster", "label"]
    assert rows[0]["label"] == "kind 0"
    assert np.isfinite([float(row["x"]) for row in rows]).all()
    assert (tmp_path / "cells-map.png").read_bytes().startswith(b"\x89PNG")


def test_where_there_are_no_clusters_it_says_so(run, rng, tmp_path):
    np.save(tmp_path / "cloud.npy", rng.normal(size=(300, 5)))
    result = run("embed", "cloud.npy")
    assert "clusters     none: there is no evidence of any" in result.stderr
    assert "contraction  0," in result.stderr
    result = run("embed", "cloud.npy", "--force", "--contraction", 0.02)
    assert result.exit_code == 0
    assert "laptsne: contraction=0.02 has nothing to contract" in result.stderr
    assert "contraction  0," in result.stderr
    assert len(result.stderr.strip().splitlines()) == 6


def test_nothing_is_overwritten_without_force(run, table, tmp_path):
    target = tmp_path / "cells-map.csv"
    target.write_text("precious")
    result = run("embed", table, "--label", "kind")
    assert result.exit_code == 2
    assert "--force" in result.stderr
    assert target.read_text() == "precious"
    assert run("embed", table, "--label", "kind", "--force", "--perplexity", 5).exit_code == 0
    assert target.read_text() != "precious"


def test_arrays_and_options(run, blobs, tmp_path):
    np.save(tmp_path / "x.npy", blobs[0])
    arguments = ("--out", "m.csv", "--plot", "m.svg", "--contraction", 0, "--clusters", 4, "--perplexity", 9)
    result = run("embed", "x.npy", *arguments)
    assert result.exit_code == 0
    assert "clusters     4, as given" in result.stderr
    assert "contraction  0," in result.stderr
    assert (tmp_path / "m.svg").read_text().lstrip().startswith("<?xml")
    first = (tmp_path / "m.csv").read_text()
    assert run("embed", "x.npy", *arguments, "--force").exit_code == 0
    assert (tmp_path / "m.csv").read_text() == first


@pytest.mark.parametrize(
    ("name", "content", "arguments", "message"),
    [
        ("none.csv", None, (), "there is no file none.csv"),
        ("x.xlsx", b"x", (), "neither .csv nor .npy"),
        ("x.npy", b"not an array", (), "not an array of numbers"),
        ("x.npy", b"", (), "not an array"),
        ("x.csv", b"", (), "no rows"),
        ("x.csv", b"a,b\n", (), "no rows"),
        ("x.csv", b"a,b\n1,2\n3\n", (), "row 3 has 1 values"),
        ("x.csv", b"a,b\n1,x\n3,y\n", (), "column b is not all numbers"),
        ("x.csv", b"a,b\n1,nan\n3,4\n", (), "NaN"),
        ("x.csv", b"a,b\n1,2\n3,4\n", ("--label", "c"), "no column c; its columns are a, b"),
        ("x.csv", b"a\n1\n3\n", ("--label", "a"), "no column to embed"),
        ("x.csv", b"a,b\n1,2\n", (), "1 sample"),
        ("x.csv", b"\xff\xfe\x00", (), "UTF-8"),
        ("x.csv", b"a,b\n1,2\n3,4\n5,6\n", ("--clusters", "7"), "n_clusters=7 is out of range"),
        ("x.csv", b"a,b\n1,2\n3,4\n5,6\n", ("--out", "x.xlsx"), "ends in .csv"),
        ("x.csv", b"a,b\n1,2\n3,4\n5,6\n", ("--plot", "x.bmpx"), "ends in .png or .svg or .pdf"),
        ("x.csv", b"a,b\n1,2\n3,4\n5,6\n", ("--out", "nowhere/x.csv"), "no folder nowhere"),
        ("digits", None, ("--label", "a"), "its own labels"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_with_exit_code_2(run, tmp_path, name, content, arguments, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    result = run("embed", name, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    lines = [line for line in result.stderr.strip().splitlines() if "Warning" not in line and "warn" not in line]
    assert sum(line.startswith("laptsne: ") for line in lines) == 1
    assert "Traceback" not in result.output


def test_help_shows_examples(run):
    result = run("embed", "--help")
    assert result.exit_code == 0
    assert "laptsne embed digits" in result.output
