"""A progress bar for the descent."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from laptsne.optimizer import State

_EVERY = 25


class ProgressBar:
    """A callback that shows how far the descent is, on standard error; to be used as a context manager."""

    def __init__(self, max_iter: int) -> None:
        self.max_iter = max_iter
        self._progress = Progress(
            TextColumn("laptsne"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[status]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = self._progress.add_task("laptsne", total=max_iter, status="")

    def __enter__(self) -> ProgressBar:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._progress.update(self._task, completed=self.max_iter)
        self._progress.stop()

    def __call__(self, state: State) -> None:
        """Show the state of the descent."""
        if state.iteration % _EVERY == 0:
            status = f"KL {state.kl_divergence:.3f}"
            if state.contraction:
                status += f"  eigenvalues {state.eigenvalues.sum():.3f}"
            self._progress.update(self._task, completed=state.iteration, status=status)
