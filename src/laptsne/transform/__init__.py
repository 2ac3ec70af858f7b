"""Positions of new points in a finished embedding."""

from laptsne.transform.network import Network
from laptsne.transform.placement import Placement

__all__ = ["Network", "Placement"]
