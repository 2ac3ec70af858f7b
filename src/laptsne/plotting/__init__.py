"""Figures of embeddings and of eigenvalues, and the HTML explorer."""

from laptsne.explorer.export import explorer
from laptsne.plotting.figures import Recorder, compare, eigenvalues, scatter, trajectory

__all__ = ["Recorder", "compare", "eigenvalues", "explorer", "scatter", "trajectory"]
