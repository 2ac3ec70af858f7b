import os
import pickle
import signal
import time

import numpy as np
import pytest
import scipy.sparse

from laptsne import LandmarkLaptSNE, LaptSNE
from laptsne.transform import sampling

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
def test_bits_do_not_depend_on_the_chunks(client, X, expected, chunks):
    model = LandmarkLaptSNE(**FAST)
    Y = model.fit_transform(da.from_array(X, chunks=chunks))
    assert isinstance(Y, da.Array)
    assert Y.shape == (4000, 2)
    np.testing.assert_array_equal(model.landmarks_, expected[0])
    np.testing.assert_array_equal(model.landmark_embedding_, expected[1])
    np.testing.assert_array_equal(Y.compute(), expected[2])


def test_bits_are_those_of_an_array(X, expected):
    model = LandmarkLaptSNE(**FAST).fit(X)
    np.testing.assert_array_equal(model.landmarks_, expected[0])
    np.testing.assert_array_equal(model.landmark_embedding_, expected[1])
    np.testing.assert_array_equal(model.embedding_, expected[2])


def test_blocks_may_be_of_unknown_size(client, X, expected):
    unknown = da.from_array(X, chunks=(700, -1))
    unknown = unknown[unknown[:, 0] > -np.inf]
    assert np.isnan(unknown.shape[0])
    model = LandmarkLaptSNE(**FAST).fit(unknown)
    np.testing.assert_array_equal(model.landmark_embedding_, expected[1])
    lazy = model.transform(unknown)
    np.testing.assert_array_equal(lazy.compute(), expected[2])


def test_laptsne_transforms_dask_arrays(client, X):
    model = LaptSNE(max_iter=60, perplexity=10, random_state=0).fit(X[:300])
    Y = model.transform(da.from_array(X, chunks=(900, -1)))
    assert isinstance(Y, da.Array)
    np.testing.assert_array_equal(Y.compute(), model.transform(X))


def slowly(block):
    time.sleep(0.2)
    return block


def test_a_worker_lost_during_transform_changes_nothing(client, X, expected):
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


def test_a_worker_lost_during_sampling_changes_nothing(client, X, expected):
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


def test_errors_of_a_block_reach_the_caller(client, X):
    bad = da.from_array(X, chunks=(1000, -1)).map_blocks(broken, dtype=X.dtype)
    with pytest.raises(RuntimeError, match="this block cannot be read"):
        LandmarkLaptSNE(**FAST).fit(bad)
    model = LandmarkLaptSNE(**FAST).fit(da.from_array(X, chunks=(1000, -1)))
    with pytest.raises(RuntimeError, match="this block cannot be read"):
        model.transform(bad).compute()


def test_errors_name_the_block_with_invalid_values(client, X):
    X = X.copy()
    X[2500] = np.nan
    with pytest.raises(ValueError, match=r"Block 2 of X.*NaN"):
        LandmarkLaptSNE(**FAST).fit(da.from_array(X, chunks=(1000, -1)))
    model = LandmarkLaptSNE(**FAST).fit(X[:1000])
    with pytest.raises(ValueError, match=r"Block 2 of X.*NaN"):
        model.transform(da.from_array(X, chunks=(1000, -1))).compute()


def test_invalid_shapes_are_refused(client, X):
    with pytest.raises(ValueError, match="two dimensions"):
        LandmarkLaptSNE(**FAST).fit(da.from_array(X[:, 0], chunks=1000))
    model = LandmarkLaptSNE(**FAST).fit(X)
    with pytest.raises(ValueError, match="10 features"):
        model.transform(da.from_array(X[:, :9], chunks=1000))


def made_in_worker(block_info=None):
    rng = np.random.default_rng(block_info[None]["chunk-location"][0])
    return rng.normal(size=block_info[None]["chunk-shape"])


def test_only_the_sample_comes_back_from_the_workers(client, monkeypatch):
    rows = da.map_blocks(made_in_worker, chunks=((5000,) * 8, (50,)), dtype=np.float64)
    received = []
    gather = distributed.Client.gather

    def recorded(self, futures, *args, **options):
        found = gather(self, futures, *args, **options)
        received.append(len(pickle.dumps(found)))
        return found

    monkeypatch.setattr(distributed.Client, "gather", recorded)
    monkeypatch.setattr(sampling, "_MIN_ROWS", 500)
    model = LandmarkLaptSNE(n_landmarks=25, perplexity=5, max_iter=20, random_state=0).fit(rows)
    sampled = model.fitted_map_.data
    assert 400 < len(sampled) < 600
    assert sampled.nbytes < sum(received) < rows.nbytes / 10
    received.clear()
    mean = model.transform(rows).mean(axis=0).compute()
    assert mean.nbytes < sum(received) < 1000


def test_more_landmarks_than_rows_are_a_warning(client, X):
    with pytest.warns(UserWarning, match="n_landmarks=150 is more than the 100 rows of X"):
        model = LandmarkLaptSNE(**FAST).fit(da.from_array(X[:100], chunks=(50, -1)))
    np.testing.assert_array_equal(model.landmarks_, np.arange(100))


def test_sparse_blocks_are_refused(client, X):
    sparse = da.from_array(X, chunks=(1000, -1)).map_blocks(scipy.sparse.csr_matrix)
    with pytest.raises(TypeError, match=r"Block \d of X: Sparse data"):
        LandmarkLaptSNE(**FAST).fit(sparse)


def test_callbacks_are_called_where_fit_is(client, X):
    seen = []
    options = {**FAST, "max_iter": 10, "callbacks": lambda state: seen.append(state.iteration)}
    model = LandmarkLaptSNE(**options).fit(da.from_array(X, chunks=(1000, -1)))
    assert len(seen) == model.n_iter_
