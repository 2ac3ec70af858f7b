import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from laptsne import Descent, LandmarkLaptSNE, LaptSNE
from laptsne._runtime import files
from laptsne.kernels import Gaussian

DATA = Path(__file__).parent / "data"
FAST = {"max_iter": 40, "perplexity": 10, "random_state": 0}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"out_of_sample": "network"},
        {"metric": "minkowski", "metric_params": {"p": 3}},
        {"metric": "seuclidean", "metric_params": {"V": np.ones(6)}},
        {"optimizer": Descent(momentum=0.5), "penalty": 0.5},
        {"kernel": Gaussian(2.0), "out_of_sample": "network"},
        {"random_state": np.random.RandomState(0), "callbacks": [lambda state: None]},
        {"init": np.random.default_rng(0).normal(size=(120, 2))},
    ],
)
@pytest.mark.parametrize("form", [np.float64, np.float32, scipy.sparse.csr_matrix])
def test_a_model_comes_back_as_it_was(blobs, tmp_path, settings, form):
    X = form(blobs[0])
    if "metric" in settings and scipy.sparse.issparse(X):
        pytest.skip("scikit-learn does not support this metric for sparse data")
    model = LaptSNE(**FAST | settings).fit(X)
    size = model.save(tmp_path / "model")
    assert size == (tmp_path / "model").stat().st_size
    loaded = LaptSNE.load(tmp_path / "model")
    assert repr(loaded.set_params(callbacks=None, random_state=0)) == repr(
        model.set_params(callbacks=None, random_state=0)
    )
    for name in ("embedding_", "labels_", "eigenvalues_", "data_eigenvalues_"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(model, name))
    for name in ("n_clusters_", "contraction_", "kl_divergence_", "objective_", "n_iter_", "n_features_in_"):
        assert getattr(loaded, name) == getattr(model, name)
    assert not hasattr(loaded, "affinities_")
    new = form(blobs[0] + 0.1)
    np.testing.assert_array_equal(loaded.transform(new), model.transform(new))


def test_a_model_that_cannot_transform_comes_back(blobs, tmp_path):
    model = LaptSNE(kernel="gaussian", **FAST).fit(blobs[0])
    model.save(tmp_path / "model")
    loaded = LaptSNE.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.embedding_, model.embedding_)
    assert not hasattr(loaded, "transform")


def test_feature_names_come_back(blobs, tmp_path):
    X = pd.DataFrame(blobs[0], columns=list("abcdef"))
    model = LaptSNE(**FAST).fit(X)
    model.save(tmp_path / "model")
    loaded = LaptSNE.load(tmp_path / "model").set_output(transform="pandas")
    assert list(loaded.feature_names_in_) == list("abcdef")
    assert list(loaded.transform(X).columns) == ["laptsne0", "laptsne1"]
    with pytest.raises(ValueError, match="feature names"):
        loaded.transform(X[list("fedcba")])


def test_a_network_needs_no_data(rng, tmp_path):
    X = rng.normal(size=(2000, 30))
    sizes = [
        LaptSNE(out_of_sample=method, **FAST).fit(X).save(tmp_path / method) for method in ("placement", "network")
    ]
    assert sizes[0] > X.nbytes
    assert sizes[1] < X.nbytes / 2


def test_landmarks_come_back(rng, tmp_path):
    X = rng.normal(size=(500, 5))
    model = LandmarkLaptSNE(n_landmarks=100, **FAST).fit(X)
    model.save(tmp_path / "model")
    for kind in (LaptSNE, LandmarkLaptSNE):
        loaded = kind.load(tmp_path / "model")
        assert type(loaded) is LandmarkLaptSNE
        assert loaded.n_landmarks == 100
        np.testing.assert_array_equal(loaded.landmarks_, model.landmarks_)
        np.testing.assert_array_equal(loaded.transform(X), model.embedding_)


def test_a_model_of_another_class_is_refused(blobs, tmp_path):
    LaptSNE(**FAST).fit(blobs[0]).save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"laptsne\.LaptSNE\.load"):
        LandmarkLaptSNE.load(tmp_path / "model")


def test_a_callable_cannot_be_saved(blobs, tmp_path):
    model = LaptSNE(metric=lambda a, b: np.abs(a - b).sum(), **FAST).fit(blobs[0][:40])
    with pytest.raises(ValueError, match="metric="):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_an_unfitted_model_cannot_be_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        LaptSNE().save(tmp_path / "model")


def test_a_failed_save_keeps_the_previous_file(blobs, tmp_path, monkeypatch):
    model = LaptSNE(**FAST).fit(blobs[0])
    model.save(tmp_path / "model")
    before = (tmp_path / "model").read_bytes()

    def full(*_args, **_options):
        raise OSError("No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full)
    with pytest.raises(OSError, match="No space"):
        model.save(tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.fixture
def saved(blobs, tmp_path):
    path = tmp_path / "model"
    LaptSNE(**FAST).fit(blobs[0]).save(path)
    return path


def test_a_truncated_file_is_refused(saved):
    whole = saved.read_bytes()
    for size in np.linspace(0, len(whole) - 1, 50).astype(int):
        saved.write_bytes(whole[:size])
        with pytest.raises(ValueError, match="truncated or damaged"):
            LaptSNE.load(saved)


def test_a_flipped_bit_is_detected(saved, rng):
    """Every change is detected, or affects nothing that is read."""
    whole = saved.read_bytes()
    expected = LaptSNE.load(saved).embedding_
    n_found = 0
    for position in rng.integers(0, len(whole), 200):
        changed = bytearray(whole)
        changed[position] ^= 1 << rng.integers(8)
        saved.write_bytes(changed)
        try:
            np.testing.assert_array_equal(LaptSNE.load(saved).embedding_, expected)
        except ValueError:
            n_found += 1
    assert n_found > 180


def test_models_of_version_0_1_0_load():
    """In that version the potential was called landscape. The file holds 60 points in one dimension, 3 clusters."""
    model = LaptSNE.load(DATA / "model-0.1.0.laptsne")
    assert model.n_clusters_ == 3
    assert model.embedding_.shape == (60, 1)
    new = np.random.default_rng(0).normal(size=(80, 2)) + 8 * (np.arange(80)[:, None] % 3 == [0, 1])
    expected = [6.064535539190227, 9.508922727502656, -7.2172784895581215, 15.301188143569902, 8.75802815754736]
    np.testing.assert_allclose(model.transform(np.round(new[60:65], 2)).ravel(), expected, rtol=1e-6)


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(FileNotFoundError):
        LaptSNE.load(tmp_path / "none")


def rewritten(path, change, compression=zipfile.ZIP_STORED):
    """Write the file again with other members."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members.items():
            file.writestr(name, content)


def header_with(**changes):
    def change(members):
        members["header.json"] = json.dumps(json.loads(members["header.json"]) | changes)

    return change


def test_a_newer_version_is_refused(saved):
    rewritten(saved, header_with(version=files.VERSION + 1))
    with pytest.raises(ValueError, match="update laptsne"):
        LaptSNE.load(saved)


@pytest.mark.parametrize("version", ["1", None, 1.5])
def test_an_invalid_version_is_refused(saved, version):
    rewritten(saved, header_with(version=version))
    with pytest.raises(ValueError, match="version"):
        LaptSNE.load(saved)


class Evil:
    """Prints something when unpickled."""

    def __reduce__(self):
        return (print, ("code from the file was executed",))


def test_pickles_are_not_read(saved, capsys):
    buffer = io.BytesIO()
    np.save(buffer, np.array([Evil()], dtype=object), allow_pickle=True)
    rewritten(saved, lambda members: members.update({"embedding.npy": buffer.getvalue()}))
    with pytest.raises(ValueError, match="not a model"):
        LaptSNE.load(saved)
    assert capsys.readouterr().out == ""


def test_an_array_larger_than_the_file_is_not_allocated(saved):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)})
    rewritten(saved, lambda members: members.update({"embedding.npy": buffer.getvalue()}))
    with pytest.raises(ValueError, match="not a model"):
        LaptSNE.load(saved)


def test_compressed_members_are_not_read(saved):
    rewritten(saved, lambda members: None, zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match="compressed"):
        LaptSNE.load(saved)


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        {"class": "LaptSNE"},
        {"class": "os", "parameters": {}, "fitted": {}, "mapping": None},
        {"class": "LaptSNE", "parameters": {"max_iter": -1}, "fitted": {}, "mapping": None},
        {"class": "LaptSNE", "parameters": {"unknown": 1}, "fitted": {}, "mapping": None},
        {"class": "LaptSNE", "parameters": {}, "fitted": {"transform": 1}, "mapping": None},
        {"class": "LaptSNE", "parameters": {}, "fitted": {"__class__": 1}, "mapping": None},
        {"class": "LaptSNE", "parameters": {}, "fitted": {}, "mapping": {"object": "eval", "parts": {}}},
        {"class": "LaptSNE", "parameters": {}, "fitted": {}, "mapping": {"array": "nothing"}},
    ],
)
def test_invalid_content_is_refused(saved, content):
    rewritten(saved, header_with(content=content))
    with pytest.raises(ValueError, match=r"model|attribute|max_iter|missing"):
        LaptSNE.load(saved)


def test_another_zip_file_is_refused(tmp_path):
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(ValueError, match="not a model"):
        LaptSNE.load(tmp_path / "other.npz")
