"""Approximate nearest neighbours by inverted lists: points are sorted into cells, and only near cells searched."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.threads import Workers

Array = NDArray[Any]

_SAMPLES_PER_LIST = 32
_ROUNDS = 6  # of Lloyd's algorithm
_TILE = 256  # distances that are computed together
_GROUP = 64  # queries that are compared with a tile one after the other
_MAX_LIST = 4  # no list is longer than this many times the mean
_SORTED = 4096  # rows that are put in order together
_PROBED = 512  # points whose true neighbours tell how many lists must be searched
_REACH = 1e9  # in units of the points; squares of distances beyond it would leave single precision
_RECALL = 0.996


@inlined
def _sift(values: Array, indices: Array, value: float, index: int) -> None:
    """Replace the largest of a heap by a smaller value."""
    k = values.size
    at = 0
    while True:
        child = 2 * at + 1
        if child >= k:
            break
        if child + 1 < k and values[child + 1] > values[child]:
            child += 1
        if values[child] <= value:
            break
        values[at] = values[child]
        indices[at] = indices[child]
        at = child
    values[at] = value
    indices[at] = index


@inlined
def _scan(first: Array, second: Array, tile: Array, n: int, distances: Array) -> None:
    """Squared distances of two queries (times -2) to the n points of a tile, up to those of the queries to the origin.

    Both results and all dimensions of the tile lie in one piece of memory each, so that the loop vectorises.
    """
    start = tile[:_TILE]
    for j in range(n):
        distances[j] = start[j]
        distances[_TILE + j] = start[j]
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
    """Enter the distances to the columns from lo on into a heap."""
    for j in range(distances.size):
        if distances[j] < values[0] and lo + j != itself:
            _sift(values, indices, distances[j], lo + j)


@compiled
def _search_cells(
    start: int,
    stop: int,
    queries: Array,
    cells: Array,
    columns: Array,
    squares: Array,
    lists: Array,
    probe_starts: Array,
    probes: Array,
    among_themselves: bool,  # noqa: FBT001
    values: Array,
    indices: Array,
) -> None:
    """Set values and indices of the queries of each cell to their nearest among the columns of the lists it probes.

    The queries of cell c are the columns cells[c] to cells[c + 1] of ``queries``; list l holds the columns lists[l] to
    lists[l + 1].
    """
    n_dims = queries.shape[0]
    longest = 1
    for c in range(start, stop):
        longest = max(longest, cells[c + 1] - cells[c])
    rows = np.empty((longest, n_dims), queries.dtype)
    tile = np.empty((n_dims + 1) * _TILE, queries.dtype)
    distances = np.empty(2 * _TILE, queries.dtype)
    for c in range(start, stop):
        begin, end = cells[c], cells[c + 1]
        for d in range(n_dims):
            for i in range(begin, end):
                rows[i - begin, d] = -2 * queries[d, i]
        values[begin:end] = np.inf
        indices[begin:end] = 0
        for p in range(probe_starts[c], probe_starts[c + 1]):
            for lo in range(lists[probes[p]], lists[probes[p] + 1], _TILE):
                n = min(_TILE, lists[probes[p] + 1] - lo)
                tile[:n] = squares[lo : lo + n]
                for d in range(n_dims):
                    tile[(d + 1) * _TILE : (d + 1) * _TILE + n] = columns[d, lo : lo + n]
                for i in range(begin, end, 2):
                    other = min(i + 1, end - 1)
                    _scan(rows[i - begin], rows[other - begin], tile, n, distances)
                    _keep(distances[:n], lo, i if among_themselves else -1, values[i], indices[i])
                    if other > i:
                        two = distances[_TILE : _TILE + n]
                        _keep(two, lo, other if among_themselves else -1, values[other], indices[other])


@compiled
def _distance_rows(start: int, stop: int, queries: Array, columns: Array, indices: Array, distances: Array) -> None:
    """Set distances to those of every query to the columns of its row of indices, by differences."""
    row = np.empty(indices.shape[1], columns.dtype)
    for i in range(start, stop):
        row[:] = 0
        for d in range(columns.shape[0]):
            line = columns[d]
            x = queries[d, i]
            for e in range(row.size):
                difference = x - line[indices[i, e]]
                row[e] += difference * difference
        for e in range(row.size):
            distances[i, e] = np.sqrt(row[e])


@compiled
def _probed_lists(wanted: Array, lists: Array, n_neighbors: int) -> tuple[Array, Array]:
    """Lists that any query of a cell wants, cell by cell; all lists where those hold too few points."""
    n_lists = lists.size - 1
    starts = np.zeros(lists.size, np.int64)
    probes = np.empty(min(wanted.size, n_lists * n_lists) + n_lists * n_lists, np.int32)
    seen = np.full(n_lists, -1)
    total = 0
    for c in range(n_lists):
        n_points = 0
        for i in range(lists[c], lists[c + 1]):
            for p in range(wanted.shape[1]):
                near = wanted[i, p]
                if seen[near] != c:
                    seen[near] = c
                    probes[total] = near
                    total += 1
                    n_points += lists[near + 1] - lists[near]
        if n_points <= n_neighbors and lists[c] < lists[c + 1]:
            for other in range(n_lists):
                if seen[other] != c:
                    probes[total] = other
                    total += 1
        starts[c + 1] = total
    return starts, probes[:total].copy()


class IVFIndex:
    """Points in cells around the centres of a rough k-means.

    Every query searches the cells that any point of its own cell would. How many that must be for
    a recall of 0.98 is measured on some points, whose neighbours are found exactly.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Points; Euclidean distances.
    workers : Workers
        Threads. They do not change the result.
    """

    def __init__(self, X: Array, workers: Workers) -> None:
        n_samples = X.shape[0]
        self.mean = X.mean(axis=0)
        centred = X - self.mean
        # In units of the largest value, squares neither overflow nor vanish.
        self.unit = float(np.abs(centred).max()) or 1.0
        columns = as_columns(centred, self.unit)
        del centred
        n_lists = int(2 * n_samples**0.5)
        rng = np.random.default_rng(0)
        sample = np.sort(rng.choice(n_samples, min(_SAMPLES_PER_LIST * n_lists, n_samples), replace=False))
        centres = _rough_centres(np.ascontiguousarray(columns[:, sample]), n_lists, rng, workers)
        label = nearest_columns(columns, centres, 1, workers)[0][:, 0]
        self.order = np.argsort(label, kind="stable")
        self.columns = np.ascontiguousarray(columns[:, self.order])
        self.squares = np.einsum("ij,ij->j", self.columns, self.columns)
        self.centres, self.lists = _split(np.bincount(label, minlength=n_lists), centres)

    def neighbors(self, n_neighbors: int, workers: Workers) -> tuple[Array, Array]:
        """Indices of the neighbours of every point and their distances, shape (n_samples, n_neighbors) each.

        A point itself is not among them; they are in no order.
        """
        probes = self.probes(n_neighbors, workers)
        found = self._search(self.columns, self.lists, probes, n_neighbors, workers, among_themselves=True)
        return self._in_order(self.order, self.columns, found, workers)

    def search(
        self, X: Array, n_neighbors: int, workers: Workers, probes: tuple[Array, Array] | None = None
    ) -> tuple[Array, Array]:
        """Indices of the nearest points of every row of X and their distances, in no order.

        A row's neighbours do not depend on the other rows. With ``probes``, as :meth:`probes` returns them, only those
        lists are searched; without, all of them.
        """
        queries = as_columns(self._within_reach(X - self.mean), self.unit)
        n_lists = self.lists.size - 1
        if probes is None:
            order = np.arange(len(X))
            cells = np.append(np.arange(0, len(X), _GROUP), len(X))
            probes = _all_lists(cells.size - 1, n_lists)
        else:
            label = nearest_columns(queries, self.centres, 1, workers)[0][:, 0]
            order = np.argsort(label, kind="stable")
            cells = np.append(0, np.cumsum(np.bincount(label, minlength=n_lists)))
            queries = np.ascontiguousarray(queries[:, order])
        found = self._search(queries, cells, probes, n_neighbors, workers, among_themselves=False)
        return self._in_order(order, queries, found, workers)

    def _within_reach(self, centred: Array) -> Array:
        """Queries, those that are very far brought nearer: who is nearest is lost to rounding long before."""
        furthest, reach = np.abs(centred).max(axis=1, keepdims=True), _REACH * self.unit
        return np.asarray(np.where(furthest > reach, centred * (reach / np.maximum(furthest, reach)), centred))

    def probes(self, n_neighbors: int, workers: Workers) -> tuple[Array, Array]:
        """Lists that each cell must search: as few as hold nearly all true neighbours of some points."""
        n_samples, n_lists = self.columns.shape[1], self.lists.size - 1
        some = np.linspace(0, n_samples - 1, min(_PROBED, n_samples)).astype(np.int64)
        queries = np.ascontiguousarray(self.columns[:, some])
        cells = np.append(np.arange(0, some.size, _GROUP), some.size)
        everything = _all_lists(cells.size - 1, n_lists)
        # One neighbour more: the point itself is among them.
        neighbors = self._search(queries, cells, everything, n_neighbors + 1, workers, among_themselves=False)
        holders, home = (np.searchsorted(self.lists, found, side="right") - 1 for found in (neighbors, some))
        # What a query would need by itself bounds what it needs where it searches the lists of its whole cell.
        ranks = np.empty((some.size, n_lists), np.int64)
        np.put_along_axis(
            ranks, nearest_columns(queries, self.centres, n_lists, workers)[0], np.arange(n_lists)[None], axis=1
        )
        most = int(np.quantile(np.take_along_axis(ranks, holders, axis=1), _RECALL)) + 1
        wanted = nearest_columns(self.columns, self.centres, most, workers)[0]
        searched = np.empty((some.size, n_lists), bool)
        for n_wanted in range(1, most + 1):
            starts, probes = _probed_lists(wanted[:, :n_wanted], self.lists, n_neighbors)
            searched[:] = False
            for row, cell in enumerate(home):
                searched[row, probes[starts[cell] : starts[cell + 1]]] = True
            if np.take_along_axis(searched, holders, axis=1).mean() >= _RECALL:
                break
        return starts, probes

    def _search(
        self,
        queries: Array,
        cells: Array,
        probes: tuple[Array, Array],
        k: int,
        workers: Workers,
        *,
        among_themselves: bool,
    ) -> Array:
        """Places, in the lists, of the k nearest points of every query."""
        n_queries = queries.shape[1]
        kind = np.int32 if self.columns.shape[1] < 2**31 else np.int64
        values, indices = np.empty((n_queries, k), np.float32), np.empty((n_queries, k), kind)
        args = (queries, cells, self.columns, self.squares, self.lists, *probes, among_themselves)
        work = 1e3 * queries.size
        workers.rows(_search_cells, cells.size - 1, *args, values, indices, work=work, alignment=1)
        return indices

    def _in_order(self, order: Array, queries: Array, found: Array, workers: Workers) -> tuple[Array, Array]:
        """Indices and distances from places in the lists; the queries are the points or rows in this order."""
        distances = paired_distances(queries, self.columns, found, workers)
        indices, in_order = np.empty_like(found), np.empty_like(distances)
        indices[order] = self.order.astype(found.dtype)[found]
        in_order[order] = distances
        if not 1e-15 < self.unit < 1e15:
            in_order = in_order.astype(np.float64)
        in_order *= in_order.dtype.type(self.unit)
        return indices, in_order


def nearest_columns(queries: Array, centres: Array, k: int, workers: Workers) -> tuple[Array, Array]:
    """The k nearest columns of ``centres`` to every column of ``queries``, nearest first.

    Both are in single precision and have a multiple of four rows. Returns the numbers of the columns, and squared
    distances less the squares of the queries themselves, shape (n_queries, k) each.
    """
    n_queries, n_centres = queries.shape[1], centres.shape[1]
    cells = np.append(np.arange(0, n_queries, _GROUP), n_queries)
    starts, probes = _all_lists(cells.size - 1, 1)
    squares = np.einsum("ij,ij->j", centres, centres)
    one_list = np.array([0, n_centres])
    values, indices = np.empty((n_queries, k), np.float32), np.empty((n_queries, k), np.int32)
    args = (queries, cells, centres, squares, one_list, starts, probes, False, values, indices)
    workers.rows(_search_cells, cells.size - 1, *args, work=2.0 * queries.size * n_centres, alignment=1)
    if k > 1:
        for rows in gen_batches(n_queries, _SORTED):  # all at once would need three times the memory
            order = np.argsort(values[rows], axis=1, kind="stable")
            values[rows] = np.take_along_axis(values[rows], order, axis=1)
            indices[rows] = np.take_along_axis(indices[rows], order, axis=1)
    return indices, values


def paired_distances(queries: Array, columns: Array, indices: Array, workers: Workers) -> Array:
    """Distances of every query to the columns of its row of ``indices``, by differences."""
    distances = np.empty(indices.shape, np.float32)
    workers.rows(_distance_rows, len(indices), queries, columns, indices, distances, work=10.0 * indices.size)
    return distances


def as_columns(centred: Array, unit: float) -> Array:
    """Points dimension by dimension, four of them at a time, in single precision."""
    n_samples, n_features = centred.shape
    columns = np.zeros((-(-n_features // 4) * 4, n_samples), np.float32)
    columns[:n_features] = (centred / unit).T
    return columns


def _all_lists(n_cells: int, n_lists: int) -> tuple[Array, Array]:
    """Probes by which every cell searches every list."""
    return np.arange(n_cells + 1) * n_lists, np.tile(np.arange(n_lists, dtype=np.int32), n_cells)


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
    """Cut lists much longer than the others, as those of duplicates may be; return centres and first points."""
    longest = max(int(_MAX_LIST * sizes.mean()), 1)
    n_parts = np.maximum(-(-sizes // longest), 1)
    parts = np.repeat(np.arange(sizes.size), n_parts)
    nth = np.arange(parts.size) - np.repeat(np.cumsum(n_parts) - n_parts, n_parts)
    lengths = np.minimum(sizes[parts] - nth * longest, longest)
    return np.ascontiguousarray(centres[:, parts]), np.append(0, np.cumsum(lengths))
