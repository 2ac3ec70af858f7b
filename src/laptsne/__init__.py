"""Cluster-contractive t-SNE: maps of high-dimensional data in which clusters can be seen."""

from laptsne.estimator import LaptSNE
from laptsne.landmarks import LandmarkLaptSNE
from laptsne.memory import estimate_memory
from laptsne.optimizer import Descent

__all__ = ["Descent", "LandmarkLaptSNE", "LaptSNE", "__version__", "estimate_memory"]
__version__ = "0.1.0"
