"""Model files and checkpoints with one entry changed are refused before any kernel sees them."""

import numpy as np
import pytest
from sklearn.metrics import pairwise_distances

from laptsne import LaptSNE
from laptsne._runtime.files import read_archive, write_archive
from laptsne.engine import checkpoint

FAST = {"max_iter": 40, "perplexity": 5, "random_state": 0}


def altered(path, kind, change):
    """Write the file again with other content, and digests that match it."""
    content, arrays = read_archive(path, kind)
    change(content, arrays)
    write_archive(path, content, arrays)


class TestModel:
    @pytest.fixture
    def path(self, rng, tmp_path):
        D = pairwise_distances(rng.normal(size=(60, 4)))
        LaptSNE(metric="precomputed", **FAST).fit(D).save(tmp_path / "model")
        return tmp_path / "model"

    def test_as_many_features_as_points(self, path):
        altered(path, "model", lambda content, arrays: content["fitted"].update(n_features_in_=5_000_000))
        with pytest.raises(ValueError, match="n_features_in_ is 5000000, but there are 60 points"):
            LaptSNE.load(path)

    @pytest.mark.parametrize("label", [-2, 1000])
    def test_labels_out_of_range(self, path, label):
        altered(path, "model", lambda content, arrays: arrays["labels_"].__setitem__(0, label))
        with pytest.raises(ValueError, match="labels_"):
            LaptSNE.load(path)

    @pytest.mark.parametrize("name", ["embedding_", "labels_"])
    def test_fewer_points(self, path, name):
        altered(path, "model", lambda content, arrays: arrays.update({name: arrays[name][:30]}))
        with pytest.raises(ValueError, match="60 points"):
            LaptSNE.load(path)


class Killed(Exception):
    pass


class TestCheckpoint:
    def fit(self, X, path, kill_at=None):
        def kill(state):
            if state.iteration == kill_at:
                raise Killed

        LaptSNE(checkpoint=path, callbacks=kill, **FAST).fit(X)

    @pytest.fixture
    def X(self, rng):
        return rng.normal(size=(60, 4))

    @pytest.fixture
    def path(self, X, tmp_path, monkeypatch):
        monkeypatch.setattr(checkpoint, "EVERY", 0.0)
        with pytest.raises(Killed):
            self.fit(X, tmp_path / "run", kill_at=20)
        return tmp_path / "run"

    @pytest.mark.parametrize("name", ["Y", "velocity", "gains"])
    @pytest.mark.parametrize(
        "change",
        [
            lambda a: a[:1],
            lambda a: a[:, :1],
            lambda a: np.full_like(a, np.nan),
            lambda a: a.astype(np.float32),
            lambda a: None,
        ],
        ids=["one row", "one column", "NaN", "single precision", "missing"],
    )
    def test_an_array_that_does_not_fit(self, X, path, name, change):
        def put(content, arrays):
            arrays[name] = change(arrays[name])
            if arrays[name] is None:
                del arrays[name]

        altered(path, "checkpoint", put)
        with pytest.raises(ValueError, match=name):
            self.fit(X, path)

    @pytest.mark.parametrize("iteration", [-10_000_000, 41, 2.5, None])
    def test_an_impossible_iteration(self, X, path, iteration):
        altered(path, "checkpoint", lambda content, arrays: content.update(iteration=iteration))
        with pytest.raises(ValueError, match="iteration"):
            self.fit(X, path)
