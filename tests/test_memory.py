import os
import subprocess
import sys
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse

from laptsne import LandmarkLaptSNE, LaptSNE, LapUMAP
from laptsne._runtime.available_memory import available_memory
from laptsne.graph.affinity import joint_affinities
from laptsne.graph.spectrum import laplacian_spectrum
from laptsne.memory import demand, estimate_memory

GIB = 2**30


def system(root, files):
    """Create a file system with these files."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


MEMINFO = {"proc/meminfo": "MemTotal: 16000 kB\nMemFree: 10 kB\nMemAvailable: 8000 kB\nSwapFree: 2000 kB\n"}


def test_free_swap_counts_as_available(tmp_path):
    assert available_memory(system(tmp_path, MEMINFO)) == 10_000 * 1024


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"jobs/one/memory.max": "5000000", "jobs/one/memory.current": "2000000"}, 3_000_000),
        # The page cache can be reclaimed.
        (
            {
                "jobs/one/memory.max": "5000000",
                "jobs/one/memory.current": "2000000",
                "jobs/one/memory.stat": "anon 7\ninactive_file 400000\nactive_file 100000\nslab 9\n",
            },
            3_500_000,
        ),
        ({"jobs/one/memory.max": "max", "jobs/one/memory.current": "2000000"}, 10_000 * 1024),
        # The limit of the parent group may be lower.
        (
            {
                "jobs/one/memory.max": "5000000",
                "jobs/one/memory.current": "0",
                "jobs/memory.max": "4000000",
                "jobs/memory.current": "3000000",
            },
            1_000_000,
        ),
        # In a container only the top directory is visible.
        ({"memory.max": "4000000", "memory.current": "0"}, 4_000_000),
        ({"memory.max": "4000000", "memory.current": "5000000"}, 0),
    ],
)
def test_limits_of_control_groups_apply(tmp_path, files, expected):
    files = {f"sys/fs/cgroup/{name}": content for name, content in files.items()}
    root = system(tmp_path, MEMINFO | files | {"proc/self/cgroup": "0::/jobs/one\n"})
    assert available_memory(root) == expected


def test_the_memory_of_this_system_is_plausible():
    available = available_memory()
    assert available is None or 10 * 2**20 < available < 2**50


@pytest.fixture
def room(monkeypatch):
    """Set what is available, as a share of what a fit of 300 points needs."""

    def leave(share, **settings):
        n_bytes = None if share is None else int(share * estimate_memory(300, 4, **settings))
        monkeypatch.setattr("laptsne._runtime.available_memory.available_memory", lambda: n_bytes)

    return leave


@pytest.fixture
def X(rng):
    return rng.normal(size=(300, 4))


def test_a_fit_that_would_not_fit_is_refused_before_it_starts(room, X, monkeypatch):
    room(0.7)

    def compute(*_args, **_options):
        raise AssertionError("something was computed")

    monkeypatch.setattr("laptsne.methods.joint_affinities", compute)
    model = LaptSNE()
    with pytest.raises(MemoryError, match=r"300 points needs about \d+ MiB .* only \d+ MiB .* LandmarkLaptSNE\("):
        model.fit(X)
    assert not hasattr(model, "embedding_")


def test_a_fit_that_may_fit_is_made_with_a_warning(room, X):
    room(0.8)
    with pytest.warns(UserWarning, match="in addition to the data"):
        LaptSNE(max_iter=2).fit(X)


@pytest.mark.parametrize("share", [1.01, None])
def test_nothing_is_said_where_there_is_room_or_nothing_is_known(room, X, share):
    room(share)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LaptSNE(max_iter=2).fit(X)


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ({"n_neighbors": "all"}, "n_neighbors='auto'"),
        ({"metric": "affinities"}, "sparse matrix with fewer neighbours per point"),
        ({"metric": "precomputed"}, "Give a sparse neighbour graph, or fewer"),
        ({"perplexity": 15}, "perplexity=10 instead of 15"),
    ],
)
def test_the_refusal_says_what_to_use_instead(room, X, settings, remedy):
    room(0.1)
    if "metric" in settings:
        X = np.linalg.norm(X[:, None] - X, axis=2)
    with pytest.raises(MemoryError, match=remedy):
        LaptSNE(**settings).fit(X)


def test_landmarks_need_what_the_rows_that_are_seen_do(room, X):
    assert estimate_memory(10**7, 50, n_landmarks=1000) < 0.03 * estimate_memory(10**7, 50)
    assert estimate_memory(10**7, 50, n_landmarks=50_000) > estimate_memory(10**6, 50)
    room(0.7, n_landmarks=50)
    with pytest.raises(MemoryError, match="Use fewer landmarks than 50, "):
        LandmarkLaptSNE(n_landmarks=50).fit(X)


def test_a_graph_that_was_given_counts_with_its_entries(room, X):
    room(0.1)
    graph = scipy.sparse.csr_matrix(np.linalg.norm(X[:, None] - X, axis=2))
    with pytest.raises(MemoryError, match="fewer neighbours per point"):
        LaptSNE(metric="precomputed").fit(graph)
    parameters = LaptSNE(metric="precomputed").get_params()
    wide, narrow = (demand(parameters, 100_000, 100_000, 8, n_given=k) for k in (500, 50))
    assert wide > 3 * narrow


def test_what_makes_a_fit_larger_makes_the_estimate_larger():
    base = estimate_memory(50_000, 50)
    assert estimate_memory(100_000, 50) > 1.8 * base
    assert estimate_memory(50_000, 50, perplexity=90) > 1.8 * base
    assert estimate_memory(50_000, 50, n_clusters=60) > 1.5 * base
    assert estimate_memory(50_000, 3000) > 2 * base
    assert estimate_memory(50_000, 3000, dtype=np.float32) < 0.8 * estimate_memory(50_000, 3000)
    assert estimate_memory(50_000, 50, batch_size=100, n_batch_neighbors=5) > 2 * base
    assert estimate_memory(50_000, 50, n_components=3) > base
    assert estimate_memory(9000, 50, metric="cosine", n_jobs=2) > estimate_memory(9000, 50, n_jobs=2) + 100 * 2**20


def test_all_pairs_need_a_matrix():
    estimate = estimate_memory(30_000, 10, n_neighbors="all", method="exact")
    assert 4 * 30_000**2 < estimate < 3 * 4 * 30_000**2


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        ((0, 5), {}, "must be at least 1, got 0 and 5"),
        ((5, 0), {}, "must be at least 1, got 5 and 0"),
        ((50, 5), {"perplexity": -1}, "perplexity"),
        ((50, 5), {"estimator": LapUMAP, "n_neighbors": -1}, "n_neighbors"),
        ((50, 5), {"estimator": dict}, "estimator=<class 'dict'> is not known; give LaptSNE, "),
        ((50, 5), {"method": "fourier", "kernel": "gaussian"}, "method='fourier' needs kernel='student'"),
    ],
)
def test_bad_arguments_are_named(arguments, settings, message):
    with pytest.raises(ValueError, match=message):
        estimate_memory(*arguments, **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"method": "fourier"},
        {"n_neighbors": "all", "method": "exact"},
        {"batch_size": 500, "n_batch_neighbors": 5},
        {"n_clusters": 40},
        {"n_components": 1},
        {"metric": "cosine"},
    ],
    ids=str,
)
def test_estimates_are_near_what_is_allocated(rng, settings):
    n = 1500
    X = 5 * rng.normal(size=(5, 20))[rng.integers(0, 5, n)] + rng.normal(size=(n, 20))
    model = LaptSNE(max_iter=8, random_state=0, n_jobs=1, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:400])  # what stays for later fits
        if "n_clusters" in settings:  # the mesh of a small embedding is small as well
            model.set_params(init=10 * X[:, :2])
        peak = traced(model.fit, X)
    estimate = estimate_memory(n, 20, n_jobs=1, **settings)
    assert 0.6 < estimate / (peak + 8 * 2**20) < 1.6


@pytest.mark.parametrize("settings", [{}, {"n_neighbors": 60}], ids=str)
def test_estimates_for_umap_are_near_what_is_allocated(rng, settings):
    n = 4000
    X = 5 * rng.normal(size=(5, 20))[rng.integers(0, 5, n)] + rng.normal(size=(n, 20))
    model = LapUMAP(max_iter=20, random_state=0, n_jobs=1, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:600])
        peak = traced(model.fit, X)
    estimate = estimate_memory(n, 20, estimator=LapUMAP, n_jobs=1, **settings)
    assert 0.6 < estimate / (peak + 8 * 2**20) < 1.6


# Growth of the resident memory during fits of fresh processes, in MiB: ten overlapping clusters with 50 features in
# single precision and two threads (benchmarks/memory.py), once the embedding has grown.
MEASURED = [
    (LaptSNE, 5000, {}, 25),
    (LaptSNE, 50_000, {}, 179),
    (LaptSNE, 200_000, {}, 729),
    (LaptSNE, 1_000_000, {}, 1609),
    (LaptSNE, 20_000, {"n_components": 1}, 81),
    (LaptSNE, 10_000, {"n_components": 3}, 513),
    (LaptSNE, 45_000, {"n_components": 3, "contraction": 0}, 7915),
    (LaptSNE, 5000, {"n_neighbors": "all"}, 242),
    (LaptSNE, 9000, {"metric": "cosine"}, 221),
    (LaptSNE, 50_000, {"n_clusters": 60}, 272),
    (LaptSNE, 30_000, {"batch_size": 1000, "n_batch_neighbors": 5}, 227),
    (LandmarkLaptSNE, 100_000, {"n_landmarks": 10_000}, 445),
    (LapUMAP, 30_000, {}, 52),
    (LapUMAP, 200_000, {}, 259),
    (LapUMAP, 10_000, {"n_components": 3}, 496),
    (LapUMAP, 30_000, {"n_components": 3}, 566),
]


@pytest.mark.parametrize(("kind", "n", "settings", "measured"), MEASURED)
def test_estimates_are_within_a_third_of_measured_peaks(kind, n, settings, measured):
    estimate = estimate_memory(n, 50, dtype=np.float32, estimator=kind, n_jobs=2, **settings)
    assert 0.65 < estimate / (measured * 2**20) < 1.35


@pytest.mark.parametrize(("n", "measured"), [(5000, 87), (9000, 136)])
def test_given_distances_are_not_copied(n, measured):
    estimate = estimate_memory(n, n, metric="precomputed", n_jobs=2)
    assert 0.65 < estimate / (measured * 2**20) < 1.35


def test_the_refusal_of_umap_says_what_to_use_instead(X, monkeypatch):
    monkeypatch.setattr("laptsne._runtime.available_memory.available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match="or n_neighbors=5 instead of 15"):
        LapUMAP().fit(X)


def traced(function, *args):
    """Peak of what a call allocates."""
    tracemalloc.start()
    function(*args)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_a_graph_in_parts_needs_no_more_than_one_in_one_piece(rng):
    X = rng.normal(size=(4000, 3))
    parts = X + 1e3 * (np.arange(4000) % 20)[:, None]
    whole, apart = (joint_affinities(points, perplexity=5) for points in (X, parts))
    laplacian_spectrum(whole, 31)
    assert traced(laplacian_spectrum, apart, 31) < 1.5 * traced(laplacian_spectrum, whole, 31)


def run(code):
    # Dask leaves settings of the allocator in the environment, which change the peak.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    options = {"capture_output": True, "text": True, "timeout": 120, "env": environment}
    return subprocess.run([sys.executable, "-c", code], check=False, **options)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits on the address space are those of Linux")
def test_a_limit_on_the_address_space_applies():
    done = run("""
import resource
from pathlib import Path
import numpy as np
from laptsne import LaptSNE
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, resource.RLIM_INFINITY))
try:
    LaptSNE(n_neighbors="all", method="exact").fit(np.random.default_rng(0).normal(size=(25_000, 2)))
except MemoryError as error:
    print(error)
""")
    assert "Fitting 25,000 points needs about" in done.stdout, done.stderr
    assert "n_neighbors='auto'" in done.stdout


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is read from proc")
def test_the_estimate_is_near_the_peak_of_a_process():
    done = run("""
import ctypes, gc
from pathlib import Path
import numpy as np
from laptsne import LaptSNE
from laptsne.memory import demand, estimate_memory

def status(name):
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024

rng = np.random.default_rng(0)
X = rng.normal(scale=3, size=(10, 20))[rng.integers(0, 10, 6000)] + rng.normal(size=(6000, 20))
LaptSNE(max_iter=12, n_jobs=1).fit(X)  # what is loaded and compiled at its first use
gc.collect()
ctypes.CDLL("libc.so.6").malloc_trim(0)  # what that left
before = status("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
model = LaptSNE(max_iter=12, n_jobs=1).fit(X)
print((status("VmHWM") - before) / estimate_memory(6000, 20, n_jobs=1))
""")
    assert 0.75 < float(done.stdout) < 1.25, done.stderr
