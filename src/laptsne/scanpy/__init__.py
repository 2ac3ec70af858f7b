"""LaptSNE for AnnData, in the style of scanpy: ``import laptsne.scanpy as lsc; lsc.tl.laptsne(adata)``."""

try:
    from laptsne.scanpy import pl, tl
except ModuleNotFoundError as error:
    error.msg = f'laptsne.scanpy requires {error.name}; install it with pip install "laptsne[scanpy]".'
    raise

from laptsne.scanpy.tl import get_model

__all__ = ["get_model", "pl", "tl"]
