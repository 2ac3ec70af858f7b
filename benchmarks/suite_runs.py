"""Runs of the suite: the embedding of a set and its scores, computed or loaded."""

from __future__ import annotations

import importlib
import logging
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import suite_scores
from suite_sets import Dataset

from reproduction.dataset import N_COMPONENTS
from reproduction.datasets import cache_folder
from reproduction.methods import METHODS, Fit, Method, Settings, timed_fit
from reproduction.result_cache import ResultCache, code_digest
from reproduction.runs import Run
from reproduction.scores import ScoreGroup

CACHE = cache_folder().parent / "laptsne-suite"


def _localmap(X: Any, seed: int, settings: Settings) -> Fit:
    pacmap = importlib.import_module("pacmap")
    logging.getLogger("pacmap.pacmap").setLevel(logging.ERROR)  # it warns that a seed was given
    return Fit(pacmap.LocalMAP(random_state=seed, **settings).fit_transform(X))


_BASE = {**METHODS, "LocalMAP": Method(_localmap, package="pacmap", distribution="pacmap")}
# The method and the settings that differ from its defaults, by the name in the tables.
VARIANTS: dict[str, tuple[str, Settings]] = {
    "LaptSNE": ("LaptSNE", {}),
    "t-SNE (ours)": ("LaptSNE", {"contraction": 0}),
    "openTSNE": ("openTSNE", {}),
    "openTSNE, exaggeration 2": ("openTSNE", {"exaggeration": 2}),
    "UMAP": ("UMAP", {}),
    "PaCMAP": ("PaCMAP", {}),
    "LocalMAP": ("LocalMAP", {}),
}


def make_run(name: str, method: str, settings: Settings, seed: int = 0) -> Run:
    """Return the run of a method with changed settings."""
    return Run(name, method, seed, tuple(settings.items()))


def commit() -> str:
    """Return the commit of the code, with a mark if the working tree differs from it."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=10"]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


class SuiteRunner:
    """Makes runs, or loads those made before.

    Parameters
    ----------
    cache : Path
        Folder of the results.
    say : callable
        Called with a short text before anything that takes time.
    """

    def __init__(self, cache: Path = CACHE, say: Callable[[str], None] = lambda text: None) -> None:
        self._cache, self._say = ResultCache(cache), say
        # Before the first run, since the code on disk may change while runs go on.
        self._code, self._scoring = code_digest("laptsne.estimator"), suite_scores.scoring_digest()
        code_digest("laptsne.metrics")
        self._commit = commit()

    def origin(self, method: str) -> dict[str, str]:
        """Return what computes the maps of a method: the commit and digest of our code, or a library's version."""
        if _BASE[method].own:
            return {"commit": self._commit, "code": self._code[:10]}
        return {"version": _BASE[method].version()}

    def scores(self, data: Dataset, run: Run, groups: list[ScoreGroup]) -> dict[str, float] | None:
        """Return the scores of a run, including KL and n_clusters of our methods; None if the method fails."""
        try:
            fit = self.fit(data, run)
        except Exception as error:  # whatever a library raises, the other runs go on
            self._say(f"{_describe(run)}: failed: {type(error).__name__}: {error}")
            return None
        digest = str(joblib.hash(fit.embedding))
        scores: dict[str, float] = {}
        for group in groups:
            key = group.key(data, digest) | {"suite": self._scoring}
            scores |= self._cache.get(key, lambda group=group: suite_scores.compute(group, data, fit.embedding))
        facts = {"kl": "KL", "n_clusters": "n_clusters"}
        return scores | {name: fit.facts[fact] for fact, name in facts.items() if fact in fit.facts}

    def fit(self, data: Dataset, run: Run) -> Fit:
        """Return the fit of a run, whose ``embedding`` is the map."""
        method = _BASE[run.method]
        settings = method.settings(len(data.loaded)) | dict(run.changes)

        def compute() -> Fit:
            self._say(f"{_describe(run)}: fitting")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return timed_fit(method, data.X, run.seed, settings, warm_up=False)

        key = {
            "kind": "fit",
            "method": run.method,
            "settings": settings,
            "seed": run.seed,
            "data": data.digest,
            "n_components": N_COMPONENTS,
            "code": self._code if method.own else method.version(),
        }
        return self._cache.get(key, compute)


def _describe(run: Run) -> str:
    changes = "".join(f", {name} {value}" for name, value in run.changes)
    return f"{run.data}: {run.method}{changes}, seed {run.seed}"
