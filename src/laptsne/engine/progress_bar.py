"""A progress bar for terminals and notebooks, by rich."""

from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from laptsne.engine.state import State

_EVERY = 25  # iterations between evaluations of the KL divergence, which cost time


class _NotebookProgress(Progress):
    """A bar in the output of a notebook cell, redrawn in place; rich's own needs ipywidgets."""

    _handle: Any = None

    def start(self) -> None:
        from IPython.display import display  # noqa: PLC0415  always there in a notebook

        self._handle = display(self, display_id=True)  # type: ignore[no-untyped-call,unused-ignore]

    def refresh(self) -> None:
        if self._handle is not None:
            self._handle.update(self)

    def stop(self) -> None:
        self.refresh()


class ProgressBar:
    """A callback that shows a progress bar on standard error, to be used as a context manager.

    Parameters
    ----------
    max_iter : int
        Maximum number of iterations.
    stage : str, optional
        What happens before the first iteration.
    """

    def __init__(self, max_iter: int, stage: str | None = None) -> None:
        self.max_iter = max_iter
        self._stage = stage
        console = Console(stderr=True)
        self._progress = (_NotebookProgress if console.is_jupyter else Progress)(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[status]}"),
            TimeRemainingColumn(),
            console=console,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        if self._stage is None:
            self._begin()
        else:
            self._waiting = self._progress.add_task(self._stage, total=None, status="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is None and self._stage is not None:
            self._progress.remove_task(self._waiting)
        self._progress.stop()

    def __call__(self, state: State) -> None:
        """Show the state of the descent."""
        task = self._begin()
        if state.iteration % _EVERY == 0:
            text = _status(state.kl_divergence, state.contraction)
            self._progress.update(task, completed=state.iteration, status=text, refresh=True)
        else:
            self._progress.update(task, completed=state.iteration)

    def end(self, n_iter: int, kl_divergence: float, contraction: float) -> None:
        """Show the result, which the state before the last step is not."""
        text = _status(kl_divergence, contraction)
        self._progress.update(self._begin(), completed=n_iter, status=text, refresh=True)

    def _begin(self) -> TaskID:
        """The bar of the descent; it replaces that of the stage before, so that the time of this is not counted."""
        if self._task is None:
            if self._stage is not None:
                self._progress.remove_task(self._waiting)
            self._task = self._progress.add_task("laptsne", total=self.max_iter, status="")
        return self._task


def _status(kl_divergence: float, contraction: float) -> str:
    """KL divergence and contraction in words."""
    return f"KL {kl_divergence:.3f}" + (f"  contraction {contraction:.3g}" if contraction else "")
