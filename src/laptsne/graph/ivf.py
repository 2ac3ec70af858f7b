"""Inverted file index (IVF) for approximate nearest neighbours.

Points are assigned to the cells of a rough k-means, and a query searches the lists of a few cells near it (Sivic and
Zisserman, "Video Google", ICCV 2003; "IVFFlat" of faiss).
"""

from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne._runtime.warn import warn

PROBE_ENTRIES = 1 << 22  # entries in memory at once of the tables of probed lists and of heaps
_LISTS, _MAX_LIST = 2, 4  # number in square roots of the number of points; maximum length in mean lengths
_SAMPLES_PER_LIST, _ROUNDS = 32, 6  # of Lloyd's algorithm
_TILE, _CHUNK = 256, 32  # points compared with a query together; distances compared with the largest in the heap
_GROUP = 64  # queries that share a tile in the cache
_ORDERED = 1 << 16  # rows brought into the order of the points at once
_CALIBRATION, _RECALL = 512, 0.996  # points whose exact neighbours calibrate the number of probed lists; their recall
_REACH = 1e9  # in largest deviations from the mean; squared distances beyond it would overflow in single precision
_LARGEST = 2.0**20  # that deviation in single precision: squares of values up to 1e25 times smaller do not underflow
_SPACED, _SPACING_RANK = 128, 15  # points whose distances to a neighbour are compared with the rounding errors
_MAX_ERROR = 1e-3  # of squared distances between neighbours in single precision
_LOST = 1e-14  # squared distances in units of |x|^2 that even double precision does not resolve


@inlined
def _replace_largest(values: Array, indices: Array, value: float, index: int) -> None:
    """Replace the root of a max-heap by a smaller entry."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= values.size:
            break
        if child + 1 < values.size and values[child] < values[child + 1]:
            child += 1
        if not value < values[child]:
            break
        values[at], indices[at] = values[child], indices[child]
        at = child
    values[at], indices[at] = value, index


@inlined
def _scan(first: Array, second: Array, tile: Array, n: int, distances: Array) -> None:
    """Compute the squared distances to the n points of a tile of two queries, multiplied by -2; loops vectorise."""
    distances[:n] = tile[:n]
    distances[_TILE : _TILE + n] = tile[:n]
    for d in range(0, first.size, 4):
        p0, p1, p2, p3 = first[d], first[d + 1], first[d + 2], first[d + 3]
        q0, q1, q2, q3 = second[d], second[d + 1], second[d + 2], second[d + 3]
        four = tile[(d + 1) * _TILE : (d + 5) * _TILE]
        for j in range(n):
            c0, c1, c2, c3 = four[j], four[_TILE + j], four[2 * _TILE + j], four[3 * _TILE + j]
            distances[j] += p0 * c0 + p1 * c1 + p2 * c2 + p3 * c3
            distances[_TILE + j] += q0 * c0 + q1 * c1 + q2 * c2 + q3 * c3


@inlined
def _keep(distances: Array, lo: int, itself: int, values: Array, indices: Array) -> None:
    """Push the distances to the columns from ``lo`` on into a heap."""
    for first in range(0, distances.size, _CHUNK):
        chunk = distances[first : first + _CHUNK]
        largest = values[0]
        n_nearer = 0
        for j in range(chunk.size):  # vectorises, and mostly finds none
            n_nearer += chunk[j] < largest
        if n_nearer > 0:
            for j in range(chunk.size):
                if chunk[j] < values[0] and lo + first + j != itself:
                    _replace_largest(values, indices, chunk[j], lo + first + j)


@inlined
def _searched_by(begin: int, end: int, wanted: Array, n_lists: int, home: int, centres: Array) -> Any:
    """Return the lists that queries search, and members and starts: members[starts[n]:starts[n + 1]] search the nth.

    A query searches the lists that it wants, or all if the first is negative, in the order of their distance from
    ``home``, so that the order in which it sees points does not depend on the other queries.
    """
    counts, n_everything = np.zeros(n_lists, np.int64), 0
    for i in range(begin, end):
        if wanted[i, 0] < 0:
            n_everything += 1
        else:
            for which in wanted[i]:
                counts[which] += 1
    found = np.flatnonzero(counts + n_everything).astype(wanted.dtype)
    squared = np.zeros(found.size, centres.dtype)
    for line in centres:
        for n in range(found.size):
            squared[n] += (line[found[n]] - line[home]) ** 2
    found = found[np.argsort(squared, kind="mergesort")]
    starts = np.zeros(found.size + 1, np.int64)
    at = counts  # where the next query of a list goes
    for n in range(found.size):
        starts[n + 1] = starts[n] + counts[found[n]] + n_everything
        at[found[n]] = starts[n]
    members = np.empty(starts[-1], np.int64)
    for i in range(begin, end):
        for which in found if wanted[i, 0] < 0 else wanted[i]:
            members[at[which]] = i
            at[which] += 1
    return found, starts, members


@compiled
def _search_cells(start: int, stop: int, searched: Any, index: Any, itself: int, heaps: tuple[Array, Array]) -> None:
    """Find the nearest columns of every query in the lists that it wants, and keep them in its heap.

    The queries of cell c, that of list c + ``first_cell``, are the columns cells[c] to cells[c + 1]; list l has the
    points lists[l] to lists[l + 1]. Query i is not compared with point i + ``itself``, unless this is negative.
    """
    (queries, cells, wanted, first_cell), (columns, squares, lists, centres) = searched, index
    values, indices = heaps
    n_dims = queries.shape[0]
    longest = 1
    for c in range(start, stop):
        longest = max(longest, cells[c + 1] - cells[c])
    rows = np.empty((longest, n_dims), queries.dtype)
    tile = np.empty((n_dims + 1) * _TILE, queries.dtype)
    distances = np.empty(2 * _TILE, queries.dtype)
    for c in range(start, stop):
        begin, end, home = cells[c], cells[c + 1], c + first_cell
        for d in range(n_dims):
            for i in range(begin, end):
                rows[i - begin, d] = -2 * queries[d, i]
        values[begin:end] = np.inf
        indices[begin:end] = 0
        found, starts, members = _searched_by(begin, end, wanted, lists.size - 1, home, centres)
        for f in range(found.size):
            group = members[starts[f] : starts[f + 1]]
            for lo in range(lists[found[f]], lists[found[f] + 1], _TILE):
                n = min(_TILE, lists[found[f] + 1] - lo)
                tile[:n] = squares[lo : lo + n]
                for d in range(n_dims):
                    tile[(d + 1) * _TILE : (d + 1) * _TILE + n] = columns[d, lo : lo + n]
                for g in range(0, group.size, 2):
                    i, other = group[g], group[min(g + 1, group.size - 1)]
                    _scan(rows[i - begin], rows[other - begin], tile, n, distances)
                    _keep(distances[:n], lo, i + itself if itself >= 0 else -1, values[i], indices[i])
                    if other > i:
                        two = distances[_TILE : _TILE + n]
                        _keep(two, lo, other + itself if itself >= 0 else -1, values[other], indices[other])


@compiled
def _distance_rows(start: int, stop: int, queries: Array, columns: Array, indices: Array, distances: Array) -> None:
    """Set ``distances`` to those of every query to the columns in its row of ``indices``."""
    row = np.empty(indices.shape[1], columns.dtype)
    for i in range(start, stop):
        row[:] = 0
        for d in range(columns.shape[0]):
            line, x = columns[d], queries[d, i]
            for e in range(row.size):
                difference = x - line[indices[i, e]]
                row[e] += difference * difference
        for e in range(row.size):
            distances[i, e] = np.sqrt(row[e])


class IVFIndex:
    """Inverted file index of points of shape (n_samples, n_features) for Euclidean distances.

    A query searches the lists whose centres are nearest; how many a recall of at least 0.98 takes is calibrated on a
    sample of the points. The queries of a cell are searched together.
    """

    def __init__(self, X: Array, workers: Workers) -> None:
        n_samples = X.shape[0]
        self.mean = np.asarray(X.mean(axis=0))
        # In double precision if the rounding errors of single precision would be noticeable among neighbours.
        columns, least = self._columns(X, np.float32), float(np.finfo(np.float32).eps) / 2 / _MAX_ERROR
        spacing, squares = _spacing(columns, workers)
        if (spacing <= 2 * least * squares).any():
            precise = self._columns(X, np.float64)
            spacing, squares = _spacing(precise, workers)
            columns = precise if ((spacing > 0) & (spacing < least * squares)).any() else columns
        n_lists = int(_LISTS * n_samples**0.5)
        rng = np.random.default_rng(0)
        sample = np.sort(rng.choice(n_samples, min(_SAMPLES_PER_LIST * n_lists, n_samples), replace=False))
        centres = _rough_centres(np.ascontiguousarray(columns[:, sample]), n_lists, rng, workers)
        label = nearest_columns(columns, centres, 1, workers)[0][:, 0]
        self.order = np.argsort(label, kind="stable")
        self.centres, self.lists = _split(np.bincount(label, minlength=n_lists), centres)
        self.columns = columns.take(self.order, axis=1)
        self.squares = np.einsum("ij,ij->j", self.columns, self.columns)

    def _columns(self, X: Array, dtype: Any) -> Array:
        """Return the points as columns; X, which may be a file, is read in blocks."""
        precision = np.promote_types(X.dtype, dtype)
        mean = self.mean.astype(precision)
        largest = float(np.maximum(X.max(axis=0) - mean, mean - X.min(axis=0)).max())
        self.unit = (largest or 1.0) / _LARGEST
        columns = np.zeros((-(-X.shape[1] // 4) * 4, X.shape[0]), dtype)
        for rows in gen_batches(X.shape[0], _ORDERED):
            columns[:, rows] = as_columns(X[rows].astype(precision, copy=False) - mean, self.unit, dtype)
        return columns

    def neighbors(self, n_neighbors: int, workers: Workers, n_probes: int | None = None) -> tuple[Array, Array]:
        """Return the other points nearest to every point and their distances, of shape (n_samples, n_neighbors)."""
        n_probes = n_probes or self.n_probes(n_neighbors, workers)
        found = self._search(self.columns, self.lists, n_probes, n_neighbors, workers)
        return self._in_order(self.order, self.columns, found, workers)

    def search(self, X: Array, n_neighbors: int, workers: Workers, n_probes: int | None = None) -> tuple[Array, Array]:
        """Return indices and distances of the points nearest to every row of X, in its nearest ``n_probes`` lists."""
        reach = _REACH * _LARGEST * self.unit  # beyond it, rounding decides the nearest anyway
        queries = as_columns(np.clip(X - self.mean, -reach, reach), self.unit, self.columns.dtype)
        label = nearest_columns(queries, self.centres, 1, workers)[0][:, 0]
        order = np.argsort(label, kind="stable")
        cells = np.searchsorted(label[order], np.arange(self.lists.size))
        queries = np.ascontiguousarray(queries[:, order])
        found = self._search(queries, cells, n_probes, n_neighbors, workers)
        return self._in_order(order, queries, found, workers)

    def n_probes(self, n_neighbors: int, workers: Workers) -> int:
        """Return how many of the nearest lists of a point reach the target recall on the calibration points."""
        n_samples, n_lists = self.columns.shape[1], self.lists.size - 1
        sample = np.linspace(0, n_samples - 1, min(_CALIBRATION, n_samples)).astype(np.int64)
        queries = np.ascontiguousarray(self.columns[:, sample])
        found = nearest_columns(queries, self.columns, n_neighbors + 1, workers)[0]  # the point itself is among them
        holders = np.searchsorted(self.lists, found, side="right") - 1
        lists, far = nearest_columns(queries, self.centres, n_lists, workers)
        nearest = np.take_along_axis(lists, np.argsort(far, axis=1, kind="stable"), axis=1)
        ranks = np.take_along_axis(np.argsort(nearest, axis=1), holders, axis=1)
        return int(np.quantile(ranks, _RECALL)) + 1

    def _search(self, queries: Array, cells: Array, n_probes: int | None, k: int, workers: Workers) -> Array:
        """Return the columns of the k nearest points of every query; cell c holds those whose nearest list is c."""
        found = np.empty((queries.shape[1], k), np.int32 if self.columns.shape[1] < 2**31 else np.int64)
        index = (self.columns, self.squares, self.lists, self.centres.astype(np.float64))
        # Blocks of cells with about as many queries as fit, at least one cell each.
        block = cells[:-1] // max(PROBE_ENTRIES // max(n_probes or 0, k), 1)
        edges = np.append(np.flatnonzero(np.diff(block, prepend=-1)), cells.size - 1)
        for first, last in pairwise(edges.tolist()):
            rows = slice(cells[first], cells[last])
            workers.report("nearest neighbours", rows.start / len(found))
            own, part = cells[first : last + 1] - rows.start, np.ascontiguousarray(queries[:, rows])
            wanted = np.full((part.shape[1], 1), -1, np.int32)
            if n_probes is not None:
                wanted = nearest_columns(part, self.centres, n_probes, workers)[0]
                wanted[np.diff(self.lists)[wanted].sum(axis=1) <= k] = -1
            searched, itself = (part, own, wanted, first), rows.start if queries is self.columns else -1
            args = (searched, index, itself, (np.empty((part.shape[1], k), part.dtype), found[rows]))
            workers.rows(_search_cells, last - first, *args, work=1e3 * part.size, alignment=1)
        return found

    def _in_order(self, order: Array, queries: Array, found: Array, workers: Workers) -> tuple[Array, Array]:
        """Return indices and distances of the columns found for queries in lists, which are sorted by ``order``."""
        numbers = self.order.astype(found.dtype)
        indices, distances, n_lost = np.empty_like(found), np.empty(found.shape, np.float32), 0
        for rows in gen_batches(len(found), _ORDERED):  # all at once would take half as much memory again
            block, far = np.ascontiguousarray(queries[:, rows]), np.empty(found[rows].shape, np.float32)
            workers.rows(_distance_rows, len(far), block, self.columns, found[rows], far, work=10.0 * far.size)
            indices[order[rows]] = numbers[found[rows]]
            distances[order[rows]] = far
            furthest = far.max(axis=1).astype(np.float64) ** 2
            n_lost += int(((furthest > 0) & (furthest < _LOST * np.einsum("ij,ij->j", block, block))).sum())
        if n_lost and queries.dtype == np.float64:
            warn(
                f"the neighbours of {n_lost} rows of X are lost in rounding: its values are millions of times larger "
                "than their distances. Transform or remove outliers, or give the neighbours as X=(indices, distances)."
            )
        if not 1e-15 < self.unit * _LARGEST < 1e15:
            distances = distances.astype(np.float64)
        distances *= distances.dtype.type(self.unit)
        return indices, distances


def _spacing(columns: Array, workers: Workers) -> tuple[Array, Array]:
    """Return the squared distances of some points to a near neighbour, and to the mean."""
    n_points = columns.shape[1]
    queries = np.ascontiguousarray(columns[:, np.linspace(0, n_points - 1, min(_SPACED, n_points)).astype(np.int64)])
    squares = np.einsum("ij,ij->j", queries, queries)
    found = nearest_columns(queries, columns, min(_SPACING_RANK + 1, n_points), workers)[0]
    return np.square(columns[:, found] - queries[:, :, None]).sum(axis=0).max(axis=1), squares


def nearest_columns(queries: Array, centres: Array, k: int, workers: Workers) -> tuple[Array, Array]:
    """Return indices and squared distances of the k nearest columns of ``centres`` to every query, in any order."""
    n_queries, n_centres = queries.shape[1], centres.shape[1]
    # The squared norms of the queries are left out of the distances. Groups of queries share tiles.
    cells = np.append(np.arange(0, n_queries, _GROUP), n_queries)
    values, indices = np.empty((n_queries, k), queries.dtype), np.empty((n_queries, k), np.int32)
    nowhere = np.empty((0, 0))  # one list has no order
    index = (centres, np.einsum("ij,ij->j", centres, centres), np.array([0, n_centres]), nowhere)
    args = ((queries, cells, np.full((n_queries, 1), -1, np.int32), 0), index, -1, (values, indices))
    workers.rows(_search_cells, cells.size - 1, *args, work=2.0 * queries.size * n_centres, alignment=1)
    return indices, values


def as_columns(centred: Array, unit: float, dtype: type | np.dtype = np.float32) -> Array:
    """Return points in units of ``unit`` as columns, padded with zeros to a multiple of four dimensions."""
    n_samples, n_features = centred.shape
    columns = np.zeros((-(-n_features // 4) * 4, n_samples), dtype)
    columns[:n_features] = (centred / unit).T
    return columns


def _rough_centres(sample: Array, n_lists: int, rng: np.random.Generator, workers: Workers) -> Array:
    centres = np.ascontiguousarray(sample[:, rng.choice(sample.shape[1], n_lists, replace=False)])
    for _ in range(_ROUNDS):
        label = nearest_columns(sample, centres, 1, workers)[0][:, 0]
        sizes = np.bincount(label, minlength=n_lists)
        for d, line in enumerate(sample):
            sums = np.bincount(label, weights=line, minlength=n_lists)
            centres[d] = np.where(sizes > 0, sums / np.maximum(sizes, 1), centres[d])
    return centres


def _split(sizes: Array, centres: Array) -> tuple[Array, Array]:
    """Split overlong lists, such as those of duplicates; return the centres and starts of all lists."""
    longest = max(int(_MAX_LIST * sizes.mean()), 1)
    n_parts = np.maximum(-(-sizes // longest), 1)
    parts = np.repeat(np.arange(sizes.size), n_parts)
    nth = np.arange(parts.size) - np.repeat(np.cumsum(n_parts) - n_parts, n_parts)
    lengths = np.minimum(sizes[parts] - nth * longest, longest)
    return np.ascontiguousarray(centres[:, parts]), np.append(0, np.cumsum(lengths))
