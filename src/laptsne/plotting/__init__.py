"""Figures of embeddings and of eigenvalues, and the HTML explorer."""

from laptsne.explorer.export import explorer
from laptsne.plotting.eigengap_plot import eigenvalues
from laptsne.plotting.embedding_plot import scatter
from laptsne.plotting.snapshots import Recorder, compare, trajectory

__all__ = ["Recorder", "compare", "eigenvalues", "explorer", "scatter", "trajectory"]
