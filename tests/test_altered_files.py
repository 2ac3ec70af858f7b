"""Model files and checkpoints with one entry changed are refused before any kernel sees them."""

import numpy as np
import pytest
from sklearn.metrics import pairwise_distances

from laptsne import LaptSNE
from laptsne._runtime.files import read_archive, write_archive
from laptsne.engine import checkpoint

BATCHES_OF_PAPER = {"batch_size": 20, "contraction_kernel": "student", "penalty": "trace"}
ONLY_SHOWN = tuple(f"fitted.{name}" for name in ("eigenvalues_", "data_eigenvalues_", "clusters_", "cluster_tree_"))
FAST = {"max_iter": 40, "perplexity": 5, "random_state": 0}


def altered(path, kind, change):
    """Write the file again with other content, and digests that match it."""
    content, arrays = read_archive(path, kind)
    change(content, arrays)
    write_archive(path, content, arrays)


class TestModel:
    @pytest.fixture(params=["features", "precomputed", "network"])
    def path(self, request, rng, tmp_path):
        X = rng.normal(size=(60, 4))
        settings = {
            "features": {},
            "precomputed": {"metric": "precomputed"},
            "network": {"out_of_sample": "network"},
        }[request.param]
        model = LaptSNE(**settings, **FAST).fit(pairwise_distances(X) if request.param == "precomputed" else X)
        model.save(tmp_path / "model")
        return tmp_path / "model"

    def test_as_many_features_as_points(self, path):
        altered(path, "model", lambda content, arrays: content["fitted"]["dict"].update(n_features_in_=5_000_000))
        with pytest.raises(ValueError, match="n_features_in_ is 5000000"):
            LaptSNE.load(path)

    @pytest.mark.parametrize("label", [-2, 1000])
    def test_labels_out_of_range(self, path, label):
        altered(path, "model", lambda content, arrays: arrays["labels"].__setitem__(0, label))
        with pytest.raises(ValueError, match="labels: from"):
            LaptSNE.load(path)

    @pytest.mark.parametrize(
        "change",
        [
            lambda a: a[:1],
            lambda a: a[..., None],
            lambda a: np.full(a.shape, np.nan),
            lambda a: a.astype("U5"),
            lambda a: None,
        ],
        ids=["one row", "one more axis", "NaN", "text", "missing"],
    )
    def test_one_array_at_a_time(self, path, change):
        """Whichever array is changed, the file is refused, or what it affects does not concern the map."""
        names = list(read_archive(path, "model")[1])
        original = path.read_bytes()
        assert {"embedding", "labels"} < set(names)
        for name in names:
            if name.startswith(ONLY_SHOWN):
                continue

            def put(content, arrays, name=name):
                arrays[name] = change(arrays[name])
                if arrays[name] is None:
                    del arrays[name]

            path.write_bytes(original)
            altered(path, "model", put)
            with pytest.raises(ValueError, match="model"):
                LaptSNE.load(path)


class Killed(Exception):
    pass


class TestCheckpoint:
    def fit(self, X, path, kill_at=None, **settings):
        def kill(state):
            if state.iteration == kill_at:
                raise Killed

        LaptSNE(checkpoint=path, callbacks=kill, **FAST, **settings).fit(X)

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
            key = f"descent.{name}"
            arrays[key] = change(arrays[key])
            if arrays[key] is None:
                del arrays[key]

        altered(path, "checkpoint", put)
        with pytest.raises(ValueError, match=name):
            self.fit(X, path)

    @pytest.mark.parametrize("settings", [{"n_clusters": 3}, {"batch_size": 20}, BATCHES_OF_PAPER])
    def test_one_array_at_a_time(self, X, tmp_path, monkeypatch, settings):
        monkeypatch.setattr(checkpoint, "EVERY", 0.0)
        path, settings = tmp_path / "run", {"n_clusters": 3, **settings}
        with pytest.raises(Killed):
            self.fit(X, path, kill_at=35, **settings)
        original = path.read_bytes()
        for name in read_archive(path, "checkpoint")[1]:
            for change in (lambda a: a[:1], lambda a: a[..., None], lambda a: np.full(a.shape, np.nan)):
                path.write_bytes(original)
                if len(read_archive(path, "checkpoint")[1][name]) < 2:
                    continue
                altered(path, "checkpoint", lambda content, arrays: arrays.update({name: change(arrays[name])}))  # noqa: B023
                with pytest.raises(ValueError, match=name.partition(".")[2]):
                    self.fit(X, path, **settings)

    @pytest.mark.parametrize("iteration", [-10_000_000, 41, 2.5, None])
    def test_an_impossible_iteration(self, X, path, iteration):
        altered(path, "checkpoint", lambda content, arrays: content["numbers"].update({"descent.iteration": iteration}))
        with pytest.raises(ValueError, match="iteration"):
            self.fit(X, path)
