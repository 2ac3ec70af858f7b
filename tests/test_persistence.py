import io
import json
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from laptsne import Descent, LandmarkLaptSNE, LaptSNE
from laptsne._runtime import array_file
from laptsne.embedding.kernels import Gaussian

FAST = {"max_iter": 40, "perplexity": 10, "random_state": 0}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"out_of_sample": "network"},
        {"metric": "minkowski", "metric_params": {"p": 3}},
        {"metric": "seuclidean", "metric_params": {"V": np.ones(6)}},
        {"optimizer": Descent(momentum=0.5), "penalty": 0.5},
        {"kernel": Gaussian(np.full(120, 2.0)), "out_of_sample": "network"},
        {"random_state": np.random.RandomState(0), "callbacks": [lambda state: None]},
        {"init": np.random.default_rng(0).normal(size=(120, 2))},
    ],
)
@pytest.mark.parametrize("form", [np.float64, np.float32, scipy.sparse.csr_matrix])
def test_a_model_comes_back_as_it_was(blobs, tmp_path, settings, form):
    X = form(blobs[0])
    if "metric" in settings and scipy.sparse.issparse(X):
        pytest.skip("scikit-learn has no such distance of sparse rows")
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


def test_a_model_without_a_way_to_map_comes_back(blobs, tmp_path):
    model = LaptSNE(kernel="gaussian", **FAST).fit(blobs[0])
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="out_of_sample='network'"):
        LaptSNE.load(tmp_path / "model").transform(blobs[0])


def test_names_of_features_come_back(blobs, tmp_path):
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
    sizes = [LaptSNE(out_of_sample=way, **FAST).fit(X).save(tmp_path / way) for way in ("placement", "network")]
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


def test_a_model_of_another_class_is_not_taken(blobs, tmp_path):
    LaptSNE(**FAST).fit(blobs[0]).save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"laptsne\.LaptSNE\.load"):
        LandmarkLaptSNE.load(tmp_path / "model")


def test_what_is_not_numbers_cannot_be_saved(blobs, tmp_path):
    model = LaptSNE(metric=lambda a, b: np.abs(a - b).sum(), **FAST).fit(blobs[0][:40])
    with pytest.raises(ValueError, match="metric="):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_is_not_fitted_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        LaptSNE().save(tmp_path / "model")


def test_a_failed_save_keeps_the_last_one(blobs, tmp_path, monkeypatch):
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


def test_a_file_cut_short(saved):
    whole = saved.read_bytes()
    for size in np.linspace(0, len(whole) - 1, 50).astype(int):
        saved.write_bytes(whole[:size])
        with pytest.raises(ValueError, match="truncated or damaged"):
            LaptSNE.load(saved)


def test_a_file_with_a_changed_byte(saved, rng):
    """Every change is found, or changes nothing that is read."""
    whole = saved.read_bytes()
    expected = LaptSNE.load(saved).embedding_
    n_found = 0
    for place in rng.integers(0, len(whole), 200):
        changed = bytearray(whole)
        changed[place] ^= 1 << rng.integers(8)
        saved.write_bytes(changed)
        try:
            np.testing.assert_array_equal(LaptSNE.load(saved).embedding_, expected)
        except ValueError:
            n_found += 1
    assert n_found > 180


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        LaptSNE.load(tmp_path / "none")


def rewritten(path, change, compression=zipfile.ZIP_STORED):
    """Write the file anew with other members."""
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


def test_a_newer_version(saved):
    rewritten(saved, header_with(version=array_file.VERSION + 1))
    with pytest.raises(ValueError, match="update laptsne"):
        LaptSNE.load(saved)


@pytest.mark.parametrize("version", ["1", None, 1.5, True])
def test_a_version_that_is_none(saved, version):
    rewritten(saved, header_with(version=version))
    if version is not True:
        with pytest.raises(ValueError, match="version"):
            LaptSNE.load(saved)


class Evil:
    def __reduce__(self):
        return (print, ("code of the file ran",))


def test_pickles_are_not_read(saved, capsys):
    buffer = io.BytesIO()
    np.save(buffer, np.array([Evil()], dtype=object), allow_pickle=True)
    rewritten(saved, lambda members: members.update({"embedding_.npy": buffer.getvalue()}))
    with pytest.raises(ValueError, match="not a model"):
        LaptSNE.load(saved)
    assert capsys.readouterr().out == ""


def test_an_array_larger_than_the_file_is_not_made(saved):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)})
    rewritten(saved, lambda members: members.update({"embedding_.npy": buffer.getvalue()}))
    with pytest.raises(ValueError, match="not a model"):
        LaptSNE.load(saved)


def test_compressed_members_are_not_read(saved):
    rewritten(saved, lambda members: None, zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match="compressed"):
        LaptSNE.load(saved)


def test_another_array_in_place(saved):
    buffer = io.BytesIO()
    np.save(buffer, np.zeros((120, 2)))
    rewritten(saved, lambda members: members.update({"embedding_.npy": buffer.getvalue()}))
    with pytest.raises(ValueError, match="has changed since it was saved"):
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
def test_other_contents(saved, content):
    rewritten(saved, header_with(content=content))
    with pytest.raises(ValueError, match=r"model|attribute|max_iter|missing"):
        LaptSNE.load(saved)


def test_another_zip_file(tmp_path):
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(ValueError, match="not a model"):
        LaptSNE.load(tmp_path / "other.npz")
