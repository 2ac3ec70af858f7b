"""The two terms of the objective: each has a value and a gradient at the fields of a map."""

from __future__ import annotations

from laptsne.objective.contraction import Contraction, pull
from laptsne.objective.kl import KLDivergence
from laptsne.objective.mesh import MeshContraction
from laptsne.objective.pairs import PairContraction
from laptsne.objective.penalty import Penalty

__all__ = ["Contraction", "KLDivergence", "MeshContraction", "PairContraction", "Penalty", "pull"]
