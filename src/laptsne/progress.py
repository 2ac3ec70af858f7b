"""A progress bar for the descent."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from laptsne.optimizer import State

_EVERY = 25  # iterations between two looks at the divergence and the eigenvalues, which cost time


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
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[status]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
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
            self._progress.update(task, completed=state.iteration, status=_status(state))
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
    gap = _eigengap(state) if state.contraction else None
    return status if gap is None else f"{status}  eigengap {gap:.3f}"


def _eigengap(state: State) -> float | None:
    """Gap above the eigenvalues that are pressed to zero, as far as the last refresh knows it: it costs nothing."""
    pairs, n_clusters = state._term._pairs, state._term.n_clusters
    if pairs is None or n_clusters < 2 or pairs.values.size < n_clusters:
        return None
    return float(pairs.values[n_clusters - 2] - pairs.values[n_clusters - 1])
