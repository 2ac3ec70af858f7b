"""How far the position of every point can be relied on."""

from laptsne.reliability.scores import Reliability, reliability_of

__all__ = ["Reliability", "reliability_of"]
