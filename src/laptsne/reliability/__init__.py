"""How far the position of every point can be relied on."""

from laptsne.reliability.diagnosis import diagnosis
from laptsne.reliability.scores import Reliability

__all__ = ["Reliability", "diagnosis"]
