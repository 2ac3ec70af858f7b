"""Messages on standard error, and exit codes."""

import contextlib
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator

import typer
from rich.console import Console

from laptsne.cli import stop_at_once
from laptsne.cli.errors import InputError, StoppedEarlyWarning

console = Console(stderr=True, highlight=False)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def say(lines: Iterable[str], style: str | None = None) -> None:
    """Print lines on standard error, without the control characters that names and labels in data may contain."""
    for line in lines:
        console.print(_CONTROL.sub("\ufffd", line), style=style, markup=False, soft_wrap=True)


def waiting(text: str, *, quiet: bool) -> contextlib.AbstractContextManager[object]:
    """Show a spinner, if standard error is a terminal."""
    return contextlib.nullcontext() if quiet or not console.is_terminal else console.status(text)


def started() -> None:
    """Let Ctrl-C raise KeyboardInterrupt, now that everything is imported."""
    if signal.getsignal(signal.SIGINT) is stop_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def reported(*, debug: bool = False) -> Iterator[None]:
    """Print errors that the user can fix, and warnings, as one line each; exit with code 2 after an error.

    With ``debug``, the line comes after the traceback.
    """
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.simplefilter("ignore", DeprecationWarning)  # some are UserWarnings as well, as those of pyparsing
        try:
            yield
        except BrokenPipeError:
            _discard_stdout()
            raise typer.Exit(141) from None  # as if ended by SIGPIPE
        except KeyboardInterrupt:
            say(["laptsne: stopped."], "yellow")
            raise typer.Exit(130) from None
        except MemoryError as error:
            _show_traceback(debug=debug)
            say([f"laptsne: there is not enough memory ({error}); give fewer rows or columns."], "red")
            raise typer.Exit(2) from error
        except (InputError, OSError) as error:
            _show_traceback(debug=debug)
            say([f"laptsne: {_on_one_line(error)}"], "red")
            raise typer.Exit(2) from error
        else:
            if any(issubclass(warning.category, StoppedEarlyWarning) for warning in recorded):
                raise typer.Exit(130)  # after the embedding so far was written
        finally:
            say(dict.fromkeys(f"laptsne: {_on_one_line(warning.message)}" for warning in recorded), "yellow")


def _show_traceback(*, debug: bool) -> None:
    if debug:
        say(traceback.format_exc().splitlines())


def _on_one_line(error: BaseException | str) -> str:
    return " ".join(str(error).split())


def _discard_stdout() -> None:
    """Send the rest of standard output nowhere: Python flushes it at exit and would print another error."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
