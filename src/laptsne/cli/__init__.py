"""The command ``laptsne``. Its libraries are those of the extra ``cli``."""

import os
import signal
import sys
from importlib.util import find_spec
from typing import Any

_LIBRARIES = ("typer", "rich", "pyarrow", "matplotlib")


def main() -> None:
    """Run the command, or exit with code 2 and name the extra if one of its libraries is missing."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where the shell ignores it
        signal.signal(signal.SIGINT, stop_at_once)
    missing = [name for name in _LIBRARIES if find_spec(name) is None]
    if missing:
        print(f'laptsne: the command needs {", ".join(missing)}; pip install "laptsne[cli]".', file=sys.stderr)
        raise SystemExit(2)
    from laptsne.cli.commands import app  # noqa: PLC0415  needs typer and rich

    app(prog_name="laptsne")


def stop_at_once(number: int, frame: Any) -> None:
    """End the process on Ctrl-C while modules are imported: some turn a KeyboardInterrupt into errors of their own."""
    os.write(2, b"laptsne: stopped.\n")
    os._exit(128 + number)
