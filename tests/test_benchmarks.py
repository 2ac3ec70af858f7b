"""Benchmarks that name functions of the package, or decide whether a commit passes."""

import sys
from pathlib import Path

import numpy as np
import pytest

from laptsne import LaptSNE


@pytest.fixture(autouse=True)
def benchmarks_on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "benchmarks"))
    yield
    for name in ("phases", "peers_report", "regression", "data"):
        sys.modules.pop(name, None)


def test_phases_charge_a_fit_to_parts_that_exist(rng):
    phases = pytest.importorskip("phases", reason="needs pooch, of the extra reproduction", exc_type=ImportError)
    measured = phases.Phases()
    measured.run(lambda: LaptSNE(max_iter=20, random_state=0).fit(rng.normal(size=(300, 4))))
    assert sys.getprofile() is None or sys.getprofile() != measured._on_event
    parts = {part for part, seconds in measured.seconds.items() if seconds > 0}
    expected = {"nearest neighbours", "affinities", "spectrum of the data", "clusters", "attraction", "descent, other"}
    assert expected <= parts
    assert measured.seconds["repulsion of all pairs"] > 0


def test_the_fastest_peer_is_the_unit(capsys, tmp_path):
    report = pytest.importorskip("peers_report").report
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
def test_a_fit_that_is_much_slower_than_stored_fails_the_check(monkeypatch, capsys, slowdown, code):
    regression = pytest.importorskip("regression")
    monkeypatch.setattr(regression, "WORKLOADS", {"small": (50, {"max_iter": 2}, 3.0)})
    times = iter([9.0, 1.0, 3.0 * slowdown, 1.0, 8.0, 2.0])  # fits and calibrations take turns; minima count
    monkeypatch.setattr(regression, "cpu_seconds", lambda _: next(times))
    assert regression.main() == code
    assert ("More than 2 times slower than stored: small" in capsys.readouterr().out) == bool(code)


def test_the_points_of_the_check_are_always_the_same():
    regression = pytest.importorskip("regression")
    np.testing.assert_array_equal(regression.points(20), regression.points(20))
