"""Sums over the kernel of the map, behind one interface."""

from laptsne.fields.base import Fields
from laptsne.fields.exact import ExactFields
from laptsne.fields.fourier import FourierFields, grid_fits

__all__ = ["ExactFields", "Fields", "FourierFields", "grid_fits"]
