import io
import re

import numpy as np
import pytest
from rich.console import Console

from laptsne import LaptSNE
from laptsne._runtime.threads import Workers
from laptsne.engine.progress import ProgressBar


@pytest.fixture
def screen(monkeypatch):
    """What a terminal would be sent."""
    file = io.StringIO()
    terminal = Console(file=file, force_terminal=True, force_interactive=True, width=120, color_system=None)
    monkeypatch.setattr("rich.console.Console", lambda **options: terminal)
    return file


def last_line(screen):
    return [line for line in screen.getvalue().splitlines() if "KL" in line][-1]


def fitted(X, **settings):
    """Fit a model with a progress bar, as the command does."""
    with ProgressBar(60, "finding neighbours") as bar:
        shown = [*settings.pop("callbacks", []), bar]
        model = LaptSNE(max_iter=60, perplexity=10, random_state=0, callbacks=shown, **settings).fit(X)
        bar.end(model.n_iter_, model.kl_divergence_, model.contraction_)
    return model


def test_it_shows_divergence_contraction_and_the_end(screen, blobs):
    model = fitted(blobs[0], n_clusters=3)
    shown = screen.getvalue()
    assert re.search(r"50/60 KL \d\.\d{3}", shown)
    assert f"60/60 KL {model.kl_divergence_:.3f}  contraction {model.contraction_:.3g}" in last_line(screen)


def test_a_fit_that_ends_early_is_not_shown_as_complete(screen, blobs):
    model = fitted(blobs[0], callbacks=[lambda state: state.iteration == 20])
    assert f"20/60 KL {model.kl_divergence_:.3f}" in last_line(screen)


def test_a_stage_is_shown_until_the_first_step(screen, blobs):
    with ProgressBar(30, "finding neighbours") as bar:
        bar._bar.refresh()
        assert "finding neighbours" in screen.getvalue()
        screen.truncate(0)
        LaptSNE(callbacks=bar, max_iter=30, perplexity=10, random_state=0).fit(blobs[0])
        bar.end(30, 0.5, 0.0)
    assert "30/30 KL 0.500" in last_line(screen)
    assert "finding neighbours" not in screen.getvalue().splitlines()[-1]


def test_a_stage_that_fails_leaves_no_bar(screen):
    with pytest.raises(ValueError, match="told"), ProgressBar(30, "finding neighbours"):
        raise ValueError("told")
    assert "30" not in screen.getvalue()


def test_verbose_prints_lines(capsys, blobs):
    model = LaptSNE(verbose=True, max_iter=120, perplexity=10, random_state=0).fit(blobs[0])
    lines = capsys.readouterr().err.splitlines()
    assert f"KL divergence {model.kl_divergence_:.3f}" in lines[-1]
    assert [re.sub(r"\d\.\d{3}|\d+\.\d s", "#", line) for line in lines] == [
        f"[laptsne] iteration {i} of 120, KL divergence #, #{left}"
        for i, left in ((50, ", about # left"), (100, ", about # left"), (120, ""))
    ]


def test_steps_before_the_descent_are_reported_with_the_time_that_is_left(capsys, monkeypatch):
    times = iter([0.0, 20.0, 60.0, 65.0, 100.0, 130.0])
    monkeypatch.setattr("laptsne._runtime.threads.time.perf_counter", lambda: next(times))
    workers = Workers(1, verbose=True)
    for done in (0.0, 0.4, 0.45, 1.0):
        workers.report("nearest neighbours", done)
    workers.report("clusters")
    assert capsys.readouterr().err.splitlines() == [
        "[laptsne] nearest neighbours",
        "[laptsne] nearest neighbours: 40% done, about 60 s left",
        "[laptsne] clusters",
    ]


def test_nothing_is_reported_unless_asked_for(capsys, monkeypatch):
    monkeypatch.setattr("laptsne._runtime.threads._QUIET", -1.0)
    Workers(1).report("clusters")
    assert capsys.readouterr().err == ""
    LaptSNE(verbose=True, max_iter=60, perplexity=10).fit(np.random.default_rng(0).normal(size=(400, 3)))
    lines = capsys.readouterr().err
    for step in ("affinities", "spectrum of the affinities", "clusters"):
        assert f"[laptsne] {step}\n" in lines
