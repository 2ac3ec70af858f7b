import random
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

from laptsne import Descent, LandmarkLaptSNE, LaptSNE
from laptsne._runtime import files
from laptsne.engine import checkpoint
from laptsne.kernels import Gaussian


class Killed(Exception):
    pass


def killed_at(iteration):
    def callback(state):
        if state.iteration == iteration:
            raise Killed

    return callback


@pytest.fixture(autouse=True)
def at_every_rest(monkeypatch):
    monkeypatch.setattr(checkpoint, "EVERY", 0.0)


SETTINGS = [
    {},
    {"n_clusters": 3},
    {"n_clusters": 3, "method": "fourier"},
    {"method": "fourier"},
    {"batch_size": 30},
    {"batch_size": 30, "n_clusters": 3, "n_batch_neighbors": 2},
    {"kernel": "gaussian", "n_clusters": 3},
    {"n_components": 1, "n_clusters": 3},
    {"n_components": 3, "n_clusters": 3},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_run_goes_on_with_the_same_bits(blobs, tmp_path, settings):
    X, _ = blobs
    path = tmp_path / "run"
    options = {"max_iter": 120, "random_state": 0, **settings}
    whole = LaptSNE(**options).fit(X)
    for iteration in (7, 77, 118):
        with pytest.raises(Killed):
            LaptSNE(**options, checkpoint=path, callbacks=killed_at(iteration)).fit(X)
        assert path.exists()
        seen = []
        resumed = LaptSNE(**options, checkpoint=path, callbacks=lambda state, seen=seen: seen.append(state.iteration))
        resumed.fit(X)
        assert iteration - Descent().refresh_every <= seen[0] <= iteration
        for name in ("embedding_", "labels_", "eigenvalues_", "kl_divergence_", "n_clusters_", "n_iter_"):
            np.testing.assert_array_equal(getattr(resumed, name), getattr(whole, name))
        assert not list(tmp_path.iterdir())


def test_a_run_that_settles_early_goes_on_as_it_was(blobs, tmp_path):
    """How long the objective has not fallen is part of the state."""
    X, _ = blobs
    path = tmp_path / "run"
    options = {"max_iter": 1500, "random_state": 0, "n_clusters": 3, "optimizer": Descent(tol=0.05)}
    whole = LaptSNE(**options).fit(X)
    assert whole.n_iter_ < 1500
    with pytest.raises(Killed):
        LaptSNE(**options, checkpoint=path, callbacks=killed_at(whole.n_iter_ - 1)).fit(X)
    resumed = LaptSNE(**options, checkpoint=path).fit(X)
    assert resumed.n_iter_ == whole.n_iter_
    np.testing.assert_array_equal(resumed.embedding_, whole.embedding_)


def test_landmarks_go_on_too(blobs, tmp_path):
    X, _ = blobs
    options = {"n_landmarks": 60, "max_iter": 60, "random_state": 0}
    whole = LandmarkLaptSNE(**options).fit_transform(X)
    with pytest.raises(Killed):
        LandmarkLaptSNE(**options, checkpoint=tmp_path / "run", callbacks=killed_at(40)).fit(X)
    resumed = LandmarkLaptSNE(**options, checkpoint=tmp_path / "run").fit_transform(X)
    np.testing.assert_array_equal(resumed, whole)


def stopped(X, path, **options):
    with pytest.raises(Killed):
        LaptSNE(**{"max_iter": 60, "random_state": 0, **options}, checkpoint=path, callbacks=killed_at(30)).fit(X)


@pytest.mark.parametrize("change", [{"random_state": 1}, {"max_iter": 61}, {"contraction": 0.1}, {"perplexity": 9}])
def test_another_run_is_refused(blobs, tmp_path, change):
    X, _ = blobs
    path = tmp_path / "run"
    stopped(X, path)
    with pytest.raises(
        ValueError,
        match="belongs to a run with other data, other parameters or another version of laptsne; remove that file",
    ):
        LaptSNE(**{"max_iter": 60, "random_state": 0, **change}, checkpoint=path).fit(X)
    assert path.exists()


def test_another_kernel_is_refused(blobs, tmp_path):
    """Widths that differ in one digit are another run."""
    X, _ = blobs
    options = {"max_iter": 60, "random_state": 0, "n_clusters": 3, "checkpoint": tmp_path / "run"}
    stopped(X, tmp_path / "run", kernel=Gaussian(1.0), n_clusters=3)
    with pytest.raises(ValueError, match="other data, other parameters"):
        LaptSNE(kernel=Gaussian(1 + 1e-12), **options).fit(X)


@pytest.mark.parametrize("place", [".", "nowhere/run"])
def test_a_place_that_cannot_be_is_refused_before_the_work(blobs, tmp_path, place, monkeypatch):
    monkeypatch.setattr("laptsne.methods.joint_affinities", None)
    with pytest.raises(ValueError, match="give the path of a file in an existing folder"):
        LaptSNE(random_state=0, checkpoint=tmp_path / place).fit(blobs[0])


def test_other_data_are_refused(blobs, tmp_path):
    X, _ = blobs
    stopped(X, tmp_path / "run")
    with pytest.raises(ValueError, match="other data"):
        LaptSNE(max_iter=60, random_state=0, checkpoint=tmp_path / "run").fit(X + X**2)


def test_threads_and_callbacks_are_no_other_run(blobs, tmp_path):
    X, _ = blobs
    stopped(X, tmp_path / "run", n_jobs=1)
    LaptSNE(max_iter=60, random_state=0, n_jobs=2, checkpoint=tmp_path / "run", callbacks=lambda _: None).fit(X)


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(0)])
def test_a_run_that_cannot_be_made_again_is_refused(blobs, tmp_path, random_state):
    with pytest.raises(ValueError, match="set random_state to an integer"):
        LaptSNE(random_state=random_state, checkpoint=tmp_path / "run").fit(blobs[0])


def test_a_damaged_file_is_refused(blobs, tmp_path):
    path = tmp_path / "run"
    stopped(blobs[0], path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)
    with pytest.raises(ValueError, match="make the checkpoint again"):
        LaptSNE(max_iter=60, random_state=0, checkpoint=path).fit(blobs[0])


def test_a_full_disk_leaves_the_last_good_file(blobs, tmp_path, monkeypatch):
    X, _ = blobs
    path = tmp_path / "run"
    stopped(X, path)
    before = path.read_bytes()
    write = np.lib.format.write_array

    def full(file, array, **options):
        write(file, array[: len(array) // 2], **options)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full)
    with pytest.raises(Killed), pytest.warns(UserWarning, match="could not be written .*No space left"):
        LaptSNE(max_iter=60, random_state=0, checkpoint=path, callbacks=killed_at(45)).fit(X)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["run"]


def test_nothing_is_written_before_it_is_time(blobs, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "EVERY", 1000.0)
    stopped_at = tmp_path / "run"
    with pytest.raises(Killed):
        LaptSNE(max_iter=60, random_state=0, checkpoint=stopped_at, callbacks=killed_at(30)).fit(blobs[0])
    assert not stopped_at.exists()


@pytest.mark.parametrize("options", [{}, {"batch_size": 30}, {"method": "fourier"}])
@pytest.mark.parametrize("iteration", [0, 20, 70])
def test_an_interrupt_leaves_the_map_so_far(blobs, options, iteration):
    X, _ = blobs
    maps = []

    def interrupt(state):
        maps.append(state.embedding)
        if state.iteration == iteration:
            raise KeyboardInterrupt

    model = LaptSNE(max_iter=100, random_state=0, callbacks=interrupt, **options)
    with pytest.raises(KeyboardInterrupt, match=f"interrupted at iteration {iteration}; embedding_"):
        model.fit(X)
    np.testing.assert_array_equal(model.embedding_, maps[-1])
    assert model.n_iter_ == iteration
    assert model.labels_.shape == (120,)
    assert model.transform(X[:3]).shape == (3, 2)


def test_an_interrupted_run_keeps_its_checkpoint(blobs, tmp_path):
    X, _ = blobs
    options = {"max_iter": 60, "random_state": 0}

    def interrupt(state):
        if state.iteration == 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LaptSNE(**options, checkpoint=tmp_path / "run", callbacks=interrupt).fit(X)
    resumed = LaptSNE(**options, checkpoint=tmp_path / "run").fit_transform(X)
    np.testing.assert_array_equal(resumed, LaptSNE(**options).fit_transform(X))


SCRIPT = textwrap.dedent(
    """
    import sys
    import numpy as np
    from laptsne import LaptSNE
    from laptsne.engine import checkpoint

    checkpoint.EVERY = 0.05
    rng = np.random.default_rng(0)
    X = rng.normal(scale=4, size=(5, 8))[np.repeat(np.arange(5), 200)] + rng.normal(size=(1000, 8))
    print("begun", flush=True)
    Y = LaptSNE(random_state=0, max_iter=300, checkpoint=sys.argv[1]).fit_transform(X)
    np.save(sys.argv[2], Y)
    """
)


def run_script(tmp_path, environment=None):
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "run"), str(tmp_path / "map.npy")]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def finished(process):
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    finished(run_script(folder))  # it may compile kernels, which takes longer than the run
    begun = time.monotonic()
    finished(run_script(folder))
    return np.load(folder / "map.npy"), time.monotonic() - begun


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_twenty_kills(whole, tmp_path):
    """Killed at twenty random moments, each time gone on with; in the end the bits are those of one run."""
    expected, seconds = whole
    rng = random.Random(0)
    kills = 0
    for _ in range(20):
        process = run_script(tmp_path)
        try:
            process.wait(timeout=rng.uniform(0.02, 0.9) * seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            kills += 1
        process.communicate()
        if (tmp_path / "map.npy").exists():  # it came to the end: once more from the start
            np.testing.assert_array_equal(np.load(tmp_path / "map.npy"), expected)
            (tmp_path / "map.npy").unlink()
    finished(run_script(tmp_path))
    np.testing.assert_array_equal(np.load(tmp_path / "map.npy"), expected)
    assert kills >= 10
    assert [file.name for file in tmp_path.iterdir()] == ["map.npy"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_kill_during_the_write(whole, tmp_path):
    """The process kills itself half-way through its second write, of three arrays."""
    expected, _ = whole
    suicide = textwrap.dedent(
        """
        import os, signal
        import numpy as np
        write, count = np.lib.format.write_array, [0]

        def dying(file, array, **options):
            count[0] += 1
            if count[0] == 5:
                file.write(b"half of it")
                os.kill(os.getpid(), signal.SIGKILL)
            write(file, array, **options)

        np.lib.format.write_array = dying
        """
    )
    command = [sys.executable, "-c", suicide + SCRIPT, str(tmp_path / "run"), str(tmp_path / "map.npy")]
    done = subprocess.run(command, check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL
    left = sorted(file.name for file in tmp_path.iterdir())
    assert len(left) == 2
    assert "run" in left  # and what was being written
    files.read_archive(tmp_path / "run", "checkpoint")
    finished(run_script(tmp_path))
    np.testing.assert_array_equal(np.load(tmp_path / "map.npy"), expected)
    assert [file.name for file in tmp_path.iterdir()] == ["map.npy"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other interrupts")
def test_control_c_in_a_process(tmp_path):
    script = textwrap.dedent(
        """
        import numpy as np
        from laptsne import LaptSNE

        seen = []
        def look(state):
            seen.append(state.iteration)
            if len(seen) == 20:
                print("running", flush=True)
        X = np.random.default_rng(0).normal(size=(3000, 5))
        model = LaptSNE(random_state=0, max_iter=100_000, callbacks=look)
        try:
            model.fit(X)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        assert np.isfinite(model.embedding_).all()
        print("iterations", model.n_iter_, len(seen), flush=True)
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "running\n"
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=100)
    assert process.returncode == 0, errors
    interrupted, _, *counts = output.split()
    assert interrupted == "interrupted"
    n_iter, n_seen = map(int, counts)
    assert n_iter in (n_seen - 1, n_seen)


def interrupted(iteration):
    def interrupt(state):
        if state.iteration == iteration:
            raise KeyboardInterrupt

    return interrupt


def test_an_interrupt_leaves_an_embedding_of_the_landmarks(blobs):
    """Placing all other rows would take longer than the descent that was interrupted."""
    model = LandmarkLaptSNE(n_landmarks=40, max_iter=60, callbacks=interrupted(30), random_state=0)
    with pytest.raises(KeyboardInterrupt, match="iteration 30"):
        model.fit(blobs[0])
    assert model.landmark_embedding_.shape == (40, 2)
    assert not hasattr(model, "embedding_")
    assert model.n_iter_ == 30


@pytest.mark.filterwarnings("ignore:n_landmarks")
@pytest.mark.parametrize("kind", [LaptSNE, LandmarkLaptSNE])
def test_no_network_is_trained_after_an_interrupt(blobs, monkeypatch, kind):
    monkeypatch.setattr("sklearn.neural_network.MLPRegressor.fit", None)
    model = kind(max_iter=60, callbacks=interrupted(30), random_state=0, out_of_sample="network")
    with pytest.raises(KeyboardInterrupt):
        model.fit(blobs[0])
    with pytest.raises(ValueError, match="a fit that was not interrupted"):
        model.transform(blobs[0])


def test_an_interrupt_while_the_network_is_trained_is_raised(blobs, monkeypatch):
    """scikit-learn turns it into a warning."""

    def interrupting(self, *args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("sklearn.neural_network.MLPRegressor._backprop", interrupting)
    model = LaptSNE(max_iter=20, out_of_sample="network", random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(blobs[0])
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


def test_an_interrupt_before_the_descent_leaves_the_model_unfitted(blobs, monkeypatch):
    def interrupting(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("laptsne.methods.laplacian_spectrum", interrupting)
    model = LaptSNE(random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(blobs[0])
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


def test_an_interrupt_ends_a_pipeline(blobs):
    """The steps that follow must not run on an embedding that is not finished."""
    ran = []

    class After(BaseEstimator):
        def fit(self, X, y=None):
            ran.append(len(X))
            return self

    def interrupt(state):
        if state.iteration == 3:
            raise KeyboardInterrupt

    model = LaptSNE(max_iter=20, callbacks=interrupt)
    with pytest.raises(KeyboardInterrupt):
        make_pipeline(model, After()).fit(blobs[0])
    assert not ran
    assert model.n_iter_ == 3


def test_a_checkpoint_of_another_version_is_not_resumed(blobs, tmp_path, monkeypatch):
    X, _ = blobs
    options = {"max_iter": 60, "random_state": 0, "checkpoint": tmp_path / "run"}

    def interrupt(state):
        if state.iteration == 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LaptSNE(**options, callbacks=interrupt).fit(X)
    monkeypatch.setattr(checkpoint, "__version__", "0.1.9")
    with pytest.raises(ValueError, match="another version"):
        LaptSNE(**options).fit(X)


def test_a_state_is_restored_by_name(blobs, tmp_path):
    """What else is in a file is not set on the run: it could replace a method."""
    X, _ = blobs
    options = {"max_iter": 60, "random_state": 0, "batch_size": 30, "checkpoint": tmp_path / "run"}

    def interrupt(state):
        if state.iteration == 50:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LaptSNE(**options, callbacks=interrupt).fit(X)
    content, arrays = files.read_archive(tmp_path / "run", "checkpoint")
    content["numbers"] |= {"batches.draw": 7, "term.gradient": 7, "descent.step": 7}
    files.write_archive(tmp_path / "run", content, arrays)
    expected = LaptSNE(**options | {"checkpoint": None}).fit_transform(X)
    np.testing.assert_array_equal(LaptSNE(**options).fit_transform(X), expected)
