"""Progress of the descent, for ``verbose=True`` and the command."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Self

from laptsne.engine.state import State

_EVERY_LINE, _EVERY_UPDATE = 50, 25  # iterations between evaluations of the loss, which cost time


class ProgressLines:
    """A callback that prints lines of text on standard error."""

    def __init__(self, max_iter: int, loss_name: str) -> None:
        self.max_iter, self.loss_name = max_iter, loss_name
        self._started = time.perf_counter()

    def __call__(self, state: State) -> None:
        """Print the loss of every fiftieth state."""
        if state.iteration and state.iteration % _EVERY_LINE == 0:
            self.end(state.iteration, state.kl_divergence, state.contraction)

    def end(self, n_iter: int, loss: float, contraction: float) -> None:
        """Print the loss after a number of iterations."""
        text = f"iteration {n_iter} of {self.max_iter}, {self.loss_name} {loss:.3f}"
        print(f"[laptsne] {text}, {time.perf_counter() - self._started:.1f} s", file=sys.stderr)


class ProgressBar:
    """A callback that shows a progress bar on standard error, by rich, to be used as a context manager.

    ``stage`` says what happens before the first iteration.
    """

    def __init__(self, max_iter: int, stage: str | None = None, loss_name: str = "KL divergence") -> None:
        from rich.console import Console  # noqa: PLC0415  rich is optional
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415

        self.max_iter, self.loss_name, self._stage = max_iter, loss_name, stage
        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        self._bar = _bar(console, *columns, TextColumn("{task.fields[status]}"), TimeRemainingColumn())
        self._task: Any = None

    def __enter__(self) -> Self:
        self._bar.start()
        if self._stage is None:
            self._begin()
        else:
            self._waiting = self._bar.add_task(self._stage, total=None, status="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is None and self._stage is not None:
            self._bar.remove_task(self._waiting)
        self._bar.stop()

    def __call__(self, state: State) -> None:
        """Show the state of the descent."""
        task = self._begin()
        if state.iteration % _EVERY_UPDATE == 0:
            text = self._status(state.kl_divergence, state.contraction)
            self._bar.update(task, completed=state.iteration, status=text, refresh=True)
        else:
            self._bar.update(task, completed=state.iteration)

    def end(self, n_iter: int, loss: float, contraction: float) -> None:
        """Show the final result; callbacks only see states before a step."""
        self._bar.update(self._begin(), completed=n_iter, status=self._status(loss, contraction), refresh=True)

    def _begin(self) -> Any:
        """Return the bar of the descent; it replaces that of the stage before, whose time is not counted."""
        if self._task is None:
            if self._stage is not None:
                self._bar.remove_task(self._waiting)
            self._task = self._bar.add_task("laptsne", total=self.max_iter, status="")
        return self._task

    def _status(self, loss: float, contraction: float) -> str:
        name = "KL" if self.loss_name == "KL divergence" else self.loss_name
        return f"{name} {loss:.3f}" + (f"  contraction {contraction:.3g}" if contraction else "")


def _bar(console: Any, *columns: Any) -> Any:
    """Return rich's progress bar, in notebooks one that is redrawn in place; rich's own needs ipywidgets."""
    import rich.progress  # noqa: PLC0415

    if not console.is_jupyter:
        return rich.progress.Progress(*columns, console=console)

    class NotebookProgress(rich.progress.Progress):
        _handle: Any = None

        def start(self) -> None:
            from IPython.display import display  # noqa: PLC0415  always there in a notebook

            self._handle = display(self, display_id=True)  # type: ignore[no-untyped-call,unused-ignore]

        def refresh(self) -> None:
            if self._handle is not None:
                self._handle.update(self)

        def stop(self) -> None:
            self.refresh()

    return NotebookProgress(*columns, console=console)


def progress(max_iter: int, loss_name: str) -> AbstractContextManager[ProgressLines | ProgressBar]:
    """Return a callback, as a context manager: a progress bar if rich is installed, lines of text otherwise."""
    if find_spec("rich") is None:
        return nullcontext(ProgressLines(max_iter, loss_name))
    return ProgressBar(max_iter, loss_name=loss_name)
