"""What is being done, on standard error: a bar on a terminal, else a line for each thing that takes time."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class Status:
    """Counts runs and says which one is being made; to be used as a context manager."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.done = self.total = 0
        self._said = ""
        self._progress = Progress(
            BarColumn(20),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("", total=None)

    def __enter__(self) -> Status:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.update(self._task, description="")
        self._progress.stop()

    def expect(self, total: int) -> None:
        """Set how many runs there will be."""
        self.total = total
        self._progress.update(self._task, total=total)

    def say(self, text: str) -> None:
        """Say what begins now, unless that was the last thing said."""
        if text == self._said:
            return
        self._said = text
        if self.console.is_terminal:
            self._progress.update(self._task, description=escape(text))
        else:
            number = min(self.done + 1, self.total)
            self.console.print(f"run {number} of {self.total}  {text}", markup=False, soft_wrap=True)

    def advance(self, runs: int = 1) -> None:
        """Count finished runs."""
        self.done += runs
        self._progress.advance(self._task, runs)
