"""The app, what it says, and how it ends."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from typing import Annotated

import typer
from rich.console import Console

from laptsne import __version__
from laptsne.cli.tables import InputError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
console = Console(stderr=True, highlight=False)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def _show_version(wanted: bool) -> None:  # noqa: FBT001  typer passes it by place
    if wanted:
        typer.echo(f"laptsne {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Maps of high-dimensional data in which clusters can be seen."""


def say(lines: Iterable[str], style: str | None = None) -> None:
    """Print lines on standard error as they are, but for characters that command the terminal: data may hold any."""
    for line in lines:
        console.print(_CONTROL.sub("\ufffd", line), style=style, markup=False, soft_wrap=True)


def waiting(text: str, *, quiet: bool) -> contextlib.AbstractContextManager[object]:
    """Show on a terminal that something is going on."""
    return contextlib.nullcontext() if quiet or not console.is_terminal else console.status(text)


@contextlib.contextmanager
def reported() -> Iterator[None]:
    """Say in one line what the user can mend, with exit code 2, and what there is to be warned of."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        except BrokenPipeError:
            _close_stdout()
            raise typer.Exit(141) from None  # as a command that the signal ended
        except KeyboardInterrupt:
            say(["laptsne: stopped."], "yellow")
            raise typer.Exit(130) from None
        except MemoryError as error:
            say([f"laptsne: there is not enough memory ({error}); give fewer rows or columns."], "red")
            raise typer.Exit(2) from error
        except (InputError, OSError) as error:
            say([f"laptsne: {_in_one_line(error)}"], "red")
            raise typer.Exit(2) from error
        else:
            pass
        finally:
            say(dict.fromkeys(f"laptsne: {_in_one_line(warning.message)}" for warning in said), "yellow")


def _in_one_line(error: BaseException | str) -> str:
    return " ".join(str(error).split())


def _close_stdout() -> None:
    """Let what is left to be written go nowhere, for Python writes it at the end and would complain."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
