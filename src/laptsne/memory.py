"""How much memory a fit needs, and how much there is."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike
from sklearn.neighbors import VALID_METRICS

from laptsne._runtime.memory import available_memory
from laptsne._runtime.threads import effective_n_jobs
from laptsne.embedding.fields.fourier import _SPACING as _CELL
from laptsne.embedding.objective.mesh import _MAX_NODES
from laptsne.embedding.objective.mesh import _SPACING as _NODE
from laptsne.graph.neighbors import _BATCH, _EUCLIDEAN, _WORKING_MEMORY
from laptsne.graph.neighbors import _MAX_EXACT as _MAX_EXACT_SEARCH
from laptsne.graph.ordering import MAX_UNORDERED
from laptsne.graph.spectrum import _LARGE, MAX_CLUSTERS
from laptsne.sampling import Sampler
from laptsne.transform.placement import MAX_PERPLEXITY

_SINGLE, _DOUBLE = 4, 8  # bytes
_MUTUAL = 1.65  # affinities of a point for each of its neighbours: 2 where no neighbour is mutual, 1 where all are
_ASSUMED_CLUSTERS = 10  # where they are found by themselves
_POINT = 400  # bytes a point of what moves: map, steps, gains, gradients, fields
# What does not grow with the points: stacks of threads, tables of windows, small graphs, holes in the heap.
_FIXED = 8 << 20
# Area or volume of a map for each of its points, in units of the kernel: 0.6 of MNIST, less where clusters contract.
_ROOM = 0.5
_REFUSED = 0.75  # a fit is refused where even this share of the estimate is more than there is


def estimate_memory(n_samples: int, n_features: int, *, dtype: DTypeLike = np.float64, **settings: Any) -> int:
    """Estimate the largest memory that a fit needs, in bytes, before it is made.

    It is what the process grows by at the height of ``LaptSNE(**settings).fit(X)``, beyond X itself and what Python and
    the libraries take once they are loaded. It is mostly within a quarter of what is measured. The
    part of the neighbour graph that is mutual, the number of clusters where that is "auto", and the area of the map are
    not known beforehand, and the estimate assumes what is common.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of X; with ``metric="precomputed"`` it is square, and dense.
    dtype : dtype, default=float64
        Number type of X: single precision, or double precision for all others.
    **settings
        Parameters of :class:`LaptSNE`; with ``n_landmarks``, those of :class:`LandmarkLaptSNE`.

    Returns
    -------
    n_bytes : int

    Examples
    --------
    A million points of 50 features, and the matrices of all pairs of 20,000, in GiB:

    >>> from laptsne.memory import estimate_memory
    >>> 3 < estimate_memory(1_000_000, 50) / 2**30 < 6
    True
    >>> 2 < estimate_memory(20_000, 50, n_neighbors="all", method="exact") / 2**30 < 4
    True
    """
    from laptsne.estimator import LaptSNE  # noqa: PLC0415  it imports this module
    from laptsne.landmarks import LandmarkLaptSNE  # noqa: PLC0415  it imports this module

    for name, value in (("n_samples", n_samples), ("n_features", n_features)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}.")
    model = (LandmarkLaptSNE if "n_landmarks" in settings else LaptSNE)(**settings)
    model._validate_params()
    itemsize = _SINGLE if np.dtype(dtype) == np.float32 else _DOUBLE
    if not isinstance(model, LandmarkLaptSNE):
        return Demand.of(model, n_samples, n_features, itemsize).peak
    n_seen = min(n_samples, Sampler.of(model.n_landmarks, seed=0).n_wanted)
    return Demand.of(model, n_seen, n_features, itemsize).peak + n_samples * model.n_components * itemsize


@dataclass(frozen=True)
class Demand:
    """What a fit needs, phase by phase; each is what is alive at its height, in bytes.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of the data.
    itemsize : int
        Bytes of a number of the data.
    n_neighbors : int
        Neighbours of a point over which P is spread; all others where there are as many.
    n_given : float
        Entries of a row of a graph that was given; 0 where none was.
    n_clusters : int
        Eigenvalues that are pressed to zero.
    n_components : int
        Dimension of the map.
    fourier, approximate, in_blocks, batches : bool
        Whether sums are taken on a grid; neighbours by inverted lists; neighbours by blocks of the matrix of distances;
        and neighbours for batches sought in P.
    n_threads : int
        Number of threads.
    landmarks : bool
        Whether the points are those that k-means sees, and only some of them make the map.
    """

    n_samples: int
    n_features: int
    itemsize: int
    n_neighbors: int
    n_given: float
    n_clusters: int
    n_components: int
    fourier: bool
    approximate: bool
    in_blocks: bool
    batches: bool
    n_threads: int
    landmarks: bool

    @classmethod
    def of(cls, model: Any, n_samples: int, n_features: int, itemsize: int, n_given: float = 0) -> Demand:
        """Demand of a model for data of this shape, or for a graph with so many entries a row."""
        from laptsne.estimator import _KERNELS, auto_perplexity  # noqa: PLC0415  it imports this module

        perplexity = auto_perplexity(n_samples) if model.perplexity == "auto" else model.perplexity
        wanted = int(3 * perplexity) if model.n_neighbors == "auto" else model.n_neighbors
        everything = wanted == "all" or (model.metric == "affinities" and not n_given)
        n_neighbors = n_samples if everything else min(max(wanted, 1), n_samples - 1)
        if n_given:
            n_neighbors = math.ceil(n_given if model.metric == "affinities" else min(n_neighbors, n_given))
        kernel = _KERNELS[model.kernel] if isinstance(model.kernel, str) else model.kernel
        euclidean = isinstance(model.metric, str) and model.metric in _EUCLIDEAN and not model.metric_params
        searched = not (n_given or everything)
        return cls(
            n_samples=n_samples,
            n_features=n_features,
            itemsize=itemsize,
            n_neighbors=n_neighbors,
            n_given=n_given,
            n_clusters=_ASSUMED_CLUSTERS if isinstance(model.n_clusters, str) else model.n_clusters,
            n_components=model.n_components,
            fourier=model._uses_fourier(kernel, n_samples),
            approximate=searched and euclidean and n_samples > _MAX_EXACT_SEARCH,
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
            phases = [self._search(), self._affinities(), self._reordering(), self._spectrum(), self._batch_neighbors()]
        return int(max(*phases, self._descent(), self._end()) + self._sample()) + _FIXED

    def _sample(self) -> float:
        """Rows that k-means sees, and neighbours of each among the landmarks and among all."""
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
        """Bytes of an entry of a sparse matrix: its value and its column."""
        return _SINGLE + (4 if self._n_edges < 2**31 else 8)

    @property
    def _affinity(self) -> float:
        """P itself, which stays."""
        return _SINGLE * float(self.n_samples) ** 2 if self.is_dense else self._entry * self._n_edges

    def _all_pairs(self) -> float:
        """P and, for the spectrum, its entries that matter: a fifth of them, in blocks and then joined."""
        similarity = 0.2 * float(self.n_samples) ** 2 * 2 * (_SINGLE + 4)
        # The order of each row of P, as negative, in the search for neighbours of batches.
        order = float(self.n_samples) ** 2 * (_SINGLE + 8) if self.batches else 0.0
        blocks = 3.0 * min(_WORKING_MEMORY << 20, _DOUBLE * self.n_samples**2)  # of distances
        return self._affinity + max(similarity, order, blocks)

    def _search(self) -> float:
        n, k = self.n_samples, self.n_neighbors
        if self.n_given:
            # Rows, places, keys and order of its entries, as integers of 8 bytes.
            return 48 * self.n_given * n
        if self.approximate:
            columns = _SINGLE * (-(-self.n_features // 4) * 4)
            centred = 2 * self.itemsize * self.n_features + columns
            sorting = 2 * columns + 24
            # Lists to search for each point, of 2 sqrt(n) in all: a fifth of them where the data fill their dimensions.
            probes = columns + 0.2 * 2 * math.sqrt(n) * (_SINGLE + 4)
            # Places and numbers of the neighbours, the numbers in the order of the points, and the distances.
            found = columns + 4 * _SINGLE * k
            return n * max(centred, sorting, probes, found)
        # Numbers and distances as scikit-learn has them, 8 bytes each, and the numbers in 4; a tree copies the data.
        found = n * (20 * k + _DOUBLE * self.n_features)
        block = min(_WORKING_MEMORY << 20, _DOUBLE * n * min(n, _BATCH)) if self.in_blocks else 0
        return found + 2 * self.n_threads * block  # distances and their order

    def _affinities(self) -> float:
        """Conditional affinities, their transpose, and the sum of both, which is P."""
        return 2 * self._entry * self.n_samples * self.n_neighbors + self._affinity

    def _reordering(self) -> float:
        """P twice, and the new columns once more; at the end of a fit, there are eigenvectors and the map as well."""
        if self.n_samples <= MAX_UNORDERED:
            return 0.0
        return 2.5 * self._affinity + self.n_samples * (_DOUBLE * (MAX_CLUSTERS + 1) + 100)

    def _spectrum(self) -> float:
        """P, the values of its normalised form, and the space in which eigenvectors are sought."""
        n_vectors = max(MAX_CLUSTERS, self.n_clusters, self.n_components) + 1
        if self.n_samples > _LARGE:
            n_vectors += 3
            # Space and image have four blocks each; some six more are images, residuals and their orthonormal basis.
            space = _SINGLE * n_vectors * (2 * 4 + 6)
        else:
            space = _DOUBLE * (2 * n_vectors + 1 + 2 * n_vectors)  # ARPACK's basis, and the vectors twice
        making = self._n_edges * _SINGLE * 2
        return self._affinity + max(self._n_edges * _SINGLE + self.n_samples * space, making)

    def _batch_neighbors(self) -> float:
        """P, a copy of it and the order of its entries."""
        return 2 * self._affinity + 48 * self._n_edges if self.batches else 0.0

    @property
    def _kept(self) -> float:
        """P, the eigenvectors of the data, and what moves: alive from the first iteration to the last."""
        return self._affinity + self.n_samples * (_DOUBLE * (MAX_CLUSTERS + 1) + _POINT)

    def _descent(self) -> float:
        """A grid over the map with its transforms, and a coarser one with a field for each eigenvector."""
        return self._kept + self._grid() + self._contraction()

    def _grid(self) -> float:
        if not self.fourier:
            return 0.0
        cells = self.n_samples * _ROOM / _CELL**self.n_components
        # Transforms are twice as long a side. Their kernel is made in double precision: distances, values, spectrum.
        return cells * 2.0**self.n_components * 3 * _DOUBLE

    @property
    def _nodes(self) -> float:
        """Bytes of a number on each node of the mesh of the contraction, for each of its vectors."""
        nodes = min(self.n_samples * _ROOM / _NODE[self.n_components] ** self.n_components, float(_MAX_NODES))
        return nodes * (self.n_clusters + 1) * _SINGLE if self.fourier else 0.0

    def _contraction(self) -> float:
        """Fields, their images and the vectors on all nodes; space and image of the solver on those in use."""
        return (3 + 4) * self._nodes

    def _end(self) -> float:
        """Eigenvectors of the finished map, in double precision: space, image and seven more blocks."""
        space = self.n_samples * _DOUBLE * (self.n_clusters + 1) * (2 * 3 + 7)
        return self._kept + 2 * self._nodes + space


def _is_streamed(metric: Any) -> bool:
    """Whether scikit-learn finds neighbours in this metric without blocks of the matrix of distances."""
    return isinstance(metric, str) and metric in {*VALID_METRICS["kd_tree"], *_EUCLIDEAN} - {"cosine", "correlation"}


def check_memory(model: Any, X: Any) -> None:
    """Refuse a fit that would not fit into memory, and warn where it hardly would, before anything is computed.

    Raises
    ------
    MemoryError
        Where even three quarters of the estimate are more than there is.
    """
    is_graph = scipy.sparse.issparse(X) and _is_pairwise(model)
    n_given = max(X.nnz, 1) / X.shape[0] if is_graph else 0
    demand = Demand.of(model, X.shape[0], X.shape[1], X.dtype.itemsize, n_given)
    needed, there_is = demand.peak, available_memory()
    if there_is is None or needed <= there_is:
        return
    message = (
        f"The fit of {X.shape[0]:,} points needs about {_in_words(needed)} of memory beyond the data, but only "
        f"{_in_words(there_is)} are available. {_remedy(model, demand)}"
    )
    if _REFUSED * needed > there_is:
        raise MemoryError(message)
    warnings.warn(message, UserWarning, stacklevel=3)


def _is_pairwise(model: Any) -> bool:
    return isinstance(model.metric, str) and model.metric in ("precomputed", "affinities")


def _remedy(model: Any, demand: Demand) -> str:
    if model.n_neighbors == "all":
        return "Use n_neighbors='auto', which does not keep all pairs."
    fewer_neighbors = f"fewer neighbours: perplexity=10 instead of {demand.n_neighbors / 3:.3g}"
    if hasattr(model, "n_landmarks"):
        return (
            f"Use fewer landmarks than {model.n_landmarks:,}, each of which stands for 20 rows, or {fewer_neighbors}."
        )
    if demand.is_dense:
        return "Give the affinities as a sparse matrix of the larger ones."
    if demand.n_given:
        return "Give a graph with fewer neighbours a point."
    landmarks = "Use LandmarkLaptSNE(n_landmarks=10_000), which keeps a sample of the points in memory"
    if _is_pairwise(model):
        landmarks = "Give a sparse graph of neighbours"
    return f"{landmarks}, or {fewer_neighbors}."


def _in_words(n_bytes: float) -> str:
    return f"{n_bytes / 2**30:.1f} GiB" if n_bytes >= 2**30 else f"{n_bytes / 2**20:.0f} MiB"
