"""Pictures of maps and spectra, and pages on which maps can be explored."""

from laptsne.explorer.explorer import explorer
from laptsne.plotting.compare import compare
from laptsne.plotting.eigenvalues import eigenvalues
from laptsne.plotting.scatter import scatter
from laptsne.plotting.trajectory import Recorder, trajectory

__all__ = ["Recorder", "compare", "eigenvalues", "explorer", "scatter", "trajectory"]
