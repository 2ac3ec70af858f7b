"""A model of the memory that a fit needs, phase by phase."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from sklearn.neighbors import VALID_METRICS

from laptsne import parameters
from laptsne._runtime.memory import available_memory
from laptsne._runtime.threads import effective_n_jobs
from laptsne._runtime.warn import warn
from laptsne.contraction.term import SPACING as MESH_SPACING
from laptsne.engine.backend import uses_fourier
from laptsne.fields.chebyshev import coupling_bytes
from laptsne.fields.fourier import SPACING as GRID_SPACING
from laptsne.fields.grid import MAX_NODES
from laptsne.graph.affinity import NEIGHBORS_PER_PERPLEXITY, auto_perplexity
from laptsne.graph.ivf import PROBE_ENTRIES
from laptsne.graph.metric_params import is_pairwise
from laptsne.graph.neighbors import EUCLIDEAN_METRICS, MAX_EXACT_NEIGHBORS, ROWS_PER_BLOCK, WORKING_MEMORY_MIB
from laptsne.graph.ordering import MAX_UNORDERED
from laptsne.graph.spectrum import MAX_ARPACK, MAX_CLUSTERS
from laptsne.graph.symmetrization import BLOCKS, MAX_BY_SCIPY
from laptsne.transform.placement import MAX_PERPLEXITY

_SINGLE, _DOUBLE = 4, 8  # bytes
_MUTUAL = 1.65  # entries of P per point and neighbour: 2 if no neighbours are mutual, 1 if all are
_ASSUMED_CLUSTERS = 10  # if their number is not given
_CLUSTERING = 900  # bytes per point of the search for clusters
_PER_POINT = 400  # bytes per point of embedding, velocities, gains, gradients and fields
# Independent of the number of points: stacks of threads, tables of windows, small graphs, fragmentation.
_FIXED = 8 << 20
# Area or volume of the embedding per point, in units of the kernel: 0.6 for MNIST, less with contraction.
_AREA_PER_POINT = 0.5
# Cells per side of the mesh of a Gaussian kernel, whose width follows the size of clusters; for a single cluster.
_CELLS_PER_CLUSTER = 20
_REFUSED = 0.75  # a fit is refused if this fraction of the estimate exceeds the available memory


@dataclass(frozen=True)
class Demand:
    """The memory that a fit needs; each phase is the sum of what is alive at its peak, in bytes.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of the data.
    itemsize : int
        Bytes per number of the data.
    n_neighbors : int
        Neighbours per point with an affinity; ``n_samples`` if P is dense.
    n_given : float
        Entries per row of a given graph; 0 if features are given.
    n_clusters : int
        Number of penalised eigenvalues.
    n_eigenvectors : int
        Number of eigenvectors of the data's graph that are computed.
    n_components : int
        Dimension of the embedding.
    fourier, wide_kernel, approximate, in_blocks, batches : bool
        Whether sums are computed on a grid, the contraction on a mesh with a Gaussian kernel of its own, neighbours by
        the IVF index, neighbours by blocks of the distance matrix, and neighbours of mini-batches from P.
    n_threads : int
    landmarks : bool
        Whether the data are the sample of which landmarks are chosen.
    """

    n_samples: int
    n_features: int
    itemsize: int
    n_neighbors: int
    n_given: float
    n_clusters: int
    n_eigenvectors: int
    n_components: int
    fourier: bool
    wide_kernel: bool
    approximate: bool
    in_blocks: bool
    batches: bool
    n_threads: int
    landmarks: bool

    @classmethod
    def of(cls, model: Any, n_samples: int, n_features: int, itemsize: int, n_given: float = 0) -> Demand:
        """Demand of a model for data of this shape, or for a graph with ``n_given`` entries per row."""
        perplexity = auto_perplexity(n_samples) if model.perplexity == "auto" else model.perplexity
        wanted = int(NEIGHBORS_PER_PERPLEXITY * perplexity) if model.n_neighbors == "auto" else model.n_neighbors
        everything = wanted == "all" or (model.metric == "affinities" and not n_given)
        n_neighbors = n_samples if everything else min(max(wanted, 1), n_samples - 1)
        if n_given:
            n_neighbors = math.ceil(n_given if model.metric == "affinities" else min(n_neighbors, n_given))
        kernel = parameters.kernel_of(model.kernel)
        euclidean = isinstance(model.metric, str) and model.metric in EUCLIDEAN_METRICS and not model.metric_params
        searched = not (n_given or everything)
        return cls(
            n_samples=n_samples,
            n_features=n_features,
            itemsize=itemsize,
            n_neighbors=n_neighbors,
            n_given=n_given,
            n_clusters=_ASSUMED_CLUSTERS if isinstance(model.n_clusters, str) else model.n_clusters,
            n_eigenvectors=_n_eigenvectors(model) + 1,
            n_components=model.n_components,
            fourier=uses_fourier(model.method, kernel, model.batch_size, n_samples, model.n_components),
            wide_kernel=not parameters.has_one_kernel(model),
            approximate=searched and euclidean and n_samples > MAX_EXACT_NEIGHBORS,
            in_blocks=searched and not _is_streamed(model.metric),
            batches=model.batch_size is not None and bool(model.n_batch_neighbors),
            n_threads=effective_n_jobs(model.n_jobs),
            landmarks=hasattr(model, "n_landmarks"),
        )

    @property
    def peak(self) -> int:
        """The largest of all phases."""
        if self.is_dense:
            phases = [self._all_pairs()]
        else:
            phases = [self._search(), self._affinities(), self._reordering(), self._spectrum(), self._clusters()]
            phases.append(self._batch_neighbors())
        return int(max(*phases, self._descent(), self._end()) + self._sample()) + _FIXED

    @property
    def fewer_neighbors(self) -> str:
        """How to lower the number of neighbours."""
        return f"fewer neighbours: perplexity=10 instead of {self.n_neighbors / NEIGHBORS_PER_PERPLEXITY:.3g}"

    def _sample(self) -> float:
        """The rows of which landmarks are chosen, and the neighbours of each among the landmarks and among all."""
        row = self.itemsize * self.n_features + 2 * 3 * MAX_PERPLEXITY * (_SINGLE + 4)
        return float(self.n_samples) * row if self.landmarks else 0.0

    @property
    def is_dense(self) -> bool:
        """Whether P is a dense matrix."""
        return self.n_neighbors >= self.n_samples

    @property
    def _n_edges(self) -> float:
        """Entries of P."""
        share = 1.0 if self.n_given else _MUTUAL
        return self.n_samples * min(share * self.n_neighbors, self.n_samples - 1.0)

    @property
    def _entry(self) -> int:
        """Bytes per entry of a sparse matrix: value and column."""
        return _SINGLE + (4 if self._n_edges < 2**31 else 8)

    @property
    def _affinity(self) -> float:
        """P itself."""
        return _SINGLE * float(self.n_samples) ** 2 if self.is_dense else self._entry * self._n_edges

    def _all_pairs(self) -> float:
        """A dense P, and for the spectrum its larger entries: a fifth of them, in blocks that are then joined."""
        similarity = 0.2 * float(self.n_samples) ** 2 * 2 * (_SINGLE + 4)
        # Negated rows of P and their order, for the neighbours of mini-batches.
        order = float(self.n_samples) ** 2 * (_SINGLE + 8) if self.batches else 0.0
        blocks = 3.0 * min(WORKING_MEMORY_MIB << 20, _DOUBLE * self.n_samples**2)  # of distances
        return self._affinity + max(similarity, order, blocks)

    def _search(self) -> float:
        n, k = self.n_samples, self.n_neighbors
        if self.n_given:
            # Rows, positions, keys and order of the entries as 8-byte integers.
            return 48 * self.n_given * n
        if self.approximate:
            columns = _SINGLE * (-(-self.n_features // 4) * 4)
            centred = 2 * self.itemsize * self.n_features + columns
            sorting = 2 * columns + 24
            # Positions of the neighbours, with a block of probed lists and heaps; then also indices and distances in
            # the order of the points.
            found = columns + 40 + 3 * _SINGLE * k
            return n * max(centred, sorting, found) + 2 * (_SINGLE + 4) * min(n * k, PROBE_ENTRIES)
        # 8-byte indices and distances of scikit-learn, 4-byte indices; a tree copies the data.
        found = n * (20 * k + _DOUBLE * self.n_features)
        block = min(WORKING_MEMORY_MIB << 20, _DOUBLE * n * min(n, ROWS_PER_BLOCK)) if self.in_blocks else 0
        return found + 2 * self.n_threads * block  # distances and their order

    def _affinities(self) -> float:
        """Distances, columns, squares in double precision and conditional affinities; then the latter and P.

        For few points, the whole transpose of the conditional affinities is in memory as well.
        """
        n_found = float(self.n_samples) * self.n_neighbors
        conditional = self._entry * n_found
        transpose = conditional if self.n_samples <= MAX_BY_SCIPY else conditional * self.n_threads / BLOCKS
        return max((3 * _SINGLE + _DOUBLE) * n_found, conditional + transpose + self._affinity)

    def _reordering(self) -> float:
        """1.5 copies of P; at the end of a fit also embedding, labels and the potential."""
        return 0.0 if self.n_samples <= MAX_UNORDERED else 1.5 * self._affinity + self.n_samples * _PER_POINT

    def _clusters(self) -> float:
        """P, the graph of the nearest neighbours, and its part within clusters or the graph of groups."""
        return self._affinity + self.n_samples * _CLUSTERING

    def _spectrum(self) -> float:
        """P, the values of its normalised form, and the search space of the eigensolver."""
        n_vectors = self.n_eigenvectors
        if self.n_samples > MAX_ARPACK:
            n_vectors += 3
            # Space and image have four blocks each; about six more are images, residuals and their basis.
            space = _SINGLE * n_vectors * (2 * 4 + 6)
        else:
            space = _DOUBLE * (2 * n_vectors + 1 + 2 * n_vectors)  # basis of ARPACK, and the vectors twice
        return self._affinity + self._n_edges * _SINGLE + self.n_samples * space

    def _batch_neighbors(self) -> float:
        """P, a copy of it and the order of its entries."""
        return 2 * self._affinity + 48 * self._n_edges if self.batches else 0.0

    @property
    def _kept(self) -> float:
        """P, the eigenvectors of the data, and the arrays of the descent, alive in all iterations."""
        start = self.n_eigenvectors + (0 if self.wide_kernel else self.n_clusters)  # and indicators of the clusters
        return self._affinity + self.n_samples * (_DOUBLE * start + _PER_POINT)

    def _descent(self) -> float:
        """The grid with its transforms, and the mesh of the contraction."""
        return self._kept + self._grid() + self._contraction()

    def _grid(self) -> float:
        if not self.fourier:
            return 0.0
        cells = self.n_samples * _AREA_PER_POINT / GRID_SPACING**self.n_components
        # Transforms have twice the cells per side. The kernel takes distances, values and spectrum in double precision.
        transforms = cells * 2.0**self.n_components * 3 * _DOUBLE
        return max(transforms, float(coupling_bytes(self.n_components)))

    @property
    def _nodes(self) -> float:
        """Bytes of one single-precision number per node of the mesh and eigenvector."""
        nodes: float
        if self.wide_kernel:
            nodes = (_CELLS_PER_CLUSTER * self.n_clusters ** (1 / self.n_components)) ** self.n_components
        elif self.fourier:
            nodes = self.n_samples * _AREA_PER_POINT / MESH_SPACING[self.n_components] ** self.n_components
        else:
            return 0.0
        return min(nodes, float(MAX_NODES)) * (self.n_clusters + 1) * _SINGLE

    def _contraction(self) -> float:
        """Fields, images and vectors on all nodes; search space and image of the solver on occupied ones."""
        return (3 + 4) * self._nodes

    def _end(self) -> float:
        """Eigenvectors of the final embedding in double precision: space, image and seven more blocks.

        Those of a wide kernel are on its mesh.
        """
        space = 0.0 if self.wide_kernel else self.n_samples * _DOUBLE * (self.n_clusters + 1) * (2 * 3 + 7)
        return self._kept + 2 * self._nodes + space


def _n_eigenvectors(model: Any) -> int:
    """Number of eigenvectors of the data's graph, except the first: those of the initial embedding and of clusters."""
    if model.n_clusters == "auto":
        return int(model.n_components)
    return int(max(model.n_components, MAX_CLUSTERS, 0 if isinstance(model.n_clusters, str) else model.n_clusters))


def _is_streamed(metric: Any) -> bool:
    """Whether scikit-learn finds neighbours in this metric without blocks of the distance matrix."""
    return isinstance(metric, str) and metric in {*VALID_METRICS["kd_tree"], *EUCLIDEAN_METRICS} - {
        "cosine",
        "correlation",
    }


def check_memory(demand: Demand, model: Any) -> None:
    """Warn if a fit may not fit into memory; raise MemoryError if three quarters of the estimate do not fit."""
    needed, available = demand.peak, available_memory()
    if available is None or needed <= available:
        return
    message = (
        f"Fitting {demand.n_samples:,} points needs about {_in_words(needed)} of memory in addition to the data, but "
        f"only {_in_words(available)} are available. {_remedy(model, demand)}"
    )
    if _REFUSED * needed > available:
        raise MemoryError(message)
    warn(message)


def _remedy(model: Any, demand: Demand) -> str:
    if model.n_neighbors == "all":
        return "Use n_neighbors='auto', which does not store all pairs."
    if demand.landmarks:
        return (
            f"Use fewer landmarks than {model.n_landmarks:,}, each of which takes 20 rows, or {demand.fewer_neighbors}."
        )
    if demand.is_dense:
        return "Give the affinities as a sparse matrix of the larger ones."
    if demand.n_given:
        return "Give a graph with fewer neighbours per point."
    if is_pairwise(model.metric):
        return f"Give a sparse neighbour graph, or {demand.fewer_neighbors}."
    return f"Use LandmarkLaptSNE(n_landmarks=10_000), which fits a sample of the points, or {demand.fewer_neighbors}."


def _in_words(n_bytes: float) -> str:
    return f"{n_bytes / 2**30:.1f} GiB" if n_bytes >= 2**30 else f"{n_bytes / 2**20:.0f} MiB"
