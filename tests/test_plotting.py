import numpy as np
import pytest

from laptsne import plotting


@pytest.mark.parametrize("n_labels", [1, 3, 12, 13, 40])
def test_scatter_draws_all_points_and_few_labels(rng, tmp_path, n_labels):
    labels = np.arange(200) % n_labels
    ax = plotting.scatter(rng.normal(size=(200, 2)), labels, title="map")
    assert ax.collections[0].get_offsets().shape == (200, 2)
    assert len(ax.texts) == (n_labels if n_labels <= 30 else 0)
    ax.figure.savefig(tmp_path / "map.svg")
    assert (tmp_path / "map.svg").stat().st_size > 1000


def test_labels_have_different_colours(rng):
    ax = plotting.scatter(rng.normal(size=(48, 2)), np.arange(48))
    assert len(np.unique(ax.collections[0].get_facecolors(), axis=0)) == 48


def test_scatter_without_labels_and_on_given_axes(rng):
    ax = plotting.scatter(rng.normal(size=(20, 2)))
    assert plotting.scatter(rng.normal(size=(20, 2)), ax=ax) is ax
    assert not ax.texts


def test_scatter_refuses_three_dimensions(rng):
    with pytest.raises(ValueError, match=r"shape \(n_samples, 2\).*\(20, 3\)"):
        plotting.scatter(rng.normal(size=(20, 3)))


def test_eigenvalues_marks_the_gap():
    ax = plotting.eigenvalues([0, 0.01, 0.02, 0.5, 0.6])
    assert ax.texts[0].get_text() == "3 clusters"
    assert plotting.eigenvalues([0, 0.1, 0.2], 2).texts[0].get_text() == "2 clusters"
