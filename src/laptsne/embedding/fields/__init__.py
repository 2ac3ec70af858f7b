"""Fields of charges on the points of an embedding, by all pairs or on a grid."""

from laptsne.embedding.fields.base import Fields
from laptsne.embedding.fields.coarse import CoarseFields
from laptsne.embedding.fields.exact import ExactFields
from laptsne.embedding.fields.fourier import FourierFields, grid_fits, is_feasible

__all__ = ["CoarseFields", "ExactFields", "Fields", "FourierFields", "grid_fits", "is_feasible"]
