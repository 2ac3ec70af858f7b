"""The command ``laptsne``. Its libraries are those of the extra ``cli``."""

import gc
import sys
from importlib.util import find_spec

_LIBRARIES = ("typer", "rich", "pyarrow", "matplotlib")


def main() -> None:
    """Run the command, or exit with code 2 and name the extra if one of its libraries is missing."""
    # Nearly all objects live until the end: by default, the collector takes a sixth of a short run to look at them.
    gc.set_threshold(50_000, 20, 100)
    try:
        missing = [name for name in _LIBRARIES if find_spec(name) is None]
        if missing:
            print(f'laptsne: the command needs {", ".join(missing)}; pip install "laptsne[cli]".', file=sys.stderr)
            raise SystemExit(2)
        from laptsne.cli.commands import app  # noqa: PLC0415  needs typer and rich

        app(prog_name="laptsne")
    except KeyboardInterrupt:  # during imports
        print("laptsne: stopped.", file=sys.stderr)
        raise SystemExit(130) from None
    finally:
        gc.freeze()  # or the interpreter searches all objects for cycles as it ends
