import io
import re

import numpy as np
import pytest
from rich.console import Console

from laptsne import LaptSNE
from laptsne.embedding.progress import ProgressBar


@pytest.fixture
def screen(monkeypatch):
    """What a terminal would be sent."""
    file = io.StringIO()
    terminal = Console(file=file, force_terminal=True, force_interactive=True, width=120, color_system=None)
    monkeypatch.setattr("laptsne.embedding.progress.Console", lambda **options: terminal)
    return file


def test_it_shows_divergence_eigengap_and_the_end(screen, blobs):
    LaptSNE(verbose=True, max_iter=60, n_clusters=3, perplexity=10, random_state=0).fit(blobs[0])
    shown = screen.getvalue()
    assert "60/60" in shown
    assert re.search(r"60/60 KL \d\.\d{3}  eigengap 0\.\d{3} ", shown)


def test_a_stage_is_shown_until_the_first_step(screen, blobs):
    with ProgressBar(30, "finding neighbours") as bar:
        bar._progress.refresh()
        assert "finding neighbours" in screen.getvalue()
        screen.truncate(0)
        LaptSNE(callbacks=bar, max_iter=30, perplexity=10, random_state=0).fit(blobs[0])
        bar._progress.refresh()
    assert "30/30" in screen.getvalue()
    assert "finding neighbours" not in screen.getvalue().splitlines()[-1]


def test_a_stage_that_fails_leaves_no_bar(screen):
    with pytest.raises(ValueError, match="told"), ProgressBar(30, "finding neighbours"):
        raise ValueError("told")
    assert "30" not in screen.getvalue()


def test_the_eigengap_is_that_of_the_map(blobs):
    """Compared with all eigenvalues of the Laplacian of the map."""
    seen = {}

    def watch(state):
        if state.contraction and state._term._fields is not None:
            gap = state.eigengap
            Y = state._term._fields.Y
            K = 1 / (1 + ((Y[:, None] - Y) ** 2).sum(-1))
            np.fill_diagonal(K, 0)
            root = np.sqrt(K.sum(1))
            sigma = np.linalg.eigvalsh(np.eye(len(Y)) - K / root[:, None] / root)
            seen[state.iteration] = (gap, sigma[3] - sigma[2])

    LaptSNE(callbacks=watch, max_iter=100, n_clusters=3, perplexity=10, random_state=0).fit(blobs[0])
    gap, exact = seen[max(seen)]
    assert gap == pytest.approx(exact, abs=0.02)
    assert exact > 0.1
