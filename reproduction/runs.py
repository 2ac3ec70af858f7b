"""Runs: one method on one set with one seed, its embedding and its scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform
from threadpoolctl import threadpool_limits

from laptsne.graph.spectrum import laplacian_spectrum
from reproduction import paper, published
from reproduction.dataset import N_COMPONENTS, Dataset
from reproduction.datasets import title
from reproduction.methods import METHODS, Fit, MissingLibraryError, timed_fit
from reproduction.result_cache import NotStoredError, ResultCache, code_digest
from reproduction.scores import ScoreGroup, score_groups


@dataclass(frozen=True)
class Run:
    """A method to run on a data set."""

    data: str
    method: str
    seed: int = 0
    changes: tuple[tuple[str, Any], ...] = ()  # names and values of settings that differ from the method's own
    purpose: str = field(default="table", compare=False)  # decides the scores, see reproduction.scores.score_groups

    def __str__(self) -> str:
        changes = "".join(f", {name} {value}" for name, value in self.changes if name != "keep")
        return f"{title(self.data)}: {self.method}{changes}, seed {self.seed}"


@dataclass
class Record:
    """The outcome of a run: a fit and its scores, or the reason why there is none."""

    run: Run
    fit: Fit | None
    missing: str | None = None
    scores: dict[str, float] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


class Runner:
    """Makes runs, or loads those made before.

    Parameters
    ----------
    cache : ResultCache
        Where results are kept.
    say : callable
        Called with a short text before anything that takes time.

    Attributes
    ----------
    records : dict
        Outcome of each run.
    missing_sets : dict
        Reasons why sets are not available, by name.
    labels, n_classes : dict
        Labels and numbers of classes of the sets loaded so far.
    n_computed : int
        Number of results that were computed rather than loaded.
    """

    def __init__(self, cache: ResultCache, say: Callable[[str], None] = lambda text: None) -> None:
        self.cache, self.say = cache, say
        self.records: dict[Run, Record] = {}
        self.missing_sets: dict[str, str] = {}
        self.labels: dict[str, NDArray[Any]] = {}
        self.n_classes: dict[str, int] = {}
        self.n_computed = 0
        self._data: Dataset | None = None
        self._warm: set[tuple[str, str]] = set()

    def has(self, name: str) -> bool:
        """Whether a set is available; if not, the reason is recorded."""
        if name in self.missing_sets:
            return False
        try:
            self._load(name)
        except OSError as error:
            self.missing_sets[name] = str(error)
            return False
        return True

    def record(self, run: Run) -> Record:
        """Make or load a run; a method that fails yields a record with the reason.

        A run that was made for another purpose before gets the scores of this purpose as well.
        """
        data = self._load(run.data)
        record = self.records.get(run)
        if record is None:
            try:
                fit = self._fit(run, data)
                record = Record(run, fit, remarks=list(fit.facts["warnings"]))
            except (MissingLibraryError, NotStoredError) as error:
                record = Record(run, None, str(error))
            except Exception as error:  # whatever a library raises, the other runs go on
                record = Record(run, None, f"failed: {type(error).__name__}: {error}")
            self.records[run] = record
        if record.fit:
            rows = record.fit.rows
            self._score(record, record.fit.embedding, data if rows is None else data.at(rows), run.purpose)
        return record

    def fit(self, run: Run) -> Fit | None:
        """Return the fit of a run; None if it was not made or failed."""
        record = self.records.get(run)
        return record.fit if record else None

    def n_clusters(self, name: str) -> int | None:
        """Return the number of clusters that LaptSNE finds in a set with the first seed; None if it was not run."""
        fit = self.fit(Run(name, "LaptSNE"))
        return fit.facts["n_clusters"] if fit else None

    def snapshot_eigenvalues(self, fit: Fit, n_values: int) -> NDArray[np.float64]:
        """Return the smallest eigenvalues of the Student-kernel Laplacian of each snapshot, one row per snapshot."""
        snapshots = np.stack(list(fit.snapshots.values()))

        def compute() -> NDArray[np.float64]:
            self.say("eigenvalues of the embeddings during optimisation")
            distances = (pdist(Y.astype(np.float64), "sqeuclidean") for Y in snapshots)
            return np.stack([laplacian_spectrum(squareform(1 / (1 + d)), n_values).eigenvalues for d in distances])

        code = code_digest("laptsne.graph.spectrum")
        key = {"kind": "eigenvalues", "snapshots": joblib.hash(snapshots), "n_values": n_values, "code": code}
        return self.cache.get(key, compute)

    def _load(self, name: str) -> Dataset:
        """Load a set; only the last one is kept in memory."""
        if self._data is None or self._data.name != name:
            self.say(f"{title(name)}: loading")
            self._data = Dataset.load(name)
            self.labels[name], self.n_classes[name] = self._data.y, self._data.n_classes
        return self._data

    def _fit(self, run: Run, data: Dataset) -> Fit:
        method = METHODS.get(run.method) or published.METHODS[run.method]
        settings = method.settings(len(data.loaded)) | dict(run.changes)

        def compute() -> Fit:
            self.say(f"{run}: fitting")
            self.n_computed += 1
            warm_up = (run.method, data.name) not in self._warm
            self._warm.add((run.method, data.name))
            return timed_fit(method, data.X if method.reduced else data.loaded, run.seed, settings, warm_up=warm_up)

        key = {
            "kind": "fit",
            "method": run.method,
            "settings": settings,
            "seed": run.seed,
            "data": data.digest,
            "n_components": N_COMPONENTS,
            "code": method.source(),
        }
        return self.cache.get(key, compute)

    def _score(self, record: Record, Y: NDArray[Any], data: Dataset, purpose: str) -> None:
        counts = {"table": (paper.khat(data.name), self.n_clusters(data.name)), "cells": (paper.khat(data.name),)}.get(
            purpose, ()
        )
        embedding_digest = str(joblib.hash(Y))
        for group in score_groups(purpose, data, tuple(count for count in counts if count and count > 1)):

            def compute(group: ScoreGroup = group) -> dict[str, float]:
                self.say(f"{record.run}: scoring")
                self.n_computed += 1
                # On embeddings k-means gains nothing from threads, and loses much next to another busy process.
                with threadpool_limits(1, "openmp"):
                    return group.compute(data, Y, **group.parameters)

            try:
                record.scores |= self.cache.get(group.key(data, embedding_digest), compute)
            except NotStoredError:
                continue
            except Exception as error:  # a score that fails leaves the others
                record.remarks.append(f"{group.compute.__name__} failed: {type(error).__name__}: {error}")
