import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from sklearn.metrics import silhouette_score

from laptsne import LandmarkLaptSNE, LaptSNE
from laptsne.contraction import ContractionPath, contraction_path
from laptsne.metrics import trustworthiness


@pytest.fixture(scope="module")
def near_blobs():
    """Three clusters that touch, and a model of them."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 200)
    X = rng.normal(scale=1.5, size=(3, 6))[labels] + rng.normal(size=(600, 6))
    return X, labels, LaptSNE(n_clusters=3, random_state=0).fit(X)


@pytest.fixture(scope="module")
def path(near_blobs):
    X, _, model = near_blobs
    return contraction_path(model, X)


def test_begins_at_no_contraction_and_rises_beyond_the_model(near_blobs, path):
    _, _, model = near_blobs
    assert path.contractions[0] == 0
    assert np.all(np.diff(path.contractions) > 0)
    assert path.contractions[path.chosen] == model.contraction_
    assert path.contractions[-1] == pytest.approx(3 * model.contraction_)


def test_the_model_is_a_stop(near_blobs, path):
    _, _, model = near_blobs
    np.testing.assert_array_equal(path.embeddings[path.chosen], model.embedding_.astype(np.float32))
    assert path.kl_divergences[path.chosen] == pytest.approx(model.kl_divergence_, rel=1e-6)
    np.testing.assert_allclose(path.eigenvalues[path.chosen], model.eigenvalues_, atol=2e-3)


def test_contraction_presses_eigenvalues_and_costs_divergence(near_blobs, path):
    _, labels, _ = near_blobs
    # The model's own map was stopped earlier, where the others had more iterations.
    pressed, divergences = (np.delete(v, path.chosen) for v in (path.eigenvalues.sum(axis=1), path.kl_divergences))
    # Both level off once the clusters are apart; eigenvalues are those of the finest level, the least of the term.
    assert np.all(np.diff(pressed) < 0.03 * pressed[0])
    assert pressed[-1] < 0.25 * pressed[0]
    assert np.all(np.diff(divergences) > -0.01 * divergences[0])
    assert divergences[-1] > 1.01 * divergences[0]
    assert pressed[0] > path.eigenvalues[path.chosen].sum() > pressed[-1]
    assert silhouette_score(path.embeddings[-1], labels) > silhouette_score(path.embeddings[0], labels) + 0.05


def test_the_first_map_is_as_good_as_plain(near_blobs, path):
    X, _, _ = near_blobs
    plain = LaptSNE(contraction=0, n_clusters=3, random_state=0).fit(X)
    assert path.kl_divergences[0] < plain.kl_divergence_ * 1.05


def test_scores_are_those_of_the_maps(near_blobs, path):
    X, _, _ = near_blobs
    expected = [trustworthiness(X, Y, n_neighbors=15) for Y in path.embeddings]
    np.testing.assert_allclose(path.trustworthiness, expected, atol=1e-3)
    assert np.all((path.neighbors_kept > 0.2) & (path.neighbors_kept < 1))


def test_points_can_be_followed(path):
    """Neighbouring maps are alike without being turned or mirrored."""
    for Y, Z in zip(path.embeddings[:-1], path.embeddings[1:], strict=True):
        assert np.linalg.norm(Y - Z) < 0.7 * np.linalg.norm(Z - Z.mean(axis=0))


def test_a_plain_model_is_the_first_stop(near_blobs):
    X, _, _ = near_blobs
    model = LaptSNE(contraction=0, n_clusters=3, max_iter=100, random_state=0).fit(X)
    path = contraction_path(model, X, n_maps=3)
    assert path.chosen == 0
    assert path.contractions[0] == 0 < path.contractions[1] < path.contractions[2]


@pytest.mark.parametrize("n_maps", [2, 3, 4, 9])
def test_any_number_of_maps(near_blobs, n_maps, monkeypatch):
    X, _, model = near_blobs
    monkeypatch.setattr("laptsne.estimators.contraction_path._MAX_MOVES", 1)
    monkeypatch.setattr("laptsne.estimators.contraction_path._MIN_ITER", 2)
    path = contraction_path(model, X, n_maps=n_maps)
    assert path.embeddings.shape == (n_maps, 600, 2)
    assert path.contractions[0] == 0
    assert path.contractions[path.chosen] == model.contraction_


@pytest.mark.parametrize(
    ("metric", "known"), [("precomputed", True), ("affinities", False), ("cosine", True), ("graph", False)]
)
def test_what_is_not_features(near_blobs, metric, known, monkeypatch):
    X, _, model = near_blobs
    monkeypatch.setattr("laptsne.estimators.contraction_path._MAX_MOVES", 1)
    monkeypatch.setattr("laptsne.estimators.contraction_path._MIN_ITER", 2)
    options = {"n_clusters": 3, "max_iter": 30, "random_state": 0}
    if metric == "graph":
        from sklearn.neighbors import kneighbors_graph

        given, metric = kneighbors_graph(X, 60, mode="distance"), "precomputed"
    else:
        given = {"precomputed": squareform(pdist(X)), "affinities": model.affinities_, "cosine": X}[metric]
    path = contraction_path(LaptSNE(metric=metric, **options).fit(given), given, n_maps=2)
    assert np.isfinite(path.trustworthiness).all() == known
    assert np.isfinite(path.neighbors_kept).all()


def test_what_cannot_be_walked_is_refused(near_blobs, tmp_path):
    X, _, model = near_blobs
    with pytest.raises(ValueError, match="n_maps must be at least 2"):
        contraction_path(model, X, n_maps=1)
    with pytest.raises(ValueError, match="nothing to contract"):
        contraction_path(LaptSNE(n_clusters=1, max_iter=10).fit(X), X)
    with pytest.raises(ValueError, match="one of landmarks"):
        contraction_path(LandmarkLaptSNE(n_landmarks=60, n_clusters=3, max_iter=10).fit(X), X)
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="loaded from a file"):
        contraction_path(LaptSNE.load(tmp_path / "model"), X)


def test_a_path_has_a_short_repr():
    values = np.linspace(0, 0.12, 7)
    path = ContractionPath(values, np.zeros((7, 1000, 2)), values, values, values, values, np.zeros((7, 3)), 3)
    assert repr(path) == "ContractionPath(7 maps of 1,000 points, contraction 0 to 0.12, chosen=3)"


class TestFilm:
    @pytest.fixture
    def short(self):
        """Two clusters that move apart, in two maps."""
        side = np.repeat([-1.0, 1.0], 30)
        noise = np.random.default_rng(0).normal(size=(60, 2)) / 9
        maps = np.stack([noise + np.c_[step * side, side] for step in (0.0, 1.0)]).astype(np.float32)
        curve = np.array([0.0, 0.5])
        return ContractionPath(curve, maps, curve, curve, curve, curve, np.zeros((2, 2)), 0)

    def test_gif(self, short, tmp_path):
        image = pytest.importorskip("PIL.Image")
        out = tmp_path / "path.GIF"
        out.write_text("before")
        assert short.save(out, ["left"] * 30 + ["right"] * 30) == out
        film = image.open(out)
        assert film.format == "GIF"
        frames = []
        for i in range(film.n_frames):
            film.seek(i)
            frames.append(np.asarray(film.convert("RGB")).astype(int))
        assert len(frames) > 10
        reds, blues = (
            [np.abs(f[60:] - colour).sum(2) < 60 for f in frames] for colour in ((240, 160, 0), (31, 119, 180))
        )
        reach = [np.ptp(np.flatnonzero((red | blue)[:, :460].any(0))) for red, blue in zip(reds, blues, strict=True)]
        assert reach[-1] > 1.5 * reach[0]  # the points move apart
        assert [file.name for file in tmp_path.iterdir()] == ["path.GIF"]

    @pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for ffmpeg is a shell script")
    def test_mp4(self, short, tmp_path, monkeypatch):
        pytest.importorskip("matplotlib")
        program = tmp_path / "bin" / "ffmpeg"
        program.parent.mkdir()
        program.write_text('#!/bin/sh\nfor last; do :; done\nexec cat > "$last"\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent), prepend=":")
        frame = 640 * 520 * 4
        assert short.save(tmp_path / "path.mp4").stat().st_size % frame == 0
        assert (tmp_path / "path.mp4").stat().st_size >= 50 * frame

    def test_what_cannot_be_written_is_refused(self, short, tmp_path, monkeypatch):
        pytest.importorskip("matplotlib")
        with pytest.raises(ValueError, match=r"path='path.webm' must end in .gif or .mp4"):
            short.save("path.webm")
        with pytest.raises(ValueError, match=r"labels must have shape \(60,\)"):
            short.save(tmp_path / "path.gif", [1, 2])
        with pytest.raises(ValueError, match="needs n_components=2"):
            replace(short, embeddings=np.zeros((2, 60, 3))).save(tmp_path / "path.gif")
        monkeypatch.setenv("PATH", "")
        with pytest.raises(RuntimeError, match="needs ffmpeg, which was not found"):
            short.save(tmp_path / "path.mp4")
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        with pytest.raises(ImportError, match=r"laptsne\[plot\]"):
            short.save(tmp_path / "path.gif")
        assert list(tmp_path.iterdir()) == []
