"""Progress of the descent, for ``verbose=True`` and the command."""

from __future__ import annotations

import sys
import time
from typing import Self

from laptsne.engine.minimise import State

_EVERY_LINE, _EVERY_UPDATE = 50, 25  # iterations between evaluations of the loss, which cost time


class ProgressLines:
    """A callback that prints lines of text on standard error."""

    def __init__(self, max_iter: int, loss_name: str) -> None:
        self.max_iter, self.loss_name = max_iter, loss_name
        self._started = self._last = time.perf_counter()

    def __call__(self, state: State) -> None:
        """Print the loss of every fiftieth state."""
        if state.iteration and state.iteration % _EVERY_LINE == 0:
            now = time.perf_counter()
            left = (now - self._last) / _EVERY_LINE * (self.max_iter - state.iteration)  # at the rate of the last ones
            self._last = now
            self.end(state.iteration, state.kl_divergence, f", about {left:.1f} s left")

    def end(self, n_iter: int, loss: float, left: str = "") -> None:
        """Print the loss after a number of iterations."""
        text = f"iteration {n_iter} of {self.max_iter}, {self.loss_name} {loss:.3f}"
        print(f"[laptsne] {text}, {time.perf_counter() - self._started:.1f} s{left}", file=sys.stderr)


class ProgressBar:
    """A progress bar on standard error, by rich: a callback and context manager that at first shows a ``stage``."""

    def __init__(self, max_iter: int, stage: str) -> None:
        from rich.console import Console  # noqa: PLC0415  rich is optional
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

        status = TextColumn("{task.fields[status]}")
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), status, TimeRemainingColumn())
        self.max_iter, self._has_begun = max_iter, False
        self._bar = Progress(*columns, console=Console(stderr=True))
        self._task = self._bar.add_task(stage, total=None, status="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if not self._has_begun:
            self._bar.remove_task(self._task)
        self._bar.stop()

    def __call__(self, state: State) -> None:
        """Show the state of the descent."""
        if state.iteration % _EVERY_UPDATE == 0:
            self.end(state.iteration, state.kl_divergence, state.contraction)
        else:
            self._bar.update(self._task, completed=state.iteration)

    def end(self, n_iter: int, loss: float, contraction: float) -> None:
        """Show the result of a number of iterations; callbacks only see states before a step."""
        if not self._has_begun:  # the time of the stage before does not count
            self._bar.reset(self._task, total=self.max_iter, description="laptsne")
            self._has_begun = True
        status = f"KL {loss:.3f}" + (f"  contraction {contraction:.3g}" if contraction else "")
        self._bar.update(self._task, completed=n_iter, status=status, refresh=True)
