"""Places in a finished map for points that it was not made of."""

from __future__ import annotations

from laptsne.mapping.network import Network
from laptsne.mapping.placement import Placement, Unsurveyed

__all__ = ["Network", "Placement", "Unsurveyed"]
