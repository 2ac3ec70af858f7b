"""Inverted file index (IVF) for approximate nearest neighbours.

Points are assigned to the cells of a rough k-means, and a query searches the lists of a few cells near it (Sivic and
Zisserman, "Video Google", ICCV 2003; "IVFFlat" of faiss).
"""

from collections.abc import Iterator

import numpy as np
from sklearn.utils import gen_batches

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.heap import replace_largest
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array

PROBE_ENTRIES = 1 << 22  # entries in memory at once of the tables of probed lists and of heaps
_LISTS = 2  # number of lists, in square roots of the number of points
_SAMPLES_PER_LIST = 32
_ROUNDS = 6  # of Lloyd's algorithm
_TILE = 256  # points whose distances to a query are computed together
_CHUNK = 32  # distances compared at once with the largest in the heap
_GROUP = 64  # queries that share a tile in the cache
_MAX_LIST = 4  # maximum length of a list, in mean lengths
_SORTED = 4096  # rows sorted at once
_ORDERED = 1 << 16  # rows brought into the order of the points at once
_CALIBRATION = 512  # points whose exact neighbours calibrate the number of probed lists
_REACH = 1e9  # in units of the data; squared distances beyond it would overflow in single precision
_RECALL = 0.996  # on the calibration points


@inlined
def _scan(first: Array, second: Array, tile: Array, n: int, distances: Array) -> None:
    """Compute squared distances of two queries to the n points of a tile, less the squared norms of the queries.

    The queries are multiplied by -2. The distances, and all dimensions of the tile, are contiguous so that the loop
    vectorises.
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
                    replace_largest(values, indices, values.size, chunk[j], lo + first + j, False)


@inlined
def _by_distance(found: Array, home: int, centres: Array) -> Array:
    """Sort lists by the distance of their centres from that of the list ``home``."""
    squared = np.zeros(found.size, centres.dtype)
    for line in centres:
        for n in range(found.size):
            squared[n] += (line[found[n]] - line[home]) ** 2
    return found[np.argsort(squared, kind="mergesort")]


@inlined
def _searched_by(
    begin: int, end: int, wanted: Array, lists: Array, n_neighbors: int, home: int, centres: Array
) -> tuple[Array, Array, Array]:
    """Return the lists that the queries ``begin`` to ``end`` search, and for each the queries that search it.

    The queries of the nth list are members[starts[n]:starts[n + 1]]. A query searches the lists that it wants, or all
    if these have too few points. Lists come in the order of their distance from the list ``home``: the nearest first,
    and so that the order in which a query sees points does not depend on the other queries.
    """
    counts = np.zeros(lists.size - 1, np.int64)
    everything = np.empty(end - begin, np.bool_)
    n_everything = 0
    for i in range(begin, end):
        n_points = 0
        for p in range(wanted.shape[1]):
            n_points += lists[wanted[i, p] + 1] - lists[wanted[i, p]]
        everything[i - begin] = n_points <= n_neighbors
        n_everything += n_points <= n_neighbors
        if n_points > n_neighbors:
            for p in range(wanted.shape[1]):
                counts[wanted[i, p]] += 1
    found = _by_distance(np.flatnonzero(counts + n_everything), home, centres)
    starts = np.zeros(found.size + 1, np.int64)
    at = counts  # where the next query of a list goes
    for n in range(found.size):
        starts[n + 1] = starts[n] + counts[found[n]] + n_everything
        at[found[n]] = starts[n]
    members = np.empty(starts[-1], np.int64)
    for i in range(begin, end):
        if everything[i - begin]:
            for n in range(found.size):
                members[at[found[n]]] = i
                at[found[n]] += 1
        else:
            for p in range(wanted.shape[1]):
                members[at[wanted[i, p]]] = i
                at[wanted[i, p]] += 1
    return found, starts, members


@compiled
def _search_cells(
    start: int,
    stop: int,
    queries: Array,
    cells: Array,
    columns: Array,
    squares: Array,
    lists: Array,
    wanted: Array,
    homes: Array,
    centres: Array,
    itself: int,
    values: Array,
    indices: Array,
) -> None:
    """Find the nearest columns of every query in the lists that it wants.

    The queries of cell c are the columns cells[c] to cells[c + 1] of ``queries``, and list l has the columns lists[l]
    to lists[l + 1] and a column of ``centres``; homes[c] is the list whose centre is nearest to cell c. If query i is
    the column i + ``itself`` of ``columns``, that column is left out; a negative ``itself`` leaves none out. ``values``
    and ``indices`` hold one heap per query.
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
        found, starts, members = _searched_by(begin, end, wanted, lists, values.shape[1], homes[c], centres)
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
            line = columns[d]
            x = queries[d, i]
            for e in range(row.size):
                difference = x - line[indices[i, e]]
                row[e] += difference * difference
        for e in range(row.size):
            distances[i, e] = np.sqrt(row[e])


class IVFIndex:
    """Inverted file index of points of shape (n_samples, n_features) for Euclidean distances.

    A query searches the lists whose centres are nearest to it. How many that takes for a recall of at least 0.98 is
    calibrated on a sample of the points, whose neighbours are found exactly. The queries of a cell are searched
    together. Results do not depend on the number of threads.
    """

    def __init__(self, X: Array, workers: Workers) -> None:
        n_samples = X.shape[0]
        self.mean = X.mean(axis=0)
        centred = X - self.mean
        # In units of the largest value, squares neither overflow nor underflow.
        self.unit = float(np.abs(centred).max()) or 1.0
        columns = as_columns(centred, self.unit)
        del centred
        n_lists = int(_LISTS * n_samples**0.5)
        rng = np.random.default_rng(0)
        sample = np.sort(rng.choice(n_samples, min(_SAMPLES_PER_LIST * n_lists, n_samples), replace=False))
        centres = _rough_centres(np.ascontiguousarray(columns[:, sample]), n_lists, rng, workers)
        label = nearest_columns(columns, centres, 1, workers)[0][:, 0]
        self.order = np.argsort(label, kind="stable")
        self.columns = np.ascontiguousarray(columns[:, self.order])
        self.squares = np.einsum("ij,ij->j", self.columns, self.columns)
        self.centres, self.lists = _split(np.bincount(label, minlength=n_lists), centres)

    def neighbors(self, n_neighbors: int, workers: Workers) -> tuple[Array, Array]:
        """Return indices and distances of the neighbours of every point, each of shape (n_samples, n_neighbors).

        A point is not its own neighbour. Neighbours are not sorted.
        """
        n_probes = self.n_probes(n_neighbors, workers)
        found = self._search(self.columns, self.lists, n_probes, n_neighbors, workers, among_themselves=True)
        return self._in_order(self.order, self.columns, found, workers)

    def search(self, X: Array, n_neighbors: int, workers: Workers, n_probes: int | None = None) -> tuple[Array, Array]:
        """Return indices and distances of the points nearest to every row of X, not sorted.

        The result of a row does not depend on the other rows. Only the nearest ``n_probes`` lists of a row are
        searched, as returned by :meth:`n_probes`; by default all.
        """
        queries = as_columns(self._within_reach(X - self.mean), self.unit)
        if n_probes is None:
            order, cells = np.arange(len(X)), _groups(len(X))
        else:
            label = nearest_columns(queries, self.centres, 1, workers)[0][:, 0]
            order = np.argsort(label, kind="stable")
            cells = np.append(0, np.cumsum(np.bincount(label, minlength=self.lists.size - 1)))
            queries = np.ascontiguousarray(queries[:, order])
        found = self._search(queries, cells, n_probes, n_neighbors, workers)
        return self._in_order(order, queries, found, workers)

    def _within_reach(self, centred: Array) -> Array:
        """Move queries beyond the reach of single precision closer, where rounding decides the nearest anyway."""
        furthest, reach = np.abs(centred).max(axis=1, keepdims=True), _REACH * self.unit
        return np.asarray(np.where(furthest > reach, centred * (reach / np.maximum(furthest, reach)), centred))

    def n_probes(self, n_neighbors: int, workers: Workers) -> int:
        """Return how many of the nearest lists of a point reach the target recall on the calibration points."""
        n_samples, n_lists = self.columns.shape[1], self.lists.size - 1
        sample = np.linspace(0, n_samples - 1, min(_CALIBRATION, n_samples)).astype(np.int64)
        queries = np.ascontiguousarray(self.columns[:, sample])
        # One neighbour more: the point itself is among them.
        neighbors = self._search(queries, _groups(sample.size), None, n_neighbors + 1, workers)
        holders = np.searchsorted(self.lists, neighbors, side="right") - 1
        ranks = np.empty((sample.size, n_lists), np.int64)
        nearest = nearest_columns(queries, self.centres, n_lists, workers)[0]
        np.put_along_axis(ranks, nearest, np.arange(n_lists)[None], axis=1)
        return int(np.quantile(np.take_along_axis(ranks, holders, axis=1), _RECALL)) + 1

    def _search(
        self,
        queries: Array,
        cells: Array,
        n_probes: int | None,
        k: int,
        workers: Workers,
        *,
        among_themselves: bool = False,
    ) -> Array:
        """Return the columns of the k nearest points of every query, in blocks of cells.

        The queries are those of the cells of the lists or, without ``n_probes``, in any groups, and search all lists.
        """
        found = np.empty((queries.shape[1], k), np.int32 if self.columns.shape[1] < 2**31 else np.int64)
        homes, centres = np.arange(cells.size - 1), self.centres
        if n_probes is None:
            homes, centres = np.zeros_like(homes), centres[:0]  # the order of the lists is that of their numbers
        for block in _blocks(cells, PROBE_ENTRIES // max(n_probes or 0, k)):
            rows = slice(cells[block.start], cells[block.stop])
            part = np.ascontiguousarray(queries[:, rows])
            wanted = np.empty((part.shape[1], 0), np.int32)
            if n_probes is not None:
                wanted = nearest_columns(part, self.centres, n_probes, workers, in_order=False)[0]
            values = np.empty((part.shape[1], k), np.float32)
            args = (
                part,
                cells[block.start : block.stop + 1] - rows.start,
                self.columns,
                self.squares,
                self.lists,
                wanted,
            )
            heaps = (homes[block], centres, rows.start if among_themselves else -1, values, found[rows])
            workers.rows(_search_cells, block.stop - block.start, *args, *heaps, work=1e3 * part.size, alignment=1)
        return found

    def _in_order(self, order: Array, queries: Array, found: Array, workers: Workers) -> tuple[Array, Array]:
        """Return indices and distances of the columns found for queries that are sorted by ``order``."""
        numbers = self.order.astype(found.dtype)
        indices, distances = np.empty_like(found), np.empty(found.shape, np.float32)
        for rows in gen_batches(len(found), _ORDERED):  # all at once would take half as much memory again
            block = np.ascontiguousarray(queries[:, rows])
            indices[order[rows]] = numbers[found[rows]]
            distances[order[rows]] = paired_distances(block, self.columns, found[rows], workers)
        if not 1e-15 < self.unit < 1e15:
            distances = distances.astype(np.float64)
        distances *= distances.dtype.type(self.unit)
        return indices, distances


def nearest_columns(
    queries: Array, centres: Array, k: int, workers: Workers, *, in_order: bool = True
) -> tuple[Array, Array]:
    """Find the k nearest columns of ``centres`` to every column of ``queries``, nearest first if ``in_order``.

    Both are laid out by :func:`as_columns`. Returns the indices of the columns and the squared distances less the
    squared norms of the queries, each of shape (n_queries, k).
    """
    n_queries, n_centres = queries.shape[1], centres.shape[1]
    cells = _groups(n_queries)
    squares = np.einsum("ij,ij->j", centres, centres)
    everything = (np.array([0, n_centres]), np.empty((n_queries, 0), np.int32))
    homes = np.zeros(cells.size - 1, np.int64)
    values, indices = np.empty((n_queries, k), np.float32), np.empty((n_queries, k), np.int32)
    args = (queries, cells, centres, squares, *everything, homes, centres[:0], -1, values, indices)
    workers.rows(_search_cells, cells.size - 1, *args, work=2.0 * queries.size * n_centres, alignment=1)
    if k > 1 and in_order:
        for rows in gen_batches(n_queries, _SORTED):  # all at once would take three times the memory
            order = np.argsort(values[rows], axis=1, kind="stable")
            values[rows] = np.take_along_axis(values[rows], order, axis=1)
            indices[rows] = np.take_along_axis(indices[rows], order, axis=1)
    return indices, values


def paired_distances(queries: Array, columns: Array, indices: Array, workers: Workers) -> Array:
    """Return the distances of every query to the columns in its row of ``indices``, computed by differences."""
    distances = np.empty(indices.shape, np.float32)
    workers.rows(_distance_rows, len(indices), queries, columns, indices, distances, work=10.0 * indices.size)
    return distances


def as_columns(centred: Array, unit: float) -> Array:
    """Return points in units of ``unit`` as float32 columns, padded with zeros to a multiple of four dimensions."""
    n_samples, n_features = centred.shape
    columns = np.zeros((-(-n_features // 4) * 4, n_samples), np.float32)
    columns[:n_features] = (centred / unit).T
    return columns


def _groups(n_queries: int) -> Array:
    """Return the edges of groups of queries that share tiles."""
    return np.append(np.arange(0, n_queries, _GROUP), n_queries)


def _blocks(cells: Array, n_rows: int) -> Iterator[slice]:
    """Yield blocks of consecutive cells with about ``n_rows`` rows, at least one cell each."""
    block = cells[:-1] // max(n_rows, 1)
    edges = np.append(np.flatnonzero(np.diff(block, prepend=-1)), cells.size - 1)
    return map(slice, edges[:-1], edges[1:])


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
