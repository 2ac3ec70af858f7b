"""The descent of LapUMAP."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from laptsne.engine.cross_entropy import CrossEntropy
from laptsne.engine.run import Run

# Least degree, relative to the mean, that steps are divided by. Graphs of UMAP have none below it, given ones may.
_MIN_DEGREE = 0.1
_DECAY = 0.5  # fraction of the iterations, at the end, in which the step size falls to 0


class UmapRun(Run):
    """A descent whose step size is inverse to the degree of a point, and falls to 0 at the end, as in umap-learn.

    The attraction of a point is as stiff as its degree is high, so that a common step size would be that of the hubs.
    """

    def __init__(self, *args: Any, **schedule: Any) -> None:
        super().__init__(*args, **schedule)
        assert isinstance(self.problem.kl, CrossEntropy)
        self._degrees = np.maximum(self.problem.kl.degrees, _MIN_DEGREE)[:, None]

    @property
    def rate(self) -> float:
        """Current step size, of a point of mean degree."""
        return super().rate * min(1.0, (1 - self.iteration / self.max_iter) / _DECAY)

    def _moved(
        self,
        gradient: NDArray[np.float64],
        gains: NDArray[np.float64] | None,
        velocity: NDArray[np.float64],
        Y: NDArray[np.float64],
    ) -> NDArray[np.float64] | None:
        return super()._moved(gradient / self._degrees, gains, velocity, Y)
