"""Runs: a method on a set with a seed, its map and its scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from reproduction import paper
from reproduction.data import COMPONENTS, Data, digest, load
from reproduction.datasets import title
from reproduction.methods import METHODS, MissingLibraryError, run_fit
from reproduction.scores import Score, scores_for
from reproduction.store import Entry, Store, code_digest


@dataclass(frozen=True)
class Run:
    """What is run.

    Parameters
    ----------
    data, method : str
        Name of the set and of the method.
    seed : int
        Seed.
    changes : tuple of pairs
        Settings that are not the method's own, by name.
    purpose : str
        What it is scored for; see :func:`reproduction.scores.scores_for`.
    """

    data: str
    method: str
    seed: int = 0
    changes: tuple[tuple[str, Any], ...] = ()
    purpose: str = field(default="table", compare=False)

    def __str__(self) -> str:
        changes = "".join(f", {name} {value}" for name, value in self.changes if name != "keep")
        return f"{title(self.data)}: {self.method}{changes}, seed {self.seed}"


@dataclass
class Record:
    """What came of a run: facts, map and scores, or why there are none."""

    run: Run
    facts: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    absent: str | None = None
    remarks: list[str] = field(default_factory=list)

    @property
    def Y(self) -> NDArray[Any]:
        """The map."""
        return self.arrays["map"]


class Laboratory:
    """Where runs are made, and found again.

    Parameters
    ----------
    store : Store
        Where results are kept.
    say : callable
        Is told what is being done, in a few words, before something that takes time.

    Attributes
    ----------
    records : dict
        What came of each run.
    missing_sets : dict
        Why sets are not available, by name.
    labels, n_classes : dict
        Labels of the points, and their number, by set that was loaded.
    made : int
        How many results were made, and not found.
    """

    def __init__(self, store: Store, say: Callable[[str], None] = lambda text: None) -> None:
        self.store, self.say = store, say
        self.records: dict[Run, Record] = {}
        self.missing_sets: dict[str, str] = {}
        self.labels: dict[str, NDArray[Any]] = {}
        self.n_classes: dict[str, int] = {}
        self.made = 0
        self._data: Data | None = None
        self._warm: set[tuple[Any, ...]] = set()

    def data(self, name: str) -> Data:
        """A set; only the last one is kept in memory."""
        if self._data is None or self._data.name != name:
            self.say(f"{title(name)}: loading")
            self._data = load(name)
            self.labels[name], self.n_classes[name] = self._data.y, self._data.n_classes
        return self._data

    def has(self, name: str) -> bool:
        """Whether a set is available; why not is noted."""
        if name in self.missing_sets:
            return False
        try:
            self.data(name)
        except (FileNotFoundError, OSError) as error:
            self.missing_sets[name] = str(error)
            return False
        return True

    def record(self, run: Run) -> Record:
        """Make a run, or find it; a method that fails is absent, with the reason.

        A run that has been made for something else gets the scores that it is now for as well.
        """
        data = self.data(run.data)
        known = self.records.get(run)
        if known is not None:
            if known.absent is None:
                self._score(known, data, run.purpose)
            return known
        try:
            entry = self._map(run, data)
        except MissingLibraryError as error:
            record = Record(run, absent=str(error))
        except Exception as error:  # whatever a library throws, the rest goes on
            record = Record(run, absent=f"failed: {type(error).__name__}: {error}")
        else:
            record = Record(run, entry.facts, entry.arrays, remarks=list(entry.facts["warnings"]))
            self.records[run] = record
            self._score(record, data, run.purpose)
        self.records[run] = record
        return record

    def _map(self, run: Run, data: Data) -> Entry:
        method = METHODS[run.method]
        settings = method.settings(data.n_samples) | dict(run.changes)
        key = {
            "kind": "map",
            "method": run.method,
            "settings": settings,
            "seed": run.seed,
            "data": data.digest,
            "components": COMPONENTS,
            "library": "" if method.own else method.version(),
            "code": code_digest("laptsne.estimator") if method.own else "",
        }

        def make() -> Entry:
            self.say(f"{run}: fitting")
            self.made += 1
            method.version()
            group = (run.method, data.name)
            warm = group not in self._warm
            self._warm.add(group)
            return run_fit(method, data.X, run.seed, settings, warm=warm)

        return self.store.get(key, make)

    def _score(self, record: Record, data: Data, purpose: str) -> None:
        counts = (paper.khat(data.name), self.n_clusters(data.name)) if purpose == "table" else ()
        map_digest = digest(record.Y)
        for score in scores_for(purpose, data, tuple(count for count in counts if count and count > 1)):
            try:
                record.scores |= self._scored(score, record, data, map_digest)
            except Exception as error:  # a score that fails leaves the others
                record.remarks.append(f"{score.name} failed: {type(error).__name__}: {error}")

    def _scored(self, score: Score, record: Record, data: Data, map_digest: str) -> dict[str, float]:
        def make() -> Entry:
            self.say(f"{record.run}: scoring")
            self.made += 1
            # k-means on several threads is no faster on a map, and many times slower beside another process.
            with threadpool_limits(1, "openmp"):
                return Entry(dict(score.compute(data, record.Y)))

        return self.store.get(score.key(data, map_digest), make).facts

    def n_clusters(self, name: str) -> int | None:
        """The number of clusters that LaptSNE finds in a set with the first seed; None where it was not run."""
        record = self.records.get(Run(name, "LaptSNE"))
        return record.facts.get("n_clusters") if record else None
