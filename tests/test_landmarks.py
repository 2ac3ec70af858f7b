import inspect
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
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from laptsne import LandmarkLaptSNE, LaptSNE
from laptsne.estimators.landmarks import find_landmarks
from laptsne.transform.sampling import row_hashes, sample_of

FAST = {"n_landmarks": 150, "max_iter": 60, "perplexity": 10, "random_state": 0}


@parametrize_with_checks([LandmarkLaptSNE(n_landmarks=5, max_iter=50), LandmarkLaptSNE(max_iter=50)])
def test_scikit_learn_checks_pass(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


@pytest.mark.parametrize(("out_of_sample", "lowest_accuracy"), [("placement", 0.95), ("network", 0.8)])
def test_all_rows_are_placed_among_the_landmarks(digits, out_of_sample, lowest_accuracy):
    X, y = digits
    model = LandmarkLaptSNE(n_landmarks=500, out_of_sample=out_of_sample, random_state=0)
    Y = model.fit_transform(X)
    assert Y.shape == (1797, 2)
    assert Y is model.embedding_
    assert len(np.unique(model.landmarks_)) == len(model.landmarks_) <= 500
    assert len(model.landmarks_) > 480
    if out_of_sample == "placement":
        np.testing.assert_array_equal(Y[model.landmarks_], model.landmark_embedding_)
    others = np.setdiff1d(np.arange(1797), model.landmarks_)
    classifier = KNeighborsClassifier(5).fit(model.landmark_embedding_, y[model.landmarks_])
    assert classifier.score(Y[others], y[others]) > lowest_accuracy


def test_bits_do_not_depend_on_the_blocks(digits, tmp_path):
    X = digits[0] / 3  # sums of integers would be exact in any order
    expected = LandmarkLaptSNE(**FAST).fit(X)
    np.save(tmp_path / "X.npy", X)
    for same in (np.load(tmp_path / "X.npy", mmap_mode="r"), np.asfortranarray(X)):
        np.testing.assert_array_equal(LandmarkLaptSNE(**FAST).fit_transform(same), expected.embedding_)
    edges = np.sort(np.random.default_rng(1).integers(0, len(X), 7))
    placed = np.concatenate([expected.transform(block) for block in np.split(X, edges) if len(block)])
    np.testing.assert_array_equal(placed, expected.embedding_)


def test_a_sample_does_not_depend_on_the_blocks(rng):
    X = rng.normal(size=(20_000, 3))
    options = {"n_rows": 20_000, "n_wanted": 1000, "seed": 7}
    numbers, rows = sample_of(X, 0, **options)
    assert 900 < numbers.size < 1100
    np.testing.assert_array_equal(rows, X[numbers])
    starts = np.sort(rng.integers(0, len(X), 333))
    parts = [sample_of(part, start, **options) for part, start in zip(np.split(X, starts)[1:], starts, strict=True)]
    np.testing.assert_array_equal(np.concatenate([part[0] for part in parts]), numbers[numbers >= starts[0]])


def test_all_rows_are_sampled_if_there_are_few(rng):
    X = rng.normal(size=(500, 3))
    numbers, rows = sample_of(X, 0, 500, 500, seed=0)
    np.testing.assert_array_equal(numbers, np.arange(500))
    np.testing.assert_array_equal(rows, X)
    X[:] = 0
    assert (rows != 0).all()  # a copy, since blocks may share their memory


def test_row_hashes_are_uniform_and_independent():
    p = row_hashes(np.arange(100_000), 0) / 2.0**64
    assert abs(p.mean() - 0.5) < 0.005
    assert abs(np.corrcoef(p[1:], p[:-1])[0, 1]) < 0.02
    assert not np.array_equal(p, row_hashes(np.arange(100_000), 1) / 2.0**64)


def landmarks_of(X, n_landmarks, seed=0):
    return find_landmarks(X, n_landmarks, row_hashes(np.arange(len(X)), seed))


def test_landmarks_do_not_depend_on_the_number_of_threads():
    # A thousand rows per centre in one dimension: the last bits of a centre decide which row is the nearest to it.
    X = np.random.default_rng(0).normal(size=(50_000, 1))
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            found.append(landmarks_of(X, 50))
    np.testing.assert_array_equal(*found)


def test_bits_do_not_depend_on_n_jobs(digits):
    fits = []
    for n_jobs in (1, 2):
        with threadpool_limits(n_jobs):
            model = LandmarkLaptSNE(**FAST, n_jobs=n_jobs).fit(digits[0])
        fits.append((model.landmarks_, model.landmark_embedding_, model.embedding_))
    for first, second in zip(*fits, strict=True):
        np.testing.assert_array_equal(first, second)


def test_landmarks_cover_the_data_like_those_of_converged_k_means(digits):
    X, _ = digits
    squared = np.empty((2, 5))
    for seed in range(5):
        peer = KMeans(50, init="random", n_init=1, random_state=seed).fit(X)
        for i, rows in enumerate((landmarks_of(X, 50, seed), np.argmin(peer.transform(X), axis=0))):
            squared[i, seed] = pairwise_distances(X, X[rows], metric="sqeuclidean").min(axis=1).sum()
    assert squared[0].mean() < 1.01 * squared[1].mean()  # 1.09 after one iteration


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scale", [2.0**-66, 2.0**66])
def test_landmarks_do_not_depend_on_the_scale(rng, scale, dtype):
    X = (rng.normal(size=(400, 4)) + 1e4).astype(dtype)
    np.testing.assert_array_equal(landmarks_of(X * dtype(scale), 30), landmarks_of(X, 30))


def test_landmarks_do_not_depend_on_an_offset(rng):
    X = np.round(rng.normal(size=(400, 4)) * 2**20) / 2**20
    np.testing.assert_array_equal(landmarks_of(X + 2**20, 30), landmarks_of(X, 30))


def test_landmarks_are_the_first_of_the_rows_nearest_to_their_centres():
    X = np.array([[0.0], [10.0], [1.0], [-1.0], [0.0], [12.0], [11.0], [11.0]])
    np.testing.assert_array_equal(landmarks_of(X, 2), [0, 6])


def test_duplicates_have_one_landmark(rng):
    X = np.repeat(rng.normal(size=(60, 4)), 10, axis=0)
    model = LandmarkLaptSNE(**FAST | {"n_landmarks": 100, "perplexity": 5}).fit(X)
    assert len(model.landmarks_) <= 60
    assert len(np.unique(X[model.landmarks_], axis=0)) == len(model.landmarks_)
    assert np.isfinite(model.embedding_).all()


@pytest.mark.parametrize(("n_distinct", "n_clusters"), [(1, "auto"), (4, 4)])
def test_too_few_distinct_rows_are_refused(rng, n_distinct, n_clusters):
    X = np.repeat(rng.normal(size=(n_distinct, 3)), 20, axis=0)
    with pytest.raises(ValueError, match=f"n_landmarks=10 gave only {n_distinct} landmarks, .* Use LaptSNE"):
        LandmarkLaptSNE(n_landmarks=10, n_clusters=n_clusters).fit(X)


def test_a_landmark_may_be_nearest_to_no_row():
    # All rows have the same direction: k-means separates them, but in cosine one landmark is the nearest to all.
    X = np.outer(np.arange(1.0, 41), [1, 2, 3])
    model = LandmarkLaptSNE(n_landmarks=10, metric="cosine", max_iter=5, random_state=0).fit(X)
    assert model.embedding_.shape == (40, 2)
    assert np.isfinite(model.embedding_).all()


def test_feature_names_are_kept(digits):
    X = pd.DataFrame(digits[0][:300], columns=[f"pixel {i}" for i in range(64)])
    model = LandmarkLaptSNE(**FAST).set_output(transform="pandas").fit(X)
    assert list(model.feature_names_in_) == list(X.columns)
    assert model.transform(X).shape == (300, 2)


def test_parameters_include_those_of_laptsne():
    model = LandmarkLaptSNE(n_landmarks=77, contraction=0.01)
    assert set(model.get_params()) == set(LaptSNE().get_params()) | {"n_landmarks"}
    assert repr(clone(model)) == "LandmarkLaptSNE(contraction=0.01, n_landmarks=77)"
    assert set(inspect.signature(LandmarkLaptSNE).parameters) == set(model.get_params())
    with pytest.raises(TypeError, match="unknown"):
        LandmarkLaptSNE(unknown=1)


def test_more_landmarks_than_rows_make_every_distinct_row_a_landmark(digits):
    X = np.concatenate([digits[0][:100], digits[0][:20]])
    with pytest.warns(UserWarning, match="n_landmarks=150 is more than the 120 rows of X, so every distinct row is"):
        model = LandmarkLaptSNE(**FAST).fit(X)
    np.testing.assert_array_equal(model.landmarks_, np.arange(100))
    np.testing.assert_array_equal(model.embedding_[100:], model.embedding_[:20])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((1, 3)), "1 sample"),
        (scipy.sparse.csr_matrix((300, 3)), "TruncatedSVD"),
        (np.full((300, 3), np.nan), "Block 0 of X.*NaN"),
        (np.concatenate([np.zeros((70_000, 3)), [[np.inf] * 3]]), "Block 1 of X.*infinity"),
        (np.zeros((0, 3)), "no rows"),
        (iter([np.zeros((200, 3))]), "2D array"),
        (np.zeros(300), "2D array"),
        (np.array([["a"]] * 300, dtype=object), "Block 0 of X"),
    ],
)
def test_invalid_data_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        LandmarkLaptSNE(**FAST).fit(X)


def test_precomputed_distances_are_refused():
    with pytest.raises(ValueError, match="use LaptSNE"):
        LandmarkLaptSNE(metric="precomputed", **FAST).fit(np.zeros((200, 200)))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="sets a limit on memory as on Linux")
def test_a_file_may_be_larger_than_memory(tmp_path):
    """640 MB of data with a limit of 577 MB beyond what the libraries use."""
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
            print("the data do not fit")
        model = LandmarkLaptSNE(**settings).fit(np.load(sys.argv[1], mmap_mode="r"))
        print(model.embedding_.shape, bool(np.isfinite(model.embedding_).all()))
    """)
    command = [sys.executable, "-c", script, str(tmp_path / "X.npy")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.splitlines() == ["the data do not fit", "(10000000, 2) True"], done.stderr[-2000:]
