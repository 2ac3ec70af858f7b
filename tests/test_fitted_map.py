"""The fitted map: plain data that places, judges and saves without an estimator."""

import subprocess
import sys
import time
import warnings
from dataclasses import FrozenInstanceError, replace

import dask.array as da
import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import pairwise_distances

from laptsne import FittedMap, LandmarkLaptSNE, LaptSNE, LapUMAP, fitted_map
from laptsne.engine.cross_entropy import CrossEntropy
from laptsne.fields.umap_kernel import UmapKernel
from laptsne.transform.preprocessing import Preprocessing

FAST = {"max_iter": 20, "random_state": 0}
KINDS = [LaptSNE, LapUMAP, LandmarkLaptSNE]


def fitted(kind, X, **settings):
    settings = {"n_landmarks": 60, **settings} if kind is LandmarkLaptSNE else settings
    return kind(**FAST, **settings).fit(X)


@pytest.mark.parametrize("kind", KINDS)
def test_a_map_without_its_estimator(blobs, tmp_path, kind):
    X = blobs[0]
    model = fitted(kind, X[::2])
    model.save(tmp_path / "model")
    read = FittedMap.from_file(tmp_path / "model")
    new = X[1::2]
    np.testing.assert_array_equal(read.place(new), model.transform(new))
    np.testing.assert_array_equal(read.predict(new), model.predict(new))
    np.testing.assert_array_equal(read.support(new), model.support(new))
    read.to_file(tmp_path / "map")
    np.testing.assert_array_equal(FittedMap.from_file(tmp_path / "map").place(new), model.transform(new))
    with pytest.raises(ValueError, match="without an estimator; read it with FittedMap"):
        LaptSNE.load(tmp_path / "map")


def test_it_cannot_be_changed(blobs):
    with pytest.raises(FrozenInstanceError):
        fitted(LaptSNE, blobs[0]).fitted_map_.labels = None


@pytest.mark.parametrize("kind", KINDS)
def test_load_does_not_depend_on_what_was_imported(blobs, tmp_path, kind):
    fitted(kind, blobs[0]).save(tmp_path / "model")
    code = f"from laptsne import LaptSNE; print(type(LaptSNE.load({str(tmp_path / 'model')!r})).__name__)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == kind.__name__
    assert isinstance(kind.load(tmp_path / "model"), kind)


def test_other_classes_do_not_read_models_that_are_not_theirs(blobs, tmp_path):
    fitted(LaptSNE, blobs[0]).save(tmp_path / "model")
    with pytest.raises(ValueError, match="holds a model of class 'LaptSNE'; load it with laptsne"):
        LapUMAP.load(tmp_path / "model")


def test_the_first_save_computes_nothing_that_can_wait(blobs, tmp_path, monkeypatch):
    """Evidence and eigenvalues took half as long as the fit; a model with its data computes them after loading."""
    X = blobs[0]
    model = fitted(LaptSNE, X, perplexity=10)
    with monkeypatch.context() as patch:
        patch.setattr("laptsne.estimators.base.evidence", None)
        patch.setattr("laptsne.estimators.base.laplacian_spectrum", None)
        model.save(tmp_path / "model")
    loaded = LaptSNE.load(tmp_path / "model")
    assert repr(loaded.clusters_) == repr(model.clusters_)
    np.testing.assert_array_equal(loaded.data_eigenvalues_, model.data_eigenvalues_)


@pytest.mark.parametrize("settings", [{"metric": "precomputed"}, {"out_of_sample": "network"}])
def test_a_model_without_its_data_is_saved_with_the_evidence(blobs, tmp_path, settings):
    X = blobs[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fitted(LaptSNE, pairwise_distances(X) if "metric" in settings else X, **settings)
        model.save(tmp_path / "model")
    loaded = LaptSNE.load(tmp_path / "model")
    assert repr(loaded.clusters_) == repr(model.clusters_)
    np.testing.assert_array_equal(loaded.data_eigenvalues_, model.data_eigenvalues_)


def test_new_rows_go_through_the_saved_steps(blobs, tmp_path):
    """A model that was fitted to scaled and projected columns takes the columns as they came."""
    X = 1000 * blobs[0] + 7
    center, spread = X.mean(axis=0), X.std(axis=0)
    components = np.linalg.svd((X - center) / spread, full_matrices=False)[2][:4]
    steps = Preprocessing(center=center, spread=spread, mean=np.zeros(X.shape[1]), components=components)
    model = fitted(LaptSNE, steps.apply(X[::2]))
    expected = model.transform(steps.apply(X[1::2]))
    model.fitted_map_, model.n_features_in_ = replace(model.fitted_map_, preprocessing=steps), X.shape[1]
    np.testing.assert_array_equal(model.transform(X[1::2]), expected)
    np.testing.assert_array_equal(model.transform(X[::2]), model.embedding_)
    model.save(tmp_path / "model")
    loaded = LaptSNE.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(X[1::2]), expected)
    np.testing.assert_array_equal(loaded.predict(X[::2]), model.labels_)
    with pytest.raises(ValueError, match="4 features"):
        loaded.transform(steps.apply(X[1::2]))


class TestLandmarks:
    def test_labels_are_those_of_the_rows(self, blobs):
        X, _ = blobs
        model = LandmarkLaptSNE(n_landmarks=60, n_clusters=3, max_iter=100, random_state=0).fit(X)
        assert model.labels_.shape == (len(X),)
        assert model.landmark_labels_.shape == (60,)
        np.testing.assert_array_equal(model.labels_[model.landmarks_], model.landmark_labels_)
        np.testing.assert_array_equal(model.labels_, model.predict(X))

    def test_labels_of_a_dask_array_are_lazy(self, blobs):
        X = da.from_array(blobs[0], chunks=(50, -1))
        model = fitted(LandmarkLaptSNE, X)
        assert isinstance(model.labels_, da.Array)
        np.testing.assert_array_equal(model.labels_.compute(), model.predict(blobs[0]))

    def test_the_perplexity_reported_is_the_one_used(self, blobs):
        with pytest.warns(UserWarning, match="perplexity=30"):
            assert fitted(LandmarkLaptSNE, blobs[0], perplexity=30, n_neighbors=15).perplexity_ == 5

    def test_the_settings_of_the_paper(self, blobs):
        settings = LaptSNE.paper(n_clusters=3, n_neighbors="auto", max_iter=20, random_state=0).get_params()
        model = LandmarkLaptSNE(n_landmarks=60, **settings).fit(blobs[0])
        assert model.embedding_.shape == (len(blobs[0]), 2)


class TestUmap:
    def test_the_loss_of_coinciding_points(self, rng):
        P = scipy.sparse.csr_matrix(np.ones((50, 50)) - np.eye(50))
        loss = CrossEntropy(P / P.sum(), kernel=UmapKernel.of(0.1, 1.0), repulsion=5.0, exact=True)
        assert loss.trivial == pytest.approx(loss.value(loss.fields(np.zeros((50, 2)))), rel=1e-6)

    def test_progress_names_the_loss(self, blobs, capsys):
        LapUMAP(max_iter=60, verbose=True, random_state=0).fit(blobs[0])
        printed = capsys.readouterr().err
        assert "cross entropy" in printed
        assert "KL" not in printed


@pytest.mark.parametrize(("n_jobs", "threads"), [(None, 1), (2, 2)])
def test_blocks_of_dask_take_as_many_threads_as_requested(blobs, monkeypatch, n_jobs, threads):
    opened = []

    class Counted(fitted_map.Workers):
        def __init__(self, n_jobs=None):
            opened.append(n_jobs)
            super().__init__(n_jobs)

    model = fitted(LaptSNE, blobs[0], n_jobs=n_jobs)
    lazy = model.transform(da.from_array(blobs[0], chunks=(60, -1)))
    monkeypatch.setattr(fitted_map, "Workers", Counted)
    np.testing.assert_array_equal(lazy.compute(scheduler="synchronous"), model.embedding_)
    assert set(opened) == {threads}


def test_sparse_distances_of_new_points(blobs):
    X = blobs[0]
    D = pairwise_distances(X)
    model = fitted(LaptSNE, D[::2, ::2], metric="precomputed")
    new = D[1::2, ::2]
    kept = np.where(new <= np.sort(new, axis=1)[:, [45]], new, 0)  # zeros are not stored
    np.testing.assert_array_equal(model.transform(scipy.sparse.csr_matrix(kept)), model.transform(new))
    few = scipy.sparse.csr_matrix(np.where(new <= np.sort(new, axis=1)[:, [3]], new, 0))
    with pytest.raises(ValueError, match="row 0"):
        model.transform(few)


def test_new_points_of_a_large_map_do_not_take_sums_over_all_pairs(blobs, monkeypatch):
    """The sum of all similarities is known from the end of the fit."""
    from laptsne.fields import ExactFields

    X = np.vstack([blobs[0] + 0.01 * i for i in range(20)])
    model = LaptSNE(method="fourier", max_iter=20, random_state=0).fit(X)
    monkeypatch.setattr(ExactFields, "_compute_unit", None)
    assert model.transform(X[:5] + 0.1).shape == (5, 2)


def test_saving_takes_a_small_part_of_a_fit(tmp_path):
    X = np.random.default_rng(0).normal(size=(4000, 10))
    started = time.perf_counter()
    model = LaptSNE(random_state=0).fit(X)
    fit = time.perf_counter() - started
    started = time.perf_counter()
    model.save(tmp_path / "model")
    assert time.perf_counter() - started < 0.25 * fit
