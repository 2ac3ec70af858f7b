"""Whether embeddings have the same bits in any thread and process, compared with openTSNE and umap-learn.

python benchmarks/bits.py

Every case is computed in every environment, and its digest compared with that at n_jobs=1. The digest covers embedding,
transform, eigenvalues, labels and objective; for the other libraries the embedding alone.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from laptsne import LandmarkLaptSNE, LaptSNE

TESTS = Path(__file__).parent.parent / "tests"
sys.path.insert(0, str(TESTS))
import elsewhere  # noqa: E402

Digests = dict[str, str]

CASES: dict[str, tuple[Any, int, Any, dict[str, Any]]] = {
    "exact": (LaptSNE, 1200, np.float64, {"max_iter": 60}),
    "exact, float32, 5 clusters": (LaptSNE, 1200, np.float32, {"max_iter": 60, "n_clusters": 5}),
    "fourier": (LaptSNE, 7000, np.float64, {"max_iter": 60}),
    "fourier, float32, 5 clusters": (LaptSNE, 10_500, np.float32, {"max_iter": 20, "n_clusters": 5}),
    "large": (LaptSNE, 21_000, np.float32, {"max_iter": 8}),
    "sparse": (LaptSNE, 1200, scipy.sparse.csr_matrix, {"max_iter": 30}),
    "cosine, pca": (LaptSNE, 1200, np.float64, {"max_iter": 30, "metric": "cosine", "init": "pca"}),
    "all pairs": (LaptSNE, 700, np.float64, {"max_iter": 30, "n_neighbors": "all"}),
    "three dimensions": (LaptSNE, 600, np.float64, {"max_iter": 4, "n_components": 3, "method": "fourier"}),
    "batches": (LaptSNE, 1200, np.float64, {"max_iter": 60, "batch_size": 100, "n_clusters": 5}),
    "landmarks": (LandmarkLaptSNE, 5000, np.float64, {"max_iter": 30, "n_landmarks": 200}),
    "network": (LaptSNE, 500, np.float64, {"max_iter": 30, "out_of_sample": "network"}),
}


def points(n: int) -> Any:
    rng = np.random.default_rng(0)
    return rng.normal(scale=3, size=(8, 30))[rng.integers(0, 8, n)] + rng.normal(size=(n, 30))


def digest(*parts: Any) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()


def laptsne(n_jobs: int | None = None) -> Digests:
    found = {}
    for name, (kind, n, form, settings) in CASES.items():
        X = points(n + 50)
        X = X.astype(form) if isinstance(form, type) and issubclass(form, np.floating) else form(np.rint(X))
        model = kind(random_state=0, n_jobs=n_jobs, **settings).fit(X[:n])
        others = (model.eigenvalues_, model.labels_, np.float64(model.objective_))
        found[name] = digest(model.embedding_, model.transform(X[n:]), *others)
    return found


def opentsne(n_jobs: int | None = None) -> Digests:
    import openTSNE

    make = {"fft": 7000, "bh": 1500}
    return {
        f"openTSNE, {method}": digest(
            openTSNE.TSNE(
                negative_gradient_method=method,
                early_exaggeration_iter=50,
                n_iter=50,
                random_state=0,
                n_jobs=n_jobs or -1,
            ).fit(points(n))
        )
        for method, n in make.items()
    }


def umap_seeded(n_jobs: int | None = None) -> Digests:
    return _umap(n_jobs, random_state=0)


def umap_free(n_jobs: int | None = None) -> Digests:
    return _umap(n_jobs, random_state=None)


def _umap(n_jobs: int | None, random_state: int | None) -> Digests:
    import umap

    warnings.simplefilter("ignore")  # a seed disables its threads
    return {
        f"umap-learn of {n}": digest(
            umap.UMAP(n_epochs=100, random_state=random_state, n_jobs=n_jobs or -1).fit_transform(points(n))
        )
        for n in (1500, 7000)
    }


def in_program(function: Callable[..., Digests], n_threads: int, **variables: str) -> Digests:
    code = f"import json, bits; print(json.dumps(bits.{function.__name__}()))"
    variables |= {f"{name}_NUM_THREADS": str(n_threads) for name in ("OMP", "OPENBLAS", "NUMBA")}
    found: Digests = json.loads(elsewhere.in_program(code, Path(__file__).parent, **variables).splitlines()[-1])
    return found


def newly_compiled(function: Callable[..., Digests]) -> Digests:
    with tempfile.TemporaryDirectory() as folder:
        return in_program(function, 2, NUMBA_CACHE_DIR=folder)


def few_environments(function: Callable[..., Digests]) -> dict[str, Callable[[], Any]]:
    """Environments in which the other libraries are compared as well."""
    return {
        **{f"n_jobs={n}": lambda n=n: function(n) for n in (1, 2)},
        **{f"a program, {n} threads set in the environment": lambda n=n: in_program(function, n) for n in (1, 2)},
    }


def all_environments(function: Callable[..., Digests]) -> dict[str, Callable[[], Any]]:
    return {
        **few_environments(function),
        "n_jobs=4": lambda: function(4),  # umap-learn refuses more threads than cores
        "a program, 4 threads set in the environment": lambda: in_program(function, 4),
        "a program that compiles all kernels": lambda: newly_compiled(function),
        "a thread": lambda: elsewhere.in_thread(function),
        "three threads at once": lambda: elsewhere.in_threads(function, n=3),
        "an asyncio executor": lambda: elsewhere.in_executor(function),
        "joblib, loky": lambda: elsewhere.in_joblib(function, backend="loky"),
        "joblib, threads": lambda: elsewhere.in_joblib(function, backend="threading"),
        "Dask, threads": lambda: elsewhere.in_dask(function, processes=False),
        "Dask, processes": lambda: elsewhere.in_dask(function, processes=True),
        "a fork": lambda: elsewhere.in_child(function, method="fork"),
        "a spawned process": lambda: elsewhere.in_child(function, method="spawn"),
    }


def compare(title: str, environments: dict[str, Callable[[], Any]]) -> None:
    results = {name: call() for name, call in environments.items()}
    first, *others = results
    expected: Digests = results[first]
    equal = compared = 0
    for place in others:
        for found in results[place] if isinstance(results[place], list) else [results[place]]:
            differing = [name for name in expected if found[name] != expected[name]]
            equal, compared = equal + len(expected) - len(differing), compared + len(expected)
            print(f"  {place}: {len(expected) - len(differing)} of {len(expected)}", *differing, sep="; ", flush=True)
    print(f"{title}: {equal} of {compared} comparisons with identical bits", flush=True)


def main() -> None:
    elsewhere.TIMEOUT = 3600
    warnings.simplefilter("ignore")
    compare("laptsne", all_environments(laptsne))
    for title, function in {
        "openTSNE, random_state=0": opentsne,
        "umap-learn, random_state=0 (one thread)": umap_seeded,
        "umap-learn, no random_state (its threads)": umap_free,
    }.items():
        compare(title, few_environments(function))


if __name__ == "__main__":
    main()
