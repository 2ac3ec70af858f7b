"""Fields of charges on the points of an embedding, by all pairs or on a grid."""

from laptsne.fields.base import Fields
from laptsne.fields.coarse import CoarseFields
from laptsne.fields.exact import ExactFields
from laptsne.fields.fourier import FourierFields, grid_fits, is_feasible

__all__ = ["CoarseFields", "ExactFields", "Fields", "FourierFields", "grid_fits", "is_feasible"]
