import elsewhere
import numpy as np
import pytest
from browser import chromium, opened


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def blobs(rng):
    """Three clusters of 40 points in 6 dimensions, and their labels."""
    centres = rng.normal(scale=10, size=(3, 6))
    labels = np.repeat([0, 1, 2], 40)
    return centres[labels] + rng.normal(size=(120, 6)), labels


@pytest.fixture
def kernel_threads(monkeypatch):
    """Split small kernels among threads as well, and record in which threads they run."""
    return elsewhere.record_kernel_threads(monkeypatch.setattr)


@pytest.fixture(scope="module")
def browser():
    with chromium() as it:
        yield it


@pytest.fixture
def page(browser, file):
    """The explorer's file of a module, opened."""
    with opened(browser, file) as it:
        yield it
