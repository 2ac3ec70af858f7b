"""Fields of charges on the points of an embedding, by all pairs or on a grid."""

from laptsne.fields.exact import ExactFields, Fields
from laptsne.fields.fourier import CoarseFields, FourierFields, grid_fits, is_feasible

__all__ = ["CoarseFields", "ExactFields", "Fields", "FourierFields", "grid_fits", "is_feasible"]
