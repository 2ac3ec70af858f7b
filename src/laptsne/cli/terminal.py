"""Messages on standard error, the errors behind them, and exit codes."""

import contextlib
import os
import re
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator

import typer
from rich.console import Console

console = Console(stderr=True, highlight=False)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class InputError(ValueError):
    """An error that the user can fix: one line that says what is wrong and what to do."""


class StoppedEarlyWarning(UserWarning):
    """The fit was interrupted from the keyboard, and the embedding is that of the last iteration."""


def say(lines: Iterable[str], style: str | None = None) -> None:
    """Print lines on standard error, without the control characters that names and labels in data may contain."""
    for line in lines:
        console.print(_CONTROL.sub("\ufffd", line), style=style, markup=False, soft_wrap=True)


def caution(text: str, style: str = "yellow") -> None:
    """Print a warning, or an error, in one line."""
    say([f"laptsne: {' '.join(text.split())}"], style)


def waiting(text: str, *, quiet: bool) -> contextlib.AbstractContextManager[object]:
    """Show a spinner, if standard error is a terminal."""
    return contextlib.nullcontext() if quiet or not console.is_terminal else console.status(text)


@contextlib.contextmanager
def reported(*, debug: bool = False) -> Iterator[None]:
    """Print errors that the user can fix, and warnings, as one line each; exit with code 2 after an error."""
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.simplefilter("ignore", DeprecationWarning)  # some are UserWarnings as well, as those of pyparsing
        try:
            yield
        except BrokenPipeError:
            with contextlib.suppress(OSError, ValueError):
                # Python flushes standard output at exit and would print another error.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(141) from None  # as if ended by SIGPIPE
        except KeyboardInterrupt:
            caution("stopped.")
            raise typer.Exit(130) from None
        except (InputError, OSError, MemoryError) as error:
            if debug:
                say(traceback.format_exc().splitlines())
            memory = f"there is not enough memory ({error}); give fewer rows or columns."
            caution(memory if isinstance(error, MemoryError) else str(error), "red")
            raise typer.Exit(2) from error
        else:
            if any(issubclass(warning.category, StoppedEarlyWarning) for warning in recorded):
                raise typer.Exit(130)  # after the embedding so far was written
        finally:
            for text in dict.fromkeys(str(warning.message) for warning in recorded):
                caution(text)


@contextlib.contextmanager
def input_errors() -> Iterator[None]:
    """Turn the ValueErrors of the library into errors of the user's input."""
    try:
        yield
    except ValueError as error:
        raise InputError(str(error)) from error
