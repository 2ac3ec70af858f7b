"""The same bits in any thread and process, and for any number of threads."""

import hashlib
import json
import warnings
from pathlib import Path

import elsewhere
import joblib
import numpy as np
import pytest
import scipy.sparse
from sklearn import config_context
from threadpoolctl import threadpool_info, threadpool_limits

from laptsne import LandmarkLaptSNE, LaptSNE
from laptsne._runtime import threads
from laptsne._runtime.threads import Workers, single_threaded_blas
from laptsne.graph.spectrum import laplacian_spectrum


def points(n, n_features=20, dtype=np.float64):
    """Clusters on a coarse lattice, with many ties among the distances."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=3, size=(5, n_features))
    return np.rint(centres[rng.integers(0, 5, n)] + rng.normal(size=(n, n_features))).astype(dtype)


# Name: class, number of points, settings.
CASES = {
    "exact": (LaptSNE, 300, {"max_iter": 30}),
    "exact, single precision": (LaptSNE, 1100, {"max_iter": 20, "n_clusters": 5, "dtype": np.float32}),
    "fourier": (LaptSNE, 700, {"max_iter": 60, "method": "fourier"}),
    "fourier, given clusters": (LaptSNE, 700, {"max_iter": 30, "method": "fourier", "n_clusters": 5}),
    "sparse": (LaptSNE, 400, {"max_iter": 20, "sparse": True}),
    "all pairs in cosine": (LaptSNE, 300, {"max_iter": 20, "metric": "cosine", "n_neighbors": "all"}),
    "cosine": (LaptSNE, 1100, {"max_iter": 20, "metric": "cosine", "init": "pca"}),
    "batches": (LaptSNE, 300, {"max_iter": 30, "batch_size": 50, "n_clusters": 5}),
    "landmarks": (LandmarkLaptSNE, 1500, {"max_iter": 20, "n_landmarks": 100}),
    "network": (LaptSNE, 200, {"max_iter": 60, "out_of_sample": "network"}),
}
LARGE = {
    "fourier of 7,000": (LaptSNE, 7000, {"max_iter": 60}),
    "approximate neighbours": (LaptSNE, 10_500, {"max_iter": 10, "n_clusters": 5, "dtype": np.float32}),
}


def fitted(name, n_jobs=None):
    kind, n, settings = (CASES | LARGE)[name]
    settings = settings.copy()
    X = points(n + 20, dtype=settings.pop("dtype", np.float64))
    X = scipy.sparse.csr_matrix(X) if settings.pop("sparse", False) else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(random_state=0, n_jobs=n_jobs, **settings).fit(X[:n]), X[n:]


@pytest.fixture(autouse=True, scope="module")
def threshold():
    """Give other tests back the threshold that digest has lowered."""
    before = threads.MIN_WORK
    yield
    threads.MIN_WORK = before


def digest(name, n_jobs=None):
    """Hash the results of a fit and a transform, with kernels of any size split among the threads."""
    threads.MIN_WORK = 0  # here, for this function is called in other processes
    model, new = fitted(name, n_jobs)
    parts = (model.embedding_, model.transform(new), model.eigenvalues_, model.labels_, np.float64(model.objective_))
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()


def digests():
    return {name: digest(name) for name in CASES}


@pytest.fixture(scope="module")
def expected():
    return digests()


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
@pytest.mark.parametrize("name", CASES)
def test_the_number_of_threads(name, n_jobs, expected, kernel_threads):
    assert digest(name, n_jobs) == expected[name]
    assert len(kernel_threads.shared) >= 3 if n_jobs > 1 else not kernel_threads.shared


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_the_number_of_threads_with_many_points(name, kernel_threads):
    assert digest(name, 1) == digest(name, 2) == elsewhere.in_thread(digest, name, 4)
    assert len(kernel_threads.shared) >= 3


def digests_in_program(**variables):
    """Return the digests from a program of its own, and the number of its kernels that ran in several threads."""
    code = """
import json, elsewhere, test_bits
threads = elsewhere.record_kernel_threads()
print(json.dumps([test_bits.digests(), len(threads.shared)]))
"""
    return json.loads(elsewhere.in_program(code, Path(__file__).parent, **variables))


@pytest.mark.parametrize("n_threads", [1, 2, pytest.param(4, marks=pytest.mark.slow)])
def test_threads_in_the_environment(n_threads, expected):
    variables = {f"{name}_NUM_THREADS": n_threads for name in ("OMP", "OPENBLAS")}
    found, n_shared = digests_in_program(**variables)
    assert found == expected
    assert n_shared >= 3 if min(n_threads, joblib.cpu_count()) > 1 else n_shared == 0


@pytest.mark.slow
def test_newly_compiled_kernels(tmp_path, expected):
    """In the other tests they are read from the cache of an earlier process."""
    assert digests_in_program(NUMBA_CACHE_DIR=tmp_path)[0] == expected
    assert any(tmp_path.rglob("*.nbc"))


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_joblib_workers(backend, expected):
    assert elsewhere.in_joblib(digests, backend=backend) == expected


@pytest.mark.slow
@pytest.mark.parametrize("processes", [False, True])
def test_dask_workers(processes, expected):
    pytest.importorskip("distributed", reason="needs the extra 'distributed'")
    assert elsewhere.in_dask(digests, processes=processes) == expected


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_child_processes(method, expected):
    assert elsewhere.in_child(digests, method=method) == expected


def test_several_threads_at_once(expected):
    assert elsewhere.in_threads(digests, n=3) == [expected] * 3


def test_an_asyncio_executor(expected):
    assert elsewhere.in_executor(digests) == expected


def test_the_memory_layout_of_the_data():
    X = points(10_100, dtype=np.float32) / 3
    settings = {"max_iter": 2, "perplexity": 5, "init": "pca", "metric": "correlation", "random_state": 0}
    given = (X, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2])
    assert len({LaptSNE(**settings).fit_transform(laid).tobytes() for laid in given}) == 1


def test_the_configuration_of_scikit_learn(expected):
    with config_context(working_memory=0.01, enable_cython_pairwise_dist=False):
        assert digest("cosine") == expected["cosine"]
        assert digest("sparse") == expected["sparse"]


def test_the_limit_on_blas_is_enforced_again_after_others_raised_it():
    def blas_threads():
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    with Workers(1) as workers, threadpool_limits(3, user_api="blas"):
        assert blas_threads() == {3}
        workers.rows(lambda start, stop: None, 1, work=1)
        assert blas_threads() == {1}


def test_a_start_that_contains_few_eigenvectors():
    """A graph of cliques has few distinct eigenvalues, so that the solver needs further vectors."""
    P = np.kron(np.eye(4), np.ones((100, 100), np.float32))
    P[0, 100] = P[100, 200] = P[200, 300] = P[100, 0] = P[200, 100] = P[300, 200] = 1
    with single_threaded_blas():
        first, second = (laplacian_spectrum(P, 31) for _ in range(2))
    assert first.eigenvectors.tobytes() == second.eigenvectors.tobytes()
