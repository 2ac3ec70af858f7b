"""How long do the import, the first fit of a process and the command take, with a cold and a warm cache of kernels?

python benchmarks/startup.py    # three minutes

Medians over fresh processes. The cache is cold in a process that starts with an empty cache directory, as after an
installation. The times of the command are those of the whole process, interpreter and imports included.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from shared import command_line

IMPORT = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
FITS = """
import time
from sklearn.datasets import load_digits
from laptsne import LaptSNE
X, _ = load_digits(return_X_y=True)
times = []
for _ in range(2):
    start = time.perf_counter()
    LaptSNE(random_state=0, max_iter=250).fit(X)
    times.append(time.perf_counter() - start)
print(times[0] - times[1])
"""
COMMAND = ["-m", "laptsne", "embed", "digits", "--force"]


def run(arguments: list[str], folder: str, cache: str) -> str:
    """Return what Python prints in a folder, with a directory of compiled code below it."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(Path(folder) / cache)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=True).stdout


def seconds_of_command(folder: str) -> float:
    start = time.perf_counter()
    run(COMMAND, folder, "command")
    return time.perf_counter() - start


def parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    return parser


def main() -> None:
    args = parser().parse_args()
    times: dict[str, list[float]] = {}
    for _ in range(args.repeats):
        with tempfile.TemporaryDirectory() as folder:
            measured = {
                "import sklearn": float(run(["-c", IMPORT.format("sklearn")], folder, "import")),
                "import laptsne": float(run(["-c", IMPORT.format("laptsne")], folder, "import")),
                "first minus second fit, cold cache (limit 15)": float(run(["-c", FITS], folder, "fits")),
                "first minus second fit, warm cache (limit 2)": float(run(["-c", FITS], folder, "fits")),
                "laptsne embed digits, first time (limit 5)": seconds_of_command(folder),
                "laptsne embed digits, second time (limit 2)": seconds_of_command(folder),
            }
        for name, seconds in measured.items():
            times.setdefault(name, []).append(seconds)
    for name, found in times.items():
        print(f"{name:47} {statistics.median(found):6.2f} s")


if __name__ == "__main__":
    main()
