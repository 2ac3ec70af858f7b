"""Types that many modules share."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
