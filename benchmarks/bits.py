"""Are results the same to the bit: before and after a change, and in any thread or process?

python benchmarks/bits.py --write before.json    # digests of 30 fits, with the code before a change: about a minute
python benchmarks/bits.py --compare before.json  # again afterwards; the exit code is 1 if any differs
python benchmarks/bits.py                        # twelve fits in 16 environments: hours

With a file, every fit gets a digest of its embedding, transform, labels, eigenvalues and objective, so that the output
says which of them differ. Digests of different machines do not compare.

Without a file, every case is computed in every environment, and its digests are compared with those at n_jobs=1; for
the other libraries, the digest is that of the embedding alone. Needs ``pip install ".[benchmark,distributed]"``.
"""

from __future__ import annotations

import argparse
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
from shared import command_line

from laptsne import LandmarkLaptSNE, LaptSNE, LapUMAP

Digests = dict[str, str]

# Estimator, number of points, type of the features, settings.
Case = tuple[Any, int, Any, dict[str, Any]]
CASES: dict[str, Case] = {
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
IN_ALL_ENVIRONMENTS = tuple(CASES)
# Most cases without contraction as well: a change that is meant to alter the contraction alone must leave them.
_PLAIN = ("exact", "fourier", "large", "sparse", "cosine, pca", "all pairs", "three dimensions", "landmarks", "network")
CASES |= {f"{name}, contraction 0": (*CASES[name][:3], CASES[name][3] | {"contraction": 0}) for name in _PLAIN}
_STUDENT = {"contraction_kernel": "student", "n_clusters": 4}
_BATCHES = {"max_iter": 60, "batch_size": 100}
_GAUSSIAN = {"kernel": "gaussian", "n_clusters": 4, "out_of_sample": "network"}
CASES |= {
    "one dimension, contraction 0": (LaptSNE, 2000, np.float64, {"max_iter": 20, "n_components": 1, "contraction": 0}),
    "student": (LaptSNE, 900, np.float64, {"max_iter": 60, "method": "exact", **_STUDENT}),
    "student, fourier": (LaptSNE, 3000, np.float64, {"max_iter": 40, "method": "fourier", **_STUDENT}),
    "gaussian": (LaptSNE, 700, np.float64, {"max_iter": 30, **_GAUSSIAN}),
    "batches, contraction 0": (LaptSNE, 1200, np.float64, {"contraction": 0, **_BATCHES}),
    "batches, student": (LaptSNE, 1200, np.float64, _BATCHES | _STUDENT | {"n_clusters": 5}),
    "umap": (LapUMAP, 1500, np.float64, {"max_iter": 60}),
    "umap, contraction 0": (LapUMAP, 1500, np.float64, {"max_iter": 40, "contraction": 0}),
    "paper": (LaptSNE.paper, 600, np.float64, {"n_clusters": 4, "max_iter": 40}),
}


def points(n: int) -> Any:
    rng = np.random.default_rng(0)
    return rng.normal(scale=3, size=(8, 30))[rng.integers(0, 8, n)] + rng.normal(size=(n, 30))


def digest(part: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(part).tobytes()).hexdigest()[:16]


def digests(case: Case, n_jobs: int | None = None) -> Digests:
    """Return the digest of each part of the result of a case."""
    make, n, form, settings = case
    X = points(n + 50)
    X = X.astype(form) if form in (np.float64, np.float32) else form(np.rint(X))
    model = make(random_state=0, n_jobs=n_jobs, **settings).fit(X[:n])
    return {
        "embedding": digest(model.embedding_),
        "transform": digest(model.transform(X[n:])),
        "labels": digest(model.labels_),
        "eigenvalues": digest(model.eigenvalues_),
        "objective": digest(np.float64(model.objective_)),
    }


def write(file: Path, cases: dict[str, Case] = CASES) -> None:
    """Write the digests of all cases, by case and part."""
    file.write_text(json.dumps({name: digests(case, n_jobs=2) for name, case in cases.items()}, indent=1) + "\n")
    print(f"{len(cases)} cases written to {file}")


def compare_with(file: Path, cases: dict[str, Case] = CASES) -> int:
    """Print which parts differ from those in a file; return the exit code."""
    stored = json.loads(file.read_text())
    n_different = 0
    for name, case in cases.items():
        if name not in stored:
            print(f"not in the file      {name}", flush=True)
            continue
        differing = [part for part, found in digests(case, n_jobs=2).items() if stored[name].get(part) != found]
        n_different += bool(differing)
        print(f"{'DIFFERENT' if differing else 'same':20} {name}", *differing, sep="; ", flush=True)
    print(f"{n_different} of {len(cases)} cases differ")
    return int(n_different > 0)


def laptsne(n_jobs: int | None = None) -> Digests:
    return {name: " ".join(digests(CASES[name], n_jobs).values()) for name in IN_ALL_ENVIRONMENTS}


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
    import elsewhere

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
    import elsewhere

    elsewhere.TIMEOUT = 3600
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


def compare_environments() -> int:
    compare("laptsne", all_environments(laptsne))
    for title, function in {
        "openTSNE, random_state=0": opentsne,
        "umap-learn, random_state=0 (one thread)": umap_seeded,
        "umap-learn, no random_state (its threads)": umap_free,
    }.items():
        compare(title, few_environments(function))
    return 0


def parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__)
    files = parser.add_mutually_exclusive_group()
    files.add_argument("--write", type=Path, metavar="FILE", help="write the digests to a JSON file")
    files.add_argument("--compare", type=Path, metavar="FILE", help="compare the digests with those in a file")
    return parser


def main() -> int:
    args = parser().parse_args()
    warnings.simplefilter("ignore")
    if args.write:
        write(args.write)
        return 0
    return compare_with(args.compare) if args.compare else compare_environments()


if __name__ == "__main__":
    sys.exit(main())
