"""The fuzzy graph of UMAP: memberships of neighbours, and their union."""

from typing import Any

import numpy as np
import scipy.sparse

from laptsne._runtime.compiled import compiled, inlined
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.graph.neighbors import neighbor_distances

_MAX_STEPS = 64
_TOL = 1e-5  # of the sum of the memberships
_MIN_SCALE = 1e-3  # of a row, in mean distances


@inlined
def _connected_distance(positive: Array, local_connectivity: float) -> float:
    """Return the distance up to which neighbours have membership 1, given the positive distances in order."""
    if positive.size == 0:
        return 0.0
    whole = int(np.floor(local_connectivity))
    part = local_connectivity - whole
    if positive.size < local_connectivity:
        return positive[-1]  # type: ignore[no-any-return]
    if whole == 0:
        return part * positive[0]  # type: ignore[no-any-return]
    last = positive[whole - 1]
    return last + part * (positive[whole] - last) if part > _TOL and positive.size > whole else last  # type: ignore[no-any-return]


@compiled
def _membership_rows(
    start: int,
    stop: int,
    indptr: Array,
    distances: Array,
    local_connectivity: float,
    target: float,
    mean_distance: float,
    membership: Array,
) -> None:
    """Set memberships exp(-(d - rho) / sigma), with sigma such that those of a row sum to the target."""
    for i in range(start, stop):
        row = distances[indptr[i] : indptr[i + 1]]
        out = membership[indptr[i] : indptr[i + 1]]
        if row.size == 0:
            continue
        rho = _connected_distance(np.sort(row[row > 0]), local_connectivity)
        low, high, sigma = 0.0, np.inf, 1.0
        for _ in range(_MAX_STEPS):
            total = 0.0
            for e in range(row.size):
                total += np.exp(-max(row[e] - rho, 0.0) / sigma)
            if abs(total - target) < _TOL:
                break
            if total > target:
                high = sigma
                sigma = (low + high) / 2
            else:
                low = sigma
                sigma = 2 * sigma if high == np.inf else (low + high) / 2
        own_mean = row.sum() / (row.size + 1)  # umap-learn counts the point itself
        sigma = max(sigma, _MIN_SCALE * (own_mean if rho > 0 else mean_distance))
        for e in range(row.size):
            beyond = row[e] - rho
            out[e] = 1.0 if beyond <= 0 or sigma == 0 else np.exp(-beyond / sigma)


def fuzzy_graph(
    X: Any,
    *,
    n_neighbors: int,
    local_connectivity: float = 1.0,
    set_op_mix_ratio: float = 1.0,
    metric: Any = "euclidean",
    metric_params: dict[str, Any] | None = None,
    workers: Workers | None = None,
) -> Any:
    r"""Compute the fuzzy graph of UMAP.

    The membership of a neighbour at distance :math:`d` is :math:`\exp(-(d - \rho_i) / \sigma_i)`, with the distance
    :math:`\rho_i` of the nearest neighbour and memberships that sum to :math:`\log_2 k`. The weights are the fuzzy
    union :math:`a + a^T - a \circ a^T`, mixed with the intersection :math:`a \circ a^T`.

    X holds features, or distances with ``metric="precomputed"``. Of the ``n_neighbors`` the point itself is one, as in
    umap-learn. ``local_connectivity`` is the number of nearest neighbours with membership 1, and ``set_op_mix_ratio``
    the share of the union. The result is a CSR matrix with symmetric weights from 0 to 1 in single precision.
    """
    workers = workers or Workers(1)
    distances = neighbor_distances(X, n_neighbors - 1, metric=metric, metric_params=metric_params, workers=workers)
    far = distances.data.astype(np.float64)
    mean = float(far.sum() / max(far.size + distances.shape[0], 1))
    membership = np.empty(far.size, np.float32)
    args = (distances.indptr, far, float(local_connectivity), float(np.log2(n_neighbors)), mean, membership)
    workers.rows(_membership_rows, distances.shape[0], *args, work=2000.0 * far.size)
    directed = scipy.sparse.csr_matrix((membership, distances.indices, distances.indptr), distances.shape)
    directed.eliminate_zeros()
    back = directed.T.tocsr()
    both = directed.multiply(back)
    mix = np.float32(set_op_mix_ratio)
    graph = scipy.sparse.csr_matrix(mix * (directed + back - both) + (1 - mix) * both)
    graph.eliminate_zeros()
    graph.sort_indices()
    return graph
