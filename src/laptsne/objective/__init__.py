"""The two terms of the objective: each has a value and a gradient at the fields of a map."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from laptsne.fields import Fields
from laptsne.objective.contraction import Contraction
from laptsne.objective.kl import KLDivergence
from laptsne.objective.penalty import Penalty

__all__ = ["Contraction", "KLDivergence", "Penalty", "Term"]


class Term(Protocol):
    """A term of the objective."""

    def value(self, fields: Fields) -> float:
        """Value at the map."""

    def gradient(self, fields: Fields) -> NDArray[np.float64]:
        """Gradient with respect to the map, shape (n_samples, n_components)."""
