"""A model of the memory that a fit of LapUMAP needs."""

from dataclasses import dataclass

from laptsne.fields.repulsion import CELLS_PER_POINT, MAX_CELLS
from laptsne.memory_model import Demand

# Bytes per cell of a transform: distances, values and spectrum of the kernel in double precision, up to four spectra of
# earlier grids in single precision, and the charges.
_CELL = 36
# Bytes per neighbour of the union of the directed graph and its transpose, the largest of whose parts are six sparse
# matrices in single precision.
_UNION = 72
_CLUSTERING = 1400  # bytes per point of the search for clusters, measured by benchmarks/memory.py
_CELLS = {1: 1 << 16, 2: 1 << 16, 3: 1 << 17}  # of the grid for few points, by dimension


@dataclass(frozen=True)
class UmapDemand(Demand):
    """The memory that a fit of LapUMAP needs."""

    @property
    def fewer_neighbors(self) -> str:
        """How to lower the number of neighbours."""
        return f"fewer neighbours: n_neighbors=5 instead of {self.n_neighbors}"

    def _affinities(self) -> float:
        """The directed graph, its transpose, product and sums, or the given graph and copies of it."""
        return _UNION * float(self.n_samples) * self.n_neighbors

    def _clusters(self) -> float:
        """The graph, and what the search for clusters makes of it."""
        return self._affinity + self.n_samples * _CLUSTERING

    def _grid(self) -> float:
        """The largest grid, which the first iterations need, with its transforms."""
        cells = min(max(CELLS_PER_POINT * self.n_samples, _CELLS[self.n_components]), MAX_CELLS)
        return cells * 2.0**self.n_components * _CELL if self.fourier else 0.0
