"""The command ``laptsne``. Its libraries are those of the extra ``cli``."""

import gc
import os
import signal
import sys
from importlib.util import find_spec
from typing import Any

_LIBRARIES = ("typer", "rich", "pyarrow", "matplotlib")
# New objects between two runs of the garbage collector, and runs between two of older generations. Nearly all objects
# of the command, of imported modules and of compiled kernels, live until its end, and Python's own thresholds spend a
# sixth of a short run on looking at them again.
_GC_THRESHOLDS = (50_000, 20, 100)


def main() -> None:
    """Run the command, or exit with code 2 and name the extra if one of its libraries is missing."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where the shell ignores it
        signal.signal(signal.SIGINT, stop_at_once)
    missing = [name for name in _LIBRARIES if find_spec(name) is None]
    if missing:
        print(f'laptsne: the command needs {", ".join(missing)}; pip install "laptsne[cli]".', file=sys.stderr)
        raise SystemExit(2)
    gc.set_threshold(*_GC_THRESHOLDS)
    from laptsne.cli.commands import app  # noqa: PLC0415  needs typer and rich

    try:
        app(prog_name="laptsne")
    finally:
        gc.freeze()  # or the interpreter searches all objects for cycles as it ends


def stop_at_once(number: int, frame: Any) -> None:
    """End the process on Ctrl-C while modules are imported: some turn a KeyboardInterrupt into errors of their own."""
    os.write(2, b"laptsne: stopped.\n")
    os._exit(128 + number)
