"""LaptSNE for AnnData, in the style of scanpy: ``import laptsne.scanpy as lsc; lsc.tl.laptsne(adata)``."""

from laptsne.scanpy import pl, tl
from laptsne.scanpy.tl import get_model

__all__ = ["get_model", "pl", "tl"]
