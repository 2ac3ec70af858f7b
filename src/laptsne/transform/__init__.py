"""Positions of new points in a finished embedding."""

from __future__ import annotations

from laptsne.transform.network import Network
from laptsne.transform.placement import Placement

__all__ = ["Network", "Placement"]
