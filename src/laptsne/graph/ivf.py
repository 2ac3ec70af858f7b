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

PROBE_ENTRIES = 1 << 22  # entries in memory at once of the table of the lists that points probe
_SAMPLES_PER_LIST = 32
_ROUNDS = 6  # of Lloyd's algorithm
_TILE = 256  # points whose distances to a query are computed together
_GROUP = 64  # queries that share a tile in the cache
_MAX_LIST = 4  # maximum length of a list, in mean lengths
_SORTED = 4096  # rows sorted at once
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
    for j in range(distances.size):
        if distances[j] < values[0] and lo + j != itself:
            replace_largest(values, indices, values.size, distances[j], lo + j, False)


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
    """Find the nearest columns of every query in the lists that its cell probes.

    The queries of cell c are the columns cells[c] to cells[c + 1] of ``queries``, and list l has the columns lists[l]
    to lists[l + 1]. ``values`` and ``indices`` hold one heap per query.
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


@compiled
def _probed_lists(wanted: Array, cells: Array, sizes: Array, n_neighbors: int) -> tuple[Array, Array]:
    """Return the union of the lists wanted by the points of each cell; all lists if the union has too few points.

    The points of cell c are the rows cells[c] to cells[c + 1] of ``wanted``; ``sizes`` are the lengths of all lists.
    """
    n_cells, n_lists = cells.size - 1, sizes.size
    starts = np.zeros(n_cells + 1, np.int64)
    probes = np.empty(n_cells * n_lists, np.int32)
    seen = np.full(n_lists, -1)
    total = 0
    for c in range(n_cells):
        n_points = 0
        for i in range(cells[c], cells[c + 1]):
            for p in range(wanted.shape[1]):
                near = wanted[i, p]
                if seen[near] != c:
                    seen[near] = c
                    probes[total] = near
                    total += 1
                    n_points += sizes[near]
        if n_points <= n_neighbors and cells[c] < cells[c + 1]:
            for other in range(n_lists):
                if seen[other] != c:
                    probes[total] = other
                    total += 1
        starts[c + 1] = total
    return starts, probes[:total].copy()


@compiled
def _first_ranks(wanted: Array, cells: Array, ranks: Array) -> None:
    """Set ranks[c, l] to the lowest rank that list l has among the lists wanted by a point of cell c."""
    for c in range(cells.size - 1):
        for i in range(cells[c], cells[c + 1]):
            for p in range(wanted.shape[1]):
                ranks[c, wanted[i, p]] = min(ranks[c, wanted[i, p]], p)


class IVFIndex:
    """Inverted file index of points of shape (n_samples, n_features) for Euclidean distances.

    A query searches the lists that are among the nearest of any point in its cell. How many nearest lists that takes
    for a recall of at least 0.98 is calibrated on a sample of the points, whose neighbours are found exactly. Results
    do not depend on the number of threads.
    """

    def __init__(self, X: Array, workers: Workers) -> None:
        n_samples = X.shape[0]
        self.mean = X.mean(axis=0)
        centred = X - self.mean
        # In units of the largest value, squares neither overflow nor underflow.
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
        """Return indices and distances of the neighbours of every point, each of shape (n_samples, n_neighbors).

        A point is not its own neighbour. Neighbours are not sorted.
        """
        probes = self.probes(n_neighbors, workers)
        found = self._search(self.columns, self.lists, probes, n_neighbors, workers, among_themselves=True)
        return self._in_order(self.order, self.columns, found, workers)

    def search(
        self, X: Array, n_neighbors: int, workers: Workers, probes: tuple[Array, Array] | None = None
    ) -> tuple[Array, Array]:
        """Return indices and distances of the points nearest to every row of X, not sorted.

        The result of a row does not depend on the other rows. Only the lists in ``probes``, as returned by
        :meth:`probes`, are searched; by default all.
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
        """Move queries beyond the reach of single precision closer, where rounding decides the nearest anyway."""
        furthest, reach = np.abs(centred).max(axis=1, keepdims=True), _REACH * self.unit
        return np.asarray(np.where(furthest > reach, centred * (reach / np.maximum(furthest, reach)), centred))

    def probes(self, n_neighbors: int, workers: Workers) -> tuple[Array, Array]:
        """Return the lists to search: the fewest that reach the target recall on the calibration points.

        Cell c searches the lists probes[starts[c]:starts[c + 1]] of the returned (starts, probes).
        """
        n_samples, n_lists = self.columns.shape[1], self.lists.size - 1
        sample = np.linspace(0, n_samples - 1, min(_CALIBRATION, n_samples)).astype(np.int64)
        queries = np.ascontiguousarray(self.columns[:, sample])
        groups = np.append(np.arange(0, sample.size, _GROUP), sample.size)
        # One neighbour more: the point itself is among them.
        everything = _all_lists(groups.size - 1, n_lists)
        neighbors = self._search(queries, groups, everything, n_neighbors + 1, workers, among_themselves=False)
        holders, home = (np.searchsorted(self.lists, found, side="right") - 1 for found in (neighbors, sample))
        # A query that probed its own nearest lists alone would need at least as many as with those of its whole cell.
        ranks = np.empty((sample.size, n_lists), np.int64)
        np.put_along_axis(
            ranks, nearest_columns(queries, self.centres, n_lists, workers)[0], np.arange(n_lists)[None], axis=1
        )
        most = int(np.quantile(np.take_along_axis(ranks, holders, axis=1), _RECALL)) + 1
        n_wanted = self._calibrated(holders, home, most, n_neighbors, workers)
        sizes, n_found, starts, parts = np.diff(self.lists), 0, [np.zeros(1, np.int64)], []
        for _, rows, wanted in self._wanted_lists(np.arange(n_lists), most, workers):
            ends, probes = _probed_lists(wanted[:, :n_wanted], rows, sizes, n_neighbors)
            starts.append(ends[1:] + n_found)
            parts.append(probes)
            n_found += probes.size
        return np.concatenate(starts), np.concatenate(parts)

    def _calibrated(self, holders: Array, home: Array, most: int, n_neighbors: int, workers: Workers) -> int:
        """Return the smallest number of wanted lists per point with the target recall, at most ``most``.

        ``holders`` are the lists of the true neighbours of the calibration points, ``home`` their cells.
        """
        cells, position = np.unique(home, return_inverse=True)
        ranks = np.full((cells.size, self.lists.size - 1), most, np.int32)
        for block, rows, wanted in self._wanted_lists(cells, most, workers):
            _first_ranks(wanted, rows, ranks[block])
        # A cell whose union has too few points searches all lists, so that recall is not monotone in n_wanted.
        at = (np.arange(cells.size)[:, None] * (most + 1) + ranks).ravel()
        reached = np.bincount(at, np.tile(np.diff(self.lists), cells.size), cells.size * (most + 1))
        n_short = (reached.reshape(cells.size, -1)[:, :most].cumsum(axis=1) <= n_neighbors).sum(axis=1)
        needed = np.take_along_axis(ranks[position], holders, axis=1)
        for n_wanted in range(1, most):
            if ((needed < n_wanted) | (n_wanted <= n_short[position, None])).mean() >= _RECALL:
                return n_wanted
        return most

    def _wanted_lists(self, cells: Array, k: int, workers: Workers) -> Iterator[tuple[slice, Array, Array]]:
        """Yield the k nearest lists of all points of the given cells, in blocks of bounded memory.

        Each block comes with its slice of ``cells`` and the first row of each of these.
        """
        lengths = self.lists[cells + 1] - self.lists[cells]
        chunk = (np.cumsum(lengths) - lengths) // max(PROBE_ENTRIES // k, 1)
        edges = np.append(np.flatnonzero(np.diff(chunk, prepend=-1)), cells.size)
        for block in map(slice, edges[:-1], edges[1:]):
            columns = np.concatenate([np.arange(self.lists[c], self.lists[c + 1]) for c in cells[block]])
            queries = np.ascontiguousarray(self.columns[:, columns])
            rows = np.append(0, np.cumsum(lengths[block]))
            yield block, rows, nearest_columns(queries, self.centres, k, workers)[0]

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
        """Return the columns of the k nearest points of every query."""
        n_queries = queries.shape[1]
        dtype = np.int32 if self.columns.shape[1] < 2**31 else np.int64
        values, indices = np.empty((n_queries, k), np.float32), np.empty((n_queries, k), dtype)
        args = (queries, cells, self.columns, self.squares, self.lists, *probes, among_themselves)
        work = 1e3 * queries.size
        workers.rows(_search_cells, cells.size - 1, *args, values, indices, work=work, alignment=1)
        return indices

    def _in_order(self, order: Array, queries: Array, found: Array, workers: Workers) -> tuple[Array, Array]:
        """Return indices and distances of the columns found for queries that are sorted by ``order``."""
        distances = paired_distances(queries, self.columns, found, workers)
        indices, in_order = np.empty_like(found), np.empty_like(distances)
        indices[order] = self.order.astype(found.dtype)[found]
        in_order[order] = distances
        if not 1e-15 < self.unit < 1e15:
            in_order = in_order.astype(np.float64)
        in_order *= in_order.dtype.type(self.unit)
        return indices, in_order


def nearest_columns(queries: Array, centres: Array, k: int, workers: Workers) -> tuple[Array, Array]:
    """Find the k nearest columns of ``centres`` to every column of ``queries``, nearest first.

    Both are laid out by :func:`as_columns`. Returns the indices of the columns and the squared distances less the
    squared norms of the queries, each of shape (n_queries, k).
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


def _all_lists(n_cells: int, n_lists: int) -> tuple[Array, Array]:
    """Return probes of every list for every cell."""
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
    """Split overlong lists, such as those of duplicates; return the centres and starts of all lists."""
    longest = max(int(_MAX_LIST * sizes.mean()), 1)
    n_parts = np.maximum(-(-sizes // longest), 1)
    parts = np.repeat(np.arange(sizes.size), n_parts)
    nth = np.arange(parts.size) - np.repeat(np.cumsum(n_parts) - n_parts, n_parts)
    lengths = np.minimum(sizes[parts] - nth * longest, longest)
    return np.ascontiguousarray(centres[:, parts]), np.append(0, np.cumsum(lengths))
