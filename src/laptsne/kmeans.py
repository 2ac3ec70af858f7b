"""k-means block by block, and the rows nearest to its centres.

Nothing here depends on how the rows are cut into blocks. Rows are chosen by a hash of their number, sums
are made of integers, so that they come out the same in any order, and each row is compared with the centres by itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from laptsne._runtime.threads import Workers
from laptsne.graph.ivf import as_columns, nearest_columns, paired_distances

Array = NDArray[Any]
T = TypeVar("T")

# Rows that k-means sees: this many for each landmark, and never fewer than the other where there are as many.
_ROWS_PER_LANDMARK = 20
_MIN_ROWS = 100_000
_ROUNDS = 10


@dataclass(frozen=True)
class Rows:
    """Some rows of the data, and their numbers."""

    indices: Array
    values: Array

    def where(self, chosen: Array) -> Rows:
        """The chosen ones."""
        return Rows(self.indices[chosen], self.values[chosen])


@dataclass(frozen=True)
class Sampler:
    """Which rows k-means sees: about ``n_wanted`` of all, by a hash of their numbers."""

    n_wanted: int
    seed: int

    @classmethod
    def of(cls, n_landmarks: int, seed: int) -> Sampler:
        """The sampler for a number of landmarks."""
        return cls(max(_ROWS_PER_LANDMARK * n_landmarks, _MIN_ROWS), seed)

    def chosen(self, indices: Array, n_rows: int) -> Array:
        """Which of the rows of these numbers are seen, of ``n_rows`` in all."""
        if n_rows <= self.n_wanted:
            return np.ones(indices.size, bool)
        return priorities(indices, self.seed) < np.uint64(self.n_wanted * 2**64 // n_rows)

    def sample(self, blocks: Iterable[Array]) -> tuple[Rows, int]:
        """Rows that are seen and the number of all, from one pass over blocks of rows, in little memory."""
        kept: list[Rows] = []
        n_rows = n_kept = 0
        for block in blocks:
            indices = np.arange(n_rows, n_rows + len(block))
            n_rows += len(block)
            # The more rows there are, the smaller a share is wanted: what is left out now is not missed later.
            kept.append(Rows(indices, block).where(self.chosen(indices, n_rows)))
            n_kept += kept[-1].indices.size
            if n_kept > 2 * self.n_wanted:
                kept = [self._still_chosen(kept, n_rows)]
                n_kept = kept[0].indices.size
        if not kept:
            raise ValueError("X holds no blocks of rows; an iterator may have been read to its end already.")
        return self._still_chosen(kept, n_rows), n_rows

    def _still_chosen(self, kept: list[Rows], n_rows: int) -> Rows:
        rows = joined(kept)
        return rows.where(self.chosen(rows.indices, n_rows))


def joined(parts: Sequence[Rows]) -> Rows:
    """Rows of several parts together."""
    return Rows(np.concatenate([part.indices for part in parts]), np.concatenate([part.values for part in parts]))


def priorities(indices: Array, seed: int) -> NDArray[np.uint64]:
    """Well-mixed bits of the numbers of rows (the finaliser of splitmix64)."""
    z = indices.astype(np.uint64) + np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


class Parts(ABC):
    """Rows in parts that may lie in several processes."""

    @abstractmethod
    def reduced(self, function: Callable[..., T], combine: Callable[[T, T], T], *args: Any) -> T:
        """Combine the values of ``function(rows, *args, n_jobs)`` of all parts, in any order."""


@dataclass(frozen=True)
class OnePart(Parts):
    """Rows in this process."""

    rows: Rows
    n_jobs: int | None

    def reduced(self, function: Callable[..., T], combine: Callable[[T, T], T], *args: Any) -> T:
        """Return the value of the only part."""
        return function(self.rows, *args, self.n_jobs)


@dataclass(frozen=True)
class _Frame:
    """How rows become single-precision columns, and integers that may be summed."""

    mean: Array
    unit: float
    scale: float

    def columns(self, values: Array) -> Array:
        return as_columns(values - self.mean, self.unit)

    def sums(self, values: Array, label: Array, n_labels: int) -> tuple[Array, Array]:
        """Backend of the rows of each label as integers, and their numbers."""
        sums = np.empty((n_labels, values.shape[1]))
        for d in range(values.shape[1]):
            whole = np.rint((values[:, d] - self.mean[d]) * (self.scale / self.unit))
            # Integers below 2^53: the sums are exact.
            sums[:, d] = np.bincount(label, weights=whole, minlength=n_labels)
        return sums, np.bincount(label, minlength=n_labels)


def find_landmarks(parts: Parts, n_landmarks: int, n_rows: int, seed: int) -> Rows:
    """The row nearest to each of ``n_landmarks`` centres; fewer where some centres have no rows.

    Parameters
    ----------
    parts : Parts
        The rows that k-means sees.
    n_landmarks : int
        Number of centres.
    n_rows : int
        Number of rows that k-means sees.
    seed : int
        Of the first centres.
    """
    largest = parts.reduced(_largest, max) or 1.0
    scale = 2.0 ** (51 - int(n_rows).bit_length())
    total, count = parts.reduced(_sums, _added, largest, scale)
    mean = total[0] / count[0] * (largest / scale)
    frame = _Frame(mean, 2 * largest, scale)
    first = parts.reduced(_first, _Lowest(n_landmarks, seed), n_landmarks, seed)
    centres = frame.columns(first.values)
    for _ in range(_ROUNDS):
        sums, counts = parts.reduced(_sums_of_cells, _added, frame, centres)
        means = sums / np.maximum(counts, 1)[:, None] * (frame.unit / scale)
        moved = np.where(counts > 0, as_columns(means, frame.unit), centres)
        if np.array_equal(moved, centres):
            break
        centres = moved
    return parts.reduced(_nearest, _nearer, frame, centres).rows()


def _largest(rows: Rows, n_jobs: int | None) -> float:
    return float(np.abs(rows.values).max(initial=0))


def _sums(rows: Rows, unit: float, scale: float, n_jobs: int | None) -> tuple[Array, Array]:
    frame = _Frame(np.zeros(rows.values.shape[1]), unit, scale)
    return frame.sums(rows.values, np.zeros(rows.indices.size, np.int64), 1)


def _added(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
    return a[0] + b[0], a[1] + b[1]


def _first(rows: Rows, n: int, seed: int, n_jobs: int | None) -> Rows:
    return rows.where(np.argsort(priorities(rows.indices, seed), kind="stable")[:n])


@dataclass(frozen=True)
class _Lowest:
    """Of two sets of rows, those of the lowest priorities."""

    n: int
    seed: int

    def __call__(self, a: Rows, b: Rows) -> Rows:
        return _first(joined([a, b]), self.n, self.seed, None)


def _sums_of_cells(rows: Rows, frame: _Frame, centres: Array, n_jobs: int | None) -> tuple[Array, Array]:
    with Workers(n_jobs) as workers:
        label = nearest_columns(frame.columns(rows.values), centres, 1, workers)[0][:, 0]
    return frame.sums(rows.values, label, centres.shape[1])


@dataclass(frozen=True)
class _Nearest:
    """The nearest row to each centre so far: infinitely far where there is none."""

    distances: Array
    nearest: Rows

    def rows(self) -> Rows:
        return self.nearest.where(np.isfinite(self.distances))


def _nearest(rows: Rows, frame: _Frame, centres: Array, n_jobs: int | None) -> _Nearest:
    columns, n_centres = frame.columns(rows.values), centres.shape[1]
    with Workers(n_jobs) as workers:
        label = nearest_columns(columns, centres, 1, workers)[0]
        distance = paired_distances(columns, centres, label, workers)[:, 0]
    order = np.lexsort((rows.indices, distance, label[:, 0]))
    found, first = np.unique(label[order, 0], return_index=True)
    distances = np.full(n_centres, np.inf, np.float32)
    indices = np.zeros(n_centres, np.int64)
    values = np.zeros((n_centres, rows.values.shape[1]), rows.values.dtype)
    chosen = order[first]
    distances[found], indices[found], values[found] = distance[chosen], rows.indices[chosen], rows.values[chosen]
    return _Nearest(distances, Rows(indices, values))


def _nearer(a: _Nearest, b: _Nearest) -> _Nearest:
    equal = a.distances == b.distances
    second = (b.distances < a.distances) | (equal & (b.nearest.indices < a.nearest.indices))
    return _Nearest(
        np.where(second, b.distances, a.distances),
        Rows(
            np.where(second, b.nearest.indices, a.nearest.indices),
            np.where(second[:, None], b.nearest.values, a.nearest.values),
        ),
    )
