"""Terms of the objective, with their values and gradients as functions of the fields of an embedding."""

from laptsne.embedding.objective.clusters import ClusterContraction
from laptsne.embedding.objective.contraction import Contraction
from laptsne.embedding.objective.cross_entropy import CrossEntropy
from laptsne.embedding.objective.kl import KLDivergence
from laptsne.embedding.objective.mesh import MeshContraction
from laptsne.embedding.objective.pairs import PairContraction
from laptsne.embedding.objective.penalty import Penalty
from laptsne.embedding.objective.similarity import Similarity

__all__ = [
    "ClusterContraction",
    "Contraction",
    "CrossEntropy",
    "KLDivergence",
    "MeshContraction",
    "PairContraction",
    "Penalty",
    "Similarity",
]
