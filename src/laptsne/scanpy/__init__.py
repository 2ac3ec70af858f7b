"""LaptSNE for AnnData, in the style of scanpy: ``import laptsne.scanpy as lsc; lsc.tl.laptsne(adata)``."""

from laptsne.scanpy import pl, tl

__all__ = ["pl", "tl"]
