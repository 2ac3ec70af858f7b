import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from laptsne import LandmarkLaptSNE, LaptSNE
from laptsne.kmeans import OnePart, Rows, Sampler, _Frame, find_landmarks, priorities

FAST = {"n_landmarks": 150, "max_iter": 60, "perplexity": 10, "random_state": 0}


@parametrize_with_checks([LandmarkLaptSNE(n_landmarks=5, max_iter=50)])
def test_scikit_learn_checks(estimator, check):
    if check.func.__name__ in (
        "check_fit2d_1sample",  # more landmarks than rows: refused, in words of our own
        "check_fit2d_predict1d",
    ):
        pytest.skip("n_landmarks is more than the rows of the check")
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


@pytest.mark.parametrize(("way", "least"), [("placement", 0.95), ("network", 0.8)])
def test_a_map_of_all_points_from_some(digits, way, least):
    X, y = digits
    model = LandmarkLaptSNE(n_landmarks=500, out_of_sample=way, random_state=0)
    Y = model.fit_transform(X)
    assert Y.shape == (1797, 2)
    assert Y is model.embedding_
    assert len(np.unique(model.landmarks_)) == len(model.landmarks_) <= 500
    assert len(model.landmarks_) > 480
    if way == "placement":
        np.testing.assert_array_equal(Y[model.landmarks_], model.landmark_embedding_)
    others = np.setdiff1d(np.arange(1797), model.landmarks_)
    classifier = KNeighborsClassifier(5).fit(model.landmark_embedding_, y[model.landmarks_])
    assert classifier.score(Y[others], y[others]) > least


def pieces(X, seed=1):
    edges = np.sort(np.random.default_rng(seed).integers(0, len(X), 7))
    return np.split(X, edges)


def test_the_same_bits_however_the_rows_are_cut(digits, tmp_path):
    X, _ = digits
    expected = LandmarkLaptSNE(**FAST).fit(X)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    np.testing.assert_array_equal(LandmarkLaptSNE(**FAST).fit_transform(mapped), expected.embedding_)
    for blocks in (pieces(X), iter(pieces(X, 2)), (block for block in pieces(X, 3))):
        model = LandmarkLaptSNE(**FAST).fit(blocks)
        np.testing.assert_array_equal(model.landmarks_, expected.landmarks_)
        np.testing.assert_array_equal(model.landmark_embedding_, expected.landmark_embedding_)
        placed = np.concatenate(list(model.transform(iter(pieces(X, 4)))))
        np.testing.assert_array_equal(placed, expected.embedding_)


def test_a_sample_does_not_depend_on_the_blocks(rng):
    X = rng.normal(size=(20_000, 3))
    sampler = Sampler(1000, seed=7)
    expected, n_rows = sampler.sample([X])
    assert n_rows == 20_000
    assert 900 < expected.indices.size < 1100
    np.testing.assert_array_equal(expected.values, X[expected.indices])
    found, _ = sampler.sample(np.array_split(X, 333))
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.values, expected.values)


def test_sums_do_not_depend_on_the_parts(rng):
    X, label = rng.normal(size=(5000, 3)), rng.integers(0, 4, 5000)
    frame = _Frame(X.mean(axis=0), 10.0, 2.0**38)
    expected = frame.sums(X, label, 4)[0]
    np.testing.assert_allclose(expected[1], (X - frame.mean)[label == 1].sum(axis=0) * 2.0**38 / 10, rtol=1e-6)
    parts = [frame.sums(X[rows], label[rows], 4)[0] for rows in np.array_split(rng.permutation(5000), 37)]
    np.testing.assert_array_equal(sum(parts), expected)


def test_priorities_are_well_mixed():
    p = priorities(np.arange(100_000), 0) / 2.0**64
    assert abs(p.mean() - 0.5) < 0.005
    assert abs(np.corrcoef(p[1:], p[:-1])[0, 1]) < 0.02
    assert not np.array_equal(p, priorities(np.arange(100_000), 1) / 2.0**64)


def test_landmarks_cover_the_data_like_those_of_scikit_learn(digits):
    X, _ = digits
    landmarks = find_landmarks(OnePart(Rows(np.arange(len(X)), X), 1), 50, len(X), 0)
    nearest = ((X[:, None] - landmarks.values[None]) ** 2).sum(axis=2).min(axis=1).sum()
    peer = KMeans(50, init="random", n_init=1, random_state=0).fit(X)
    rows = X[np.argmin(peer.transform(X), axis=0)]
    expected = ((X[:, None] - rows[None]) ** 2).sum(axis=2).min(axis=1).sum()
    assert nearest < 1.05 * expected


@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
def test_data_of_any_scale_and_place(rng, scale):
    X = (rng.normal(size=(400, 4)) + 1e4) * scale
    expected = find_landmarks(OnePart(Rows(np.arange(400), X / scale), 1), 30, 400, 0)
    found = find_landmarks(OnePart(Rows(np.arange(400), X), 1), 30, 400, 0)
    np.testing.assert_array_equal(found.indices, expected.indices)


def test_duplicates_have_one_landmark(rng):
    X = np.repeat(rng.normal(size=(60, 4)), 10, axis=0)
    model = LandmarkLaptSNE(**FAST | {"n_landmarks": 100, "perplexity": 5}).fit(X)
    assert len(model.landmarks_) <= 60
    assert len(np.unique(X[model.landmarks_], axis=0)) == len(model.landmarks_)
    assert np.isfinite(model.embedding_).all()


@pytest.mark.parametrize(("n_distinct", "n_clusters"), [(1, "auto"), (4, 4)])
def test_too_few_landmarks_for_a_map_are_refused(rng, n_distinct, n_clusters):
    X = np.repeat(rng.normal(size=(n_distinct, 3)), 20, axis=0)
    with pytest.raises(ValueError, match=f"n_landmarks=10 gave only {n_distinct}, .* Use LaptSNE"):
        LandmarkLaptSNE(n_landmarks=10, n_clusters=n_clusters).fit(X)


def test_landmarks_that_are_nearest_to_no_row():
    # Of rows in one direction, which k-means tells apart, one landmark is the nearest of all in cosine.
    X = np.outer(np.arange(1.0, 41), [1, 2, 3])
    model = LandmarkLaptSNE(n_landmarks=10, metric="cosine", max_iter=5, random_state=0).fit(X)
    assert model.embedding_.shape == (40, 2)
    assert np.isfinite(model.embedding_).all()


def test_names_of_features(digits):
    X = pd.DataFrame(digits[0][:300], columns=[f"pixel {i}" for i in range(64)])
    model = LandmarkLaptSNE(**FAST).set_output(transform="pandas").fit(X)
    assert list(model.feature_names_in_) == list(X.columns)
    assert model.transform(X).shape == (300, 2)


def test_parameters_are_those_of_both():
    model = LandmarkLaptSNE(n_landmarks=77, contraction=0.01)
    assert set(model.get_params()) == set(LaptSNE().get_params()) | {"n_landmarks"}
    assert repr(clone(model)) == "LandmarkLaptSNE(contraction=0.01, n_landmarks=77)"
    with pytest.raises(TypeError, match="unknown"):
        LandmarkLaptSNE(unknown=1)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((100, 3)), "n_landmarks=150 is more than the 100 rows"),
        (scipy.sparse.csr_matrix((300, 3)), "TruncatedSVD"),
        (np.full((300, 3), np.nan), "Block 0 of X.*NaN"),
        (iter([np.zeros((200, 3)), np.full((200, 3), np.inf)]), "Block 1 of X.*infinity"),
        (iter([np.zeros((200, 3)), np.zeros((200, 4))]), "Block 1 of X has 4 features"),
        (iter([]), "no blocks"),
        (np.zeros(300), "2D array"),
        (np.array([["a"]] * 300, dtype=object), "Block 0 of X"),
    ],
)
def test_bad_data(X, message):
    with pytest.raises(ValueError, match=message):
        LandmarkLaptSNE(**FAST).fit(X)


def test_an_iterator_cannot_be_read_twice(digits):
    with pytest.raises(ValueError, match="read only once"):
        LandmarkLaptSNE(**FAST).fit_transform(iter(pieces(digits[0])))


def test_distances_are_refused():
    with pytest.raises(ValueError, match="use LaptSNE"):
        LandmarkLaptSNE(metric="precomputed", **FAST).fit(np.zeros((200, 200)))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits on memory are set as on Linux")
def test_a_file_larger_than_the_memory_that_may_be_used(tmp_path):
    """640 MB of data with 577 MB to be used beyond what the libraries took."""
    script = textwrap.dedent("""
        import resource, sys
        import numpy as np
        from laptsne import LandmarkLaptSNE

        n, blocks = 10_000_000, 100
        X = np.lib.format.open_memmap(sys.argv[1], "w+", np.float32, (n, 16))
        rng = np.random.default_rng(0)
        part = rng.normal(size=(n // blocks, 16)).astype(np.float32) + 8 * rng.integers(0, 4, (n // blocks, 1))
        for b in range(blocks):
            X[b * (n // blocks) : (b + 1) * (n // blocks)] = part + np.float32(b / blocks)
        del X, part
        warm = np.random.default_rng(0).normal(size=(300, 16)).astype(np.float32)
        settings = {"n_landmarks": 200, "max_iter": 50, "random_state": 0, "n_jobs": 1, "out_of_sample": "network"}
        LandmarkLaptSNE(**settings).fit(warm)
        used = int(open("/proc/self/statm").read().split()[5]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_DATA, (used + 550 * 2**20,) * 2)
        try:
            np.ones((n, 16), np.float32)
        except MemoryError:
            print("the data themselves do not fit")
        model = LandmarkLaptSNE(**settings).fit(np.load(sys.argv[1], mmap_mode="r"))
        print(model.embedding_.shape, bool(np.isfinite(model.embedding_).all()))
    """)
    command = [sys.executable, "-c", script, str(tmp_path / "X.npy")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.splitlines() == ["the data themselves do not fit", "(10000000, 2) True"], done.stderr[-2000:]
