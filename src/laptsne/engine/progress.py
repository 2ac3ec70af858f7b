"""Progress of the descent, for ``verbose=True``."""

import sys
import time
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from typing import Protocol

from laptsne.engine.state import State

_EVERY = 50  # iterations between lines


class Progress(Protocol):
    """A callback that shows the state of the descent, and at last its result."""

    def __call__(self, state: State) -> None:
        """Show the state before a step."""

    def end(self, n_iter: int, kl_divergence: float, contraction: float) -> None:
        """Show the result, which the state before the last step is not."""


def progress(max_iter: int) -> AbstractContextManager[Progress]:
    """A callback, as a context manager, that shows a progress bar if rich is installed, and lines of text otherwise."""
    if find_spec("rich") is None:
        return nullcontext(_Lines(max_iter))
    from laptsne.engine.progress_bar import ProgressBar  # noqa: PLC0415  rich is optional

    return ProgressBar(max_iter)


class _Lines:
    """Lines of text on standard error."""

    def __init__(self, max_iter: int) -> None:
        self.max_iter = max_iter
        self._started = time.perf_counter()

    def __call__(self, state: State) -> None:
        if state.iteration and state.iteration % _EVERY == 0:
            self._print(state.iteration, state.kl_divergence)

    def end(self, n_iter: int, kl_divergence: float, contraction: float) -> None:
        self._print(n_iter, kl_divergence)

    def _print(self, iteration: int, kl_divergence: float) -> None:
        text = f"iteration {iteration} of {self.max_iter}, KL divergence {kl_divergence:.3f}"
        print(f"[laptsne] {text}, {time.perf_counter() - self._started:.1f} s", file=sys.stderr)
