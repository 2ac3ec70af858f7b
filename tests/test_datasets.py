import numpy as np
import pytest

from laptsne.datasets import load


def test_digits_and_waveform_need_no_file():
    assert load("digits")[0].shape == (1797, 64)
    X, y = load("waveform")
    assert X.shape == (5000, 21)
    assert np.bincount(y).min() > 1500
    np.testing.assert_array_equal(X, load("waveform")[0])


def test_waveform_has_the_means_of_breiman():
    X, y = load("waveform")
    position = np.arange(1, 22)
    triangles = [np.maximum(6 - abs(position - c), 0) for c in (7, 15, 11)]
    for label, (a, b) in enumerate([(0, 1), (0, 2), (1, 2)]):
        np.testing.assert_allclose(X[y == label].mean(0), (triangles[a] + triangles[b]) / 2, atol=0.2)


def test_files_are_looked_for_in_the_folder_of_the_environment(tmp_path, monkeypatch):
    np.savez(tmp_path / "coil20.npz", X=np.ones((4, 3)), y=np.arange(4))
    monkeypatch.setenv("LAPTSNE_DATA", str(tmp_path))
    assert load("coil20")[0].shape == (4, 3)
    with pytest.raises(FileNotFoundError, match=r"put mnist.npz.*LAPTSNE_DATA"):
        load("mnist")


def test_without_the_folder_the_error_says_what_to_do(monkeypatch):
    monkeypatch.delenv("LAPTSNE_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"put coil20.npz.*LAPTSNE_DATA"):
        load("coil20")


def test_unknown_names():
    with pytest.raises(ValueError, match=r"name must be one of digits.*got 'iris'"):
        load("iris")
