"""Backend over the kernel of the map, behind one interface."""

from laptsne.embedding.fields.base import Fields
from laptsne.embedding.fields.exact import ExactFields
from laptsne.embedding.fields.fourier import FourierFields, grid_fits, is_feasible

__all__ = ["ExactFields", "Fields", "FourierFields", "grid_fits", "is_feasible"]
