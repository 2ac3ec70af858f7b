"""Random samples of rows that do not depend on how the rows are split into blocks.

A row enters the sample if a hash of its row number is small enough (Bernoulli sampling with a hash in place of a random
number generator). Every block can thus be sampled by itself, on any machine and in any order.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from laptsne._runtime.typing import Array

_ROWS_PER_LANDMARK = 20
_MIN_ROWS = 100_000  # sampled even for few landmarks


def n_sampled(n_landmarks: int, n_rows: int) -> int:
    """Return about how many of ``n_rows`` rows are sampled."""
    return min(max(_ROWS_PER_LANDMARK * n_landmarks, _MIN_ROWS), n_rows)


def sample_of(block: Array, offset: int, n_rows: int, n_wanted: int, seed: int) -> tuple[Array, Array]:
    """Sample a block that starts at row ``offset`` of ``n_rows``: return the row numbers, and a copy of the rows.

    Of all blocks together, about ``n_wanted`` rows are sampled.
    """
    rows = np.arange(offset, offset + len(block))
    largest = n_wanted * 2**64 // n_rows - 1
    kept = row_hashes(rows, seed) <= np.uint64(largest)
    return rows[kept], block[kept]


def joined(samples: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Join samples of consecutive blocks."""
    numbers, rows = zip(*samples, strict=True)
    return np.concatenate(numbers), np.concatenate(rows)


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
