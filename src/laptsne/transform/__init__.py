"""Places in a finished map for points that it was not made of."""

from __future__ import annotations

from laptsne.transform.network import Network
from laptsne.transform.placement import Placement

__all__ = ["Network", "Placement"]
