"""A progress bar for the descent."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from laptsne.embedding.optimizer import State

_EVERY = 25  # iterations between two looks at the divergence and the eigenvalues, which cost time


class _InNotebook(Progress):
    """A bar in the output of a notebook's cell, redrawn in place; rich's own needs ipywidgets there."""

    _handle: Any = None

    def start(self) -> None:
        from IPython.display import display  # noqa: PLC0415  a notebook has it

        self._handle = display(self, display_id=True)  # type: ignore[no-untyped-call,unused-ignore]

    def refresh(self) -> None:
        if self._handle is not None:
            self._handle.update(self)

    def stop(self) -> None:
        self.refresh()


class ProgressBar:
    """A callback that shows how far the descent is, on standard error; to be used as a context manager.

    Parameters
    ----------
    max_iter : int
        Largest number of iterations.
    stage : str, optional
        What goes on between the start of the bar and the first step of the descent.
    """

    def __init__(self, max_iter: int, stage: str | None = None) -> None:
        self.max_iter = max_iter
        self._stage = stage
        console = Console(stderr=True)
        self._progress = (_InNotebook if console.is_jupyter else Progress)(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[status]}"),
            TimeRemainingColumn(),
            console=console,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> ProgressBar:
        self._progress.start()
        if self._stage is None:
            self._begin()
        else:
            self._waiting = self._progress.add_task(self._stage, total=None, status="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._task is not None:
            self._progress.update(self._task, completed=self.max_iter)
        elif self._task is None:
            self._progress.remove_task(self._waiting)
        self._progress.stop()

    def __call__(self, state: State) -> None:
        """Show the state of the descent."""
        task = self._begin()
        if state.iteration % _EVERY == 0:
            self._progress.update(task, completed=state.iteration, status=_status(state), refresh=True)
        else:
            self._progress.update(task, completed=state.iteration)

    def _begin(self) -> TaskID:
        """The bar of the descent, in place of that of what came before, so that its time is not counted."""
        if self._task is None:
            if self._stage is not None:
                self._progress.remove_task(self._waiting)
            self._task = self._progress.add_task("laptsne", total=self.max_iter, status="")
        return self._task


def _status(state: State) -> str:
    status = f"KL {state.kl_divergence:.3f}"
    gap = state.eigengap if state.contraction else None
    return status if gap is None else f"{status}  eigengap {gap:.3f}"
