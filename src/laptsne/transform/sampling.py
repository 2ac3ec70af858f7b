"""Random samples of rows that do not depend on how the rows are split into blocks.

A row enters the sample if a hash of its row number is small enough (Bernoulli sampling with a hash in place of a random
number generator). Every block can thus be sampled by itself, on any machine and in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from laptsne._runtime.typing import Array

_ROWS_PER_LANDMARK = 20
_MIN_ROWS = 100_000  # sampled even for few landmarks


@dataclass(frozen=True)
class Sample:
    """Row numbers, ascending, of shape (n_sampled,), and values of shape (n_sampled, n_features)."""

    indices: Array
    values: Array

    @classmethod
    def concatenated(cls, parts: Sequence[Sample]) -> Self:
        """Join samples of consecutive blocks."""
        return cls(np.concatenate([part.indices for part in parts]), np.concatenate([part.values for part in parts]))


@dataclass(frozen=True)
class Sampler:
    """Sample about ``n_wanted`` rows; all rows if there are no more than that."""

    n_wanted: int
    seed: int

    @classmethod
    def of(cls, n_landmarks: int, seed: int) -> Sampler:
        """Return the sampler for a number of landmarks."""
        return cls(max(_ROWS_PER_LANDMARK * n_landmarks, _MIN_ROWS), seed)

    def block_sample(self, block: Array, offset: int, n_rows: int) -> Sample:
        """Sample a block that starts at row ``offset`` of ``n_rows``."""
        return self._thinned([Sample(np.arange(offset, offset + len(block)), block)], n_rows)

    def sample(self, blocks: Iterable[Array]) -> Sample:
        """Sample a stream of blocks in one pass, holding at most ``2 * n_wanted`` rows and one block at a time."""
        parts: list[Sample] = []
        n_rows = n_kept = 0
        for block in blocks:
            n_rows += len(block)
            # The total is not known yet. The threshold only falls as it grows, so no row is dropped too early.
            parts.append(self.block_sample(block, n_rows - len(block), n_rows))
            n_kept += parts[-1].indices.size
            if n_kept > 2 * self.n_wanted:
                parts = [self._thinned(parts, n_rows)]
                n_kept = parts[0].indices.size
        if not parts:
            raise ValueError("X has no rows.")
        return self._thinned(parts, n_rows)

    def _thinned(self, parts: list[Sample], n_rows: int) -> Sample:
        """Keep the rows whose hash is below the threshold for ``n_rows`` rows in total."""
        rows = parts[0] if len(parts) == 1 else Sample.concatenated(parts)
        largest = min(self.n_wanted * 2**64 // max(n_rows, 1), 2**64) - 1
        kept = row_hashes(rows.indices, self.seed) <= np.uint64(largest)
        return Sample(rows.indices[kept], rows.values[kept])  # a copy: iterators may reuse the memory of a block


def row_hashes(indices: Array, seed: int) -> NDArray[np.uint64]:
    """Hash row numbers to uniform 64-bit integers: the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    z = indices.astype(np.uint64) + np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def checked_block(block: Any, number: Any, *, accept_sparse: str | bool = False) -> Any:
    """Validate block ``number`` of X as an array of floats; errors name the block."""
    try:
        return check_array(block, accept_sparse=accept_sparse, dtype=[np.float64, np.float32], ensure_min_samples=0)
    except (ValueError, TypeError) as error:
        raise type(error)(f"Block {number} of X: {error}") from error
