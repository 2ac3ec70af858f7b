import os
import signal
import time

import numpy as np
import pytest

from laptsne import LandmarkLaptSNE, LaptSNE

da = pytest.importorskip("dask.array", reason="needs the extra laptsne[distributed]")
distributed = pytest.importorskip("distributed", reason="needs the extra laptsne[distributed]")

FAST = {"n_landmarks": 150, "max_iter": 60, "perplexity": 10, "random_state": 0}


@pytest.fixture(scope="module")
def client():
    """Two worker processes on this machine."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return (8 * rng.normal(size=(5, 10)))[rng.integers(0, 5, 4000)] + rng.normal(size=(4000, 10))


@pytest.fixture(scope="module")
def expected(client, X):
    model = LandmarkLaptSNE(**FAST).fit(da.from_array(X, chunks=(1000, -1)))
    return model.landmarks_, model.landmark_embedding_, model.embedding_.compute()


@pytest.mark.parametrize("chunks", [(4000, 10), (137, 10), ((1, 3000, 999), (4, 6))])
def test_the_same_bits_however_the_data_is_partitioned(client, X, expected, chunks):
    model = LandmarkLaptSNE(**FAST)
    Y = model.fit_transform(da.from_array(X, chunks=chunks))
    assert isinstance(Y, da.Array)
    assert Y.shape == (4000, 2)
    np.testing.assert_array_equal(model.landmarks_, expected[0])
    np.testing.assert_array_equal(model.landmark_embedding_, expected[1])
    np.testing.assert_array_equal(Y.compute(), expected[2])


def test_the_same_landmarks_as_of_an_array(X, expected):
    np.testing.assert_array_equal(LandmarkLaptSNE(**FAST).fit(X).landmarks_, expected[0])


def test_blocks_of_unknown_size(client, X, expected):
    unknown = da.from_array(X, chunks=(700, -1))
    unknown = unknown[unknown[:, 0] > -np.inf]
    assert np.isnan(unknown.shape[0])
    model = LandmarkLaptSNE(**FAST).fit(unknown)
    np.testing.assert_array_equal(model.landmark_embedding_, expected[1])
    lazy = model.transform(unknown)
    np.testing.assert_array_equal(lazy.compute(), expected[2])


def test_a_fitted_map_takes_new_points_in_blocks(client, X):
    model = LaptSNE(max_iter=60, perplexity=10, random_state=0).fit(X[:300])
    Y = model.transform(da.from_array(X, chunks=(900, -1)))
    assert isinstance(Y, da.Array)
    np.testing.assert_array_equal(Y.compute(), model.transform(X))


def slowly(block):
    time.sleep(0.2)
    return block


def test_a_worker_that_dies_half_way_changes_nothing(client, X, expected):
    slow = da.from_array(X, chunks=(100, -1)).map_blocks(slowly, dtype=X.dtype)
    model = LandmarkLaptSNE(**FAST).fit(slow)
    np.testing.assert_array_equal(model.landmark_embedding_, expected[1])
    client.wait_for_workers(2)
    before = set(client.run(os.getpid).values())
    future = client.compute(model.embedding_)
    time.sleep(2)
    assert not future.done()
    os.kill(min(before), signal.SIGKILL)
    np.testing.assert_array_equal(future.result(timeout=120), expected[2])
    client.wait_for_workers(2, timeout=60)
    assert set(client.run(os.getpid).values()) != before


def test_a_worker_that_dies_during_k_means_changes_nothing(client, X, expected):
    client.wait_for_workers(2)
    victim = min(client.run(os.getpid).values())

    def killing(block, block_info=None):
        if block_info[0]["chunk-location"][0] >= 20 and os.getpid() == victim:
            os.kill(victim, signal.SIGKILL)
        time.sleep(0.05)
        return block

    slow = da.from_array(X, chunks=(100, -1)).map_blocks(killing, dtype=X.dtype)
    model = LandmarkLaptSNE(**FAST).fit(slow)
    assert victim not in client.run(os.getpid).values()
    np.testing.assert_array_equal(model.landmark_embedding_, expected[1])


def broken(block, block_info=None):
    if block_info[0]["chunk-location"][0] == 2:
        raise RuntimeError("this block cannot be read")
    return block


def test_a_block_that_raises(client, X):
    bad = da.from_array(X, chunks=(1000, -1)).map_blocks(broken, dtype=X.dtype)
    with pytest.raises(RuntimeError, match="this block cannot be read"):
        LandmarkLaptSNE(**FAST).fit(bad)
    model = LandmarkLaptSNE(**FAST).fit(da.from_array(X, chunks=(1000, -1)))
    with pytest.raises(RuntimeError, match="this block cannot be read"):
        model.transform(bad).compute()


def test_a_block_with_bad_values(client, X):
    X = X.copy()
    X[2500] = np.nan
    with pytest.raises(ValueError, match=r"Block 2 of X.*NaN"):
        LandmarkLaptSNE(**FAST).fit(da.from_array(X, chunks=(1000, -1)))
    model = LandmarkLaptSNE(**FAST).fit(X[:1000])
    with pytest.raises(ValueError, match=r"Block 2 of X.*NaN"):
        model.transform(da.from_array(X, chunks=(1000, -1))).compute()


def test_arrays_of_other_shapes(client, X):
    with pytest.raises(ValueError, match="n_landmarks=150 is more than the 100 rows"):
        LandmarkLaptSNE(**FAST).fit(da.from_array(X[:100], chunks=(50, -1)))
    with pytest.raises(ValueError, match="two dimensions"):
        LandmarkLaptSNE(**FAST).fit(da.from_array(X[:, 0], chunks=1000))
    model = LandmarkLaptSNE(**FAST).fit(X)
    with pytest.raises(ValueError, match="10 features"):
        model.transform(da.from_array(X[:, :9], chunks=1000))


def test_nothing_is_gathered(client, X):
    """Only the landmarks, their map and sums over blocks come back from the workers."""
    Y = LandmarkLaptSNE(**FAST).fit(da.from_array(X, chunks=(500, -1))).embedding_
    assert len(Y.__dask_keys__()) == 8
    assert not any(isinstance(value, np.ndarray) and value.shape == X.shape for value in dict(Y.dask).values())
