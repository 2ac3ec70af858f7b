"""The fuzzy graph of UMAP: memberships of neighbours, and their union."""

from typing import Any

import numpy as np
import scipy.sparse

from laptsne._runtime.compiled import compiled
from laptsne._runtime.threads import Workers
from laptsne._runtime.typing import Array
from laptsne.graph.neighbors import neighbor_distances

_MAX_STEPS = 64
_TOL = 1e-5  # of the sum of the memberships
_MIN_SCALE = 1e-3  # of a row, in mean distances


@compiled
def _membership_rows(start: int, stop: int, graph: Any, options: tuple[float, float, float], membership: Array) -> None:
    """Set memberships exp(-(d - rho) / sigma), with sigma such that those of a row sum to the target."""
    (indptr, distances), (local_connectivity, target, mean_distance) = graph, options
    whole = int(np.floor(local_connectivity))
    for i in range(start, stop):
        row = distances[indptr[i] : indptr[i + 1]]
        out = membership[indptr[i] : indptr[i + 1]]
        if row.size == 0:
            continue
        # The distance up to which neighbours have membership 1 is interpolated between those of two neighbours.
        positive = np.sort(row[row > 0])
        ordered = np.zeros(positive.size + 1)
        ordered[1:] = positive
        rho = ordered[min(whole, positive.size)]
        if whole < positive.size:
            rho += (local_connectivity - whole) * (ordered[whole + 1] - rho)
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
    X: Any, *, n_neighbors: int, local_connectivity: float = 1.0, set_op_mix_ratio: float = 1.0, **options: Any
) -> Any:
    r"""Compute the fuzzy graph of UMAP as a CSR matrix with symmetric weights from 0 to 1 in single precision.

    The membership of a neighbour at distance :math:`d` is :math:`\exp(-(d - \rho_i) / \sigma_i)`, with the distance
    :math:`\rho_i` of the ``local_connectivity`` nearest neighbours and memberships that sum to :math:`\log_2 k`, where
    one of the k neighbours is the point itself. The weights are the fuzzy union :math:`a + a^T - a \circ a^T`, whose
    share is ``set_op_mix_ratio``, mixed with the intersection :math:`a \circ a^T`. Options are ``metric``,
    ``metric_params`` and ``workers`` of :func:`neighbor_distances`.
    """
    workers = options.pop("workers", None) or Workers(1)
    distances = neighbor_distances(X, n_neighbors - 1, workers=workers, **options)
    far, membership = distances.data.astype(np.float64), np.empty(distances.nnz, np.float32)
    mean = float(far.sum() / max(far.size + distances.shape[0], 1))
    args = ((distances.indptr, far), (float(local_connectivity), float(np.log2(n_neighbors)), mean), membership)
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
